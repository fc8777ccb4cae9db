//! What a client is to be, and its connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use envoy_api::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_api::envoy::config::core::v3::{BuildVersion, Node};
use envoy_api::envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse};
use envoy_api::envoy::r#type::v3::SemanticVersion;
use envoy_api::google::protobuf::{Struct, Value, value};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::request::Manner;
use super::run::{Habits, Run};
use super::state::Of;
use super::{Decide, FirstRequests, Kind, Known, Reply, Response, Shared, State, XdsClient};
use crate::client::{Client, Failure, GrpcAnswer};

/// A client to be connected: delta, aggregated, taking and keeping everything, asking for nothing, unless told otherwise.
#[derive(Clone)]
pub struct Builder {
    server: Client,
    manner: Manner,
    habits: Habits,
    ask: BTreeMap<Kind, Vec<String>>,
    ask_all: Vec<Kind>,
    decide: Arc<Decide>,
    resumed: Option<Arc<Mutex<State>>>,
}

impl Builder {
    pub(super) fn new(server: Client) -> Builder {
        let version = SemanticVersion { major_number: 1, minor_number: 40, patch: 0 };
        let version = BuildVersion { version: Some(version), metadata: None };
        let node = Node {
            id: "xds-client".into(),
            cluster: "testbed".into(),
            user_agent_name: "envoy".into(),
            user_agent_version_type: Some(UserAgentVersionType::UserAgentBuildVersion(version)),
            ..Default::default()
        };
        let (known, first) = (Known::default(), FirstRequests::default());
        Builder {
            server: server.http2(),
            manner: Manner { delta: true, aggregated: true, explicit_all: false, node, known, first },
            habits: Habits::default(),
            ask: BTreeMap::new(),
            ask_all: Vec::new(),
            decide: Arc::new(|_| Reply::Ack),
            resumed: None,
        }
    }

    /// Its node's id.
    pub fn id(mut self, id: impl Into<String>) -> Builder {
        self.manner.node.id = id.into();
        self
    }

    /// A word in its node's metadata, such as its fleet.
    pub fn metadata(mut self, key: &str, text: &str) -> Builder {
        let metadata: &mut Struct = self.manner.node.metadata.get_or_insert_default();
        let value = Value { kind: Some(value::Kind::StringValue(text.to_owned())) };
        metadata.fields.insert(key.to_owned(), value);
        self
    }

    /// A node of the caller's making.
    pub fn node(mut self, node: Node) -> Builder {
        self.manner.node = node;
        self
    }

    /// Speaks state of the world instead of delta.
    pub fn sotw(mut self) -> Builder {
        self.manner.delta = false;
        self
    }

    /// Uses the service of each kind, on a stream of its own, instead of the aggregated one.
    pub fn per_kind(mut self) -> Builder {
        self.manner.aggregated = false;
        self
    }

    /// Says `*` when it asks for all, instead of nothing.
    pub fn explicit_all(mut self) -> Builder {
        self.manner.explicit_all = true;
        self
    }

    /// Keeps no resource and no response, only sums.
    pub fn count_only(mut self) -> Builder {
        self.habits.keep = false;
        self
    }

    /// Asks for these from the start.
    pub fn ask(mut self, kind: Kind, names: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.ask.entry(kind).or_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Asks for all of a kind from the start.
    pub fn ask_all(mut self, kind: Kind) -> Builder {
        self.ask_all.push(kind);
        self
    }

    /// Behaves as Envoy: asks for all clusters and listeners and for whatever they point at, no longer for what nothing
    /// points at, and takes clusters only when all endpoints that it asked for have come.
    pub fn as_envoy(mut self) -> Builder {
        self.habits.follow = true;
        self.habits.warm = true;
        self.ask_all(Kind::Cluster).ask_all(Kind::Listener)
    }

    /// Takes clusters at once, even while endpoints are missing.
    pub fn without_warming(mut self) -> Builder {
        self.habits.warm = false;
        self
    }

    /// Tells the server that it has these already.
    pub fn known(mut self, known: Known) -> Builder {
        self.manner.known = known;
        self
    }

    /// What it asks for, and says that it has, in its first requests: for any number of others to send, without a copy.
    pub fn prepare(&self) -> FirstRequests {
        FirstRequests::of(&self.manner, &self.asked())
    }

    /// Sends these first, and only counts what comes. It does not know the names in them, so that thousands of such clients cost
    /// no more than their connections. Delta only.
    pub fn first_requests(mut self, first: FirstRequests) -> Builder {
        self.manner.delta = true;
        self.manner.first = first;
        self.habits.keep = false;
        self
    }

    /// What each response is answered with.
    pub fn replies(mut self, decide: impl Fn(&Response) -> Reply + Send + Sync + 'static) -> Builder {
        self.decide = Arc::new(decide);
        self
    }

    /// With what an earlier connection had.
    pub(super) fn resume(mut self, mut state: State, decide: Arc<Decide>, to: Option<Client>) -> Builder {
        self.manner.known = Known::of(&state);
        // What waited for an answer was never taken, and nonces are a stream's own.
        for of in state.kinds.values_mut() {
            of.pending.clear();
            of.nonce.clear();
        }
        state.end = None;
        self.decide = decide;
        self.server = to.map_or(self.server, Client::http2);
        self.resumed = Some(Arc::new(Mutex::new(state)));
        self
    }

    /// What it is to ask for.
    fn asked(&self) -> BTreeMap<Kind, Of> {
        let mut kinds = BTreeMap::<Kind, Of>::new();
        for (kind, names) in &self.ask {
            kinds.entry(*kind).or_default().names.extend(names.iter().cloned());
        }
        for kind in &self.ask_all {
            kinds.entry(*kind).or_default().all = true;
        }
        kinds
    }

    /// Connects, and asks for what it is to ask for.
    pub async fn connect(mut self) -> Result<XdsClient, Failure> {
        let connection = self.server.connect().await?;
        let state = self.resumed.take().map(|state| std::mem::take(&mut *state.lock()));
        let is_new = state.is_none();
        let shared = Arc::new(Shared {
            state: Mutex::new(state.unwrap_or_default()),
            changes: watch::channel(0).0,
            decide: Mutex::new(self.decide.clone()),
        });
        if is_new {
            shared.state.lock().kinds = self.asked();
        }
        let (commands, receiver) = mpsc::unbounded_channel();
        let run = Run::new(connection, shared.clone(), self.manner.clone(), self.habits);
        let task = tokio::spawn(run.run(receiver)).abort_handle();
        Ok(XdsClient { shared, commands, task, builder: self })
    }

    /// Fetches resources of one kind in a single exchange, by the service of that kind.
    pub async fn fetch(
        &self,
        kind: Kind,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<GrpcAnswer<DiscoveryResponse>, Failure> {
        let request = DiscoveryRequest {
            node: Some(self.manner.node.clone()),
            resource_names: names.into_iter().map(Into::into).collect(),
            type_url: kind.type_url(),
            ..Default::default()
        };
        self.server.grpc(&kind.method("Fetch"), &request).await
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("server", &self.server).field("manner", &self.manner).finish_non_exhaustive()
    }
}

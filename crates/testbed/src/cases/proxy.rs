//! A real Envoy on a real xDS server in this process: what is published is awaited, and a refusal is an error.
//!
//! In: resources. Out: the word that Envoy has taken all of them. Envoy is bootstrapped as in earnest. Listeners bind the
//! addresses that the resources say: in a sandbox every port is free.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use envoy::bootstrap::{Bootstrap, DnsFamily, Node, Overload, Stats, XdsServer};
use tokio::net::TcpListener;
use tokio::sync::broadcast::{self, error::TryRecvError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use xds::{Batch, Changes, Event, Fleet, FleetAcks, Kind, Resource, Security, Server};

use crate::envoy::{Config, Envoy};
use crate::net::Net;
use crate::report::debug_as_report;
use crate::state::StateDir;

/// How long Envoy may take for a batch; a busy machine takes a while for the largest.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The proxy did not start or did not take what was published.
#[derive(thiserror::Error)]
pub enum Error {
    /// There is no network.
    #[error(transparent)]
    Net(#[from] crate::net::Error),
    /// There is no folder for its files.
    #[error(transparent)]
    State(#[from] crate::state::Error),
    /// Envoy failed.
    #[error(transparent)]
    Envoy(#[from] crate::envoy::Error),
    /// The server cannot listen.
    #[error("the xDS server cannot listen")]
    Listen(#[from] std::io::Error),
    /// The bootstrap has no JSON form.
    #[error(transparent)]
    Bootstrap(#[from] envoy_api::json::JsonError),
    /// The server would not take the batch.
    #[error(transparent)]
    Publish(#[from] xds::PublishError),
    /// Envoy refused something.
    #[error("Envoy refused {}:\n  {}", .0.len(), .0.join("\n  "))]
    Refused(Vec<String>),
    /// Envoy did not answer in time.
    #[error("waited {TIMEOUT:?} for Envoy to take {0}")]
    Late(String),
}
debug_as_report!(Error);

/// What ends a server, and its end.
type Serving = (CancellationToken, JoinHandle<std::io::Result<()>>);

fn new_server() -> (Server, broadcast::Receiver<Event>) {
    let resolver: Arc<dyn xds::Resolver> = Arc::new(pipeline::server_name::ByServerName);
    let server = Server::new(xds::Config { resolver: Some(resolver), ..xds::Config::default() });
    let events = server.events();
    (server, events)
}

fn serve(server: &Server, listener: TcpListener) -> Serving {
    let (stop, server) = (CancellationToken::new(), server.clone());
    let shutdown = stop.clone().cancelled_owned();
    (stop, tokio::spawn(async move { server.serve(listener, Security::Insecure, shutdown).await }))
}

/// A running Envoy and its server.
pub struct Proxy {
    server: Server,
    serving: Option<Serving>,
    address: SocketAddr,
    envoy: Envoy,
    events: broadcast::Receiver<Event>,
    published: BTreeSet<(Kind, xds::Name)>,
    ready: bool,
    /// Holds the admin socket.
    _state: StateDir,
}

impl Proxy {
    /// Starts both. Envoy waits for its first batch.
    pub async fn start(name: &str) -> Result<Proxy, Error> {
        Proxy::with(Config::new().name(name)).await
    }

    /// Starts both, with an Envoy of the caller's choice.
    pub async fn with(config: Config) -> Result<Proxy, Error> {
        let listener = TcpListener::bind(Net::here()?.socket(8001)).await?;
        let address = listener.local_addr()?;
        let (server, events) = new_server();
        let serving = Some(serve(&server, listener));
        let state = StateDir::new("admin")?;
        let bootstrap = Bootstrap {
            node: Node::default(),
            server: XdsServer {
                host: address.ip().to_string(),
                port: address.port(),
                dns_family: DnsFamily::V4,
                namespace: None,
            },
            tls: None,
            admin_socket: state.path().join("admin.sock"),
            overload: Overload::default(),
            stats: Stats::Lean,
        };
        let bootstrap = envoy_api::json::to_json(&bootstrap.render().bootstrap)?;
        // Access logs are read by tests, which would otherwise wait for the usual ten seconds.
        let config = config.arg("--file-flush-interval-msec").arg("20");
        let envoy = config.launch(bootstrap).await?;
        Ok(Proxy { server, serving, address, envoy, events, published: BTreeSet::new(), ready: false, _state: state })
    }

    /// Ends the server: Envoy is on its own.
    pub async fn stop_server(&mut self) -> Result<(), Error> {
        if let Some((stop, serving)) = self.serving.take() {
            stop.cancel();
            serving.await.map_err(std::io::Error::other)??;
        }
        Ok(())
    }

    /// Starts another server in place of one that was stopped, at the same address. It has nothing and answers nobody until
    /// something is published.
    pub async fn restart_server(&mut self) -> Result<(), Error> {
        let listener = TcpListener::bind(self.address).await?;
        (self.server, self.events) = new_server();
        self.serving = Some(serve(&self.server, listener));
        self.published.clear();
        Ok(())
    }

    /// Waits until Envoy has all of these secrets as they are published: those that clusters prefetch, it asks for only after
    /// it has taken the cluster.
    pub async fn has_secrets(&self, names: impl IntoIterator<Item = &str>) -> Result<(), Error> {
        let acks = self.server.acks(&Fleet::Shared).ok_or_else(|| Error::Late("its fleet".to_owned()))?;
        let mut answers = acks.answers();
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        for name in names {
            loop {
                answers.borrow_and_update();
                let snapshot = acks.snapshot();
                let version =
                    snapshot.as_ref().and_then(|snapshot| snapshot.get(Kind::Secret, name)).map(|e| e.version);
                if version.is_some_and(|version| !acks.resource_acks(Kind::Secret, name, version).have.is_empty()) {
                    break;
                }
                if tokio::time::timeout_at(deadline, answers.changed()).await.is_err() {
                    return Err(Error::Late(format!("the prefetched secret {name}")));
                }
            }
        }
        Ok(())
    }

    /// Envoy.
    pub fn envoy(&self) -> &Envoy {
        &self.envoy
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Publishes a whole state: what is not in it goes. Returns when Envoy has all of it and has refused nothing.
    pub async fn replace(&mut self, upserts: Vec<Resource>) -> Result<(), Error> {
        let next: BTreeSet<_> = upserts.iter().map(|resource| (resource.kind, resource.name.clone())).collect();
        let removes = self.published.difference(&next).cloned().collect();
        self.publish(Changes { upserts, removes }).await
    }

    /// Publishes changes. Returns when Envoy has them all in use and has refused nothing.
    pub async fn publish(&mut self, changes: Changes) -> Result<(), Error> {
        self.send(changes).await?;
        if !std::mem::replace(&mut self.ready, true) {
            self.envoy.ready().await?;
        }
        self.warm().await
    }

    /// The same, but asks nothing of Envoy beyond its ACK: for those who measure what a change costs it. A look at its
    /// statistics costs more than most changes, because Envoy walks over those of every virtual host.
    pub async fn send(&mut self, changes: Changes) -> Result<(), Error> {
        let upserts: Vec<_> = changes.upserts.iter().map(|resource| (resource.kind, resource.name.clone())).collect();
        let acks = self.server.acks(&Fleet::Shared);
        let before = acks.and_then(|acks| acks.snapshot());
        // Only of what a client always asks for can the server tell that it is gone: other names are simply dropped.
        let gone: Vec<_> = changes
            .removes
            .iter()
            .filter(|(kind, _)| matches!(kind, Kind::Cluster | Kind::Listener | Kind::ScopedRoute))
            .filter_map(|(kind, name)| Some((*kind, name.clone(), before.as_ref()?.get(*kind, name)?.version)))
            .collect();
        for name in &changes.removes {
            self.published.remove(name);
        }
        self.published.extend(upserts.iter().cloned());
        self.server.publish(Batch { fleet: Fleet::Shared, changes })?;
        let acks = self.server.acks(&Fleet::Shared).ok_or_else(|| Error::Late("its fleet".to_owned()))?;
        self.taken(&acks, &upserts, &gone).await
    }

    async fn taken(
        &mut self,
        acks: &FleetAcks,
        upserts: &[(Kind, xds::Name)],
        gone: &[(Kind, xds::Name, u64)],
    ) -> Result<(), Error> {
        let mut answers = acks.answers();
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        loop {
            answers.borrow_and_update();
            self.refusals()?;
            let Some(missing) = missing(acks, upserts, gone) else { return Ok(()) };
            if tokio::time::timeout_at(deadline, answers.changed()).await.is_err() {
                return Err(Error::Late(missing));
            }
        }
    }

    /// Everything that was refused since the last look.
    fn refusals(&mut self) -> Result<(), Error> {
        let mut refused = Vec::new();
        loop {
            match self.events.try_recv() {
                Ok(Event::Rejected(rejection)) => {
                    refused.push(format!("{} {}: {}", rejection.kind, rejection.name, rejection.text));
                }
                Ok(_) => {}
                Err(TryRecvError::Lagged(count)) => refused.push(format!("{count} events were missed")),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        if refused.is_empty() { Ok(()) } else { Err(Error::Refused(refused)) }
    }

    /// Taken is not yet in use: a listener waits for its routes, a cluster for its endpoints.
    async fn warm(&self) -> Result<(), Error> {
        let probe = async || {
            let stats = self.envoy.stats("^(listener_manager.total_listeners|cluster_manager.)_?warming").await;
            match stats {
                Ok(stats) if stats.values().all(|&count| count == 0) => Ok(()),
                Ok(stats) => Err(format!("{stats:?}")),
                Err(error) => Err(error.to_string()),
            }
        };
        let waited = crate::deadline::eventually("what it took to be in use", TIMEOUT, probe).await;
        waited.map_err(|late| Error::Late(late.to_string()))
    }
}

/// The first thing that not every client has, or still has.
fn missing(acks: &FleetAcks, upserts: &[(Kind, xds::Name)], gone: &[(Kind, xds::Name, u64)]) -> Option<String> {
    let snapshot = acks.snapshot()?;
    let absent = |kind: Kind, name: &str| {
        // A removal that comes too early is kept back by the server: the name is still there, and nobody waits for it.
        let version = snapshot.get(kind, name)?.version;
        let holding = acks.resource_acks(kind, name, version);
        // A certificate is asked for by the listener that shows it, or when a client asks for it. The listener is waited for.
        let has = (!holding.have.is_empty() || kind == Kind::Secret) && holding.behind.is_empty();
        (!has).then(|| format!("{kind} {name}"))
    };
    let lingers = |kind: Kind, name: &str, version: u64| {
        let stays = snapshot.get(kind, name).is_some() || acks.resource_acks(kind, name, version).have.is_empty();
        (!stays).then(|| format!("the removal of {kind} {name}"))
    };
    let absent = upserts.iter().find_map(|(kind, name)| absent(*kind, name));
    absent.or_else(|| gone.iter().find_map(|(kind, name, version)| lingers(*kind, name, *version)))
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("envoy", &self.envoy).finish_non_exhaustive()
    }
}

//! A pipeline, its server and its talk with other replicas, driven by hand; and Envoys that come and go.

use envoy::bootstrap::{Bootstrap, DnsFamily, Node, Overload, Stats, XdsServer};
use kinds::Object;
use model::{
    Code, ObjectRef, Verdict,
    listener::{AccessLogFormat, AccessLogLevel},
};
use pipeline::{Pipeline, Quarantined, Settings, settings::Packing};
use replicas::{Outcomes, Replicas, Shared};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};
use testbed::{Envoy, Net, StateDir, within};
use tokio::{net::TcpListener, sync::watch};
use xds::{Batch, Fleet, Security, Server};

/// Long enough for a busy machine, short enough to notice.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub struct Bed {
    pub pipeline: Pipeline,
    pub server: Server,
    pub replicas: Replicas,
    outcomes: Outcomes,
    others: watch::Receiver<Shared>,
    pub verdicts: BTreeMap<ObjectRef, Arc<Vec<Verdict>>>,
    pub withheld: Vec<Quarantined>,
    pub address: SocketAddr,
    probing: bool,
    state: StateDir,
}

impl Bed {
    /// A server without objects; routes of one path are made such that proxies refuse them.
    pub async fn start(packing: Packing, spoil: &str) -> Bed {
        Bed::with(Settings { packing, spoil: Some(spoil.into()), ..Settings::default() }).await
    }

    /// A server without objects, with these settings.
    pub async fn with(mut settings: Settings) -> Bed {
        settings.resolve.listed_endpoints = true;
        settings.http_settings.access_log.level = AccessLogLevel::Critical;
        settings.http_settings.access_log.format = AccessLogFormat::Json(Vec::new());
        // Tests run side by side, each at an address of its own.
        let ip = Net::here().unwrap().address();
        for bind in [&mut settings.http, &mut settings.https, &mut settings.stats] {
            bind.address = ip.into();
        }
        settings.emissary.address = ip.into();
        settings.admin_port = 0;
        let listener = TcpListener::bind((ip, 8001)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::new(xds::Config::default());
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, Security::Insecure, std::future::pending()).await });
        let replicas = Replicas::new(server.clone(), None);
        tokio::spawn(replicas.clone().run(std::future::pending()));
        Bed {
            pipeline: Pipeline::new(&settings),
            outcomes: replicas.outcomes(Fleet::Shared),
            others: replicas.others(),
            replicas,
            server,
            verdicts: BTreeMap::new(),
            withheld: Vec::new(),
            address,
            probing: false,
            state: StateDir::new("quarantine").unwrap(),
        }
    }

    pub fn put(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            self.pipeline.put(&object.key(), Some(object));
        }
    }

    /// What the control loop does with what comes out.
    pub fn publish(&mut self) {
        let output = self.pipeline.settle();
        self.server.publish(Batch { fleet: Fleet::Shared, changes: output.xds }).unwrap();
        self.probing = !output.probes.is_empty();
        self.outcomes.expect(output.probes);
        for (object, list) in output.verdicts {
            match list {
                Some(list) => _ = self.verdicts.insert(object, list),
                None => _ = self.verdicts.remove(&object),
            }
        }
        if let Some(withheld) = output.withheld {
            self.replicas.report(&Fleet::Shared, withheld.clone());
            self.withheld = withheld;
        }
    }

    /// One turn of the control loop.
    async fn turn(&mut self) {
        tokio::select! {
            outcome = self.outcomes.next() => self.pipeline.on_outcome(&outcome),
            changed = self.others.changed() => {
                changed.unwrap();
                let others = self.others.borrow_and_update().of(&Fleet::Shared);
                self.pipeline.withhold(others);
            }
        }
        self.publish();
    }

    /// Works as the control loop does until something is so.
    pub async fn until(&mut self, what: &str, done: impl Fn(&Bed) -> bool) {
        let work = async {
            while !done(self) {
                self.turn().await;
            }
        };
        within(what, TIMEOUT, work).await.unwrap();
    }

    /// Works until nothing is tried any more and the clients have all that they should.
    pub async fn settled(&mut self) {
        self.until("nothing to be tried", |bed| !bed.probing).await;
        let acks = self.server.acks(&Fleet::Shared).unwrap();
        let mut answers = acks.answers();
        let work = async {
            loop {
                answers.borrow_and_update();
                let clients = acks.clients();
                if !clients.is_empty() && clients.iter().all(|client| client.types.iter().all(|of| of.in_step)) {
                    return;
                }
                tokio::select! {
                    () = self.turn() => {}
                    changed = answers.changed() => changed.unwrap(),
                }
            }
        };
        within("clients in step", TIMEOUT, work).await.unwrap();
    }

    /// The objects that are blamed for a refusal.
    pub fn refused(&self) -> BTreeSet<ObjectRef> {
        let blamed = |list: &Vec<Verdict>| list.iter().any(|verdict| verdict.code == Code::EnvoyRejected);
        self.verdicts.iter().filter(|(_, list)| blamed(list)).map(|(object, _)| object.clone()).collect()
    }

    /// Where proxies listen.
    pub fn http(&self) -> SocketAddr {
        (self.address.ip(), 8080).into()
    }

    /// Starts an Envoy and works until it is ready.
    pub async fn envoy(&mut self, name: &str) -> Envoy {
        let bootstrap = Bootstrap {
            node: Node { id: Some(name.to_owned()), cluster: Some("test".to_owned()), fleet: None },
            server: XdsServer {
                host: self.address.ip().to_string(),
                port: self.address.port(),
                dns_family: DnsFamily::V4,
                namespace: None,
            },
            tls: None,
            admin_socket: self.state.path().join(format!("{name}.sock")),
            overload: Overload::default(),
            stats: Stats::Lean,
        };
        let bootstrap = envoy_api::json::to_json(&bootstrap.render().bootstrap).unwrap();
        let envoy = Envoy::config().name(name).launch(bootstrap).await.unwrap();
        loop {
            tokio::select! {
                ready = envoy.ready() => {
                    ready.unwrap();
                    return envoy;
                }
                () = self.turn() => {}
            }
        }
    }
}

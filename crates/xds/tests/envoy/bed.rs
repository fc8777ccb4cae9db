//! Replicas of the server that can be stopped and killed, certificates as a pod has them, and Envoys that are
//! bootstrapped as in earnest.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use certgen::{Certificates, Pair, Request};
use envoy::bootstrap::{Bootstrap, CertificateFiles, DnsFamily, Node, Overload, Stats, Tls, XdsServer};
use envoy_api::json;
use model::FleetName;
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use testbed::{Envoy, Net, eventually};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use xds::{Batch, Changes, Config, Fleet, Kind, Resource, Security, Server, TlsFiles};

/// Long enough for a busy machine, short enough to notice.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// One replica of the server, on threads of its own so that it can be killed with all its connections.
pub struct Replica {
    pub server: Server,
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    stopped: oneshot::Receiver<()>,
    runtime: Option<Runtime>,
}

impl Replica {
    /// Starts one at this address; TLS by these files, or none.
    pub fn start(address: SocketAddr, tls: Option<TlsFiles>) -> Replica {
        let security = match tls {
            Some(files) => Security::Tls(Arc::new(xds::Tls::load(files).unwrap())),
            None => Security::Insecure,
        };
        Self::start_as(address, security, Config::default())
    }

    /// One whose clients may show tokens.
    pub fn start_with_tokens(
        address: SocketAddr,
        tls: TlsFiles,
        authenticator: Arc<dyn xds::Authenticator>,
    ) -> Replica {
        let security = Security::Tls(Arc::new(xds::Tls::accepting_tokens(tls).unwrap()));
        Self::start_as(address, security, Config { authenticator: Some(authenticator), ..Config::default() })
    }

    fn start_as(address: SocketAddr, security: Security, config: Config) -> Replica {
        let runtime = Runtime::new().unwrap();
        let server = Server::new(config);
        // Listens when this returns: whoever connects next is taken.
        let listener = std::net::TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, stopping) = oneshot::channel::<()>();
        let (ended, stopped) = oneshot::channel();
        let serving = server.clone();
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let stopping = async { drop(stopping.await) };
            serving.serve(listener, security, stopping).await.unwrap();
            let _ = ended.send(());
        });
        Replica { server, address, stop: Some(stop), stopped, runtime: Some(runtime) }
    }

    /// Publishes to the shared fleet.
    pub fn publish(&self, upserts: Vec<Resource>) {
        self.publish_to(Fleet::Shared, upserts);
    }

    pub fn publish_to(&self, fleet: Fleet, upserts: Vec<Resource>) {
        self.server.publish(Batch { fleet, changes: Changes { upserts, removes: Vec::new() } }).unwrap();
    }

    /// Waits until a client of the shared fleet is there and has all that it asked for.
    pub async fn in_step(&self) {
        let look = async || {
            let clients = self.server.acks(&Fleet::Shared).map(|acks| acks.clients()).unwrap_or_default();
            match clients.first() {
                Some(client) if !client.types.is_empty() && client.types.iter().all(|of| of.in_step) => Ok(()),
                Some(client) => Err(format!("{:?}", client.types)),
                None => Err("no client".to_owned()),
            }
        };
        eventually("a client in step", TIMEOUT, look).await.unwrap();
    }

    /// Waits until a client of the shared fleet has a resource as it is published.
    pub async fn taken(&self, kind: Kind, name: &str) {
        let acks = self.server.acks(&Fleet::Shared).unwrap();
        let look = async || {
            let version = acks.snapshot().unwrap().get(kind, name).unwrap().version;
            let have = acks.resource_acks(kind, name, version).have;
            if have.is_empty() { Err(format!("{kind} {name} is not there")) } else { Ok(()) }
        };
        eventually("a resource to be taken", TIMEOUT, look).await.unwrap();
    }

    /// Bytes of responses sent so far, by type.
    pub fn sent(&self) -> BTreeMap<String, u64> {
        let mut registry = Registry::default();
        self.server.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let row = |line: &str| {
            let (labels, value) = line.strip_prefix("sesame_xds_response_bytes_total{")?.split_once("} ")?;
            Some((labels.split('"').nth(1)?.to_owned(), value.parse().ok()?))
        };
        text.lines().filter_map(row).collect()
    }

    /// Ends it as a rollout does.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        testbed::within("the server to stop", TIMEOUT, &mut self.stopped).await.unwrap().unwrap();
    }

    /// Ends it as a crash does.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // All tasks end where they are, and their sockets with them. That is waited for, on a thread that may wait: the next
        // replica wants the same address.
        if let Some(runtime) = self.runtime.take() {
            let ended = std::thread::spawn(move || runtime.shutdown_timeout(TIMEOUT)).join();
            ended.expect("a runtime shuts down without a panic");
        }
    }
}

/// A Secret as the kubelet mounts it: files are links into a folder that is replaced in one step.
pub struct Volume {
    path: PathBuf,
}

impl Volume {
    fn new(path: PathBuf, ca: &str, pair: &Pair) -> Volume {
        fs::create_dir_all(&path).unwrap();
        let volume = Volume { path };
        volume.put(ca, pair);
        for name in ["ca.crt", "tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), volume.file(name)).unwrap();
        }
        volume
    }

    /// Replaces all files at once.
    pub fn put(&self, ca: &str, pair: &Pair) {
        let stamp = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let folder = format!("..{stamp}");
        fs::create_dir(self.path.join(&folder)).unwrap();
        for (name, text) in [("ca.crt", ca), ("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
            fs::write(self.path.join(&folder).join(name), text).unwrap();
        }
        let new = self.path.join("..data_tmp");
        symlink(&folder, &new).unwrap();
        fs::rename(new, self.path.join("..data")).unwrap();
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// The certificates of both sides, each in a volume of its own.
pub struct Secrets {
    pub certificates: Certificates,
    pub server: Volume,
    pub envoy: Volume,
    folder: TempDir,
}

impl Secrets {
    pub fn new() -> Secrets {
        Secrets::for_fleet(None)
    }

    pub fn for_fleet(fleet: Option<FleetName>) -> Secrets {
        let certificates = issue(fleet);
        let folder = tempfile::tempdir().unwrap();
        let volume = |name: &str, pair: &Pair| Volume::new(folder.path().join(name), &certificates.ca, pair);
        let (server, envoy) = (volume("server", &certificates.server), volume("envoy", &certificates.envoy));
        Secrets { certificates, server, envoy, folder }
    }

    /// What the server reads.
    pub fn server_files(&self) -> TlsFiles {
        let file = |name| self.server.file(name);
        TlsFiles { ca: file("ca.crt"), certificate: file("tls.crt"), key: file("tls.key") }
    }

    /// What Envoy reads, with the folder of its watched secrets.
    pub fn envoy_files(&self) -> Tls {
        let file = |name| self.envoy.file(name);
        let resources_dir = Some(self.folder.path().join("resources"));
        Tls::Certificate(CertificateFiles {
            ca: file("ca.crt"),
            certificate: file("tls.crt"),
            key: file("tls.key"),
            resources_dir,
        })
    }
}

/// A new set from a new CA.
pub fn issue(fleet: Option<FleetName>) -> Certificates {
    let lifetime = Duration::from_secs(3600);
    Certificates::issue(&Request { namespace: "test".to_owned(), fleet, lifetime, now: SystemTime::now() }).unwrap()
}

/// An address for a server that may come and go.
pub fn address() -> SocketAddr {
    Net::here().unwrap().socket(8001)
}

/// Starts an Envoy as `sesame bootstrap` would, and does not wait for its configuration.
pub async fn launch(server: SocketAddr, tls: Option<Tls>, fleet: Option<FleetName>) -> Envoy {
    let sockets = tempfile::tempdir().unwrap().keep();
    let rendered = Bootstrap {
        node: Node { id: Some("envoy-1".to_owned()), cluster: Some("test".to_owned()), fleet },
        server: XdsServer {
            host: server.ip().to_string(),
            port: server.port(),
            dns_family: DnsFamily::Auto,
            namespace: None,
        },
        tls,
        admin_socket: sockets.join("admin.sock"),
        overload: Overload::default(),
        stats: Stats::Lean,
    }
    .render();
    for (path, content) in rendered.files {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.to_string()).unwrap();
    }
    Envoy::config().launch(json::to_json(&rendered.bootstrap).unwrap()).await.unwrap()
}

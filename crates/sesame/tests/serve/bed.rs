//! An API server, certificates as `sesame certgen` makes them, replicas of `sesame serve`, and Envoys bootstrapped by
//! `sesame bootstrap`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use testbed::envoy::Config;
use testbed::{ApiServer, Backend, Client, Command, Envoy, Load, Net, Process, StateDir, Wire, eventually};

/// Long enough for a busy machine, short enough to notice.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Where everything is said to be served.
pub const ADDRESS: &str = "192.0.2.7";

/// What all replicas and Envoys of a test share.
pub struct Bed {
    pub api: ApiServer,
    /// Where Envoys listen, all of them: they are one fleet.
    at: Ipv4Addr,
    state: StateDir,
}

impl Bed {
    pub async fn start() -> Bed {
        Bed::start_at(Net::here().unwrap().address()).await
    }

    /// The same with Envoys that listen there.
    pub async fn start_at(at: Ipv4Addr) -> Bed {
        Bed::on(ApiServer::start().await.unwrap(), at).await
    }

    /// The same with an API server that records what it is asked.
    pub async fn audited() -> Bed {
        let api = ApiServer::config().audit().start().await.unwrap();
        Bed::on(api, Net::here().unwrap().address()).await
    }

    async fn on(api: ApiServer, at: Ipv4Addr) -> Bed {
        let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
        api.install([crds]).await.unwrap();
        let state = StateDir::new("serve").unwrap();
        let certgen = sesame().arg("certgen").arg("--pem").arg(state.path().join("certs")).start_in(&state).unwrap();
        assert!(certgen.exited().await.unwrap().success(), "{}", certgen.log().text());
        Bed { api, at, state }
    }

    /// Where its programs write.
    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// A file with this text.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        self.state.write(name, text).unwrap()
    }

    /// Where Envoys take HTTP.
    pub fn http(&self) -> SocketAddr {
        (self.at, 8080).into()
    }

    /// Where Envoys take HTTPS.
    pub fn https(&self) -> SocketAddr {
        (self.at, 8443).into()
    }

    /// A replica at an address of its own.
    pub async fn replica(&self, name: &str) -> Replica {
        self.replica_at(name, Net::here().unwrap().address(), &[]).await
    }

    /// A replica at an address, with more flags, some of which have no value. It is started, not awaited.
    pub async fn replica_at(&self, name: &str, address: Ipv4Addr, flags: &[(&str, &str)]) -> Replica {
        self.replica_in(name, address, flags, &[]).await
    }

    /// The same with variables in its environment.
    pub async fn replica_in(
        &self,
        name: &str,
        address: Ipv4Addr,
        flags: &[(&str, &str)],
        environment: &[(&str, &str)],
    ) -> Replica {
        let file = |name: &str| self.state.path().join("certs").join(name).display().to_string();
        let files = [
            ("contour-cafile", file("cacert.pem")),
            ("contour-cert-file", file("sesamecert.pem")),
            ("contour-key-file", file("sesamekey.pem")),
        ];
        let files = files.iter().map(|(name, path)| (*name, path.as_str()));
        let flags: Vec<_> = files.chain(flags.iter().copied()).collect();
        let variables = environment.iter().fold(sesame(), |command, (name, value)| command.env(name, value));
        self.start_replica(variables, name, address, &flags)
    }

    /// The same without the certificates of the bed.
    pub async fn replica_without_files(&self, name: &str, address: Ipv4Addr, flags: &[(&str, &str)]) -> Replica {
        self.start_replica(sesame(), name, address, flags)
    }

    fn start_replica(&self, program: Command, name: &str, address: Ipv4Addr, flags: &[(&str, &str)]) -> Replica {
        let usual = [
            ("xds-address", address.to_string()),
            ("health-address", address.to_string()),
            ("http-address", address.to_string()),
            ("debug-http-address", address.to_string()),
            ("envoy-service-http-address", self.at.to_string()),
            ("envoy-service-https-address", self.at.to_string()),
            ("stats-address", self.at.to_string()),
            ("leader-election-resource-namespace", "default".to_owned()),
            ("ingress-status-address", ADDRESS.to_owned()),
            ("log", "info,status=debug,kube_client=off".to_owned()),
            ("kubeconfig", self.api.kubeconfig().unwrap().display().to_string()),
        ];
        let command = program.name(name).env("POD_NAME", name).arg("serve");
        // What a test says stands above what is usual.
        let usual = usual.iter().map(|(name, value)| (*name, value.as_str()));
        let usual = usual.filter(|(name, _)| !flags.iter().any(|(other, _)| other == name));
        // Addresses that are given stand above those of a Service.
        let has_service = flags.iter().any(|(name, _)| *name == "envoy-service-name");
        let usual = usual.filter(|(name, _)| !(has_service && *name == "ingress-status-address"));
        let command = usual.chain(flags.iter().copied()).fold(command, |command, (name, value)| match value {
            "" => command.arg(format!("--{name}")),
            value => command.flag(name, value),
        });
        Replica { process: command.start_in(&self.state).unwrap(), address }
    }

    /// A kubeconfig with all rights at the other end of a wire.
    pub fn kubeconfig_over(&self, wire: &Wire) -> PathBuf {
        let text = std::fs::read_to_string(self.api.kubeconfig().unwrap()).unwrap();
        let mut kubeconfig: serde_json::Value = serde_json::from_str(&text).unwrap();
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = format!("https://{}", wire.address()).into();
        cluster["tls-server-name"] = "kubernetes".into();
        self.file("over.kubeconfig", &kubeconfig.to_string())
    }

    /// An Envoy that takes its configuration from there. It is started, not awaited.
    pub async fn envoy(&self, server: SocketAddr) -> Envoy {
        self.envoy_with(server, &[]).await
    }

    /// The same with more flags of the bootstrap.
    pub async fn envoy_with(&self, server: SocketAddr, flags: &[(&str, &str)]) -> Envoy {
        self.envoy_as(Envoy::config(), server, flags).await
    }

    /// The same with an Envoy of the caller's choice.
    pub async fn envoy_as(&self, config: Config, server: SocketAddr, flags: &[(&str, &str)]) -> Envoy {
        let file = |name: &str| self.state.path().join("certs").join(name);
        let sockets = tempfile::tempdir().unwrap().keep();
        let bootstrap = sockets.join("bootstrap.json");
        let command = sesame().arg("bootstrap").arg(&bootstrap);
        let command = flags.iter().fold(command, |command, (name, value)| command.flag(name, value));
        let written = command
            .flag("xds-address", server.ip().to_string())
            .flag("xds-port", server.port().to_string())
            .flag("envoy-cafile", file("cacert.pem"))
            .flag("envoy-cert-file", file("envoycert.pem"))
            .flag("envoy-key-file", file("envoykey.pem"))
            .flag("resources-dir", sockets.join("resources"))
            .flag("admin-address", sockets.join("admin.sock"))
            .start_in(&self.state)
            .unwrap();
        assert!(written.exited().await.unwrap().success(), "{}", written.log().text());
        config.launch(std::fs::read_to_string(&bootstrap).unwrap()).await.unwrap()
    }

    /// A steady load on a host.
    pub fn load(&self, host: &str) -> Load {
        Load::of(Client::new(self.http()).host(host).get("/")).per_second(200).start()
    }

    /// What a path of a host answers now.
    pub async fn status_of(&self, host: &str, path: &str) -> u16 {
        Client::new(self.http()).host(host).get(path).await.unwrap().status.as_u16()
    }

    /// The status of an HTTPProxy.
    pub async fn proxy_status(&self, namespace: &str, name: &str) -> serde_json::Value {
        let kind = kube::core::GroupVersionKind::gvk("projectcontour.io", "v1", "HTTPProxy");
        let resource = kube::core::ApiResource::from_gvk_with_plural(&kind, "httpproxies");
        let client = self.api.client().unwrap();
        let proxies = kube::Api::<kube::core::DynamicObject>::namespaced_with(client, namespace, &resource);
        proxies.get(name).await.unwrap().data["status"].take()
    }

    /// Waits until a host answers with a status.
    pub async fn answers(&self, host: &str, expected: u16) {
        let probe = async || match Client::new(self.http()).host(host).get("/").await {
            Ok(answer) if answer.status.as_u16() == expected => Ok(()),
            Ok(answer) => Err(format!("it answers {}", answer.status)),
            Err(failure) => Err(failure.to_string()),
        };
        eventually(format!("{host} to answer {expected}"), TIMEOUT, probe).await.unwrap();
    }
}

/// One replica of `sesame serve`.
pub struct Replica {
    pub process: Process,
    pub address: Ipv4Addr,
}

impl Replica {
    /// Where Envoys connect to.
    pub fn xds(&self) -> SocketAddr {
        (self.address, 8001).into()
    }

    fn pages(&self) -> SocketAddr {
        (self.address, 8000).into()
    }

    /// Waits until it knows everything.
    pub async fn ready(self) -> Replica {
        self.process.expect_http(self.pages(), "/readyz", TIMEOUT).await.unwrap();
        self
    }

    /// What a page says, whatever its status.
    pub async fn page(&self, path: &str) -> Result<(u16, String), String> {
        let answer = Client::new(self.pages()).get(path).await.map_err(|failure| failure.to_string())?;
        Ok((answer.status.as_u16(), String::from_utf8_lossy(&answer.body).into_owned()))
    }

    /// What a debug page says, whatever its status.
    pub async fn debug_page(&self, path: &str) -> (u16, String) {
        let answer = Client::new((self.address, 6060).into()).get(path).await.unwrap();
        (answer.status.as_u16(), String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// The sum of a metric over all its labels that contain `label`.
    pub async fn metric(&self, name: &str, label: &str) -> f64 {
        let (_, text) = self.page("/metrics").await.unwrap();
        let rows = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
        rows.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// Its resident memory, in bytes.
    pub async fn memory(&self) -> f64 {
        self.metric("process_resident_memory_bytes", "").await
    }

    /// Waits until a metric is as wished.
    pub async fn expect_metric(&self, name: &str, label: &str, wish: impl Fn(f64) -> bool) {
        let look = async || match self.metric(name, label).await {
            value if wish(value) => Ok(()),
            value => Err(value),
        };
        let what = format!("{name} with {label:?} of {}", self.process.name());
        self.process.expect_ok(&what, TIMEOUT, look).await.unwrap();
    }

    /// Waits until a client is connected and has everything.
    pub async fn in_step(&self, clients: usize) {
        let look = async || {
            let debug = Client::new((self.address, 6060).into());
            let answer = debug.get("/debug/fleets").await.map_err(|failure| failure.to_string())?;
            let fleets: serde_json::Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
            let there = fleets[0]["clients"].as_array().cloned().unwrap_or_default();
            let in_step = |client: &serde_json::Value| {
                let types = client["types"].as_array().cloned().unwrap_or_default();
                !types.is_empty() && types.iter().all(|of| of["in_step"] == true)
            };
            match there.len() == clients && there.iter().all(in_step) {
                true => Ok(()),
                false => Err(fleets.to_string()),
            }
        };
        self.process.expect_ok("its clients to be in step", TIMEOUT, look).await.unwrap();
    }

    /// Bytes of resources that it has sent. Of runtime settings there are none, and that is said to each who asks.
    pub async fn sent(&self) -> f64 {
        let all = self.metric("sesame_xds_response_bytes_total", "").await;
        all - self.metric("sesame_xds_response_bytes_total", "rtds").await
    }
}

/// The program.
pub fn sesame() -> Command {
    Command::new(PathBuf::from(env!("CARGO_BIN_EXE_sesame"))).name("sesame")
}

/// An Ingress for `name.example.com` with its Service and endpoints, as YAML.
pub fn app(namespace: &str, name: &str, backend: &Backend) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec:\n  rules:\n  - host: {name}.example.com\n    http: {{paths: [{{path: /, pathType: Prefix, backend: \
         {{service: {{name: {name}, port: {{number: 80}}}}}}}}]}}\n---\n{}",
        service(namespace, name, backend)
    )
}

/// A Service with its endpoints, as YAML.
pub fn service(namespace: &str, name: &str, backend: &Backend) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{ports: [{{port: 80}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}, namespace: {namespace}, \
         labels: {{kubernetes.io/service-name: {name}}}}}\naddressType: IPv4\nports: [{{port: 80, name: ''}}]\n\
         endpoints: [{{addresses: ['{}']}}]\n",
        backend.ip()
    )
}

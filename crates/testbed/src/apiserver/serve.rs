//! Starting the programs of a control plane: etcd and kube-apiserver, and on request kube-controller-manager, which
//! turns Deployments into pods and Services into EndpointSlices.
//!
//! Etcd goes as fast as it can: it forgets its data when the machine loses power, and keeps it over its own restarts.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use parking_lot::Mutex;

use super::{ApiServer, Config, Error, START, access, audit};
use crate::process::{Command, Process};
use crate::state::StateDir;

/// Never reachable without a kube-proxy, but Services want addresses; outside the ranges of clusters.
const SERVICES: &str = "198.19.128.0/17";

impl ApiServer {
    pub(super) async fn start_with(config: Config, address: SocketAddr, state: StateDir) -> Result<ApiServer, Error> {
        let etcd = Etcd::start(address.ip(), &state)?;
        let own = ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"];
        let mut names: Vec<String> = own.map(str::to_owned).into();
        names.push(address.ip().to_string());
        names.extend(config.names.iter().cloned());
        let pki = access::Pki::make(names, &state)?;
        state.write(access::TOKEN_FILE, access::token_file(&config.users))?;
        if config.audit {
            state.write(audit::POLICY_FILE, audit::POLICY)?;
        }
        etcd.until_ready(address.ip(), START).await?;
        let (controllers, server) = (Mutex::new(None), Mutex::new(None));
        let api = ApiServer { config, address, pki, controllers, server, etcd, state };
        api.restart().await?;
        Ok(api)
    }

    /// Ready, and the namespace `default` exists: it is made a moment later than the server calls itself ready.
    pub(super) async fn until_ready(&self, server: &Process) -> Result<(), Error> {
        let client = self.client()?;
        let namespaces = Api::<Namespace>::all(client.clone());
        let probe = async || {
            let readyz = http::Request::get("/readyz").body(Vec::new()).map_err(kube::Error::HttpError)?;
            client.request_text(readyz).await?;
            namespaces.get("default").await
        };
        server.expect_ok("/readyz to answer ok", START, probe).await?;
        Ok(())
    }
}

/// Starts the program; it is not yet ready.
pub fn start(config: &Config, address: SocketAddr, state: &StateDir) -> Result<Process, Error> {
    let mut command = Command::new(parts::program("kube-apiserver")?);
    for (name, value) in flags(config, address, state) {
        command = command.flag(&name, value);
    }
    Ok(command.start_in(state)?)
}

fn flags(config: &Config, address: SocketAddr, state: &StateDir) -> Vec<(String, String)> {
    let file = |name: &str| state.path().join(name).display().to_string();
    let usual = [
        ("etcd-servers", etcd_url(address.ip())),
        ("bind-address", address.ip().to_string()),
        ("advertise-address", address.ip().to_string()),
        ("secure-port", address.port().to_string()),
        ("cert-dir", file("apiserver")),
        ("tls-cert-file", file(access::SERVING_FILE)),
        ("tls-private-key-file", file(access::SERVING_KEY_FILE)),
        ("token-auth-file", file(access::TOKEN_FILE)),
        ("authorization-mode", "Node,RBAC".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc.cluster.local".to_owned()),
        ("service-account-key-file", file(access::SERVICE_ACCOUNT_PUBLIC_FILE)),
        ("service-account-signing-key-file", file(access::SERVICE_ACCOUNT_KEY_FILE)),
        ("service-cluster-ip-range", SERVICES.to_owned()),
        ("kubelet-preferred-address-types", "InternalIP".to_owned()),
        ("allow-privileged", "true".to_owned()),
        // Without it, a stop waits for watches until they end by themselves, which takes minutes.
        ("shutdown-watch-termination-grace-period", "1s".to_owned()),
        // A bed has few clients, all of them ours: no queues between them.
        ("enable-priority-and-fairness", "false".to_owned()),
        ("profiling", "false".to_owned()),
    ];
    let mut flags: Vec<(String, String)> = usual.map(|(name, value)| (name.to_owned(), value)).into();
    if !config.service_accounts {
        flags.push(("disable-admission-plugins".to_owned(), "ServiceAccount".to_owned()));
    }
    if config.audit {
        flags.push(("audit-policy-file".to_owned(), file(audit::POLICY_FILE)));
        flags.push(("audit-log-path".to_owned(), file(audit::LOG_FILE)));
    }
    for (name, value) in &config.flags {
        flags.retain(|(usual, _)| usual != name);
        flags.push((name.clone(), value.clone()));
    }
    flags
}

/// A running etcd.
#[derive(Debug)]
pub struct Etcd(Process);

/// Where clients reach the etcd of `address`.
fn etcd_url(address: IpAddr) -> String {
    format!("http://{address}:2379")
}

impl Etcd {
    /// Starts it; certificates can be made until it answers.
    pub fn start(address: IpAddr, state: &StateDir) -> Result<Etcd, Error> {
        let peers = format!("http://{address}:2380");
        let process = Command::new(parts::program("etcd")?)
            .flag("name", "etcd")
            .flag("data-dir", state.path().join("etcd"))
            .arg("--unsafe-no-fsync")
            .flag("listen-client-urls", etcd_url(address))
            .flag("advertise-client-urls", etcd_url(address))
            .flag("listen-peer-urls", &peers)
            .flag("initial-advertise-peer-urls", &peers)
            .flag("initial-cluster", format!("etcd={peers}"))
            .flag("log-level", "warn")
            .start_in(state)?;
        Ok(Etcd(process))
    }

    /// Waits until it answers.
    pub async fn until_ready(&self, address: IpAddr, limit: Duration) -> Result<(), Error> {
        self.0.expect_http((address, 2379).into(), "/health", limit).await?;
        Ok(())
    }

    pub fn process(&self) -> &Process {
        &self.0
    }
}

/// Which controllers run.
#[derive(Clone, Debug)]
pub struct Controllers {
    names: String,
    flags: Vec<(String, String)>,
}

impl Controllers {
    /// Those that need no nodes: workloads, EndpointSlices, service accounts, namespaces, garbage.
    pub fn without_nodes() -> Controllers {
        Controllers::only([
            "deployment-controller",
            "replicaset-controller",
            "endpointslice-controller",
            "serviceaccount-controller",
            "root-ca-certificate-publisher-controller",
            "namespace-controller",
            "garbage-collector-controller",
        ])
    }

    /// All of them, as in a cluster.
    pub fn all() -> Controllers {
        Controllers::only(["*"])
    }

    /// These.
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Controllers {
        let names: Vec<_> = names.into_iter().collect();
        Controllers { names: names.join(","), flags: Vec::new() }
    }

    /// Adds the flag `--NAME=VALUE` of kube-controller-manager.
    pub fn flag(mut self, name: &str, value: impl Into<String>) -> Controllers {
        self.flags.push((name.to_owned(), value.into()));
        self
    }
}

impl ApiServer {
    /// Adds kube-controller-manager with the controllers that need no nodes.
    pub async fn controllers(&self) -> Result<(), Error> {
        self.start_controllers(Controllers::without_nodes()).await
    }

    /// Adds kube-controller-manager.
    pub async fn start_controllers(&self, which: Controllers) -> Result<(), Error> {
        let mut command = Command::new(parts::program("kube-controller-manager")?)
            .flag("kubeconfig", self.kubeconfig()?)
            .flag("controllers", which.names)
            .flag("leader-elect", "false")
            .flag("secure-port", "0")
            .flag("kube-api-qps", "200")
            .flag("kube-api-burst", "400")
            .flag("root-ca-file", self.ca_file())
            .flag("service-account-private-key-file", self.service_account_key_file());
        for (name, value) in which.flags {
            command = command.flag(&name, value);
        }
        let process = command.start_in(&self.state)?;
        process.expect_line("Caches are synced", START).await?;
        *self.controllers.lock() = Some(process);
        Ok(())
    }
}

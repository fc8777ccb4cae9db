//! Starting kube-apiserver: its flags, and when it is ready.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use parking_lot::Mutex;

use super::etcd::{self, Etcd};
use super::{ApiServer, Config, Error, START, access, pki};
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
        let pki = pki::Pki::make(names, &state)?;
        state.write(access::TOKEN_FILE, access::token_file(&config.users))?;
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
        ("etcd-servers", etcd::url(address.ip())),
        ("bind-address", address.ip().to_string()),
        ("advertise-address", address.ip().to_string()),
        ("secure-port", address.port().to_string()),
        ("cert-dir", file("apiserver")),
        ("tls-cert-file", file(pki::SERVING_FILE)),
        ("tls-private-key-file", file(pki::SERVING_KEY_FILE)),
        ("token-auth-file", file(access::TOKEN_FILE)),
        ("authorization-mode", "Node,RBAC".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc.cluster.local".to_owned()),
        ("service-account-key-file", file(pki::SERVICE_ACCOUNT_PUBLIC_FILE)),
        ("service-account-signing-key-file", file(pki::SERVICE_ACCOUNT_KEY_FILE)),
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
    for (name, value) in &config.flags {
        flags.retain(|(usual, _)| usual != name);
        flags.push((name.clone(), value.clone()));
    }
    flags
}

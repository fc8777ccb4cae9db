//! kube-controller-manager beside an API server: what turns Deployments into pods and Services into EndpointSlices.

use super::{ApiServer, Error, START};
use crate::process::Command;

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

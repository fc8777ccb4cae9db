//! The API server as operators' commands reach it, and its refusals in words.

use std::path::PathBuf;

use anyhow::{Error, Result};
use kube::Client;
use model::Code;
use source::cluster::Access;

use crate::flags;
use crate::problem::{Coded, Problem};

/// Where the cluster is.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterFlags {
    /// Kubeconfig [default: KUBECONFIG, then ~/.kube/config, then the service account of the pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace that Sesame runs in
    #[arg(short = 'n', long, env = "SESAME_NAMESPACE", default_value = flags::NAMESPACE)]
    pub namespace: String,
}

impl ClusterFlags {
    /// A client of the API server. Nothing is asked yet.
    pub async fn connect(&self) -> Result<Client> {
        let (kubeconfig, context) = (self.kubeconfig.clone(), self.context.clone());
        let access = Access { kubeconfig, context, ..Access::default() };
        let connected = access.connect().await;
        let (client, _) = connected.coded(Code::ApiServerFailed, || "there is no way to a cluster".to_owned())?;
        Ok(client)
    }
}

/// Why the API server did not do something, with the rule to add where the user may not.
pub fn refusal(error: kube::Error, what: &str) -> Error {
    match error {
        kube::Error::Api(status) if status.code == 403 => {
            Problem::of(Code::ApiServerFailed, format!("{what}: {}", status.message))
        }
        kube::Error::Api(status) if status.code == 401 => {
            let why =
                "the API server does not know the user: the credentials of the kubeconfig are wrong or have expired";
            Problem::of(Code::ApiServerFailed, format!("{what}: {why}"))
        }
        kube::Error::Api(status) if status.code == 429 || status.code >= 500 => {
            Problem::of(Code::ApiServerError, format!("{what}: {} {}", status.code, status.message))
        }
        other => Error::new(other).context(Problem::new(Code::ApiServerFailed, format!("{what} failed"))),
    }
}

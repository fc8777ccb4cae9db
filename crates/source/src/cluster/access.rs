//! How the API server is reached: as a pod of the cluster, or by a kubeconfig.

use crate::cluster::Rate;
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{InClusterError, InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use std::{path::PathBuf, time::Duration};

/// How long a connection may take. The library's half a minute is too long to notice that an address is dead.
const CONNECT: Duration = Duration::from_secs(5);

/// Where the API server is, who we are, and how often we may ask.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The service account of the pod, whatever kubeconfigs there are.
    pub in_cluster: bool,
    /// A kubeconfig. Without either, the usual places are tried, and then the service account.
    pub kubeconfig: Option<PathBuf>,
    /// A limit on questions; none for as many as are needed.
    pub rate: Option<Rate>,
}

/// Why there is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// There is no service account.
    #[error("this is no pod of a cluster")]
    InCluster(#[source] InClusterError),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {path} cannot be used")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<KubeconfigError>,
    },
    /// There is neither.
    #[error("there is no kubeconfig, and this is no pod of a cluster")]
    Nowhere(#[source] Box<InferConfigError>),
    /// No connections can be made as it says.
    #[error("the connection cannot be set up")]
    Client(#[source] Box<kube::Error>),
}

impl Access {
    /// A client. Nothing is asked yet: that the API server answers is not known.
    pub async fn connect(&self) -> Result<Client, AccessError> {
        let mut config = self.config().await?;
        config.connect_timeout = Some(CONNECT);
        // Whoever asks decides how long to go on.
        config.default_retry = false;
        let failed = |error| AccessError::Client(Box::new(error));
        let builder = ClientBuilder::try_from(config).map_err(failed)?;
        Ok(match self.rate {
            Some(rate) => builder.with_layer(&rate).build(),
            None => builder.build(),
        })
    }

    async fn config(&self) -> Result<Config, AccessError> {
        if self.in_cluster {
            return Config::incluster().map_err(AccessError::InCluster);
        }
        let Some(path) = &self.kubeconfig else {
            return Config::infer().await.map_err(|error| AccessError::Nowhere(Box::new(error)));
        };
        let failed = |source| AccessError::Kubeconfig { path: path.clone(), source: Box::new(source) };
        let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(failed)
    }
}

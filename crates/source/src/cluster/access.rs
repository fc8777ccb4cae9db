//! How the API server is reached: as a pod of the cluster, or by a kubeconfig; and how often it may be asked.

use crate::cluster::Connection;
use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{InClusterError, InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep};
use tower::{Layer, Service};

/// How long a connection may take. The library's half a minute is too long to notice that an address is dead.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection may bring nothing, for whoever sets no limit of its own: watches bring a bookmark about every minute.
const SILENCE: Duration = Duration::from_secs(320);

/// Where the API server is, who we are, and how often we may ask.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The service account of the pod, whatever kubeconfigs there are.
    pub in_cluster: bool,
    /// A kubeconfig. Without either, the usual places are tried, and then the service account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; without one, the current one.
    pub context: Option<String>,
    /// A limit on questions; none for as many as are needed.
    pub rate: Option<Rate>,
}

/// Why there is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// There is no service account.
    #[error("not running in a pod")]
    InCluster(#[source] InClusterError),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {path} cannot be used")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<KubeconfigError>,
    },
    /// There is no kubeconfig with that context.
    #[error("the context of the kubeconfig cannot be used")]
    Context(#[source] Box<KubeconfigError>),
    /// There is neither.
    #[error("no kubeconfig was found, and not running in a pod")]
    Nowhere(#[source] Box<InferConfigError>),
    /// No connections can be made as it says.
    #[error("the connection cannot be set up")]
    Client(#[source] Box<kube::Error>),
}

impl Access {
    /// A client, and where it is told whether the API server answers. Nothing is asked yet: that is not known.
    pub async fn connect(&self) -> Result<(Client, Connection), AccessError> {
        let mut config = self.config().await?;
        let connection = Connection::new(config.cluster_url.to_string().trim_end_matches('/'));
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(SILENCE);
        config.reset_reader_on_write = true;
        // Whoever asks decides how long to go on.
        config.default_retry = false;
        let failed = |error| AccessError::Client(Box::new(error));
        let builder = ClientBuilder::try_from(config).map_err(failed)?;
        let client = match self.rate {
            Some(rate) => builder.with_layer(&rate).build(),
            None => builder.build(),
        };
        Ok((client, connection))
    }

    async fn config(&self) -> Result<Config, AccessError> {
        if self.in_cluster {
            return Config::incluster().map_err(AccessError::InCluster);
        }
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let Some(path) = &self.kubeconfig else {
            if self.context.is_none() {
                return Config::infer().await.map_err(|error| AccessError::Nowhere(Box::new(error)));
            }
            return Config::from_kubeconfig(&options).await.map_err(|error| AccessError::Context(Box::new(error)));
        };
        let failed = |source| AccessError::Kubeconfig { path: path.clone(), source: Box::new(source) };
        let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)
    }
}

/// How often requests may be sent to the API server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second.
    pub per_second: f64,
    /// Maximum burst.
    pub burst: u32,
}

impl<S> Layer<S> for Rate {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        let burst = f64::from(self.burst.max(1));
        Limited { inner, rate: *self, burst, tokens: burst, counted: Instant::now(), wait: None }
    }
}

/// A service that is called no more often than a [`Rate`] allows.
pub struct Limited<S> {
    inner: S,
    rate: Rate,
    burst: f64,
    tokens: f64,
    counted: Instant,
    wait: Option<Pin<Box<Sleep>>>,
}

impl<S> Limited<S> {
    /// How long there is no token.
    fn shortage(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let earned = (now - self.counted).as_secs_f64() * self.rate.per_second;
        self.tokens = (self.tokens + earned).min(self.burst);
        self.counted = now;
        // A hair less than one is one: the clock is not exact.
        (self.tokens < 0.999_999).then(|| Duration::from_secs_f64((1.0 - self.tokens) / self.rate.per_second))
    }
}

impl<S: Service<R>, R> Service<R> for Limited<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        loop {
            if let Some(wait) = &mut self.wait {
                std::task::ready!(wait.as_mut().poll(context));
                self.wait = None;
            }
            match self.shortage() {
                Some(time) => self.wait = Some(Box::pin(tokio::time::sleep(time))),
                None => return self.inner.poll_ready(context),
            }
        }
    }

    fn call(&mut self, request: R) -> S::Future {
        self.tokens -= 1.0;
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use tower::{ServiceExt, service_fn};

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_let_through_and_then_so_many_a_second() {
        let begun = Instant::now();
        let answers = service_fn(async |()| Ok::<_, std::convert::Infallible>(begun.elapsed().as_millis()));
        let mut limited = Rate { per_second: 10.0, burst: 3 }.layer(answers);
        let mut times = Vec::new();
        for _ in 0..6 {
            times.push(limited.ready().await.unwrap().call(()).await.unwrap());
        }
        assert_eq!(times[..3], [0, 0, 0]);
        for (time, expected) in times[3..].iter().zip([100, 200, 300]) {
            assert!(time.abs_diff(expected) <= 2, "{times:?}");
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let before = begun.elapsed();
        for _ in 0..3 {
            limited.ready().await.unwrap().call(()).await.unwrap();
        }
        assert_eq!(begun.elapsed(), before);
    }
}

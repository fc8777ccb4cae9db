//! Where health, metrics and debug pages are served; the addresses may change while the server runs.
//!
//! In: a plan. Out: bound sockets, each with its pages. New sockets are bound and certificates read before anything changes, so
//! that what cannot be is refused as a whole. A socket that stays is kept: nobody finds it closed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use admin::{Router, Tls};
use anyhow::{Context, Result};
use model::Code;
use tls::PemFiles;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::plan::Plan;
use crate::problem::Coded;

/// What is served on one socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    health: bool,
    metrics: bool,
    debug: bool,
    tls: Option<PemFiles>,
}

impl Content {
    /// The flags that say where.
    fn flags(&self) -> &'static str {
        match (self.health, self.metrics) {
            (true, _) => "--health-address, --health-port",
            (_, true) => "--http-address, --http-port",
            _ => "--debug-http-address, --debug-http-port",
        }
    }
}

/// What a plan wants on each address.
fn wanted(plan: &Plan) -> BTreeMap<SocketAddr, Content> {
    let mut wanted: BTreeMap<SocketAddr, Content> = BTreeMap::new();
    wanted.entry(plan.health).or_default().health = true;
    wanted.entry(plan.debug).or_default().debug = true;
    let metrics = wanted.entry(plan.metrics).or_default();
    metrics.metrics = true;
    metrics.tls.clone_from(&plan.metrics_tls);
    wanted
}

/// The pages.
pub struct Routers {
    /// `/healthz`, `/readyz`.
    pub health: Router,
    /// `/metrics`.
    pub metrics: Router,
    /// `/debug`.
    pub debug: Router,
}

impl Routers {
    fn of(&self, content: &Content) -> Router {
        // Whoever may see everything may see metrics, too: a bug report asks one port.
        let has_metrics = content.metrics || content.debug;
        let parts = [(content.health, &self.health), (has_metrics, &self.metrics), (content.debug, &self.debug)];
        let parts = parts.into_iter().filter(|(is_wanted, _)| *is_wanted);
        parts.fold(Router::new(), |all, (_, router)| all.merge(router.clone()))
    }
}

/// Sockets and certificates that a plan needs, ready to be used.
pub struct Prepared {
    wanted: BTreeMap<SocketAddr, (Content, Option<Arc<Tls>>)>,
    sockets: BTreeMap<SocketAddr, Arc<TcpListener>>,
}

impl Prepared {
    /// Binds what is not bound yet, and reads certificates.
    pub async fn new(plan: &Plan) -> Result<Self> {
        Self::beside(plan, &BTreeMap::new()).await
    }

    async fn beside(plan: &Plan, bound: &BTreeMap<SocketAddr, Running>) -> Result<Self> {
        let mut prepared = Self { wanted: BTreeMap::new(), sockets: BTreeMap::new() };
        for (address, content) in wanted(plan) {
            let tls = content.tls.clone().map(Tls::load).transpose();
            let tls = tls.coded(Code::CertificateFiles, || "metrics cannot be served over TLS".to_owned())?;
            let socket = match bound.get(&address) {
                Some(running) => running.socket.clone(),
                None => Arc::new(bind(content.flags(), address).await?),
            };
            prepared.sockets.insert(address, socket);
            prepared.wanted.insert(address, (content, tls.map(Arc::new)));
        }
        Ok(prepared)
    }
}

struct Running {
    socket: Arc<TcpListener>,
    content: Content,
    stop: CancellationToken,
}

/// Sockets and what is served on them.
pub struct Pages {
    routers: Routers,
    stop: CancellationToken,
    running: BTreeMap<SocketAddr, Running>,
    servers: JoinSet<Result<()>>,
}

impl Pages {
    /// Serves on prepared sockets until `stop`.
    pub fn start(prepared: Prepared, routers: Routers, stop: CancellationToken) -> Self {
        let mut pages = Self { routers, stop, running: BTreeMap::new(), servers: JoinSet::new() };
        pages.apply(prepared);
        pages
    }

    /// What a changed plan needs.
    pub async fn prepare(&self, plan: &Plan) -> Result<Prepared> {
        Prepared::beside(plan, &self.running).await
    }

    /// Serves what was prepared, and nothing else. Requests that are being answered end as they would have.
    pub fn apply(&mut self, prepared: Prepared) {
        let Prepared { wanted, mut sockets } = prepared;
        self.running.retain(|address, running| {
            let stays = wanted.get(address).is_some_and(|(content, _)| *content == running.content);
            if !stays {
                running.stop.cancel();
            }
            stays
        });
        for (address, (content, tls)) in wanted {
            let Some(socket) = sockets.remove(&address).filter(|_| !self.running.contains_key(&address)) else {
                continue;
            };
            let stop = self.stop.child_token();
            let served =
                admin::serve_on(socket.clone(), tls, self.routers.of(&content), stop.clone().cancelled_owned());
            self.servers.spawn(async move { served.await.context("cannot serve health, metrics and debug pages") });
            self.running.insert(address, Running { socket, content, stop });
        }
        while let Some(ended) = self.servers.try_join_next() {
            if let Ok(Err(error)) = ended {
                warn!("{error:#}");
            }
        }
    }

    /// Waits until all have ended, after `stop`.
    pub async fn ended(mut self) -> Result<()> {
        while let Some(ended) = self.servers.join_next().await {
            ended.context("a page server has failed")??;
        }
        Ok(())
    }
}

/// Listens on an address.
pub async fn bind(flags: &str, address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.coded(Code::AddressInUse, || format!("cannot listen on {address} ({flags})"))
}

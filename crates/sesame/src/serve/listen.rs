//! The sockets of a server: one for xDS, and those for health, metrics and debug pages.
//!
//! All are bound before anything else happens, so that an address in use is reported at once, with its flag.

use std::net::SocketAddr;

use admin::Router;
use anyhow::Result;
use model::Code;
use tokio::net::TcpListener;

use super::plan::Plan;
use crate::problem::Coded;

/// Bound sockets.
pub struct Listeners {
    /// For proxies.
    pub xds: TcpListener,
    health: TcpListener,
    /// None where health and metrics have one address.
    metrics: Option<TcpListener>,
    debug: TcpListener,
}

impl Listeners {
    /// Listens on every address of the plan.
    pub async fn bind(plan: &Plan) -> Result<Self> {
        let metrics = match plan.metrics == plan.health {
            true => None,
            false => Some(bind("--http-address, --http-port", plan.metrics).await?),
        };
        Ok(Self {
            xds: bind("--xds-address, --xds-port", plan.xds).await?,
            health: bind("--health-address, --health-port", plan.health).await?,
            metrics,
            debug: bind("--debug-http-address, --debug-http-port", plan.debug).await?,
        })
    }

    /// Which pages are served on which socket; the xDS socket remains.
    pub fn pages(self, health: Router, metrics: Router, debug: Router) -> (TcpListener, Vec<(TcpListener, Router)>) {
        let mut pages = vec![(self.debug, debug)];
        match self.metrics {
            Some(listener) => pages.extend([(self.health, health), (listener, metrics)]),
            None => pages.push((self.health, health.merge(metrics))),
        }
        (self.xds, pages)
    }
}

async fn bind(flags: &str, address: SocketAddr) -> Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.coded(Code::AddressInUse, || format!("cannot listen on {address} ({flags})"))
}

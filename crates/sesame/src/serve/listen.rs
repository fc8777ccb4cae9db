//! The sockets of a server: one for proxies, and as many for operators as they have named addresses.
//!
//! All are bound before anything else happens, so that an address that is taken is said at once and by its flag.

use std::net::SocketAddr;

use admin::Router;
use anyhow::Result;
use model::Code;
use tokio::net::TcpListener;

use super::plan::Plan;
use crate::problem::Coded;

/// Sockets that are listened on.
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

    /// What is shown where; the socket for proxies stays.
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

//! The gentle end of an Envoy, as its shutdown manager in a cluster does it.

use std::process::ExitStatus;
use std::time::Duration;

use super::{Envoy, Error};

impl Envoy {
    /// Answers health checks with 503 from now on, and tells clients to go: connections are closed after their current
    /// request, over the drain time, and then the listeners close.
    pub async fn drain(&self) -> Result<(), Error> {
        self.post("/healthcheck/fail").await?;
        self.post("/drain_listeners?graceful").await?;
        Ok(())
    }

    /// How many connections clients have open.
    pub async fn connections(&self) -> Result<u64, Error> {
        let open = self.stats(r"^listener\..*\.downstream_cx_active$").await?;
        // One count per listener and one per worker of it; and the question itself, on the admin listener.
        let whole = |name: &str| !name.starts_with("listener.admin.") && !name.contains(".worker_");
        Ok(open.iter().filter(|(name, _)| whole(name)).map(|(_, count)| count).sum())
    }

    /// Drains it, waits until no connection is left or `limit` is over, and stops it.
    pub async fn shut_down(&self, limit: Duration) -> Result<ExitStatus, Error> {
        self.drain().await?;
        let idle = async || match self.connections().await {
            Ok(0) => Ok(()),
            Ok(open) => Err(format!("{open} connections")),
            Err(error) => Err(error.to_string()),
        };
        // Those who stay to the end are cut off, as in a cluster.
        let _ = crate::eventually("all connections to be gone", limit, idle).await;
        self.stop().await
    }
}

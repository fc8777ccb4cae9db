//! Contour, with its own bootstrap and its own defaults but one.
//!
//! As shipped it asks the API server five times a second at most, and while the status of HTTPProxies waits for that, so do
//! changes: a new host beside a thousand HTTPProxies is served after minutes. Unless that is wanted it is measured without.

use std::path::Path;

use anyhow::Result;
use testbed::Command;

use super::{Implementation, Instance};
use crate::world::Wording;

/// More than it will ask.
const NO_LIMIT: &str = "100000";

/// Contour at the version of the pins.
#[derive(Debug)]
pub struct Contour {
    /// Whether it keeps its limit.
    pub as_shipped: bool,
}

impl Implementation for Contour {
    fn name(&self) -> &'static str {
        "contour"
    }

    fn version(&self) -> String {
        let version = parts::version("contour").unwrap_or("unknown");
        if self.as_shipped { format!("{version} as shipped") } else { version.to_owned() }
    }

    /// State of the world, a stream a kind, and one for the endpoints of every cluster.
    fn is_delta(&self) -> bool {
        false
    }

    fn reloads_configuration(&self) -> bool {
        false
    }

    fn has_disk_cache(&self) -> bool {
        false
    }

    /// It is not measured with Gateways, and has no Mappings.
    fn serves(&self, wording: Wording) -> bool {
        !matches!(wording, Wording::Routes | Wording::Mappings(_))
    }

    fn serve(&self, instance: &Instance) -> Result<Command> {
        let command = super::serve_flags(Command::new(parts::program("contour")?).arg("serve"), instance);
        Ok(match self.as_shipped {
            true => command,
            false => command.flag("kubernetes-client-qps", NO_LIMIT).flag("kubernetes-client-burst", NO_LIMIT),
        })
    }

    fn bootstrap(&self, instance: &Instance, admin: &Path, file: &Path) -> Result<Command> {
        Ok(super::bootstrap_flags(Command::new(parts::program("contour")?).arg("bootstrap"), instance, admin, file))
    }
}

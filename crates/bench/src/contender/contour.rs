//! Contour, with its own bootstrap and its own defaults.

use std::path::Path;

use anyhow::Result;
use testbed::Command;

use super::{Contender, Place};

/// Contour at the version of the pins.
#[derive(Debug)]
pub struct Contour;

impl Contender for Contour {
    fn name(&self) -> &'static str {
        "contour"
    }

    fn version(&self) -> String {
        parts::version("contour").unwrap_or("unknown").to_owned()
    }

    /// State of the world, a stream a kind, and one for the endpoints of every cluster.
    fn is_delta(&self) -> bool {
        false
    }

    fn serve(&self, place: &Place) -> Result<Command> {
        Ok(super::serve_flags(Command::new(parts::program("contour")?).arg("serve"), place))
    }

    fn bootstrap(&self, place: &Place, admin: &Path, file: &Path) -> Result<Command> {
        Ok(super::bootstrap_flags(Command::new(parts::program("contour")?).arg("bootstrap"), place, admin, file))
    }
}

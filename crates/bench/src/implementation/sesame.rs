//! Sesame itself: the program that was built beside this one.

use std::path::{Path, PathBuf};

use anyhow::Result;
use testbed::Command;

use super::{Implementation, Instance};
use crate::world::Wording;

/// Sesame.
#[derive(Debug)]
pub struct Sesame {
    /// The program.
    pub program: PathBuf,
    /// Further arguments of `sesame serve`.
    pub arguments: Vec<String>,
}

impl Implementation for Sesame {
    fn name(&self) -> &'static str {
        "sesame"
    }

    fn version(&self) -> String {
        match self.arguments.as_slice() {
            [] => env!("CARGO_PKG_VERSION").to_owned(),
            arguments => format!("{} {}", env!("CARGO_PKG_VERSION"), arguments.join(" ")),
        }
    }

    fn is_delta(&self) -> bool {
        true
    }

    fn reloads_configuration(&self) -> bool {
        true
    }

    fn has_disk_cache(&self) -> bool {
        true
    }

    fn serves(&self, _: Wording) -> bool {
        true
    }

    fn serve(&self, instance: &Instance) -> Result<Command> {
        let command = super::serve_flags(Command::new(&self.program).arg("serve"), instance);
        let command = if instance.serves_gateways { command.arg("--disable-fleets") } else { command };
        let command = match &instance.cache {
            Some(cache) => command.flag("cache-dir", &cache.folder).flag("cache-key-file", &cache.key),
            None => command,
        };
        Ok(command.args(&self.arguments))
    }

    fn bootstrap(&self, instance: &Instance, admin: &Path, file: &Path) -> Result<Command> {
        Ok(super::bootstrap_flags(Command::new(&self.program).arg("bootstrap"), instance, admin, file))
    }
}

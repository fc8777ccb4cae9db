//! Short commands: started, awaited, and reported with what they said when they fail.

use std::time::Duration;

use super::Error;
use crate::{Command, StateDir};

/// Nothing that is run here takes more than a second on a quiet machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a command to its end, which must be a good one.
pub(super) async fn run(command: Command, state: &StateDir) -> Result<(), Error> {
    let process = command.start_in(state)?;
    let status = crate::within(format!("{} to end", process.name()), LIMIT, process.exited()).await??;
    if status.success() {
        return Ok(());
    }
    Err(Error::Command { name: process.name().to_owned(), status, log: process.log().tail() })
}

/// Runs lines of shell, of which every one must succeed.
pub(super) async fn shell(name: &str, script: String, state: &StateDir) -> Result<(), Error> {
    run(Command::new("/bin/sh").name(name).arg("-euc").arg(script), state).await
}

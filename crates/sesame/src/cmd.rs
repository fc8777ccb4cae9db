//! The subcommands. Each has its flags and its `run`, and leaves the work to a library.

mod echo;

use anyhow::Result;
use clap::Subcommand;

/// What `sesame` can be told to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Echo(echo::Args),
}

impl Command {
    /// Does it.
    pub async fn run(self) -> Result<()> {
        match self {
            Command::Echo(args) => echo::run(args).await,
        }
    }
}

//! `sesame supervised PROGRAM …`: becomes a program that ends when its parent does. Hidden: `sesame run` uses it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// Execute a program that is terminated together with its parent
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Asks the kernel for the signal, then becomes the program: the request outlives `exec`.
pub fn run(args: Args) -> Result<()> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::TERM)).context("cannot ask for the parent's death signal")?;
    if getppid() != parent {
        bail!("the parent ended before its program began");
    }
    let Some((program, arguments)) = args.command.split_first() else { bail!("no program was named") };
    Err(Command::new(program).args(arguments).exec()).with_context(|| format!("cannot start {}", program.display()))
}

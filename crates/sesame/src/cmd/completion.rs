//! `sesame completion SHELL`: what a shell completes.

use std::path::Path;

use anyhow::Result;
use clap::{Command, ValueEnum};
use clap_complete::{Shell, generate};

use crate::output;

/// Print the completion script of a shell
///
/// bash: `source <(sesame completion bash)`; zsh: `sesame completion zsh > "${fpath[1]}/_sesame"`;
/// fish: `sesame completion fish > ~/.config/fish/completions/sesame.fish`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: ShellName,
}

/// The shells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script for a command line.
pub fn run(args: &Args, mut command: Command) -> Result<()> {
    let shell = match args.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(shell, &mut command, name, &mut script);
    output::write(Path::new("-"), &String::from_utf8_lossy(&script))
}

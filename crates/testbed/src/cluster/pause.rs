//! The program that holds namespaces: process 1 of every pod's sandbox and of every node.
//!
//! In: `pause.c`, a dozen lines. Out: the program, made with the system's C compiler in a tenth of a second.

use std::path::PathBuf;

use super::Error;
use super::run::run;
use crate::{Command, StateDir};

/// Where the program stands once it is made.
pub(super) fn program(state: &StateDir) -> PathBuf {
    state.path().join("pause")
}

pub(super) async fn compile(state: &StateDir) -> Result<(), Error> {
    let source = state.write("pause.c", include_str!("pause.c"))?;
    run(Command::new("cc").arg("-O2").arg("-o").arg(program(state)).arg(source), state).await
}

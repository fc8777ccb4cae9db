//! The program that holds namespaces: process 1 of every pod's sandbox and of every node.
//!
//! In: `pause.c`, a dozen lines. Out: the program, made with the system's C compiler in a tenth of a second.

use std::path::PathBuf;

use super::Error;
use super::run::run;
use crate::{Command, StateDir};

pub(super) async fn compile(state: &StateDir) -> Result<PathBuf, Error> {
    let source = state.write("pause.c", include_str!("pause.c"))?;
    let program = state.path().join("pause");
    run(Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source), state).await?;
    Ok(program)
}

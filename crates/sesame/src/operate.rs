//! What operators' commands share: how running controllers are found and asked, and how answers are printed.
//!
//! In: flags. Out: pages of `/debug` of every replica, by a port-forward of the API server or by addresses. The commands themselves
//! are in `cmd`; each adds up what replicas say, prints it, and ends with an exit code that scripts can rely on:
//!
//! | code | meaning |
//! |---|---|
//! | 0 | nothing is wrong |
//! | 1 | something was found |
//! | 2 | it could not be found out |

pub mod ask;
pub mod cluster;
pub mod controllers;
pub mod page;
mod port_forward;
pub mod print;
pub mod redact;
pub mod table;
mod websocket;

use std::process::ExitCode;

use anyhow::Result;

use crate::{output, problem};

/// Whether anything was found that somebody has to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is wrong.
    Fine,
    /// Something is.
    Findings,
}

impl Outcome {
    /// Findings if there are any.
    pub fn of(has_findings: bool) -> Self {
        if has_findings { Self::Findings } else { Self::Fine }
    }
}

/// The exit code of a command; says why it could not do its work.
pub fn exit(result: Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Err(error) if error.is::<output::OutputClosed>() => ExitCode::SUCCESS,
        Err(error) => {
            problem::log(&error);
            ExitCode::from(2)
        }
    }
}

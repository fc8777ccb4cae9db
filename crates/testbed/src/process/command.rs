//! What to start, and how.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{Error, Log, Process};

/// A program with its arguments and environment.
///
/// It gets a process group of its own: Ctrl-C then reaches the test and not its parts, and killing it takes along what it
/// started. Standard input is empty.
#[derive(Debug)]
pub struct Command {
    name: String,
    inner: std::process::Command,
}

impl Command {
    /// A program by its path.
    pub fn new(program: impl Into<PathBuf>) -> Command {
        let program = program.into();
        let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
        let mut inner = std::process::Command::new(program);
        inner.process_group(0).stdin(Stdio::null());
        Command { name, inner }
    }

    /// The name for errors and for the log; the program's file name if not set.
    pub fn name(mut self, name: impl Into<String>) -> Command {
        self.name = name.into();
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Command {
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        self.inner.args(args);
        self
    }

    /// Adds `--NAME=VALUE`, as most of the parts want it.
    pub fn flag(mut self, name: &str, value: impl AsRef<OsStr>) -> Command {
        let mut arg = OsString::from(format!("--{name}="));
        arg.push(value);
        self.inner.arg(arg);
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Command {
        self.inner.env(name, value);
        self
    }

    /// The folder it starts in.
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Command {
        self.inner.current_dir(dir);
        self
    }

    /// Starts it, with both outputs appended to the file `log`.
    pub fn start(mut self, log: impl Into<PathBuf>) -> Result<Process, Error> {
        let failed = |source| Error::Start { name: self.name.clone(), source };
        let (log, file) = Log::create(log.into()).map_err(failed)?;
        let second = file.try_clone().map_err(failed)?;
        let child = self.inner.stdout(file).stderr(second).spawn().map_err(failed)?;
        Process::new(self.name, child, log)
    }

    /// Starts it, with its log in `state` under its name.
    pub fn start_in(self, state: &crate::StateDir) -> Result<Process, Error> {
        let log = state.log(&self.name);
        self.start(log)
    }
}

//! One real program: started with its log in a file, awaited by event, stopped or killed.
//!
//! In: a [`Command`] and the file for its output. Out: a [`Process`] that ends when it is dropped. Every wait has a
//! deadline, and both a missed deadline and an early exit are reported with the tail of the log. Output goes straight to
//! the file and exit is noticed through a pidfd, so no task or thread stands between and a process may be shared by tests
//! that each have their own runtime.

mod command;
mod log;

use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::report::debug_as_report;

pub use command::Command;
pub use log::Log;

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    id: rustix::process::Pid,
    fd: OwnedFd,
    child: Mutex<Child>,
    log: Log,
}

impl Process {
    fn new(name: String, child: Child, log: Log) -> Result<Process, Error> {
        let id = rustix::process::Pid::from_child(&child);
        let fd = pidfd_open(id, PidfdFlags::empty())
            .map_err(|error| Error::Start { name: name.clone(), source: error.into() })?;
        Ok(Process { name, id, fd, child: Mutex::new(child), log })
    }

    /// The name it goes by in errors and in the name of its log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id, as seen from here.
    pub fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Its log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The file of its log.
    pub fn log_path(&self) -> &Path {
        self.log.path()
    }

    /// Waits for an event that this process brings about. Fails at once when the process exits, and after `limit`; either
    /// way the error says what was waited for and shows the end of the log.
    pub async fn expect<T>(&self, what: &str, limit: Duration, event: impl Future<Output = T>) -> Result<T, Error> {
        self.wait(what, limit, event, || None).await
    }

    /// Like [`expect`](Self::expect), for what no event tells: repeats a probe until it succeeds. The error also shows why
    /// the last try did not.
    pub async fn expect_ok<T, E: Display>(
        &self,
        what: &str,
        limit: Duration,
        mut probe: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, Error> {
        let last = Mutex::new(None);
        let tries = async {
            loop {
                match probe().await {
                    Ok(value) => return value,
                    Err(error) => *last.lock() = Some(error.to_string()),
                }
                tokio::time::sleep(crate::deadline::REST).await;
            }
        };
        self.wait(what, limit, tries, || last.lock().take()).await
    }

    async fn wait<T>(
        &self,
        what: &str,
        limit: Duration,
        event: impl Future<Output = T>,
        last: impl Fn() -> Option<String>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            value = event => Ok(value),
            status = self.exited() => Err(Error::Exited {
                name: self.name.clone(),
                what: what.to_owned(),
                status: status?,
                log: self.log.tail(),
            }),
            () = tokio::time::sleep(limit) => Err(Error::Late {
                name: self.name.clone(),
                what: what.to_owned(),
                limit,
                last: last(),
                log: self.log.tail(),
            }),
        }
    }

    /// Waits until a line of its log contains `text`, and gives that line. Lines already written count.
    pub async fn expect_line(&self, text: &str, limit: Duration) -> Result<String, Error> {
        let what = format!("a log line with {text:?}");
        // Read once more after an exit: the line may be among the last words.
        match self.expect(&what, limit, self.log.line(text)).await {
            Ok(line) => line.map_err(|source| self.cannot("read the log of", source)),
            Err(error) => self.log.find(text).ok_or(error),
        }
    }

    /// Waits until a port accepts connections.
    pub async fn expect_port(&self, address: SocketAddr, limit: Duration) -> Result<(), Error> {
        self.expect(&format!("{address} to accept connections"), limit, crate::probe::port(address)).await
    }

    /// Waits until a GET answers 200, and gives the body.
    pub async fn expect_http(&self, address: SocketAddr, path: &str, limit: Duration) -> Result<String, Error> {
        let what = format!("200 from http://{address}{path}");
        self.expect(&what, limit, crate::probe::http(address, path)).await
    }

    /// Waits for its end, however long it takes.
    pub async fn exited(&self) -> Result<ExitStatus, Error> {
        if let Some(status) = self.status()? {
            return Ok(status);
        }
        let ended = async {
            let fd = log::Readable::new(self.fd.try_clone()?)?;
            fd.until(|_| self.child.lock().try_wait()).await
        };
        ended.await.map_err(|source| self.cannot("wait for", source))
    }

    /// How it ended, if it did.
    pub fn status(&self) -> Result<Option<ExitStatus>, Error> {
        self.child.lock().try_wait().map_err(|source| self.cannot("wait for", source))
    }

    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        matches!(self.status(), Ok(None))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Error> {
        match pidfd_send_signal(&self.fd, signal) {
            // It is gone: nobody is left to tell.
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(self.cannot("signal", error.into())),
        }
    }

    /// Asks it to end (SIGTERM), and kills it when it has not after `grace`. Gives how it ended.
    pub async fn stop(&self, grace: Duration) -> Result<ExitStatus, Error> {
        self.signal(Signal::TERM)?;
        match tokio::time::timeout(grace, self.exited()).await {
            Ok(status) => status,
            Err(_) => self.kill().await,
        }
    }

    /// Kills it with all that it started in its process group, and waits until it is gone.
    pub async fn kill(&self) -> Result<ExitStatus, Error> {
        self.kill_group();
        self.exited().await
    }

    /// The group is its own (see [`Command`]). Once it was reaped the number may belong to others, so look first.
    fn kill_group(&self) {
        let mut child = self.child.lock();
        if matches!(child.try_wait(), Ok(None)) {
            let _ = kill_process_group(self.id, Signal::KILL);
            let _ = child.wait();
        }
    }

    fn cannot(&self, verb: &'static str, source: std::io::Error) -> Error {
        Error::Io { verb, name: self.name.clone(), source }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// Says how a process ended in words.
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// A process that did not do what the test waited for.
#[derive(thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot start {name}")]
    Start {
        /// The process.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended while something was expected of it.
    #[error("{name} {} while the test waited for {what}; the end of its log:\n{log}", describe(*.status))]
    Exited {
        /// The process.
        name: String,
        /// What was waited for.
        what: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// It runs, but did not get there in time.
    #[error("waited {limit:?} for {what} of {name}{}; the end of its log:\n{log}", last_seen(.last))]
    Late {
        /// The process.
        name: String,
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// What the last look showed, if anything was looked at.
        last: Option<String>,
        /// The last lines of its log.
        log: String,
    },
    /// The system refused.
    #[error("cannot {verb} {name}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// The process.
        name: String,
        /// Why.
        source: std::io::Error,
    },
}
debug_as_report!(Error);

fn last_seen(last: &Option<String>) -> String {
    last.as_ref().map(|last| format!("; last seen: {last}")).unwrap_or_default()
}

#[cfg(test)]
mod tests;

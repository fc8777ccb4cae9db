//! A local Envoy: found, started, and started again when it stops.
//!
//! Envoy is not started directly but through this program's own hidden subcommand `supervised`, which asks the kernel to
//! end it when we end, however we end, and then becomes Envoy. So no Envoy outlives a `kill -9` of ours.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use envoy::bootstrap::COMPONENT_LOG_LEVEL;
use model::Code;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tracing::{info, warn};

use crate::problem::{Coded, Problem};

/// The first pause before Envoy is started again; it doubles up to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// An Envoy that ran this long did not stop at its start.
const STEADY: Duration = Duration::from_secs(30);
/// How long Envoy may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How much of its log is shown when it stops.
const TAIL: usize = 20;

/// Looks for Envoy: where the flag or `SESAME_ENVOY` says, in `PATH`, among the parts that `make parts` fetched.
pub fn find(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        ensure_file(path)?;
        return Ok(path.to_owned());
    }
    let in_path = env::var_os("PATH").and_then(|folders| {
        env::split_paths(&folders).map(|folder| folder.join("envoy")).find(|program| program.is_file())
    });
    if let Some(program) = in_path.filter(|_| env::var_os("SESAME_ENVOY").is_none()) {
        return Ok(program);
    }
    parts::program("envoy").coded(Code::ProgramMissing, || "Envoy is not in PATH (SESAME_ENVOY)".to_owned())
}

/// A path that leads nowhere is told at once: a program that cannot be started would be tried again and again.
fn ensure_file(path: &Path) -> Result<()> {
    match path.is_file() {
        true => Ok(()),
        false => Err(Problem::of(Code::ProgramMissing, format!("{} is not a file (--envoy)", path.display()))),
    }
}

/// An Envoy that is kept running.
pub struct Proxy {
    /// The program.
    pub program: PathBuf,
    /// Its bootstrap.
    pub bootstrap: PathBuf,
    /// Its log.
    pub log: PathBuf,
}

impl Proxy {
    /// Keeps Envoy running until `stop` is done, then ends it.
    pub async fn supervise(self, stop: impl Future<Output = ()>) -> Result<()> {
        tokio::pin!(stop);
        let mut pause = SHORTEST_PAUSE;
        loop {
            let begun = Instant::now();
            let mut child = self.start()?;
            let ended = tokio::select! {
                ended = child.wait() => ended.context("cannot wait for Envoy")?,
                () = &mut stop => return end(child).await,
            };
            if begun.elapsed() > STEADY {
                pause = SHORTEST_PAUSE;
            }
            self.report(ended, pause);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = &mut stop => return Ok(()),
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    fn start(&self) -> Result<Child> {
        let own = env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(own);
        command
            .arg("supervised")
            .arg(&self.program)
            .args([
                "--disable-hot-restart",
                "--file-flush-interval-msec",
                "100",
                "--log-level",
                "warning",
                "--component-log-level",
                COMPONENT_LOG_LEVEL,
                "--log-path",
            ])
            .arg(&self.log)
            .arg("-c")
            .arg(&self.bootstrap)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        info!(program = %self.program.display(), "starting Envoy");
        command.spawn().with_context(|| format!("cannot start {}", self.program.display()))
    }

    fn report(&self, ended: ExitStatus, pause: Duration) {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n");
        let code = Code::EnvoyStopped;
        warn!(%code, "{code}: {} ({ended}); starting it again in {pause:?}\n{tail}", code.title());
    }
}

async fn end(mut child: Child) -> Result<()> {
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        // It may have ended by itself just now.
        let _gone = kill_process(pid, Signal::TERM);
    }
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        child.kill().await.context("cannot end Envoy")?;
    }
    Ok(())
}

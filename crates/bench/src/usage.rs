//! What a process has used: memory and CPU time, from `/proc/PID`; and waiting until it rests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The unit of times in `/proc/PID/stat`, which is the same on every Linux that programs are built for.
const TICK: Duration = Duration::from_millis(10);
/// How long a process must do nothing to be at rest, and how long it may take to come to that between two changes.
const REST: Duration = Duration::from_millis(150);
const RESTLESS: Duration = Duration::from_secs(20);

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Memory now, in MiB.
    pub rss: f64,
    /// The most it ever was, in MiB.
    pub peak: f64,
    /// CPU time since its start, in seconds.
    pub cpu: f64,
}

impl Usage {
    /// What the process `pid` has used.
    pub fn of(pid: u32) -> Result<Usage> {
        let status = read(pid, "status")?;
        let kib = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        let mib = |field: &str| kib(field).map_or(0.0, |kib| kib / 1024.0);
        Ok(Usage { rss: mib("VmRSS:"), peak: mib("VmHWM:"), cpu: cpu(pid)?.as_secs_f64() })
    }
}

/// Forgets the most memory that a process ever had: from here on it is counted anew.
pub fn reset_peak(pid: u32) -> Result<()> {
    // What the kernel calls resetting the "high water mark", see proc_pid_clear_refs(5).
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").with_context(|| format!("process {pid} is gone"))
}

/// The CPU time of a process since its start, with that of threads that have ended.
pub fn cpu(pid: u32) -> Result<Duration> {
    let stat = read(pid, "stat")?;
    // The name in brackets may hold anything; user and system time are the 12th and 13th word after it.
    let words = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).context("/proc/PID/stat is cut off")?;
    let ticks: u32 = words.skip(11).take(2).filter_map(|word| word.parse::<u32>().ok()).sum();
    Ok(TICK * ticks)
}

/// The CPU time of each thread of a process, to the nanosecond: [`cpu`] counts in ticks, and one change takes less than a tick.
pub struct Threads {
    pid: u32,
    nanoseconds: BTreeMap<u32, u64>,
}

impl Threads {
    /// Those of the process `pid`, now.
    pub fn of(pid: u32) -> Result<Threads> {
        let threads =
            std::fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid} is gone"))?;
        // A thread that ends meanwhile has no file.
        let used = threads.filter_map(|thread| {
            let path = thread.ok()?.path();
            let used = std::fs::read_to_string(path.join("schedstat")).ok()?;
            Some((path.file_name()?.to_str()?.parse().ok()?, used.split(' ').next()?.parse().ok()?))
        });
        Ok(Threads { pid, nanoseconds: used.collect() })
    }

    /// What the process has used since, without threads that have ended.
    pub fn used_since(&self) -> Result<Duration> {
        let now = Threads::of(self.pid)?;
        let before = |thread| self.nanoseconds.get(thread).copied().unwrap_or_default();
        let used = now.nanoseconds.iter().map(|(thread, used)| used.saturating_sub(before(thread)));
        Ok(Duration::from_nanos(used.sum()))
    }
}

/// Waits until these processes rest, so that one change is not measured while the last is still digested. A process
/// that never rests is taken as it is.
pub async fn at_rest(pids: &[u32]) -> Result<()> {
    at_rest_within(pids, RESTLESS).await
}

/// The same with another limit: after a start there may be a status to write for every object.
pub async fn at_rest_within(pids: &[u32], limit: Duration) -> Result<()> {
    let start = Instant::now();
    let all = || pids.iter().map(|pid| cpu(*pid)).sum::<Result<Duration>>();
    let mut before = all()?;
    while start.elapsed() < limit {
        tokio::time::sleep(REST).await;
        let now = all()?;
        // One tick in this time is a timer, not work.
        if now - before <= TICK {
            return Ok(());
        }
        before = now;
    }
    Ok(())
}

fn read(pid: u32, file: &str) -> Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).with_context(|| format!("process {pid} is gone"))
}

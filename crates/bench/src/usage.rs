//! What a process has used: memory and CPU time, from `/proc/PID`; and waiting until it rests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
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
        let mut nanoseconds = BTreeMap::new();
        for thread in threads {
            let path = thread?.path();
            let file = path.join("schedstat");
            let text = match std::fs::read_to_string(&file) {
                Ok(text) => text,
                // The thread has ended meanwhile.
                Err(_) if !path.exists() => continue,
                Err(error) => {
                    let text = format!("cannot read {}: the kernel must count CPU time per thread", file.display());
                    return Err(error).context(text);
                }
            };
            let name = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            let used = text.split(' ').next().and_then(|used| used.parse().ok());
            let used = name.zip(used).with_context(|| format!("{} has no CPU time: {text:?}", file.display()))?;
            nanoseconds.extend([used]);
        }
        // A kernel that does not count it says 0 of every thread.
        let is_counted = nanoseconds.values().any(|used| *used > 0);
        ensure!(is_counted, "/proc/{pid}/task/*/schedstat shows no CPU time: the kernel does not count it");
        Ok(Threads { pid, nanoseconds })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn the_cpu_time_of_threads_is_read_or_it_is_an_error() {
        // Process numbers are smaller than this on every Linux.
        assert!(Threads::of(u32::MAX).is_err());
        let before = match Threads::of(std::process::id()) {
            Ok(before) => before,
            Err(error) => {
                // A kernel without CONFIG_SCHED_INFO has no such file, or counts nothing.
                let text = format!("{error:#}");
                assert!(
                    text.contains("the kernel must count CPU time per thread") || text.contains("does not count it"),
                    "{text}"
                );
                return;
            }
        };
        let mut work = 0_u64;
        while before.used_since().unwrap() < Duration::from_micros(100) {
            work = std::hint::black_box(work + 1);
        }
    }
}

//! The machine that the figures are from, and whether it is quiet enough for them to mean anything.
//!
//! In: `/proc`. Out: a [`Machine`] that stands above every table. Beside a busy neighbour times double, so a busy machine
//! is an error unless the caller insists, and then the report says so.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// The most that may be going on when a run starts: as load average, and as cores in use at the moment.
const BUSY: f64 = 0.5;
/// How long the moment is.
const LOOK: Duration = Duration::from_secs(3);
/// How long the load average may take to forget what went before, such as the build of this program.
const FORGET: Duration = Duration::from_secs(300);

/// What a table is worth nothing without.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its processor.
    pub cpu: String,
    /// How many cores.
    pub cores: usize,
    /// Its memory in GiB.
    pub memory_gib: f64,
    /// The kernel's version.
    pub kernel: String,
    /// The load average of one minute when the run started.
    pub load: f64,
    /// The cores in use when the run started.
    pub busy: f64,
    /// The run was made although the machine was busy.
    pub forced: bool,
}

/// Waits until the machine has forgotten what it did last, and refuses when something else keeps it busy. `force` takes
/// it as it is.
pub async fn until_quiet(force: bool) -> Result<Machine> {
    let start = std::time::Instant::now();
    loop {
        let (busy, load) = (busy_cores().await?, load()?);
        if busy <= BUSY && load <= BUSY {
            return Machine::new(busy, load, false);
        }
        if force {
            return Machine::new(busy, load, true);
        }
        if busy > BUSY || start.elapsed() > FORGET {
            bail!(
                "this machine is busy: {busy:.1} cores in use, load average {load:.1}, more than {BUSY}; \
                 stop what else runs, or say FORCE=1 and have that said in the report"
            );
        }
        eprintln!("bench: waiting for the load average to fall from {load:.1} to {BUSY}");
    }
}

impl Machine {
    fn new(busy: f64, load: f64, forced: bool) -> Result<Machine> {
        let cpu = read("/proc/cpuinfo")?;
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
        let memory = read("/proc/meminfo")?;
        let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).and_then(first_number);
        Ok(Machine {
            cpu: cpu.trim_start_matches([' ', '\t', ':']).to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            memory_gib: memory.context("/proc/meminfo does not say how much memory there is")? / 1024.0 / 1024.0,
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            load,
            busy,
            forced,
        })
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Machine { cpu, cores, memory_gib, kernel, load, busy, forced } = self;
        write!(f, "{cores} cores of {cpu}, {memory_gib:.0} GiB, Linux {kernel}; at the start load {load:.2}")?;
        write!(f, ", {busy:.2} cores in use")?;
        match forced {
            true => write!(f, ". THE MACHINE WAS BUSY (FORCE=1): times are not to be trusted"),
            false => Ok(()),
        }
    }
}

fn load() -> Result<f64> {
    first_number(&read("/proc/loadavg")?).context("/proc/loadavg holds no number")
}

/// How many cores were in use, on average over a moment.
async fn busy_cores() -> Result<f64> {
    let cores = std::thread::available_parallelism()?.get() as f64;
    let (idle, all) = times()?;
    tokio::time::sleep(LOOK).await;
    let (idle_then, all_then) = times()?;
    Ok(cores * (1.0 - (idle_then - idle) / (all_then - all).max(1.0)))
}

/// What all cores together have spent: idle, and altogether.
fn times() -> Result<(f64, f64)> {
    let stat = read("/proc/stat")?;
    let spent: Vec<f64> =
        stat.lines().next().unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // user, nice, system, idle, waiting for disks, …
    match spent.get(3..5) {
        Some(idle) => Ok((idle.iter().sum(), spent.iter().take(8).sum())),
        None => bail!("/proc/stat has no times"),
    }
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {path}"))
}

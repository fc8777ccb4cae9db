//! `process_…`: what the operating system says about this process, read when somebody asks.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use std::{fmt, fs};

/// Clock ticks of a second in `/proc`, which are the same on every Linux.
const TICKS: f64 = 100.0;

/// The figures of this process.
#[derive(Debug)]
pub(crate) struct Process;

/// What `/proc` says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures {
    cpu_seconds: f64,
    start_seconds: f64,
    resident_bytes: i64,
    virtual_bytes: i64,
    open_files: i64,
    max_files: i64,
}

impl Figures {
    fn read() -> Option<Self> {
        let text = |path: &str| fs::read_to_string(path).ok();
        let files = i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).unwrap_or(i64::MAX);
        let [stat, status, limits, system] =
            ["/proc/self/stat", "/proc/self/status", "/proc/self/limits", "/proc/stat"].map(text);
        // One of the files is that of the folder itself.
        Self::parse(&stat?, &status?, &limits?, &system?, files - 1)
    }

    fn parse(stat: &str, status: &str, limits: &str, system: &str, open_files: i64) -> Option<Self> {
        // The name of the program stands in brackets and may have anything in it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
        let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<i64>().ok()?.saturating_mul(1024))
        };
        let max = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        Some(Self {
            cpu_seconds: (ticks(11)? + ticks(12)?) / TICKS,
            start_seconds: boot + ticks(19)? / TICKS,
            resident_bytes: bytes("VmRSS:")?,
            virtual_bytes: bytes("VmSize:")?,
            open_files,
            // A limit that is none is as large as can be.
            max_files: max.split_whitespace().next()?.parse().unwrap_or(i64::MAX),
        })
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(figures) = Figures::read() else { return Ok(()) };
        one(
            &mut encoder,
            "process_cpu_seconds",
            "User and system CPU time in seconds",
            &ConstCounter::new(figures.cpu_seconds),
        )?;
        one(
            &mut encoder,
            "process_start_time_seconds",
            "Start time of the process, in seconds since the epoch",
            &ConstGauge::new(figures.start_seconds),
        )?;
        one(
            &mut encoder,
            "process_resident_memory_bytes",
            "Resident memory in bytes",
            &ConstGauge::new(figures.resident_bytes),
        )?;
        one(
            &mut encoder,
            "process_virtual_memory_bytes",
            "Virtual memory in bytes",
            &ConstGauge::new(figures.virtual_bytes),
        )?;
        one(&mut encoder, "process_open_fds", "Open file descriptors", &ConstGauge::new(figures.open_files))?;
        one(
            &mut encoder,
            "process_max_fds",
            "Maximum number of open file descriptors",
            &ConstGauge::new(figures.max_files),
        )
    }
}

fn one(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_whatever_the_program_is_called() {
        let stat = "7 (a) b (c) R 1 7 7 0 -1 4194304 1 0 0 0 250 50 0 0 20 0 8 0 1000 9999 11 0";
        let status = "Name:\ta\nVmSize:\t    2048 kB\nVmRSS:\t     512 kB\n";
        let limits =
            "Limit  Soft  Hard  Units\nMax open files            1024                 4096                 files\n";
        let expected = Figures {
            cpu_seconds: 3.0,
            start_seconds: 1_700_000_010.0,
            resident_bytes: 512 * 1024,
            virtual_bytes: 2048 * 1024,
            open_files: 12,
            max_files: 1024,
        };
        assert_eq!(Figures::parse(stat, status, limits, "cpu 1 2\nbtime 1700000000\n", 12), Some(expected));
        assert_eq!(Figures::parse("", "", "", "", 0), None);
        let here = Figures::read().unwrap_or_default();
        assert!(here.resident_bytes > 0 && here.open_files > 0 && here.start_seconds > 1e9, "{here:?}");
    }
}

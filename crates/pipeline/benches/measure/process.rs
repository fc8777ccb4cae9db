//! What a process has used: CPU time of all its threads, and memory. CPU time, not wall time, because it holds on a machine
//! that is busy with other things.

use std::time::Duration;

/// The CPU time of a process.
pub fn cpu(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let nanos: u64 = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum();
    Duration::from_nanos(nanos)
}

/// The memory of a process, in KiB.
pub fn rss(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The load of the machine, in the words of the kernel.
pub fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap().trim().to_owned()
}

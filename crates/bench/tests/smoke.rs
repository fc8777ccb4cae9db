//! All rows and all attacks at a size that says nothing about speed: the benchmark works, from the API server to Envoy, and
//! comes to its end.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One at a time: every run has its backends at the same addresses.
static TURN: Mutex<()> = Mutex::new(());

/// Runs it with these arguments, to its good end, and gives its tables.
fn bench(out: &str, arguments: &[&str]) -> String {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = Path::new(env!("CARGO_BIN_EXE_bench"));
    let sesame = bench.with_file_name("sesame");
    assert!(sesame.exists(), "{} is missing: `cargo build -p sesame` makes it", sesame.display());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(out);
    let output = Command::new(bench)
        .arg("--sesame")
        .arg(sesame)
        .args(arguments)
        .args(["--force", "--out"])
        .arg(out)
        .output()
        .expect("the benchmark starts");
    let (told, table) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{told}\n{table}");
    table.into_owned()
}

#[test]
fn every_row_is_measured() {
    let table = bench(
        "bench",
        &[
            "--sizes",
            "20",
            "--proxies",
            "20",
            "--protected",
            "60",
            "--routes",
            "20",
            "--mappings",
            "20",
            "--samples",
            "2",
            "--writes",
            "10",
            "--starts",
            "1",
            "--editing",
            "1",
            "--clients",
            "3",
            "--returning",
            "5",
            "--clients-at",
            "20",
        ],
    );
    assert!(table.contains("20 hosts of HTTPProxies"), "{table}");
    assert!(table.contains("20 hosts: HTTPRoutes beside Ingresses"), "{table}");
    assert!(table.contains("20 Mappings beside Ingresses"), "{table}");
    for row in [
        "cold start",
        "new host",
        "route edit",
        "endpoint change",
        "provider edit",
        "restart",
        "clients",
        "disk cache",
        "/metrics",
        "in step",
        "held to it",
    ] {
        assert!(table.contains(row), "there is no row about {row}:\n{table}");
    }
}

/// How long anything takes is not judged: a machine that runs all tests is no place for that.
#[test]
fn every_attack_is_measured() {
    let table = bench(
        "hostile",
        &["--hostile", "--scale", "0.005", "--others", "10", "--samples", "2", "--window", "0", "--replicas-at", "20"],
    );
    for row in [
        "cannot be fetched",
        "hangs",
        "includes",
        "1,000 hosts",
        "acknowledge nothing",
        "more than the 4 MiB",
        "server names",
        "unauthenticated",
        "flap",
        "rewritten",
        "conflicts",
    ] {
        assert!(table.lines().any(|line| line.contains(row) && line.contains(" MiB")), "no row about {row}:\n{table}");
    }
    assert!(table.contains("20 of 20"), "not all is programmed:\n{table}");
}

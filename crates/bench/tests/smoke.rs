//! All rows at a size that says nothing about speed: the benchmark works, from the API server to Envoy, and comes to its end.

use std::{path::Path, process::Command};

#[test]
fn every_row_is_measured() {
    let bench = Path::new(env!("CARGO_BIN_EXE_bench"));
    let sesame = bench.with_file_name("sesame");
    assert!(sesame.exists(), "{} is missing: `cargo build -p sesame` makes it", sesame.display());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    let output = Command::new(bench)
        .arg("--sesame")
        .arg(sesame)
        .args(["--sizes", "20", "--proxies", "20", "--samples", "2", "--writes", "10", "--starts", "1", "--force"])
        .args(["--clients", "3", "--clients-at", "20", "--out"])
        .arg(out)
        .output()
        .expect("the benchmark starts");
    let (told, table) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{told}\n{table}");
    assert!(table.contains("20 hosts of HTTPProxies"), "{table}");
    for row in ["cold start", "new host", "route edit", "endpoint change", "restart", "clients"] {
        assert!(table.contains(row), "there is no row about {row}:\n{table}");
    }
}

//! The conformance suite of Gateway API, all five gateway profiles, on a real Kubernetes node: `make conformance`, as a test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use conformance::{Installation, Outcome, Packing, Suite};
use testbed::cluster;

/// Where the suite's output and the logs of the controller are if it fails.
const OUT: &str = env!("CARGO_TARGET_TMPDIR");

/// How many tests pass: the suite v1.7.0 has 147 tests of gateways, and six of them are of features that the GatewayClass does not list.
/// One that is no longer there is missed.
const PASSED: usize = 147 - 6;

#[tokio::test(flavor = "multi_thread")]
async fn every_gateway_profile_of_the_conformance_suite_holds() {
    if !cluster::available() {
        return;
    }
    let out = Path::new(OUT);
    let binary = Path::new(env!("CARGO_BIN_EXE_sesame"));
    let installation = Installation::start(binary, Packing::Scoped, |_| {}).await.unwrap();
    let suite = Suite { test: None, report: out.join("conformance-report.yaml"), arguments: Vec::new() };
    let mut log = String::new();
    let run = suite.run(&installation, |line, _| {
        log.push_str(line);
        log.push('\n');
    });
    let run = run.await.unwrap();
    std::fs::write(out.join("conformance.log"), log).unwrap();
    let logs = installation.controller_logs().await.unwrap();
    std::fs::write(out.join("conformance-controller.log"), logs.join("\n")).unwrap();
    installation.stop().await.unwrap();
    let objections = run.objections(&suite);
    assert!(objections.is_empty(), "{}\nlogs are in {OUT}", objections.join("\n"));
    let count = |outcome| run.results.of(outcome).count();
    assert_eq!(count(Outcome::Failed), 0);
    assert_eq!(count(Outcome::Passed), PASSED, "tests that passed");
}

//! Every golden case: objects in, what Envoy gets, and what a client is answered through a real Envoy.
//!
//! `UPDATE_CASES=1` writes the golden parts anew, `CASES=paths` runs the cases with `paths` in their names.

use pipeline::settings::{Certificates, Packing};
use std::path::Path;

fn folder(dialect: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(dialect)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_tables() {
    testbed::cases::run(&folder("ingress"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_scopes() {
    testbed::cases::run(&folder("ingress"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_tables() {
    testbed::cases::run(&folder("httpproxy"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_scopes() {
    testbed::cases::run(&folder("httpproxy"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_in_tables() {
    testbed::cases::run(&folder("gateway"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_in_scopes() {
    testbed::cases::run(&folder("gateway"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissary_in_tables() {
    testbed::cases::run(&folder("emissary"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissary_in_scopes() {
    testbed::cases::run(&folder("emissary"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("ingress"), Packing::Scoped, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("httpproxy"), Packing::Scoped, Certificates::PerChain).await;
}

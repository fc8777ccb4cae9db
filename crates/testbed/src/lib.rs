//! Real parts for tests: etcd, kube-apiserver, Kubernetes nodes, Envoys, clients and backends.
//!
//! A test asks for a part, waits for an event with a deadline, and lets go; whatever it started ends with it, because
//! `cargo test` runs every test binary through `tools/sandbox`, in namespaces of its own. Nothing here uses a fixed port
//! or a network of the host, so tests run side by side in one process and in many.

pub mod acme_server;
pub mod apiserver;
pub mod auth_server;
pub mod backend;
pub mod broken_server;
#[cfg(feature = "cases")]
pub mod cases;
pub mod cert_manager;
pub mod certs;
pub mod client;
pub mod cluster;
pub mod deadline;
pub mod envoy;
pub mod http;
pub mod http3;
pub mod image;
pub mod kat_client;
pub mod kat_server;
pub mod key_server;
pub mod limit_server;
pub mod load;
pub mod log_server;
pub mod net;
pub mod otel_collector;
pub mod probe;
pub mod process;
pub mod promtool;
pub mod rate_limit;
pub mod span_server;
pub mod start;
pub mod state;
pub mod texts;
pub mod tokens;
pub mod wire;
pub mod xds_client;

mod report;

pub use crate::image::Image;
pub use acme_server::AcmeServer;
pub use apiserver::ApiServer;
pub use backend::Backend;
pub use cert_manager::CertManager;
pub use client::Client;
pub use cluster::Cluster;
pub use deadline::{Late, eventually, within};
pub use envoy::Envoy;
pub use http3::Http3;
pub use kat_server::KatServer;
pub use key_server::{KeyAnswer, KeyServer};
pub use limit_server::LimitServer;
pub use load::Load;
pub use log_server::LogServer;
pub use net::Net;
pub use otel_collector::OtelCollector;
pub use process::{Command, Process};
pub use rate_limit::RateLimitService;
pub use span_server::SpanServer;
pub use start::StartError;
pub use state::StateDir;
pub use wire::Wire;
pub use xds_client::XdsClient;

//! The life of an installation under load: `make e2e`, and a part of it in `make test`.
//!
//! In: a built `sesame`. Out: for each [`Scenario`] how many requests were sent meanwhile, how many failed, the longest time
//! without an answer, and how long it took. [`Installation`] is a real Kubernetes of two nodes with our image and the shipped
//! manifests; [`Traffic`] comes from outside, through the load balancer: HTTP/1.1 and HTTP/2 at a steady rate, and WebSockets,
//! gRPC streams, TLS passthrough and TCP connections that stay open. A scenario fails by an error, or because the API server refused
//! a request of Sesame; a request that fails is counted, and makes the whole run fail.

mod installation;
mod page;
mod scenario;
mod stream;
mod table;
mod traffic;

pub use installation::{Installation, NAMESPACE};
pub use scenario::{SCENARIOS, Scenario};
pub use table::{Row, table};
pub use traffic::{Traffic, TrafficReport};

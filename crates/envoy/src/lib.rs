//! The model as Envoy's own configuration: small pure constructors, no look-ups, no Kubernetes.
//!
//! In: values of [`model`], which can hold nothing that Envoy refuses. Out: Envoy messages, and the bytes that the xDS
//! server hands out. One file builds one thing; [`name`] is the only place that names resources, and [`packing`] the
//! only one that decides which virtual hosts travel together.

pub mod bootstrap;
pub mod cluster;
pub mod endpoints;
pub mod listener;
pub mod name;
pub mod packing;
pub mod route;
pub mod runtime;
pub mod secret;
mod splice;
mod tls_parameters;
pub mod virtual_host;

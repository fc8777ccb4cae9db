//! What all objects ask for together: who wins, and in which order a proxy tries routes.
//!
//! In: what translations of all dialects contribute to one target. Out: the virtual host, the TLS host or the filter chain of
//! that target, and a verdict for each contribution that lost. Every order here is total, so replicas and rebuilds agree byte
//! for byte.
//!
//! Three questions, in this order: how specific is a match ([`order`]), what does the dialect say between equals
//! ([`model::route::Precedence`]), and does what is left [combine](combine) or lose. Then what crosses the border of a host: the
//! routes of the [catch-all](catch_all) in wildcard hosts and of [wider hosts](wider_hosts) in narrower ones, the [certificate of a wildcard](wildcard_certificate) for hosts below
//! it, routes that are [shared](shared_routes) by many hosts, and hosts that are [parts](conditional_host) of others.

mod between_dialects;
pub mod catch_all;
pub mod combine;
pub mod conditional_host;
pub mod order;
pub mod priority;
pub mod quic;
pub mod shared_routes;
pub mod split;
pub mod tls;
pub mod virtual_host;
pub mod wider_hosts;
pub mod wildcard_certificate;

#[cfg(test)]
mod testing;

//! What all objects ask for together: who wins, and in which order a proxy must try.
//!
//! In: the pieces of translations of all dialects that meet in one place. Out: the virtual host, the TLS host or the chain that
//! stands there, and a verdict for each piece that lost. Every order here is total, so replicas and rebuilds agree byte
//! for byte.

pub mod tls;
pub mod virtual_host;

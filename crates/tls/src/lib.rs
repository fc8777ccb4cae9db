//! TLS of Sesame's own connections, as a server and as a client.
//!
//! In: paths of PEM files, CAs and names. Out: configurations of rustls. [`PemFiles`] reads a certificate, its key and a CA, and
//! refuses a certificate that no client would accept now; [`Reloaded`] reads files again when they change; [`ServerVerifier`] verifies servers in other ways than by the name
//! that was asked for. Who listens, and what a file is for, is the business of those who call.

mod files;
mod reload;
mod usable;
mod verify;

pub use files::{Clients, PemFiles, TlsError};
pub use reload::Reloaded;
pub use verify::ServerVerifier;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::Arc;

/// The cryptography of all connections.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

//! Values about TLS: versions, cipher suites and curves that Envoy knows.

use super::value::{Wrong, list, text, word};
use kinds::Node;
use model::tls::TlsVersion;
use std::sync::Arc;

/// What TLS 1.2 may be told to use; a group in brackets is chosen from by the client.
const CIPHERS: [&str; 16] = [
    "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]",
    "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "AES128-GCM-SHA256",
    "AES128-SHA",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES256-GCM-SHA384",
    "AES256-SHA",
];

/// The curves of key exchange.
const CURVES: [&str; 5] = ["X25519", "P-256", "P-384", "P-521", "X25519MLKEM768"];

/// A protocol version.
pub fn version(node: &Node<'_>) -> Result<TlsVersion, Wrong> {
    word(node, &[("1.2", TlsVersion::V1_2), ("1.3", TlsVersion::V1_3)])
}

/// Cipher suites, each once; none named means `usual`.
pub fn ciphers(node: &Node<'_>, usual: &[&str]) -> Result<Vec<Arc<str>>, Wrong> {
    let named = list(node, |item| {
        let name = text(item)?;
        let name = name.trim();
        let is_known = CIPHERS.contains(&name);
        if is_known {
            Ok(Arc::from(name))
        } else {
            Err(Wrong::new(format!("`{name}` is not a cipher suite of TLS 1.2")))
        }
    })?;
    let mut once: Vec<Arc<str>> = Vec::new();
    for name in named {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    Ok(if once.is_empty() { usual.iter().map(|&name| name.into()).collect() } else { once })
}

/// A curve.
pub fn curve(node: &Node<'_>) -> Result<Arc<str>, Wrong> {
    let words = CURVES.map(|name| (name, name));
    word(node, &words).map(Arc::from)
}

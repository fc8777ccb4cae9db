//! Values about TLS: versions, cipher suites and curves that Envoy knows.

use super::value::{Wrong, list, text, word};
use kinds::Node;
use model::tls::{CIPHER_SUITES, CURVES, TlsVersion};
use std::sync::Arc;

/// A protocol version.
pub fn version(node: &Node<'_>) -> Result<TlsVersion, Wrong> {
    word(node, &[("1.2", TlsVersion::V1_2), ("1.3", TlsVersion::V1_3)])
}

/// Cipher suites, each once; none named means `usual`.
pub fn ciphers(node: &Node<'_>, usual: &[&str]) -> Result<Vec<Arc<str>>, Wrong> {
    let named = list(node, |item| {
        let name = text(item)?;
        let name = name.trim();
        let is_known = CIPHER_SUITES.contains(&name);
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

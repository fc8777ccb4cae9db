//! What holds for every connection of a listener, before a request is read.

use std::sync::Arc;

/// What TLS 1.2 may use, as Contour has it: forward secrecy and authenticated encryption only.
pub const CIPHERS: [&str; 4] = [
    "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]",
    "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
];

/// What holds for all connections of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionSettings {
    /// What a connection may hold in memory in each direction before its peer is made to wait, in bytes.
    pub buffer: u32,
    /// Whether connections are spread evenly over the threads of a proxy, at the price of a lock.
    pub even_balance: bool,
    /// How many connections are accepted at a time.
    pub accepted_at_once: Option<u32>,
    /// The type of service of IPv4 packets; zero for none.
    pub type_of_service: u8,
    /// The traffic class of IPv6 packets; zero for none.
    pub traffic_class: u8,
    /// What TLS 1.2 may use, in the words of Envoy.
    pub ciphers: Vec<Arc<str>>,
    /// The curves of key exchange; Envoy's own if none is named.
    pub curves: Vec<Arc<str>>,
    /// Whether clients are told apart by JA3.
    pub ja3: bool,
    /// Whether clients are told apart by JA4.
    pub ja4: bool,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            buffer: 32 * 1024,
            even_balance: false,
            accepted_at_once: None,
            type_of_service: 0,
            traffic_class: 0,
            ciphers: CIPHERS.map(Arc::from).to_vec(),
            curves: Vec::new(),
            ja3: false,
            ja4: false,
        }
    }
}

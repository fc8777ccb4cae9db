//! What a backend saw, as the documents that it answers with.
//!
//! The same types are written by the backend and read by clients, so a test compares fields, not text.

use std::net::SocketAddr;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// One HTTP request as it reached the backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The backend that answered.
    pub name: String,
    /// The pod it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The namespace of that pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The request's method.
    pub method: String,
    /// The path as it came, still encoded.
    pub path: String,
    /// The query as it came, without the question mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// `:authority`, or the `Host` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
    pub protocol: String,
    /// All headers, in lower case, in the order in which their names first appeared; all values of a name in order.
    pub headers: Vec<(String, String)>,
    /// Trailers after the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<(String, String)>,
    /// The request's body.
    pub body: BodySeen,
    /// The TLS session that the request came in by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSeen>,
    /// Where the connection came from.
    pub remote: SocketAddr,
    /// The address it came to.
    pub local: SocketAddr,
    /// Which connection of this backend it was, from 1.
    pub connection: u64,
    /// Which request on that connection it was, from 1.
    pub request: u64,
}

impl Seen {
    /// The first value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// All values of a header, by its name in lower case.
    pub fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Who stands at the other end of a connection that carries no requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The backend that answered.
    pub name: String,
    /// The pod it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The namespace of that pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The TLS session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSeen>,
    /// Where the connection or datagram came from.
    pub remote: SocketAddr,
    /// The address it came to.
    pub local: SocketAddr,
    /// Which connection of this backend it was, from 1; 0 for a datagram.
    pub connection: u64,
}

/// A request's body: its whole length, and as much of its content as the backend keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodySeen {
    /// Bytes that arrived.
    pub length: u64,
    /// The content, when it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The content, when it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Whether the content above is only the beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl BodySeen {
    /// From what was kept of a body of this length.
    pub(crate) fn new(kept: &[u8], length: u64) -> BodySeen {
        let cut = (kept.len() as u64) < length;
        let (text, base64) = match std::str::from_utf8(kept) {
            Ok("") => (None, None),
            Ok(text) => (Some(text.to_owned()), None),
            // A cut may fall within a character; what stands before it is still text.
            Err(e) if cut && e.error_len().is_none() => {
                (Some(String::from_utf8_lossy(&kept[..e.valid_up_to()]).into_owned()), None)
            }
            Err(_) => (None, Some(BASE64.encode(kept))),
        };
        BodySeen { length, text, base64, cut }
    }
}

/// A TLS session as one end sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSeen {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// The cipher suite, in rustls' words.
    pub cipher: String,
    /// The server name that the client asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sni: Option<String>,
    /// The protocol that both agreed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpn: Option<String>,
    /// The other end's certificates, its own first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer: Vec<CertificateSeen>,
}

/// The parts of a certificate that people ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateSeen {
    /// The subject, as `CN=a, O=b`.
    pub subject: String,
    /// Who issued it.
    pub issuer: String,
    /// The serial number in hex.
    pub serial: String,
    /// Subject alternative names, as `DNS:a.example.com`, `IP:10.0.0.1`, `URI:spiffe://…`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sans: Vec<String>,
    /// SHA-256 of the certificate, in hex.
    pub sha256: String,
}

impl CertificateSeen {
    /// Reads a DER certificate. What cannot be parsed has only its digest, because telling what was seen must not fail.
    pub fn of(der: &[u8]) -> CertificateSeen {
        let sha256 = hex(digest::digest(&digest::SHA256, der).as_ref());
        let Ok((_, cert)) = X509Certificate::from_der(der) else {
            let (subject, issuer, serial) = (String::new(), String::new(), String::new());
            return CertificateSeen { subject, issuer, serial, sans: Vec::new(), sha256 };
        };
        let names = cert.subject_alternative_name().ok().flatten();
        CertificateSeen {
            subject: cert.subject().to_string(),
            issuer: cert.issuer().to_string(),
            serial: cert.raw_serial_as_string(),
            sans: names.map(|n| n.value.general_names.iter().filter_map(san).collect()).unwrap_or_default(),
            sha256,
        }
    }
}

fn san(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(n) => Some(format!("DNS:{n}")),
        GeneralName::URI(u) => Some(format!("URI:{u}")),
        GeneralName::RFC822Name(m) => Some(format!("email:{m}")),
        GeneralName::IPAddress(b) => match b.len() {
            4 => <[u8; 4]>::try_from(*b).ok().map(|b| format!("IP:{}", std::net::Ipv4Addr::from(b))),
            16 => <[u8; 16]>::try_from(*b).ok().map(|b| format!("IP:{}", std::net::Ipv6Addr::from(b))),
            _ => None,
        },
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Headers as pairs, in the map's order; bytes that are not UTF-8 are replaced.
pub(crate) fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |v: &http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    headers.iter().map(|(n, v)| (n.to_string(), text(v))).collect()
}

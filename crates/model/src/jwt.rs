//! JSON Web Tokens: the providers whose tokens routes require, and where their keys come from.
//!
//! A provider is named after the object that defines it, not after what it says: routes that require its tokens stay the same
//! when it is edited.

use crate::{ObjectRef, Origin};
use std::{fmt, sync::Arc, time::Duration};

/// Which provider: the object that defines it, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JwtProviderId {
    /// The object.
    pub object: ObjectRef,
    /// The name.
    pub name: Arc<str>,
}

/// A provider of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtProvider {
    /// Which one.
    pub id: Arc<JwtProviderId>,
    /// The issuer that a token must name.
    pub issuer: Option<Arc<str>>,
    /// The audiences of which a token must name one; anything will do where there is none.
    pub audiences: Vec<Arc<str>>,
    /// Whether backends are sent the token.
    pub forward: bool,
    /// The keys that tokens are signed with; none while they are not known, and then no token is good.
    pub keys: Option<Jwks>,
    /// The server that has them.
    pub remote: Option<JwksFetch>,
    /// Who wrote it.
    pub origin: Origin,
}

impl JwtProvider {
    /// How much text it holds, about as much as a proxy is sent for it.
    pub fn bytes(&self) -> usize {
        let keys = self.keys.iter().flat_map(|keys| keys.keys()).map(|key| key.len() + 1);
        let texts = self.issuer.iter().chain(&self.audiences).map(|text| text.len());
        keys.chain(texts).sum()
    }

    /// The same without keys: no token is good. It has no other texts either.
    #[must_use]
    pub fn closed(&self) -> Self {
        Self { issuer: None, audiences: Vec::new(), keys: None, ..self.clone() }
    }
}

/// Keys that were looked at: each is JSON that Envoy can read. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Jwks(Arc<[Arc<str>]>);

impl Jwks {
    /// A set of keys, if there are any.
    pub fn new(keys: impl IntoIterator<Item = Arc<str>>) -> Option<Self> {
        let keys: Arc<[Arc<str>]> = keys.into_iter().collect();
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The keys, each a JSON object.
    pub fn keys(&self) -> &[Arc<str>] {
        &self.0
    }
}

/// How keys are fetched from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwksFetch {
    /// From where.
    pub source: Arc<RemoteJwks>,
    /// How long a fetch may take.
    pub timeout: Duration,
    /// How long keys are good.
    pub cache: Duration,
}

/// A server that has keys, for the objects of one namespace: whatever decides which server answers, and whether it is trusted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteJwks {
    /// The namespace.
    pub namespace: Arc<str>,
    /// Where.
    pub uri: JwksUri,
    /// Under TLS: whom to trust. Nobody is asked for a certificate that can be verified where there is none.
    pub trust: Option<JwksTrust>,
    /// The addresses that its name is looked up for; the operator's choice where it says nothing.
    pub family: Option<AddressFamily>,
}

/// Whom to trust.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JwksTrust {
    /// The object with the CA bundle.
    pub ca: ObjectRef,
    /// The DNS names of which the certificate must have one.
    pub names: Vec<Arc<str>>,
}

/// The address of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JwksUri {
    /// Whether it is fetched over TLS.
    pub tls: bool,
    /// The DNS name or IP address; IPv6 without brackets.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
    /// The path and the query; begins with `/`.
    pub path: Arc<str>,
}

/// Why a text is not the address of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksUriError {
    /// Neither `http` nor `https`.
    #[error("must begin with http:// or https://")]
    Scheme,
    /// A port that there cannot be.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// Anything else.
    #[error("{0}")]
    Other(&'static str),
}

/// The longest address of a document.
pub const LONGEST_URI: usize = 2048;

impl JwksUri {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, JwksUriError> {
        use JwksUriError::{Other, Port, Scheme};
        if text.len() > LONGEST_URI {
            return Err(Other("is longer than 2048 bytes"));
        }
        // What stands here is sent as it is.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Other("contains a character that must be percent-encoded"));
        }
        let (scheme, rest) = text.split_once("://").ok_or(Scheme)?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(Scheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if path.contains('#') {
            return Err(Other("contains a fragment, which no server is sent"));
        }
        if authority.contains('@') {
            return Err(Other("contains credentials"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) =
                    rest.split_once(']').ok_or(Other("contains an address without a closing bracket"))?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| Other("contains brackets around no IPv6 address"))?;
                (host, port)
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        if host.is_empty() {
            return Err(Other("has no host"));
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => 80 + if tls { 363 } else { 0 },
            Some(digits) if !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse::<u16>().ok().filter(|&port| port != 0).ok_or(Port)?
            }
            _ => return Err(Port),
        };
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}").into() };
        Ok(Self { tls, host: host.to_ascii_lowercase().into(), port, path })
    }

    /// What a server is told in `Host`.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.to_string() };
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for JwksUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.path)
    }
}

/// The addresses that a name is looked up for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressFamily {
    /// IPv6, and IPv4 if there is none.
    #[default]
    Auto,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// Both.
    All,
}

impl AddressFamily {
    /// Reads `auto`, `v4`, `v6` or `all`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(AddressFamily::Auto),
            "v4" => Some(AddressFamily::V4),
            "v6" => Some(AddressFamily::V6),
            "all" => Some(AddressFamily::All),
            _ => None,
        }
    }
}

/// What is known of the keys that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwksState {
    /// The keys that it gave last.
    pub keys: Option<Jwks>,
    /// Why it has given none since, if it was asked.
    pub failure: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn addresses_of_documents() {
        for (text, shown, host, port) in [
            ("https://a.example.com", "https://a.example.com/", "a.example.com", 443),
            ("HTTPS://A.Example.com/jwks", "https://a.example.com/jwks", "a.example.com", 443),
            ("http://10.0.0.1:8080/a?b=c", "http://10.0.0.1:8080/a?b=c", "10.0.0.1", 8080),
            ("http://a?b", "http://a/?b", "a", 80),
            ("https://[fd00::1]:8443/x", "https://[fd00::1]:8443/x", "fd00::1", 8443),
        ] {
            let uri = JwksUri::parse(text).unwrap();
            assert_eq!((uri.to_string().as_str(), &*uri.host, uri.port), (shown, host, port), "{text}");
        }
    }

    #[test]
    fn no_addresses_of_documents() {
        use JwksUriError::{Port, Scheme};
        let error = |text: &str| JwksUri::parse(text).unwrap_err();
        for text in ["", "a.example.com", "ftp://a", "//a", "file:///etc/passwd"] {
            assert_eq!(error(text), Scheme, "{text}");
        }
        for text in ["https://a:99999/", "https://a:0", "https://a:", "https://a:-1", "http://a:b", "https://[::1]x"] {
            assert_eq!(error(text), Port, "{text}");
        }
        for text in [
            "https://",
            "https:///jwks",
            "https://:443",
            "https://u:p@a/",
            "https://a/#b",
            "https://[x]/",
            "https://a/ b",
        ] {
            assert!(matches!(error(text), JwksUriError::Other(_)), "{text}");
        }
        assert!(matches!(error(&format!("https://a/{}", "x".repeat(3000))), JwksUriError::Other(_)));
    }
}

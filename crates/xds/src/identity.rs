//! Who a client is, and which fleet it may see.
//!
//! In: the node that a client claims to be, and the certificate or the token that it showed. Out: an [`Identity`], or why there
//! is none. The credential decides: a node may leave its fleet unsaid, but may not name another one.
//!
//! - A URI SAN `spiffe://sesame/fleet/<namespace>/<name>` is that fleet's.
//! - A certificate with no such SAN and the DNS name `envoy` is the shared fleet's, so that certificates made for
//!   Contour work unchanged.
//! - A certificate with neither and the DNS name `sesame` or `contour` is a server's: the client is another replica, and in no
//!   fleet.
//! - Without a certificate, each request needs a token that an [`Authenticator`] knows.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use envoy_api::Message;
use envoy_api::envoy::config::core::v3::{Node, node::UserAgentVersionType};
use envoy_api::google::protobuf::value::Kind as Value;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

#[cfg(test)]
mod tests;

/// The key in a node's metadata under which an Envoy says its fleet, as `<namespace>/<name>` or `shared`.
pub const FLEET_METADATA: &str = "sesame.fleet";
/// The key under which an Envoy with a token says when the CAs in its bootstrap expire: seconds since 1970, with commas between.
pub const CA_EXPIRATIONS_METADATA: &str = "sesame.ca-expirations";
/// How many of them are read.
const MAX_CAS: usize = 16;

const FLEET_URI: &str = "spiffe://sesame/fleet/";
const SHARED: &str = "shared";
const SHARED_DNS: &str = "envoy";
/// The names of servers; the second is Contour's.
pub(crate) const SERVER_NAMES: [&str; 2] = ["sesame", "contour"];

/// A set of Envoys that get the same configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Fleet {
    /// The fleet of everything that has no fleet of its own.
    Shared,
    /// The fleet of one object.
    Named {
        /// The namespace of the object.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
}

impl Fleet {
    /// The fleet of one object.
    pub fn named(namespace: &str, name: &str) -> Self {
        Fleet::Named { namespace: namespace.into(), name: name.into() }
    }

    /// The URI SAN of its certificates; the shared fleet needs none.
    pub fn uri(&self) -> Option<String> {
        match self {
            Fleet::Shared => None,
            Fleet::Named { namespace, name } => Some(format!("{FLEET_URI}{namespace}/{name}")),
        }
    }
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fleet::Shared => f.write_str(SHARED),
            Fleet::Named { namespace, name } => write!(f, "{namespace}/{name}"),
        }
    }
}

impl From<Fleet> for String {
    fn from(fleet: Fleet) -> String {
        fleet.to_string()
    }
}

impl TryFrom<String> for Fleet {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        text.parse()
    }
}

impl FromStr for Fleet {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        if text == SHARED {
            return Ok(Fleet::Shared);
        }
        match text.split('/').collect::<Vec<_>>().as_slice() {
            [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok(Fleet::named(namespace, name)),
            _ => Err(IdentityError::Unreadable(text.chars().take(128).collect())),
        }
    }
}

/// Knows whose tokens are whose. It is asked for every stream and every fetch of a client without a certificate.
pub trait Authenticator: Send + Sync + fmt::Debug {
    /// The fleet of a token, if the token is valid.
    fn authenticate<'a>(&'a self, token: &'a str) -> Authenticating<'a>;
}

/// The answer of an [`Authenticator`], when it is there.
pub type Authenticating<'a> = Pin<Box<dyn Future<Output = Result<VerifiedToken, TokenError>> + Send + 'a>>;

/// A valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The fleet.
    pub fleet: Fleet,
    /// When the token ends.
    pub expires: SystemTime,
}

/// Why a token is not accepted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TokenError {
    /// It is not valid.
    #[error("the token is not valid: {0}")]
    Refused(String),
    /// It cannot be checked at the moment.
    #[error("the token cannot be checked: {0}")]
    Unavailable(String),
}

/// Who a client is, by the certificate of its connection or the token of its request.
#[derive(Clone, Debug)]
pub enum Credential {
    /// The fleet, until the certificate expires.
    Certificate {
        /// The fleet.
        fleet: Fleet,
        /// When it ends.
        expires: SystemTime,
    },
    /// The fleet, by a token.
    Token(VerifiedToken),
    /// Nothing yet: the client has no certificate, so each of its requests must have a token.
    Anonymous,
    /// That it is a replica of this server, until the certificate expires.
    Replica {
        /// When it ends.
        expires: SystemTime,
    },
    /// Nothing: the server runs without TLS, and believes what a node says.
    Insecure,
}

impl Credential {
    /// Reads a client's certificate (DER), which has been verified already.
    pub fn from_certificate(der: &[u8]) -> Result<Credential, IdentityError> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|_| IdentityError::Certificate)?;
        let names = certificate.subject_alternative_name().map_err(|_| IdentityError::Certificate)?;
        let names = names.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
        let fleets: Vec<&str> = names
            .iter()
            .filter_map(|name| match name {
                GeneralName::URI(uri) => uri.strip_prefix(FLEET_URI),
                _ => None,
            })
            .collect();
        let expires = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
        let expires = SystemTime::UNIX_EPOCH + Duration::from_secs(expires);
        let goes_by =
            |wanted: &str| names.iter().any(|name| matches!(name, GeneralName::DNSName(name) if *name == wanted));
        let fleet = match fleets.as_slice() {
            [] if goes_by(SHARED_DNS) => Fleet::Shared,
            [] if SERVER_NAMES.into_iter().any(goes_by) => return Ok(Credential::Replica { expires }),
            [] => return Err(IdentityError::Nobody),
            [SHARED] => return Err(IdentityError::Unreadable(SHARED.into())),
            [one] => one.parse()?,
            _ => return Err(IdentityError::Several),
        };
        Ok(Credential::Certificate { fleet, expires })
    }

    /// The fleet, where the credential says it.
    pub fn fleet(&self) -> Option<&Fleet> {
        match self {
            Credential::Certificate { fleet, .. } | Credential::Token(VerifiedToken { fleet, .. }) => Some(fleet),
            Credential::Replica { .. } | Credential::Anonymous | Credential::Insecure => None,
        }
    }

    /// When the connection's streams must end.
    pub fn expires(&self) -> Option<SystemTime> {
        match self {
            Credential::Certificate { expires, .. }
            | Credential::Replica { expires }
            | Credential::Token(VerifiedToken { expires, .. }) => Some(*expires),
            Credential::Anonymous | Credential::Insecure => None,
        }
    }
}

/// A client whose fleet is established.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Its fleet.
    pub fleet: Fleet,
    /// The id of its node.
    pub node: Arc<str>,
    /// The version of its program, such as `1.40.0`; empty if it does not say.
    pub version: Arc<str>,
    /// Where it connects from.
    pub address: Option<SocketAddr>,
    /// When the CAs expire that it trusts for its connection, in seconds since 1970; empty if it does not say, or has a certificate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ca_expirations: Vec<i64>,
}

impl Identity {
    /// Establishes who a client is.
    pub fn establish(node: &[u8], credential: &Credential, address: Option<SocketAddr>) -> Result<Self, IdentityError> {
        let node = Node::decode(node).map_err(|_| IdentityError::Node)?;
        let claim = claim(&node)?;
        let fleet = match (claim, credential) {
            (Some(claimed), Credential::Certificate { fleet, .. } | Credential::Token(VerifiedToken { fleet, .. }))
                if claimed != *fleet =>
            {
                return Err(IdentityError::Mismatch { claimed, authenticated: fleet.clone() });
            }
            (_, Credential::Certificate { fleet, .. } | Credential::Token(VerifiedToken { fleet, .. })) => {
                fleet.clone()
            }
            (_, Credential::Replica { .. } | Credential::Anonymous) => return Err(IdentityError::Nobody),
            (claimed, Credential::Insecure) => claimed.unwrap_or(Fleet::Shared),
        };
        let ca_expirations = match credential {
            Credential::Token(_) => ca_expirations(&node).unwrap_or_default(),
            _ => Vec::new(),
        };
        Ok(Self { fleet, node: node.id.as_str().into(), version: version(&node).into(), address, ca_expirations })
    }

    /// Whether it says that its program is older than this major and minor version.
    pub fn is_older_than(&self, (major, minor): (u32, u32)) -> bool {
        let mut numbers = self.version.split('.').map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(own)), Some(Ok(own_minor))) => (own, own_minor) < (major, minor),
            _ => false,
        }
    }
}

/// The version that every Envoy must have, because of what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredEnvoy {
    /// The major and the minor version.
    pub version: (u32, u32),
    /// What needs it, and what to do about it.
    pub why: &'static str,
}

fn metadata<'a>(node: &'a Node, key: &str) -> Option<&'a Value> {
    node.metadata.as_ref()?.fields.get(key)?.kind.as_ref()
}

fn claim(node: &Node) -> Result<Option<Fleet>, IdentityError> {
    match metadata(node, FLEET_METADATA) {
        None => Ok(None),
        Some(Value::StringValue(text)) => text.parse().map(Some),
        Some(_) => Err(IdentityError::Unreadable("a value that is no string".into())),
    }
}

/// None if it does not say, says too many, or something else.
fn ca_expirations(node: &Node) -> Option<Vec<i64>> {
    let Some(Value::StringValue(text)) = metadata(node, CA_EXPIRATIONS_METADATA) else { return None };
    let read: Option<Vec<i64>> = text.split(',').take(MAX_CAS + 1).map(|number| number.parse().ok()).collect();
    read.filter(|all| all.len() <= MAX_CAS)
}

fn version(node: &Node) -> String {
    match &node.user_agent_version_type {
        Some(UserAgentVersionType::UserAgentVersion(version)) => version.clone(),
        Some(UserAgentVersionType::UserAgentBuildVersion(build)) => build
            .version
            .as_ref()
            .map(|v| format!("{}.{}.{}", v.major_number, v.minor_number, v.patch))
            .unwrap_or_default(),
        None => String::new(),
    }
}

/// Why a client is not let in.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum IdentityError {
    /// The certificate cannot be read.
    #[error("the client certificate cannot be read")]
    Certificate,
    /// The certificate names no fleet.
    #[error(
        "the client certificate names no fleet: it needs the URI {FLEET_URI}<namespace>/<name> or the DNS name {SHARED_DNS}"
    )]
    Nobody,
    /// The certificate names more than one fleet.
    #[error("the client certificate names several fleets")]
    Several,
    /// A fleet that is not written as one.
    #[error("not a fleet: {0}")]
    Unreadable(String),
    /// The first request on a stream has no node, or one that cannot be read.
    #[error("the first request has no readable node")]
    Node,
    /// The node says something other than the certificate or the token.
    #[error("the node claims fleet {claimed}, but its certificate or token is for {authenticated}")]
    Mismatch {
        /// What the node says.
        claimed: Fleet,
        /// What the certificate or the token says.
        authenticated: Fleet,
    },
}

//! Reads what a client sent, field by field.
//!
//! In: the bytes of a `DeltaDiscoveryRequest` or a `DiscoveryRequest`. Out: an [`Incoming`], or why it is refused. It is
//! read by hand because a request may list a hundred thousand names: nothing is built that is not kept, and what is too
//! much is refused while it is counted, not after it was decoded at ten times its size.

use bytes::Bytes;
use thiserror::Error;

use crate::limits::Limits;
use crate::resource::Name;
use crate::session::{Style, Subscription};
use crate::wire::fields::{Fields, Value, parse_nonce, parse_version, text};
use crate::wire::initial_versions::{self, InitialVersions};

#[cfg(test)]
mod tests;

/// How long a type URL may be, in bytes: many times the longest of Envoy's API. The answer to an unknown type repeats it.
const MAX_TYPE_URL: usize = 1 << 10;

/// A request as it came, its type not yet looked at.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The type it is about; empty on a per-type service.
    pub type_url: String,
    /// The encoded node, if the request has one.
    pub node: Option<Vec<u8>>,
    /// The nonce it answers.
    pub nonce: Option<u64>,
    /// Why it refuses that response.
    pub error: Option<String>,
    /// What it says about the subscription.
    pub subscription: Subscription,
}

impl Incoming {
    /// About how many bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let node = self.node.as_ref().map_or(0, Vec::len);
        let error = self.error.as_ref().map_or(0, String::len);
        self.type_url.len() + node + error + self.subscription.bytes()
    }
}

/// Why a request is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// Not the bytes of a message.
    #[error("not a discovery request")]
    Garbage,
    /// A text that is not one.
    #[error("a string is not UTF-8")]
    Text,
    /// More names than a stream may have.
    #[error("more than {0} names in one request")]
    Names(usize),
    /// A node that is too large.
    #[error("a node of {0} bytes")]
    Node(usize),
    /// A type URL that is too long.
    #[error("a type URL of {0} bytes")]
    TypeUrl(usize),
}

/// Reads a request.
pub fn decode(style: Style, bytes: &Bytes, limits: &Limits) -> Result<Incoming, Malformed> {
    let mut incoming =
        Incoming { type_url: String::new(), node: None, nonce: None, error: None, subscription: empty(style) };
    let mut fields = Fields::of(bytes);
    let (mut names, mut versions) = (0, 0);
    while let Some((field, value)) = fields.next()? {
        let Value::Bytes(value) = value else { continue };
        match (&mut incoming.subscription, field) {
            (Subscription::Delta { .. }, 1) | (Subscription::Sotw { .. }, 2) => {
                if value.len() > limits.node_bytes {
                    return Err(Malformed::Node(value.len()));
                }
                incoming.node = Some(value.to_vec());
            }
            (Subscription::Delta { .. }, 2) | (Subscription::Sotw { .. }, 4) => {
                if value.len() > MAX_TYPE_URL {
                    return Err(Malformed::TypeUrl(value.len()));
                }
                incoming.type_url = text(value)?.to_owned()
            }
            (Subscription::Delta { subscribe, .. }, 3) => subscribe.push(counted(value, &mut names, limits)?),
            (Subscription::Delta { unsubscribe, .. }, 4) => unsubscribe.push(counted(value, &mut names, limits)?),
            (Subscription::Delta { .. }, initial_versions::FIELD) => {
                initial_versions::entry(value)?;
                count(&mut names, limits)?;
                versions += 1;
            }
            (Subscription::Sotw { names: all, .. }, 3) => all.push(counted(value, &mut names, limits)?),
            (Subscription::Sotw { version, .. }, 1) => {
                *version = Some(value).filter(|v| !v.is_empty()).map(parse_version)
            }
            (Subscription::Delta { .. }, 6) | (Subscription::Sotw { .. }, 5) => {
                incoming.nonce = Some(value).filter(|v| !v.is_empty()).map(parse_nonce);
            }
            (Subscription::Delta { .. }, 7) | (Subscription::Sotw { .. }, 6) => {
                incoming.error = Some(status_text(value)?)
            }
            _ => {}
        }
    }
    if let Subscription::Delta { initial_versions: has, .. } = &mut incoming.subscription
        && versions > 0
    {
        *has = InitialVersions::new(bytes.clone(), versions);
    }
    Ok(incoming)
}

fn empty(style: Style) -> Subscription {
    match style {
        Style::Delta => Subscription::Delta {
            subscribe: Vec::new(),
            unsubscribe: Vec::new(),
            initial_versions: InitialVersions::default(),
        },
        Style::Sotw => Subscription::Sotw { names: Vec::new(), version: None },
    }
}

fn counted(value: &[u8], names: &mut usize, limits: &Limits) -> Result<Name, Malformed> {
    count(names, limits)?;
    text(value).map(Name::from)
}

fn count(names: &mut usize, limits: &Limits) -> Result<(), Malformed> {
    *names += 1;
    if *names > limits.names { Err(Malformed::Names(limits.names)) } else { Ok(()) }
}

fn status_text(bytes: &[u8]) -> Result<String, Malformed> {
    let mut message = String::new();
    let mut fields = Fields::of(bytes);
    while let Some((field, value)) = fields.next()? {
        if let (2, Value::Bytes(value)) = (field, value) {
            message = String::from_utf8_lossy(value).into_owned();
        }
    }
    Ok(message)
}

//! RequestRedirect, and how paths are replaced.
//!
//! A redirect without a port leads to the port of its scheme, or to the listener's own where the scheme stays. The port of the
//! scheme is not written into the location where that can be had: Envoy keeps the port of the request's host unless the redirect
//! has a host or a port, and clients of a listener on another port than their scheme's send one.

use super::{Rejection, Wrong, filters::PathChange};
use crate::{Listener, Protocol};
use kinds::gateway::filter::{PathModifier, PathModifierType, RequestRedirect};
use model::{
    Code, FieldPath, Fqdn, Host,
    route::{Path, PathMatch, PathRewrite, Redirect, Scheme},
};

/// A redirect before its listener and match are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedirectDraft {
    scheme: Option<Scheme>,
    host: Option<Fqdn>,
    port: Option<u16>,
    path: Option<PathChange>,
    status: u16,
}

fn reject(field: &FieldPath, why: impl Into<Box<str>>) -> Rejection {
    Rejection::new(Code::GatewayRouteFilter, field.clone(), why)
}

/// Reads a redirect. One that is wrong in part is not used, so what stands for that part does not matter.
pub(crate) fn redirect(written: &RequestRedirect, field: &FieldPath, wrong: &mut Wrong) -> RedirectDraft {
    let scheme = match written.scheme.as_deref() {
        None => None,
        Some("http") => Some(Scheme::Http),
        Some("https") => Some(Scheme::Https),
        Some(other) => {
            wrong.add(reject(&field.field("scheme"), format!("must be http or https, not `{other}`")));
            None
        }
    };
    let host = written.hostname.as_deref().map(Fqdn::parse).transpose();
    let host = wrong.take(host.map_err(|error| reject(&field.field("hostname"), error.to_string()))).flatten();
    let port = written.port.map(|port| u16::try_from(port).ok().filter(|&port| port != 0).ok_or(port)).transpose();
    let port =
        port.map_err(|port| reject(&field.field("port"), format!("must be a port number from 1 to 65535, not {port}")));
    let port = wrong.take(port).flatten();
    let status = match written.status_code.unwrap_or(302) {
        code @ (301 | 302 | 303 | 307 | 308) => code as u16,
        other => {
            wrong.add(reject(&field.field("statusCode"), format!("must be 301, 302, 303, 307 or 308, not {other}")));
            302
        }
    };
    let path = written.path.as_ref().map(|path| path_change(path, &field.field("path"))).transpose();
    RedirectDraft { scheme, host, port, path: wrong.take(path).flatten(), status }
}

impl RedirectDraft {
    /// How the path is replaced, if it is.
    pub fn path(&self) -> Option<&PathChange> {
        self.path.as_ref()
    }

    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        self.host.as_ref().map_or(0, |host| host.as_str().len()) + self.path.as_ref().map_or(0, PathChange::bytes)
    }

    /// The redirect of requests that a match of a listener and host has.
    pub fn at(&self, listener: &Listener, host: &Host, matched: &PathMatch) -> Option<Redirect> {
        let usual = |scheme: Scheme| match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        };
        let own = if listener.protocol == Some(Protocol::Https) { Scheme::Https } else { Scheme::Http };
        let usual_there = usual(self.scheme.unwrap_or(own));
        let port = match (self.port, self.scheme) {
            (Some(port), _) => port,
            (None, Some(_)) => usual_there,
            (None, None) => listener.port,
        };
        let (host, port) = match (&self.host, host) {
            (Some(host), _) => (Some(host.clone()), Some(port).filter(|port| *port != usual_there)),
            (None, _) if port != usual_there => (None, Some(port)),
            (None, _) if listener.port == usual(own) => (None, None),
            (None, Host::Exact(name)) => (Some(name.clone()), None),
            (None, Host::Wildcard(_) | Host::Any) => (None, Some(port)),
        };
        let path = match &self.path {
            Some(change) => Some(change.at(matched)?),
            None => None,
        };
        Some(Redirect { scheme: self.scheme, host, port, path, status: self.status })
    }
}

/// Reads how a path is replaced.
pub(crate) fn path_change(written: &PathModifier, field: &FieldPath) -> Result<PathChange, Rejection> {
    let path = |name: &str, text: &Option<Box<str>>| {
        let text = match text.as_deref() {
            None => return Err(reject(field, format!("{name} must be set"))),
            Some("") => "/",
            Some(text) => text,
        };
        Path::parse(text).map_err(|error| reject(&field.field(name), error.to_string()))
    };
    match &written.r#type {
        Some(PathModifierType::ReplaceFullPath) => {
            path("replaceFullPath", &written.replace_full_path).map(PathChange::Whole)
        }
        Some(PathModifierType::ReplacePrefixMatch) => {
            path("replacePrefixMatch", &written.replace_prefix_match).map(PathChange::Prefix)
        }
        Some(PathModifierType::Unknown(word)) => {
            Err(reject(&field.field("type"), format!("{word} is neither ReplaceFullPath nor ReplacePrefixMatch")))
        }
        None => Err(reject(field, "type must be set")),
    }
}

impl PathChange {
    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        let (PathChange::Whole(path) | PathChange::Prefix(path)) = self;
        path.as_str().len()
    }

    /// How the paths of a match are rewritten; nothing where its paths have no prefix that could be replaced.
    pub fn at(&self, matched: &PathMatch) -> Option<PathRewrite> {
        match (self, matched) {
            (PathChange::Whole(path), _) => Some(PathRewrite::Whole(path.clone().into())),
            (PathChange::Prefix(path), PathMatch::Below(matched) | PathMatch::Prefix(matched)) => {
                Some(PathRewrite::Below { matched: matched.clone(), path: trimmed(path) })
            }
            (PathChange::Prefix(_), _) => None,
        }
    }
}

/// A path without final slashes.
fn trimmed(path: &Path) -> Path {
    Path::parse(path.as_str().trim_end_matches('/')).unwrap_or_else(|_| Path::root())
}

//! External authorization: who is asked whether a request may pass, and what it is told.

use crate::{HeaderName, Timeout, cluster::Extension, route::Path};
use std::{collections::BTreeMap, sync::Arc};

/// Whether somebody is asked before a request passes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Authorization {
    /// The route does not say: whoever the operator names for routes that do not.
    #[default]
    Unset,
    /// Whoever the operator names, if anybody, who is told these words besides; not in the place of the operator's.
    AskDefault(Arc<AuthContext>),
    /// Nobody.
    Disabled,
    /// This server.
    Ask(Arc<AuthCheck>),
    /// The server that the fleet has for all such routes ([`crate::listener::AuthorizationService`]), which is told these words besides.
    AskFleet(Arc<AuthContext>),
}

/// What an authorization server is told besides the request, by key.
pub type AuthContext = BTreeMap<Box<str>, Box<str>>;

/// A server that is asked, and what it is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthCheck {
    /// The server.
    pub server: Arc<AuthServer>,
    /// What it is told besides the request.
    pub context: AuthContext,
}

/// An authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthServer {
    /// The extension that it is; nothing where there is none that can be used, so that every call fails.
    pub extension: Option<Extension>,
    /// How it is asked.
    pub protocol: AuthProtocol,
    /// How long it may take.
    pub timeout: Timeout,
    /// Whether requests pass when it cannot be asked.
    pub fail_open: bool,
    /// How much of the body it is sent; none if not set.
    pub body: Option<AuthBody>,
}

/// How an authorization server is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AuthProtocol {
    /// By Envoy's gRPC API.
    Grpc,
    /// By a request like that of the client.
    Http {
        /// What stands before the path.
        path_prefix: Option<Path>,
        /// The headers of its answer that the backend is sent.
        upstream_headers: Vec<HeaderNamePattern>,
    },
}

/// Some headers, by their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderNamePattern {
    /// This name.
    Exact(HeaderName),
    /// Names that begin so.
    Prefix(HeaderName),
    /// Names that end so.
    Suffix(HeaderName),
    /// Names that contain it.
    Contains(HeaderName),
}

/// The body of a request as an authorization server is sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuthBody {
    /// The most bytes; at least 1.
    pub most: u32,
    /// Whether a longer one is cut; otherwise it is refused with 413.
    pub partial: bool,
    /// Whether it is sent as bytes, and not as text.
    pub as_bytes: bool,
}

impl Authorization {
    /// The check, if a server that the route names is asked.
    pub fn check(&self) -> Option<&AuthCheck> {
        match self {
            Authorization::Ask(check) => Some(check),
            Authorization::Unset
            | Authorization::AskDefault(_)
            | Authorization::AskFleet(_)
            | Authorization::Disabled => None,
        }
    }

    /// The same where the operator names a server, and whether it is asked about routes that do not say.
    #[must_use]
    pub fn or_default(&self, global: &Arc<AuthCheck>, is_on: bool) -> Authorization {
        match self {
            Authorization::Unset if is_on => Authorization::Ask(global.clone()),
            Authorization::AskDefault(context) => {
                // The operator's words win: its server decides by them.
                let mut all = AuthContext::clone(context);
                all.extend(global.context.iter().map(|(key, value)| (key.clone(), value.clone())));
                Authorization::Ask(Arc::new(AuthCheck { server: global.server.clone(), context: all }))
            }
            Authorization::Unset | Authorization::Disabled | Authorization::Ask(_) | Authorization::AskFleet(_) => {
                self.clone()
            }
        }
    }
}

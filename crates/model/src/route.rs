//! One route: which requests, what is done with them, who wrote it; and the virtual host that it ends up in.
//!
//! A route stands alone: it does not know its neighbours, its virtual host or its place in the order. Those are found
//! in assembly, from the matches themselves and from [`Precedence`].

pub mod action;
pub mod agreement;
pub mod authorization;
pub mod cookies;
pub mod cors;
pub mod host_condition;
mod list;
pub mod path;
pub mod policy;
pub mod precedence;
pub mod rate_limit;
mod size;

use crate::{ClusterId, HeaderName, Host, ObjectRef, OrDefault, Origin, Regex};
use std::{fmt, sync::Arc};

pub use action::{
    Action, CrossScheme, DirectResponse, Forward, Hash, HashOf, HostRewrite, InternalRedirect, Mirror, PathRewrite,
    Redirect, RetryPolicy, Scheme, UnavailableAnswer, UnavailableShare, Upgrade, WeightedCluster,
};
pub use agreement::{AgreedValue, Agreement};
pub use authorization::{AuthCheck, AuthContext, AuthServer, Authorization};
pub use cookies::CookieRewrite;
pub use cors::Cors;
pub use host_condition::{HostCondition, HostNames, Overlap};
pub use list::RouteList;
pub use path::{ACME, Path, PathAndQuery, PathError, PathMatch, PathReplacement};
pub use policy::{AddressOf, Cidr, HeaderChanges, HeaderDefaults, IpFilter, LocalRateLimitPolicy, Policy};
pub use precedence::{Dialect, Lengths, OnEqual, Precedence, Share, SplitMessages, TieBreak};
pub use rate_limit::{Descriptor, DescriptorEntry, GlobalRateLimit};

/// How deep a wildcard host reaches for this route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// `*.example.com` is `a.example.com` only.
    #[default]
    OneLabel,
    /// `*.example.com` is `a.b.example.com`, too.
    AnyLabels,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The paths that it matches.
    pub path: PathMatch,
    /// What requests for these paths must fulfil besides.
    pub conditions: Conditions,
    /// How deep the wildcard of the host reaches, if the host is a wildcard.
    pub depth: Depth,
    /// Of a hundred requests that it matches, how many it takes, counted from the first; the others go on to the next route. Assembly
    /// fills it in, where routes for the same requests share them; 0 to 99.
    pub fraction: Option<u8>,
    /// What is done with a request.
    pub action: Action,
    /// Policies that apply whatever the action is.
    pub policy: OrDefault<Policy>,
    /// Which of two routes that match the same requests is served.
    pub precedence: Precedence,
    /// Who wrote it.
    pub origin: Origin,
    /// The others who wrote it, where several routes were combined into this one.
    pub combined: Option<Box<[Origin]>>,
}

impl Route {
    /// Whether proxies follow redirects of its backends.
    pub fn follows_redirects(&self) -> bool {
        matches!(&self.action, Action::Forward(forward) if forward.internal_redirect.is_some())
    }

    /// Every cluster that its requests may reach, and that of whoever is asked about them.
    pub fn targets(&self) -> impl Iterator<Item = &ClusterId> {
        let forwarded = match &self.action {
            Action::Forward(forward) => Some(forward.targets()),
            Action::Redirect(_) | Action::DirectResponse(_) => None,
        };
        let asked = self.policy.authorization.check().and_then(|check| check.server.extension.as_ref());
        let asked = asked.map(|extension| &extension.cluster);
        forwarded.into_iter().flatten().chain(asked)
    }

    /// Everybody who wrote it.
    pub fn origins(&self) -> impl Iterator<Item = &Origin> {
        std::iter::once(&self.origin).chain(self.combined.iter().flatten())
    }
}

/// How a string is matched. The order is that in which routes are tried: the narrower first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StringMatch {
    /// It is this text.
    Exact(Arc<str>),
    /// The whole of it matches this pattern.
    Regex(Regex),
    /// It begins with this text; never empty.
    Prefix(Arc<str>),
    /// It ends with this text; never empty.
    Suffix(Arc<str>),
    /// It has this text in it; never empty.
    Contains(Arc<str>),
}

impl StringMatch {
    /// The text or pattern.
    pub fn as_str(&self) -> &str {
        match self {
            StringMatch::Exact(text)
            | StringMatch::Prefix(text)
            | StringMatch::Suffix(text)
            | StringMatch::Contains(text) => text,
            StringMatch::Regex(regex) => regex.as_str(),
        }
    }
}

/// How the value of a header or a query parameter is matched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueMatch {
    /// Its value matches.
    Text {
        /// How it is matched.
        text: StringMatch,
        /// Whether case is ignored.
        ignore_case: bool,
    },
    /// It is present.
    Present,
}

/// A condition about a header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderMatch {
    /// The header.
    pub name: HeaderName,
    /// Whether the match is inverted.
    pub invert: bool,
    /// How its value is matched.
    pub value: ValueMatch,
    /// Whether a missing header counts as an empty one.
    pub missing_is_empty: bool,
}

/// The longest name of a query parameter that Envoy accepts, in bytes.
pub const LONGEST_PARAMETER: usize = 1024;

/// A condition about a query parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryMatch {
    /// The parameter: 1 to [`LONGEST_PARAMETER`] bytes.
    pub name: Arc<str>,
    /// How its value is matched.
    pub value: ValueMatch,
}

/// Everything that a request must fulfil besides its path; sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conditions {
    /// About headers.
    pub headers: Vec<HeaderMatch>,
    /// About query parameters.
    pub query: Vec<QueryMatch>,
    /// About the host, where the route may be in a virtual host that is wider than what it is for.
    pub host: Option<HostCondition>,
}

impl Conditions {
    /// Whether every request fulfils them.
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.query.is_empty() && self.host.is_none()
    }

    /// The conditions in the one order that equal sets have in common.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.headers.sort();
        self.headers.dedup();
        self.query.sort();
        self.query.dedup();
        self
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for header in &self.headers {
            write!(f, " and header {}", header.name)?;
        }
        for parameter in &self.query {
            write!(f, " and parameter {}", parameter.name)?;
        }
        if let Some(host) = &self.host {
            write!(f, " and host {host}")?;
        }
        Ok(())
    }
}

/// One virtual host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VirtualHost {
    /// The host.
    pub host: Host,
    /// Its routes, first match wins.
    pub routes: RouteList,
    /// For a wildcard host: the routes of the catch-all, for names deeper than one label below the wildcard. Envoy matches those
    /// names with this host, though no object names them.
    pub catch_all: RouteList,
    /// The local rate limit that all routes without one of their own share.
    pub local_rate_limit: Option<Arc<LocalRateLimitPolicy>>,
}

impl VirtualHost {
    /// The object whose routes it has, those for deeper names among them, if they are all of one object.
    pub fn only_author(&self) -> Option<&ObjectRef> {
        let mut origins = self.routes.iter().chain(&self.catch_all).flat_map(|route| route.origins());
        let first = &origins.next()?.object;
        origins.all(|origin| origin.object == *first).then_some(first)
    }
}

//! One route: which requests, what is done with them, on whose word.
//!
//! A route stands alone: it does not know its neighbours, its virtual host or its place in the order. Those are found in
//! assembly, from [`Rank`] and from the matches themselves.

pub mod action;
pub mod clients;
pub mod condition;
pub mod cookies;
pub mod cors;
pub mod defaults;
pub mod limit;
pub mod path;
pub mod policy;
pub mod rank;

pub use action::{
    Action, CrossScheme, Forward, Hash, HashOf, HostRewrite, InternalRedirect, Mirror, Redirect, RedirectPath, Respond,
    RetryPolicy, Scheme, WeightedCluster,
};
pub use clients::{AddressOf, Cidr, ClientFilter};
pub use condition::{Conditions, HeaderMatch, QueryMatch, Test, TextMatch};
pub use cookies::CookieRewrite;
pub use cors::Cors;
pub use defaults::HeaderDefaults;
pub use limit::LocalLimit;
pub use path::{ACME, Path, PathError, PathMatch};
pub use policy::{HeaderChanges, Policy};
pub use rank::{Dialect, Rank};

use crate::Origin;

/// How deep a wildcard host reaches for this route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// `*.example.com` is `a.example.com` only: Ingress and HTTPProxy.
    #[default]
    OneLabel,
    /// `*.example.com` is `a.b.example.com`, too: the Gateway API.
    AnyLabels,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// Which paths.
    pub path: PathMatch,
    /// Which of the requests for these paths.
    pub conditions: Conditions,
    /// How deep the host's wildcard reaches, where the host is one.
    pub depth: Depth,
    /// What is done.
    pub action: Action,
    /// What is done besides.
    pub policy: Policy,
    /// Who wins where two routes match alike.
    pub rank: Rank,
    /// Who wrote it.
    pub origin: Origin,
}

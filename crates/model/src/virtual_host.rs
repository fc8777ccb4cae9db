//! A virtual host: every route of one host on one listener, in the order a proxy must try them.

use crate::{Host, ListenerId, Route, route::LocalLimit, tls::Termination};
use std::{fmt, sync::Arc};

/// Where a virtual host is looked up: the listener, and under TLS the filter chain that the connection took.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteTableId {
    /// The listener.
    pub listener: ListenerId,
    /// What the hosts of the chain have in common; nothing in the clear.
    pub termination: Option<Termination>,
}

impl fmt::Display for RouteTableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.termination {
            None => write!(f, "{}", self.listener),
            Some(termination) => write!(f, "{}/{termination}", self.listener),
        }
    }
}

/// One virtual host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VirtualHost {
    /// The host.
    pub host: Host,
    /// Its routes, first match wins.
    pub routes: Vec<Arc<Route>>,
    /// For a wildcard host: the routes for names that lie deeper than one label below it. A proxy takes those names for
    /// this host's, but they are nobody's, and so belong to whoever takes every host.
    pub deeper: Vec<Arc<Route>>,
    /// How many requests are taken of all routes together that say nothing about it themselves.
    pub limit: Option<Arc<LocalLimit>>,
}

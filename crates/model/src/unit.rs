//! A unit: what one object of a dialect asks for, before it meets what others ask for.

use crate::{Host, ListenerId, ObjectRef, Origin, Route, Verdict, route::Rank, tls::Handling};
use std::sync::Arc;

/// A route for a host of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePiece {
    /// The listener.
    pub listener: ListenerId,
    /// The host.
    pub host: Host,
    /// The route.
    pub route: Arc<Route>,
}

/// TLS for a host of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPiece {
    /// The listener.
    pub listener: ListenerId,
    /// The host; never [`Host::Any`].
    pub host: Host,
    /// What is done with its connections.
    pub handling: Handling,
    /// Who wins where two objects ask for one host.
    pub rank: Rank,
    /// Who wrote it.
    pub origin: Origin,
}

/// What one object asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The object.
    pub subject: ObjectRef,
    /// The hosts that it names, on each listener: requests for them go to no other host, also where none of its routes is
    /// left.
    pub hosts: Vec<(ListenerId, Host)>,
    /// Its routes, for these hosts.
    pub routes: Vec<RoutePiece>,
    /// Its TLS hosts.
    pub tls: Vec<TlsPiece>,
    /// The other objects that it is made of: what a root includes.
    pub members: Vec<ObjectRef>,
    /// Whether it is nothing by itself, and of use only as a member of another.
    pub part: bool,
    /// What became of what it asked for, as far as the object alone can tell.
    pub verdicts: Vec<Verdict>,
}

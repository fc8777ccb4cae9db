//! A translation: what one object of a dialect asks for, before it meets what others ask for.

use crate::{
    FieldPath, Host, ListenerId, ObjectRef, Origin, Route, Verdict,
    jwt::{JwtProvider, JwtProviderId},
    listener::{ListenerClaim, StreamPiece},
    route::{
        Conditions, Cors, Depth, GlobalRateLimit, HostCondition, IpFilter, LocalRateLimitPolicy, PathMatch, Precedence,
    },
    shared_routes::{ConditionalHost, RouteSelector, SharedRoutes},
    status::StatusFacts,
    tls::{Termination, TlsMode},
};
use std::{cmp::Ordering, sync::Arc};

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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsPiece {
    /// The listener.
    pub listener: ListenerId,
    /// The host; [`Host::Any`] also has clients that name no host.
    pub host: Host,
    /// What is done with its connections.
    pub mode: TlsMode,
    /// Its requests are also taken from clients that name no host, or one that the listener does not know: how their
    /// connections are terminated then.
    pub fallback: Option<Termination>,
    /// Which hosts without TLS of their own are served under its certificate, where it is a wildcard or [`Host::Any`].
    pub covers: Covers,
    /// Which of two objects decides about the host.
    pub precedence: Precedence,
    /// Who wrote it.
    pub origin: Origin,
}

/// Which hosts without TLS of their own are served under the certificate of a wider one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Covers {
    /// How deep below a wildcard they may lie.
    pub depth: Depth,
    /// Whether every route of the listener may. Otherwise the namespace of the Secret decides, or its owner's delegation.
    pub every_route: bool,
}

/// What holds for all routes of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostPolicy {
    /// Which clients may send requests, by IP address.
    pub ip_filter: Option<IpFilter>,
    /// The local rate limit.
    pub local_rate_limit: Option<Arc<LocalRateLimitPolicy>>,
    /// The global rate limit.
    pub global_limit: Option<Arc<GlobalRateLimit>>,
    /// The CORS policy.
    pub cors: Option<Arc<Cors>>,
    /// The provider whose token a request must have.
    pub jwt: Option<Arc<JwtProviderId>>,
}

/// The conditions under which a root includes an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// The object.
    pub object: ObjectRef,
    /// The paths of its routes.
    pub path: PathMatch,
    /// The conditions of its routes.
    pub conditions: Conditions,
}

/// A part of another object that something is attached to: one of its listeners by name, or all of it where the name is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Section {
    /// The object.
    pub object: ObjectRef,
    /// The name of the part.
    pub name: Arc<str>,
}

/// A part of a translation that depends on something that has not been read yet: some of its pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPart {
    /// The listener that they are for; none if they are for whichever.
    pub listener: Option<ListenerId>,
    /// The field of the object that they come from.
    pub field: FieldPath,
}

impl PendingPart {
    /// Whether pieces for a listener may be a part of it.
    pub fn is_on(&self, listener: &ListenerId) -> bool {
        self.listener.as_ref().is_none_or(|own| own == listener)
    }
}

/// What one object asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The object.
    pub subject: ObjectRef,
    /// The hosts that it names, on each listener: requests for them go to no other host, also if none of its routes is valid.
    pub hosts: Vec<(ListenerId, Host)>,
    /// Its routes, for these hosts; by listener and host (see [`Translation::sorted`]).
    pub routes: Vec<RoutePiece>,
    /// Its TLS hosts; by listener and host.
    pub tls: Vec<TlsPiece>,
    /// The listeners that it asks for; by listener.
    pub listeners: Vec<ListenerClaim>,
    /// Where plain TCP and UDP listeners lead; by listener.
    pub streams: Vec<StreamPiece>,
    /// Its routes for hosts that take them by a selector.
    pub shared: Box<[SharedRoutes]>,
    /// By what its hosts take shared routes; by listener and host.
    pub selectors: Box<[RouteSelector]>,
    /// Its hosts that are parts of others.
    pub conditional: Box<[ConditionalHost]>,
    /// The other objects that it is made of: what a root includes.
    pub includes: Vec<ObjectRef>,
    /// The conditions under which it includes them, one for each path of includes; by object.
    pub inclusions: Vec<Inclusion>,
    /// What holds for all routes, its own and theirs.
    pub policy: HostPolicy,
    /// The providers of tokens that its routes may require; by name.
    pub jwt_providers: Vec<JwtProvider>,
    /// What it is attached to: who counts what is attached looks for it there.
    pub attached: Vec<Section>,
    /// The objects behind its routes, whether they can be used or not; sorted.
    pub backend_objects: Vec<ObjectRef>,
    /// The objects of which it says how proxies connect to them: it is served where others have routes to these.
    pub configures: Box<[ObjectRef]>,
    /// What its status says, where verdicts are not enough.
    pub facts: Option<Arc<StatusFacts>>,
    /// Whether it is only served when another object includes it.
    pub is_child: bool,
    /// The objects, of these and itself, whose part of it depends on a Secret that has not been read yet; sorted.
    pub pending: Vec<ObjectRef>,
    /// Where it is pending itself, but not as a whole: the parts that are. All else is what it is to be.
    pub pending_parts: Vec<PendingPart>,
    /// What became of what it asked for, as far as the object alone can tell; sorted.
    pub verdicts: Vec<Verdict>,
}

impl Translation {
    /// A translation that asks for nothing.
    pub fn empty(subject: ObjectRef) -> Self {
        Self {
            subject,
            hosts: Vec::new(),
            routes: Vec::new(),
            tls: Vec::new(),
            listeners: Vec::new(),
            streams: Vec::new(),
            shared: Box::default(),
            selectors: Box::default(),
            conditional: Box::default(),
            includes: Vec::new(),
            inclusions: Vec::new(),
            policy: HostPolicy::default(),
            jwt_providers: Vec::new(),
            attached: Vec::new(),
            backend_objects: Vec::new(),
            configures: Box::default(),
            facts: None,
            is_child: false,
            pending: Vec::new(),
            pending_parts: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// Whether the part of an object depends on a Secret that has not been read yet.
    pub fn is_pending(&self, object: &ObjectRef) -> bool {
        self.pending.binary_search(object).is_ok()
    }

    /// The translation with its pieces in the order of their targets, and in the order they had for each. Whoever makes one ends
    /// with this, so that a host finds its own pieces without a look at those of the others. Lists have no room for more: most have one
    /// element, and there are very many translations.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.routes.sort_by(|a, b| (&a.listener, &a.host).cmp(&(&b.listener, &b.host)));
        self.tls.sort_by(|a, b| (&a.listener, &a.host).cmp(&(&b.listener, &b.host)));
        self.listeners.sort_by(|a, b| a.listener.cmp(&b.listener));
        self.streams.sort_by(|a, b| a.listener.cmp(&b.listener));
        self.selectors.sort_by(|a, b| (&a.listener, &a.host).cmp(&(&b.listener, &b.host)));
        self.inclusions.sort_by(|a, b| a.object.cmp(&b.object));
        self.hosts.shrink_to_fit();
        self.routes.shrink_to_fit();
        self.tls.shrink_to_fit();
        self.attached.shrink_to_fit();
        self
    }

    /// All its routes, for whichever host.
    pub fn all_routes(&self) -> impl Iterator<Item = &Arc<Route>> {
        let shared = self.shared.iter().flat_map(|shared| &shared.routes);
        self.routes.iter().map(|piece| &piece.route).chain(shared)
    }

    /// The routes for a host of a listener.
    pub fn routes_of(&self, listener: &ListenerId, host: &Host) -> &[RoutePiece] {
        of(&self.routes, |piece| (&piece.listener, &piece.host).cmp(&(listener, host)))
    }

    /// By what its hosts take shared routes, with the condition of those that are parts of others.
    pub fn all_selectors(&self) -> impl Iterator<Item = (&RouteSelector, Option<&HostCondition>)> {
        let conditional = self.conditional.iter();
        let conditional = conditional.filter_map(|host| Some((host.selector.as_ref()?, Some(&host.condition))));
        self.selectors.iter().map(|selector| (selector, None)).chain(conditional)
    }

    /// By what a host of a listener takes shared routes.
    pub fn selectors_of(&self, listener: &ListenerId, host: &Host) -> &[RouteSelector] {
        of(&self.selectors, |selector| (&selector.listener, &selector.host).cmp(&(listener, host)))
    }

    /// The conditions under which it includes an object.
    pub fn inclusions_of(&self, object: &ObjectRef) -> &[Inclusion] {
        of(&self.inclusions, |place| place.object.cmp(object))
    }

    /// The listeners of this id that it asks for.
    pub fn claims_of(&self, listener: &ListenerId) -> &[ListenerClaim] {
        of(&self.listeners, |claim| claim.listener.cmp(listener))
    }

    /// Where it wants a plain TCP or UDP listener to lead.
    pub fn streams_of(&self, listener: &ListenerId) -> &[StreamPiece] {
        of(&self.streams, |piece| piece.listener.cmp(listener))
    }

    /// What it asks for under TLS for a host of a listener.
    pub fn tls_of(&self, listener: &ListenerId, host: &Host) -> &[TlsPiece] {
        of(&self.tls, |piece| (&piece.listener, &piece.host).cmp(&(listener, host)))
    }
}

/// The pieces of a sorted list that compare equal.
fn of<T>(pieces: &[T], compare: impl Fn(&T) -> Ordering) -> &[T] {
    let start = pieces.partition_point(|piece| compare(piece).is_lt());
    let end = start + pieces[start..].partition_point(|piece| compare(piece).is_eq());
    &pieces[start..end]
}

#[cfg(test)]
mod tests {
    //! A host finds its own pieces, all of them, in their order.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::FleetId;
    use crate::route::{Action, Depth, Dialect, DirectResponse, Path, PathMatch, TieBreak};

    const DIALECT: Dialect = Dialect { rank: 0, tie_break: TieBreak::Conditions, falls_through: false };

    fn piece(listener: ListenerId, host: &str, index: u32) -> RoutePiece {
        let (namespace, name) = (Arc::from("a"), Arc::from("b"));
        let route = Route {
            path: PathMatch::Prefix(Path::root()),
            conditions: Default::default(),
            depth: Depth::OneLabel,
            action: Action::DirectResponse(DirectResponse::unavailable()),
            policy: Default::default(),
            precedence: Precedence::by_age(DIALECT, 0, namespace, name, index),
            origin: ObjectRef::new(kinds::kind::SERVICE, "a", "b").at("spec"),
            fraction: None,
            combined: None,
        };
        RoutePiece { listener, host: Host::parse(host).unwrap(), route: Arc::new(route) }
    }

    #[test]
    fn lists_have_no_room_for_more() {
        let mut routes = vec![piece(ListenerId::http(), "a.example.com", 0)];
        routes.reserve(10);
        let subject = ObjectRef::new(kinds::kind::SERVICE, "a", "b");
        let translation = Translation { routes, ..Translation::empty(subject) }.sorted();
        assert_eq!(translation.routes.capacity(), 1);
    }

    #[test]
    fn a_host_finds_its_own_pieces() {
        let mut routes = Vec::new();
        for index in 0..3 {
            for host in ["b.example.com", "", "*.example.com", "a.example.com"] {
                routes.extend([ListenerId::https(), ListenerId::http()].map(|listener| piece(listener, host, index)));
            }
        }
        let translation =
            Translation { routes, ..Translation::empty(ObjectRef::new(kinds::kind::SERVICE, "a", "b")) }.sorted();
        for host in ["a.example.com", "b.example.com", "*.example.com", ""] {
            let host = Host::parse(host).unwrap();
            let found = translation.routes_of(&ListenerId::http(), &host);
            assert!(found.iter().all(|piece| piece.listener == ListenerId::http() && piece.host == host));
            assert_eq!(found.iter().map(|piece| piece.route.precedence.index).collect::<Vec<_>>(), [0, 1, 2]);
        }
        let elsewhere = ListenerId::new(FleetId::named("a", "b"), "ingress_http");
        assert!(translation.routes_of(&elsewhere, &Host::parse("a.example.com").unwrap()).is_empty());
        assert!(translation.routes_of(&ListenerId::http(), &Host::parse("c.example.com").unwrap()).is_empty());
    }
}

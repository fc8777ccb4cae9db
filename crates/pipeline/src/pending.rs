//! What stands in for the parts of a translation that depend on a Secret that has not been read yet.
//!
//! In: the translation as it would be without that Secret, which names the objects that depend on it, and the last translation that depended
//! on nothing unknown, if there was one. Out: the translation that is served meanwhile. It is never the translation without the Secret, which
//! would close what is open, or open what is to be protected.
//!
//! A root decides about the host and keeps all of it; nothing, where there was nothing before. What it no longer asks for it
//! gives up at once: a host or a port that it named before may have another owner. A listener that is to be another is given up with
//! everything on it.
//!
//! Where an object says which of its parts depend on what is not known (a rule, a listener), these alone are what they were, and the
//! others are in effect as they are now: a permission that is taken away is not waited for. A part that was not there before
//! answers 503, or closes its connections. An object that has lost a permission itself keeps nothing: it is not known which of its
//! pieces depend on it.
//!
//! An object that a root includes keeps its own routes only, so that it cannot hold up the others. It keeps them where all
//! that others say about them is what it was: the hosts and their listeners, the policies of the host, and the places that
//! the includes on the way to it give it. Otherwise the routes that it has now answer 503, and so do those of a new object:
//! neither is a stricter parent disobeyed, nor does a wider route take the requests.

use crate::translations::TranslationRow;
use model::{
    Code, Host, ListenerId, ObjectRef, Origin, Route, Translation,
    listener::ListenerClaim,
    route::{Action, DirectResponse, HostCondition},
    tls::ClientValidation,
    translation::{PendingPart, RoutePiece, TlsPiece},
};
use std::{collections::BTreeSet, sync::Arc};

/// What is told about a reference to something that its owner does not permit.
const NOT_PERMITTED: [Code; 4] =
    [Code::DelegationMissing, Code::ProxyCaNotDelegated, Code::ReferenceNotPermitted, Code::ExtensionNotPermitted];

/// What a translation that is pending as a whole asks for; nothing of one that is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// Where it, or an object that it includes, refers to something that its owner does not permit; also of one that is pending in
    /// part.
    forbidden: Vec<Origin>,
    /// The hosts; sorted.
    hosts: Vec<Host>,
    /// The conditions of hosts that are parts of others; sorted.
    conditions: Vec<HostCondition>,
    /// The listeners; by listener.
    listeners: Vec<ListenerClaim>,
    /// The plain TCP and UDP listeners that it has targets for; sorted.
    streams: Vec<ListenerId>,
}

impl Claimed {
    /// What a translation asks for.
    pub fn by(translation: &Translation) -> Self {
        let forbidden = not_permitted(translation).cloned().collect();
        if !translation.is_pending(&translation.subject) || !translation.pending_parts.is_empty() {
            return Self { forbidden, ..Self::default() };
        }
        let tls = translation.tls.iter().map(|piece| &piece.host);
        let hosts = translation.hosts.iter().map(|(_, host)| host).chain(tls).cloned().collect();
        let streams = translation.streams.iter().map(|piece| piece.listener.clone()).collect();
        let listeners = translation.listeners.clone();
        let conditions = translation.conditional.iter().map(|host| host.condition.clone()).collect();
        let (hosts, streams) = (merged(&[], hosts), merged(&[], streams));
        Self { forbidden, hosts, conditions: merged(&[], conditions), listeners, streams }
    }

    /// Whether an object refers to something that its owner no longer permits.
    fn has_lost_permission(&self, object: &ObjectRef, good: &Translation) -> bool {
        let mut forbidden = self.forbidden.iter().filter(|origin| origin.object == *object);
        forbidden.any(|origin| !not_permitted(good).any(|before| before == origin))
    }

    fn has_host(&self, host: &Host) -> bool {
        self.hosts.binary_search(host).is_ok()
    }

    fn has_condition(&self, condition: &HostCondition) -> bool {
        self.conditions.binary_search(condition).is_ok()
    }

    fn has_stream(&self, listener: &ListenerId) -> bool {
        self.streams.binary_search(listener).is_ok()
    }

    /// Whether a listener is asked for as it was: where it listens, what it takes, and whose ports it shares.
    fn has_listener(&self, claim: &ListenerClaim) -> bool {
        let what = |claim: &ListenerClaim| {
            let ListenerClaim { listener, address, port, protocol, host, owner, plaintext_of, .. } = claim.clone();
            (listener, address, port, protocol, host, owner, plaintext_of)
        };
        let start = self.listeners.partition_point(|other| other.listener < claim.listener);
        let same = self.listeners[start..].iter().take_while(|other| other.listener == claim.listener);
        same.into_iter().any(|other| what(other) == what(claim))
    }
}

/// Where a translation refers to something that its owner does not permit.
fn not_permitted(translation: &Translation) -> impl Iterator<Item = &Origin> {
    let not_permitted = translation.verdicts.iter().filter(|verdict| NOT_PERMITTED.contains(&verdict.code));
    not_permitted.map(|verdict| &verdict.origin)
}

/// The translation without what its pending objects bring: the routes of those that it includes answer 503.
pub fn without(mut translation: Translation) -> Translation {
    if !translation.pending_parts.is_empty() {
        let Translation { pending_parts, routes, .. } = &mut translation;
        let is_pending = |piece: &&mut RoutePiece| is_among(pending_parts, &piece.listener, &piece.route.origin);
        for piece in routes.iter_mut().filter(is_pending) {
            piece.route = unavailable(&piece.route);
        }
        translation.verdicts.clear();
        return translation;
    }
    if translation.is_pending(&translation.subject) {
        let Translation { subject, includes, is_child, pending, .. } = translation;
        return Translation { includes, is_child, pending, ..Translation::empty(subject) };
    }
    let pending = &translation.pending;
    let is_pending = |object: &ObjectRef| pending.binary_search(object).is_ok();
    for piece in translation.routes.iter_mut().filter(|piece| is_pending(&piece.route.origin.object)) {
        piece.route = unavailable(&piece.route);
    }
    for route in translation.shared.iter_mut().flat_map(|shared| &mut shared.routes) {
        if is_pending(&route.origin.object) {
            *route = unavailable(route);
        }
    }
    translation.verdicts.retain(|verdict| !is_pending(&verdict.origin.object));
    translation
}

/// The same requests answer 503.
fn unavailable(route: &Route) -> Arc<Route> {
    let (action, policy) = (Action::DirectResponse(DirectResponse::unavailable()), Default::default());
    Arc::new(Route { action, policy, ..route.clone() })
}

/// The translation that was [computed](without), with what its pending objects brought before. It refers to what both refer to.
pub fn kept(good: &TranslationRow, computed: TranslationRow) -> TranslationRow {
    let TranslationRow { mut translation, mut secrets, claimed, .. } = computed;
    if !translation.pending_parts.is_empty() {
        translation = with_parts_of(good, translation);
    } else if translation.is_pending(&translation.subject) {
        if claimed.has_lost_permission(&translation.subject, good) {
            return TranslationRow { claimed, ..TranslationRow::new(translation, secrets) };
        }
        let Translation { includes, pending, .. } = translation;
        translation = good.translation.clone();
        translation.listeners.retain(|claim| claimed.has_listener(claim));
        let gone = good.listeners.iter().filter(|claim| !claimed.has_listener(claim));
        let gone: BTreeSet<&ListenerId> = gone.map(|claim| &claim.listener).collect();
        let is_claimed = |listener: &ListenerId, host: &Host| claimed.has_host(host) && !gone.contains(listener);
        translation.hosts.retain(|(listener, host)| is_claimed(listener, host));
        translation.routes.retain(|piece| is_claimed(&piece.listener, &piece.host));
        translation.tls.retain(|piece| is_claimed(&piece.listener, &piece.host));
        let selectors = translation.selectors.into_iter();
        translation.selectors = selectors.filter(|it| is_claimed(&it.listener, &it.host)).collect();
        let conditional = translation.conditional.into_iter();
        translation.conditional =
            conditional.filter(|it| claimed.has_condition(&it.condition) && !gone.contains(&it.listener)).collect();
        translation.streams.retain(|piece| claimed.has_stream(&piece.listener) && !gone.contains(&piece.listener));
        translation.includes = merged(&translation.includes, includes);
        translation.pending = pending;
    } else if is_same_host(good, &translation) {
        let mut kept = translation.pending.clone();
        kept.retain(|object| translation.inclusions_of(object) == good.inclusions_of(object));
        kept.retain(|object| !claimed.has_lost_permission(object, good));
        let is_kept = |object: &ObjectRef| kept.binary_search(object).is_ok();
        translation.routes.retain(|piece| !is_kept(&piece.route.origin.object));
        translation.routes.extend(good.routes.iter().filter(|piece| is_kept(&piece.route.origin.object)).cloned());
    }
    secrets = merged(&good.secrets, secrets);
    TranslationRow { claimed, ..TranslationRow::new(translation.sorted(), secrets) }
}

/// The translation with its pending parts as they were: those for the same listener and host, of routes those that match the same
/// requests. What is said about the object is what was said.
fn with_parts_of(good: &Translation, mut translation: Translation) -> Translation {
    let Translation { pending_parts, hosts, routes, tls, streams, .. } = &mut translation;
    let is_pending = |piece: &&mut RoutePiece| is_among(pending_parts, &piece.listener, &piece.route.origin);
    for piece in routes.iter_mut().filter(is_pending) {
        let now = Route::clone(&piece.route);
        let before = good.routes_of(&piece.listener, &piece.host).iter().map(|before| &before.route);
        let same = before.into_iter().find(|before| (&before.path, &before.conditions) == (&now.path, &now.conditions));
        if let Some(before) = same {
            let Route { precedence, origin, .. } = now;
            piece.route = Arc::new(Route { precedence, origin, ..Route::clone(before) });
        }
    }
    // A listener whose certificates are not known has no piece where closing its connections would close those of others.
    let is_asked_for = |before: &TlsPiece, now: &[TlsPiece]| {
        let key = (&before.listener, &before.host);
        let is_part = |part: &PendingPart| part.listener.is_some() || part.field == before.origin.field;
        pending_parts.iter().any(|part| part.is_on(&before.listener) && is_part(part))
            && (hosts.iter().any(|(listener, host)| (listener, host) == key)
                || now.iter().any(|now| (&now.listener, &now.host) == key))
    };
    let before: Vec<_> = good.tls.iter().filter(|before| is_asked_for(before, tls)).cloned().collect();
    tls.retain(|now| !before.iter().any(|before| (&before.listener, &before.host) == (&now.listener, &now.host)));
    tls.extend(before);
    for piece in streams.iter_mut().filter(|piece| is_among(pending_parts, &piece.listener, &piece.origin)) {
        if let Some(before) = good.streams_of(&piece.listener).first() {
            piece.target = before.target.clone();
        }
    }
    translation.facts.clone_from(&good.facts);
    translation.verdicts.clone_from(&good.verdicts);
    translation
}

fn is_among(parts: &[PendingPart], listener: &ListenerId, origin: &Origin) -> bool {
    parts.iter().any(|part| part.is_on(listener) && part.field == origin.field)
}

/// Whether two translations of a root say the same for all routes. A certificate is none of their business; whether there is TLS, and
/// which clients may connect, is.
fn is_same_host(one: &Translation, other: &Translation) -> bool {
    let tls = |translation: &Translation| -> Vec<(ListenerId, Host, Option<Arc<ClientValidation>>)> {
        let clients = |piece: &TlsPiece| piece.mode.termination().and_then(|termination| termination.clients.clone());
        translation.tls.iter().map(|piece| (piece.listener.clone(), piece.host.clone(), clients(piece))).collect()
    };
    one.hosts == other.hosts && one.policy == other.policy && tls(one) == tls(other)
}

fn merged<T: Ord + Clone>(some: &[T], mut more: Vec<T>) -> Vec<T> {
    more.extend(some.iter().cloned());
    more.sort_unstable();
    more.dedup();
    more
}

#[cfg(test)]
mod tests {
    //! A pending object keeps the listeners that it still asks for, and what is attached to them.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use model::{
        FleetId, PortProtocol,
        listener::{StreamPiece, StreamTarget},
        route::{Dialect, Precedence, TieBreak},
    };
    use std::net::Ipv4Addr;

    const DIALECT: Dialect = Dialect { rank: 0, tie_break: TieBreak::Age, falls_through: false };

    fn subject() -> ObjectRef {
        ObjectRef::new(kinds::kind::CONFIG_MAP, "default", "gateway")
    }

    fn id(name: &str) -> ListenerId {
        ListenerId::new(FleetId::Shared, name)
    }

    fn precedence() -> Precedence {
        Precedence::by_age(DIALECT, 0, "default".into(), "gateway".into(), 0)
    }

    fn claim(name: &str, port: u16, protocol: PortProtocol, host: &str) -> ListenerClaim {
        ListenerClaim {
            listener: id(name),
            address: Ipv4Addr::UNSPECIFIED.into(),
            port,
            protocol,
            host: Host::parse(host).unwrap(),
            owner: Some(subject()),
            plaintext_of: None,
            overrides: Default::default(),
            precedence: precedence(),
            origin: subject().at("spec.listeners"),
        }
    }

    fn stream(name: &str) -> StreamPiece {
        let origin = subject().at("spec.backends");
        StreamPiece { listener: id(name), target: Arc::<StreamTarget>::default(), precedence: precedence(), origin }
    }

    /// Every host of each HTTP listener is named, and each other listener has a target.
    fn translation(listeners: Vec<ListenerClaim>) -> Translation {
        let (http, others): (Vec<_>, Vec<_>) = listeners.iter().partition(|claim| claim.protocol.has_hosts());
        let hosts = http.into_iter().map(|claim| (claim.listener.clone(), Host::Any)).collect();
        let streams = others.into_iter().map(|claim| stream(claim.listener.name())).collect();
        Translation { listeners, hosts, streams, ..Translation::empty(subject()) }.sorted()
    }

    #[test]
    fn a_pending_object_gives_up_the_listeners_that_it_no_longer_asks_for() {
        let (http, tcp) = (PortProtocol::Http, PortProtocol::Tcp);
        let good = translation(vec![
            claim("stays", 80, http, "*"),
            claim("gone", 81, http, "*"),
            claim("moved", 82, http, "*"),
            claim("narrowed", 83, http, "*"),
            claim("stream", 90, tcp, "*"),
            claim("other-stream", 91, tcp, "*"),
        ]);
        let mut now = translation(vec![
            claim("stays", 80, http, "*"),
            claim("moved", 8082, http, "*"),
            claim("narrowed", 83, http, "*.example.com"),
            claim("stream", 90, tcp, "*"),
            claim("new", 84, http, "*"),
        ]);
        now.pending = vec![subject()];
        let claimed = Claimed::by(&now);
        let computed = TranslationRow { claimed, ..TranslationRow::new(without(now), Vec::new()) };
        let kept = kept(&TranslationRow::new(good, Vec::new()), computed);
        let names = |ids: Vec<&ListenerId>| ids.into_iter().map(|id| id.name().to_string()).collect::<Vec<_>>();
        assert_eq!(names(kept.listeners.iter().map(|claim| &claim.listener).collect()), ["stays", "stream"]);
        assert_eq!(names(kept.hosts.iter().map(|(listener, _)| listener).collect()), ["stays"]);
        assert_eq!(names(kept.streams.iter().map(|piece| &piece.listener).collect()), ["stream"]);
    }
}

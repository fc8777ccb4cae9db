//! What may be sent now, and what has to wait: make before break.
//!
//! - A resource waits for the clusters that it points at, its own only. A cluster the client has in any version is
//!   there. A new one is there once the response was taken. Envoy withholds that answer while *any* cluster warms, so
//!   waiting for it alone would let one tenant hold up all; it is also there once its endpoints and secrets were taken,
//!   or, if Envoy warms it by means that cannot be seen from here, [`Limits::warming_timeout`](crate::Limits) has passed.
//! - A listener waits for its scopes, once the client has subscribed to scopes: an Envoy that has some does not wait for
//!   those of a new listener and would answer 404. One that has none yet asks for them only after its listeners.
//! - A removal waits until nothing that the client may still have points there. What the client listed from an earlier
//!   stream in a version that is gone may point anywhere. That of a cluster which a filter called until a moment ago waits for the
//!   calls that are under way ([`Limits::filter_calls`](crate::Limits)): Envoy ends them with the cluster, and a request that a
//!   server was asked about would be rejected.
//! - A scope that the client has with other routes waits for the route configuration that it is to have instead: Envoy has no routes
//!   for it in between. A new scope does not: there is nothing to keep, and Envoy asks for a configuration that a scope names.
//! - Routes wait until the client was sent the filters that they name, as they are now: responses are taken in their order. A filter
//!   that does nothing any more waits as a removal does, so that nothing it protected is open for a moment.
//! - A cluster that uses secrets waits while an answer about one of them is due.
//! - A certificate that a client asks for by the name of a host waits for the host's scope, where it names one, and for the listener
//!   that lists the name: see [`listing`](super::listing).
//! - Endpoints and other secrets wait for nothing, and so does the answer that something does not exist.
//!
//! What does not exist or is withheld, what the client did not subscribe to and what it rejected holds nothing up (the
//! last after the same time), so nothing waits for what never comes.

use std::collections::HashSet;
use std::time::Instant;

use super::Session;
use super::flow::{Acked, DefaultState, Delivery, Flow};
use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Role};

/// How many times longer a route waits for a cluster that the client gives no sign of having.
const UNSEEN: u32 = 5;

/// Whether something may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    /// Not before something is answered, or that moment.
    Blocked(Option<Instant>),
}

impl Readiness {
    pub(super) fn until(deadline: Instant, now: Instant) -> Readiness {
        if now >= deadline { Readiness::Ready } else { Readiness::Blocked(Some(deadline)) }
    }
}

/// What the client may still use although the table no longer says so.
pub(super) struct ReferencedResources {
    names: HashSet<(Kind, Name)>,
    prefixes: Vec<(Kind, Name)>,
    anything: [bool; Kind::COUNT],
}

impl Session {
    /// Whether an entry may be sent.
    pub(super) fn readiness(&self, kind: Kind, entry: &Entry, now: Instant) -> Readiness {
        if self.options.only.is_some() {
            return Readiness::Ready;
        }
        if kind == Kind::Cluster {
            return match self.secrets_readiness(entry) {
                Readiness::Ready => self.prefetch_readiness(entry, now),
                blocked @ Readiness::Blocked(_) => blocked,
            };
        }
        if kind == Kind::Secret
            && let blocked @ Readiness::Blocked(_) = self.listing_readiness(entry, now)
        {
            return blocked;
        }
        for to in &entry.refs {
            let readiness = match to {
                Ref::To(Kind::Cluster, name) => self.cluster_readiness(name, now),
                Ref::To(Kind::Extension, name) if matches!(kind, Kind::Route | Kind::ScopedRoute) => {
                    self.extension_readiness(name, now)
                }
                Ref::To(Kind::ScopedRoute, name) if matches!(kind, Kind::Listener | Kind::Secret) => {
                    self.scope_readiness(name, false, now)
                }
                Ref::Under(Kind::ScopedRoute, name) if kind == Kind::Listener => self.scope_readiness(name, true, now),
                Ref::To(Kind::Route, name) if kind == Kind::ScopedRoute => self.routes_readiness(entry, name, now),
                _ => Readiness::Ready,
            };
            if readiness != Readiness::Ready {
                return readiness;
            }
        }
        Readiness::Ready
    }

    /// Envoy rejects a cluster that uses a secret which it has rejected, until it is told that the secret is gone: so a cluster
    /// waits while an answer about one of its secrets is due.
    fn secrets_readiness(&self, entry: &Entry) -> Readiness {
        let Some(flow) = self.flow(Kind::Secret) else { return Readiness::Ready };
        let is_unanswered = |name: &Name| match flow.states.get(name) {
            Some(state) => !state.unacked.is_empty() || flow.to_revert.contains(name),
            None => matches!(flow.default_state, DefaultState::Sent { .. }) && flow.covers(name),
        };
        let waits = entry.refs.iter().any(|to| matches!(to, Ref::To(Kind::Secret, name) if is_unanswered(name)));
        if waits { Readiness::Blocked(None) } else { Readiness::Ready }
    }

    fn cluster_readiness(&self, name: &str, now: Instant) -> Readiness {
        if self.flow(Kind::Cluster).is_some_and(|flow| flow.is_acked(name)) {
            return Readiness::Ready;
        }
        let timeout = self.options.limits.warming_timeout;
        let table = self.view.table(Kind::Cluster);
        let Some(published) = table.get(name) else { return Readiness::Ready };
        let Some(flow) = self.flow(Kind::Cluster) else { return self.inventory_readiness(now) };
        if !flow.covers(name) {
            return Readiness::Ready;
        }
        match flow.delivery(table, name) {
            Delivery::Acked => Readiness::Ready,
            Delivery::Sent { entry, nonce, at } => {
                // Answers come in order: once something sent later was answered, the client has the cluster, else it
                // would have rejected it by now. Until then it may be slow, and the clock does not run.
                let seen = self.answered > nonce;
                let fed_here = entry.refs.iter().any(|to| matches!(to, Ref::To(Kind::Endpoints, _)));
                match (seen, fed_here) {
                    (true, _) if !entry.warms && entry.refs.iter().all(|to| self.is_taken(to)) => Readiness::Ready,
                    (true, _) => Readiness::until(at + timeout, now),
                    (false, true) => Readiness::Blocked(None),
                    (false, false) => Readiness::until(at + UNSEEN * timeout, now),
                }
            }
            Delivery::Unsent(_) if published.role == Role::Withheld => Readiness::Ready,
            Delivery::Unsent(Some(rejected)) => Readiness::until(rejected + timeout, now),
            Delivery::Unsent(None) => Readiness::Blocked(None),
        }
    }

    /// A filter that the client has rejected, or does not ask for, holds nothing up.
    fn extension_readiness(&self, name: &Name, now: Instant) -> Readiness {
        let table = self.view.table(Kind::Extension);
        let Some(flow) = self.flow(Kind::Extension) else { return self.inventory_readiness(now) };
        let Some(target) = flow.target(table, name).filter(|_| flow.covers(name)) else { return Readiness::Ready };
        let is_sent = match flow.states.get(name) {
            Some(state) => {
                let is_rejected = state.rejected.is_some_and(|(version, _)| version == target.version);
                state.heading() == Some(target.version) || is_rejected
            }
            None => flow.default_state != DefaultState::Unsent,
        };
        if is_sent || target.role == Role::Withheld { Readiness::Ready } else { Readiness::Blocked(None) }
    }

    /// Whether the client has what a cluster needs to be warm, or was told that it does not exist.
    fn is_taken(&self, to: &Ref) -> bool {
        let Ref::To(kind @ (Kind::Endpoints | Kind::Secret), name) = to else { return true };
        let table = self.view.table(*kind);
        let Some(flow) = self.flow(*kind) else { return false };
        match flow.delivery(table, name) {
            Delivery::Acked => true,
            _ if !flow.covers(name) => false,
            _ => match table.get(name).map(|entry| entry.role) {
                None => !flow.states.contains_key(name),
                Some(Role::Withheld) => flow.states.get(name).is_some_and(|state| state.kept),
                Some(_) => false,
            },
        }
    }

    /// Whether a scope may name a route configuration: it is new, or the client has the configuration.
    fn routes_readiness(&self, scope: &Entry, routes: &Name, now: Instant) -> Readiness {
        let states = self.flow(Kind::ScopedRoute).map(|flow| &flow.states);
        let Some(state) = states.and_then(|states| states.get(&scope.name)) else { return Readiness::Ready };
        let named = Ref::To(Kind::Route, routes.clone());
        let has_others = match &state.acked {
            Acked::Known(entry) => !entry.refs.contains(&named),
            Acked::Listed(_) => true,
            Acked::Nothing => false,
        };
        let table = self.view.table(Kind::Route);
        let comes = table.get(routes).is_some_and(|entry| entry.role != Role::Withheld);
        let is_acked = |flow: &Flow| matches!(flow.delivery(table, routes), Delivery::Acked);
        if !has_others || !comes || self.flow(Kind::Route).is_some_and(is_acked) {
            return Readiness::Ready;
        }
        Readiness::until(state.since + self.options.limits.warming_timeout, now)
    }

    fn scope_readiness(&self, name: &Name, prefix: bool, now: Instant) -> Readiness {
        let Some(flow) = self.flow(Kind::ScopedRoute) else { return self.inventory_readiness(now) };
        let timeout = self.options.limits.warming_timeout;
        if flow.default_state != DefaultState::Acked {
            return Readiness::until(flow.opened + timeout, now);
        }
        let table = self.view.table(Kind::ScopedRoute);
        let concerned = |candidate: &str| if prefix { candidate.starts_with(&**name) } else { *candidate == **name };
        let states = flow.states.range(name.clone()..).take_while(|(candidate, _)| concerned(candidate));
        for (candidate, state) in states {
            let sent = table.get(candidate).is_some_and(|entry| entry.role != Role::Withheld);
            let missing = sent && !matches!(flow.delivery(table, candidate), Delivery::Acked);
            if missing && now < state.since + timeout {
                return Readiness::Blocked(Some(state.since + timeout));
            }
        }
        Readiness::Ready
    }

    /// Notes when a client that is back has told all it has: it has answered everything, and some time has passed since
    /// it last named a new type. Its clusters' answers do not count, Envoy may withhold those.
    pub(super) fn note_inventory(&mut self, now: Instant) {
        if self.inventory_known || !self.returning {
            return;
        }
        let answered = |kind: Kind| {
            let Some(flow) = self.flow(kind) else { return true };
            let asked = |name: &Name| flow.states.get(name).is_some_and(|state| state.asked);
            let owes = flow.default_state == DefaultState::Unsent || flow.due.iter().any(asked);
            let owes = owes && matches!(kind, Kind::Endpoints | Kind::Secret);
            flow.in_flight.is_empty() && !owes
        };
        let mut others = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Cluster);
        self.inventory_known = now >= self.widened + self.options.limits.inventory_timeout && others.all(answered);
    }

    /// A client that is back and does not ask for clusters has one that warms. It waits for endpoints in a version that
    /// we may not know of: a cluster that changed and changed back around a cut. So after some time it is sent once more
    /// what it has. Says when that is to be.
    pub(super) fn resend_endpoints_once(&mut self, now: Instant) -> Option<Instant> {
        if !self.returning
            || self.has_resent_endpoints
            || self.options.only.is_some()
            || self.flow(Kind::Cluster).is_some()
        {
            return None;
        }
        let at = self.widened + self.options.limits.warming_timeout;
        let table = self.view.table(Kind::Endpoints);
        let flow = self.flows[Kind::Endpoints.index()].as_deref_mut()?;
        if now < at {
            return Some(at);
        }
        self.has_resent_endpoints = true;
        for name in flow.names.clone() {
            let entry = flow.target(table, &name).cloned();
            flow.ask(&name, entry.as_ref(), now);
        }
        None
    }

    /// Waits for a client that is back to tell all it has; no type is expected to come first, or at all.
    fn inventory_readiness(&self, now: Instant) -> Readiness {
        if self.inventory_known || !self.returning {
            return Readiness::Ready;
        }
        Readiness::Blocked(Some(self.widened + self.options.limits.inventory_timeout).filter(|at| *at > now))
    }

    /// Whether the removal of a name that the client may have can be sent.
    pub(super) fn removal_readiness(
        &self,
        kind: Kind,
        name: &Name,
        referenced: &ReferencedResources,
        now: Instant,
    ) -> Readiness {
        if self.options.only.is_some() {
            return Readiness::Ready;
        }
        if kind == Kind::Cluster
            && let blocked @ Readiness::Blocked(_) = self.inventory_readiness(now)
        {
            return blocked;
        }
        let is_referenced = referenced.anything[kind.index()]
            || referenced.names.contains(&(kind, name.clone()))
            || referenced.prefixes.iter().any(|(of, prefix)| *of == kind && name.starts_with(&**prefix));
        match (is_referenced, self.called.get(name).filter(|_| kind == Kind::Cluster)) {
            (true, _) => Readiness::Blocked(None),
            (false, Some(at)) => Readiness::until(*at + self.options.limits.filter_calls, now),
            (false, None) => Readiness::Ready,
        }
    }

    /// Notes which clusters filters call no more, now that the client takes a response.
    pub(super) fn note_called(&mut self, kind: Kind, nonce: u64, now: Instant) {
        let Some(flow) = self.flow(kind).filter(|_| kind == Kind::Extension) else { return };
        let called: Vec<Name> = flow.clusters_left(nonce).collect();
        let limit = self.options.limits.filter_calls;
        self.called.retain(|_, at| now < *at + limit);
        self.called.extend(called.into_iter().map(|name| (name, now)));
    }

    /// All that must not be removed yet.
    pub(super) fn referenced(&self) -> ReferencedResources {
        let mut referenced =
            ReferencedResources { names: HashSet::new(), prefixes: Vec::new(), anything: Default::default() };
        for kind in Kind::ALL {
            if let Some(flow) = self.flow(kind) {
                self.add_references(kind, flow, &mut referenced);
            }
        }
        referenced
    }

    fn add_references(&self, kind: Kind, flow: &Flow, referenced: &mut ReferencedResources) {
        let table = self.view.table(kind);
        for (name, state) in &flow.states {
            let target = flow.target(table, name);
            let known = match &state.acked {
                Acked::Known(entry) => Some(entry),
                Acked::Nothing => None,
                Acked::Listed(version) => {
                    if target.is_none_or(|target| target.version != *version) {
                        Kind::ALL.into_iter().filter(|to| kind.may_refer(*to)).for_each(|to| {
                            referenced.anything[to.index()] = true;
                        });
                    }
                    None
                }
            };
            let sent_entries = state.unacked.iter().filter_map(|sent_version| sent_version.to.as_ref());
            for entry in known.into_iter().chain(state.unsure.as_ref()).chain(sent_entries) {
                if target.is_some_and(|target| target.version == entry.version) {
                    continue;
                }
                for to in &entry.refs {
                    match to {
                        // A name that nothing lists any more is refused: its certificate may go later.
                        Ref::To(Kind::Listener, _) => {}
                        Ref::To(kind, name) => {
                            referenced.names.insert((*kind, name.clone()));
                        }
                        Ref::Under(..) if target.is_some_and(|target| target.refs.contains(to)) => {}
                        Ref::Under(kind, prefix) => referenced.prefixes.push((*kind, prefix.clone())),
                    }
                }
            }
        }
    }
}

//! What may be sent now, and what has to wait: make before break.
//!
//! - A resource waits for the clusters that it points at, its own only. A cluster the client has in any version is
//!   there. A new one is there once the response was taken. Envoy withholds that answer while *any* cluster warms, so
//!   waiting for it alone would let one tenant hold up all; it is also there once its endpoints and secrets were taken,
//!   or, if Envoy warms it by means that cannot be seen from here, [`Limits::patience`](crate::Limits) has passed.
//! - A listener waits for its scopes, once the client has subscribed to scopes: an Envoy that has some does not wait for
//!   those of a new listener and would answer 404. One that has none yet asks for them only after its listeners.
//! - A removal waits until nothing that the client may still have points there. What the client listed from an earlier
//!   stream in a version that is gone may point anywhere.
//! - A cluster that uses secrets waits while an answer about one of them is due.
//! - A certificate that a client asks for by the name of a host waits for the host's scope, where it names one.
//! - Endpoints and other secrets wait for nothing, and so does the answer that something does not exist.
//!
//! What does not exist or is withheld, what the client did not subscribe to and what it refused holds nothing up (the
//! last after the same patience), so nothing waits for what never comes.

use std::collections::HashSet;
use std::time::Instant;

use super::Session;
use super::flow::{Flow, Have, Rest, Standing};
use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Role};

/// How many times longer a route waits for a cluster that the client gives no sign of having.
const UNSEEN: u32 = 5;

/// Whether something may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// Not before something is answered, or that moment.
    Shut(Option<Instant>),
}

impl Gate {
    fn until(deadline: Instant, now: Instant) -> Gate {
        if now >= deadline { Gate::Open } else { Gate::Shut(Some(deadline)) }
    }
}

/// What the client may still use although the table no longer says so.
pub(super) struct Pins {
    names: HashSet<(Kind, Name)>,
    prefixes: Vec<(Kind, Name)>,
    anything: [bool; Kind::COUNT],
}

impl Session {
    /// Whether an entry may be sent.
    pub(super) fn gate(&self, kind: Kind, entry: &Entry, now: Instant) -> Gate {
        if self.options.only.is_some() {
            return Gate::Open;
        }
        if kind == Kind::Cluster {
            return self.secrets_gate(entry);
        }
        for to in &entry.refs {
            let gate = match to {
                Ref::To(Kind::Cluster, name) => self.cluster_gate(name, now),
                Ref::To(Kind::ScopedRoute, name) if matches!(kind, Kind::Listener | Kind::Secret) => {
                    self.scope_gate(name, false, now)
                }
                Ref::Under(Kind::ScopedRoute, name) if kind == Kind::Listener => self.scope_gate(name, true, now),
                _ => Gate::Open,
            };
            if gate != Gate::Open {
                return gate;
            }
        }
        Gate::Open
    }

    /// Envoy refuses a cluster that uses a secret which it has refused, until it is told that the secret is gone: so a cluster
    /// waits while an answer about one of its secrets is due.
    fn secrets_gate(&self, entry: &Entry) -> Gate {
        let Some(flow) = self.flow(Kind::Secret) else { return Gate::Open };
        let is_unanswered = |name: &Name| match flow.marks.get(name) {
            Some(mark) => !mark.offers.is_empty() || flow.take_back.contains(name),
            None => matches!(flow.rest, Rest::Offered { .. }) && flow.covers(name),
        };
        let waits = entry.refs.iter().any(|to| matches!(to, Ref::To(Kind::Secret, name) if is_unanswered(name)));
        if waits { Gate::Shut(None) } else { Gate::Open }
    }

    fn cluster_gate(&self, name: &str, now: Instant) -> Gate {
        let patience = self.options.limits.patience;
        let table = self.view.table(Kind::Cluster);
        let Some(published) = table.get(name) else { return Gate::Open };
        let Some(flow) = self.flow(Kind::Cluster) else { return self.absence_gate(now) };
        if !flow.covers(name) {
            return Gate::Open;
        }
        match flow.standing(table, name) {
            Standing::Held => Gate::Open,
            Standing::Offered { entry, nonce, at } => {
                // Answers come in order: once something sent later was answered, the client has the cluster, else it
                // would have refused it by now. Until then it may be slow, and the clock does not run.
                let seen = self.answered > nonce;
                let fed_here = entry.refs.iter().any(|to| matches!(to, Ref::To(Kind::Endpoints, _)));
                match (seen, fed_here) {
                    (true, _) if !entry.warms && entry.refs.iter().all(|to| self.is_taken(to)) => Gate::Open,
                    (true, _) => Gate::until(at + patience, now),
                    (false, true) => Gate::Shut(None),
                    (false, false) => Gate::until(at + UNSEEN * patience, now),
                }
            }
            Standing::Unsent(_) if published.role == Role::Withheld => Gate::Open,
            Standing::Unsent(Some(refused)) => Gate::until(refused + patience, now),
            Standing::Unsent(None) => Gate::Shut(None),
        }
    }

    /// Whether the client has what a cluster needs to be warm, or was told that it does not exist.
    fn is_taken(&self, to: &Ref) -> bool {
        let Ref::To(kind @ (Kind::Endpoints | Kind::Secret), name) = to else { return true };
        let table = self.view.table(*kind);
        let Some(flow) = self.flow(*kind) else { return false };
        match flow.standing(table, name) {
            Standing::Held => true,
            _ if !flow.covers(name) => false,
            _ => match table.get(name).map(|entry| entry.role) {
                None => !flow.marks.contains_key(name),
                Some(Role::Withheld) => flow.marks.get(name).is_some_and(|mark| mark.kept),
                Some(_) => false,
            },
        }
    }

    fn scope_gate(&self, name: &Name, prefix: bool, now: Instant) -> Gate {
        let Some(flow) = self.flow(Kind::ScopedRoute) else { return self.absence_gate(now) };
        let patience = self.options.limits.patience;
        if flow.rest != Rest::InStep {
            return Gate::until(flow.opened + patience, now);
        }
        let table = self.view.table(Kind::ScopedRoute);
        let concerned = |candidate: &str| if prefix { candidate.starts_with(&**name) } else { *candidate == **name };
        let marks = flow.marks.range(name.clone()..).take_while(|(candidate, _)| concerned(candidate));
        for (candidate, mark) in marks {
            let sent = table.get(candidate).is_some_and(|entry| entry.role != Role::Withheld);
            let missing = sent && !matches!(flow.standing(table, candidate), Standing::Held);
            if missing && now < mark.since + patience {
                return Gate::Shut(Some(mark.since + patience));
            }
        }
        Gate::Open
    }

    /// Notes when a client that is back has told all it has: it has answered everything, and some time has passed since
    /// it last named a new type. Its clusters' answers do not count, Envoy may withhold those.
    pub(super) fn listen(&mut self, now: Instant) {
        if self.told || !self.returning {
            return;
        }
        let answered = |kind: Kind| {
            let Some(flow) = self.flow(kind) else { return true };
            let asked = |name: &Name| flow.marks.get(name).is_some_and(|mark| mark.asked);
            let owes = flow.rest == Rest::Nothing || flow.due.iter().any(asked);
            let owes = owes && matches!(kind, Kind::Endpoints | Kind::Secret);
            flow.flights.is_empty() && !owes
        };
        let mut others = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Cluster);
        self.told = now >= self.widened + self.options.limits.absence && others.all(answered);
    }

    /// A client that is back and does not ask for clusters has one that warms. It waits for endpoints in a version that
    /// we may not know of: a cluster that changed and changed back around a cut. So after some time it is sent once more
    /// what it has. Says when that is to be.
    pub(super) fn feed_again(&mut self, now: Instant) -> Option<Instant> {
        if !self.returning || self.fed_again || self.options.only.is_some() || self.flow(Kind::Cluster).is_some() {
            return None;
        }
        let at = self.widened + self.options.limits.patience;
        let table = self.view.table(Kind::Endpoints);
        let flow = self.flows[Kind::Endpoints.index()].as_deref_mut()?;
        if now < at {
            return Some(at);
        }
        self.fed_again = true;
        for name in flow.names.clone() {
            let entry = flow.target(table, &name).cloned();
            flow.ask(&name, entry.as_ref(), now);
        }
        None
    }

    /// Waits for a client that is back to tell all it has; no type is expected to come first, or at all.
    fn absence_gate(&self, now: Instant) -> Gate {
        if self.told || !self.returning {
            return Gate::Open;
        }
        Gate::Shut(Some(self.widened + self.options.limits.absence).filter(|at| *at > now))
    }

    /// Whether the removal of a name that the client may have can be sent.
    pub(super) fn removal_gate(&self, kind: Kind, name: &Name, pins: &Pins, now: Instant) -> Gate {
        if self.options.only.is_some() {
            return Gate::Open;
        }
        if kind == Kind::Cluster
            && let shut @ Gate::Shut(_) = self.absence_gate(now)
        {
            return shut;
        }
        let pinned = pins.anything[kind.index()]
            || pins.names.contains(&(kind, name.clone()))
            || pins.prefixes.iter().any(|(of, prefix)| *of == kind && name.starts_with(&**prefix));
        if pinned { Gate::Shut(None) } else { Gate::Open }
    }

    /// All that must not be removed yet.
    pub(super) fn pins(&self) -> Pins {
        let mut pins = Pins { names: HashSet::new(), prefixes: Vec::new(), anything: Default::default() };
        for kind in Kind::ALL {
            if let Some(flow) = self.flow(kind) {
                self.pin(kind, flow, &mut pins);
            }
        }
        pins
    }

    fn pin(&self, kind: Kind, flow: &Flow, pins: &mut Pins) {
        let table = self.view.table(kind);
        for (name, mark) in &flow.marks {
            let target = flow.target(table, name);
            let known = match &mark.have {
                Have::Known(entry) => Some(entry),
                Have::Nothing => None,
                Have::Listed(version) => {
                    if target.is_none_or(|target| target.version != *version) {
                        Kind::ALL.into_iter().filter(|to| kind.may_refer(*to)).for_each(|to| {
                            pins.anything[to.index()] = true;
                        });
                    }
                    None
                }
            };
            let offered = mark.offers.iter().filter_map(|offer| offer.to.as_ref());
            for entry in known.into_iter().chain(mark.unsure.as_ref()).chain(offered) {
                if target.is_some_and(|target| target.version == entry.version) {
                    continue;
                }
                for to in &entry.refs {
                    match to {
                        Ref::To(kind, name) => {
                            pins.names.insert((*kind, name.clone()));
                        }
                        Ref::Under(..) if target.is_some_and(|target| target.refs.contains(to)) => {}
                        Ref::Under(kind, prefix) => pins.prefixes.push((*kind, prefix.clone())),
                    }
                }
            }
        }
    }
}

//! Makes the next response of one type, if there is anything that may be sent.
//!
//! First everything due is looked at without changing anything, then what was decided is written down. One response is
//! in flight at a time, except for clusters and secrets; what changes meanwhile waits and goes together. What need not be whole
//! comes in pages of [`Limits::response_bytes`](crate::Limits).
//!
//! A delta response carries one secret, and several are in flight. Envoy refuses a whole response for one secret that it cannot
//! load, does not say which, and delivers only some of the others: taken back with the bad one, they would be lost to the
//! clusters that prefetch them.

use std::sync::Arc;
use std::time::Instant;

use super::flow::{Acked, DefaultState, Flow, InFlight, ResourceState, SentVersion};
use super::ordering::{Readiness, ReferencedResources};
use super::{Response, Session, Style};
use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Role};

/// What is to become of one due name.
enum Decision {
    /// Send the entry, or its removal.
    Send(Option<Arc<Entry>>),
    /// Look again when something is answered, or then.
    Wait(Option<Instant>),
    /// There is nothing to do.
    Nothing,
}

/// What a response will carry.
#[derive(Default)]
struct Plan {
    /// Every name without a state of its own, in a first response.
    all: Option<Vec<Arc<Entry>>>,
    /// Of those, the ones that have to wait.
    held_back: Vec<Name>,
    /// Of those, the ones that nobody is sent.
    withheld: Vec<Name>,
    sends: Vec<(Name, Option<Arc<Entry>>)>,
    done: Vec<Name>,
    probing: bool,
    rejections: u8,
}

/// How much more a response may carry.
struct Page {
    room: usize,
    is_empty: bool,
    /// It carries one resource.
    single: bool,
}

impl Page {
    /// Whether an entry goes with it: the first always does, however large it is.
    fn takes(&mut self, entry: &Entry) -> bool {
        let fits = self.is_empty || !self.single && entry.bytes() <= self.room;
        if fits {
            self.room = self.room.saturating_sub(entry.bytes());
            self.is_empty = false;
        }
        fits
    }

    /// Whether nothing more goes with it, however small.
    fn is_full(&self) -> bool {
        self.single && !self.is_empty
    }
}

impl Session {
    pub(super) fn poll_kind(&mut self, kind: Kind, now: Instant, wake: &mut Option<Instant>) -> Option<Response> {
        let most = match kind {
            Kind::Cluster => self.options.limits.cluster_flights,
            Kind::Secret if self.is_one_by_one(kind) => self.options.limits.secret_flights,
            _ => 1,
        };
        loop {
            let flow = self.flow(kind)?;
            if !flow.to_revert.is_empty() {
                match self.revert(kind, now) {
                    Some(response) => return Some(response),
                    None => continue,
                }
            }
            if flow.in_flight.len() >= most {
                return None;
            }
            let evicted = !flow.aliases.evicted.is_empty() && self.options.style == Style::Delta;
            if flow.due.is_empty() && flow.default_state != DefaultState::Unsent && !flow.owes_response && !evicted {
                return None;
            }
            let plan = self.plan(kind, flow, now, wake)?;
            let something = plan.all.as_ref().is_some_and(|entries| !entries.is_empty()) || !plan.sends.is_empty();
            if something || flow.owes_response || evicted {
                return Some(self.send(kind, plan, now));
            }
            // A probe whose names all changed or have to wait makes room for the next one.
            let again = plan.probing || !plan.withheld.is_empty();
            self.note_unsent(kind, plan, now);
            if !again {
                return None;
            }
        }
    }

    /// Whether each resource of a type has a response of its own.
    fn is_one_by_one(&self, kind: Kind) -> bool {
        kind == Kind::Secret && self.options.style == Style::Delta
    }

    /// Looks at everything due. `None` if a first full answer has to wait for its parts.
    fn plan(&self, kind: Kind, flow: &Flow, now: Instant, wake: &mut Option<Instant>) -> Option<Plan> {
        let mut plan = Plan::default();
        let sooner = |at: Option<Instant>, wake: &mut Option<Instant>| {
            *wake = match (*wake, at) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        };
        let table = self.view.table(kind);
        let single = self.is_one_by_one(kind);
        let mut page = Page { room: self.options.limits.response_bytes, is_empty: true, single };
        if flow.default_state == DefaultState::Unsent {
            let mut entries = Vec::new();
            let mut look = |entry: &Arc<Entry>| -> bool {
                if flow.states.contains_key(&entry.name) {
                    return true;
                }
                if entry.role == Role::Withheld {
                    plan.withheld.push(entry.name.clone());
                    return true;
                }
                match self.readiness(kind, entry, now) {
                    Readiness::Ready if !flow.wildcard && !page.takes(entry) => plan.held_back.push(entry.name.clone()),
                    Readiness::Ready => entries.push(entry.clone()),
                    Readiness::Blocked(until) => {
                        sooner(until, wake);
                        plan.held_back.push(entry.name.clone());
                        // Half a world would be taken for the whole of it.
                        return !flow.wildcard;
                    }
                }
                true
            };
            let complete = if flow.wildcard {
                table.iter().all(&mut look)
            } else {
                flow.names.iter().filter_map(|name| flow.target(table, name)).all(&mut look)
            };
            if !complete {
                return None;
            }
            plan.all = Some(entries);
        }
        let probe = flow.probes.front();
        let probed = probe.iter().flat_map(|probe| &probe.names).filter(|name| flow.due.contains(*name));
        let names = probed.chain(flow.due.iter().filter(|_| probe.is_none()));
        (plan.probing, plan.rejections) = (probe.is_some(), probe.map_or(0, |probe| probe.rejections));
        let whole = self.options.style == Style::Sotw && kind.is_full_state();
        let mut referenced = None;
        for name in names {
            if page.is_full() {
                break;
            }
            match self.decide(kind, flow, name, &mut referenced, now) {
                // It stays due, and is looked at again when this response is answered.
                Decision::Send(Some(entry)) if !whole && !page.takes(&entry) => {}
                Decision::Send(to) => plan.sends.push((name.clone(), to)),
                Decision::Wait(until) => sooner(until, wake),
                Decision::Nothing => plan.done.push(name.clone()),
            }
        }
        Some(plan)
    }

    fn decide(
        &self,
        kind: Kind,
        flow: &Flow,
        name: &Name,
        referenced: &mut Option<ReferencedResources>,
        now: Instant,
    ) -> Decision {
        let Some(state) = flow.states.get(name) else { return Decision::Nothing };
        let target = flow.target(self.view.table(kind), name);
        let wanted = target.map(|entry| entry.version);
        if !state.owed && state.heading() == wanted {
            return Decision::Nothing;
        }
        let readiness = match target {
            Some(entry) if entry.role != Role::Own && (state.keeps() || entry.role == Role::Withheld) => {
                return self.decide_kept(kind, state, entry);
            }
            Some(entry) => {
                if state.rejected.is_some_and(|(version, _)| version == entry.version) {
                    if kind == Kind::Secret {
                        return self.decide_kept(kind, state, entry);
                    }
                    if !state.asked {
                        return Decision::Nothing;
                    }
                }
                // Its connection took a chain that is not the host's: it must not wait for the certificate.
                let is_early = kind == Kind::Secret && state.asked && self.options.style == Style::Delta;
                if is_early && self.options.only.is_none() && self.listing_readiness(entry, now) != Readiness::Ready {
                    return Decision::Send(None);
                }
                match self.readiness(kind, entry, now) {
                    Readiness::Ready if entry.idle && state.heading().is_some() => {
                        self.removal_readiness(kind, name, referenced.get_or_insert_with(|| self.referenced()), now)
                    }
                    readiness => readiness,
                }
            }
            None if self.options.style == Style::Sotw && !kind.is_full_state() => {
                // Absence cannot be said, only that there are no endpoints.
                let nobody = kind == Kind::Endpoints && state.asked;
                return if nobody {
                    Decision::Send(Some(Arc::new(Entry::no_endpoints(name))))
                } else {
                    Decision::Nothing
                };
            }
            None if state.asked => Readiness::Ready,
            None => self.removal_readiness(kind, name, referenced.get_or_insert_with(|| self.referenced()), now),
        };
        match readiness {
            Readiness::Ready => Decision::Send(target.cloned()),
            Readiness::Blocked(until) => Decision::Wait(until),
        }
    }

    /// What becomes of a name of which the client has something of its own while the table only has a stand-in, or of which
    /// there is nothing to send, as of a secret that it rejected. A question is answered all the same, or the client might
    /// wait for ever.
    fn decide_kept(&self, kind: Kind, state: &ResourceState, entry: &Arc<Entry>) -> Decision {
        if !state.asked {
            return Decision::Nothing;
        }
        if !state.unacked.is_empty() {
            return Decision::Wait(None);
        }
        let nothing = match self.options.style {
            Style::Delta => Decision::Send(None),
            Style::Sotw if kind == Kind::Endpoints => Decision::Send(Some(Arc::new(Entry::no_endpoints(&entry.name)))),
            Style::Sotw => Decision::Nothing,
        };
        match &state.acked {
            Acked::Known(held) if !state.leaving => Decision::Send(Some(held.clone())),
            // It has them, but a cluster that was sent again waits until it hears of them.
            Acked::Listed(_) if kind == Kind::Endpoints => nothing,
            Acked::Listed(_) => Decision::Nothing,
            Acked::Known(_) | Acked::Nothing => nothing,
        }
    }

    /// Writes down that nothing is sent.
    fn note_unsent(&mut self, kind: Kind, plan: Plan, now: Instant) {
        let style = self.options.style;
        let table = self.view.table(kind);
        let Some(flow) = self.flows[kind.index()].as_deref_mut() else { return };
        if plan.all.is_some() {
            flow.touched.all();
            flow.default_state = DefaultState::Acked;
            hold_back(flow, plan.held_back, now);
            withhold(flow, plan.withheld, now);
        }
        if plan.probing && plan.sends.is_empty() {
            flow.probes.pop_front();
        }
        for name in plan.done {
            let target = flow.target(table, &name);
            let (role, version) = (target.map(|entry| entry.role), target.map(|entry| entry.version));
            if let Some(state) = flow.states.get_mut(&name) {
                state.stranded = role.is_none() && style == Style::Sotw && !kind.is_full_state();
                state.kept = match role {
                    Some(Role::StandIn) => state.keeps() && state.unacked.is_empty(),
                    Some(Role::Withheld) => state.unacked.is_empty(),
                    Some(Role::Own) | None => false,
                };
                let rejected =
                    kind == Kind::Secret && state.rejected.is_some_and(|(rejected, _)| Some(rejected) == version);
                if state.stranded || state.kept || rejected {
                    (state.owed, state.asked) = (false, false);
                }
            }
            flow.settle(table, &name);
        }
    }

    /// Writes down what is sent, and makes the response.
    fn send(&mut self, kind: Kind, plan: Plan, now: Instant) -> Response {
        self.nonce += 1;
        let nonce = self.nonce;
        let style = self.options.style;
        let Plan { mut all, held_back, withheld, mut sends, done, probing, rejections } = plan;
        let mut response = Response {
            kind,
            style,
            nonce,
            version: self.view.table(kind).version(),
            upserts: Vec::new(),
            removed: Vec::new(),
        };
        let table = self.view.table(kind);
        let flow = self.flows[kind.index()].as_deref_mut().expect("a plan is made for a flow that is there");
        flow.owes_response = false;
        if probing {
            flow.probes.pop_front();
        }
        if style == Style::Sotw && kind.is_full_state() {
            // The response repeats what is on its way, so its rejection may be about that.
            let again = flow.states.iter().filter(|(name, _)| !sends.iter().any(|(sent, _)| sent == *name));
            let again = again.filter_map(|(name, state)| Some((name.clone(), state.unacked.last()?.to.clone())));
            let again: Vec<_> = again.collect();
            sends.extend(again);
        }
        if kind == Kind::ScopedRoute {
            let markers = self.options.markers;
            let marker = if flow.has_nacked { markers.of_response(nonce) } else { markers.returning };
            for (name, to) in &mut sends {
                let unsure = flow.states.get(name).is_some_and(|state| state.unsure.is_some());
                *to = to.take().map(|entry| if unsure { Arc::new(entry.resent(marker)) } else { entry });
            }
            for entry in all.iter_mut().flatten().filter(|_| flow.is_unsure) {
                *entry = Arc::new(entry.resent(marker));
            }
        }
        if style == Style::Sotw {
            for (name, to) in &sends {
                let new = to.as_ref().filter(|entry| entry.version != 0).map_or(0, |entry| entry.weight());
                flow.sum = flow.sum.wrapping_sub(flow.sent_weight(table, name)).wrapping_add(new);
            }
        }
        let carries_all = all.is_some();
        if let Some(entries) = all {
            if style == Style::Sotw {
                flow.sum = entries.iter().fold(flow.sum, |sum, entry| sum.wrapping_add(entry.weight()));
            }
            flow.default_state = DefaultState::Sent { nonce, at: now };
            hold_back(flow, held_back, now);
            withhold(flow, withheld, now);
            response.upserts = entries;
        }
        for (name, to) in &sends {
            flow.due.remove(name);
            let target = flow.target(table, name).map(|entry| entry.version);
            let Some(state) = flow.states.get_mut(name) else { continue };
            state.unacked.push(SentVersion { nonce, to: to.clone(), at: now });
            state.leaving |= to.is_none();
            if to.is_none() {
                flow.touched.name(name);
            }
            (state.owed, state.asked, state.kept) = (false, false, false);
            if state.rejected.is_some_and(|(version, _)| target != Some(version)) {
                flow.touched.name(name);
                state.rejected = None;
            }
        }
        if style == Style::Sotw && kind.is_full_state() {
            let first = carries_all.then(|| std::mem::take(&mut response.upserts));
            response.upserts = world(flow, table, first);
            response.version = response.upserts.iter().fold(0, |sum, entry| sum.wrapping_add(entry.weight()));
        } else {
            response.upserts.extend(sends.iter().filter_map(|(_, to)| to.clone()));
            if style == Style::Sotw {
                response.version = flow.sum;
            } else {
                response.removed = sends.iter().filter(|(_, to)| to.is_none()).map(|(name, _)| name.clone()).collect();
                response.removed.append(&mut flow.aliases.evicted);
            }
        }
        flow.aliases.evicted.clear();
        let repeats =
            style == Style::Sotw && kind.is_full_state() && matches!(flow.default_state, DefaultState::Sent { .. });
        let unconfirmed = if carries_all || repeats {
            response.upserts.len()
        } else {
            sends.iter().filter(|(_, to)| to.is_some()).count()
        };
        let reverts = false;
        flow.in_flight.push_back(InFlight {
            nonce,
            at: now,
            carries_all,
            items: sends,
            unconfirmed,
            rejections,
            reverts,
        });
        self.note_unsent(kind, Plan { done, ..Plan::default() }, now);
        if kind == Kind::Cluster {
            self.resend_endpoints(now);
        }
        response
    }

    /// Sends what the client had of the names that it rejected, or that there is nothing. `None` if nothing can be said.
    fn revert(&mut self, kind: Kind, now: Instant) -> Option<Response> {
        let (style, nonce) = (self.options.style, self.nonce + 1);
        let table = self.view.table(kind);
        let flow = self.flows[kind.index()].as_deref_mut()?;
        let mut items = Vec::new();
        for name in std::mem::take(&mut flow.to_revert) {
            let before = flow.sent_weight(table, &name);
            let Some(state) = flow.states.get_mut(&name) else { continue };
            let to = match &state.acked {
                Acked::Known(held) if !state.leaving => Some(held.clone()),
                _ => None,
            };
            if to.is_none() && style == Style::Sotw {
                continue;
            }
            state.unacked.push(SentVersion { nonce, to: to.clone(), at: now });
            state.leaving |= to.is_none();
            flow.touched.name(&name);
            flow.sum = flow.sum.wrapping_sub(before).wrapping_add(flow.sent_weight(table, &name));
            items.push((name, to));
        }
        if items.is_empty() {
            return None;
        }
        self.nonce = nonce;
        let upserts: Vec<_> = items.iter().filter_map(|(_, to)| to.clone()).collect();
        let removed = items.iter().filter(|(_, to)| to.is_none()).map(|(name, _)| name.clone()).collect();
        let version = if style == Style::Sotw { flow.sum } else { table.version() };
        let unconfirmed = upserts.len();
        flow.in_flight.push_back(InFlight {
            nonce,
            at: now,
            carries_all: false,
            items,
            unconfirmed,
            rejections: 0,
            reverts: true,
        });
        Some(Response { kind, style, nonce, version, upserts, removed })
    }

    /// Envoy warms a cluster that it has just been sent until its endpoints are sent again, or said to be gone.
    fn resend_endpoints(&mut self, now: Instant) {
        let mut names = Vec::new();
        if self.flow(Kind::Endpoints).is_some()
            && let Some(response) = self.flow(Kind::Cluster).and_then(|flow| flow.in_flight.back())
        {
            for entry in response.items.iter().filter_map(|(_, to)| to.as_ref()) {
                names.extend(entry.refs.iter().filter_map(|to| match to {
                    Ref::To(Kind::Endpoints, name) => Some(name.clone()),
                    _ => None,
                }));
            }
        }
        let table = self.view.table(Kind::Endpoints);
        let Some(flow) = self.flows[Kind::Endpoints.index()].as_deref_mut() else { return };
        for name in names {
            if flow.covers(&name) && flow.default_state != DefaultState::Unsent {
                let entry = table.get(&name).cloned();
                flow.ask(&name, entry.as_ref(), now);
            }
        }
    }
}

fn hold_back(flow: &mut Flow, names: Vec<Name>, now: Instant) {
    for name in names {
        flow.states.insert(name.clone(), ResourceState::new(Acked::Nothing, now));
        flow.due.insert(name);
    }
}

/// Who asked for one of these names is told that there is nothing; the others are not told anything.
fn withhold(flow: &mut Flow, names: Vec<Name>, now: Instant) {
    for name in names {
        let asked = flow.names.contains(&name);
        flow.states
            .insert(name.clone(), ResourceState { asked, owed: asked, ..ResourceState::new(Acked::Nothing, now) });
        flow.due.insert(name);
    }
}

/// All that a state-of-the-world client should have now: what is sent, and the older version of what has to wait. A `first` response
/// brings what it carries of the names without a state.
fn world(flow: &Flow, table: &crate::table::Table, first: Option<Vec<Arc<Entry>>>) -> Vec<Arc<Entry>> {
    let mut entries = first.unwrap_or_else(|| {
        let covered = table.iter().filter(|entry| flow.covers(&entry.name) && !flow.states.contains_key(&entry.name));
        covered.cloned().collect()
    });
    let with_state = flow.states.values().filter_map(|state| match (state.unacked.last(), &state.acked) {
        (Some(sent_version), _) => sent_version.to.as_ref(),
        (None, Acked::Known(entry)) => Some(entry),
        (None, _) => None,
    });
    entries.extend(with_state.cloned());
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

//! Makes the next response of one type, if there is anything that may be sent.
//!
//! First everything due is looked at without changing anything, then what was decided is written down. One response is
//! in flight at a time, except for clusters; what changes meanwhile waits and goes together. What need not be whole comes in
//! pages of [`Limits::response_bytes`](crate::Limits).

use std::sync::Arc;
use std::time::Instant;

use super::flow::{Flight, Flow, Have, Mark, Offer, Rest};
use super::gate::{Gate, Pins};
use super::{Response, Session, Style};
use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Role};

/// What is to become of one due name.
enum Fate {
    /// Send the entry, or its removal.
    Send(Option<Arc<Entry>>),
    /// Look again when something is answered, or then.
    Wait(Option<Instant>),
    /// There is nothing to do.
    Rest,
}

/// What a response will carry.
#[derive(Default)]
struct Plan {
    /// Every name without a mark, on a first answer.
    rest: Option<Vec<Arc<Entry>>>,
    /// Of those, the ones that have to wait.
    held_back: Vec<Name>,
    /// Of those, the ones that nobody is sent.
    withheld: Vec<Name>,
    sends: Vec<(Name, Option<Arc<Entry>>)>,
    done: Vec<Name>,
    probing: bool,
    strikes: u8,
}

/// How much more a response may carry.
struct Page {
    room: usize,
    is_empty: bool,
}

impl Page {
    /// Whether an entry goes with it: the first always does, however large it is.
    fn takes(&mut self, entry: &Entry) -> bool {
        let fits = self.is_empty || entry.bytes() <= self.room;
        if fits {
            self.room = self.room.saturating_sub(entry.bytes());
            self.is_empty = false;
        }
        fits
    }
}

impl Session {
    pub(super) fn poll_kind(&mut self, kind: Kind, now: Instant, wake: &mut Option<Instant>) -> Option<Response> {
        let flights = if kind == Kind::Cluster { self.options.limits.cluster_flights } else { 1 };
        loop {
            let flow = self.flow(kind)?;
            if flow.flights.len() >= flights {
                return None;
            }
            if !flow.take_back.is_empty() {
                match self.take_back(kind, now) {
                    Some(response) => return Some(response),
                    None => continue,
                }
            }
            let evicted = !flow.aliases.evicted.is_empty() && self.options.style == Style::Delta;
            if flow.due.is_empty() && flow.rest != Rest::Nothing && !flow.owes_answer && !evicted {
                return None;
            }
            let plan = self.plan(kind, flow, now, wake)?;
            let something = plan.rest.as_ref().is_some_and(|rest| !rest.is_empty()) || !plan.sends.is_empty();
            if something || flow.owes_answer || evicted {
                return Some(self.send(kind, plan, now));
            }
            // A probe whose names all changed or have to wait makes room for the next one.
            let again = plan.probing || !plan.withheld.is_empty();
            self.put_down(kind, plan, now);
            if !again {
                return None;
            }
        }
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
        let mut page = Page { room: self.options.limits.response_bytes, is_empty: true };
        if flow.rest == Rest::Nothing {
            let mut entries = Vec::new();
            let mut look = |entry: &Arc<Entry>| -> bool {
                if flow.marks.contains_key(&entry.name) {
                    return true;
                }
                if entry.role == Role::Withheld {
                    plan.withheld.push(entry.name.clone());
                    return true;
                }
                match self.gate(kind, entry, now) {
                    Gate::Open if !flow.wildcard && !page.takes(entry) => plan.held_back.push(entry.name.clone()),
                    Gate::Open => entries.push(entry.clone()),
                    Gate::Shut(until) => {
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
            plan.rest = Some(entries);
        }
        let probe = flow.probes.front();
        let names: Vec<&Name> = match probe {
            Some(probe) => probe.names.iter().filter(|name| flow.due.contains(*name)).collect(),
            None => flow.due.iter().collect(),
        };
        (plan.probing, plan.strikes) = (probe.is_some(), probe.map_or(0, |probe| probe.strikes));
        let whole = self.options.style == Style::Sotw && kind.is_full_state();
        let mut pins = None;
        for name in names {
            match self.fate(kind, flow, name, &mut pins, now) {
                // It stays due, and is looked at again when this response is answered.
                Fate::Send(Some(entry)) if !whole && !page.takes(&entry) => {}
                Fate::Send(to) => plan.sends.push((name.clone(), to)),
                Fate::Wait(until) => sooner(until, wake),
                Fate::Rest => plan.done.push(name.clone()),
            }
        }
        Some(plan)
    }

    fn fate(&self, kind: Kind, flow: &Flow, name: &Name, pins: &mut Option<Pins>, now: Instant) -> Fate {
        let Some(mark) = flow.marks.get(name) else { return Fate::Rest };
        let target = flow.target(self.view.table(kind), name);
        let wanted = target.map(|entry| entry.version);
        if !mark.owed && mark.heading() == wanted {
            return Fate::Rest;
        }
        let gate = match target {
            Some(entry) if entry.role != Role::Own && (mark.keeps() || entry.role == Role::Withheld) => {
                return self.fate_of_kept(kind, mark, entry);
            }
            Some(entry) => {
                if mark.refused.is_some_and(|(version, _)| version == entry.version) {
                    if kind == Kind::Secret {
                        return self.fate_of_kept(kind, mark, entry);
                    }
                    if !mark.asked {
                        return Fate::Rest;
                    }
                }
                self.gate(kind, entry, now)
            }
            None if self.options.style == Style::Sotw && !kind.is_full_state() => {
                // Absence cannot be said, only that there are no endpoints.
                let nobody = kind == Kind::Endpoints && mark.asked;
                return if nobody { Fate::Send(Some(Arc::new(Entry::no_endpoints(name)))) } else { Fate::Rest };
            }
            None if mark.asked => Gate::Open,
            None => self.removal_gate(kind, name, pins.get_or_insert_with(|| self.pins()), now),
        };
        match gate {
            Gate::Open => Fate::Send(target.cloned()),
            Gate::Shut(until) => Fate::Wait(until),
        }
    }

    /// What becomes of a name of which the client has something of its own while the table only has a stand-in, or of which
    /// there is nothing to send, as of a secret that it refused. A question is answered all the same, or the client might
    /// wait for ever.
    fn fate_of_kept(&self, kind: Kind, mark: &Mark, entry: &Arc<Entry>) -> Fate {
        if !mark.asked {
            return Fate::Rest;
        }
        if !mark.offers.is_empty() {
            return Fate::Wait(None);
        }
        let nothing = match self.options.style {
            Style::Delta => Fate::Send(None),
            Style::Sotw if kind == Kind::Endpoints => Fate::Send(Some(Arc::new(Entry::no_endpoints(&entry.name)))),
            Style::Sotw => Fate::Rest,
        };
        match &mark.have {
            Have::Known(held) if !mark.leaving => Fate::Send(Some(held.clone())),
            // It has them, but a cluster that was sent again waits until it hears of them.
            Have::Listed(_) if kind == Kind::Endpoints => nothing,
            Have::Listed(_) => Fate::Rest,
            Have::Known(_) | Have::Nothing => nothing,
        }
    }

    /// Writes down that nothing is sent.
    fn put_down(&mut self, kind: Kind, plan: Plan, now: Instant) {
        let style = self.options.style;
        let table = self.view.table(kind);
        let Some(flow) = self.flows[kind.index()].as_deref_mut() else { return };
        if plan.rest.is_some() {
            flow.touched.all();
            flow.rest = Rest::InStep;
            hold_back(flow, plan.held_back, now);
            withhold(flow, plan.withheld, now);
        }
        if plan.probing && plan.sends.is_empty() {
            flow.probes.pop_front();
        }
        for name in plan.done {
            let target = flow.target(table, &name);
            let (role, version) = (target.map(|entry| entry.role), target.map(|entry| entry.version));
            if let Some(mark) = flow.marks.get_mut(&name) {
                mark.stranded = role.is_none() && style == Style::Sotw && !kind.is_full_state();
                mark.kept = match role {
                    Some(Role::StandIn) => mark.keeps() && mark.offers.is_empty(),
                    Some(Role::Withheld) => mark.offers.is_empty(),
                    Some(Role::Own) | None => false,
                };
                let refused = kind == Kind::Secret && mark.refused.is_some_and(|(refused, _)| Some(refused) == version);
                if mark.stranded || mark.kept || refused {
                    (mark.owed, mark.asked) = (false, false);
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
        let Plan { mut rest, held_back, withheld, mut sends, done, probing, strikes } = plan;
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
        flow.owes_answer = false;
        if probing {
            flow.probes.pop_front();
        }
        if style == Style::Sotw && kind.is_full_state() {
            // The response repeats what is on its way, so its refusal may be about that.
            let again = flow.marks.iter().filter(|(name, _)| !sends.iter().any(|(sent, _)| sent == *name));
            let again = again.filter_map(|(name, mark)| Some((name.clone(), mark.offers.last()?.to.clone())));
            let again: Vec<_> = again.collect();
            sends.extend(again);
        }
        if kind == Kind::ScopedRoute {
            let markers = self.options.markers;
            let marker = if flow.has_nacked { markers.of_response(nonce) } else { markers.returning };
            for (name, to) in &mut sends {
                let unsure = flow.marks.get(name).is_some_and(|mark| mark.unsure.is_some());
                *to = to.take().map(|entry| if unsure { Arc::new(entry.resent(marker)) } else { entry });
            }
            for entry in rest.iter_mut().flatten().filter(|_| flow.is_unsure) {
                *entry = Arc::new(entry.resent(marker));
            }
        }
        if style == Style::Sotw {
            for (name, to) in &sends {
                let new = to.as_ref().filter(|entry| entry.version != 0).map_or(0, |entry| entry.weight());
                flow.sum = flow.sum.wrapping_sub(flow.sent_weight(table, name)).wrapping_add(new);
            }
        }
        let with_rest = rest.is_some();
        if let Some(entries) = rest {
            flow.sum = entries.iter().fold(flow.sum, |sum, entry| sum.wrapping_add(entry.weight()));
            flow.rest = Rest::Offered { nonce, at: now };
            hold_back(flow, held_back, now);
            withhold(flow, withheld, now);
            response.upserts = entries;
        }
        for (name, to) in &sends {
            flow.due.remove(name);
            let target = flow.target(table, name).map(|entry| entry.version);
            let Some(mark) = flow.marks.get_mut(name) else { continue };
            mark.offers.push(Offer { nonce, to: to.clone(), at: now });
            mark.leaving |= to.is_none();
            if to.is_none() {
                flow.touched.name(name);
            }
            (mark.owed, mark.asked, mark.kept) = (false, false, false);
            if mark.refused.is_some_and(|(version, _)| target != Some(version)) {
                flow.touched.name(name);
                mark.refused = None;
            }
        }
        if style == Style::Sotw && kind.is_full_state() {
            response.upserts = world(flow, table);
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
        let repeats = style == Style::Sotw && kind.is_full_state() && matches!(flow.rest, Rest::Offered { .. });
        let news = if with_rest || repeats {
            response.upserts.len()
        } else {
            sends.iter().filter(|(_, to)| to.is_some()).count()
        };
        let takes_back = false;
        flow.flights.push_back(Flight { nonce, at: now, rest: with_rest, items: sends, news, strikes, takes_back });
        self.put_down(kind, Plan { done, ..Plan::default() }, now);
        if kind == Kind::Cluster {
            self.resend_endpoints(now);
        }
        response
    }

    /// Sends what the client had of the names that it refused, or that there is nothing. `None` if nothing can be said.
    fn take_back(&mut self, kind: Kind, now: Instant) -> Option<Response> {
        let (style, nonce) = (self.options.style, self.nonce + 1);
        let table = self.view.table(kind);
        let flow = self.flows[kind.index()].as_deref_mut()?;
        let mut items = Vec::new();
        for name in std::mem::take(&mut flow.take_back) {
            let before = flow.sent_weight(table, &name);
            let Some(mark) = flow.marks.get_mut(&name) else { continue };
            let to = match &mark.have {
                Have::Known(held) if !mark.leaving => Some(held.clone()),
                _ => None,
            };
            if to.is_none() && style == Style::Sotw {
                continue;
            }
            mark.offers.push(Offer { nonce, to: to.clone(), at: now });
            mark.leaving |= to.is_none();
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
        let news = upserts.len();
        flow.flights.push_back(Flight { nonce, at: now, rest: false, items, news, strikes: 0, takes_back: true });
        Some(Response { kind, style, nonce, version, upserts, removed })
    }

    /// Envoy warms a cluster that it has just been sent until its endpoints are sent again, or said to be gone.
    fn resend_endpoints(&mut self, now: Instant) {
        let mut names = Vec::new();
        if self.flow(Kind::Endpoints).is_some()
            && let Some(flight) = self.flow(Kind::Cluster).and_then(|flow| flow.flights.back())
        {
            for entry in flight.items.iter().filter_map(|(_, to)| to.as_ref()) {
                names.extend(entry.refs.iter().filter_map(|to| match to {
                    Ref::To(Kind::Endpoints, name) => Some(name.clone()),
                    _ => None,
                }));
            }
        }
        let table = self.view.table(Kind::Endpoints);
        let Some(flow) = self.flows[Kind::Endpoints.index()].as_deref_mut() else { return };
        for name in names {
            if flow.covers(&name) && flow.rest != Rest::Nothing {
                let entry = table.get(&name).cloned();
                flow.ask(&name, entry.as_ref(), now);
            }
        }
    }
}

fn hold_back(flow: &mut Flow, names: Vec<Name>, now: Instant) {
    for name in names {
        flow.marks.insert(name.clone(), Mark::new(Have::Nothing, now));
        flow.due.insert(name);
    }
}

/// Who asked for one of these names is told that there is nothing; the others are not told anything.
fn withhold(flow: &mut Flow, names: Vec<Name>, now: Instant) {
    for name in names {
        let asked = flow.names.contains(&name);
        flow.marks.insert(name.clone(), Mark { asked, owed: asked, ..Mark::new(Have::Nothing, now) });
        flow.due.insert(name);
    }
}

/// All that a state-of-the-world client should have now: what is sent, and the older version of what has to wait.
fn world(flow: &Flow, table: &crate::table::Table) -> Vec<Arc<Entry>> {
    let unmarked = table.iter().filter(|entry| flow.covers(&entry.name) && !flow.marks.contains_key(&entry.name));
    let marked = flow.marks.values().filter_map(|mark| match (mark.offers.last(), &mark.have) {
        (Some(offer), _) => offer.to.as_ref(),
        (None, Have::Known(entry)) => Some(entry),
        (None, _) => None,
    });
    let mut entries: Vec<Arc<Entry>> = unmarked.chain(marked).cloned().collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

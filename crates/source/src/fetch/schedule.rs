//! What is fetched when: fair between tenants, patient with what fails, and never silent for long.
//!
//! In: what is wanted, what became of each fetch, and the time. Out: what to fetch next, and what to answer though nothing is
//! known. There is no I/O and no clock in here.
//!
//! * **Fair.** So many are fetched at once for all, so many for one tenant, and tenants take turns: thousands of requests of one
//!   tenant that hang take nothing from another.
//! * **Backoff for each key.** It doubles from failure to failure, and is at least what the server asked for. A change of the
//!   object, or the end of an outage, ends it. Nothing is kept of what nobody wants any more.
//! * **An answer within the deadline.** What the server refuses is answered at once; what fails in a way that may pass is
//!   answered when it has been wanted for [`Limits::deadline`], and so is what waits behind requests of its own tenant of which
//!   none is answered. It is tried on. Only while the server cannot be reached at all is there no answer: then nobody knows
//!   anything, and what is known stays in force.

use super::Key;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// How much at once, and how patiently.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many are fetched at once.
    pub total: usize,
    /// How many of those for one tenant.
    pub per_tenant: usize,
    /// The pause after the first failure; it doubles with each further one.
    pub shortest_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// The longest pause while the server cannot be reached.
    pub unreachable_pause: Duration,
    /// After how long something that is wanted counts as not readable.
    pub deadline: Duration,
}

/// What became of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is known what there is.
    Answered,
    /// The server will not hand it out.
    Refused,
    /// The server could not, but may the next time, no sooner than it says.
    Failed(Option<Duration>),
    /// There is no server.
    Unreachable,
}

/// When something waits, in the order in which it began to.
type Ticket = (Instant, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Queued(u64),
    Running,
    /// Until then; and whether that is only because there is no server.
    Pausing(Ticket, bool),
}

struct State {
    phase: Phase,
    /// It must be fetched again after this time.
    is_stale: bool,
    is_wanted: bool,
    failures: u32,
    /// Since when it is wanted, and when that is looked at again; nothing once there was an answer.
    unanswered: Option<(Instant, Ticket)>,
}

struct Tenant<K> {
    queue: BTreeMap<u64, K>,
    running: usize,
    has_turn: bool,
    /// When something of it was last answered.
    answered: Option<Instant>,
}

/// Everything that is wanted, and where it stands.
pub struct Schedule<K> {
    limits: Limits,
    states: HashMap<K, State>,
    tenants: HashMap<Arc<str>, Tenant<K>>,
    /// Tenants that have something to fetch and are below their limit.
    turns: VecDeque<Arc<str>>,
    pausing: BTreeMap<Ticket, K>,
    deadlines: BTreeMap<Ticket, K>,
    running: usize,
    /// When the server last replied, be it with an error.
    last_reply: Option<Instant>,
    tickets: u64,
}

impl<K: Key> Schedule<K> {
    /// Nothing is wanted.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            states: HashMap::new(),
            tenants: HashMap::new(),
            turns: VecDeque::new(),
            pausing: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            running: 0,
            last_reply: None,
            tickets: 0,
        }
    }

    /// It is wanted from now on.
    pub fn want(&mut self, key: K, now: Instant) {
        if self.states.get(&key).is_some_and(|state| state.is_wanted) {
            return self.refresh(&key);
        }
        let ticket = (now + self.limits.deadline, self.ticket());
        self.deadlines.insert(ticket, key.clone());
        let unanswered = Some((now, ticket));
        let new = State { phase: Phase::Idle, is_stale: false, is_wanted: true, failures: 0, unanswered };
        match self.states.get_mut(&key) {
            // What is under way was asked for before.
            Some(state) => *state = State { phase: state.phase, is_stale: true, ..new },
            None => {
                self.states.insert(key.clone(), new);
                self.enqueue(key);
            }
        }
    }

    /// It has changed: what was fetched, or failed, is of no use any more.
    pub fn refresh(&mut self, key: &K) {
        let Some(state) = self.states.get_mut(key).filter(|state| state.is_wanted) else { return };
        state.failures = 0;
        match state.phase {
            Phase::Queued(_) => {}
            Phase::Running => state.is_stale = true,
            Phase::Pausing(ticket, _) => {
                self.pausing.remove(&ticket);
                self.enqueue(key.clone());
            }
            Phase::Idle => self.enqueue(key.clone()),
        }
    }

    /// It is not wanted any more.
    pub fn forget(&mut self, key: &K) {
        let Some(state) = self.states.get_mut(key) else { return };
        if let Some((_, ticket)) = state.unanswered.take() {
            self.deadlines.remove(&ticket);
        }
        state.is_wanted = false;
        match state.phase {
            // It must be seen to end.
            Phase::Running => return state.is_stale = false,
            Phase::Queued(ticket) => {
                if let Some(tenant) = self.tenants.get_mut(key.tenant()) {
                    tenant.queue.remove(&ticket);
                }
            }
            Phase::Pausing(ticket, _) => _ = self.pausing.remove(&ticket),
            Phase::Idle => {}
        }
        self.states.remove(key);
        self.tidy(key.tenant());
    }

    /// The next to fetch, if there is room; it must be [done](Self::done).
    pub fn next(&mut self, now: Instant) -> Option<K> {
        while let Some(entry) = self.pausing.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            self.enqueue(key);
        }
        if self.running >= self.limits.total {
            return None;
        }
        loop {
            let name = self.turns.pop_front()?;
            let Some(tenant) = self.tenants.get_mut(&name) else { continue };
            tenant.has_turn = false;
            if tenant.running >= self.limits.per_tenant {
                continue;
            }
            let Some((_, key)) = tenant.queue.pop_first() else { continue };
            tenant.running += 1;
            self.running += 1;
            if let Some(state) = self.states.get_mut(&key) {
                state.phase = Phase::Running;
            }
            self.offer(&name);
            return Some(key);
        }
    }

    /// What became of a fetch; says whether that is to be told.
    pub fn done(&mut self, key: &K, outcome: Outcome, now: Instant) -> bool {
        let name = key.tenant();
        self.running -= 1;
        if let Some(tenant) = self.tenants.get_mut(name) {
            tenant.running -= 1;
            if matches!(outcome, Outcome::Answered | Outcome::Refused) {
                tenant.answered = Some(now);
            }
        }
        if outcome != Outcome::Unreachable {
            self.last_reply = Some(now);
        }
        let is_reported = self.settle(key, outcome, now);
        self.offer(name);
        self.tidy(name);
        is_reported
    }

    fn settle(&mut self, key: &K, outcome: Outcome, now: Instant) -> bool {
        let limits = self.limits;
        let ticket = self.ticket();
        let Some(state) = self.states.get_mut(key) else { return false };
        if !state.is_wanted {
            self.states.remove(key);
            return false;
        }
        state.phase = Phase::Idle;
        let is_stale = std::mem::take(&mut state.is_stale);
        if outcome == Outcome::Answered {
            state.failures = 0;
        } else if !is_stale {
            state.failures = state.failures.saturating_add(1);
            let is_unreachable = outcome == Outcome::Unreachable;
            let longest = if is_unreachable { limits.unreachable_pause } else { limits.longest_pause };
            let doubled = limits.shortest_pause.saturating_mul(1 << (state.failures - 1).min(31)).min(longest);
            let pause = match outcome {
                Outcome::Failed(Some(asked)) => doubled.max(asked.min(longest)),
                _ => doubled,
            };
            let ticket = (now + pause, ticket);
            state.phase = Phase::Pausing(ticket, is_unreachable);
            self.pausing.insert(ticket, key.clone());
        }
        let is_reported = match (outcome, state.unanswered) {
            (Outcome::Unreachable, _) => false,
            (Outcome::Failed(_), Some((since, _))) => now >= since + limits.deadline,
            _ => true,
        };
        if is_reported && let Some((_, ticket)) = state.unanswered.take() {
            self.deadlines.remove(&ticket);
        }
        if state.phase == Phase::Idle && is_stale {
            self.enqueue(key.clone());
        }
        is_reported
    }

    /// What has been wanted for too long, and must be answered though nothing is known.
    pub fn overdue(&mut self, now: Instant) -> Vec<K> {
        let mut overdue = Vec::new();
        let is_recent = |time: Option<Instant>, within: Duration| time.is_some_and(|time| time + within > now);
        while let Some(entry) = self.deadlines.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            let deadline = self.limits.deadline;
            let is_alive = is_recent(self.last_reply, deadline);
            let is_served = self.tenants.get(key.tenant()).is_some_and(|tenant| is_recent(tenant.answered, deadline));
            let again = (now + deadline / 4, self.ticket());
            let Some(state) = self.states.get_mut(&key) else { continue };
            let is_given_up = match state.phase {
                // Its end is near, and tells more.
                Phase::Running | Phase::Idle => false,
                Phase::Queued(_) => is_alive && !is_served,
                Phase::Pausing(_, is_unreachable) => !is_unreachable,
            };
            if is_given_up {
                state.unanswered = None;
                overdue.push(key);
            } else if let Some((since, _)) = state.unanswered {
                state.unanswered = Some((since, again));
                self.deadlines.insert(again, key);
            }
        }
        overdue
    }

    /// The server is back: what waited for it waits no longer.
    pub fn reachable(&mut self) {
        let waiting = self.pausing.iter().filter(|(_, key)| {
            self.states.get(key).is_some_and(|state| matches!(state.phase, Phase::Pausing(_, true)))
        });
        let waiting: Vec<(Ticket, K)> = waiting.map(|(ticket, key)| (*ticket, key.clone())).collect();
        for (ticket, key) in waiting {
            self.pausing.remove(&ticket);
            if let Some(state) = self.states.get_mut(&key) {
                state.failures = 0;
            }
            self.enqueue(key);
        }
    }

    /// When there may be something to do that nobody asked for.
    pub fn next_at(&self) -> Option<Instant> {
        let first = |times: &BTreeMap<Ticket, K>| times.first_key_value().map(|(ticket, _)| ticket.0);
        [first(&self.pausing), first(&self.deadlines)].into_iter().flatten().min()
    }

    /// Whether something is wanted.
    pub fn is_wanted(&self, key: &K) -> bool {
        self.states.get(key).is_some_and(|state| state.is_wanted)
    }

    fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    fn enqueue(&mut self, key: K) {
        let ticket = self.ticket();
        let name = key.tenant().clone();
        if let Some(state) = self.states.get_mut(&key) {
            state.phase = Phase::Queued(ticket);
        }
        let new = || Tenant { queue: BTreeMap::new(), running: 0, has_turn: false, answered: None };
        self.tenants.entry(name.clone()).or_insert_with(new).queue.insert(ticket, key);
        self.offer(&name);
    }

    /// Gives a tenant a turn, if it can use one.
    fn offer(&mut self, name: &Arc<str>) {
        let Some(tenant) = self.tenants.get_mut(name) else { return };
        if !tenant.has_turn && !tenant.queue.is_empty() && tenant.running < self.limits.per_tenant {
            tenant.has_turn = true;
            self.turns.push_back(name.clone());
        }
    }

    /// Forgets a tenant for which there is nothing to do.
    fn tidy(&mut self, name: &Arc<str>) {
        if self.tenants.get(name).is_some_and(|tenant| tenant.queue.is_empty() && tenant.running == 0) {
            self.tenants.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;

//! What one client has of one type.
//!
//! A name without a [`ResourceState`] is in the [`DefaultState`]. A state of its own is made when something about the name
//! differs (it changed, is in flight, was rejected) and dropped when the client has it as the table has it. A first full response
//! makes no states either, so a thousand clients that connect at once do not copy the table a thousand times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::alias::Aliases;
use crate::acks::Touched;
use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Role, is_of_stand_in};
use crate::table::Table;

/// The state of every subscribed name that has none of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultState {
    /// The client has nothing, and everything is to be sent.
    Unsent,
    /// Sent in one response that is not acknowledged yet.
    Sent { nonce: u64, at: Instant },
    /// The client has what the table has.
    Acked,
}

/// What the client is sure to have of one name.
#[derive(Clone, Debug)]
pub(crate) enum Acked {
    /// Nothing.
    Nothing,
    /// A version that was sent on this stream, or that it proved to have.
    Known(Arc<Entry>),
    /// A version it has from an earlier stream and that the table no longer has: what it points at is not known.
    Listed(u64),
}

/// A response's share in one name: the entry, or its removal.
#[derive(Clone, Debug)]
pub(crate) struct SentVersion {
    pub nonce: u64,
    pub to: Option<Arc<Entry>>,
    pub at: Instant,
}

/// A name about which the client differs from the table, or might.
#[derive(Clone, Debug)]
pub(crate) struct ResourceState {
    pub acked: Acked,
    /// What was sent and is not answered yet, in order. Only clusters ever have more than one.
    pub unacked: Vec<SentVersion>,
    /// What it may have instead of `acked`: it rejected a response, and may have accepted parts of it all the same.
    pub unsure: Option<Arc<Entry>>,
    /// A removal was sent: `acked` no longer counts as something to rely on.
    pub leaving: bool,
    /// The version it rejected, and when.
    pub rejected: Option<(u64, Instant)>,
    /// To be sent even if the client has it.
    pub owed: bool,
    /// The client asked for it by name and waits for an answer.
    pub asked: bool,
    /// It is gone, which cannot be said in this wording of the protocol: the client goes on using it.
    pub stranded: bool,
    /// The table has only a stand-in or withholds it: the client goes on with what it has, which may be nothing.
    pub kept: bool,
    /// Since when it has been out of step.
    pub since: Instant,
}

impl ResourceState {
    pub fn new(acked: Acked, since: Instant) -> Self {
        Self {
            acked,
            unacked: Vec::new(),
            unsure: None,
            leaving: false,
            rejected: None,
            owed: false,
            asked: false,
            stranded: false,
            kept: false,
            since,
        }
    }

    /// The version that the client has once all that was sent is taken.
    pub fn heading(&self) -> Option<u64> {
        match (self.unacked.last(), &self.acked) {
            (Some(sent_version), _) => sent_version.to.as_ref().map(|entry| entry.version),
            (None, Acked::Known(entry)) => Some(entry.version),
            (None, Acked::Listed(version)) => Some(*version),
            (None, Acked::Nothing) => None,
        }
    }

    /// Whether the client has something of its own, or will once all that was sent is taken: then no stand-in is for it.
    pub fn keeps(&self) -> bool {
        let own = |entry: &Entry| entry.role == Role::Own && entry.version != 0;
        match (self.unacked.last(), &self.acked) {
            (Some(sent_version), _) => sent_version.to.as_ref().is_some_and(|entry| own(entry)),
            (None, _) if self.leaving => false,
            (None, Acked::Known(entry)) => own(entry),
            (None, Acked::Listed(version)) => !is_of_stand_in(*version),
            (None, Acked::Nothing) => false,
        }
    }

    /// The first of those sent after which the client has the name without interruption.
    fn arriving(&self) -> Option<(&Arc<Entry>, &SentVersion)> {
        let since =
            self.unacked.iter().rposition(|sent_version| sent_version.to.is_none()).map_or(0, |removal| removal + 1);
        let sent_version = self.unacked.get(since)?;
        Some((self.unacked.last()?.to.as_ref()?, sent_version))
    }

    /// What was sent in one response.
    pub fn sent_in(&self, nonce: u64) -> Option<&SentVersion> {
        self.unacked.iter().find(|sent_version| sent_version.nonce == nonce)
    }

    fn is_settled(&self, target: Option<u64>) -> bool {
        self.unacked.is_empty() && !self.owed && self.rejected.is_none() && !self.leaving && self.heading() == target
    }
}

/// One response that is not answered yet.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub nonce: u64,
    pub at: Instant,
    /// Whether it carried every name without a state of its own.
    pub carries_all: bool,
    pub items: Vec<(Name, Option<Arc<Entry>>)>,
    /// How many resources in it the client was not sure to have.
    pub unconfirmed: usize,
    /// How often in a row a response with these names was rejected.
    pub rejections: u8,
    /// Whether it reverts what was rejected: see [`Flow::to_revert`].
    pub reverts: bool,
}

/// Names to be sent apart from others, to find out which of them is rejected.
#[derive(Debug)]
pub(crate) struct Probe {
    pub names: Vec<Name>,
    pub rejections: u8,
}

/// How far the client is with one name.
pub(crate) enum Delivery<'a> {
    /// It has some version.
    Acked,
    /// It has none; one is on its way.
    Sent { entry: &'a Arc<Entry>, nonce: u64, at: Instant },
    /// It has none and none was sent; it may have rejected one at that time.
    Unsent(Option<Instant>),
}

pub(crate) struct Flow {
    pub wildcard: bool,
    /// Names were listed at some time: an empty list no longer means every name (state of the world).
    pub listed: bool,
    /// In order, so that clients with the same names get the same responses, encoded once.
    pub names: BTreeSet<Name>,
    pub default_state: DefaultState,
    pub states: BTreeMap<Name, ResourceState>,
    /// The names with a state of their own that may need sending.
    pub due: BTreeSet<Name>,
    pub in_flight: VecDeque<InFlight>,
    pub probes: VecDeque<Probe>,
    /// Names that the client rejected but may keep all the same: before anything else it is sent what it had, or a removal.
    pub to_revert: BTreeSet<Name>,
    /// The client may have any name from a rejected response of an earlier stream: see [`Entry::resent`].
    pub is_unsure: bool,
    /// A response was rejected on this stream.
    pub has_nacked: bool,
    /// The client waits for a first answer, even if it is empty.
    pub owes_response: bool,
    pub aliases: Aliases,
    /// The version of what was sent so far (state of the world, types whose responses are partial).
    pub sum: u64,
    pub opened: Instant,
    pub last_ack: Option<Instant>,
    /// Names about which the client may stand otherwise than when this was last taken.
    pub touched: Touched,
}

impl Flow {
    pub fn new(now: Instant) -> Self {
        let mut touched = Touched::default();
        touched.all();
        Self {
            wildcard: false,
            listed: false,
            names: BTreeSet::new(),
            default_state: DefaultState::Unsent,
            states: BTreeMap::new(),
            due: BTreeSet::new(),
            in_flight: VecDeque::new(),
            probes: VecDeque::new(),
            to_revert: BTreeSet::new(),
            is_unsure: false,
            has_nacked: false,
            owes_response: false,
            aliases: Aliases::default(),
            sum: 0,
            opened: now,
            last_ack: None,
            touched,
        }
    }

    /// Whether the client is subscribed to the name.
    pub fn covers(&self, name: &str) -> bool {
        self.wildcard || self.names.contains(name)
    }

    /// Whether the client has what the table has under that name, found without a look at the table: a client that connects has
    /// as many scopes that ask for their clusters as there are hosts.
    pub fn is_acked(&self, name: &str) -> bool {
        self.wildcard && self.default_state == DefaultState::Acked && !self.states.contains_key(name)
    }

    /// What the client should have under that name.
    pub fn target<'a>(&'a self, table: &'a Table, name: &str) -> Option<&'a Arc<Entry>> {
        table.get(name).or_else(|| self.aliases.get(name))
    }

    /// How far the client is with a name.
    pub fn delivery<'a>(&'a self, table: &'a Table, name: &str) -> Delivery<'a> {
        if let Some(state) = self.states.get(name) {
            return match (&state.acked, state.arriving()) {
                (Acked::Known(_) | Acked::Listed(_), _) if !state.leaving => Delivery::Acked,
                (_, Some((entry, sent_version))) => {
                    Delivery::Sent { entry, nonce: sent_version.nonce, at: sent_version.at }
                }
                _ => Delivery::Unsent(state.rejected.map(|(_, at)| at)),
            };
        }
        match (self.target(table, name).filter(|_| self.covers(name)), self.default_state) {
            (Some(_), DefaultState::Acked) => Delivery::Acked,
            (Some(entry), DefaultState::Sent { nonce, at }) => Delivery::Sent { entry, nonce, at },
            _ => Delivery::Unsent(None),
        }
    }

    /// The state of a name that the client is already subscribed to, made from the default state if it has none.
    pub fn state_mut(&mut self, name: &Name, table_has: Option<&Arc<Entry>>, now: Instant) -> &mut ResourceState {
        let default = self.default_state;
        self.states.entry(name.clone()).or_insert_with(|| match (default, table_has) {
            (DefaultState::Acked, Some(entry)) => ResourceState::new(Acked::Known(entry.clone()), now),
            (DefaultState::Sent { nonce, at }, Some(entry)) => {
                let sent_version = SentVersion { nonce, to: Some(entry.clone()), at };
                ResourceState { unacked: vec![sent_version], ..ResourceState::new(Acked::Nothing, now) }
            }
            _ => ResourceState::new(Acked::Nothing, now),
        })
    }

    /// A subscribed name differs from what it was; `old` is its entry in the table up to now, `there` whether it will
    /// have one.
    pub fn changed(&mut self, name: &Name, old: Option<&Arc<Entry>>, there: bool, now: Instant) {
        if self.default_state == DefaultState::Unsent && !self.states.contains_key(name) {
            if !there && self.names.contains(name) {
                self.ask(name, None, now);
            }
            return;
        }
        let settled = |state: &ResourceState| state.kept || state.rejected.is_some() && state.unacked.is_empty();
        let in_step = self.states.get(name).is_none_or(settled);
        let state = self.state_mut(name, old, now);
        // What it has after a rejection is not known, and was not sent again while there was nothing to send.
        let unsure = state.unsure.is_some() && state.rejected.is_none();
        state.owed |= unsure || state.leaving && state.unacked.is_empty();
        state.kept = false;
        if in_step {
            state.since = now;
        }
        self.due.insert(name.clone());
    }

    /// The client waits for an answer about a name, whatever the answer is.
    pub fn ask(&mut self, name: &Name, table_has: Option<&Arc<Entry>>, now: Instant) {
        let state = self.state_mut(name, table_has, now);
        (state.owed, state.asked) = (true, true);
        self.due.insert(name.clone());
    }

    /// Forgets a name that the client no longer wants.
    pub fn forget(&mut self, name: &str) {
        self.to_revert.remove(name);
        self.states.remove(name);
        self.due.remove(name);
        self.aliases.remove(name);
        self.touched.name(&name.into());
    }

    /// The clusters that resources point at which the client has, and not as they are in a response and those before it.
    pub fn clusters_left(&self, nonce: u64) -> impl Iterator<Item = Name> {
        let taken = self.in_flight.iter().take_while(move |response| response.nonce <= nonce);
        let items = taken.flat_map(|response| &response.items);
        let changed = items.filter_map(|(name, to)| match &self.states.get(name)?.acked {
            Acked::Known(old) => Some((old, to)),
            Acked::Listed(_) | Acked::Nothing => None,
        });
        changed.flat_map(|(old, to)| {
            let left = old.refs.iter().filter(move |of| to.as_ref().is_none_or(|to| !to.refs.contains(of)));
            left.filter_map(|of| match of {
                Ref::To(Kind::Cluster, cluster) => Some(cluster.clone()),
                Ref::To(..) | Ref::Under(..) => None,
            })
        })
    }

    /// A response was taken. Answers come in order, so all that were sent before it have been taken, too.
    pub fn ack(&mut self, table: &Table, nonce: u64, now: Instant) -> Option<Duration> {
        let at = self.in_flight.iter().position(|response| response.nonce == nonce)?;
        let mut latency = Duration::ZERO;
        for response in self.in_flight.drain(..=at).collect::<Vec<_>>() {
            latency = now.saturating_duration_since(response.at);
            if response.carries_all {
                self.default_state = DefaultState::Acked;
                self.is_unsure = false;
                self.touched.all();
                let with_state: Vec<_> = self
                    .states
                    .iter()
                    .filter_map(|(name, state)| Some((name.clone(), state.sent_in(response.nonce)?.to.clone())))
                    .collect();
                with_state.into_iter().for_each(|(name, to)| self.taken(table, &name, to, response.nonce));
            }
            for (name, to) in response.items {
                self.taken(table, &name, to, response.nonce);
            }
        }
        self.last_ack = Some(now);
        Some(latency)
    }

    fn taken(&mut self, table: &Table, name: &Name, to: Option<Arc<Entry>>, nonce: u64) {
        self.touched.name(name);
        let target = self.target(table, name).map(|entry| entry.version);
        let Some(state) = self.states.get_mut(name) else { return };
        state.acked = match to {
            // The placeholder for endpoints that do not exist.
            Some(entry) if entry.version == 0 => Acked::Nothing,
            Some(entry) => Acked::Known(entry),
            None => Acked::Nothing,
        };
        state.unsure = None;
        state.unacked.retain(|sent_version| sent_version.nonce > nonce);
        state.leaving = state.unacked.iter().any(|sent_version| sent_version.to.is_none());
        if state.rejected.is_some_and(|(version, _)| Some(version) != target) {
            state.rejected = None;
        }
        if state.is_settled(target) {
            self.states.remove(name);
            self.due.remove(name);
        } else if state.heading() != target {
            self.due.insert(name.clone());
        }
    }

    /// Drops a state that says nothing more than its absence would.
    pub fn settle(&mut self, table: &Table, name: &Name) {
        self.due.remove(name);
        let target = self.target(table, name).map(|entry| entry.version);
        let Some(state) = self.states.get_mut(name) else { return };
        self.touched.name(name);
        if state.rejected.is_some_and(|(version, _)| Some(version) != target) {
            state.rejected = None;
        }
        if self.default_state != DefaultState::Unsent && state.is_settled(target) {
            self.states.remove(name);
        }
    }

    /// What was last sent of a name adds this to the version of all that was sent.
    pub fn sent_weight(&self, table: &Table, name: &str) -> u64 {
        if let Some(state) = self.states.get(name) {
            return match (state.unacked.last(), &state.acked) {
                (Some(SentVersion { to: Some(entry), .. }), _) if entry.version != 0 => entry.weight(),
                (None, Acked::Known(entry)) => entry.weight(),
                _ => 0,
            };
        }
        match (self.target(table, name), self.default_state) {
            (Some(entry), DefaultState::Acked | DefaultState::Sent { .. }) => entry.weight(),
            _ => 0,
        }
    }
}

//! What one client has of one type.
//!
//! A name without a [`Mark`] is in the state that [`Rest`] says; a mark is made when something about the name differs
//! (it changed, is on its way, was refused) and goes when the client has it as the table has it. A first full answer
//! makes no marks either, so a thousand clients that connect at once do not copy the table a thousand times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::alias::Aliases;
use crate::acks::Touched;
use crate::resource::{Entry, Name, Role};
use crate::table::Table;

/// The state of every subscribed name that has no mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The client has nothing, and all of it is to be sent.
    Nothing,
    /// Sent in one response that is not answered yet.
    Offered { nonce: u64, at: Instant },
    /// The client has what the table has.
    InStep,
}

/// What the client is sure to have of one name.
#[derive(Clone, Debug)]
pub(crate) enum Have {
    /// Nothing.
    Nothing,
    /// A version that was sent on this stream, or that it proved to have.
    Known(Arc<Entry>),
    /// A version it has from an earlier stream and that the table no longer has: what it points at is not known.
    Listed(u64),
}

/// A response's share in one name: the entry, or its removal.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub nonce: u64,
    pub to: Option<Arc<Entry>>,
    pub at: Instant,
}

/// A name about which the client differs from the table, or might.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub have: Have,
    /// The offers that are not answered yet, in order. More than one is only ever out for clusters.
    pub offers: Vec<Offer>,
    /// What it may have instead of `have`: it refused a response, and may have taken parts of it all the same.
    pub unsure: Option<Arc<Entry>>,
    /// A removal was sent: `have` no longer counts as something to rely on.
    pub leaving: bool,
    /// The version it refused, and when.
    pub refused: Option<(u64, Instant)>,
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

impl Mark {
    pub fn new(have: Have, since: Instant) -> Self {
        Self {
            have,
            offers: Vec::new(),
            unsure: None,
            leaving: false,
            refused: None,
            owed: false,
            asked: false,
            stranded: false,
            kept: false,
            since,
        }
    }

    /// The version that the client has once all that was sent is taken.
    pub fn heading(&self) -> Option<u64> {
        match (self.offers.last(), &self.have) {
            (Some(offer), _) => offer.to.as_ref().map(|entry| entry.version),
            (None, Have::Known(entry)) => Some(entry.version),
            (None, Have::Listed(version)) => Some(*version),
            (None, Have::Nothing) => None,
        }
    }

    /// Whether the client has something of its own, or will once all that was sent is taken: then no stand-in is for it.
    pub fn keeps(&self) -> bool {
        let own = |entry: &Entry| entry.role == Role::Own && entry.version != 0;
        match (self.offers.last(), &self.have) {
            (Some(offer), _) => offer.to.as_ref().is_some_and(|entry| own(entry)),
            (None, _) if self.leaving => false,
            (None, Have::Known(entry)) => own(entry),
            (None, Have::Listed(_)) => true,
            (None, Have::Nothing) => false,
        }
    }

    /// The first offer after which the client has the name without interruption.
    fn arriving(&self) -> Option<(&Arc<Entry>, &Offer)> {
        let since = self.offers.iter().rposition(|offer| offer.to.is_none()).map_or(0, |removal| removal + 1);
        let offer = self.offers.get(since)?;
        Some((self.offers.last()?.to.as_ref()?, offer))
    }

    /// What was offered in one response.
    pub fn offered(&self, nonce: u64) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.nonce == nonce)
    }

    fn is_settled(&self, target: Option<u64>) -> bool {
        self.offers.is_empty() && !self.owed && self.refused.is_none() && !self.leaving && self.heading() == target
    }
}

/// One response that is not answered yet.
#[derive(Debug)]
pub(crate) struct Flight {
    pub nonce: u64,
    pub at: Instant,
    /// Whether it carried every name without a mark.
    pub rest: bool,
    pub items: Vec<(Name, Option<Arc<Entry>>)>,
    /// How many resources in it the client was not sure to have.
    pub news: usize,
    /// How often in a row a response with these names was refused.
    pub strikes: u8,
    /// Whether it takes back what was refused: see [`Flow::take_back`].
    pub takes_back: bool,
}

/// Names to be sent apart from others, to find out which of them is refused.
#[derive(Debug)]
pub(crate) struct Probe {
    pub names: Vec<Name>,
    pub strikes: u8,
}

/// How far the client is with one name.
pub(crate) enum Standing<'a> {
    /// It has some version.
    Held,
    /// It has none; one is on its way.
    Offered { entry: &'a Arc<Entry>, nonce: u64, at: Instant },
    /// It has none and none was sent; it may have refused one at that time.
    Unsent(Option<Instant>),
}

pub(crate) struct Flow {
    pub wildcard: bool,
    /// Names were listed at some time: an empty list no longer means every name (state of the world).
    pub listed: bool,
    /// In order, so that clients with the same names get the same responses, encoded once.
    pub names: BTreeSet<Name>,
    pub rest: Rest,
    pub marks: BTreeMap<Name, Mark>,
    /// The marked names that may need sending.
    pub due: BTreeSet<Name>,
    pub flights: VecDeque<Flight>,
    pub probes: VecDeque<Probe>,
    /// Names that the client refused but may keep all the same: before anything else it is sent what it had, or that there is
    /// nothing.
    pub take_back: BTreeSet<Name>,
    /// The client may have any name from a rejected response of an earlier stream: see [`Entry::resent`].
    pub is_unsure: bool,
    /// A response was rejected on this stream.
    pub has_nacked: bool,
    /// The client waits for a first answer, even if it is empty.
    pub owes_answer: bool,
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
            rest: Rest::Nothing,
            marks: BTreeMap::new(),
            due: BTreeSet::new(),
            flights: VecDeque::new(),
            probes: VecDeque::new(),
            take_back: BTreeSet::new(),
            is_unsure: false,
            has_nacked: false,
            owes_answer: false,
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

    /// What the client should have under that name.
    pub fn target<'a>(&'a self, table: &'a Table, name: &str) -> Option<&'a Arc<Entry>> {
        table.get(name).or_else(|| self.aliases.get(name))
    }

    /// How far the client is with a name.
    pub fn standing<'a>(&'a self, table: &'a Table, name: &str) -> Standing<'a> {
        if let Some(mark) = self.marks.get(name) {
            return match (&mark.have, mark.arriving()) {
                (Have::Known(_) | Have::Listed(_), _) if !mark.leaving => Standing::Held,
                (_, Some((entry, offer))) => Standing::Offered { entry, nonce: offer.nonce, at: offer.at },
                _ => Standing::Unsent(mark.refused.map(|(_, at)| at)),
            };
        }
        match (self.target(table, name).filter(|_| self.covers(name)), self.rest) {
            (Some(_), Rest::InStep) => Standing::Held,
            (Some(entry), Rest::Offered { nonce, at }) => Standing::Offered { entry, nonce, at },
            _ => Standing::Unsent(None),
        }
    }

    /// The mark of a name that the client is already subscribed to, made from the state it is in.
    pub fn mark(&mut self, name: &Name, table_has: Option<&Arc<Entry>>, now: Instant) -> &mut Mark {
        let rest = self.rest;
        self.marks.entry(name.clone()).or_insert_with(|| match (rest, table_has) {
            (Rest::InStep, Some(entry)) => Mark::new(Have::Known(entry.clone()), now),
            (Rest::Offered { nonce, at }, Some(entry)) => {
                let offer = Offer { nonce, to: Some(entry.clone()), at };
                Mark { offers: vec![offer], ..Mark::new(Have::Nothing, now) }
            }
            _ => Mark::new(Have::Nothing, now),
        })
    }

    /// A subscribed name differs from what it was; `old` is its entry in the table up to now, `there` whether it will
    /// have one.
    pub fn changed(&mut self, name: &Name, old: Option<&Arc<Entry>>, there: bool, now: Instant) {
        if self.rest == Rest::Nothing && !self.marks.contains_key(name) {
            if !there && self.names.contains(name) {
                self.ask(name, None, now);
            }
            return;
        }
        let settled = |mark: &Mark| mark.kept || mark.refused.is_some() && mark.offers.is_empty();
        let in_step = self.marks.get(name).is_none_or(settled);
        let mark = self.mark(name, old, now);
        mark.kept = false;
        if in_step {
            mark.since = now;
        }
        self.due.insert(name.clone());
    }

    /// The client waits for an answer about a name, whatever the answer is.
    pub fn ask(&mut self, name: &Name, table_has: Option<&Arc<Entry>>, now: Instant) {
        let mark = self.mark(name, table_has, now);
        (mark.owed, mark.asked) = (true, true);
        self.due.insert(name.clone());
    }

    /// Forgets a name that the client no longer wants.
    pub fn forget(&mut self, name: &str) {
        self.take_back.remove(name);
        self.marks.remove(name);
        self.due.remove(name);
        self.aliases.remove(name);
        self.touched.name(&name.into());
    }

    /// A response was taken. Answers come in order, so all that were sent before it have been taken, too.
    pub fn ack(&mut self, table: &Table, nonce: u64, now: Instant) -> Option<Duration> {
        let at = self.flights.iter().position(|flight| flight.nonce == nonce)?;
        let mut latency = Duration::ZERO;
        for flight in self.flights.drain(..=at).collect::<Vec<_>>() {
            latency = now.saturating_duration_since(flight.at);
            if flight.rest {
                self.rest = Rest::InStep;
                self.is_unsure = false;
                self.touched.all();
                let marked: Vec<_> = self
                    .marks
                    .iter()
                    .filter_map(|(name, mark)| Some((name.clone(), mark.offered(flight.nonce)?.to.clone())))
                    .collect();
                marked.into_iter().for_each(|(name, to)| self.taken(table, &name, to, flight.nonce));
            }
            for (name, to) in flight.items {
                self.taken(table, &name, to, flight.nonce);
            }
        }
        self.last_ack = Some(now);
        Some(latency)
    }

    fn taken(&mut self, table: &Table, name: &Name, to: Option<Arc<Entry>>, nonce: u64) {
        self.touched.name(name);
        let target = self.target(table, name).map(|entry| entry.version);
        let Some(mark) = self.marks.get_mut(name) else { return };
        mark.have = match to {
            // The placeholder for endpoints that do not exist.
            Some(entry) if entry.version == 0 => Have::Nothing,
            Some(entry) => Have::Known(entry),
            None => Have::Nothing,
        };
        mark.unsure = None;
        mark.offers.retain(|offer| offer.nonce > nonce);
        mark.leaving = mark.offers.iter().any(|offer| offer.to.is_none());
        if mark.refused.is_some_and(|(version, _)| Some(version) != target) {
            mark.refused = None;
        }
        if mark.is_settled(target) {
            self.marks.remove(name);
            self.due.remove(name);
        } else if mark.heading() != target {
            self.due.insert(name.clone());
        }
    }

    /// Drops a mark that says nothing more than its absence would.
    pub fn settle(&mut self, table: &Table, name: &Name) {
        self.due.remove(name);
        let target = self.target(table, name).map(|entry| entry.version);
        let Some(mark) = self.marks.get_mut(name) else { return };
        self.touched.name(name);
        if mark.refused.is_some_and(|(version, _)| Some(version) != target) {
            mark.refused = None;
        }
        if self.rest != Rest::Nothing && mark.is_settled(target) {
            self.marks.remove(name);
        }
    }

    /// What was last sent of a name adds this to the version of all that was sent.
    pub fn sent_weight(&self, table: &Table, name: &str) -> u64 {
        if let Some(mark) = self.marks.get(name) {
            return match (mark.offers.last(), &mark.have) {
                (Some(Offer { to: Some(entry), .. }), _) if entry.version != 0 => entry.weight(),
                (None, Have::Known(entry)) => entry.weight(),
                _ => 0,
            };
        }
        match (self.target(table, name), self.rest) {
            (Some(entry), Rest::InStep | Rest::Offered { .. }) => entry.weight(),
            _ => 0,
        }
    }
}

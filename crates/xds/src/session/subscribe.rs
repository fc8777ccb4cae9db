//! What the client wants: both wordings of a subscription, and what it already has.
//!
//! | the client says | delta | state of the world |
//! |---|---|---|
//! | first request, no names | every name | every name |
//! | `*` | every name, beside those listed | every name, beside those listed |
//! | a name | added; sent even if it was sent before | the list replaces the one before |
//! | no longer a name | dropped; still covered by `*`: sent again, so that the client knows | dropped |
//! | an empty list after names | nothing changes | nothing is wanted |
//! | a name that does not exist | answered as removed, sent when it comes | sent when it comes |
//! | what it has | listed by version: only what differs is sent | one version for all of it |

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use super::flow::{Acked, DefaultState, Flow, ResourceState};
use super::{InitialVersions, LimitExceeded, Session};
use crate::kind::Kind;
use crate::resource::{Name, Role};
use crate::table::Table;

const EVERY: &str = "*";

impl Session {
    pub(super) fn on_delta(
        &mut self,
        kind: Kind,
        subscribe: Vec<Name>,
        unsubscribe: Vec<Name>,
        initial_versions: InitialVersions,
        now: Instant,
    ) -> Result<(), LimitExceeded> {
        self.check(kind, subscribe.len() + initial_versions.len(), subscribe.iter())?;
        if self.flow(kind).is_none() {
            self.open_delta(kind, subscribe, &unsubscribe, &initial_versions, now);
            return Ok(());
        }
        for name in subscribe {
            if &*name == EVERY {
                self.widen(kind, now);
            } else {
                self.add(kind, name, true, now);
            }
        }
        for name in unsubscribe {
            if &*name == EVERY {
                self.narrow(kind);
            } else {
                self.drop_name(kind, &name, now);
            }
        }
        Ok(())
    }

    /// The first request for a type on this stream.
    fn open_delta(
        &mut self,
        kind: Kind,
        subscribe: Vec<Name>,
        unsubscribe: &[Name],
        initial_versions: &InitialVersions,
        now: Instant,
    ) {
        let mut flow = Box::new(Flow::new(now));
        flow.wildcard = subscribe.iter().any(|name| &**name == EVERY) || subscribe.is_empty() && unsubscribe.is_empty();
        let table = self.view.table(kind);
        flow.names = subscribe.into_iter().filter(|name| &**name != EVERY).map(|name| shared(table, name)).collect();
        if let Some(resolver) = self.options.resolver(kind) {
            for name in flow.names.iter().cloned().collect::<Vec<_>>() {
                flow.resolve(kind, resolver, table, &name, &self.options.limits);
            }
        }
        // On an earlier stream it rejected these as they are now.
        for name in flow.names.iter().filter(|_| kind == Kind::Secret) {
            if let Some(entry) = flow.target(table, name).filter(|entry| self.options.has_rejected(kind, entry)) {
                let state =
                    ResourceState { rejected: Some((entry.version, now)), ..ResourceState::new(Acked::Nothing, now) };
                flow.states.insert(name.clone(), state);
            }
        }
        if initial_versions.is_empty() {
            flow.owes_response = flow.wildcard;
            flow.is_unsure = kind == Kind::ScopedRoute && self.returning;
        } else {
            self.returning = true;
            flow.default_state = DefaultState::Acked;
            let states = if in_step(&flow, table, initial_versions) {
                Vec::new()
            } else {
                self.differences(kind, &flow, initial_versions, now)
            };
            flow.due.extend(states.iter().map(|(name, _)| name.clone()));
            flow.states.extend(states);
        }
        // A name is waited for, whatever becomes of it. A cluster that the client still has is not: see the gate. Nor is
        // what it has for as long as there is only a stand-in.
        let waits = |name: &&Name| {
            let target = flow.target(table, name);
            let own = target.is_none_or(|entry| entry.role == Role::Own);
            match flow.states.get(*name) {
                Some(state) => kind != Kind::Cluster && own || matches!(state.acked, Acked::Nothing),
                None => target.is_none(),
            }
        };
        let waiting: Vec<Name> = flow.names.iter().filter(waits).cloned().collect();
        waiting.iter().for_each(|name| flow.ask(name, None, now));
        self.flows[kind.index()] = Some(flow);
    }

    /// Where the client differs from the table.
    fn differences(
        &self,
        kind: Kind,
        flow: &Flow,
        initial_versions: &InitialVersions,
        now: Instant,
    ) -> Vec<(Name, ResourceState)> {
        let table = self.view.table(kind);
        let versions: HashMap<&str, u64> = initial_versions.iter().collect();
        let wanted = table.iter().map(|entry| &entry.name).filter(|name| flow.covers(name));
        let aliased = flow.names.iter().filter(|name| flow.aliases.get(name).is_some());
        let mut states = Vec::new();
        for name in wanted.chain(aliased) {
            let Some(entry) = flow.target(table, name) else { continue };
            let acked = match versions.get(&**name) {
                Some(version) if *version == entry.version => continue,
                Some(version) => Acked::Listed(*version),
                None => Acked::Nothing,
            };
            let mut state = ResourceState::new(acked, now);
            state.unsure = (kind == Kind::ScopedRoute).then(|| entry.clone());
            if self.options.has_rejected(kind, entry) {
                state.rejected = Some((entry.version, now));
            }
            states.push((name.clone(), state));
        }
        for (name, version) in versions {
            if flow.covers(name) && flow.target(table, name).is_none() {
                states.push((name.into(), ResourceState::new(Acked::Listed(version), now)));
            }
        }
        states
    }

    pub(super) fn on_sotw(
        &mut self,
        kind: Kind,
        names: Vec<Name>,
        version: Option<u64>,
        now: Instant,
    ) -> Result<(), LimitExceeded> {
        self.check(kind, names.len(), names.iter())?;
        let every = names.iter().any(|name| &**name == EVERY);
        let table = self.view.table(kind);
        let names: BTreeSet<Name> =
            names.into_iter().filter(|name| &**name != EVERY).map(|name| shared(table, name)).collect();
        let Some(flow) = self.flows[kind.index()].as_deref_mut() else {
            self.open_sotw(kind, every, names, version, now);
            return Ok(());
        };
        flow.listed |= !names.is_empty();
        let gone: Vec<Name> = flow.names.difference(&names).cloned().collect();
        let new: Vec<Name> = names.difference(&flow.names).cloned().collect();
        let wildcard = every || names.is_empty() && !flow.listed;
        // What is wanted in either way is never out of sight in between.
        if wildcard {
            self.widen(kind, now);
        }
        for name in new {
            self.add(kind, name, false, now);
        }
        if !wildcard {
            self.narrow(kind);
        }
        for name in gone {
            self.drop_name(kind, &name, now);
        }
        Ok(())
    }

    fn open_sotw(&mut self, kind: Kind, every: bool, names: BTreeSet<Name>, version: Option<u64>, now: Instant) {
        let mut flow = Box::new(Flow::new(now));
        flow.wildcard = every || names.is_empty();
        flow.listed = !names.is_empty();
        flow.names = names;
        let table = self.view.table(kind);
        if let Some(resolver) = self.options.resolver(kind) {
            for name in flow.names.iter().cloned().collect::<Vec<_>>() {
                flow.resolve(kind, resolver, table, &name, &self.options.limits);
            }
        }
        let sum = if flow.wildcard {
            table.version()
        } else {
            let entries = flow.names.iter().filter_map(|name| flow.target(table, name));
            entries.fold(0u64, |sum, entry| sum.wrapping_add(entry.weight()))
        };
        self.returning |= version.is_some();
        if version == Some(sum) {
            (flow.default_state, flow.sum) = (DefaultState::Acked, sum);
            let withheld = table.iter().filter(|entry| entry.role == Role::Withheld && flow.covers(&entry.name));
            let state = || ResourceState { kept: true, ..ResourceState::new(Acked::Nothing, now) };
            let states: Vec<_> = withheld.map(|entry| (entry.name.clone(), state())).collect();
            flow.states.extend(states);
        } else {
            flow.owes_response = kind.is_full_state() || flow.wildcard;
            flow.is_unsure = kind == Kind::ScopedRoute && self.returning;
            for name in flow.names.clone() {
                if flow.target(table, &name).is_none() {
                    flow.ask(&name, None, now);
                }
            }
        }
        self.flows[kind.index()] = Some(flow);
    }

    /// Every name is wanted from now on.
    fn widen(&mut self, kind: Kind, now: Instant) {
        let table = self.view.table(kind);
        let Some(flow) = self.flows[kind.index()].as_deref_mut().filter(|flow| !flow.wildcard) else { return };
        if flow.default_state != DefaultState::Unsent {
            for entry in table.iter().filter(|entry| !flow.names.contains(&entry.name)) {
                flow.states.insert(entry.name.clone(), ResourceState::new(Acked::Nothing, now));
                flow.due.insert(entry.name.clone());
            }
        }
        (flow.wildcard, flow.owes_response) = (true, true);
        flow.touched.all();
    }

    /// Only the names that were listed are wanted from now on.
    fn narrow(&mut self, kind: Kind) {
        let table = self.view.table(kind);
        let Some(flow) = self.flows[kind.index()].as_deref_mut().filter(|flow| flow.wildcard) else { return };
        flow.wildcard = false;
        flow.owes_response = false;
        flow.touched.all();
        let gone: Vec<Name> = flow.states.keys().filter(|name| !flow.names.contains(*name)).cloned().collect();
        gone.iter().for_each(|name| flow.forget(name));
        let kept = flow.names.iter().map(|name| flow.sent_weight(table, name));
        flow.sum = kept.fold(0, u64::wrapping_add);
    }

    /// One more name; `again` if it is to be sent even if the client should have it.
    fn add(&mut self, kind: Kind, name: Name, again: bool, now: Instant) {
        let table = self.view.table(kind);
        let full = self.count_names() >= self.options.limits.names;
        let Some(flow) = self.flows[kind.index()].as_deref_mut() else { return };
        let name = shared(table, name);
        let covered = flow.covers(&name);
        flow.names.insert(name.clone());
        flow.touched.name(&name);
        if let Some(resolver) = self.options.resolver(kind) {
            if full && !covered && table.get(&name).is_none() {
                return flow.evict(name);
            }
            flow.resolve(kind, resolver, table, &name, &self.options.limits);
        }
        let entry = flow.target(table, &name).cloned();
        let rejected = entry.as_ref().filter(|entry| kind == Kind::Secret && self.options.has_rejected(kind, entry));
        let rejected = rejected.map(|entry| (entry.version, now));
        if flow.default_state == DefaultState::Unsent
            && entry.is_some()
            && rejected.is_none()
            && !flow.states.contains_key(&name)
        {
            return;
        }
        if !covered {
            flow.states.insert(name.clone(), ResourceState { rejected, ..ResourceState::new(Acked::Nothing, now) });
        }
        if again || !covered {
            flow.ask(&name, entry.as_ref(), now);
        }
    }

    fn drop_name(&mut self, kind: Kind, name: &Name, now: Instant) {
        let table = self.view.table(kind);
        let delta = self.options.style == super::Style::Delta;
        let Some(flow) = self.flows[kind.index()].as_deref_mut() else { return };
        if !flow.wildcard {
            if flow.names.contains(name) {
                flow.sum = flow.sum.wrapping_sub(flow.sent_weight(table, name));
                flow.names.remove(name);
                flow.forget(name);
            }
            return;
        }
        flow.names.remove(name);
        flow.aliases.remove(name);
        if delta && flow.default_state != DefaultState::Unsent {
            let entry = table.get(name).cloned();
            flow.ask(name, entry.as_ref(), now);
        }
    }

    fn check<'a>(&self, kind: Kind, more: usize, names: impl Iterator<Item = &'a Name>) -> Result<(), LimitExceeded> {
        let limits = &self.options.limits;
        // Names that visitors choose are forgotten, not held against the client. State of the world repeats all its names with
        // every request, so they are not added to what there is.
        let delta = self.options.style == super::Style::Delta;
        let known = if delta { self.count_names() } else { 0 };
        let forgets = delta && self.options.resolver(kind).is_some();
        if known + more > limits.names && !forgets {
            return Err(LimitExceeded::TooManyNames(limits.names));
        }
        match names.map(|name| name.len()).find(|len| *len > limits.name_length) {
            Some(length) => Err(LimitExceeded::NameTooLong(length)),
            None => Ok(()),
        }
    }
}

/// Whether a client that asks for every name has what the table has, and nothing else. The sum over what it lists is that of
/// the table only if it lists each once: so nothing has to be kept to find out.
fn in_step(flow: &Flow, table: &Table, initial_versions: &InitialVersions) -> bool {
    if !flow.wildcard || !flow.names.is_empty() || initial_versions.len() != table.len() {
        return false;
    }
    let mut sum = 0u64;
    for (name, version) in initial_versions.iter() {
        match table.get(name) {
            Some(entry) if entry.version == version => sum = sum.wrapping_add(entry.weight()),
            _ => return false,
        }
    }
    sum == table.version()
}

/// The table's copy of a name, if it has one: one string, however many clients.
fn shared(table: &Table, name: Name) -> Name {
    table.get(&name).map_or(name, |entry| entry.name.clone())
}

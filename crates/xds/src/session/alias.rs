//! Names of one client that a table does not list and a [`Resolver`] led to one that it does.
//!
//! Visitors choose these names (an SNI), so they are bounded, per client and per resource: the name that was not asked
//! for longest makes room and is taken back from the client, which asks again if it needs it. The same goes for names that lead
//! nowhere: some are remembered, so that they are sent as soon as there is something, and no more than that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use super::flow::{DefaultState, Flow, ResourceState};
use crate::kind::Kind;
use crate::limits::Limits;
use crate::resolve::Resolver;
use crate::resource::{Entry, Name};
use crate::table::Table;

struct Alias {
    of: Arc<Entry>,
    entry: Arc<Entry>,
    used: u64,
}

/// The resolved names of one flow.
#[derive(Default)]
pub(crate) struct Aliases {
    by_name: HashMap<Name, Alias>,
    /// Per resource, its names in the order in which they were asked for.
    by_use: HashMap<Name, BTreeMap<u64, Name>>,
    all_by_use: BTreeMap<u64, Name>,
    clock: u64,
    /// Names that lead nowhere, and the order in which they were asked for.
    absent: HashMap<Name, u64>,
    absent_by_use: BTreeMap<u64, Name>,
    /// Names that made room and must be taken back from the client.
    pub evicted: Vec<Name>,
}

impl Aliases {
    /// What stands for the name.
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.by_name.get(name).map(|alias| &alias.entry)
    }

    /// Takes a name out.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Entry>> {
        if let Some(used) = self.absent.remove(name) {
            self.absent_by_use.remove(&used);
        }
        let alias = self.by_name.remove(name)?;
        self.all_by_use.remove(&alias.used);
        if let Some(names) = self.by_use.get_mut(&alias.of.name) {
            names.remove(&alias.used);
            if names.is_empty() {
                self.by_use.remove(&alias.of.name);
            }
        }
        Some(alias.entry)
    }

    fn insert(&mut self, name: &Name, of: &Arc<Entry>) {
        self.remove(name);
        self.clock += 1;
        let entry = Arc::new(of.alias(name));
        self.by_use.entry(of.name.clone()).or_default().insert(self.clock, name.clone());
        self.all_by_use.insert(self.clock, name.clone());
        self.by_name.insert(name.clone(), Alias { of: of.clone(), entry, used: self.clock });
    }

    /// Remembers a name that leads nowhere; gives the one that is forgotten for it.
    fn note_absent(&mut self, name: &Name, most: usize) -> Option<Name> {
        self.remove(name);
        self.clock += 1;
        self.absent.insert(name.clone(), self.clock);
        self.absent_by_use.insert(self.clock, name.clone());
        if self.absent.len() <= most {
            return None;
        }
        let (_, oldest) = self.absent_by_use.pop_first()?;
        self.absent.remove(&oldest);
        Some(oldest)
    }

    /// The name that must go before another one for this resource may come.
    fn over(&self, of: &str, limits: &Limits) -> Option<Name> {
        if let Some(names) = self.by_use.get(of).filter(|names| names.len() > limits.aliases_per_resource) {
            return names.values().next().cloned();
        }
        if self.by_name.len() > limits.aliases { self.all_by_use.values().next().cloned() } else { None }
    }
}

impl Flow {
    /// Finds the resource that answers for a name that is not listed, if there is one.
    pub fn resolve(&mut self, kind: Kind, resolver: &dyn Resolver, table: &Table, name: &Name, limits: &Limits) {
        if table.get(name).is_some() {
            return;
        }
        let listed = |name: &str| table.get(name).is_some();
        let Some(of) = resolver.resolve(kind, name, &listed).and_then(|of| table.get(&of).cloned()) else {
            return self.note_absent(kind, resolver, table, name, limits);
        };
        self.aliases.insert(name, &of);
        while let Some(old) = self.aliases.over(&of.name, limits) {
            self.evict(old);
        }
    }

    /// Remembers a name that leads nowhere, if a visitor may have made it up, and forgets the oldest of those that are more
    /// than may be.
    fn note_absent(&mut self, kind: Kind, resolver: &dyn Resolver, table: &Table, name: &Name, limits: &Limits) {
        if resolver.is_made_up(kind, name)
            && let Some(old) = self.aliases.note_absent(name, limits.absent)
            && table.get(&old).is_none()
        {
            self.forget_absent(old);
        }
    }

    /// Forgets a name that leads nowhere. The client knows that, unless it still waits for the answer, as it does for every
    /// name of its first request, or has what was there. A client that is not told would never ask for the name again.
    fn forget_absent(&mut self, name: Name) {
        let waits = |state: &ResourceState| state.owed || state.heading().is_some();
        if self.default_state == DefaultState::Unsent || self.states.get(&name).is_some_and(waits) {
            return self.evict(name);
        }
        self.forget(&name);
        self.names.remove(&name);
    }

    /// Forgets a name and tells the client that it is gone.
    pub fn evict(&mut self, name: Name) {
        self.forget(&name);
        self.names.remove(&name);
        self.aliases.evicted.push(name);
    }

    /// Follows a new table: resources behind aliases changed, or names came or went that lead elsewhere now.
    pub fn re_resolve(
        &mut self,
        kind: Kind,
        resolver: &dyn Resolver,
        table: &Table,
        names_moved: bool,
        limits: &Limits,
        now: Instant,
    ) {
        let names: Vec<Name> = if names_moved {
            self.names.iter().filter(|name| table.get(name).is_none()).cloned().collect()
        } else {
            let stale = |alias: &Alias| table.get(&alias.of.name).is_none_or(|of| of.version != alias.of.version);
            self.aliases.by_name.iter().filter(|(_, alias)| stale(alias)).map(|(name, _)| name.clone()).collect()
        };
        let listed = |name: &str| table.get(name).is_some();
        for name in names {
            // It may have been forgotten for another.
            if !self.names.contains(&name) {
                continue;
            }
            let of = resolver.resolve(kind, &name, &listed).and_then(|of| table.get(&of).cloned());
            let old = self.aliases.get(&name).cloned();
            match &of {
                Some(of) if self.aliases.by_name.get(&name).is_some_and(|alias| alias.of.version == of.version) => {
                    continue;
                }
                Some(of) => {
                    self.changed(&name, old.as_ref(), true, now);
                    self.aliases.insert(&name, of);
                }
                None if old.is_some() => {
                    self.changed(&name, old.as_ref(), false, now);
                    self.aliases.remove(&name);
                    self.note_absent(kind, resolver, table, &name, limits);
                }
                None => {}
            }
        }
    }
}

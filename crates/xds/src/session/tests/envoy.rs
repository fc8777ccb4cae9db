//! A client that behaves as Envoy does, as far as order and warming go.
//!
//! It asks for endpoints once it has clusters, for routes once it has listeners, for scopes once a listener wants them.
//! It withholds its answer about clusters while one of them warms, and after a cut does not even ask for them. It refuses
//! what is marked as bad, sometimes taking the good ones of the same response, sometimes not saying which was bad. And
//! it checks what the server owes it: a route whose clusters it was not given, a cluster taken away under a route that it
//! still has, or a stand-in in place of something of its own is a panic.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;
use crate::resource::{Entry, Ref, Role};

const REFERRERS: [Kind; 4] = [Kind::Extension, Kind::Route, Kind::ScopedRoute, Kind::Listener];

#[derive(Default)]
struct Subscribed {
    wildcard: bool,
    names: BTreeSet<Name>,
}

pub(super) struct Envoy {
    style: Style,
    pub held: BTreeMap<(Kind, Name), Arc<Entry>>,
    wanted: BTreeMap<Kind, Subscribed>,
    /// The types that were asked for on this stream.
    opened: BTreeSet<Kind>,
    pub inbox: VecDeque<Response>,
    pub outbox: VecDeque<Request>,
    /// Clusters that wait for their endpoints.
    pub unfed: BTreeSet<Name>,
    /// Clusters that wait for health checks.
    pub unhealthy: BTreeSet<Name>,
    /// Answers about clusters that are held back.
    withheld: Vec<u64>,
    /// Clusters of which the latest was refused.
    refused: BTreeSet<Name>,
    /// Clusters that were withheld at some time since it was last given them, and the last response that was sent until then.
    pub spared: BTreeMap<Name, u64>,
    /// Clusters that it still has because it refused the response that takes them away.
    unremoved: BTreeSet<Name>,
    /// Makes the choices that Envoy would make for reasons of its own.
    pub whim: u64,
}

impl Envoy {
    pub fn new(style: Style, whim: u64) -> Self {
        let mut envoy = Self {
            style,
            held: BTreeMap::new(),
            wanted: BTreeMap::new(),
            opened: BTreeSet::new(),
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            unfed: BTreeSet::new(),
            unhealthy: BTreeSet::new(),
            withheld: Vec::new(),
            refused: BTreeSet::new(),
            spared: BTreeMap::new(),
            unremoved: BTreeSet::new(),
            whim,
        };
        for kind in [Kind::Cluster, Kind::Listener] {
            envoy.wanted.entry(kind).or_default().wildcard = true;
        }
        envoy.connect();
        envoy
    }

    fn coin(&mut self) -> bool {
        self.whim = self.whim.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.whim >> 62 & 1 == 1
    }

    /// Begins a new stream with what it has.
    pub fn connect(&mut self) {
        self.inbox.clear();
        self.outbox.clear();
        self.withheld.clear();
        self.opened.clear();
        let mut kinds: Vec<Kind> = self.wanted.keys().copied().collect();
        if self.coin() {
            kinds.reverse();
        }
        for kind in kinds {
            self.open(kind);
        }
        self.open(Kind::Listener);
    }

    fn is_warming(&self) -> bool {
        !self.unfed.is_empty() || !self.unhealthy.is_empty()
    }

    /// Asks for a type for the first time on this stream.
    fn open(&mut self, kind: Kind) {
        let Some(wanted) = self.wanted.get(&kind) else { return };
        // A cold Envoy asks for listeners after it has asked for clusters.
        let cold = !self.held.keys().any(|(of, _)| *of == Kind::Listener) && !self.opened.contains(&Kind::Cluster);
        let paused = kind == Kind::Cluster && self.is_warming() || kind == Kind::Listener && cold;
        if self.opened.contains(&kind) || paused || !wanted.wildcard && wanted.names.is_empty() {
            return;
        }
        self.opened.insert(kind);
        let names: Vec<Name> = wanted.names.iter().cloned().collect();
        let subscription = match self.style {
            Style::Sotw => Subscription::Sotw { names, version: None },
            Style::Delta => {
                let held = self.held.iter().filter(|((of, _), _)| *of == kind);
                let held = held.map(|((_, name), entry)| (name.clone(), entry.version)).collect();
                Subscription::Delta { subscribe: names, unsubscribe: vec![], initial_versions: held }
            }
        };
        self.outbox.push_back(Request { kind, nonce: None, error: None, subscription });
    }

    /// Changes the names it wants of a type.
    fn want(&mut self, kind: Kind, names: BTreeSet<Name>) {
        let wanted = self.wanted.entry(kind).or_default();
        let old = std::mem::replace(&mut wanted.names, names.clone());
        if old == names {
            return;
        }
        self.held.retain(|(of, name), _| *of != kind || names.contains(name));
        if !self.opened.contains(&kind) {
            return self.open(kind);
        }
        let subscription = match self.style {
            Style::Sotw => Subscription::Sotw { names: names.into_iter().collect(), version: None },
            Style::Delta => Subscription::Delta {
                subscribe: names.difference(&old).cloned().collect(),
                unsubscribe: old.difference(&names).cloned().collect(),
                initial_versions: InitialVersions::default(),
            },
        };
        self.outbox.push_back(Request { kind, nonce: None, error: None, subscription });
    }

    fn answer(&mut self, kind: Kind, nonce: u64, error: Option<String>) {
        let subscription = match self.style {
            Style::Delta => Subscription::Delta {
                subscribe: vec![],
                unsubscribe: vec![],
                initial_versions: InitialVersions::default(),
            },
            Style::Sotw => {
                let names = self.wanted.get(&kind).map(|wanted| wanted.names.iter().cloned().collect());
                Subscription::Sotw { names: names.unwrap_or_default(), version: None }
            }
        };
        self.outbox.push_back(Request { kind, nonce: Some(nonce), error, subscription });
    }

    /// Takes the next response.
    pub fn handle(&mut self) {
        let Some(response) = self.inbox.pop_front() else { return };
        let Response { kind, nonce, upserts, removed, .. } = response;
        let is_bad = |entry: &Arc<Entry>| entry.body.starts_with(b"bad");
        let bad: Vec<Name> = upserts.iter().filter(|entry| is_bad(entry)).map(|entry| entry.name.clone()).collect();
        let removed: Vec<Name> = match (self.style, kind.is_full_state()) {
            (Style::Sotw, true) => {
                let held = self.held.keys().filter(|(of, _)| *of == kind).map(|(_, name)| name.clone());
                held.filter(|name| !upserts.iter().any(|entry| entry.name == *name)).collect()
            }
            _ => removed,
        };
        if bad.is_empty() {
            self.apply(kind, nonce, upserts, removed);
            if kind == Kind::Cluster && self.is_warming() {
                self.withheld.push(nonce);
            } else {
                self.answer(kind, nonce, None);
            }
        } else {
            if kind == Kind::Cluster {
                self.refused.extend(bad.iter().cloned());
                self.unremoved.extend(removed);
                if self.style == Style::Delta && self.coin() {
                    self.apply(kind, nonce, upserts.into_iter().filter(|entry| !is_bad(entry)).collect(), vec![]);
                }
            }
            let text = if self.coin() { format!("cannot take '{}': no", bad[0]) } else { String::new() };
            self.answer(kind, nonce, Some(text));
        }
        self.resume();
    }

    /// Health checks have succeeded.
    pub fn heal(&mut self) {
        self.unhealthy.clear();
        self.resume();
    }

    fn resume(&mut self) {
        if !self.is_warming() {
            for nonce in std::mem::take(&mut self.withheld) {
                self.answer(Kind::Cluster, nonce, None);
            }
            self.open(Kind::Cluster);
            self.open(Kind::Listener);
        }
    }

    fn apply(&mut self, kind: Kind, nonce: u64, upserts: Vec<Arc<Entry>>, removed: Vec<Name>) {
        for entry in upserts {
            self.take(kind, nonce, entry);
        }
        for name in removed {
            self.drop_one(kind, &name);
        }
        match kind {
            Kind::Cluster => {
                let names = self.referred(Kind::Cluster, Kind::Endpoints);
                self.want(Kind::Endpoints, names);
            }
            Kind::Listener => {
                let names = self.referred(Kind::Listener, Kind::Route);
                self.want(Kind::Route, names);
                let under = |to: &Ref| matches!(to, Ref::Under(Kind::ScopedRoute, _));
                if self.held.iter().any(|((of, _), entry)| *of == kind && entry.refs.iter().any(under)) {
                    self.wanted.entry(Kind::ScopedRoute).or_default().wildcard = true;
                    self.open(Kind::ScopedRoute);
                }
            }
            _ => {}
        }
    }

    fn referred(&self, from: Kind, to: Kind) -> BTreeSet<Name> {
        let held = self.held.iter().filter(|((kind, _), _)| *kind == from);
        let refs = held.flat_map(|(_, entry)| entry.refs.iter());
        refs.filter_map(|found| match found {
            Ref::To(kind, name) if *kind == to => Some(name.clone()),
            _ => None,
        })
        .collect()
    }

    fn take(&mut self, kind: Kind, nonce: u64, entry: Arc<Entry>) {
        let wanted = self.wanted.get(&kind).is_some_and(|wanted| wanted.wildcard || wanted.names.contains(&entry.name));
        if !wanted {
            return;
        }
        assert_ne!(entry.role, Role::Withheld, "{kind} {entry:?} is for nobody");
        let own = self.held.get(&(kind, entry.name.clone())).is_some_and(|held| held.role == Role::Own);
        assert!(entry.role == Role::Own || !own, "{kind} {entry:?} came in place of something of its own");
        let same = self.held.get(&(kind, entry.name.clone())).is_some_and(|held| held.version == entry.version);
        match kind {
            Kind::Cluster if same => {}
            Kind::Cluster => {
                self.refused.remove(&entry.name);
                self.unremoved.remove(&entry.name);
                self.spared.retain(|name, until| *name != entry.name || *until >= nonce);
                self.unfed.insert(entry.name.clone());
                if entry.warms && self.coin() {
                    self.unhealthy.insert(entry.name.clone());
                }
            }
            Kind::Endpoints => {
                self.unfed.remove(&entry.name);
            }
            _ => self.check_clusters(kind, &entry),
        }
        if entry.version != 0 {
            self.held.insert((kind, entry.name.clone()), entry);
        }
    }

    fn check_clusters(&self, kind: Kind, entry: &Arc<Entry>) {
        for to in &entry.refs {
            if let Ref::To(Kind::Cluster, name) = to {
                let excused = self.refused.contains(name) || self.spared.contains_key(name);
                let has = self.held.contains_key(&(Kind::Cluster, name.clone())) || excused;
                assert!(has, "{kind} {entry:?} came before its cluster {name}");
            }
        }
    }

    fn drop_one(&mut self, kind: Kind, name: &Name) {
        match kind {
            Kind::Cluster => {
                // What came while it was withheld did not wait for it, and it had been taken away before.
                let excused = self.unremoved.remove(name) && self.spared.contains_key(name);
                for ((of, referrer), entry) in self.held.iter().filter(|((of, _), _)| REFERRERS.contains(of)) {
                    let uses = entry.refs.contains(&Ref::To(Kind::Cluster, name.clone()));
                    assert!(!uses || excused, "cluster {name} went while {of} {referrer} used it");
                }
                self.unfed.remove(name);
                self.unhealthy.remove(name);
            }
            // Tells Envoy that there is nothing to wait for.
            Kind::Endpoints => {
                self.unfed.remove(name);
            }
            _ => {}
        }
        self.held.remove(&(kind, name.clone()));
    }

    /// Whether something that it has points at the cluster.
    pub fn uses(&self, cluster: &Name) -> bool {
        self.held.values().any(|entry| entry.refs.contains(&Ref::To(Kind::Cluster, cluster.clone())))
    }

    /// Whether it asked for that.
    pub fn wants(&self, kind: Kind, name: &Name) -> bool {
        self.wanted.get(&kind).is_some_and(|wanted| wanted.wildcard || wanted.names.contains(name))
    }
}

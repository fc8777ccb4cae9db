//! An ingress controller in miniature: objects with includes and services, translations, hosts with conflicts, clusters, and
//! endpoint sets in the lane.
//!
//! ```text
//! Objects ─ Roots ──→ Translations ─ ByHost ────→ Hosts ──→ Pages (output)
//! Services ──────────↗      └ ByService ─→ Clusters (output)
//! Settings ──────────────────────────────↗    │ keys
//! Slices ─ OfService ─────────────────→ EndpointSets (lane, output) ──→ Balancers (lane, output; keys: Services)
//! Services ──→ Ports (lane; keys: ByService) ──→ Assignments (lane, output; keys: EndpointSets, which it reads, too)
//! ```
//!
//! Beside these: a crowd for each host (how many translations, whatever is in them), the callers of each service (which translations, and
//! their parts for it), a note for each object (has its translation failed?), and a directory of all hosts.
//! A service on port 13 makes its translations panic, three translations on one host that host. Every third translation and every other host is
//! large, and so is the directory of more than three hosts. A translation is a partition, and so is a host with its crowd and its page; the
//! directory sums up all hosts.

use std::collections::BTreeSet;
use std::sync::{Arc, Once};

use engine::{Derived, Engine, Index, Input, PartIndex, Pipeline, Reads, Table};

macro_rules! table {
    ($name:ident, $text:literal, $key:ty => $value:ty) => {
        pub struct $name;
        impl Table for $name {
            type Key = $key;
            type Value = $value;
            const NAME: &'static str = $text;
        }
    };
}

macro_rules! index {
    ($name:ident, $text:literal, $of:ty => $index_key:ty, |$key:ident, $value:ident| $keys:expr) => {
        pub struct $name;
        impl Index for $name {
            type Of = $of;
            type Key = $index_key;
            const NAME: &'static str = $text;
            fn keys(
                $key: &<$of as Table>::Key,
                $value: &<$of as Table>::Value,
            ) -> impl IntoIterator<Item = $index_key> {
                $keys
            }
        }
    };
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Object {
    pub root: bool,
    pub age: u8,
    pub hosts: Vec<u32>,
    pub includes: Vec<u32>,
    pub service: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Translation {
    pub age: u8,
    pub hosts: Vec<u32>,
    /// The service of the root and of each include, and its port when it is there.
    pub backends: Vec<(u32, Option<u16>)>,
    pub complaints: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    pub winner: u32,
    pub losers: Vec<u32>,
    pub backends: Vec<(u32, Option<u16>)>,
    pub complaints: Vec<String>,
}

table!(Objects, "objects", u32 => Object);
impl Input for Objects {}
table!(Services, "services", u32 => u16);
impl Input for Services {}
table!(Settings, "settings", () => u8);
impl Input for Settings {}
table!(Slices, "slices", (u32, u8) => Vec<u8>);
impl Input for Slices {}

index!(Roots, "roots", Objects => u32, |key, object| object.root.then_some(*key));
index!(OfService, "of service", Slices => u32, |key, _slice| [key.0]);

/// The port of a service that is not known yet.
pub const PENDING: u16 = 14;

table!(Translations, "translations", u32 => Translation);
impl Derived for Translations {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<Translation> {
        let root = reads.get::<Objects>(key)?;
        let mut translation = Translation { age: root.age, hosts: root.hosts.clone(), ..Translation::default() };
        let (mut seen, mut todo) = (BTreeSet::new(), vec![*key]);
        while let Some(id) = todo.pop() {
            if !seen.insert(id) {
                translation.complaints.push(format!("{id} is included twice"));
                continue;
            }
            let Some(object) = reads.get::<Objects>(&id) else {
                translation.complaints.push(format!("{id} is missing"));
                continue;
            };
            if let Some(service) = object.service {
                let port = reads.get::<Services>(&service).map(|port| **port);
                assert_ne!(port, Some(13), "toy: service {service} brings bad luck");
                if port == Some(PENDING) {
                    reads.set_pending();
                    translation.complaints.push(format!("{service} is not known yet"));
                }
                translation.backends.push((service, port));
            }
            todo.extend(&object.includes);
        }
        Some(translation)
    }

    /// What was asked for meanwhile is heard, and nothing else.
    fn while_pending(&self, good: &Arc<Translation>, computed: Option<Translation>) -> Arc<Translation> {
        let asked = computed.map(|translation| translation.backends.into_iter().map(|(service, _)| (service, None)));
        let backends = good.backends.iter().cloned().chain(asked.into_iter().flatten()).collect();
        Arc::new(Translation { backends, ..Translation::clone(good) })
    }

    fn is_large(&self, key: &u32, _: &mut Reads<'_>) -> bool {
        key.is_multiple_of(3)
    }

    fn partition(&self, key: &u32) -> Option<u64> {
        Some(u64::from(*key) << 32)
    }

    fn on_panic(&self, key: &u32, message: &str) -> Option<Translation> {
        // Half of them say what to serve instead.
        key.is_multiple_of(2).then(|| Translation {
            hosts: vec![*key],
            complaints: vec![message.to_owned()],
            ..Translation::default()
        })
    }
}

index!(ByHost, "by host", Translations => u32, |_key, translation| translation.hosts.clone());
index!(ByService, "by service", Translations => u32, |_key, translation| translation.backends.iter().map(|(service, _)| *service));

impl PartIndex for ByService {
    type Part<'v> = Vec<Option<u16>>;

    fn part(key: &u32, translation: &Translation) -> Vec<Option<u16>> {
        translation.backends.iter().filter(|(service, _)| service == key).map(|(_, port)| *port).collect()
    }
}

table!(Callers, "callers", u32 => Vec<(u32, Vec<Option<u16>>)>);
impl Derived for Callers {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<Vec<(u32, Vec<Option<u16>>)>> {
        Some(reads.parts::<ByService>(key).into_iter().map(|(translation, part)| (*translation, part)).collect())
    }
}

// How many callers a service has, whatever they want of it.
table!(CallerCounts, "caller counts", u32 => usize);
impl Derived for CallerCounts {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<usize> {
        Some(reads.probe::<ByService>(key).len())
    }
}

table!(Hosts, "hosts", u32 => Host);
impl Derived for Hosts {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<Host> {
        let mut translations: Vec<_> = reads
            .probe::<ByHost>(key)
            .map(|id| (*id, reads.get::<Translations>(id).expect("a member has a row")))
            .collect();
        assert_ne!(translations.len(), 3, "toy: three's a crowd on {key}");
        translations.sort_by_key(|(id, translation)| (translation.age, *id));
        let complaints =
            translations.iter().filter_map(|(id, _)| Some(format!("{id}: {}", reads.failure::<Translations>(id)?)));
        let complaints = complaints.collect();
        let (winner, translation) = translations.first()?;
        let losers = translations[1..].iter().map(|(id, _)| *id).collect();
        Some(Host { winner: *winner, losers, backends: translation.backends.clone(), complaints })
    }

    fn is_large(&self, key: &u32, reads: &mut Reads<'_>) -> bool {
        key.is_multiple_of(2) && reads.probe::<ByHost>(key).len() > 0
    }

    fn partition(&self, key: &u32) -> Option<u64> {
        Some(u64::from(*key))
    }
}

table!(Clusters, "clusters", u32 => (Option<u16>, u8));
impl Derived for Clusters {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<(Option<u16>, u8)> {
        let settings = reads.get::<Settings>(&()).map_or(0, |settings| **settings);
        Some((reads.get::<Services>(key).map(|port| **port), settings))
    }
}

table!(EndpointSets, "endpoint sets", u32 => Vec<u8>);
impl Derived for EndpointSets {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<Vec<u8>> {
        let slices = reads.probe::<OfService>(key).filter_map(|key| reads.get::<Slices>(key));
        Some(slices.flat_map(|slice| slice.iter().copied()).collect())
    }

    fn is_large(&self, key: &u32, reads: &mut Reads<'_>) -> bool {
        let slices = reads.probe::<OfService>(key).filter_map(|key| reads.get::<Slices>(key));
        slices.map(|slice| slice.len()).sum::<usize>() > 3
    }
}

table!(Balancers, "balancers", u32 => Option<usize>);
impl Derived for Balancers {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<Option<usize>> {
        Some(reads.get::<EndpointSets>(key).map(|set| set.len()))
    }
}

// The port of a service that is in use: there is no row while there is no such service.
table!(Ports, "ports", u32 => u16);
impl Derived for Ports {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<u16> {
        reads.get::<Services>(key).map(|port| **port)
    }
}

table!(Assignments, "assignments", u32 => (u16, usize));
impl Derived for Assignments {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<(u16, usize)> {
        let port = reads.get::<Ports>(key)?;
        Some((**port, reads.get::<EndpointSets>(key)?.len()))
    }
}

table!(Crowds, "crowds", u32 => usize);
impl Derived for Crowds {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<usize> {
        Some(reads.probe::<ByHost>(key).len())
    }

    fn partition(&self, key: &u32) -> Option<u64> {
        Some(u64::from(*key))
    }
}

table!(Notes, "notes", u32 => String);
impl Derived for Notes {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<String> {
        reads.failure::<Translations>(key).map(str::to_owned)
    }
}

table!(Pages, "pages", u32 => String);
impl Derived for Pages {
    fn compute(&self, key: &u32, reads: &mut Reads<'_>) -> Option<String> {
        let host = reads.get::<Hosts>(key)?;
        // A page does not show who lost: a change there is cut off here.
        Some(format!("{} {:?} {:?}", host.winner, host.backends, host.complaints))
    }

    fn partition(&self, key: &u32) -> Option<u64> {
        Some(u64::from(*key))
    }
}

table!(Directory, "directory", () => Vec<u32>);
impl Derived for Directory {
    fn compute(&self, _: &(), reads: &mut Reads<'_>) -> Option<Vec<u32>> {
        Some(reads.scan::<Hosts>().into_iter().copied().collect())
    }

    fn is_large(&self, (): &(), reads: &mut Reads<'_>) -> bool {
        reads.scan::<Hosts>().len() > 3
    }
}

pub fn engine() -> Engine {
    quiet();
    let mut pipeline = Pipeline::new();
    pipeline.input::<Objects>().fans_out();
    pipeline.input::<Services>().fans_out();
    pipeline.input::<Settings>();
    pipeline.input::<Slices>();
    pipeline.index::<OfService>();
    pipeline.derived(Translations).per::<Roots>().fans_out();
    pipeline.derived(Hosts).per::<ByHost>();
    pipeline.derived(Clusters).per::<ByService>().output();
    pipeline.derived(EndpointSets).each::<Clusters>().lane().output();
    pipeline.derived(Balancers).each::<Services>().lane().output();
    pipeline.derived(Ports).per::<ByService>().lane();
    pipeline.derived(Assignments).each::<EndpointSets>().lane().output();
    pipeline.derived(Crowds).per::<ByHost>();
    pipeline.parts::<ByService>();
    pipeline.derived(Callers).per::<ByService>();
    pipeline.derived(CallerCounts).each::<Services>();
    pipeline.derived(Notes).each::<Objects>();
    pipeline.derived(Pages).each::<Hosts>().output();
    pipeline.derived(Directory).always(()).sums_up();
    pipeline.build()
}

/// An object that stands alone: a root for one host with one service, all by the same number.
pub fn plain(id: u32) -> Object {
    Object { root: true, hosts: vec![id], service: Some(id), ..Object::default() }
}

/// Keeps the panics that the toy throws on purpose off the terminal.
pub fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let text = panic.payload().downcast_ref::<String>();
            if !text.is_some_and(|text| text.contains("toy: ")) {
                before(panic);
            }
        }));
    });
}

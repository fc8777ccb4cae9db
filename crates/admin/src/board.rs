//! What the control loop notes after each batch, for whoever looks.
//!
//! One [`Recorder`] writes, any number of [`Board`]s read. Each view is swapped in as a whole, so neither side waits. A
//! note costs the tables that there are and the verdicts that changed, never the objects.

use arc_swap::ArcSwap;
use engine::TableCounters;
use imbl::OrdMap;
use model::{Code, ObjectRef, Severity, Verdict};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::metrics::{Figures, seconds};

/// How many batches are remembered.
const BATCHES: usize = 100;

pub(crate) type Verdicts = OrdMap<ObjectRef, Arc<Vec<Verdict>>>;
/// How many verdicts there are by namespace, kind and code.
pub(crate) type VerdictCounts = OrdMap<(Arc<str>, &'static str, Code), i64>;

/// A board, and the one who writes on it.
pub fn board() -> (Recorder, Board) {
    let board = Board(Arc::new(Shared {
        tables: ArcSwap::default(),
        objects: ArcSwap::default(),
        batches: ArcSwap::default(),
        verdicts: ArcSwap::default(),
        severities: ArcSwap::default(),
        verdict_counts: ArcSwap::default(),
        expiries: ArcSwap::default(),
        count: Counter::default(),
        build: Histogram::new(seconds()),
    }));
    (Recorder { board: board.clone(), verdicts: Verdicts::default(), counts: VerdictCounts::default() }, board)
}

/// What a batch did.
#[derive(Default)]
pub struct Note<'a> {
    /// The figures of every table: `Engine::counters`.
    pub tables: Vec<TableCounters>,
    /// How many objects there are of each kind: `Pipeline::objects`.
    pub objects: Vec<(&'static str, usize)>,
    /// The figures of the batch: `Engine::last_batch`.
    pub batch: engine::Batch,
    /// The objects about which there is something new to say: `Output::verdicts`.
    pub verdicts: &'a [(ObjectRef, Option<Arc<Vec<Verdict>>>)],
    /// The Secrets whose certificates expire soonest, and when.
    pub expiries: Vec<(ObjectRef, i64)>,
    /// How long it took from the change to the bytes.
    pub took: Duration,
    /// Whether anything was sent to proxies.
    pub published: bool,
}

/// The one who writes.
pub struct Recorder {
    board: Board,
    verdicts: Verdicts,
    counts: VerdictCounts,
}

/// What is there to read. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct Board(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub tables: ArcSwap<Vec<TableCounters>>,
    pub objects: ArcSwap<Vec<(&'static str, usize)>>,
    pub batches: ArcSwap<VecDeque<Arc<BatchView>>>,
    pub verdicts: ArcSwap<Verdicts>,
    pub severities: ArcSwap<BTreeMap<Severity, i64>>,
    pub verdict_counts: ArcSwap<VerdictCounts>,
    pub expiries: ArcSwap<Vec<(ObjectRef, i64)>>,
    pub count: Counter,
    pub build: Histogram,
}

/// One batch, for people.
#[derive(Debug, Serialize)]
pub(crate) struct BatchView {
    /// How many there were before.
    pub number: u64,
    /// When it was done, in seconds since 1970.
    pub at: f64,
    /// How many rows of input tables changed.
    pub changes: u64,
    /// In how many slices it was worked on.
    pub slices: u64,
    /// The time spent in them.
    pub busy_ms: f64,
    /// From the change to the bytes.
    pub took_ms: f64,
    /// Whether anything was sent to proxies.
    pub published: bool,
    /// How many keys were computed in each table that had work.
    pub computed: BTreeMap<&'static str, u64>,
    /// How many objects there was something new to say about.
    pub verdicts: usize,
}

impl Recorder {
    /// Notes a batch.
    pub fn note(&mut self, note: Note<'_>) {
        let shared = &self.board.0;
        let view = Arc::new(self.batch_view(&note));
        let mut batches = VecDeque::clone(&shared.batches.load());
        batches.truncate(BATCHES - 1);
        batches.push_front(view);
        shared.batches.store(Arc::new(batches));
        shared.count.inc();
        shared.build.observe(note.took.as_secs_f64());
        self.note_verdicts(note.verdicts);
        let shared = &self.board.0;
        shared.tables.store(Arc::new(note.tables));
        shared.objects.store(Arc::new(note.objects));
        shared.expiries.store(Arc::new(note.expiries));
    }

    fn batch_view(&self, note: &Note<'_>) -> BatchView {
        let before = self.board.0.tables.load();
        let before: BTreeMap<&str, u64> = before.iter().map(|table| (table.name, table.computed)).collect();
        let computed = note.tables.iter().filter_map(|table| {
            let new = table.computed - before.get(table.name).copied().unwrap_or_default();
            (new > 0).then_some((table.name, new))
        });
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        BatchView {
            number: self.board.0.count.get(),
            at: at.as_secs_f64(),
            changes: note.batch.changes,
            slices: note.batch.slices,
            busy_ms: note.batch.busy.as_secs_f64() * 1e3,
            took_ms: note.took.as_secs_f64() * 1e3,
            published: note.published,
            computed: computed.collect(),
            verdicts: note.verdicts.len(),
        }
    }

    fn note_verdicts(&mut self, changes: &[(ObjectRef, Option<Arc<Vec<Verdict>>>)]) {
        if changes.is_empty() {
            return;
        }
        let mut severities = BTreeMap::clone(&self.board.0.severities.load());
        let counts = &mut self.counts;
        let mut count = |object: &ObjectRef, verdicts: &[Verdict], by: i64| {
            for verdict in verdicts {
                *severities.entry(verdict.severity()).or_default() += by;
                let key = (object.namespace.clone(), object.kind.name(), verdict.code);
                let left = counts.get(&key).copied().unwrap_or_default() + by;
                if left == 0 {
                    counts.remove(&key)
                } else {
                    counts.insert(key, left)
                };
            }
        };
        for (object, verdicts) in changes {
            let before = match verdicts {
                Some(verdicts) => self.verdicts.insert(object.clone(), verdicts.clone()),
                None => self.verdicts.remove(object),
            };
            count(object, before.as_deref().map_or(&[], Vec::as_slice), -1);
            count(object, verdicts.as_deref().map_or(&[], Vec::as_slice), 1);
        }
        self.board.0.severities.store(Arc::new(severities));
        self.board.0.verdict_counts.store(Arc::new(self.counts.clone()));
        self.board.0.verdicts.store(Arc::new(self.verdicts.clone()));
    }
}

impl Board {
    /// Adds what is noted to a registry: objects, batches, recomputed keys, build seconds, verdicts.
    pub fn register(&self, registry: &mut Registry) {
        let shared = &self.0;
        registry.register("sesame_batches", "Batches of changes processed", shared.count.clone());
        registry.register(
            "sesame_build_seconds",
            "Seconds from a batch of changes to published xDS resources",
            shared.build.clone(),
        );
        registry.register_collector(Box::new(Figures(self.clone())));
    }
}

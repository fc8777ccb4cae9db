//! Whether proxies serve what an object says, for the status of the object.
//!
//! In: which resources carry each object, as the pipeline says it, and how the proxies of all replicas stand to them. Out:
//! word to the status writer, when an object has changed and when proxies have all of it. Only objects that changed and are
//! not there yet are asked about, and only by the replica that writes. A resource that objects share is asked about as it is
//! published by now, not as it was when the object changed: another object's change may have come over it before any proxy
//! had answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::ObjectRef;
use parking_lot::Mutex;
use pipeline::Carrier;
use replicas::{Question, Replicas};
use status::{Leadership, Report, Reporter};
use tokio::sync::watch;
use xds::{Fleet, Server, Snapshot};

/// Objects whose status says whether proxies have them.
const KIND: &str = "HTTPProxy";

/// The objects of which it is not known that proxies have them. Clones are handles of the same one.
#[derive(Clone)]
pub struct Programmed {
    server: Server,
    fleet: Fleet,
    awaited: Arc<Mutex<BTreeMap<ObjectRef, Arc<Vec<Carrier>>>>>,
    changed: watch::Sender<()>,
}

impl Programmed {
    /// None yet.
    pub fn new(server: Server, fleet: Fleet) -> Self {
        Self { server, fleet, awaited: Arc::default(), changed: watch::Sender::default() }
    }

    /// Takes what a batch has changed, after it was published; gives what the status is to say for now.
    pub fn take(&self, carriers: &[(ObjectRef, Option<Arc<Vec<Carrier>>>)]) -> Vec<(ObjectRef, bool)> {
        let mut told = Vec::new();
        let mut awaited = self.awaited.lock();
        for (object, carriers) in carriers.iter().filter(|(object, _)| object.kind.starts_with(KIND)) {
            awaited.remove(object);
            // An object of which nothing is served has nothing to wait for, and nothing to say.
            if let Some(carriers) = carriers.as_ref().filter(|carriers| !carriers.is_empty()) {
                awaited.insert(object.clone(), carriers.clone());
            }
            told.push((object.clone(), false));
        }
        // Also for others' changes: what was awaited may share a resource with them.
        if !told.is_empty() || !awaited.is_empty() {
            self.changed.send_replace(());
        }
        told
    }

    /// Asks, and tells, for as long as the replicas talk.
    pub async fn run(self, replicas: Replicas, leadership: Leadership, reporter: Reporter) {
        let (mut news, mut changed, mut leader) = (replicas.news(), self.changed.subscribe(), leadership.watch());
        let mut asked = BTreeSet::new();
        loop {
            let questions = if leadership.is_leader() { self.look(&replicas, &reporter) } else { BTreeSet::new() };
            // Asking is news, too.
            if questions != asked {
                asked.clone_from(&questions);
                replicas.ask(questions);
            }
            let ended = tokio::select! {
                ended = news.changed() => ended,
                ended = changed.changed() => ended,
                ended = leader.changed() => ended,
            };
            if ended.is_err() {
                return;
            }
        }
    }

    /// Tells of the objects that are there by now; gives what is to be asked about the others.
    fn look(&self, replicas: &Replicas, reporter: &Reporter) -> BTreeSet<Question> {
        let Some(snapshot) = self.server.book(&self.fleet).and_then(|book| book.snapshot()) else {
            return BTreeSet::new();
        };
        let (mut questions, mut programmed) = (BTreeSet::new(), Vec::new());
        self.awaited.lock().retain(|object, carriers| {
            let of_object: Vec<_> = carriers.iter().filter_map(|carrier| self.question(carrier, &snapshot)).collect();
            // What is not published yet, nobody can have.
            let is_there = of_object.len() == carriers.len() && replicas.programmed(&of_object);
            if is_there {
                programmed.push((object.clone(), true));
            } else {
                questions.extend(of_object);
            }
            !is_there
        });
        if !programmed.is_empty() {
            reporter.report(Report { programmed, ..Report::default() });
        }
        questions
    }

    fn question(&self, carrier: &Carrier, snapshot: &Snapshot) -> Option<Question> {
        let version = carrier.hash.or_else(|| Some(snapshot.get(carrier.kind, &carrier.name)?.version))?;
        Some(Question { fleet: self.fleet.clone(), kind: carrier.kind, name: carrier.name.clone(), version })
    }
}

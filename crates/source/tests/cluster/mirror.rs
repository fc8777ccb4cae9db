//! What a listener knows: every batch applied, and a way to wait for a state.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kinds::{Kind, Object, ObjectRef};
use source::cluster::{Options, Timing};
use source::fetch::FetchHandle;
use source::{Batch, Cluster, Feed, Problem, Subject, feed};
use tokio::task::JoinHandle;

/// Long enough for a busy machine, short enough to notice.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A listener of a source.
pub struct Mirror {
    pub objects: BTreeMap<ObjectRef, Object>,
    pub problems: BTreeMap<Subject, Vec<Problem>>,
    /// Keys of all changes in the order in which they were told.
    pub told: Vec<ObjectRef>,
    pub is_synced: bool,
    pub wants: FetchHandle,
    feed: Feed,
    answers: Feed,
    task: JoinHandle<source::Closed>,
}

impl Mirror {
    pub fn start(client: kube::Client, options: Options) -> Mirror {
        let (cluster, wants) = Cluster::new(client, options);
        let ((feeder, feed), (answerer, answers)) = (feed(feed::CAPACITY), feed(feed::CAPACITY));
        let task = tokio::spawn(cluster.run(feeder, answerer));
        let (objects, problems) = (BTreeMap::new(), BTreeMap::new());
        Mirror { objects, problems, told: Vec::new(), is_synced: false, wants, feed, answers, task }
    }

    /// Listens until the state is as wished.
    pub async fn until(&mut self, what: &str, wish: impl Fn(&Mirror) -> bool) {
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        while !wish(self) {
            match tokio::time::timeout_at(deadline, self.next()).await {
                Ok(Some(batch)) => self.apply(batch),
                Ok(None) => panic!("the source ended before {what}"),
                Err(_) => panic!("waited for {what}; there is {:#?} and {:#?}", self.names(), self.problems),
            }
        }
    }

    /// Listens until everything is known.
    pub async fn synced(&mut self) {
        self.until("everything to be known", |mirror| mirror.is_synced).await;
    }

    /// Listens for a while, and gives how many changes there were.
    pub async fn listen(&mut self, time: Duration) -> usize {
        let before = self.told.len();
        let deadline = tokio::time::Instant::now() + time;
        while let Ok(Some(batch)) = tokio::time::timeout_at(deadline, self.next()).await {
            self.apply(batch);
        }
        self.told.len() - before
    }

    /// What there is, shortly.
    pub fn names(&self) -> Vec<String> {
        self.objects.keys().map(ToString::to_string).collect()
    }

    /// What there is of a kind in a namespace.
    pub fn of(&self, kind: Kind, namespace: &str) -> BTreeSet<&str> {
        let keys = self.objects.keys().filter(|key| key.kind == kind && *key.namespace == *namespace);
        keys.map(|key| &*key.name).collect()
    }

    /// The words of all problems.
    pub fn complaints(&self) -> String {
        let all = self.problems.iter().flat_map(|(subject, list)| list.iter().map(move |it| (subject, it)));
        all.map(|(subject, problem)| format!("{subject:?}: {problem}\n")).collect()
    }

    /// What the source says next, of its own accord or because it was asked.
    async fn next(&mut self) -> Option<Batch> {
        tokio::select! {
            batch = self.feed.next() => batch.inspect(|batch| self.is_synced |= batch.synced),
            batch = self.answers.next() => batch,
        }
    }

    fn apply(&mut self, batch: Batch) {
        for change in batch.changes {
            self.told.push(change.key.clone());
            match change.object {
                Some(object) => _ = self.objects.insert(change.key, object),
                None => _ = self.objects.remove(&change.key),
            }
        }
        for (subject, list) in batch.problems {
            match list.is_empty() {
                true => _ = self.problems.remove(&subject),
                false => _ = self.problems.insert(subject, list),
            }
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Some kinds, with little backoff.
pub fn options(kinds: &[Kind]) -> Options {
    Options { kinds: kinds.to_vec(), timing: hasty(), ..Options::default() }
}

/// Little backoff.
pub fn hasty() -> Timing {
    Timing {
        shortest_pause: Duration::from_millis(5),
        longest_pause: Duration::from_millis(100),
        absent_pause: Duration::from_millis(200),
        absent_after: Duration::from_millis(500),
        fetch: Duration::from_millis(500),
        refused_pause: Duration::from_millis(200),
        ..Timing::default()
    }
}

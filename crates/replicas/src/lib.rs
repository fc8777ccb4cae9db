//! Talk between replicas: what each one's proxies have and refused, with the holder of the lease in the middle.
//!
//! Proxies may be connected to any replica. Each replica that does not hold the lease keeps one stream to the one that does,
//! on the xDS port and under the same certificates ([`xds::peer`]). Up go the holds of its own pipeline and the answers to
//! the holder's questions; down come everybody else's holds, and the questions. Counts are per version of a resource, which
//! is the hash of its content, so they can be added up. A replica without a stream goes on by itself, with its own holds and
//! its own counts; nothing here ever stops serving.
//!
//! ```no_run
//! # use replicas::{Place, Question, Replicas};
//! # use xds::{Fleet, Kind, Server, TlsFiles};
//! # async fn example(server: Server, files: TlsFiles, stop: impl Future<Output = ()> + Send + 'static) {
//! let replicas = Replicas::new(server, Some(files));
//! tokio::spawn(replicas.clone().run(stop));
//! replicas.take(Place::Follower("10.0.0.7:8001".into())); // as the lease says; `Place::Holder` when it is ours
//!
//! // The control loop: these instead of an `xds::Court`'s, and what others hold.
//! let mut rulings = replicas.rulings(Fleet::Shared);
//! let mut others = replicas.others();
//! tokio::select! {
//!     ruling = rulings.next() => { /* pipeline.hear(&ruling), then work and publish, then: */ }
//!     _ = others.changed() => { /* pipeline.withhold(others.borrow_and_update().of(&Fleet::Shared)) */ }
//! }
//! rulings.expect(vec![/* output.probes */]);
//! replicas.report(&Fleet::Shared, vec![/* output.holds, if there are some */]);
//!
//! // Status, on the holder.
//! let question = Question { fleet: Fleet::Shared, kind: Kind::Route, name: "ingress_http".into(), version: 7 };
//! let mut news = replicas.news();
//! replicas.ask([question.clone()]);
//! while !replicas.programmed([&question]) && news.changed().await.is_ok() {}
//! # }
//! ```

mod follower;
mod holder;
mod message;
mod rulings;
mod state;

pub use message::{Question, Shared};
pub use rulings::Rulings;

use parking_lot::Mutex;
use state::State;
use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};
use tokio::sync::{oneshot, watch};
use tracing::info;
use xds::{Fleet, Hold, Server, Tallies, Tally, TlsFiles};

/// What this replica is to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nobody is known to hold the lease.
    #[default]
    Alone,
    /// It holds the lease.
    Holder,
    /// The one at `host:port` does.
    Follower(Arc<str>),
}

/// This replica's side of the talk. Clones are handles of the same one.
#[derive(Clone)]
pub struct Replicas(Arc<Inner>);

pub(crate) struct Inner {
    server: Server,
    tls: Option<TlsFiles>,
    place: watch::Sender<Place>,
    state: Mutex<State>,
    /// Counts changes of the state, for those who pass them on.
    changed: watch::Sender<u64>,
    /// Counts what may change a count.
    news: watch::Sender<u64>,
    others: watch::Sender<Shared>,
    /// Cases that wait for the holder's word; the sender goes when it is there.
    pending: Mutex<HashMap<Question, oneshot::Sender<bool>>>,
    /// There is a stream to the holder.
    linked: AtomicBool,
    next_id: AtomicU64,
}

impl Replicas {
    /// A replica that knows of no other. `tls` are the files that its server serves with.
    pub fn new(server: Server, tls: Option<TlsFiles>) -> Self {
        Self(Arc::new(Inner {
            server,
            tls,
            place: watch::Sender::default(),
            state: Mutex::default(),
            changed: watch::Sender::default(),
            news: watch::Sender::default(),
            others: watch::Sender::default(),
            pending: Mutex::default(),
            linked: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
        }))
    }

    /// Takes a place among the replicas, as the lease says.
    pub fn take(&self, place: Place) {
        self.0.place.send_if_modified(|now| {
            let differs = *now != place;
            if differs {
                info!(?place, "place among the replicas");
                *now = place;
            }
            differs
        });
    }

    /// Tells the others all that this replica withholds from a fleet.
    pub fn report(&self, fleet: &Fleet, holds: Vec<Hold>) {
        self.0.update(|state| state.own.set(fleet, holds));
    }

    /// What the others withhold.
    pub fn others(&self) -> watch::Receiver<Shared> {
        self.0.others.subscribe()
    }

    /// What proxies made of resources, in place of an [`xds::Court`]: before a resource is given up, the others are asked
    /// whether their proxies take it.
    pub fn rulings(&self, fleet: Fleet) -> Rulings {
        Rulings::new(self.0.clone(), fleet)
    }

    /// Asks all replicas about these, and no longer about others.
    pub fn ask(&self, questions: impl IntoIterator<Item = Question>) {
        let questions = questions.into_iter().collect();
        self.0.update(|state| state.asked = questions);
    }

    /// How many proxies stand how to a version of a resource, over all replicas that are known to this one, by version of
    /// Envoy. Others' counts are known only of what was asked for ([`Self::ask`]).
    pub fn standings(&self, question: &Question) -> Tallies {
        self.0.sum(question).0
    }

    /// The same for all versions of Envoy together.
    pub fn standing(&self, question: &Question) -> Tally {
        self.standings(question).into_values().fold(Tally::default(), Tally::plus)
    }

    /// Whether proxies serve all of it: at least one has each, and all that are not stuck, of every replica that is known.
    /// One of many that refuses is its own problem.
    pub fn programmed<'q>(&self, questions: impl IntoIterator<Item = &'q Question>) -> bool {
        questions.into_iter().all(|question| {
            let (standings, is_complete) = self.0.sum(question);
            is_complete && xds::judge(&standings) == Some(true)
        })
    }

    /// Changes whenever a count may have changed that was asked for.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.0.news.subscribe()
    }

    /// Talks until `shutdown`.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let inner = self.0;
        let mut shutdown = pin!(shutdown);
        let mut place = inner.place.subscribe();
        let mut peers = inner.server.peers();
        loop {
            let now = place.borrow_and_update().clone();
            let following = async {
                match &now {
                    Place::Follower(address) => follower::follow(&inner, address).await,
                    Place::Alone | Place::Holder => std::future::pending().await,
                }
            };
            // Whoever comes early, before we know that the lease is ours, waits a moment for it.
            let taking_in = async {
                if matches!(now, Place::Follower(_)) {
                    return std::future::pending().await;
                }
                while let Some(peer) = peers.recv().await {
                    tokio::spawn(holder::attend(inner.clone(), peer));
                }
            };
            tokio::select! {
                () = &mut shutdown => return,
                changed = place.changed() => if changed.is_err() { return },
                () = following => {}
                () = taking_in => return,
                () = inner.listen() => {}
            }
            inner.unlink();
        }
    }
}

impl Inner {
    /// Changes the state and tells whoever needs to know.
    fn update(&self, change: impl FnOnce(&mut State)) {
        let others = {
            let mut state = self.state.lock();
            change(&mut state);
            state.others(None)
        };
        self.others.send_if_modified(|before| {
            let differs = *before != others;
            if differs {
                *before = others;
            }
            differs
        });
        self.changed.send_modify(|count| *count += 1);
        self.news.send_modify(|count| *count += 1);
    }

    /// Counts news whenever clients of this replica have answered, while somebody has asked for counts.
    async fn listen(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            let asked: Vec<Question> = self.state.lock().asked.iter().cloned().collect();
            let wake = asked.iter().filter_map(|question| self.own(question).1).min();
            tokio::select! {
                // The other branches are for this replica's own clients; what others say is counted when it comes.
                _ = changed.changed() => continue,
                () = self.answers(&asked) => {}
                () = until(wake) => {}
            }
            self.news.send_modify(|count| *count += 1);
        }
    }

    /// How many of this replica's clients stand how, and when the next of them will count as stuck.
    fn own(&self, question: &Question) -> (Tallies, Option<Instant>) {
        let book = self.server.book(&question.fleet);
        book.map(|book| book.tally(question.kind, &question.name, question.version)).unwrap_or_default()
    }

    /// All counts that are known, and whether every follower has answered.
    fn sum(&self, question: &Question) -> (Tallies, bool) {
        let (mut sum, _) = self.own(question);
        let state = self.state.lock();
        let mut complete = true;
        for follower in state.followers.values() {
            match follower.answers.get(question) {
                Some(tallies) => xds::add(&mut sum, tallies),
                None => complete = false,
            }
        }
        (sum, complete)
    }

    /// Done when a client has answered whose answer may matter to one of the questions.
    async fn answers(&self, questions: &[Question]) {
        let mut fleets: Vec<&Fleet> = questions.iter().map(|question| &question.fleet).collect();
        fleets.sort_unstable();
        fleets.dedup();
        let books = fleets.into_iter().filter_map(|fleet| self.server.book(fleet));
        let waits: Vec<_> = books
            .map(|book| {
                let mut answers = book.answers();
                Box::pin(async move {
                    if answers.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                })
            })
            .collect();
        if waits.is_empty() {
            return std::future::pending().await;
        }
        futures::future::select_all(waits).await;
    }

    /// There is no stream to the holder any more: what it said no longer holds, and nobody waits for its word.
    fn unlink(&self) {
        self.linked.store(false, Ordering::Relaxed);
        self.update(|state| state.from_holder = Shared::default());
        self.pending.lock().clear();
    }

    fn id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

/// Done at that time, or never.
pub(crate) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

//! A Kubernetes API server as a source: what it holds, and every change of it.
//!
//! In: a client, the kinds to read, the namespaces to read them in. Out: what a folder with the same objects would send.
//! One task follows each kind (and, if not all namespaces are read, each namespace):
//!
//! ```text
//! list, page by page → one Update with what differs from what was known → watch ──┬─ ended, cut: watch on
//!   ↑                                                                            └─ silent, history is gone (410): list again
//!   └─ fails: again, with pauses, for ever
//! ```
//!
//! * **Nothing is lost.** After a list, what it no longer holds is told as gone; what it holds unchanged is not told at
//!   all. A list that fails half way changes nothing.
//! * **Nothing good is lost to something bad.** An object that cannot be decoded is reported on itself, and what was
//!   read of it before stays in force; only what is plainly deleted is deleted. Deletes go by name, so that of an object
//!   that cannot be decoded is seen too.
//! * **Lean.** Objects are decoded straight from their bytes into the lean types of [`kinds`]. Of Secrets and ConfigMaps
//!   only names are watched, and their contents are fetched for those that [`FetchHandle`] asks for, each by itself
//!   ([`crate::fetch`]).
//! * **A kind may not be there.** Without its CRD a kind counts as read, with nothing in it, once the API server calls
//!   itself ready (a server that is starting knows no CRD yet) and still does not list it, and is looked for from time to
//!   time. A kind that is there and that we may not read is another matter: nothing is served without it.
//! * **A kind may be there in an older version only.** Every version that Sesame reads is tried, and the one that is found is
//!   told to those who write ([`ServedVersions`]).
//! * **A watch that is silent is not believed.** After [`Timing::silence`] everything is listed. If that brings what the watch should
//!   have, the watch is stalled: this is told, and the replica is not ready until a watch brings something.
//! * **An API server that is away changes nothing.** Every task tries again with growing pauses; the first that gets
//!   through wakes the others, so that all kinds catch up together.

mod access;
mod api;
mod backoff;
mod connection;
mod fetch;
mod follow;
mod known;
pub mod rights;
mod served;
mod target;
mod wire;

use crate::{Closed, Feeder, fetch::FetchHandle};
use api::Api;
use fetch::{Fetcher, Readable};
use follow::Follower;
use kinds::{Kind, ObjectRef, kind};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use target::Target;
use tokio::task::JoinSet;

pub use access::{Access, AccessError, Rate};
pub use connection::Connection;
pub use served::ServedVersions;

/// What is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kinds.
    pub kinds: Vec<Kind>,
    /// The namespaces; all if none is named.
    pub namespaces: Vec<Arc<str>>,
    /// Of these kinds, only these objects, and nothing is asked about any other: for rights that are bound to names.
    pub named: BTreeMap<Kind, BTreeSet<ObjectRef>>,
    /// Which objects of some kinds are read at all.
    pub selectors: Selectors,
    /// How patient it is.
    pub timing: Timing,
    /// Where it is said whether the API server can be reached.
    pub connection: Connection,
    /// Where it is said in which version each kind is served.
    pub versions: ServedVersions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kinds: kind::ALL.to_vec(),
            namespaces: Vec::new(),
            named: BTreeMap::new(),
            selectors: Selectors::default(),
            timing: Timing::default(),
            connection: Connection::default(),
            versions: ServedVersions::default(),
        }
    }
}

/// Selectors that the API server applies: what they leave out is as if it was not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selectors {
    /// The kinds that they hold for.
    pub kinds: Vec<Kind>,
    /// By labels.
    pub labels: Option<Arc<str>>,
    /// By fields.
    pub fields: Option<Arc<str>>,
}

/// A Kubernetes API server that is read and watched.
pub struct Cluster {
    api: Arc<Api>,
    targets: Vec<Target>,
    wants: FetchHandle,
    fetcher: Fetcher,
}

impl Cluster {
    /// A source, and the way to ask it for the contents of Secrets and ConfigMaps. Nothing is read before
    /// [`Cluster::run`].
    pub fn new(client: kube::Client, options: Options) -> (Self, FetchHandle) {
        let targets = Target::all(&options.kinds, &options.namespaces, &options.named, &options.selectors);
        let readable = Readable { namespaces: options.namespaces, named: options.named };
        let api = Arc::new(Api::new(client, options.timing, options.connection, options.versions));
        let (wants, fetcher) = fetch::fetcher(api.clone(), readable);
        (Self { api, targets, wants: wants.clone(), fetcher }, wants)
    }

    /// Reads everything, says so, and then tells of every change until nobody listens any more. What [`FetchHandle`] asked for
    /// goes another way than the rest, so that answers do not wait behind everything else.
    ///
    /// # Panics
    /// With a task of its own that panicked: half a source is none.
    pub async fn run(self, mut objects: Feeder, mut answers: Feeder) -> Closed {
        let Self { api, targets, wants, fetcher } = self;
        let mut tasks = JoinSet::new();
        for target in targets {
            tasks.spawn(Follower::new(target, api.clone(), objects.another(), wants.clone()).run());
        }
        objects.synced();
        // Nobody has asked for anything yet.
        answers.synced();
        tasks.spawn(fetcher.run(answers));
        match tasks.join_next().await {
            Some(Ok(Closed)) | None => Closed,
            Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// Pauses and limits. None of them stands in the way of a change: all are for when something is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The first pause after a failure. Each further one is twice as long, give or take a half.
    pub shortest_pause: Duration,
    /// The longest pause. Short, because the first task that gets through wakes all others: this is how long an API
    /// server that is back may wait for us.
    pub longest_pause: Duration,
    /// The longest pause before a kind that is not there is looked for again.
    pub absent_pause: Duration,
    /// How long a kind that was there must be away before what was read of it is told as gone.
    pub absent_after: Duration,
    /// After how long "there is no such kind" is believed of an API server that does not call itself ready.
    pub doubt: Duration,
    /// How long a list of one page, or one object, may take.
    pub answer: Duration,
    /// How long the contents of one object may take, and after how long of failures it is told as not readable.
    pub fetch: Duration,
    /// The longest pause before an object that cannot be read is asked for again.
    pub refused_pause: Duration,
    /// How long a watch may be silent. The API server sends a bookmark about every minute.
    pub silence: Duration,
    /// How long a watch is asked to last.
    pub watch: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            shortest_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(4),
            absent_pause: Duration::from_secs(15),
            absent_after: Duration::from_secs(60),
            doubt: Duration::from_secs(20),
            answer: Duration::from_secs(60),
            fetch: Duration::from_secs(10),
            refused_pause: Duration::from_secs(300),
            silence: Duration::from_secs(100),
            watch: Duration::from_secs(300),
        }
    }
}

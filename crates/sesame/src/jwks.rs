//! Fetches the JSON Web Key Sets that providers of tokens name by URI: Sesame does it, and not its proxies, which would forget all
//! of them at each change of one.
//!
//! In: the servers that the pipeline refers to. Out: what is known of their keys, whenever that changes. Each server has a task of
//! its own that fetches, waits as long as keys are good, and fetches again; the last good keys are kept while it fails. What a
//! namespace does to its servers costs others nothing: it fetches a few at a time, all namespaces together a bounded number, and
//! the control loop waits for none of them.

mod fetch;
mod metrics;
#[cfg(test)]
mod tests;
mod tls;

pub use metrics::Metrics;

use model::jwt::{JwksState, RemoteJwks};
use pipeline::FetchSpec;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// Gives the addresses of a host and port.
pub type LookUp = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// How often, how many at a time, and from where.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The shortest time between two fetches from a server that answers, whatever a provider says.
    pub shortest_interval: Duration,
    /// The time after which a fetch that failed is tried again; it doubles with each failure.
    pub first_retry: Duration,
    /// The longest that time gets.
    pub last_retry: Duration,
    /// The longest that a fetch may take, whatever a provider says.
    pub longest_fetch: Duration,
    /// How many fetches of a namespace are made at a time.
    pub of_namespace: usize,
    /// How many are made at a time.
    pub in_total: usize,
    /// Which addresses may be asked.
    pub allows: fn(IpAddr) -> bool,
    /// How names are resolved; it may block.
    pub look_up: LookUp,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shortest_interval: Duration::from_secs(10),
            first_retry: Duration::from_secs(1),
            last_retry: Duration::from_secs(60),
            longest_fetch: Duration::from_secs(30),
            of_namespace: 4,
            in_total: 64,
            allows: resolve::address::is_reachable,
            look_up: fetch::system_look_up,
        }
    }
}

impl Limits {
    /// How long a fetch may take.
    fn fetch_timeout(&self, spec: &FetchSpec) -> Duration {
        spec.timeout.min(self.longest_fetch)
    }
}

/// What is known of a server.
pub type JwksUpdate = (Arc<RemoteJwks>, JwksState);

/// The servers that are asked.
pub struct Fetcher {
    limits: Arc<Limits>,
    tasks: HashMap<Arc<RemoteJwks>, Task>,
    namespaces: HashMap<Arc<str>, Weak<Semaphore>>,
    total: Arc<Semaphore>,
    news: mpsc::UnboundedSender<JwksUpdate>,
    metrics: Metrics,
}

/// The task that asks a server; it ends with this.
struct Task {
    spec: watch::Sender<Arc<FetchSpec>>,
    task: AbortHandle,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fetcher {
    /// A fetcher that asks nobody yet, and where it tells what it finds.
    pub fn new(limits: Limits, metrics: Metrics) -> (Self, mpsc::UnboundedReceiver<JwksUpdate>) {
        let (news, receiver) = mpsc::unbounded_channel();
        let total = Arc::new(Semaphore::new(limits.in_total));
        let (tasks, namespaces) = Default::default();
        (Self { limits: Arc::new(limits), tasks, namespaces, total, news, metrics }, receiver)
    }

    /// Asks a server from now on like this: at once if it was not asked before, or otherwise.
    pub fn want(&mut self, source: Arc<RemoteJwks>, spec: Arc<FetchSpec>) {
        if let Some(task) = self.tasks.get(&source) {
            task.spec.send_replace(spec);
            return;
        }
        let queue = self.queue(&source.namespace);
        let (sender, receiver) = watch::channel(spec);
        self.metrics.asked(&source);
        let outputs = (self.news.clone(), self.metrics.clone());
        let following = follow(source.clone(), receiver, queue, self.limits.clone(), outputs);
        let task = tokio::spawn(following).abort_handle();
        self.tasks.insert(source, Task { spec: sender, task });
    }

    /// Asks a server no more.
    pub fn forget(&mut self, source: &Arc<RemoteJwks>) {
        self.tasks.remove(source);
        self.metrics.forgotten(source);
        self.namespaces.retain(|_, queue| queue.strong_count() > 0);
    }

    fn queue(&mut self, namespace: &Arc<str>) -> Queue {
        let known = self.namespaces.get(namespace).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(self.limits.of_namespace));
            self.namespaces.insert(namespace.clone(), Arc::downgrade(&own));
            own
        });
        Queue { own, total: self.total.clone() }
    }
}

/// Where fetches of a namespace wait for their turn: first for each other, so that all of them take few places in the queue of all.
#[derive(Clone)]
struct Queue {
    own: Arc<Semaphore>,
    total: Arc<Semaphore>,
}

/// Lasts as long as a fetch takes a thread or a connection.
struct Turn {
    _own: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
}

impl Queue {
    /// Nothing once the queue is closed, which it never is.
    async fn turn(&self) -> Option<Turn> {
        let own = self.own.clone().acquire_owned().await.ok()?;
        let total = self.total.clone().acquire_owned().await.ok()?;
        Some(Turn { _own: own, _total: total })
    }
}

/// Asks a server again and again.
async fn follow(
    source: Arc<RemoteJwks>,
    mut specs: watch::Receiver<Arc<FetchSpec>>,
    queue: Queue,
    limits: Arc<Limits>,
    (news, metrics): (mpsc::UnboundedSender<JwksUpdate>, Metrics),
) {
    let mut known: Option<JwksState> = None;
    let mut failures = 0_u32;
    loop {
        let spec = specs.borrow_and_update().clone();
        let Some(turn) = queue.turn().await else { return };
        let most = limits.fetch_timeout(&spec);
        let fetched = timeout(most, fetch::keys(&source, &spec, &limits, turn)).await;
        metrics.fetched(
            &source,
            match &fetched {
                Ok(Ok(_)) => "success",
                Ok(Err(_)) => "failure",
                Err(_) => "timeout",
            },
        );
        let fetched = fetched.unwrap_or_else(|_| Err(format!("no answer within {most:?}")));
        let is_new = failures > 0 || known.is_none();
        let (state, rest) = match fetched {
            Ok(keys) => {
                if is_new {
                    info!(namespace = %source.namespace, uri = %source.uri, keys = keys.keys().len(), "JSON Web Key Set fetched");
                }
                failures = 0;
                (JwksState { keys: Some(keys), failure: None }, spec.cache.max(limits.shortest_interval))
            }
            Err(why) => {
                if failures == 0 {
                    warn!(namespace = %source.namespace, uri = %source.uri, "failed to fetch a JSON Web Key Set: {why}");
                }
                let rest = limits.first_retry.saturating_mul(1 << failures.min(16)).min(limits.last_retry);
                failures = failures.saturating_add(1);
                let keys = known.as_ref().and_then(|known| known.keys.clone());
                (JwksState { keys, failure: Some(why.into()) }, rest)
            }
        };
        if known.as_ref() != Some(&state) {
            known = Some(state.clone());
            if news.send((source.clone(), state)).is_err() {
                return;
            }
        }
        tokio::select! {
            () = sleep(rest) => {}
            changed = specs.changed() => if changed.is_err() { return },
        }
    }
}

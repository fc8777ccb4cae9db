//! The disk cache: what was last published to proxies, for a controller that starts while the API server does not answer.
//!
//! In: the snapshots of the xDS server. Out: one sealed file, and from it, at the start, what proxies that have nothing are served
//! until the first build. It is written beside the control loop, which never waits for it: snapshots are immutable. A write is followed
//! by a pause of fifty times as long, so that it takes two percent of a core however large the state and however often it changes.
//!
//! The controller itself creates the Secret of the key, after the first pods of an installation have started: the kubelet mounts it into
//! them a minute or two later. Until then nothing is written, and nothing is wrong.
//!
//! See [ADR 16](../../../../docs/adr/0016-disk-cache.md).

mod file;
mod metrics;
mod seal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use model::Code;
use source::outage::{Outage, OutageEvent};
use tokio::time::{self, sleep};
use tracing::{debug, info, warn};
use xds::{Fleet, Server, Snapshot};

use file::CacheFile;
pub use metrics::Metrics;
use seal::Keys;

/// Where the file is, if no flag says so. There is none where that folder does not exist.
pub const DIR: &str = "/cache";
/// Where the keys are, if no flag says so.
pub const KEY_FILE: &str = "/cache-key/cache.key";

/// How often it is looked whether something else is published.
const LOOK: Duration = Duration::from_secs(1);
/// How many times as long as a write the pause after it is.
const PAUSE_FACTOR: u32 = 50;
/// How long the cache is off after it could not be written.
const OFF: Duration = Duration::from_secs(300);
/// How often a write is tried while there is no key file, and for how long that is not reported.
const KEY_RETRY: Duration = Duration::from_secs(5);
const KEY_GRACE: Duration = Duration::from_secs(120);

/// The cache of one installation.
pub struct DiskCache {
    files: Arc<Files>,
    metrics: Metrics,
    outage: Outage,
    /// Since when there is no key file.
    without_key: Option<time::Instant>,
}

/// Where it is, and whose.
struct Files {
    state: CacheFile,
    keys: PathBuf,
    installation: String,
}

impl DiskCache {
    /// A cache in a folder, if that exists. One of another installation is not used.
    pub fn new(dir: PathBuf, keys: PathBuf, installation: String, metrics: Metrics) -> Option<Self> {
        if !dir.is_dir() {
            return None;
        }
        let files = Arc::new(Files { state: CacheFile::new(dir), keys, installation });
        Some(Self { files, metrics, outage: Outage::default(), without_key: None })
    }

    /// Gives the server what was published before, and follows what it publishes.
    pub async fn run(mut self, server: Server) {
        let (files, restoring) = (self.files.clone(), server.clone());
        if let Err(error) = blocking(move || restore(&files, &restoring)).await {
            let code = Code::DiskCacheIgnored;
            warn!(%code, "{code}: {}: {error:#} ({})", code.title(), code.help());
        }
        let (mut written, mut pause) = (Vec::new(), LOOK);
        loop {
            sleep(pause).await;
            pause = LOOK;
            let Some(published) = published(&server) else { continue };
            let stamp: Vec<_> = published.iter().map(|(fleet, it)| (fleet.clone(), it.generation)).collect();
            if written.is_empty() {
                server.forget_restored();
            }
            if stamp == written {
                continue;
            }
            // Before the write: a key that comes meanwhile is found by the next one, a few seconds later.
            let has_key = self.files.keys.exists();
            let (files, begun) = (self.files.clone(), Instant::now());
            let stored = blocking(move || store(&files, &published)).await;
            let is_stored = stored.is_ok();
            pause = self.after(stored, has_key, begun.elapsed());
            written = if is_stored { stamp } else { Vec::new() };
        }
    }

    /// Tells how a write went; gives how long to pause.
    fn after(&mut self, stored: Result<usize>, has_key: bool, took: Duration) -> Duration {
        match stored {
            Ok(bytes) => {
                debug!(bytes, ?took, "disk cache written");
                self.without_key = None;
                self.metrics.written(bytes);
                if let Some(OutageEvent::Ended(_)) = self.outage.worked(Instant::now()) {
                    info!("the disk cache is on again");
                }
                pause_after(took)
            }
            Err(error) => {
                // What is there is out of date from now on, and takes the place that is missing.
                self.files.state.remove();
                self.metrics.off();
                if has_key {
                    self.without_key = None;
                    self.failed(&error);
                    return OFF;
                }
                if self.is_key_overdue() {
                    self.failed(&error);
                }
                KEY_RETRY
            }
        }
    }

    /// Reports that it is off, once until it is on again.
    fn failed(&mut self, error: &anyhow::Error) {
        if let Some(OutageEvent::Started) = self.outage.failed(Instant::now()) {
            let code = Code::DiskCacheOff;
            warn!(%code, "{code}: {}: {error:#} ({})", code.title(), code.help());
        }
    }

    /// Whether the key file has been missing for longer than it takes in a new installation.
    fn is_key_overdue(&mut self) -> bool {
        let since = *self.without_key.get_or_insert_with(|| {
            info!(file = %self.files.keys.display(), "the disk cache waits for its key file");
            time::Instant::now()
        });
        since.elapsed() >= KEY_GRACE
    }
}

/// How long to pause after a write.
fn pause_after(took: Duration) -> Duration {
    (took * PAUSE_FACTOR).max(LOOK)
}

/// What is published, once something is to the shared fleet: that comes with the first build.
fn published(server: &Server) -> Option<Vec<(Fleet, Arc<Snapshot>)>> {
    let fleets = server.all_acks().into_iter();
    let mut fleets: Vec<_> = fleets.filter_map(|(fleet, acks)| Some((fleet, acks.snapshot()?))).collect();
    fleets.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    fleets.iter().any(|(fleet, _)| *fleet == Fleet::Shared).then_some(fleets)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(anyhow!("the background task failed: {error}")))
}

/// Reads the file, if there is one.
fn restore(files: &Files, server: &Server) -> Result<()> {
    let begun = Instant::now();
    let Some(sealed) = files.state.read()? else { return Ok(()) };
    let stored = seal::open(&Keys::read(&files.keys)?, sealed, &files.installation)?;
    let fleets = xds::stored::decode(stored)?;
    let resources: usize = fleets.iter().map(|(_, resources)| resources.len()).sum();
    let count = fleets.len();
    for (fleet, resources) in fleets {
        server.restore(&fleet, resources);
    }
    info!(fleets = count, resources, took = ?begun.elapsed(),
        "disk cache loaded; proxies without configuration are served from it until the first build");
    Ok(())
}

/// Writes the file; gives its size.
fn store(files: &Files, published: &[(Fleet, Arc<Snapshot>)]) -> Result<usize> {
    let keys = Keys::read(&files.keys)?;
    let sealed = seal::seal(&keys, xds::stored::encode(published), &files.installation)?;
    files.state.write(&sealed)
}

/// The part of a file behind its header, as it is shared by resources.
type Stored = Bytes;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const TYPE: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    /// A type that another build publishes.
    const ANOTHER: &str = "type.googleapis.com/envoy.config.cluster.v9.Cluster";

    const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";

    /// A server that has published one cluster.
    fn server() -> Server {
        let server = Server::new(xds::Config::default());
        let cluster = xds::Resource::new(xds::Kind::Cluster, "a", "a cluster");
        let changes = xds::Changes { upserts: vec![cluster], removes: Vec::new() };
        server.publish(xds::Batch { fleet: Fleet::Shared, changes }).unwrap();
        server
    }

    /// A cache of one cluster in a folder, and what is in it before it is sealed.
    fn cache(folder: &std::path::Path) -> (Files, Vec<u8>) {
        let keys = folder.join("cache.key");
        std::fs::write(&keys, KEY).unwrap();
        let files = Files { state: CacheFile::new(folder.to_owned()), keys, installation: "ns/lease".to_owned() };
        (files, xds::stored::encode(&published(&server()).unwrap()))
    }

    fn write(files: &Files, state: Vec<u8>) {
        let keys = Keys::read(&files.keys).unwrap();
        files.state.write(&seal::seal(&keys, state, &files.installation).unwrap()).unwrap();
    }

    /// It is sealed with the right key and not damaged; still nothing of it is served.
    #[test]
    fn what_a_build_with_other_types_of_resources_wrote_is_refused_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (files, state) = cache(folder.path());
        let server = Server::new(xds::Config::default());
        write(&files, state.clone());
        restore(&files, &server).unwrap();
        assert_eq!(server.all_acks().len(), 1, "a fleet that is served from the cache");

        let at = state.windows(TYPE.len()).position(|part| part == TYPE.as_bytes()).unwrap();
        let mut other = state;
        other[at..at + TYPE.len()].copy_from_slice(ANOTHER.as_bytes());
        write(&files, other);
        let server = Server::new(xds::Config::default());
        let error = restore(&files, &server).unwrap_err().to_string();
        assert_eq!(error, format!("unknown type of resource {ANOTHER:?}"));
        assert!(server.all_acks().is_empty(), "some of it is served");
    }

    /// A cache in a folder, and where its key file is missing.
    fn without_key(folder: &std::path::Path) -> (DiskCache, PathBuf) {
        let keys = folder.join("cache.key");
        let cache = DiskCache::new(folder.to_owned(), keys.clone(), "ns/lease".to_owned(), Metrics::default());
        (cache.unwrap(), keys)
    }

    /// As in a new installation, whose controller creates the Secret with the key.
    #[tokio::test(start_paused = true)]
    async fn a_key_that_comes_late_is_used_within_seconds() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, keys) = without_key(folder.path());
        let state = folder.path().join("state");
        let running = tokio::spawn(cache.run(server()));
        sleep(KEY_GRACE - KEY_RETRY).await;
        assert!(!state.exists());
        std::fs::write(&keys, KEY).unwrap();
        let written = async {
            while !state.exists() {
                sleep(LOOK).await;
            }
        };
        time::timeout(KEY_RETRY + 2 * LOOK, written).await.unwrap();
        running.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_does_not_come_is_reported_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let (mut cache, _) = without_key(folder.path());
        let failed = || Err(anyhow!("there is no key file"));
        // What was reported would be over with a write that succeeds.
        let is_reported = |cache: &DiskCache| {
            let mut outage = cache.outage;
            outage.worked(Instant::now()).is_some()
        };
        assert_eq!(cache.after(failed(), false, Duration::ZERO), KEY_RETRY);
        time::advance(KEY_GRACE - KEY_RETRY).await;
        assert_eq!(cache.after(failed(), false, Duration::ZERO), KEY_RETRY);
        assert!(!is_reported(&cache));
        time::advance(KEY_RETRY).await;
        assert_eq!(cache.after(failed(), false, Duration::ZERO), KEY_RETRY);
        assert!(is_reported(&cache));
        // With a key a failure is reported at once, and the next write is minutes later.
        assert_eq!(cache.after(Ok(1), true, Duration::ZERO), LOOK);
        assert!(!is_reported(&cache));
        assert_eq!(cache.after(failed(), true, Duration::ZERO), OFF);
        assert!(is_reported(&cache));
    }

    #[test]
    fn writes_take_two_percent_of_the_time() {
        for millis in [1, 20, 100, 3000] {
            let took = Duration::from_millis(millis);
            let share = took.as_secs_f64() / (took + pause_after(took)).as_secs_f64();
            assert!(share <= 0.02, "{share} of a core at {took:?} a write");
        }
        assert_eq!(pause_after(Duration::ZERO), LOOK);
    }
}

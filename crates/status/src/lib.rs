//! Status and events: reports on each object what became of it.
//!
//! In: [`Report`]s of the control loop: objects as they are, and the verdicts and facts about them. Out: writes of the status
//! of objects and Kubernetes events, by the one replica that holds the [`lease`]. Nothing here may slow down configuration: a
//! report is put into a map and taken from there by a task of its own.
//!
//! What a status says is decided by the dialect of its kind, as typed facts ([`model::status`]); nothing here knows a kind, a
//! field or a reason of a dialect. The table of kinds comes with the [`Settings`].
//!
//! ```no_run
//! # use status::{Addresses, Leadership, Report, Settings, lease};
//! # async fn example(client: kube::Client, stop: tokio::sync::watch::Receiver<bool>) -> Result<(), Box<dyn std::error::Error>> {
//! let election = lease::Election::new(client.clone(), lease::Settings::new("projectsesame", "sesame-0"))?;
//! let leadership = election.leadership(); // or Leadership::always() where there is no election
//! let settings = Settings::new("sesame-0", Addresses::of_service("projectsesame", "envoy"), |_| None);
//! let (reporter, writer) = status::channel(client, settings, leadership);
//! let stopped = || { let mut stop = stop.clone(); async move { _ = stop.wait_for(|stop| *stop).await; } };
//! tokio::spawn(election.run(stopped()));
//! tokio::spawn(writer.run(stopped()));
//! reporter.report(Report::default()); // after every batch
//! # Ok(()) }
//! ```
//!
//! Reading order: [`lease`] (who writes), [`report`] (what comes in), `observed` (what is kept of an object), [`address`], [`render`]
//! (facts as JSON), `change` (what must be written), `statuses` (the objects whose status is out of date), `event_queue` (the
//! verdicts that have no event yet), `writer` (the task), `patch` and `event` (one request each), `request_error` and `failure_log`
//! (what failed, and what of it is logged).

pub mod address;
mod change;
mod event;
mod event_queue;
mod failure_log;
pub mod lease;
mod observed;
mod patch;
pub mod rate_limiter;
pub mod render;
pub mod report;
mod request_error;
mod statuses;
mod writer;

use kinds::Kind;
use model::status::StatusKind;
use rate_limiter::Rate;
use source::cluster::ServedVersions;

pub use address::Addresses;
pub use event::CONTROLLER;
pub use lease::{Election, Leadership};
pub use report::{Identity, Programmed, Report, Reporter};
pub use writer::Writer;

/// Both ends: one for the control loop, one to run.
pub fn channel(client: kube::Client, settings: Settings, leadership: Leadership) -> (Reporter, Writer) {
    let reporter = Reporter::default();
    (reporter.clone(), Writer::new(client, settings, leadership, reporter))
}

/// What holds for all writes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where objects are served.
    pub addresses: Addresses,
    /// The name of this replica in events: the name of the pod.
    pub instance: String,
    /// The field manager of server-side apply. Two installations in one cluster must have different ones: what one has
    /// written is not the other's to remove.
    pub manager: String,
    /// The name under which our entries stand in lists that several controllers write.
    pub controller: String,
    /// The kinds that have a status of ours, and how it is decided.
    pub kinds: fn(Kind) -> Option<&'static StatusKind>,
    /// The version in which each kind is served, as the source finds it: requests name no other.
    pub versions: ServedVersions,
    /// How fast status is written.
    pub writes: Rate,
    /// How fast events are written.
    pub events: Rate,
}

impl Settings {
    /// The usual ones for a replica of that name.
    pub fn new(instance: &str, addresses: Addresses, kinds: fn(Kind) -> Option<&'static StatusKind>) -> Self {
        Self {
            addresses,
            instance: instance.to_owned(),
            manager: "sesame".to_owned(),
            controller: CONTROLLER.to_owned(),
            kinds,
            versions: ServedVersions::default(),
            writes: Rate { per_second: 200.0, burst: 200 },
            events: Rate { per_second: 50.0, burst: 100 },
        }
    }
}

//! Tells people, on their own objects, what became of them.
//!
//! In: [`Report`]s of the control loop: objects as they are now and the verdicts about them. Out: patches of the status
//! of objects and Kubernetes events, written by the one replica that holds the [`lease`]. Nothing here may slow down
//! configuration: a report is put into a map and taken from there by a task of its own.
//!
//! ```no_run
//! # use status::{Addresses, Leadership, Report, Settings, lease};
//! # async fn example(client: kube::Client, stop: tokio::sync::watch::Receiver<bool>) -> Result<(), Box<dyn std::error::Error>> {
//! let election = lease::Election::new(client.clone(), lease::Settings::new("projectsesame", "sesame-0"))?;
//! let leadership = election.leadership(); // or Leadership::always() where there is no election
//! let settings = Settings::new("sesame-0", Addresses::of_service("projectsesame", "envoy"));
//! let (reporter, writer) = status::channel(client, settings, leadership);
//! let stopped = || { let mut stop = stop.clone(); async move { _ = stop.wait_for(|stop| *stop).await; } };
//! tokio::spawn(election.run(stopped()));
//! tokio::spawn(writer.run(stopped()));
//! reporter.report(Report::default()); // after every batch
//! # Ok(()) }
//! ```
//!
//! Reading order: [`lease`] (who writes), [`report`] (what comes in), [`address`], [`ingress`] and [`http_proxy`] (what an
//! object is to say), `statuses` (which objects say something else), `announcements` (which verdicts have no event yet), `writer` (the
//! task), `patch` and `event` (one request each), `text` (how long it may be).

pub mod address;
mod announcements;
mod event;
pub mod http_proxy;
mod ingress;
pub mod lease;
mod patch;
pub mod rate_limiter;
pub mod report;
mod statuses;
mod text;
mod writer;

use rate_limiter::Rate;

pub use address::Addresses;
pub use event::CONTROLLER;
pub use lease::{Election, Leadership};
pub use report::{Programmed, Report, Reporter};
pub use writer::Writer;

/// Both ends: one for the control loop, one to run.
pub fn channel(client: kube::Client, settings: Settings, leadership: Leadership) -> (Reporter, Writer) {
    let reporter = Reporter::default();
    (reporter.clone(), Writer::new(client, settings, leadership, reporter))
}

/// What holds for all writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where what we serve is reached.
    pub addresses: Addresses,
    /// Which replica this is, for people who look at an event: the name of the pod.
    pub instance: String,
    /// The name under which the API server keeps what we say. Two installations in one cluster must differ in it: what
    /// one says is not the other's to take back.
    pub manager: String,
    /// How fast status is written.
    pub writes: Rate,
    /// How fast events are written.
    pub events: Rate,
}

impl Settings {
    /// The usual ones for a replica of that name.
    pub fn new(instance: &str, addresses: Addresses) -> Self {
        Self {
            addresses,
            instance: instance.to_owned(),
            manager: "sesame".to_owned(),
            writes: Rate { per_second: 200.0, burst: 200 },
            events: Rate { per_second: 50.0, burst: 100 },
        }
    }
}

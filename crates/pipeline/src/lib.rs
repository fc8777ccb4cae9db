//! Every station of the data wired in one engine: changes of objects in, xDS changes and verdicts out.
//!
//! This is the only crate that knows all stations; the stations do not know each other. Each file declares the tables of
//! one of them, in the order of the data: [`holds`], [`objects`], [`services`], [`certificates`], [`validity`], [`units`],
//! [`pending`], [`hosts`], [`packing`], [`redirects`], [`resources`], [`listeners`], [`verdicts`], [`carriers`], [`wants`];
//! [`server_name`] is for the xDS server. A
//! table's computation only gathers what a pure function of the station needs; what the data means is decided there.
//!
//! ```text
//! objects → services, certificates → units → hosts, chains → resources → xDS
//!                                      └──────────┴────→ verdicts, carriers, wants
//! ```
//!
//! Services, clusters and endpoints are in the engine's lane: an endpoint that comes or goes is published in the middle of
//! the longest batch.
//!
//! What proxies make of it comes back as rulings, and what they refused is withheld ([`holds`]). So is what is too large to be
//! sent ([`Pipeline::shed`]):
//!
//! ```no_run
//! # use pipeline::{Output, Pipeline};
//! # async fn example(mut pipeline: Pipeline, server: xds::Server) -> Result<(), xds::PublishError> {
//! let fleet = xds::Fleet::Shared;
//! let mut court = xds::Court::new(&server, fleet.clone());
//! loop {
//!     let Output { xds: changes, probes, .. } = pipeline.settle();
//!     server.publish(xds::Batch { fleet: fleet.clone(), changes })?;
//!     court.expect(probes); // after they are published
//!     let ruling = court.next().await; // or a change of an object
//!     pipeline.hear(&ruling);
//! }
//! # }
//! ```

pub mod carriers;
pub mod certificates;
pub mod door;
pub mod holds;
pub mod hosts;
pub mod listeners;
pub mod objects;
mod oversize;
pub mod packing;
pub mod pending;
mod quarantine;
pub mod redirects;
pub mod resources;
pub mod run;
pub mod server_name;
pub mod services;
pub mod settings;
pub mod spoil;
pub mod units;
pub mod validity;
pub mod verdicts;
pub mod wants;
mod wildcard_certificate;

pub use carriers::Carrier;
pub use holds::{Hold, Target};
pub use objects::reads;
pub use run::{Output, Pipeline, Wants};
pub use settings::Settings;
pub use wants::Answer;

//! Every station of the data wired in one engine: changes of objects in, xDS changes and verdicts out.
//!
//! This is the only crate that knows all stations; the stations do not know each other. Each file declares the tables of one of
//! them, in the order of the data: [`settings`], [`withheld`], [`objects`], [`services`], [`certificates`], [`validity`],
//! [`emissary`], [`dialects`], [`translations`], [`content`], [`pending`], [`ports`], [`shared_routes`], [`isolation`], [`hosts`], [`on_demand`],
//! [`equal_hosts`], [`packing`], [`redirects`], [`membership`], [`resources`], [`client_trust`], [`holders`], [`listeners`],
//! [`fleet_resources`], [`verdicts`], [`facts`], [`object_resources`], [`secret_refs`]; [`server_name`] is for the xDS server.
//! A table's computation only gathers what a pure function of the station needs; what the data means is decided there.
//!
//! ```text
//! objects → services, certificates → translations → hosts, chains → resources → xDS
//!                                      └──────────┴────→ verdicts, object resources, Secret references
//! ```
//!
//! Services, clusters and endpoints are in the engine's lane: an endpoint that comes or goes is published in the middle of
//! the longest batch.
//!
//! What proxies make of it comes back as outcomes, and what they refused is withheld ([`withheld`]). So is what is too large to be
//! sent ([`Pipeline::shed`]):
//!
//! ```no_run
//! # use pipeline::{Output, Pipeline};
//! # async fn example(mut pipeline: Pipeline, server: xds::Server) -> Result<(), xds::PublishError> {
//! let fleet = xds::Fleet::Shared;
//! let mut monitor = xds::AckMonitor::new(&server, fleet.clone());
//! loop {
//!     let Output { xds: changes, probes, .. } = pipeline.settle();
//!     server.publish(xds::Batch { fleet: fleet.clone(), changes })?;
//!     monitor.expect(probes); // after they are published
//!     let outcome = monitor.next().await; // or a change of an object
//!     pipeline.on_outcome(&outcome);
//! }
//! # }
//! ```

#[macro_use]
mod rows;

pub mod authorization;
pub mod certificates;
pub mod client_trust;
pub mod content;
pub mod dialects;
pub mod emissary;
mod equal_facts;
pub mod equal_hosts;
pub mod extensions;
pub mod facts;
pub mod fleet_resources;
pub mod holders;
pub mod hosts;
pub mod isolation;
pub mod jwks;
pub mod large;
pub mod listeners;
mod losers;
pub mod membership;
pub mod object_resources;
pub mod objects;
pub mod on_demand;
mod oversize;
pub mod packing;
pub mod partition;
pub mod pending;
pub mod ports;
mod quarantine;
pub mod redirects;
pub mod resources;
pub mod run;
pub mod secret_refs;
pub mod server_name;
pub mod services;
pub mod settings;
pub mod shared_routes;
mod slots;
pub mod spoil;
pub mod status;
pub mod tracers;
pub mod translations;
pub mod validity;
pub mod verdicts;
pub mod view;
mod wildcard_certificate;
pub mod withheld;

pub use dialect_gateway::class::RELEASE as GATEWAY_API_RELEASE;
pub use dialect_gateway::fleet::{FleetState, OwnFleet};
pub use dialects::{Dialect, Dialects};
pub use jwks::FetchSpec;
pub use object_resources::{ObjectResource, ServedObject};
pub use run::{FleetOutput, Output, Pipeline, SecretRefChanges, xds_fleet};
pub use secret_refs::FetchResult;
pub use settings::{FleetSettings, Settings};
pub use status::status_of;
pub use withheld::{FleetTarget, QuarantineTarget, Quarantined};

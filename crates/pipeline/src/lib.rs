//! Every station of the data wired in one engine: changes of objects in, xDS changes and verdicts out.
//!
//! This is the only crate that knows all stations; the stations do not know each other. Each file declares the tables of
//! one of them, in the order of the data: [`objects`], [`services`], [`certificates`], [`units`], [`hosts`],
//! [`resources`], [`verdicts`], [`wants`]. A table's computation only gathers what a pure function of the station needs;
//! what the data means is decided there.
//!
//! ```text
//! objects → services, certificates → units → hosts, chains → resources → xDS
//!                                      └──────────┴────→ verdicts, wants
//! ```
//!
//! Services, clusters and endpoints are in the engine's lane: an endpoint that comes or goes is published in the middle of
//! the longest batch.

pub mod certificates;
pub mod door;
pub mod holds;
pub mod hosts;
pub mod objects;
pub mod packing;
mod quarantine;
pub mod resources;
pub mod run;
pub mod services;
pub mod settings;
pub mod spoil;
pub mod units;
pub mod verdicts;
pub mod wants;

pub use holds::{Hold, Target};
pub use run::{Output, Pipeline, Wants};
pub use settings::Settings;

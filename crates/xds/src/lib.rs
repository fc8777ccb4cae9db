//! The xDS server that Envoys connect to.
//!
//! In: per fleet and type, resources as encoded messages with the names that they point at ([`Batch`]). Out: streams to
//! Envoys, delta or state of the world, aggregated or per type, over mutual TLS; and what became of it: [`Event`]s and
//! the [`FleetAcks`]. It knows neither Kubernetes nor what the resources mean.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use xds::{Batch, Changes, Config, Fleet, Kind, Resource, Security, Server, Tls, TlsFiles};
//! # async fn example(cluster: Vec<u8>, files: TlsFiles) -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::new(Config::default());
//! let mut events = server.events();
//! let upserts = vec![Resource::new(Kind::Cluster, "shop/web/80", cluster).refers_to(Kind::Endpoints, "shop/web/80")];
//! server.publish(Batch { fleet: Fleet::Shared, changes: Changes { upserts, removes: vec![] } })?;
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:8001").await?;
//! let tls = Security::Tls(Arc::new(Tls::load(files)?));
//! server.serve(listener, tls, std::future::pending()).await?;
//! # Ok(()) }
//! ```
//!
//! The rooms, in the order of the data: [`Resource`] and what it becomes (`resource`), tables and their snapshots
//! (`table`, `publish`), the same for the next process ([`stored`]), one stream's state without sockets and clocks ([`session`]), the bytes (`wire`), fleets and
//! their clients (`fleet`, `acks`, `view`), who has acknowledged what (`acks`), what their answers say about a resource
//! (`ack_counts`, `ack_monitor`), who may see what (`identity`, `tls`), HTTP/2 and gRPC (`service`, `server`).

mod ack_counts;
mod ack_monitor;
mod acks;
mod fleet;
mod fleet_acks;
mod identity;
mod kind;
mod limits;
mod metrics;
pub mod peer;
mod publish;
mod quarantined;
mod resolve;
mod resource;
mod server;
mod service;
pub mod session;
pub mod stored;
mod table;
mod tls;
mod view;
mod wire;

pub use self::tls::{Tls, TlsFiles};
pub use ::tls::TlsError;
pub use ack_counts::{AckCounts, FleetAckCounts, STUCK, add, decide, decide_now};
pub use ack_monitor::{AckMonitor, Outcome, ResourceOutcome};
pub use acks::{AckWatch, Nack, Version};
pub use fleet::FleetAcks;
pub use fleet_acks::{AckState, Event, Rejection, RejectionCause, ResourceAcks};
pub use identity::{
    Authenticating, Authenticator, CA_EXPIRATIONS_METADATA, Credential, FLEET_METADATA, Fleet, Identity, IdentityError,
    RequiredEnvoy, TokenError, VerifiedToken,
};
pub use kind::Kind;
pub use limits::Limits;
pub use peer::{Peer, PeerError, PeerReceiver, PeerSender};
pub use publish::Changes;
pub use quarantined::{QuarantineTarget, Quarantined};
pub use resolve::Resolver;
pub use resource::{Entry, Name, Ref, Resource, ResourceOrigin, Role, content_version};
pub use server::{Batch, Config, PublishError, Published, Security, Server};
pub use table::{Change, Snapshot, Table};
pub use view::{ClientView, TypeView};
pub use wire::request::{Incoming, Malformed, decode};

//! The neutral vocabulary: what every dialect is turned into and what every proxy is built from.
//!
//! Nothing here knows Kubernetes or protobuf. A dialect parses its objects into these types at its border, and from
//! there on nothing can be invalid: a [`Fqdn`] is a name, a [`Regex`] compiles in Envoy, a [`HeaderValue`] can be sent.
//! What could not be parsed became a [`Verdict`] with a [`Code`] and the path of the field, and took nothing else with
//! it. Every piece carries its [`Origin`], all the way to the Envoy resource.
//!
//! Reading order: [`Origin`] (who wrote it), [`verdict`] (what became of it), [`host`], [`route`], [`cluster`],
//! [`endpoints`], [`tls`], [`listener`], [`status`].

pub mod address;
pub mod cluster;
pub mod code;
mod command_operators;
pub mod endpoints;
pub mod header;
pub mod host;
pub mod jwt;
pub mod listener;
pub mod or_default;
pub mod regex;
pub mod route;
pub mod shared_routes;
pub mod status;
pub mod timeout;
pub mod tls;
pub mod translation;
pub mod verdict;
pub mod verdict_list;

pub use cluster::{Cluster, ClusterId};
pub use code::{Code, Severity};
pub use endpoints::{Endpoint, Endpoints, EndpointsId, Transport};
pub use header::{HeaderName, HeaderValue, MutableHeader};
pub use host::{Fqdn, Host};
pub use listener::{FleetId, FleetName, ListenerId, Port, PortId, PortProtocol};
pub use object_ref::{FieldPath, Kind, ObjectRef, Origin};
pub use or_default::OrDefault;
pub use regex::Regex;
pub use route::{Route, VirtualHost};
pub use timeout::Timeout;
pub use tls::{CertificateRef, ChainId};
pub use translation::Translation;
pub use verdict::Verdict;
pub use verdict_list::VerdictList;

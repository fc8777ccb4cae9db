//! A fleet of Envoy proxies for each Gateway.
//!
//! In: the fleets that should exist ([`FleetSpec`]), from the control loop. Out: a ServiceAccount, a Deployment of Envoy and a
//! Service of type LoadBalancer in the namespace of each Gateway, and a [`FleetStatus`] for each fleet. Only the replica that
//! holds the lease writes; every replica serves a fleet from its Gateway, whether its proxies exist yet or not.
//!
//! What the objects are is a pure function of the spec and the [`Settings`] ([`objects`]). The [`controller`] compares them with
//! what the API server has and applies what differs, one fleet at a time and many fleets at once: trouble of one fleet (a quota,
//! a missing right, an object of somebody else under the name) is retried and reported for that fleet alone.
//!
//! Reading order: [`spec`], [`name`], [`objects`], `drift` (does an object have what we apply), `request` (the requests of one
//! fleet), [`controller`]; and [`token`], by which proxies authenticate.

pub mod controller;
mod drift;
pub mod name;
pub mod objects;
mod problem;
mod request;
pub mod spec;
mod status_of;
pub mod token;

pub use controller::{Fleets, Provisioner, Statuses, channel};
pub use problem::Problem;
pub use spec::{FleetSpec, Owner, Pages, Port, Transport};
pub use status_of::FleetStatus;
pub use token::Tokens;

use std::path::PathBuf;

/// What holds for all fleets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The image of Envoy.
    pub envoy_image: String,
    /// The image of Sesame, for the bootstrap and the drain of proxies.
    pub sesame_image: String,
    /// Where proxies find the xDS server.
    pub xds: XdsAddress,
    /// The namespace that Sesame is installed in: objects of another installation are left alone.
    pub namespace: String,
    /// The namespaces in which fleets may be; none for all of them.
    pub namespaces: Vec<String>,
    /// The field manager of server-side apply.
    pub manager: String,
    /// How many proxies a fleet has.
    pub replicas: u32,
}

/// Where proxies find the xDS server, and how they know it.
#[derive(Clone, Debug)]
pub struct XdsAddress {
    /// A DNS name or an IP address that pods of any namespace reach.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The CA (PEM) of the server's certificate; none for development without TLS.
    pub ca: Option<PathBuf>,
}

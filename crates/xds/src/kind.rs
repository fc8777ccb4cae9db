//! The types of resources an Envoy asks for.
//!
//! The variants stand in the order in which additions are sent (see [`crate::session`]): what is pointed at comes
//! before what points at it, so iterating [`Kind::ALL`] is make-before-break, and backwards is the order of removals.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A type of xDS resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&str", try_from = "String")]
pub enum Kind {
    /// CDS: an upstream.
    Cluster,
    /// EDS: the endpoints of an upstream.
    Endpoints,
    /// SDS: a certificate with its key, or what certificates are checked with.
    Secret,
    /// RTDS: a layer of runtime values.
    Runtime,
    /// A token bucket that limits how much is logged. There is no discovery service of its own for it: it comes by ADS alone.
    TokenBucket,
    /// ECDS: the configuration of one filter.
    Extension,
    /// VHDS: one virtual host of a route configuration.
    VirtualHost,
    /// RDS: a route configuration.
    Route,
    /// SRDS: a route configuration under the key that selects it.
    ScopedRoute,
    /// LDS: a listener.
    Listener,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = 10;

    /// All kinds, in the order in which additions are sent.
    pub const ALL: [Kind; Kind::COUNT] = [
        Kind::Cluster,
        Kind::Endpoints,
        Kind::Secret,
        Kind::Runtime,
        Kind::TokenBucket,
        Kind::Extension,
        Kind::VirtualHost,
        Kind::Route,
        Kind::ScopedRoute,
        Kind::Listener,
    ];

    /// The URL that names this type on the wire.
    pub const fn type_url(self) -> &'static str {
        match self {
            Kind::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            Kind::Endpoints => "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
            Kind::Secret => "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
            Kind::Runtime => "type.googleapis.com/envoy.service.runtime.v3.Runtime",
            Kind::TokenBucket => "type.googleapis.com/envoy.type.v3.TokenBucket",
            Kind::Extension => "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
            Kind::VirtualHost => "type.googleapis.com/envoy.config.route.v3.VirtualHost",
            Kind::Route => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            Kind::ScopedRoute => "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
            Kind::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
        }
    }

    /// The kind that a type URL names.
    pub fn from_type_url(url: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.type_url() == url)
    }

    /// The short name of the discovery service, or of the type where it has none, as used in metrics, logs and on the command line.
    pub const fn label(self) -> &'static str {
        match self {
            Kind::Cluster => "cds",
            Kind::Endpoints => "eds",
            Kind::Secret => "sds",
            Kind::Runtime => "rtds",
            Kind::TokenBucket => "token_bucket",
            Kind::Extension => "ecds",
            Kind::VirtualHost => "vhds",
            Kind::Route => "rds",
            Kind::ScopedRoute => "srds",
            Kind::Listener => "lds",
        }
    }

    /// The kind with that short name.
    pub fn from_label(label: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.label() == label)
    }

    /// Whether a state-of-the-world response must list every resource of this kind: Envoy takes what is missing from
    /// one as removed. For the other kinds a response may hold only what changed.
    pub const fn is_full_state(self) -> bool {
        matches!(self, Kind::Cluster | Kind::ScopedRoute | Kind::Listener)
    }

    /// Whether a resource of this kind can point at one of the other kind, other than in rare ways (a cluster made of
    /// clusters) that are honoured where they are known.
    pub const fn may_refer(self, to: Kind) -> bool {
        match self {
            Kind::Cluster => matches!(to, Kind::Endpoints | Kind::Secret),
            Kind::Endpoints | Kind::Secret | Kind::Runtime | Kind::TokenBucket => false,
            Kind::Extension => matches!(to, Kind::Cluster | Kind::Secret),
            Kind::VirtualHost => matches!(to, Kind::Cluster),
            Kind::Route => matches!(to, Kind::Cluster | Kind::VirtualHost | Kind::Extension),
            Kind::ScopedRoute => matches!(to, Kind::Cluster | Kind::Route | Kind::Extension),
            Kind::Listener => !matches!(to, Kind::Listener | Kind::Runtime | Kind::Endpoints),
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl From<Kind> for &str {
    fn from(kind: Kind) -> Self {
        kind.label()
    }
}

impl TryFrom<String> for Kind {
    type Error = String;

    fn try_from(label: String) -> Result<Self, String> {
        Kind::from_label(&label).ok_or_else(|| format!("no type of resource: {label}"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

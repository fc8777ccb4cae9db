//! The kinds of resources, and the services that give them out.

/// A kind of xDS resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// CDS.
    Cluster,
    /// EDS.
    Endpoints,
    /// LDS.
    Listener,
    /// RDS.
    Route,
    /// SRDS.
    ScopedRoute,
    /// VHDS.
    VirtualHost,
    /// SDS.
    Secret,
    /// ECDS.
    Extension,
    /// RTDS.
    Runtime,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 9] = [
        Kind::Cluster,
        Kind::Endpoints,
        Kind::Listener,
        Kind::Route,
        Kind::ScopedRoute,
        Kind::VirtualHost,
        Kind::Secret,
        Kind::Extension,
        Kind::Runtime,
    ];

    /// The message, the service of this kind alone, and what its methods end with.
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Kind::Cluster => ("config.cluster.v3.Cluster", "cluster.v3.ClusterDiscoveryService", "Clusters"),
            Kind::Endpoints => {
                ("config.endpoint.v3.ClusterLoadAssignment", "endpoint.v3.EndpointDiscoveryService", "Endpoints")
            }
            Kind::Listener => ("config.listener.v3.Listener", "listener.v3.ListenerDiscoveryService", "Listeners"),
            Kind::Route => ("config.route.v3.RouteConfiguration", "route.v3.RouteDiscoveryService", "Routes"),
            Kind::ScopedRoute => {
                ("config.route.v3.ScopedRouteConfiguration", "route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes")
            }
            Kind::VirtualHost => {
                ("config.route.v3.VirtualHost", "route.v3.VirtualHostDiscoveryService", "VirtualHosts")
            }
            Kind::Secret => {
                ("extensions.transport_sockets.tls.v3.Secret", "secret.v3.SecretDiscoveryService", "Secrets")
            }
            Kind::Extension => (
                "config.core.v3.TypedExtensionConfig",
                "extension.v3.ExtensionConfigDiscoveryService",
                "ExtensionConfigs",
            ),
            Kind::Runtime => ("service.runtime.v3.Runtime", "runtime.v3.RuntimeDiscoveryService", "Runtime"),
        }
    }

    /// The URL that names it on the wire.
    pub fn type_url(self) -> String {
        format!("type.googleapis.com/envoy.{}", self.names().0)
    }

    /// The kind that a type URL names.
    pub fn from_type_url(url: &str) -> Option<Kind> {
        let message = url.strip_prefix("type.googleapis.com/envoy.")?;
        Kind::ALL.into_iter().find(|kind| kind.names().0 == message)
    }

    /// The gRPC method of its own service: `Stream`, `Delta` or `Fetch`.
    pub(super) fn method(self, verb: &str) -> String {
        let (_, service, what) = self.names();
        format!("/envoy.service.{service}/{verb}{what}")
    }

    /// Whether a state-of-the-world response lists all there is: what it does not list is gone.
    pub(super) fn is_full_state(self) -> bool {
        matches!(self, Kind::Cluster | Kind::Listener | Kind::ScopedRoute)
    }
}

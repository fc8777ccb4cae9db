//! What the operator sets, as an input of the engine: a row for each fleet, and one for each part that holds for all of them, so
//! that a change recomputes what reads it and nothing else ([`crate::Pipeline::set_settings`]).
//!
//! How resources are packed, how certificates come, whether Secrets are fetched and what is spoiled for tests is fixed while a
//! pipeline lives.

pub use dialect_emissary::Scripts;
pub use dialect_gateway::PortShift;
use dialect_httpproxy::authorization::OperatorServer;
pub use dialect_httpproxy::{GlobalRateLimits, route::rate_limit::global::default_policy};
use engine::{Engine, Input, Table};
use envoy::cluster::ClusterSettings;
pub use envoy::listener::{admin::MetricsTls, tls::Certificates};
pub use envoy::packing::Packing;
pub use envoy::runtime::RuntimeSettings;
use model::{
    FleetId, ListenerId, PortId, PortProtocol,
    listener::{ConnectionSettings, HttpSettings, RateLimitService, Tracing},
};
pub use resolve::ForeignProtection;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use crate::{authorization::GlobalAuthorization, extensions::ExtensionName, server_name::ByServerName};

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

impl Bind {
    /// Every address of the machine.
    pub fn any(port: u16) -> Self {
        Self { address: Ipv4Addr::UNSPECIFIED.into(), port }
    }

    /// The same, an IPv4 address that is written as one of IPv6 as what it is.
    #[must_use]
    pub fn canonical(self) -> Self {
        Self { address: self.address.to_canonical(), ..self }
    }

    /// Whether two sockets exclude each other. Proxies bind all addresses of one family.
    pub fn overlaps(self, other: Self) -> bool {
        let (one, other) = (self.canonical(), other.canonical());
        let is_same_family = one.address.is_ipv4() == other.address.is_ipv4();
        let is_any = one.address.is_unspecified() || other.address.is_unspecified();
        one.port == other.port && (one.address == other.address || is_any && is_same_family)
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.address, self.port).fmt(f)
    }
}

/// Why settings cannot be used: a listener of theirs would be without its port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Port 0.
    #[error("the port of {0} is 0, which is not a port to listen on")]
    Zero(&'static str),
    /// Two listeners that exclude each other.
    #[error("{one} and {other} both listen on port {port}")]
    Overlap {
        /// The one.
        one: &'static str,
        /// The other.
        other: &'static str,
        /// The port.
        port: u16,
    },
}

/// What the operator sets. The defaults are Contour's, but for the admin listener: a route that leads to a name of DNS reaches
/// whatever listens on loopback, if that is what the name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where proxies listen for HTTP.
    pub http: Bind,
    /// Where proxies listen for HTTPS.
    pub https: Bind,
    /// Where proxies answer probes, and scrapers unless they have a listener of their own.
    pub stats: Bind,
    /// Where proxies answer scrapers, if not where they answer probes.
    pub metrics: Option<Bind>,
    /// With which files they do so over TLS.
    pub metrics_tls: Option<Arc<MetricsTls>>,
    /// Where proxies answer probes unless the overload manager says otherwise.
    pub overload_health: Option<Bind>,
    /// The port on loopback at which proxies show their read-only admin pages; 0 for none.
    pub admin_port: u16,
    /// Runtime values of proxies.
    pub runtime: RuntimeSettings,
    /// What holds for connections of clients.
    pub connections: ConnectionSettings,
    /// What holds for requests of HTTP.
    pub http_settings: HttpSettings,
    /// What holds for requests of HTTPS.
    pub https_settings: HttpSettings,
    /// Which virtual hosts travel together. Requests are answered alike; only the cost of an edit differs.
    pub packing: Packing,
    /// How Envoy loads the certificates of TLS hosts. Unless each has a chain, the xDS server needs [`Settings::resolver`].
    pub certificates: Certificates,
    /// What holds for every cluster.
    pub cluster: ClusterSettings,
    /// What objects may refer to, and the namespace of Sesame.
    pub resolve: resolve::Settings,
    /// What holds for Ingresses; the id of this instance is taken from [`Settings::emissary`].
    pub ingress: dialect_ingress::Settings,
    /// What holds for HTTPProxies.
    pub http_proxy: dialect_httpproxy::Settings,
    /// What holds for Gateways; the ports of the shared fleet's listeners are taken from where it has them.
    pub gateway: dialect_gateway::Settings,
    /// What holds for objects of Emissary; the namespace of Sesame and the shared fleet's listeners are taken from where they stand.
    pub emissary: dialect_emissary::Settings,
    /// The rate limit service of the shared fleet, and the extension that it is.
    pub rate_limit_service: Option<(ExtensionName, RateLimitService)>,
    /// How requests are traced, and the extension that spans are sent to.
    pub tracing: Option<(ExtensionName, Arc<Tracing>)>,
    /// The authorization server that is asked about all routes that do not say otherwise.
    pub authorization: Option<GlobalAuthorization>,
    /// Whether Secrets are brought when something refers to them ([`crate::Pipeline::wants`]). One that is not there has then
    /// not been read yet, until [`crate::Pipeline::answer`] says otherwise; without this it does not exist.
    pub fetched_secrets: bool,
    /// Routes of exactly this path are made such that proxies refuse them; for tests only (see [`crate::spoil`]).
    pub spoil: Option<Box<str>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            http: Bind::any(8080),
            https: Bind::any(8443),
            stats: Bind::any(8002),
            metrics: None,
            metrics_tls: None,
            overload_health: None,
            admin_port: 0,
            runtime: RuntimeSettings::default(),
            connections: ConnectionSettings::default(),
            http_settings: HttpSettings::default(),
            https_settings: HttpSettings::default(),
            packing: Packing::default(),
            certificates: Certificates::default(),
            cluster: ClusterSettings::default(),
            resolve: resolve::Settings::default(),
            ingress: dialect_ingress::Settings::default(),
            http_proxy: dialect_httpproxy::Settings::default(),
            gateway: dialect_gateway::Settings::default(),
            emissary: dialect_emissary::Settings::default(),
            rate_limit_service: None,
            tracing: None,
            authorization: None,
            fetched_secrets: false,
            spoil: None,
        }
    }
}

impl Settings {
    /// Finds secrets for the xDS server that proxies ask for by other names than theirs.
    pub fn resolver(&self) -> Option<Arc<dyn xds::Resolver>> {
        match self.certificates {
            Certificates::PerChain => None,
            Certificates::Auto | Certificates::OnDemand => Some(Arc::new(ByServerName)),
        }
    }

    /// What an Envoy must be to load certificates as they are set to.
    pub fn required_envoy(&self) -> Option<xds::RequiredEnvoy> {
        let why = "on-demand certificates need it; upgrade the proxy or run Sesame with --certificates=per-chain";
        (self.certificates != Certificates::PerChain).then_some(xds::RequiredEnvoy { version: (1, 38), why })
    }

    /// What holds for Ingresses, with the id of this instance.
    fn ingresses(&self) -> dialect_ingress::Settings {
        dialect_ingress::Settings { ambassador_id: self.emissary.ambassador_id.clone(), ..self.ingress.clone() }
    }

    /// What holds for Gateways, with the ports of the shared fleet's listeners on the address of Gateways.
    fn gateway(&self) -> dialect_gateway::Settings {
        let of = |bind: Bind| Some(bind.port).filter(|_| bind.address == self.gateway.address);
        let own_ports = dialect_gateway::OwnPorts { http: of(self.http), https: of(self.https) };
        dialect_gateway::Settings { own_ports, ..self.gateway.clone() }
    }

    /// What holds for objects of Emissary, with the namespace of Sesame and the shared fleet's listeners on the address of its Listeners.
    fn emissary(&self) -> dialect_emissary::Settings {
        let of = |bind: Bind, http: &HttpSettings| {
            (bind.address == self.emissary.address).then(|| dialect_emissary::OwnListener {
                port: bind.port,
                http: http.clone(),
                buffer: self.connections.buffer,
            })
        };
        let own = dialect_emissary::OwnListeners {
            http: of(self.http, &self.http_settings),
            https: of(self.https, &self.https_settings),
        };
        dialect_emissary::Settings {
            namespace: self.resolve.namespace.clone(),
            own,
            runtime_keys: self.runtime.keys().collect(),
            upstream_tls: self.cluster.tls,
            ..self.emissary.clone()
        }
    }

    /// What holds for HTTPProxies, with what follows from the servers that the operator names.
    fn http_proxies(&self) -> dialect_httpproxy::Settings {
        let mut settings = self.http_proxy.clone();
        let operator = |GlobalAuthorization { extension, settings }: &GlobalAuthorization| OperatorServer {
            extension: (extension.namespace.clone(), extension.name.clone()),
            settings: settings.clone(),
        };
        settings.global_authorization = self.authorization.as_ref().map(operator);
        let authorization = self.authorization.iter().map(|global| &global.extension);
        let rate_limits = self.rate_limit_service.iter().map(|(extension, _)| extension);
        let tracing = self.tracing.iter().map(|(extension, _)| extension);
        let named = authorization.chain(rate_limits).chain(tracing);
        let named = named.map(|ExtensionName { namespace, name }| (namespace.clone(), name.clone()));
        settings.open_extensions.configured.extend(named);
        settings
    }

    /// Whether each listener can have its port.
    pub fn check_binds(&self) -> Result<(), BindError> {
        let listeners = [("the HTTP listener", self.http), ("the HTTPS listener", self.https)];
        let fleet = self.fleet();
        let pages = fleet.own_pages(&FleetId::Shared).map(|(_, page)| (page.title(), page.bind()));
        let binds: Vec<_> = listeners.into_iter().chain(pages).collect();
        for (at, (one, bind)) in binds.iter().enumerate() {
            if bind.port == 0 {
                return Err(BindError::Zero(one));
            }
            if let Some((other, _)) = binds[at + 1..].iter().find(|(_, other)| other.overlaps(*bind)) {
                return Err(BindError::Overlap { one, other, port: bind.port });
            }
        }
        Ok(())
    }

    /// What holds in the shared fleet.
    pub fn fleet(&self) -> FleetSettings {
        let runs_scripts = self.emissary.scripts == Scripts::Run;
        FleetSettings {
            http: Some(self.http),
            https: Some(self.https),
            stats: Some(self.stats),
            metrics: self.metrics,
            metrics_tls: self.metrics_tls.clone(),
            overload_health: self.overload_health,
            admin_port: self.admin_port,
            runtime: self.runtime.clone(),
            connections: self.connections.clone(),
            http_settings: HttpSettings { runs_scripts, ..self.http_settings.clone() },
            https_settings: HttpSettings { runs_scripts, ..self.https_settings.clone() },
            rate_limit_service: self.rate_limit_service.clone(),
            tracing: self.tracing.clone(),
        }
    }
}

/// What holds in one fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetSettings {
    /// Where proxies listen for plaintext HTTP, if not only where objects say so.
    pub http: Option<Bind>,
    /// Where proxies listen for HTTPS, if not only where objects say so.
    pub https: Option<Bind>,
    /// Where proxies answer probes, and scrapers unless they have a listener of their own.
    pub stats: Option<Bind>,
    /// Where proxies answer scrapers, if not where they answer probes.
    pub metrics: Option<Bind>,
    /// With which files they do so over TLS.
    pub metrics_tls: Option<Arc<MetricsTls>>,
    /// Where proxies answer probes unless the overload manager says otherwise.
    pub overload_health: Option<Bind>,
    /// The port on loopback at which proxies show their read-only admin pages; 0 for none.
    pub admin_port: u16,
    /// Runtime values of proxies.
    pub runtime: RuntimeSettings,
    /// What holds for connections of clients.
    pub connections: ConnectionSettings,
    /// What holds for plaintext requests.
    pub http_settings: HttpSettings,
    /// What holds for requests under TLS.
    pub https_settings: HttpSettings,
    /// The rate limit service that proxies ask, and the extension that it is.
    pub rate_limit_service: Option<(ExtensionName, RateLimitService)>,
    /// How requests are traced, and the extension that spans are sent to.
    pub tracing: Option<(ExtensionName, Arc<Tracing>)>,
}

/// A listener of Envoy's that shows pages of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnPage {
    /// Readiness and metrics.
    Stats(Bind),
    /// Metrics alone.
    Metrics(Bind, Option<Arc<MetricsTls>>),
    /// Readiness alone.
    Health(Bind),
    /// Readiness that obeys the overload manager.
    OverloadHealth(Bind),
    /// The read-only part of the admin interface.
    Admin(u16),
}

impl OwnPage {
    /// Where it listens.
    pub fn bind(&self) -> Bind {
        match self {
            OwnPage::Stats(bind)
            | OwnPage::Metrics(bind, _)
            | OwnPage::Health(bind)
            | OwnPage::OverloadHealth(bind) => *bind,
            OwnPage::Admin(port) => Bind { address: Ipv4Addr::LOCALHOST.into(), port: *port },
        }
    }

    /// What it is, for people.
    fn title(&self) -> &'static str {
        match self {
            OwnPage::Stats(_) => "the stats listener",
            OwnPage::Metrics(..) => "the metrics listener",
            OwnPage::Health(_) => "the health listener",
            OwnPage::OverloadHealth(_) => "the health listener of the overload manager",
            OwnPage::Admin(_) => "the admin listener",
        }
    }

    /// The name of its listener.
    fn name(&self) -> &'static str {
        match self {
            OwnPage::Stats(_) => "stats-health",
            OwnPage::Metrics(..) => "stats",
            OwnPage::Health(_) => "health",
            OwnPage::OverloadHealth(_) => "health-om-enforced",
            OwnPage::Admin(_) => "envoy-admin",
        }
    }
}

impl FleetSettings {
    /// The listeners that these settings ask for in a fleet.
    pub fn listeners(&self, fleet: &FleetId) -> impl Iterator<Item = (ListenerId, PortProtocol, Bind)> {
        let http = self.http.map(|bind| ("ingress_http", PortProtocol::Http, bind));
        let https = self.https.map(|bind| ("ingress_https", PortProtocol::Tls, bind));
        let all = http.into_iter().chain(https);
        all.map(move |(name, protocol, bind)| (ListenerId::new(fleet.clone(), name), protocol, bind))
    }

    /// The listeners of Envoy's own pages.
    pub fn own_pages(&self, fleet: &FleetId) -> impl Iterator<Item = (PortId, OwnPage)> {
        let metrics = self.metrics.filter(|metrics| self.stats != Some(*metrics));
        let stats = match metrics {
            Some(_) => self.stats.map(OwnPage::Health),
            None => self.stats.map(OwnPage::Stats),
        };
        let metrics = metrics.map(|bind| OwnPage::Metrics(bind, self.metrics_tls.clone()));
        let overload = self.overload_health.map(OwnPage::OverloadHealth);
        let admin = (self.admin_port != 0).then_some(OwnPage::Admin(self.admin_port));
        let all = [stats, metrics, overload, admin].into_iter().flatten();
        all.map(move |page| (PortId::new(fleet.clone(), page.name()), page))
    }
}

/// The settings of each fleet.
pub struct Fleets;

impl Table for Fleets {
    type Key = FleetId;
    type Value = FleetSettings;
    const NAME: &'static str = "fleets";
}

impl Input for Fleets {}

macro_rules! global {
    ($($table:ident $value:ty, $name:literal, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub struct $table;

            impl Table for $table {
                type Key = ();
                type Value = $value;
                const NAME: &'static str = $name;
            }

            impl Input for $table {}
        )*
    };
}

global! {
    ForClusters ClusterSettings, "cluster settings", "Settings of all clusters.";
    ForResolve resolve::Settings, "resolve settings", "What objects may refer to.";
    ForIngresses dialect_ingress::Settings, "ingress settings", "Settings of Ingresses.";
    ForHttpProxies dialect_httpproxy::Settings, "httpproxy settings", "Settings of HTTPProxies.";
    ForAuthorization Option<GlobalAuthorization>, "authorization settings", "Who is asked about all routes.";
    ForGateways dialect_gateway::Settings, "gateway settings", "Settings of Gateway API.";
    ForEmissary dialect_emissary::Settings, "emissary settings", "Settings of objects of Emissary.";
}

/// Declares the inputs.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.input::<Fleets>();
    pipeline.input::<ForClusters>();
    pipeline.input::<ForResolve>();
    pipeline.input::<ForIngresses>();
    pipeline.input::<ForHttpProxies>();
    pipeline.input::<ForGateways>();
    pipeline.input::<ForEmissary>();
    pipeline.input::<ForAuthorization>();
}

/// Writes the rows: what is as it was wakes nobody.
pub fn set(engine: &mut Engine, settings: &Settings) {
    engine.set::<Fleets>(&FleetId::Shared, settings.fleet());
    engine.set::<ForClusters>(&(), settings.cluster.clone());
    engine.set::<ForResolve>(&(), settings.resolve.clone());
    engine.set::<ForIngresses>(&(), settings.ingresses());
    engine.set::<ForHttpProxies>(&(), settings.http_proxies());
    engine.set::<ForGateways>(&(), settings.gateway());
    engine.set::<ForEmissary>(&(), settings.emissary());
    engine.set::<ForAuthorization>(&(), settings.authorization.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_of_settings_need_ports_of_their_own() {
        let settings = Settings::default();
        assert_eq!(settings.check_binds(), Ok(()));
        let stats = Settings { stats: Bind { address: Ipv4Addr::LOCALHOST.into(), port: 8080 }, ..settings.clone() };
        let text = stats.check_binds().map_err(|error| error.to_string());
        assert_eq!(text, Err("the HTTP listener and the stats listener both listen on port 8080".to_owned()));
        let zero = Settings { https: Bind::any(0), ..settings.clone() };
        assert_eq!(zero.check_binds(), Err(BindError::Zero("the HTTPS listener")));
        let admin = Settings { admin_port: 8443, ..settings.clone() };
        assert!(matches!(admin.check_binds(), Err(BindError::Overlap { port: 8443, .. })));
        let other = Bind { address: [127, 0, 0, 2].into(), port: 9001 };
        assert_eq!(Settings { stats: other, ..settings }.check_binds(), Ok(()), "other addresses of the same port");
    }
}

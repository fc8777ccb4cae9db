//! Envoy's own pages for others: readiness and metrics for the cluster, a read-only part of the admin interface for
//! whoever has a shell on the node.
//!
//! The admin interface itself listens on a Unix socket, because some of its pages change or stop the proxy. The read-only part is
//! there only if the operator asks for it: routes that lead to names of DNS can reach loopback.

use super::{filters, keepalive};
use crate::{endpoints::socket, name};
use envoy_api::{
    any,
    envoy::{
        config::{
            core::v3::{
                DataSource, TransportSocket, data_source::Specifier, transport_socket::ConfigType as TlsConfig,
            },
            listener::v3::{Filter, FilterChain, Listener, filter::ConfigType},
            route::v3::{
                HeaderMatcher, Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
                header_matcher::HeaderMatchSpecifier, route::Action, route_action::ClusterSpecifier,
                route_match::PathSpecifier,
            },
        },
        extensions::{
            filters::{
                http::router::v3::Router,
                network::http_connection_manager::v3::{
                    HttpConnectionManager,
                    http_connection_manager::{CodecType, RouteSpecifier},
                },
            },
            transport_sockets::tls::v3::{
                CertificateValidationContext, CommonTlsContext, DownstreamTlsContext, SdsSecretConfig, Secret,
                TlsCertificate, common_tls_context::ValidationContextType, secret,
            },
        },
        r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
    },
};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// What is shown to probes.
const READY: [&str; 1] = ["/ready"];
/// What is shown to scrapers.
const METRICS: [&str; 2] = ["/stats", "/stats/prometheus"];
/// What the read-only listener shows.
const READ_ONLY: [&str; 11] = [
    "/certs",
    "/clusters",
    "/config_dump",
    "/listeners",
    "/memory",
    "/ready",
    "/runtime",
    "/server_info",
    "/stats",
    "/stats/prometheus",
    "/stats/recentlookups",
];

/// The secret with the certificate of metrics. No host and no namespace has a `:`.
pub const METRICS_CERTIFICATE: &str = "sesame:metrics-tls-certificate";
/// The secret with the CA of clients that may read metrics.
pub const METRICS_CA: &str = "sesame:metrics-ca-certificate";

/// Files in the container of Envoy, for metrics over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsTls {
    /// The certificate chain.
    pub certificate: Arc<str>,
    /// Its private key.
    pub key: Arc<str>,
    /// The CA that certificates of clients must come from; clients need none where this is absent.
    pub ca: Option<Arc<str>>,
}

impl MetricsTls {
    /// The secrets, by their names: Envoy reads the files, again when they are replaced.
    pub fn secrets(&self) -> Vec<Secret> {
        let file = |path: &str| {
            let specifier = Some(Specifier::Filename(path.to_owned()));
            Some(DataSource { specifier, ..Default::default() })
        };
        let certificate = secret::Type::TlsCertificate(TlsCertificate {
            certificate_chain: file(&self.certificate),
            private_key: file(&self.key),
            ..Default::default()
        });
        let ca = self.ca.as_ref().map(|ca| {
            let context = CertificateValidationContext { trusted_ca: file(ca), ..Default::default() };
            (METRICS_CA, secret::Type::ValidationContext(context))
        });
        let all = [(METRICS_CERTIFICATE, certificate)].into_iter().chain(ca);
        all.map(|(name, of)| Secret { name: name.to_owned(), r#type: Some(of) }).collect()
    }

    fn transport_socket(&self) -> TransportSocket {
        let by_name = |name: &str| SdsSecretConfig { name: name.to_owned(), sds_config: Some(name::on_this_stream()) };
        let context = DownstreamTlsContext {
            common_tls_context: Some(CommonTlsContext {
                tls_certificate_sds_secret_configs: vec![by_name(METRICS_CERTIFICATE)],
                validation_context_type: self
                    .ca
                    .as_ref()
                    .map(|_| ValidationContextType::ValidationContextSdsSecretConfig(by_name(METRICS_CA))),
                alpn_protocols: vec!["h2".to_owned(), "http/1.1".to_owned()],
                ..Default::default()
            }),
            require_client_certificate: self.ca.as_ref().map(|_| true.into()),
            ..Default::default()
        };
        TransportSocket {
            name: "envoy.transport_sockets.tls".to_owned(),
            config_type: Some(TlsConfig::TypedConfig(any(&context))),
        }
    }
}

/// Readiness and metrics, on an address that probes and scrapers reach. It answers whatever the limits of connections and
/// memory say.
pub fn stats(address: IpAddr, port: u16) -> Listener {
    unlimited(pages("stats-health", address, port, [READY.as_slice(), &METRICS].concat()))
}

/// Metrics on a port of their own.
pub fn metrics(address: IpAddr, port: u16, tls: Option<&MetricsTls>) -> Listener {
    let mut listener = unlimited(pages("stats", address, port, METRICS.to_vec()));
    for chain in &mut listener.filter_chains {
        chain.transport_socket = tls.map(MetricsTls::transport_socket);
    }
    listener
}

/// Readiness, where metrics have another port.
pub fn health(address: IpAddr, port: u16) -> Listener {
    unlimited(pages("health", address, port, READY.to_vec()))
}

/// Readiness that obeys the overload manager: a proxy with too many connections does not answer.
pub fn overload_health(address: IpAddr, port: u16) -> Listener {
    pages("health-om-enforced", address, port, READY.to_vec())
}

fn unlimited(listener: Listener) -> Listener {
    Listener { ignore_global_conn_limit: true, bypass_overload_manager: true, ..listener }
}

/// The pages of the admin interface that change nothing, on loopback.
pub fn read_only(port: u16) -> Listener {
    pages("envoy-admin", Ipv4Addr::LOCALHOST.into(), port, READ_ONLY.to_vec())
}

fn pages(name: &str, address: IpAddr, port: u16, paths: Vec<&str>) -> Listener {
    let routes = RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: vec![VirtualHost {
            name: name.to_owned(),
            domains: vec!["*".to_owned()],
            routes: paths.into_iter().map(page).collect(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let manager = HttpConnectionManager {
        stat_prefix: name.to_owned(),
        codec_type: CodecType::Auto.into(),
        route_specifier: Some(RouteSpecifier::RouteConfig(routes)),
        http_filters: vec![filters::filter("envoy.filters.http.router", any(&Router::default()))],
        normalize_path: Some(true.into()),
        ..Default::default()
    };
    Listener {
        name: name.to_owned(),
        address: Some(socket(&address.to_string(), port)),
        socket_options: keepalive(),
        filter_chains: vec![FilterChain {
            filters: vec![Filter {
                name: "envoy.filters.network.http_connection_manager".to_owned(),
                config_type: Some(ConfigType::TypedConfig(any(&manager))),
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn page(path: &str) -> Route {
    let get = HeaderMatcher {
        name: ":method".to_owned(),
        header_match_specifier: Some(HeaderMatchSpecifier::StringMatch(StringMatcher {
            match_pattern: Some(MatchPattern::Exact("GET".to_owned())),
            ..Default::default()
        })),
        ..Default::default()
    };
    Route {
        r#match: Some(RouteMatch {
            path_specifier: Some(PathSpecifier::Path(path.to_owned())),
            headers: vec![get],
            ..Default::default()
        }),
        action: Some(Action::Route(RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster(name::ADMIN_CLUSTER.to_owned())),
            ..Default::default()
        })),
        ..Default::default()
    }
}

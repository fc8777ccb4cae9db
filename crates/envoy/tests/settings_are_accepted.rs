//! Whatever the operator may set, the real Envoy takes it: one value that it refuses would take every listener with it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

use envoy::bootstrap::{Bootstrap, DnsFamily, Node, Overload, Stats, XdsServer};
use envoy::cluster::{ClusterSettings, cluster};
use envoy::listener::access_log::format;
use envoy::listener::{self, sni};
use envoy::packing::Packing;
use envoy_api::envoy::config::listener::v3::Listener as EnvoyListener;
use envoy_api::{Message, json};
use model::cluster::{CircuitBreakers, ClusterOverrides, Discovery, DnsTarget, Protocol};
use model::listener::{AccessLog, AccessLogFormat, ConnectionSettings, HttpSettings, HttpVersions};
use model::tls::{Termination, TlsVersion, TlsVersions};
use model::{
    CertificateRef, ChainId, Cluster, ClusterId, EndpointsId, FleetId, Host, ListenerId, ObjectRef, Port, PortId,
    PortProtocol,
};

fn tls_listener(name: &str, port: u16, connections: ConnectionSettings, http: HttpSettings) -> Port {
    Port {
        id: PortId::new(FleetId::Shared, name),
        address: Ipv4Addr::LOCALHOST.into(),
        port,
        protocol: PortProtocol::Tls,
        connections,
        http,
        tracer: None,
    }
}

/// A listener with that chain, as a message.
fn encrypted(port: &Port) -> EnvoyListener {
    let certificate = CertificateRef::Secret(ObjectRef::new(kinds::kind::SECRET, "shop", "web"));
    let termination = Termination::new(certificate, TlsVersions::default());
    let listener = ListenerId::new(FleetId::Shared, port.id.name().clone());
    let chain = ChainId { listener, termination: Arc::new(termination), is_fallback: false };
    let names = sni::names(&envoy::name::chain(&chain), &[Host::parse("shop.example").unwrap()]);
    let chain = listener::chain(port, &chain, Packing::Plain);
    let bytes = listener::encrypted(port, [&chain].into_iter(), None, sni::matcher([&names].into_iter(), None));
    EnvoyListener::decode(bytes).unwrap()
}

fn dns_cluster(protocol: Protocol, port: u16) -> Cluster {
    let backend = EndpointsId::tcp("shop", "web", port);
    let discovery = Discovery::Dns(vec![DnsTarget { host: "web.example".into(), port }]);
    let overrides = ClusterOverrides { max_retries: Some(7), ..ClusterOverrides::default() };
    Cluster { protocol, overrides, ..Cluster::new(ClusterId::from(backend), discovery) }
}

#[test]
fn envoy_takes_every_setting() {
    let connections = ConnectionSettings {
        buffer: 4096,
        even_balance: true,
        accepted_at_once: Some(3),
        type_of_service: 64,
        traffic_class: 32,
        ciphers: ["ECDHE-RSA-CHACHA20-POLY1305", "AES128-SHA", "AES256-GCM-SHA384"].map(Into::into).to_vec(),
        curves: ["X25519", "P-256", "P-384", "P-521", "X25519MLKEM768"].map(Into::into).to_vec(),
        ja3: true,
        ja4: true,
    };
    let text = AccessLog { format: AccessLogFormat::Text(format::everything().into()), ..AccessLog::default() };
    let fields =
        format::everything().split_whitespace().zip(0..).map(|(form, n)| format!("f{n}={form}").into()).collect();
    let json_log = AccessLog { format: AccessLogFormat::Json(fields), ..AccessLog::default() };
    let http = HttpSettings { max_requests: Some(7), max_streams: 5, chunked_length: false, ..HttpSettings::default() };
    let listeners = [
        tls_listener("a", 18443, connections.clone(), HttpSettings { access_log: text, ..http.clone() }),
        tls_listener(
            "b",
            18444,
            connections,
            HttpSettings { access_log: json_log, versions: HttpVersions::Http1, ..http },
        ),
        tls_listener(
            "c",
            18445,
            ConnectionSettings::default(),
            HttpSettings { versions: HttpVersions::Http2, ..HttpSettings::default() },
        ),
    ];
    let one = Some(1);
    let settings = ClusterSettings {
        dns_family: DnsFamily::All,
        max_requests: Some(9),
        buffer: Some(8192),
        breakers: CircuitBreakers {
            max_connections: one,
            max_pending_requests: one,
            max_requests: one,
            max_retries: one,
            per_host_max_connections: one,
        },
        tls: TlsVersions { lowest: TlsVersion::V1_3, highest: TlsVersion::V1_3 },
        ciphers: vec!["AES256-SHA".into()],
        curves: vec!["P-384".into()],
        ..ClusterSettings::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let bootstrap = Bootstrap {
        node: Node { id: Some("envoy-1".to_owned()), cluster: Some("gateways".to_owned()), fleet: None },
        server: XdsServer { host: "127.0.0.1".to_owned(), port: 8001, dns_family: DnsFamily::Auto, namespace: None },
        tls: None,
        admin_socket: folder.path().join("admin.sock"),
        overload: Overload::default(),
        stats: Stats::Lean,
    };
    let mut bootstrap = bootstrap.render().bootstrap;
    let statics = bootstrap.static_resources.as_mut().unwrap();
    statics.listeners.extend(listeners.iter().map(encrypted));
    let protocols = [Protocol::Http1, Protocol::H2c, Protocol::Tls, Protocol::H2];
    statics.clusters.extend(protocols.iter().zip(80..).map(|(&it, port)| cluster(&dns_cluster(it, port), &settings)));
    let path = folder.path().join("bootstrap.json");
    fs::write(&path, json::to_json(&bootstrap).unwrap().to_string()).unwrap();
    let output = Command::new(parts::program("envoy").unwrap())
        .args(["--mode", "validate", "--log-level", "warning", "--config-path"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("Deprecated field"), "a user of Envoy is warned of what is ours: {said}");
    assert!(output.status.success(), "{said}");
}

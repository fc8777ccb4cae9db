//! Arbitrary clusters and endpoints.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use envoy::{bootstrap::DnsFamily, cluster::ClusterSettings};
use model::{
    Cluster, ClusterId, Endpoint, Endpoints, EndpointsId, ObjectRef, Transport,
    cluster::{
        Aggression, CaBundle, CircuitBreakers, ClusterOverrides, Discovery, DnsAddresses, DnsLookup, DnsTarget,
        HealthCheck, Keepalive, LONGEST_SERVER_NAME, LoadBalancing, Probe, Protocol, SlowStart, SubjectAltName,
        TrustedCa, Validation,
    },
    tls::{TlsParameters, TlsVersion, TlsVersions},
};

use super::{dice::Dice, routes::header_changes};

/// None of them answers, and none makes anybody wait: there is no way out of a sandbox.
pub const ADDRESSES: [IpAddr; 8] = [
    IpAddr::V4(Ipv4Addr::new(198, 18, 100, 1)),
    IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    IpAddr::V4(Ipv4Addr::BROADCAST),
    IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0102, 0x0304)),
];

/// A cluster of its own for each number.
pub fn cluster(dice: &mut Dice, number: usize) -> Cluster {
    let backend = EndpointsId {
        namespace: dice.object_name().into(),
        service: format!("{}-{number}", dice.object_name()).into(),
        port: dice.port(),
        transport: if dice.one_in(8) { Transport::Udp } else { Transport::Tcp },
    };
    let discovery = if dice.one_in(8) {
        let host = dice.pick(&["a.invalid", "198.18.100.1", "fd00::1"]);
        Discovery::Dns(dice.list(1, 2, |dice| DnsTarget { host: host.into(), port: dice.port() }))
    } else {
        Discovery::Endpoints
    };
    let plain = Cluster {
        protocol: protocol(dice),
        server_name: dice.maybe(server_name),
        breakers: breakers(dice),
        overrides: ClusterOverrides { idle: dice.timeout(), ..ClusterOverrides::default() },
        ..Cluster::new(ClusterId::from(backend.clone()), discovery)
    };
    let overrides = dice.maybe(overrides).unwrap_or_default();
    plain.varied(&ClusterId { overrides: overrides.shared(), ..backend.into() })
}

fn protocol(dice: &mut Dice) -> Protocol {
    dice.pick(&[Protocol::Http1, Protocol::H2c, Protocol::Tls, Protocol::H2])
}

pub fn server_name(dice: &mut Dice) -> Arc<str> {
    dice.until(|dice| Some(dice.header_value()).filter(|name| name.as_str().len() <= LONGEST_SERVER_NAME))
        .as_str()
        .into()
}

fn overrides(dice: &mut Dice) -> ClusterOverrides {
    ClusterOverrides {
        protocol: dice.maybe(protocol),
        server_name: dice.maybe(server_name),
        idle: dice.timeout(),
        balance: dice.pick(&[
            LoadBalancing::RoundRobin,
            LoadBalancing::Random,
            LoadBalancing::LeastRequest,
            LoadBalancing::RingHash,
            LoadBalancing::Maglev,
        ]),
        health: dice.maybe(health),
        health_port: dice.maybe(Dice::port),
        max_retries: dice.maybe(Dice::number),
        slow_start: dice.maybe(|dice| SlowStart {
            window: dice.span(),
            aggression: aggression(dice),
            least_percent: dice.between(0, 100),
        }),
        client_certificate: dice.maybe(|dice| {
            let (namespace, name) = (dice.object_name(), dice.object_name());
            ObjectRef::new(kinds::kind::SECRET, namespace, format!("{name}-client"))
        }),
        tls_versions: dice.maybe(tls_versions),
        tls_parameters: dice.maybe(tls_parameters).map(Arc::new),
        validation: dice.maybe(|dice| Validation {
            ca: ca(dice),
            names: dice.list(1, 8, |dice| match dice.one_in(3) {
                true => SubjectAltName::Uri(server_name(dice)),
                false => SubjectAltName::Dns(server_name(dice)),
            }),
        }),
        breakers: breakers(dice),
        high_breakers: CircuitBreakers { per_host_max_connections: None, ..breakers(dice) },
        connect_timeout: dice.maybe(Dice::span),
        max_connection: dice.maybe(Dice::span),
        keepalive: Keepalive {
            probes: dice.maybe(Dice::number),
            idle_seconds: dice.maybe(Dice::number),
            interval_seconds: dice.maybe(Dice::number),
        },
        dns: DnsLookup {
            logical: dice.one_in(2),
            respect_ttl: dice.one_in(2),
            addresses: dice.maybe(|dice| dice.pick(&[DnsAddresses::V4, DnsAddresses::V6, DnsAddresses::Auto])),
        },
        stats_name: dice.maybe(|dice| dice.object_name().replace(['-', '.'], "_").into()),
        tag: dice.maybe(|dice| dice.text().into()),
    }
}

fn ca(dice: &mut Dice) -> TrustedCa {
    let kind = dice.pick(&[kinds::kind::SECRET, kinds::kind::CONFIG_MAP]);
    match dice.one_in(4) {
        true => TrustedCa::System,
        false => {
            let objects = dice.list(1, 3, |dice| ObjectRef::new(kind, dice.object_name(), dice.object_name()));
            TrustedCa::Bundle(CaBundle::of(objects).expect("one object at least"))
        }
    }
}

fn aggression(dice: &mut Dice) -> Aggression {
    let text = dice.pick(&["1.0", "0.000000001", "99999999999999999999", "1", ".5"]);
    Aggression::parse(text).expect("a number above 0")
}

fn health(dice: &mut Dice) -> HealthCheck {
    HealthCheck {
        probe: match (dice.one_in(4), dice.one_in(4)) {
            (true, _) => Probe::Tcp,
            (false, true) => {
                let host = dice.one_in(2).then(|| dice.header_value());
                Probe::Grpc { service: dice.text().into(), host }
            }
            (false, false) => request(dice),
        },
        interval: dice.span().max(Duration::from_secs(1)),
        timeout: dice.span(),
        unhealthy: dice.between(1, u32::MAX),
        healthy: dice.between(1, u32::MAX),
    }
}

fn request(dice: &mut Dice) -> Probe {
    let statuses = dice.list(0, 3, |dice| {
        let start = dice.between(100, 599);
        (start as u16, dice.between(start + 1, 600) as u16)
    });
    Probe::Http { path: dice.path().into(), host: dice.header_value(), statuses, headers: header_changes(dice) }
}

/// All of one family, each once, as they are found in EndpointSlices.
pub fn endpoints(dice: &mut Dice) -> Endpoints {
    let v4 = dice.one_in(2);
    let of_family: Vec<IpAddr> = ADDRESSES.into_iter().filter(|address| address.is_ipv4() == v4).collect();
    let mut list = dice.list(0, 5, |dice| Endpoint {
        address: dice.pick(&of_family),
        port: dice.port(),
        zone: if dice.one_in(2) { "".into() } else { dice.text().into() },
        weight: dice.between(1, 128),
        health_port: dice.maybe(Dice::port),
    });
    list.sort();
    list.dedup_by(|a, b| a.address == b.address && a.port == b.port);
    Endpoints { list }
}

fn tls_versions(dice: &mut Dice) -> TlsVersions {
    let (lowest, highest) = dice.pick(&[
        (TlsVersion::V1_2, TlsVersion::V1_2),
        (TlsVersion::V1_2, TlsVersion::V1_3),
        (TlsVersion::V1_3, TlsVersion::V1_3),
    ]);
    TlsVersions { lowest, highest }
}

/// Ciphers and curves, without application protocols: those of a cluster follow from its protocol.
pub fn tls_parameters(dice: &mut Dice) -> TlsParameters {
    let words = |words: &[&str]| words.iter().map(|&word| Arc::from(word)).collect();
    TlsParameters {
        ciphers: if dice.one_in(4) { Vec::new() } else { words(&["ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"]) },
        curves: if dice.one_in(4) { Vec::new() } else { words(&["P-256", "X25519"]) },
        alpn: Vec::new(),
    }
}

pub fn settings(dice: &mut Dice) -> ClusterSettings {
    ClusterSettings {
        connect_timeout: if dice.one_in(4) { Duration::ZERO } else { dice.span() },
        dns_family: dice.pick(&[DnsFamily::Auto, DnsFamily::V4, DnsFamily::V6, DnsFamily::All]),
        max_requests: dice.maybe(Dice::number),
        buffer: dice.maybe(Dice::number),
        breakers: breakers(dice),
        tls: tls_versions(dice),
        ciphers: if dice.one_in(2) { Vec::new() } else { vec!["ECDHE-RSA-AES128-GCM-SHA256".into()] },
        curves: if dice.one_in(2) { Vec::new() } else { vec!["X25519".into()] },
        system_cas: envoy::cluster::SYSTEM_CAS.into(),
    }
}

fn breakers(dice: &mut Dice) -> CircuitBreakers {
    CircuitBreakers {
        max_connections: dice.maybe(Dice::number),
        max_pending_requests: dice.maybe(Dice::number),
        max_requests: dice.maybe(Dice::number),
        max_retries: dice.maybe(Dice::number),
        per_host_max_connections: dice.maybe(Dice::number),
    }
}

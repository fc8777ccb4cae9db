//! Arbitrary listeners: everything that holds for a connection and for all of its requests.

use envoy::listener::access_log::{DEFAULT_FIELDS, operator};
use model::{
    ClusterId, Host, Listener, ListenerId, SecretId,
    listener::{AccessLog, AccessLogFormat, AccessLogLevel, Compression, HttpSettings, Security, ServerHeader},
    tls::{Chain, TcpChain, TcpProxy, Termination, TlsVersion},
};

use super::{clusters::ADDRESSES, dice::Dice, routes::clients};

/// A listener on a port of its own.
pub fn listener(dice: &mut Dice, security: Security, port: u16) -> Listener {
    let address = dice.until(|dice| Some(dice.pick(&ADDRESSES)).filter(|address| is_here(*address)));
    Listener {
        id: ListenerId(format!("{}-{port}", dice.object_name()).into()),
        address,
        port,
        security,
        http: settings(dice),
    }
}

/// Whether a sandbox can listen there.
fn is_here(address: std::net::IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || address.to_string().starts_with("198.18.")
}

fn settings(dice: &mut Dice) -> HttpSettings {
    HttpSettings {
        access_log: AccessLog {
            path: dice.pick(&["/dev/stdout", "/dev/stderr", "/dev/null"]).into(),
            format: format(dice),
            level: dice.pick(&[
                AccessLogLevel::Info,
                AccessLogLevel::Error,
                AccessLogLevel::Critical,
                AccessLogLevel::Disabled,
            ]),
        },
        compression: dice.pick(&[Compression::Gzip, Compression::Brotli, Compression::Zstd, Compression::Off]),
        server_header: dice.pick(&[ServerHeader::Overwrite, ServerHeader::AppendIfAbsent, ServerHeader::PassThrough]),
        proxy_protocol: dice.one_in(2),
        trusted_hops: dice.number(),
        connection_idle: dice.timeout(),
        stream_idle: dice.timeout(),
        request: dice.timeout(),
        request_headers: dice.timeout(),
        max_connection: dice.timeout(),
        delayed_close: dice.timeout(),
        drain: dice.timeout(),
        merge_slashes: dice.one_in(2),
        http2: dice.one_in(2),
    }
}

fn format(dice: &mut Dice) -> AccessLogFormat {
    match dice.below(3) {
        0 => AccessLogFormat::Envoy,
        1 => AccessLogFormat::Json(Vec::new()),
        _ => AccessLogFormat::Json(dice.list(1, 6, |dice| field(dice).into())),
    }
}

/// Any text: what is no field that Envoy can write is left out.
fn field(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => dice.pick(&DEFAULT_FIELDS).to_owned(),
        1 => dice.text(),
        2 => format!("{}=%{}%", dice.text(), dice.pick(&operator::PLAIN)),
        _ => format!("{}={}", dice.text(), dice.list(0, 3, |dice| dice.pick(&OPERATORS)).concat()),
    }
}

/// Operators in all their forms, and what only looks like one.
const OPERATORS: [&str; 25] = [
    "%REQ(:AUTHORITY)%",
    "%REQ(X-A?:PATH):12%",
    "%RESP(x):0%",
    "%TRAILER(grpc-status)%",
    "%START_TIME%",
    "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "%START_TIME(%s.%6f %Q %E)%",
    "%DYNAMIC_METADATA(a.b:c)%",
    "%FILTER_STATE(a:PLAIN)%",
    "%FILTER_STATE(a:x:y)%",
    "%FILTER_STATE(a:FIELD:x)%",
    "%GRPC_STATUS(SNAKE_STRING)%",
    "%METADATA(ROUTE:projectsesame.io:kind)%",
    "%METADATA(CLUSTER:a):3%",
    "%UPSTREAM_METADATA(a)%",
    "%UPSTREAM_METADATA(a:b)%",
    "%RESPONSE_CODE%:9",
    "%DURATION:3%",
    "%NOT_THERE%",
    "%",
    "%%",
    "%REQ()%",
    "text",
    "é\n",
    "%RESP(:status)%",
];

/// How connections are decrypted, with a certificate of its own.
pub fn termination(dice: &mut Dice, certificate: &str) -> Termination {
    let (lowest, highest) = dice.pick(&[
        (TlsVersion::V1_2, TlsVersion::V1_2),
        (TlsVersion::V1_2, TlsVersion::V1_3),
        (TlsVersion::V1_3, TlsVersion::V1_3),
    ]);
    let certificate = SecretId::new(&dice.object_name(), &format!("{}-{certificate}", dice.object_name()));
    Termination { certificate, lowest, highest }
}

/// Chains that differ in their certificates, each with hosts of its own.
pub fn chains(dice: &mut Dice, port: u16, hosts: Vec<Vec<Host>>) -> Vec<Chain> {
    let chains = hosts.into_iter().enumerate().map(|(number, mut hosts)| {
        hosts.sort();
        Chain { termination: termination(dice, &format!("{port}-{number}")), hosts }
    });
    chains.collect()
}

/// Connections of a host that are passed on, and where they go.
pub fn tcp(dice: &mut Dice, host: Host, port: u16, clusters: &[ClusterId]) -> (TcpChain, TcpProxy) {
    let proxy = TcpProxy {
        termination: dice.maybe(|dice| termination(dice, &format!("{port}-tcp"))),
        clients: dice.maybe(clients),
        clusters: dice.list(0, 3, |dice| (dice.pick(clusters), dice.from_to(1, u32::MAX / 4))),
    };
    (TcpChain { host, termination: proxy.termination.clone(), clients: proxy.clients.clone() }, proxy)
}

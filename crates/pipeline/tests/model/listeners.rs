//! Arbitrary listeners: everything that holds for a connection and for all of its requests.

use envoy::listener::access_log::{DEFAULT_FIELDS, format};
use model::{
    CertificateRef, ClusterId, FleetId, Host, ObjectRef, Port, PortId, PortProtocol, Timeout,
    cluster::{CaBundle, Extension},
    listener::{
        AccessLog, AccessLogFormat, AccessLogLevel, ClientCertHeader, Compression, ConnectionSettings, GrpcMethods,
        GrpcStats, Gzip, HeadersWithUnderscores, HttpSettings, HttpVersions, LocalReplyBody, Percent, ServerHeader,
        SpanTag, StreamTarget, TagValue, Tracer, Tracing,
        settings::{GzipLevel, GzipStrategy},
    },
    tls::{
        ClientValidation, TcpChain, TcpProxy, Termination, TlsParameters, TlsVersion,
        client_validation::{ClientTrust, ForwardedDetails, RevocationCheck},
    },
};
use std::{num::NonZeroU32, sync::Arc, time::Duration};

use super::{
    clusters::{ADDRESSES, server_name, tls_parameters},
    dice::Dice,
    routes::ip_filter,
};

/// A port with arbitrary settings.
pub fn port(dice: &mut Dice, protocol: PortProtocol, port: u16) -> Port {
    let address = dice.until(|dice| Some(dice.pick(&ADDRESSES)).filter(|address| is_here(*address)));
    Port {
        id: PortId::new(fleet(dice), format!("{}-{port}", dice.object_name())),
        address,
        port,
        protocol,
        http: settings(dice),
        tracer: dice.maybe(tracer),
        connections: connections(dice),
    }
}

/// The shared fleet, or one of a name that objects may have. Names of resources do not have it in them, so ports of many fleets may be
/// loaded together.
fn fleet(dice: &mut Dice) -> FleetId {
    if dice.one_in(2) { FleetId::Shared } else { FleetId::named(&dice.object_name(), &dice.object_name()) }
}

/// Whether a sandbox can listen there.
fn is_here(address: std::net::IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || address.to_string().starts_with("198.18.")
}

fn settings(dice: &mut Dice) -> HttpSettings {
    HttpSettings {
        access_log: AccessLog {
            path: dice.pick(&["/dev/stdout", "/dev/stderr", "/dev/null"]).into(),
            format: log_format(dice),
            level: dice.pick(&[
                AccessLogLevel::Info,
                AccessLogLevel::Error,
                AccessLogLevel::Critical,
                AccessLogLevel::Disabled,
            ]),
            servers: Arc::default(),
            handshakes_per_second: dice.maybe(|dice| NonZeroU32::MIN.saturating_add(dice.number())),
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
        chunked_length: dice.one_in(2),
        underscores: dice.pick(&[
            HeadersWithUnderscores::Allow,
            HeadersWithUnderscores::Reject,
            HeadersWithUnderscores::Drop,
        ]),
        local_reply_body: dice.pick(&[LocalReplyBody::Code, LocalReplyBody::Empty]),
        versions: dice.pick(&[HttpVersions::Both, HttpVersions::Http1, HttpVersions::Http2]),
        max_requests: dice.maybe(Dice::number),
        max_streams: dice.between(1, i32::MAX as u32),
        gzip: dice.maybe(|dice| Arc::new(gzip(dice))),
        server_name: dice.maybe(|dice| dice.pick(&["edge", "a b", "100%"]).into()),
        request_buffer: dice.maybe(|dice| dice.between(1, u32::MAX)),
        header_kilobytes: dice.maybe(|dice| dice.between(1, 8192)),
        reject_escaped_slashes: dice.one_in(2),
        strip_matching_port: dice.one_in(2),
        keep_request_id: dice.one_in(2),
        suppress_envoy_headers: dice.one_in(2),
        http10: dice.one_in(2),
        title_case: dice.one_in(2),
        grpc_web: dice.one_in(2),
        grpc_http1_bridge: dice.one_in(2),
        grpc_stats: Arc::new(grpc_stats(dice)),
        stats_prefix: dice.maybe(|dice| dice.pick(&["edge", "a_b"]).into()),
        runs_scripts: dice.one_in(2),
        believes_peers: dice.one_in(2),
        client_cert_header: dice.maybe(|dice| {
            dice.pick(&[
                ClientCertHeader::ForwardOnly,
                ClientCertHeader::AppendForward(ForwardedDetails { chain: true, ..ForwardedDetails::default() }),
                ClientCertHeader::AlwaysForwardOnly,
            ])
        }),
    }
}

fn grpc_stats(dice: &mut Dice) -> GrpcStats {
    let listed = GrpcMethods::Listed(vec![("a.B".into(), vec!["C".into(), "D".into()])]);
    GrpcStats { methods: dice.pick(&[GrpcMethods::Together, GrpcMethods::Each, listed]), upstream: dice.one_in(2) }
}

fn gzip(dice: &mut Dice) -> Gzip {
    Gzip {
        memory_level: dice.maybe(|dice| dice.between(1, 9)),
        level: dice.pick(&[GzipLevel::Usual, GzipLevel::Best, GzipLevel::Speed]),
        strategy: dice.pick(&[GzipStrategy::Usual, GzipStrategy::Filtered, GzipStrategy::Huffman, GzipStrategy::Rle]),
        window_bits: dice.maybe(|dice| dice.between(9, 15)),
        min_length: dice.maybe(|dice| dice.between(30, 1 << 20)),
        content_types: dice.list(0, 2, |dice| dice.pick(&["text/html", "a/b"]).into()),
        skips_etag: dice.one_in(2),
        hides_accept_encoding: dice.one_in(2),
    }
}

/// A tracer whose collector nobody has.
fn tracer(dice: &mut Dice) -> Tracer {
    let percent = |dice: &mut Dice| {
        let text = format!("{}.{:02}", dice.below(100), dice.below(100));
        Percent::parse(dice.pick(&["0", "100", "0.01", &text])).unwrap()
    };
    let tag = |dice: &mut Dice| SpanTag {
        name: dice.name().into(),
        value: match dice.below(3) {
            0 => TagValue::Literal(dice.until(|dice| Some(dice.text()).filter(|text| !text.is_empty())).into()),
            1 => TagValue::RequestHeader(dice.header_name()),
            _ => TagValue::Environment(dice.name().into()),
        },
        default: dice.maybe(|dice| dice.text().into()),
    };
    let tracing = Tracing {
        service_name: dice.text().into(),
        overall: percent(dice).whole(),
        client: percent(dice).whole(),
        random: percent(dice),
        max_path: dice.number(),
        tags: dice.list(0, 4, tag),
    };
    let object = ObjectRef::new(kinds::kind::CONTOUR_EXTENSION_SERVICE, "tracing", dice.object_name().as_str());
    let named = dice.maybe(server_name);
    Tracer {
        tracing: Arc::new(tracing),
        collector: Extension::of(object, named, dice.timeout()),
        exporter: model::listener::Exporter::Otlp,
    }
}

fn connections(dice: &mut Dice) -> ConnectionSettings {
    let usual = ConnectionSettings::default();
    ConnectionSettings {
        buffer: dice.number(),
        even_balance: dice.one_in(2),
        accepted_at_once: dice.maybe(|dice| dice.between(1, u32::MAX)),
        type_of_service: dice.number() as u8,
        traffic_class: dice.number() as u8,
        ciphers: if dice.one_in(2) { usual.ciphers } else { Vec::new() },
        curves: if dice.one_in(2) { usual.curves } else { vec!["X25519".into(), "P-256".into()] },
        ja3: dice.one_in(2),
        ja4: dice.one_in(2),
    }
}

fn log_format(dice: &mut Dice) -> AccessLogFormat {
    match dice.below(4) {
        0 => AccessLogFormat::Envoy,
        1 => AccessLogFormat::Text(line(dice).into()),
        2 => AccessLogFormat::Json(Vec::new()),
        _ => AccessLogFormat::Json(dice.list(1, 6, |dice| field(dice).into())),
    }
}

/// A line that is taken.
fn line(dice: &mut Dice) -> String {
    let text = |dice: &mut Dice| match dice.below(4) {
        0 => format::everything(),
        1 => dice.text(),
        _ => dice.list(0, 3, |dice| dice.pick(&OPERATORS)).concat(),
    };
    dice.parsed(text, |text| format::check(text).map(|()| text.to_owned()))
}

fn field(dice: &mut Dice) -> String {
    match dice.below(3) {
        0 => dice.pick(&DEFAULT_FIELDS).to_owned(),
        _ => format!("{}={}", dice.name(), line(dice)),
    }
}

/// Operators in all their forms, and what only looks like one.
const OPERATORS: [&str; 20] = [
    "%REQ(:AUTHORITY)%",
    "%REQ(X-A?:PATH):12%",
    "%RESP(x):0%",
    "%RESP(:status)%",
    "%TRAILER(grpc-status)%",
    "%START_TIME%",
    "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "%START_TIME(%s.%6f %Q %E)%",
    "%DYNAMIC_METADATA(a.b:c)%",
    "%FILTER_STATE(a:x)%",
    "%GRPC_STATUS(SNAKE_STRING)%",
    "%RESPONSE_CODE%:9",
    "%DURATION:3%",
    "%NOT_THERE%",
    "%",
    "%%",
    "%REQ()%",
    "text",
    "é\n",
    "%HOSTNAME%",
];

/// How connections are decrypted, with a certificate of its own.
pub fn termination(dice: &mut Dice, certificate: &str) -> Termination {
    let (lowest, highest) = dice.pick(&[
        (TlsVersion::V1_0, TlsVersion::V1_2),
        (TlsVersion::V1_1, TlsVersion::V1_3),
        (TlsVersion::V1_2, TlsVersion::V1_2),
        (TlsVersion::V1_2, TlsVersion::V1_3),
        (TlsVersion::V1_3, TlsVersion::V1_3),
    ]);
    let mut secret = || {
        let name = format!("{}-{certificate}", dice.object_name());
        CertificateRef::Secret(ObjectRef::new(kinds::kind::SECRET, dice.object_name(), name))
    };
    let (first, second) = (secret(), secret());
    let additional = if dice.one_in(4) { Arc::from([second]) } else { Arc::default() };
    let clients = dice.maybe(client_validation).map(Arc::new);
    let parameters = dice.one_in(4).then(|| {
        let alpn = ["h2", "http/1.1", "other"].map(Arc::from).to_vec();
        Arc::new(TlsParameters { alpn, ..tls_parameters(dice) })
    });
    Termination { certificate: first, additional, lowest, highest, clients, parameters }
}

/// Which client certificates are accepted.
fn client_validation(dice: &mut Dice) -> ClientValidation {
    let mut secret =
        |name: &str| ObjectRef::new(kinds::kind::SECRET, dice.object_name(), format!("{}-{name}", dice.object_name()));
    let (ca, more, crls) = (secret("ca"), secret("more"), secret("crl"));
    let cas = if dice.one_in(4) { vec![ca, more] } else { vec![ca] };
    let ca = CaBundle::of(cas).expect("there is one");
    let trust = if dice.one_in(4) {
        ClientTrust::Unverified { ca: dice.maybe(|_| ca.clone()) }
    } else {
        let crl = dice.maybe(|dice| RevocationCheck { crls: crls.clone(), leaf_only: dice.one_in(2) });
        ClientTrust::Signed { ca, crl }
    };
    let forward = dice.maybe(|dice| ForwardedDetails {
        subject: dice.one_in(2),
        certificate: dice.one_in(2),
        chain: dice.one_in(2),
        dns: dice.one_in(2),
        uri: dice.one_in(2),
    });
    ClientValidation { trust, is_required: dice.one_in(2), forward }
}

fn idle(dice: &mut Dice) -> Timeout {
    match dice.below(3) {
        0 => Timeout::Default,
        1 => Timeout::Infinite,
        _ => Timeout::After(Duration::from_millis(dice.between(1, u32::MAX).into())),
    }
}

/// Where a plain TCP listener leads.
pub fn stream(dice: &mut Dice, clusters: &[ClusterId]) -> StreamTarget {
    StreamTarget {
        ip_filter: dice.maybe(ip_filter),
        clusters: dice.list(0, 3, |dice| (dice.pick(clusters), dice.between(1, u32::MAX / 4))),
        unavailable: dice.maybe(|dice| dice.between(0, u32::MAX / 4)).unwrap_or_default(),
        idle: idle(dice),
    }
}

/// Connections of a host that are passed on, and where they go.
pub fn tcp(dice: &mut Dice, host: Host, port: u16, clusters: &[ClusterId]) -> (TcpChain, TcpProxy) {
    let proxy = TcpProxy {
        termination: dice.maybe(|dice| termination(dice, &format!("{port}-tcp"))),
        ip_filter: dice.maybe(ip_filter),
        clusters: dice.list(0, 3, |dice| (dice.pick(clusters), dice.between(1, u32::MAX / 4))),
        unavailable: dice.maybe(|dice| dice.between(0, u32::MAX / 4)).unwrap_or_default(),
        idle: idle(dice),
    };
    (TcpChain { host, termination: proxy.termination.clone(), ip_filter: proxy.ip_filter.clone() }, proxy)
}

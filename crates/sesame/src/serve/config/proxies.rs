//! Keys about proxies: access logs, TLS, time limits, listeners, clusters.

use super::row::{Row, rows};
use super::tls::{ciphers, curve, version};
use super::value::{
    BOOLEAN, TIMEOUT, Wrong, boolean, duration, limit, limit_or_none, list, map, name, text, timeout, whole, word,
};
use envoy::bootstrap::DnsFamily;
use envoy::listener::access_log::{format, operator};
use kinds::{Node, Value};
use model::listener::{
    AccessLogLevel, Compression, HeadersWithUnderscores, HttpVersions, LocalReplyBody, ServerHeader,
};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

const LEVELS: &[(&str, AccessLogLevel)] = &[
    ("info", AccessLogLevel::Info),
    ("error", AccessLogLevel::Error),
    ("critical", AccessLogLevel::Critical),
    ("disabled", AccessLogLevel::Disabled),
];

const ALGORITHMS: &[(&str, Compression)] = &[
    ("gzip", Compression::Gzip),
    ("brotli", Compression::Brotli),
    ("zstd", Compression::Zstd),
    ("disabled", Compression::Off),
];

const SERVER_HEADERS: &[(&str, ServerHeader)] = &[
    ("overwrite", ServerHeader::Overwrite),
    ("append_if_absent", ServerHeader::AppendIfAbsent),
    ("pass_through", ServerHeader::PassThrough),
];

const UNDERSCORES: &[(&str, HeadersWithUnderscores)] = &[
    ("allow", HeadersWithUnderscores::Allow),
    ("reject", HeadersWithUnderscores::Reject),
    ("drop", HeadersWithUnderscores::Drop),
];

const FAMILIES: &[(&str, DnsFamily)] =
    &[("auto", DnsFamily::Auto), ("v4", DnsFamily::V4), ("v6", DnsFamily::V6), ("all", DnsFamily::All)];

const VERSIONS: &str = "`1.2` or `1.3`";
const NUMBER: &str = "a number from 1";
const CIPHERS: &str = "a list of cipher suites by their OpenSSL names";
const CURVES: &str = "a list of `X25519`, `P-256`, `P-384`, `P-521`, `X25519MLKEM768`";

/// What is written down about requests.
pub const ACCESS_LOG: &[Row] = rows! {
    works("accesslog-format" = "envoy.logging.accessLogFormat", "`envoy` or `json`", "envoy", "access log format", |c, n| c.json_log = word(n, &[("envoy", false), ("json", true)])?);
    works("accesslog-format-string" = "envoy.logging.accessLogFormatString", "text with Envoy's operators", "", "format string of text access logs; if not set Envoy's default, followed by response code details, reason, route, listener and fleet", |c, n| c.log_line = line(n)?);
    works("json-fields" = "envoy.logging.accessLogJSONFields", "a list of names, or of `name=FORMAT`", "[]", "fields of JSON access logs; the default fields if empty", |c, n| c.json_fields = list(n, field)?);
    works("accesslog-level" = "envoy.logging.accessLogLevel", "`info`, `error`, `critical` or `disabled`", "info", "which requests are logged: all, responses of 300 and above, of 500 and above, none", |c, n| { let level = word(n, LEVELS)?; c.each(|http| http.access_log.level = level) });
    works("accesslog-failed-handshakes-per-second" = "envoy.logging.accessLogFailedHandshakesPerSecond", "a number; 0 for all of them", "10", "how many connections that end without a TLS handshake each proxy logs in a second; Sesame only", |c, n| { let most = limit_or_none(n)?; c.each(|http| http.access_log.handshakes_per_second = most.and_then(NonZeroU32::new)) });
};

/// TLS.
pub const TLS: &[Row] = rows! {
    works("tls.minimum-protocol-version" = "envoy.listener.tls.minimumProtocolVersion", VERSIONS, "1.2", "minimum TLS version of downstream connections", |c, n| { let lowest = version(n)?; c.versions(|own| own.lowest = lowest) });
    works("tls.maximum-protocol-version" = "envoy.listener.tls.maximumProtocolVersion", VERSIONS, "1.3", "maximum TLS version of downstream connections", |c, n| { let highest = version(n)?; c.versions(|own| own.highest = highest) });
    works("tls.cipher-suites" = "envoy.listener.tls.cipherSuites", CIPHERS, "", "cipher suites of downstream TLS 1.2 connections; Contour's list if not set", |c, n| c.pipeline.connections.ciphers = ciphers(n, &model::listener::CIPHERS)?);
    works("tls.ecdh-curves" = "envoy.listener.tls.ecdhCurves", CURVES, "[]", "ECDH curves of downstream connections; Envoy's default if empty", |c, n| c.pipeline.connections.curves = list(n, curve)?);
    works("tls.fingerprint.ja3" = "envoy.listener.tls.fingerprint.ja3", BOOLEAN, "false", "compute JA3 fingerprints of clients", |c, n| c.pipeline.connections.ja3 = boolean(n)?);
    works("tls.fingerprint.ja4" = "envoy.listener.tls.fingerprint.ja4", BOOLEAN, "false", "compute JA4 fingerprints of clients", |c, n| c.pipeline.connections.ja4 = boolean(n)?);
    works("tls.fallback-certificate.namespace" = "httpproxy.fallbackCertificate.namespace", "a name", "", "namespace of the fallback certificate's Secret, for clients without SNI", |c, n| c.fallback.0 = Some(name(n)?));
    works("tls.fallback-certificate.name" = "httpproxy.fallbackCertificate.name", "a name", "", "name of that Secret", |c, n| c.fallback.1 = Some(name(n)?));
    works("tls.envoy-client-certificate.namespace" = "envoy.clientCertificate.namespace", "a name", "", "namespace of the Secret of Envoy's client certificate for upstream TLS connections of HTTPProxies, Ingresses and ExtensionServices; without it, TLS backends are not used", |c, n| c.client_certificate.0 = Some(name(n)?));
    works("tls.envoy-client-certificate.name" = "envoy.clientCertificate.name", "a name", "", "name of that Secret", |c, n| c.client_certificate.1 = Some(name(n)?));
};

/// Time limits.
pub const TIMEOUTS: &[Row] = rows! {
    works("timeouts.request-timeout" = "envoy.timeouts.requestTimeout", TIMEOUT, "0s", "timeout for receiving the whole request; zero disables it", |c, n| { let span = timeout(n)?; c.each(|http| http.request = span) });
    works("timeouts.connection-idle-timeout" = "envoy.timeouts.connectionIdleTimeout", TIMEOUT, "60s", "idle timeout of downstream connections", |c, n| { let span = timeout(n)?; c.each(|http| http.connection_idle = span) });
    works("timeouts.stream-idle-timeout" = "envoy.timeouts.streamIdleTimeout", TIMEOUT, "0s", "idle timeout of streams; zero is Envoy's default of 5m", |c, n| { let span = timeout(n)?; c.each(|http| http.stream_idle = span) });
    works("timeouts.max-connection-duration" = "envoy.timeouts.maxConnectionDuration", TIMEOUT, "0s", "maximum duration of downstream connections; zero disables it", |c, n| { let span = timeout(n)?; c.each(|http| http.max_connection = span) });
    works("timeouts.delayed-close-timeout" = "envoy.timeouts.delayedCloseTimeout", TIMEOUT, "0s", "delayed close timeout; zero is Envoy's default of 1s", |c, n| { let span = timeout(n)?; c.each(|http| http.delayed_close = span) });
    works("timeouts.connection-shutdown-grace-period" = "envoy.timeouts.connectionShutdownGracePeriod", TIMEOUT, "0s", "drain timeout between the two GOAWAY frames; zero is Envoy's default of 5s", |c, n| { let span = timeout(n)?; c.each(|http| http.drain = span) });
    works("timeouts.connect-timeout" = "envoy.timeouts.connectTimeout", "a duration such as `2s`", "2s", "timeout for establishing upstream connections", |c, n| c.pipeline.cluster.connect_timeout = duration(n)?);
};

/// What holds for connections and requests of clients.
pub const LISTENERS: &[Row] = rows! {
    works("compression.algorithm" = "envoy.listener.compression.algorithm", "`gzip`, `brotli`, `zstd` or `disabled`", "gzip", "compression of responses, for clients that accept it", |c, n| { let algorithm = word(n, ALGORITHMS)?; c.each(|http| http.compression = algorithm) });
    works("serverHeaderTransformation" = "envoy.listener.serverHeaderTransformation", "`overwrite`, `append_if_absent` or `pass_through`", "overwrite", "how the response header `server` is set", |c, n| { let header = word(n, SERVER_HEADERS)?; c.each(|http| http.server_header = header) });
    works("disableMergeSlashes" = "envoy.listener.disableMergeSlashes", BOOLEAN, "false", "do not merge adjacent slashes in paths", |c, n| { let off = boolean(n)?; c.each(|http| http.merge_slashes = !off) });
    works("headersWithUnderscores" = "envoy.listener.headersWithUnderscores", "`allow`, `reject` or `drop`", "allow", "how to handle request headers with underscores: allow, reject the request with 400, or drop the header", |c, n| { let action = word(n, UNDERSCORES)?; c.each(|http| http.underscores = action) });
    works("disableAllowChunkedLength" = "envoy.listener.disableAllowChunkedLength", BOOLEAN, "false", "reject requests with both `content-length` and `transfer-encoding: chunked`", |c, n| { let off = boolean(n)?; c.each(|http| http.chunked_length = !off) });
    works("network.num-trusted-hops" = "envoy.network.numTrustedHops", "a number", "0", "number of trusted proxies in front of Envoy, for `x-forwarded-for`", |c, n| { let hops = whole(n, 0, 255)?; c.each(|http| http.trusted_hops = hops) });
    works("network.admin-port" = "envoy.network.adminPort", "a port, or 0 for none", "0", "port of Envoy's read-only admin listener on loopback (Contour's default is 9001); readable by anyone who can route to a DNS name that resolves to loopback", |c, n| c.pipeline.admin_port = whole(n, 0, u16::MAX)?);
    nothing("network.strip-trailing-host-dot" = "envoy.network.stripTrailingHostDot", "strip the trailing dot of the Host", "always on");
    works("default-http-versions" = "envoy.defaultHTTPVersions", "a list of `HTTP/1.1` and `HTTP/2`", "[HTTP/1.1, HTTP/2]", "HTTP versions of downstream connections", |c, n| { let versions = versions(n)?; c.each(|http| http.versions = versions) });
    works("listener.connection-balancer" = "envoy.listener.connectionBalancer", "`exact`, or nothing", "\"\"", "`exact`: balance connections evenly across Envoy's worker threads", |c, n| c.pipeline.connections.even_balance = word(n, &[("", false), ("exact", true)])?);
    works("listener.max-requests-per-connection" = "envoy.listener.maxRequestsPerConnection", NUMBER, "", "maximum requests for each connection; unlimited if not set", |c, n| { let most = limit(n)?; c.each(|http| http.max_requests = most) });
    works("listener.per-connection-buffer-limit-bytes" = "envoy.listener.per-connection-buffer-limit-bytes", NUMBER, "32768", "buffer limit of downstream connections in bytes (Contour's default is Envoy's 1 MiB)", |c, n| c.pipeline.connections.buffer = whole(n, 1, u32::MAX)?);
    works("listener.socket-options.tos" = "envoy.listener.socketOptions.tos", "a number from 0 to 255", "0", "type of service (TOS) of IPv4 packets", |c, n| c.pipeline.connections.type_of_service = whole(n, 0, 255)?);
    works("listener.socket-options.traffic-class" = "envoy.listener.socketOptions.trafficClass", "a number from 0 to 255", "0", "traffic class of IPv6 packets", |c, n| c.pipeline.connections.traffic_class = whole(n, 0, 255)?);
    works("listener.max-requests-per-io-cycle" = "envoy.listener.maxRequestsPerIOCycle", NUMBER, "", "maximum requests of a connection processed in each I/O cycle, by RTDS; Envoy\'s default if not set", |c, n| c.pipeline.runtime.max_requests_per_io_cycle = limit(n)?);
    works("listener.http2-max-concurrent-streams" = "envoy.listener.httpMaxConcurrentStreams", NUMBER, "100", "maximum concurrent streams of an HTTP/2 connection (Contour's default is Envoy's)", |c, n| { let most = whole(n, 1, i32::MAX as u32)?; c.each(|http| http.max_streams = most) });
    works("listener.max-connections-per-listener" = "envoy.listener.maxConnectionsPerListener", NUMBER, "", "maximum connections of each listener, by RTDS; unlimited if not set", |c, n| c.pipeline.runtime.max_connections = limit(n)?);
    works("listener.max-connections-to-accept-per-socket-event" = "envoy.listener.maxConnectionsToAcceptPerSocketEvent", NUMBER, "", "maximum connections accepted for each socket event; Envoy's default if not set", |c, n| c.pipeline.connections.accepted_at_once = limit(n)?);
    works("listener.local-reply-body" = "envoy.listener.localReplyBody", "`code` or `empty`", "code", "body of the responses that the proxy makes because there is nothing to serve: the error code and its meaning, or nothing; Sesame only", |c, n| { let body = word(n, &[("code", LocalReplyBody::Code), ("empty", LocalReplyBody::Empty)])?; c.each(|http| http.local_reply_body = body) });
    works("runtime-settings" = "envoy.runtimeSettings", "a map of keys to values", "{}", "runtime values of Envoy, by RTDS; those that Sesame sets win", |c, n| c.pipeline.runtime.values = runtime(n)?);
};

/// What holds for backends.
pub const CLUSTERS: &[Row] = rows! {
    works("cluster.dns-lookup-family" = "envoy.cluster.dnsLookupFamily", "`auto`, `v4`, `v6` or `all`", "auto", "DNS lookup family of ExternalName Services", |c, n| c.pipeline.cluster.dns_family = word(n, FAMILIES)?);
    works("cluster.max-requests-per-connection" = "envoy.cluster.maxRequestsPerConnection", NUMBER, "", "maximum requests for each connection; unlimited if not set", |c, n| c.pipeline.cluster.max_requests = limit(n)?);
    works("cluster.per-connection-buffer-limit-bytes" = "envoy.cluster.per-connection-buffer-limit-bytes", NUMBER, "", "buffer limit of upstream connections in bytes; Envoy's default if not set", |c, n| c.pipeline.cluster.buffer = limit(n)?);
    works("cluster.circuit-breakers.max-connections" = "envoy.cluster.circuitBreakers.maxConnections", "a number; 0 is Envoy's default", "0", "maximum connections of a cluster, unless its Service sets one", |c, n| c.pipeline.cluster.breakers.max_connections = limit_or_none(n)?);
    works("cluster.circuit-breakers.max-pending-requests" = "envoy.cluster.circuitBreakers.maxPendingRequests", "a number; 0 is Envoy's default", "0", "maximum pending requests", |c, n| c.pipeline.cluster.breakers.max_pending_requests = limit_or_none(n)?);
    works("cluster.circuit-breakers.max-requests" = "envoy.cluster.circuitBreakers.maxRequests", "a number; 0 is Envoy's default", "0", "maximum parallel requests", |c, n| c.pipeline.cluster.breakers.max_requests = limit_or_none(n)?);
    works("cluster.circuit-breakers.max-retries" = "envoy.cluster.circuitBreakers.maxRetries", "a number; 0 is Envoy's default", "0", "maximum parallel retries", |c, n| c.pipeline.cluster.breakers.max_retries = limit_or_none(n)?);
    works("cluster.circuit-breakers.per-host-max-connections" = "envoy.cluster.circuitBreakers.perHostMaxConnections", "a number; 0 is Envoy's default", "0", "maximum connections to each endpoint", |c, n| c.pipeline.cluster.breakers.per_host_max_connections = limit_or_none(n)?);
    works("cluster.upstream-tls.minimum-protocol-version" = "envoy.cluster.upstreamTLS.minimumProtocolVersion", VERSIONS, "1.2", "minimum TLS version of upstream connections", |c, n| c.pipeline.cluster.tls.lowest = version(n)?);
    works("cluster.upstream-tls.maximum-protocol-version" = "envoy.cluster.upstreamTLS.maximumProtocolVersion", VERSIONS, "1.3", "maximum TLS version of upstream connections", |c, n| c.pipeline.cluster.tls.highest = version(n)?);
    works("cluster.upstream-tls.cipher-suites" = "envoy.cluster.upstreamTLS.cipherSuites", CIPHERS, "[]", "cipher suites of upstream TLS 1.2 connections; Envoy's default if empty", |c, n| c.pipeline.cluster.ciphers = ciphers(n, &[])?);
    works("cluster.upstream-tls.ecdh-curves" = "envoy.cluster.upstreamTLS.ecdhCurves", CURVES, "[]", "ECDH curves of upstream connections; Envoy's default if empty", |c, n| c.pipeline.cluster.curves = list(n, curve)?);
};

/// Runtime values. Envoy reads numbers and booleans from text.
fn runtime(node: &Node<'_>) -> Result<BTreeMap<Arc<str>, Arc<str>>, Wrong> {
    let entries = map(node, |key, value| {
        if key.is_empty() {
            return Err(Wrong::new("a runtime key is empty"));
        }
        let value = match value.value {
            Value::Bool(value) => value.to_string(),
            _ => text(value)?,
        };
        Ok((key.into(), value.into()))
    })?;
    Ok(entries.into_iter().collect())
}

/// A line of the access log, with its end.
fn line(node: &Node<'_>) -> Result<Option<Arc<str>>, Wrong> {
    let mut line = text(node)?;
    format::check(&line).map_err(|error| Wrong::new(error.to_string()))?;
    if line.is_empty() {
        return Ok(None);
    }
    if !line.ends_with('\n') {
        line.push('\n');
    }
    Ok(Some(line.into()))
}

/// A field of the access log that Envoy can write.
fn field(node: &Node<'_>) -> Result<Arc<str>, Wrong> {
    let text = text(node)?;
    match text.split_once('=') {
        Some(("", _)) => return Err(Wrong::new(format!("`{text}` has no name before the `=`"))),
        Some((_, form)) => format::check(form).map_err(|error| Wrong::new(error.to_string()))?,
        None if operator(&text).is_some() => {}
        None => {
            let why = format!("`{text}` is not a field that is known; `{text}=%OPERATOR%` says what it is");
            return Err(Wrong::new(why));
        }
    }
    Ok(text.into())
}

/// The versions that are named; none named means all.
fn versions(node: &Node<'_>) -> Result<HttpVersions, Wrong> {
    let named = list(node, |item| word(item, &[("HTTP/1.1", 1), ("HTTP/2", 2)]))?;
    Ok(match (named.contains(&1), named.contains(&2)) {
        (true, false) => HttpVersions::Http1,
        (false, true) => HttpVersions::Http2,
        (true, true) | (false, false) => HttpVersions::Both,
    })
}

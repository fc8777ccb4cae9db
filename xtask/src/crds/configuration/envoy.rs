//! Settings of proxies: listeners, clusters, timeouts, logs.

use super::{
    super::schema::{Field, Schema, choice, flag, list, number, object, opt, text, texts},
    bind, metrics, reference,
};

/// A count from one.
fn count(about: &str) -> Schema {
    number(about).int32().min(1)
}

pub fn envoy() -> Schema {
    object(
        "Settings of Envoy.",
        [
            opt("listener", listener()),
            opt(
                "service",
                reference("The Service of the proxies: its addresses are published in the status of objects."),
            ),
            opt("http", data_listener("The HTTP listener.")),
            opt("https", data_listener("The HTTPS listener.")),
            opt("health", object("Where probes are answered.", bind())),
            opt("metrics", metrics("Where scrapers are answered, if apart from probes.")),
            opt("omEnforcedHealth", object("Where probes are answered unless the overload manager objects.", bind())),
            opt("clientCertificate", reference("The Secret of the certificate that backends are shown.")),
            opt("logging", logging()),
            opt("defaultHTTPVersions", list("HTTP/1.1, HTTP/2; both if absent.", text(""))),
            opt("timeouts", timeouts()),
            opt("cluster", cluster()),
            opt("network", network()),
            opt("runtimeSettings", texts("Runtime values, by RTDS; those that Sesame sets win.")),
        ],
    )
}

fn data_listener(about: &str) -> Schema {
    let mut fields: Vec<Field> = bind().into();
    fields.push(opt("accessLog", text("The file of its access log.")));
    object(about, fields)
}

fn tls(about: &str, more: Vec<Field>) -> Schema {
    let mut fields = vec![
        opt("minimumProtocolVersion", text("1.2 or 1.3; 1.2 if absent.")),
        opt("maximumProtocolVersion", text("1.2 or 1.3; 1.3 if absent.")),
        opt("cipherSuites", list("Cipher suites of TLS 1.2, by OpenSSL's names.", text(""))),
        opt("ecdhCurves", list("Curves of key exchange.", text(""))),
    ];
    fields.extend(more);
    object(about, fields)
}

fn listener() -> Schema {
    let fingerprint = object(
        "Fingerprints of clients that are computed.",
        [opt("ja3", flag("Compute JA3 fingerprints.")), opt("ja4", flag("Compute JA4 fingerprints."))],
    );
    let socket = object(
        "Options of sockets.",
        [
            opt("tos", number("Type of service of IPv4 packets.").int32().min(0).max(255)),
            opt("trafficClass", number("Traffic class of IPv6 packets.").int32().min(0).max(255)),
        ],
    );
    let algorithm = choice("How responses are compressed.", &["gzip", "brotli", "zstd", "disabled"]);
    object(
        "Settings of downstream connections and requests.",
        [
            opt("useProxyProtocol", flag("Connections begin with the PROXY protocol.")),
            opt("compression", object("Compression of responses.", [opt("algorithm", algorithm)])),
            opt("disableAllowChunkedLength", flag("Requests with both lengths are rejected.")),
            opt("disableMergeSlashes", flag("Adjacent slashes of paths are not merged.")),
            opt("headersWithUnderscores", choice("Headers with underscores.", &["allow", "reject", "drop"])),
            opt("localReplyBody", choice("Body of responses that the proxy makes itself.", &["code", "empty"])),
            opt("serverHeaderTransformation", text("overwrite, append_if_absent or pass_through.")),
            opt("connectionBalancer", text("exact, or nothing.")),
            opt("maxRequestsPerConnection", count("Requests of a connection.")),
            opt("per-connection-buffer-limit-bytes", count("Bytes that are buffered for a connection.")),
            opt("maxRequestsPerIOCycle", count("Requests of a connection in an I/O cycle.")),
            opt("httpMaxConcurrentStreams", count("Streams of an HTTP/2 connection.")),
            opt("maxConnectionsPerListener", count("Connections of a listener.")),
            opt("maxConnectionsToAcceptPerSocketEvent", count("Connections accepted at once.")),
            opt("socketOptions", socket),
            opt("tls", tls("TLS with clients.", vec![opt("fingerprint", fingerprint)])),
        ],
    )
}

fn logging() -> Schema {
    object(
        "Access logs.",
        [
            opt("accessLogFormat", text("envoy or json.")),
            opt("accessLogFormatString", text("The line, with Envoy's operators.")),
            opt("accessLogJSONFields", list("Fields of JSON: names, or name=FORMAT.", text(""))),
            opt("accessLogLevel", text("info, error, critical or disabled.")),
            opt(
                "accessLogFailedHandshakesPerSecond",
                number("Connections without a TLS handshake that each proxy logs in a second; 0 for all.").int32(),
            ),
        ],
    )
}

fn timeouts() -> Schema {
    let span = |about: &str| text(about);
    object(
        "Timeouts: a duration such as 1m30s, or infinity.",
        [
            opt("requestTimeout", span("Receiving the whole request; none if absent.")),
            opt("connectionIdleTimeout", span("Idle connections of clients; Envoy's 1h if absent.")),
            opt("streamIdleTimeout", span("Idle streams; Envoy's 5m if absent.")),
            opt("maxConnectionDuration", span("Connections of clients; none if absent.")),
            opt("delayedCloseTimeout", span("Delayed close; Envoy's 1s if absent.")),
            opt("connectionShutdownGracePeriod", span("Between two GOAWAY frames; Envoy's 5s if absent.")),
            opt("connectTimeout", span("Connecting to a backend; 2s if absent.")),
        ],
    )
}

fn cluster() -> Schema {
    let limit = |name: &'static str, about: &str| opt(name, number(about).int32());
    let breakers = object(
        "Limits of each Service that sets none; 0 is Envoy's default.",
        [
            limit("maxConnections", "Maximum number of connections."),
            limit("maxPendingRequests", "Maximum number of requests that wait for a connection."),
            limit("maxRequests", "Maximum number of parallel requests."),
            limit("maxRetries", "Maximum number of parallel retries."),
            limit("perHostMaxConnections", "Maximum number of connections to each endpoint."),
        ],
    );
    object(
        "Settings of upstream connections.",
        [
            opt("dnsLookupFamily", text("auto, v4, v6 or all.")),
            opt("maxRequestsPerConnection", count("Requests of a connection.")),
            opt("per-connection-buffer-limit-bytes", count("Bytes that are buffered for a connection.")),
            opt("circuitBreakers", breakers),
            opt("upstreamTLS", tls("TLS with backends.", Vec::new())),
        ],
    )
}

fn network() -> Schema {
    object(
        "What stands before and beside proxies.",
        [
            opt("numTrustedHops", number("Trusted proxies before Envoy.").int32()),
            opt("adminPort", number("Port of the read-only admin listener on loopback; 0 for none.")),
            opt("stripTrailingHostDot", flag("Always on.")),
        ],
    )
}

//! Mapping and TCPMapping.

use super::{EmissaryKind, Since, explicit_tls, ids};
use crate::crds::schema::{Schema, choice, flag, list, map, number, object, open, opt, req, text, texts};

/// Mapping.
pub fn http() -> EmissaryKind {
    EmissaryKind {
        kind: "Mapping",
        plural: "mappings",
        about: "Mapping routes the requests for a host and a path prefix to a service.",
        since: Since::V1,
        spec: spec(),
        status: Some(object(
            "What Sesame made of the object; written by the controller.",
            [
                opt(
                    "state",
                    choice("Running if the Mapping is served, Inactive if not.", &["", "Inactive", "Running"]),
                ),
                opt("reason", text("Why it is not served.")),
            ],
        )),
        columns: &[
            ("Source Host", ".spec.host", "string"),
            ("Source Prefix", ".spec.prefix", "string"),
            ("Dest Service", ".spec.service", "string"),
            ("State", ".status.state", "string"),
            ("Reason", ".status.reason", "string"),
        ],
    }
}

fn spec() -> Schema {
    let fields =
        matches().into_iter().chain(target()).chain(paths()).chain(headers()).chain(upstream()).chain(policies());
    object("Which requests, where they go, and how.", fields)
}

fn matches() -> Vec<crate::crds::schema::Field> {
    vec![
        opt("ambassador_id", ids()),
        req("prefix", text("Path prefix; see prefix_exact and prefix_regex.")),
        opt("prefix_exact", flag("prefix is the whole path.")),
        opt("prefix_regex", flag("prefix is a regular expression for the whole path.")),
        opt("case_sensitive", flag("Upper and lower case differ in the path; true if not set.")),
        opt(
            "hostname",
            text("Host, or a glob of hosts such as `*.example.com`; without one, a Host must select the Mapping."),
        ),
        opt("host", text("Host; deprecated, use hostname.")),
        opt("host_regex", flag("host is a regular expression; deprecated, use hostname.")),
        opt("method", text("Method of the request.")),
        opt("method_regex", flag("method is a regular expression.")),
        opt("headers", texts("Headers that the request must have, each with this value.")),
        opt("regex_headers", texts("Headers that the request must have, each with a value that matches.")),
        opt("query_parameters", texts("Query parameters that the request must have, each with this value.")),
        opt(
            "regex_query_parameters",
            texts("Query parameters that the request must have, each with a value that matches."),
        ),
        opt("precedence", number("Mappings of higher precedence are tried first; 0 if not set.")),
        opt("weight", number("Percentage of the requests; Mappings without one share what is left.")),
    ]
}

fn target() -> Vec<crate::crds::schema::Field> {
    vec![
        req(
            "service",
            text("Service, such as `https://cart.shop:8443`; the namespace is that of the Mapping if not set."),
        ),
        opt("tls", text("Name of the TLSContext of connections to the service.")),
        opt("resolver", text("Name of the resolver that finds the endpoints of the service.")),
        opt("v2ExplicitTLS", explicit_tls()),
        opt("v2BoolHeaders", list("Headers that are `true` in v2; no effect.", text(""))),
        opt("v2BoolQueryParameters", list("Query parameters that are `true` in v2; no effect.", text(""))),
        opt("shadow", flag("Requests are mirrored to the service, and its responses are ignored.")),
        opt("host_redirect", flag("Requests are redirected to the host that service names.")),
        opt("path_redirect", text("Path of the redirect.")),
        opt("prefix_redirect", text("Replaces the prefix in the path of the redirect.")),
        opt("regex_redirect", regex("Rewrite of the path of the redirect.")),
        opt(
            "redirect_response_code",
            number("Status of the redirect; 301 if not set.").with("enum", vec![301, 302, 303, 307, 308]),
        ),
    ]
}

fn regex(about: &str) -> Schema {
    let fields = [
        opt("pattern", text("Regular expression in RE2 syntax.")),
        opt("substitution", text(r"Replacement of a match; `\1` is the first group.")),
    ];
    object(about, fields)
}

fn paths() -> Vec<crate::crds::schema::Field> {
    vec![
        opt(
            "rewrite",
            text("Replaces the prefix in the path that the service sees; `/` if not set, no rewrite if empty."),
        ),
        opt("regex_rewrite", regex("Rewrite of the path that the service sees, in place of rewrite.")),
        opt("host_rewrite", text("Host that the service sees.")),
        opt("auto_host_rewrite", flag("The service sees the DNS name of its endpoint as the host.")),
        opt("allow_upgrade", list("Protocols that a connection may be upgraded to, such as websocket.", text(""))),
        opt("use_websocket", flag("Connections may become WebSockets; deprecated, use allow_upgrade.")),
    ]
}

fn added_headers(about: &str) -> Schema {
    let header = object(
        "A header that is added.",
        [
            opt("value", text("Value of the header.")),
            opt("append", flag("The value is added to those that are there; true if not set.")),
            opt("v2Representation", choice("How v2 writes it; no effect.", &["", "string", "null"])),
        ],
    );
    map(about, header)
}

fn headers() -> Vec<crate::crds::schema::Field> {
    let cors = object(
        "Cross-origin requests; those of the Module if not set.",
        [
            opt("origins", list("Origins that may ask.", text(""))),
            opt("methods", list("Methods that are allowed.", text(""))),
            opt("headers", list("Request headers that are allowed.", text(""))),
            opt("credentials", flag("Credentials may be sent.")),
            opt("exposed_headers", list("Response headers that scripts may read.", text(""))),
            opt("max_age", text("Seconds for which the answer to a preflight request may be cached.")),
            opt("v2CommaSeparatedOrigins", flag("v2 writes origins as one text; no effect.")),
        ],
    );
    vec![
        opt("add_request_headers", added_headers("Headers added to requests; those of the Module if not set.")),
        opt("add_response_headers", added_headers("Headers added to responses; those of the Module if not set.")),
        opt("remove_request_headers", list("Headers removed from requests.", text(""))),
        opt("remove_response_headers", list("Headers removed from responses.", text(""))),
        opt("add_linkerd_headers", flag("Requests carry l5d-dst-override with the service.")),
        opt("cors", cors),
    ]
}

fn upstream() -> Vec<crate::crds::schema::Field> {
    let cookie = object(
        "Cookie that is hashed.",
        [
            req("name", text("Name of the cookie.")),
            opt("path", text("Path of the cookie.")),
            opt("ttl", text("Lifetime of a cookie that is set where it is missing, such as `60s`.")),
        ],
    );
    let load_balancer = object(
        "How an endpoint is chosen; needs an endpoint resolver.",
        [
            req("policy", choice("Load balancing policy.", &["round_robin", "ring_hash", "maglev", "least_request"])),
            opt("cookie", cookie),
            opt("header", text("Header that is hashed.")),
            opt("source_ip", flag("The client's address is hashed.")),
        ],
    );
    let keepalive = object(
        "TCP keepalive of connections to the service.",
        [
            opt("probes", number("Unanswered probes after which a connection is dead.")),
            opt("idle_time", number("Seconds without traffic before the first probe.")),
            opt("interval", number("Seconds between probes.")),
        ],
    );
    vec![
        opt("timeout_ms", number("Milliseconds that a response may take; 0 for no limit.")),
        opt("idle_timeout_ms", number("Milliseconds that a stream may be idle.")),
        opt("connect_timeout_ms", number("Milliseconds that a connection to the service may take; 3000 if not set.")),
        opt("cluster_idle_timeout_ms", number("Milliseconds that a connection to the service may be idle.")),
        opt("cluster_max_connection_lifetime_ms", number("Milliseconds that a connection to the service is used.")),
        opt("circuit_breakers", super::circuit_breakers()),
        opt("load_balancer", load_balancer),
        opt("keepalive", keepalive),
        opt("grpc", flag("The service speaks HTTP/2.")),
        opt("dns_type", text("How the name of the service is resolved: strict_dns or logical_dns.")),
        opt("respect_dns_ttl", flag("The TTL of DNS answers is respected.")),
        opt("enable_ipv4", flag("IPv4 addresses of the service are used.")),
        opt("enable_ipv6", flag("IPv6 addresses of the service are used.")),
        opt("cluster_tag", text("Keeps the connections apart from those of other Mappings to the same service.")),
        opt("stats_name", text("Name of the service in statistics.")),
        opt("priority", text("Priority of the requests: default or high.")),
        opt("health_checks", health_checks()),
    ]
}

fn health_checks() -> Schema {
    let status = |about: &str| number(about).min(100).max(599);
    let statuses = object(
        "Statuses from min to max, both included.",
        [req("min", status("Lowest status.")), req("max", status("Highest status."))],
    );
    let http = object(
        "Health check over HTTP.",
        [
            req("path", text("Path of the request.")),
            opt("hostname", text("Host of the request.")),
            opt("add_request_headers", added_headers("Headers added to the request.").with("maxProperties", 1000)),
            opt("remove_request_headers", list("Headers removed from the request.", text("")).max_items(1000)),
            opt("expected_statuses", list("Statuses of a healthy endpoint; 200 if not set.", statuses)),
        ],
    );
    let grpc = object(
        "Health check over gRPC.",
        [
            req("upstream_name", text("Service that is asked about.")),
            opt("authority", text("Authority of the request.")),
        ],
    );
    let request = object("Protocol of the health check: one of http and grpc.", [opt("http", http), opt("grpc", grpc)]);
    let check = object(
        "A health check.",
        [
            req("health_check", request.with("minProperties", 1).with("maxProperties", 1)),
            opt("timeout", text("How long an answer may take; `3s` if not set.")),
            opt("interval", text("Time between two checks; `5s` if not set.")),
            opt("unhealthy_threshold", number("Failures after which an endpoint is not used; 2 if not set.")),
            opt("healthy_threshold", number("Successes after which it is used again; 1 if not set.")),
        ],
    );
    list("Health checks of the endpoints; need an endpoint resolver.", check).min_items(1)
}

fn policies() -> Vec<crate::crds::schema::Field> {
    let retry_on =
        ["5xx", "gateway-error", "connect-failure", "retriable-4xx", "refused-stream", "retriable-status-codes"];
    let retries = object(
        "Which requests are tried again; those of the Module if not set.",
        [
            opt("retry_on", choice("Condition of another try.", &retry_on)),
            opt("num_retries", number("Number of tries after the first one; 1 if not set.")),
            opt("per_try_timeout", text("How long each try may take, such as `0.5s`.")),
        ],
    );
    let docs = object(
        "API documentation; no effect.",
        [
            opt("path", text("Path of the documentation; no effect.")),
            opt("url", text("URL of the documentation; no effect.")),
            opt("ignored", flag("The documentation is ignored; no effect.")),
            opt("display_name", text("Name of the documentation; no effect.")),
            opt("timeout_ms", number("Milliseconds that the documentation may take; no effect.")),
        ],
    );
    vec![
        opt("retry_policy", retries),
        opt("bypass_auth", flag("Requests are not sent to the AuthService.")),
        opt("auth_context_extensions", texts("Context extensions sent to the AuthService with each request.")),
        opt("labels", labels()),
        opt("docs", docs),
        opt("modules", list("Settings of other Modules; no effect.", open(""))),
        opt("envoy_override", open("Configuration of Envoy; no effect.")),
        opt("error_response_overrides", error_response_overrides()),
        opt("bypass_error_response_overrides", flag("Error responses are not replaced; no effect.")),
        opt("outlier_detection", text("Outlier detection; not supported.")),
    ]
}

fn labels() -> Schema {
    let named = |name: &str, about: &str| object(about, [req("key", choice("Name of the part.", &[name]))]);
    let header = object(
        "A header of the request; requests without it have no such label.",
        [
            req("key", text("Key of the part.")),
            req("header_name", text("Name of the header.")),
            opt("omit_if_not_present", flag("Without the header only this part is left out.")),
        ],
    );
    let generic = object(
        "A constant.",
        [
            req("value", text("Value of the part.")),
            opt("key", text("Key of the part; `generic_key` if not set.")),
            opt("v2Shorthand", flag("v2 writes it as text; no effect.")),
        ],
    );
    let part = object(
        "A part of a label.",
        [
            opt("source_cluster", named("source_cluster", "The cluster that the request comes from.")),
            opt("destination_cluster", named("destination_cluster", "The cluster that the request goes to.")),
            opt("remote_address", named("remote_address", "The client's address.")),
            opt("request_headers", header),
            opt("generic_key", generic),
        ],
    );
    let one = |schema: Schema| schema.with("minProperties", 1).with("maxProperties", 1);
    let group = one(map("A label: its name, and its parts.", list("", one(part))));
    map("Labels of the requests by domain, for the RateLimitService.", list("", group))
}

fn error_response_overrides() -> Schema {
    let file = object("A file with the text.", [opt("filename", text("Name of the file."))]);
    let body = object(
        "The body.",
        [
            opt("content_type", text("Content type of the response.")),
            opt("text_format", text("Text of the response.")),
            opt("json_format", texts("JSON of the response.")),
            opt("text_format_source", file),
        ],
    );
    let one = object(
        "A replacement of an error response.",
        [req("on_status_code", number("Status of the response.").min(400).max(599)), req("body", body)],
    );
    list("Replacements of error responses; not supported.", one).min_items(1)
}

/// TCPMapping.
pub fn tcp() -> EmissaryKind {
    let spec = object(
        "Which connections, and where they go.",
        [
            opt("ambassador_id", ids()),
            req("port", number("Port that clients connect to.")),
            opt("host", text("Server name that clients ask for; all connections if not set.")),
            opt("address", text("Address that is listened on; all if not set.")),
            req("service", text("Service, such as `cart.shop:6379`.")),
            opt("tls", text("Name of the TLSContext of connections to the service.")),
            opt("v2ExplicitTLS", explicit_tls()),
            opt("resolver", text("Name of the resolver that finds the endpoints of the service.")),
            opt("weight", number("Percentage of the connections.")),
            opt("circuit_breakers", super::circuit_breakers()),
            opt("cluster_tag", text("Keeps the connections apart from those of other mappings to the same service.")),
            opt("enable_ipv4", flag("IPv4 addresses of the service are used.")),
            opt("enable_ipv6", flag("IPv6 addresses of the service are used.")),
            opt("idle_timeout_ms", text("Milliseconds that a connection may be idle, as text.")),
            opt("stats_name", text("Name of the service in statistics.")),
        ],
    );
    EmissaryKind {
        kind: "TCPMapping",
        plural: "tcpmappings",
        about: "TCPMapping routes the TCP connections of a port to a service.",
        since: Since::V1,
        spec,
        status: None,
        columns: &[],
    }
}

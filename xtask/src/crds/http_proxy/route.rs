//! Routes and their conditions.

use super::{
    super::schema::{Schema, choice, flag, list, number, object, opt, req, text, timeout},
    NAME, policy, scheme, security, service,
};

const RETRY_ON: [&str; 16] = [
    "5xx",
    "gateway-error",
    "reset",
    "reset-before-request",
    "connect-failure",
    "envoy-ratelimited",
    "retriable-4xx",
    "refused-stream",
    "retriable-status-codes",
    "retriable-headers",
    "http3-post-connect-failure",
    "cancelled",
    "deadline-exceeded",
    "internal",
    "resource-exhausted",
    "unavailable",
];

/// A route.
pub fn route() -> Schema {
    object(
        "A route: conditions, and exactly one of services, requestRedirectPolicy and \
         directResponsePolicy. A route with an error answers 503 on its own conditions; other \
         routes are not affected.",
        [
            opt(
                "conditions",
                list(
                    "Which requests the route is for. All conditions must hold; without any, the route is \
                     for all requests. At most one of prefix, exact and regex.",
                    condition(),
                ),
            ),
            opt("services", list("Services that requests are forwarded to, by weight.", service::service())),
            opt("requestRedirectPolicy", redirect()),
            opt("directResponsePolicy", respond()),
            opt("internalRedirectPolicy", internal_redirect()),
            opt(
                "enableWebsockets",
                flag(
                    "Allow clients to upgrade the connection to a WebSocket. timeoutPolicy.idle limits how long it may be silent.",
                ),
            ),
            opt(
                "permitInsecure",
                flag(
                    "Serve the route over plaintext, too, instead of redirecting to HTTPS. Has no effect \
                     if the operator sets disablePermitInsecure.",
                ),
            ),
            opt("authPolicy", security::auth_policy()),
            opt("jwtVerificationPolicy", security::jwt_verification()),
            opt(
                "ipAllowPolicy",
                list(
                    "Only clients with these addresses are served; others are answered with 403. \
                     Replaces the list of the virtual host. Not together with ipDenyPolicy.",
                    security::ip_filter(),
                ),
            ),
            opt(
                "ipDenyPolicy",
                list(
                    "Clients with these addresses are answered with 403. Replaces the list of the virtual \
                     host. Not together with ipAllowPolicy.",
                    security::ip_filter(),
                ),
            ),
            opt("timeoutPolicy", timeouts()),
            opt("retryPolicy", retry()),
            opt("healthCheckPolicy", policy::health_check()),
            opt("loadBalancerPolicy", policy::load_balancer()),
            opt("pathRewritePolicy", rewrite()),
            opt(
                "requestHeadersPolicy",
                policy::headers(
                    "Changes of request headers before the request is forwarded. The header Host may be set.",
                ),
            ),
            opt(
                "responseHeadersPolicy",
                policy::headers("Changes of response headers before the response goes to the client."),
            ),
            opt("cookieRewritePolicies", policy::cookies()),
            opt("rateLimitPolicy", policy::rate_limit()),
        ],
    )
}

/// A condition.
pub fn condition() -> Schema {
    let query = object(
        "Condition about a query parameter: its name and exactly one of exact, prefix, suffix, \
         regex, contains and present.",
        [
            req("name", text("Name of the query parameter; case-sensitive.")),
            opt("exact", text("The value equals this text.")),
            opt("prefix", text("The value begins with this text.")),
            opt("suffix", text("The value ends with this text.")),
            opt("regex", text("The whole value matches this regular expression (RE2).")),
            opt("contains", text("The value contains this text.")),
            opt("present", flag("It is present, with any value.")),
            opt("ignoreCase", flag("Compare without regard to case.")),
        ],
    );
    object(
        "A condition about the path, a header or a query parameter. Several conditions of one \
         route or include must all hold.",
        [
            opt(
                "prefix",
                text(
                    "The path begins with this text, which begins with `/`. It is a prefix of the text: \
                     `/api` also matches `/apis`; write `/api/` where that matters.",
                ),
            ),
            opt("exact", text("The path equals this text, which begins with `/`. Not allowed in includes.")),
            opt(
                "regex",
                text(
                    "The whole path matches this regular expression (RE2), which begins with `/`. Not \
                     allowed in includes.",
                ),
            ),
            opt("header", header()),
            opt("queryParameter", query),
        ],
    )
}

/// A condition about a header.
pub fn header() -> Schema {
    object(
        "Condition about a request header: its name and exactly one of present, notpresent, \
         contains, notcontains, exact, notexact and regex.",
        [
            req(
                "name",
                text("Name of the header, without regard to case. Pseudo headers such as `:method` are allowed."),
            ),
            opt("present", flag("It is present, with any value.")),
            opt("notpresent", flag("The header is absent.")),
            opt("contains", text("The value contains this text.")),
            opt("notcontains", text("The value does not contain this text.")),
            opt("exact", text("The value equals this text.")),
            opt("notexact", text("The value differs from this text.")),
            opt("regex", text("The whole value matches this regular expression (RE2).")),
            opt("ignoreCase", flag("Compare without regard to case. Not for regex: write `(?i)` there.")),
            opt(
                "treatMissingAsEmpty",
                flag(
                    "Treat an absent header as an empty one. For notcontains and notexact, which an \
                     absent header does not fulfil otherwise.",
                ),
            ),
        ],
    )
}

fn redirect() -> Schema {
    let path = |about: &str| text(about).pattern(r"^\/.*$");
    let codes = [301, 302, 303, 307, 308];
    object(
        "Answer with a redirect. Parts that are not set are those of the request.",
        [
            opt("scheme", scheme("Scheme of the new location.")),
            opt(
                "hostname",
                text("Host name of the new location; no wildcard.")
                    .min_length(1)
                    .max_length(253)
                    .pattern(&format!("^{NAME}$")),
            ),
            opt(
                "port",
                number("Port of the new location; the default port of the scheme if not set and the scheme changes.")
                    .int32()
                    .min(1)
                    .max(65535),
            ),
            opt("statusCode", number("Status of the answer.").int32().with("enum", codes.to_vec()).default(302)),
            opt("path", path("Path of the new location, which replaces the whole path. Not together with prefix.")),
            opt(
                "prefix",
                path(
                    "Replacement of the prefix that the route matched; the rest of the path stays. Not \
                     together with path.",
                ),
            ),
        ],
    )
}

fn respond() -> Schema {
    object(
        "Answer with a fixed status and body, without a backend.",
        [
            req("statusCode", number("Status of the answer.").min(200).max(599)),
            opt("body", text("Body of the answer, at most 4096 bytes; empty if not set.")),
        ],
    )
}

fn internal_redirect() -> Schema {
    let code = number("").int32().with("enum", vec![301, 302, 303, 307, 308]);
    object(
        "Redirects of the backend that Envoy follows itself instead of sending them to the \
         client. They lead to hosts of the same port and certificate only.",
        [
            opt(
                "maxInternalRedirects",
                number("How many redirects in a row are followed; 1 if not set. The next one goes to the client.")
                    .int32(),
            ),
            opt("redirectResponseCodes", list("Statuses that are followed; 302 if not set.", code)),
            opt(
                "allowCrossSchemeRedirect",
                choice(
                    "Whether a redirect may change the scheme: `Always`, `Never` (default), or \
                     `SafeOnly` for all but from HTTPS to HTTP.",
                    &["Always", "Never", "SafeOnly"],
                )
                .default("Never"),
            ),
            opt(
                "denyRepeatedRouteRedirect",
                flag("Do not follow a redirect to a route that this request has taken before."),
            ),
        ],
    )
}

/// How long things may take.
pub fn timeouts() -> Schema {
    object(
        "Timeouts. Durations are written as `1m30s` or `250ms`; `infinity` disables a timeout.",
        [
            opt(
                "response",
                timeout(
                    "Time from the end of the request until the end of the response, all retries \
                     included; then the client gets 504. 15s if not set; `infinity` for streams, long \
                     polling and large downloads.",
                ),
            ),
            opt(
                "idle",
                timeout(
                    "Time for which a request may be idle: nothing is sent or received, in either \
                     direction. If not set, the operator's timeouts.stream-idle-timeout, 5m by default.",
                ),
            ),
            opt(
                "idleConnection",
                timeout(
                    "How long a connection to the backend stays open without requests; 1h if not set. Set \
                     it below the keep-alive timeout of the backend to avoid 503 from connections that it \
                     closes.",
                ),
            ),
        ],
    )
}

fn retry() -> Schema {
    object(
        "When and how often a failed request is sent again, to another endpoint if there is one.",
        [
            opt("count", number("Maximum number of retries: -1 is none, 0 and 1 are one.").int64().min(-1).default(1)),
            opt(
                "perTryTimeout",
                timeout(
                    "Timeout of each try; a try that takes longer is retried. timeoutPolicy.response \
                     limits all tries together.",
                ),
            ),
            opt(
                "retryOn",
                list(
                    "Which failures are retried, in Envoy's words: `5xx` (default), `gateway-error` (502, \
                     503, 504), `reset`, `connect-failure`, `retriable-4xx` (409), `refused-stream`, \
                     `retriable-status-codes`, and for gRPC `cancelled`, `deadline-exceeded`, `internal`, \
                     `resource-exhausted`, `unavailable`.",
                    choice("", &RETRY_ON),
                ),
            ),
            opt(
                "retriableStatusCodes",
                list("Statuses that are retried. Requires `retriable-status-codes` in retryOn.", number("").int32()),
            ),
        ],
    )
}

fn rewrite() -> Schema {
    let entry = object(
        "Replacement of one prefix.",
        [
            opt(
                "prefix",
                text(
                    "The whole prefix to replace, those of includes joined in front; any prefix if not \
                     set. An entry with the exact prefix takes precedence.",
                )
                .min_length(1),
            ),
            req("replacement", text("What replaces it; begins with `/`.").min_length(1)),
        ],
    );
    object(
        "Changes of the path before the request is forwarded. Requires a prefix condition.",
        [opt(
            "replacePrefix",
            list(
                "Replacements of the prefix that the route matched. With `/v1` replaced by `/`, the \
                 backend sees `/items` for `/v1/items`.",
                entry,
            ),
        )],
    )
}

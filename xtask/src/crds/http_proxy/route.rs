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
        "Some requests and what is done with them: services, a redirect, or an answer.",
        [
            opt("conditions", list("Which requests; all must hold.", condition())),
            opt("services", list("The backends and their shares.", service::service())),
            opt("requestRedirectPolicy", redirect()),
            opt("directResponsePolicy", respond()),
            opt("internalRedirectPolicy", internal_redirect()),
            opt("enableWebsockets", flag("The connection may become a WebSocket.")),
            opt("permitInsecure", flag("Served over HTTP too, though the host has TLS.")),
            opt("authPolicy", security::auth_policy()),
            opt("jwtVerificationPolicy", security::jwt_verification()),
            opt(
                "ipAllowPolicy",
                list("The only clients that may; in place of the host's list.", security::ip_filter()),
            ),
            opt("ipDenyPolicy", list("The clients that may not; in place of the host's list.", security::ip_filter())),
            opt("timeoutPolicy", timeouts()),
            opt("retryPolicy", retry()),
            opt("healthCheckPolicy", policy::health_check()),
            opt("loadBalancerPolicy", policy::load_balancer()),
            opt("pathRewritePolicy", rewrite()),
            opt("requestHeadersPolicy", policy::headers("What is changed about the headers of a request.")),
            opt("responseHeadersPolicy", policy::headers("What is changed about the headers of an answer.")),
            opt("cookieRewritePolicies", policy::cookies()),
            opt("rateLimitPolicy", policy::rate_limit()),
        ],
    )
}

/// A condition.
pub fn condition() -> Schema {
    let query = object(
        "About a query parameter: a name and one operator.",
        [
            req("name", text("The parameter.")),
            opt("exact", text("Its value is this text.")),
            opt("prefix", text("Its value begins with this text.")),
            opt("suffix", text("Its value ends with this text.")),
            opt("regex", text("Its whole value matches this pattern (RE2).")),
            opt("contains", text("Its value has this text in it.")),
            opt("present", flag("It is there.")),
            opt("ignoreCase", flag("Upper and lower case are the same.")),
        ],
    );
    object(
        "A condition about the path, a header, or a query parameter.",
        [
            opt("prefix", text("The path begins with this text; it begins with `/`.")),
            opt("exact", text("The path is this text; it begins with `/`. Not in includes.")),
            opt("regex", text("The whole path matches this pattern (RE2); it begins with `/`. Not in includes.")),
            opt("header", header()),
            opt("queryParameter", query),
        ],
    )
}

/// A condition about a header.
pub fn header() -> Schema {
    object(
        "About a header: a name and one operator.",
        [
            req("name", text("The header.")),
            opt("present", flag("It is there.")),
            opt("notpresent", flag("It is not there.")),
            opt("contains", text("Its value has this text in it.")),
            opt("notcontains", text("Its value does not have this text in it.")),
            opt("exact", text("Its value is this text.")),
            opt("notexact", text("Its value is not this text.")),
            opt("regex", text("Its whole value matches this pattern (RE2).")),
            opt("ignoreCase", flag("Upper and lower case are the same; not with regex.")),
            opt("treatMissingAsEmpty", flag("A header that is not there is an empty one; with operators that say no.")),
        ],
    )
}

fn redirect() -> Schema {
    let path = |about: &str| text(about).pattern(r"^\/.*$");
    let codes = [301, 302, 303, 307, 308];
    object(
        "The client is sent elsewhere; what is absent stays as it was.",
        [
            opt("scheme", scheme("The scheme.")),
            opt("hostname", text("The host.").min_length(1).max_length(253).pattern(&format!("^{NAME}$"))),
            opt("port", number("The port.").int32().min(1).max(65535)),
            opt("statusCode", number("The status.").int32().with("enum", codes.to_vec()).default(302)),
            opt("path", path("The whole path; not with prefix.")),
            opt("prefix", path("What stands for the prefix that the route matched; not with path.")),
        ],
    )
}

fn respond() -> Schema {
    object(
        "The proxy answers by itself.",
        [
            req("statusCode", number("The status.").min(200).max(599)),
            opt("body", text("The text, at most 4096 bytes.")),
        ],
    )
}

fn internal_redirect() -> Schema {
    let code = number("").int32().with("enum", vec![301, 302, 303, 307, 308]);
    object(
        "Redirects of the backend that the proxy follows itself.",
        [
            opt("maxInternalRedirects", number("How many in a row; one if absent.").int32()),
            opt("redirectResponseCodes", list("Which statuses; 302 if absent.", code)),
            opt(
                "allowCrossSchemeRedirect",
                choice("Whether the scheme may change.", &["Always", "Never", "SafeOnly"]).default("Never"),
            ),
            opt("denyRepeatedRouteRedirect", flag("Not to a route that was taken before.")),
        ],
    )
}

/// How long things may take.
pub fn timeouts() -> Schema {
    object(
        "How long things may take.",
        [
            opt("response", timeout("The whole answer; 15s if absent.")),
            opt("idle", timeout("A stream on which nothing moves.")),
            opt("idleConnection", timeout("A connection to a backend without requests; 1h if absent.")),
        ],
    )
}

fn retry() -> Schema {
    object(
        "When a request is tried again.",
        [
            opt("count", number("How often at most; -1 for never.").int64().min(-1).default(1)),
            opt("perTryTimeout", timeout("How long each try may take.")),
            opt("retryOn", list("The conditions; 5xx if absent.", choice("", &RETRY_ON))),
            opt("retriableStatusCodes", list("The statuses that `retriable-status-codes` means.", number("").int32())),
        ],
    )
}

fn rewrite() -> Schema {
    let entry = object(
        "What stands for one prefix.",
        [
            opt("prefix", text("The prefix, with those of includes; every one if absent.").min_length(1)),
            req("replacement", text("What stands for it.").min_length(1)),
        ],
    );
    object(
        "What the backend sees as the path.",
        [opt("replacePrefix", list("What stands for the prefix that the route matched.", entry))],
    )
}

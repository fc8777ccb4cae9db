//! Policies: headers, cookies, balancing, probes, limits.

use super::{
    super::schema::{Schema, choice, flag, list, number, object, opt, req, text},
    NAME, route,
};

/// The characters that separate or control: none may stand in the name of a cookie.
const COOKIE_NAME: &str = r#"^[^()<>@,;:\\"/\[\]?={} \t\x00-\x1f\x7f]+$"#;
const COOKIE_PATH: &str = r"^[^;\x00-\x1f\x7f]+$";

/// What is changed about headers.
pub fn headers(about: &str) -> Schema {
    object(
        about,
        [
            opt("set", list("Headers to set; a value that exists is replaced. Each header once.", header_value())),
            opt("remove", list("Names of headers to remove.", text(""))),
        ],
    )
}

fn header_value() -> Schema {
    object(
        "A header and its value.",
        [
            req(
                "name",
                text(
                    "Name of the header. Headers that frame a message or belong to a connection cannot be \
                     changed: Content-Length, Transfer-Encoding, Connection and others.",
                )
                .min_length(1),
            ),
            req(
                "value",
                text(
                    "Value of the header. `%REQ(name)%`, some of Envoy's operators such as \
                     `%DOWNSTREAM_REMOTE_ADDRESS%`, and `%CONTOUR_NAMESPACE%`, `%CONTOUR_SERVICE_NAME%`, \
                     `%CONTOUR_SERVICE_PORT%` are replaced; any other `%` is literal text.",
                )
                .min_length(1),
            ),
        ],
    )
}

/// What is changed about cookies.
pub fn cookies() -> Schema {
    let value = |about: &str, pattern: &str| {
        object(
            about,
            [req("value", text("New value of the attribute.").min_length(1).max_length(4096).pattern(pattern))],
        )
    };
    let cookie = object(
        "Changes of the attributes of one cookie in Set-Cookie headers of the backend. At least \
         one attribute must be set.",
        [
            req(
                "name",
                text("Name of the cookie; case-sensitive. Each cookie once.")
                    .min_length(1)
                    .max_length(4096)
                    .pattern(COOKIE_NAME),
            ),
            opt("pathRewrite", value("New attribute Path.", COOKIE_PATH)),
            opt("domainRewrite", value("New attribute Domain.", &format!("^{NAME}$"))),
            opt("secure", flag("Whether the cookie has the attribute Secure: browsers then send it over HTTPS only.")),
            opt(
                "sameSite",
                choice(
                    "New attribute SameSite: whether browsers send the cookie with requests from other sites.",
                    &["Strict", "Lax", "None"],
                ),
            ),
        ],
    );
    list("Changes of cookies that backends set.", cookie)
}

/// How an endpoint is chosen.
pub fn load_balancer() -> Schema {
    let named = |about: &str, field: &'static str| {
        object(about, [req(field, text("Name; for query parameters case-sensitive.").min_length(1))])
    };
    let hash = object(
        "A part of the hash: exactly one of headerHashOptions, queryParameterHashOptions and \
         hashSourceIP.",
        [
            opt("terminal", flag("If this part is present in the request, ignore the parts after it.")),
            opt("headerHashOptions", named("Hash the value of a request header.", "headerName")),
            opt("queryParameterHashOptions", named("Hash the value of a query parameter.", "parameterName")),
            opt("hashSourceIP", flag("Use the address of the client.")),
        ],
    );
    object(
        "How one of the endpoints of a Service is chosen.",
        [
            opt(
                "strategy",
                text(
                    "`RoundRobin` (default), `Random`, `WeightedLeastRequest` (the endpoint with the \
                     fewest requests of two chosen at random), `Cookie` (a session cookie that Envoy sets \
                     keeps a client on one endpoint) or `RequestHash` (requests with the same hash go to \
                     the same endpoint). Cookie and RequestHash have no effect on tcpproxy.",
                ),
            ),
            opt("requestHashPolicies", list("What the hash of the strategy RequestHash is made of, in order.", hash)),
        ],
    )
}

/// How backends are probed over HTTP.
pub fn health_check() -> Schema {
    let range = object(
        "A range of statuses: from start up to, but not including, end.",
        [
            req("start", number("First status of the range.").int64().min(100).max(599)),
            req("end", number("First status after the range.").int64().min(101).max(600)),
        ],
    );
    object(
        "Active health checks: every proxy sends requests to every endpoint and leaves out those \
         that fail. They come in addition to readiness probes of pods.",
        [
            req("path", text("Path of the requests, with a query if needed; begins with `/`.")),
            opt("host", text("Host header of the requests; `contour-envoy-healthcheck` if not set.")),
            opt("intervalSeconds", number("Seconds between two checks of an endpoint; 10 if not set.").int64()),
            opt("timeoutSeconds", number("Seconds after which a check has failed; 2 if not set.").int64()),
            opt(
                "unhealthyThresholdCount",
                number("Failures in a row after which an endpoint is not used; 3 if not set.").int64().min(0),
            ),
            opt(
                "healthyThresholdCount",
                number("Successes in a row after which an endpoint is used again; 2 if not set.").int64().min(0),
            ),
            opt("expectedStatuses", list("Statuses that count as healthy; 200 if not set.", range)),
        ],
    )
}

/// How many requests are taken.
pub fn rate_limit() -> Schema {
    let local = object(
        "A limit that each proxy counts for itself: with three proxies, three times as many \
         requests pass.",
        [
            req("requests", number("Number of requests in each unit of time.").int32().min(1)),
            req("unit", choice("Unit of time.", &["second", "minute", "hour"])),
            opt("burst", number("Number of additional requests that may come at once after a quiet time.").int32()),
            opt(
                "responseStatusCode",
                number("Status of requests that exceed the limit; 429 if not set.").int32().min(400).max(599),
            ),
            opt("responseHeadersToAdd", list("Headers added to these answers, such as retry-after.", header_value())),
        ],
    );
    object(
        "Rate limits. A local limit of a route replaces that of the virtual host.",
        [opt("local", local), opt("global", global_rate_limit())],
    )
}

/// What is asked of the rate limit service.
pub fn global_rate_limit() -> Schema {
    let matched = object(
        "An entry with the key `header_match` and a fixed value, if the headers of the request match.",
        [
            opt("headers", list("Conditions about headers; all must hold.", route::header()).min_items(1)),
            opt(
                "expectMatch",
                flag("Whether the headers must match (default) or, if false, must not match.").default(true),
            ),
            req("value", text("Value of the entry.").min_length(1)),
        ],
    );
    let entry = object(
        "An entry of the descriptor: exactly one of genericKey, requestHeader, \
         requestHeaderValueMatch and remoteAddress.",
        [
            opt(
                "genericKey",
                object(
                    "An entry with a fixed key and value.",
                    [
                        opt("key", text("Key of the entry; `generic_key` if not set.")),
                        req("value", text("Value of the entry.").min_length(1)),
                    ],
                ),
            ),
            opt(
                "requestHeader",
                object(
                    "An entry with the value of a request header. Without that header, the \
                     descriptor is not sent.",
                    [
                        req("headerName", text("Name of the request header.").min_length(1)),
                        req("descriptorKey", text("Key of the entry.").min_length(1)),
                    ],
                ),
            ),
            opt("requestHeaderValueMatch", matched),
            opt("remoteAddress", object("Use the address of the client.", [])),
        ],
    );
    let descriptor = object(
        "A descriptor: a list of entries that the rate limit service looks up its limit by.",
        [req("entries", list("Entries of the descriptor, in order.", entry).min_items(1))],
    );
    object(
        "Limits of the rate limit service, which counts for all proxies. Has no effect, with a \
         warning, unless the operator configures rateLimitService.",
        [
            opt(
                "disabled",
                flag(
                    "Do not ask the service; limits of the virtual host and the operator's default policy \
                     do not hold either.",
                ),
            ),
            opt(
                "descriptors",
                list(
                    "Descriptors sent to the rate limit service; a request that exceeds the limit of any \
                     of them is refused.",
                    descriptor,
                )
                .min_items(1),
            ),
        ],
    )
}

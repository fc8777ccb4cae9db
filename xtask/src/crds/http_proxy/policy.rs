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
            opt("set", list("Headers that are given a value, whatever they had.", header_value())),
            opt("remove", list("Headers that are taken away.", text(""))),
        ],
    )
}

fn header_value() -> Schema {
    object(
        "A header and its value.",
        [
            req("name", text("The header.").min_length(1)),
            req("value", text("The value; some %OPERATORS% stand for what a request has.").min_length(1)),
        ],
    )
}

/// What is changed about cookies.
pub fn cookies() -> Schema {
    let value = |about: &str, pattern: &str| {
        object(about, [req("value", text("The value.").min_length(1).max_length(4096).pattern(pattern))])
    };
    let cookie = object(
        "What is changed about one cookie that a backend sets.",
        [
            req("name", text("The cookie.").min_length(1).max_length(4096).pattern(COOKIE_NAME)),
            opt("pathRewrite", value("Its path.", COOKIE_PATH)),
            opt("domainRewrite", value("Its domain.", &format!("^{NAME}$"))),
            opt("secure", flag("Whether it is sent over HTTPS only.")),
            opt("sameSite", choice("Whether it is sent with requests from other sites.", &["Strict", "Lax", "None"])),
        ],
    );
    list("What is changed about the cookies of an answer.", cookie)
}

/// How an endpoint is chosen.
pub fn load_balancer() -> Schema {
    let named = |about: &str, field: &'static str| object(about, [req(field, text("Its name.").min_length(1))]);
    let hash = object(
        "A part of the hash: exactly one of the three.",
        [
            opt("terminal", flag("Nothing after this counts where this gives something.")),
            opt("headerHashOptions", named("A header.", "headerName")),
            opt("queryParameterHashOptions", named("A query parameter.", "parameterName")),
            opt("hashSourceIP", flag("The client's address.")),
        ],
    );
    object(
        "How an endpoint is chosen.",
        [
            opt("strategy", text("RoundRobin (the default), Random, WeightedLeastRequest, Cookie or RequestHash.")),
            opt("requestHashPolicies", list("What the hash of RequestHash is made of.", hash)),
        ],
    )
}

/// How backends are probed over HTTP.
pub fn health_check() -> Schema {
    let range = object(
        "Statuses from start to before end.",
        [
            req("start", number("The first.").int64().min(100).max(599)),
            req("end", number("The first that is no longer meant.").int64().min(101).max(600)),
        ],
    );
    object(
        "How backends are probed.",
        [
            req("path", text("The path that is asked for.")),
            opt("host", text("The host that is asked for.")),
            opt("intervalSeconds", number("Seconds between probes; 10 if absent.").int64()),
            opt("timeoutSeconds", number("Seconds that an answer may take; 2 if absent.").int64()),
            opt(
                "unhealthyThresholdCount",
                number("Failures after which a backend is not used; 3 if absent.").int64().min(0),
            ),
            opt("healthyThresholdCount", number("Successes after which it is used again; 2 if absent.").int64().min(0)),
            opt("expectedStatuses", list("The answers that are good; 200 if absent.", range)),
        ],
    )
}

/// How many requests are taken.
pub fn rate_limit() -> Schema {
    let local = object(
        "How many requests each proxy takes.",
        [
            req("requests", number("So many.").int32().min(1)),
            req("unit", choice("In this time.", &["second", "minute", "hour"])),
            opt("burst", number("So many more at once.").int32()),
            opt("responseStatusCode", number("The answer to one too many; 429 if absent.").int32().min(400).max(599)),
            opt("responseHeadersToAdd", list("Headers of that answer.", header_value())),
        ],
    );
    object("How many requests are taken.", [opt("local", local), opt("global", global_rate_limit())])
}

/// What is asked of the rate limit service.
pub fn global_rate_limit() -> Schema {
    let matched = object(
        "A fixed text, if headers are as they should be.",
        [
            opt("headers", list("What the headers should be.", route::header()).min_items(1)),
            opt("expectMatch", flag("Or, if false, should not be.").default(true)),
            req("value", text("The text.").min_length(1)),
        ],
    );
    let entry = object(
        "A part of a question: exactly one of the four.",
        [
            opt(
                "genericKey",
                object("A fixed text.", [opt("key", text("Its key.")), req("value", text("The text.").min_length(1))]),
            ),
            opt(
                "requestHeader",
                object(
                    "The value of a header.",
                    [
                        req("headerName", text("The header.").min_length(1)),
                        req("descriptorKey", text("The key.").min_length(1)),
                    ],
                ),
            ),
            opt("requestHeaderValueMatch", matched),
            opt("remoteAddress", object("The client's address.", [])),
        ],
    );
    let descriptor = object("One question.", [req("entries", list("Its parts.", entry).min_items(1))]);
    object(
        "What is asked of the rate limit service.",
        [
            opt("disabled", flag("Nothing, whatever is asked elsewhere.")),
            opt("descriptors", list("The questions.", descriptor).min_items(1)),
        ],
    )
}

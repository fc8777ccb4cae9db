//! Backends, and connections that go to them unread.

use super::{
    super::schema::{Schema, choice, duration, flag, list, number, object, opt, req, text},
    policy,
};

/// A backend.
pub fn service() -> Schema {
    object(
        "A port of a Service in this namespace.",
        [
            req("name", text("The Service.")),
            req("port", number("The port.").min(1).max(65535)),
            opt("healthPort", number("The port that is probed, if another.").min(1).max(65535)),
            opt("protocol", choice("What is spoken, if it is not what the Service says.", &["h2", "h2c", "tls"])),
            opt("weight", number("Its share.").int64().min(0)),
            opt("mirror", flag("It gets copies of requests, and nobody waits for its answers.")),
            opt("validation", validation()),
            opt("requestHeadersPolicy", policy::headers("What is changed about the headers of a request.")),
            opt("responseHeadersPolicy", policy::headers("What is changed about the headers of an answer.")),
            opt("cookieRewritePolicies", policy::cookies()),
            opt("slowStartPolicy", slow_start()),
        ],
    )
}

/// Whom to trust behind a TLS connection.
pub fn validation() -> Schema {
    let rule = "has(self.subjectNames) ? self.subjectNames[0] == self.subjectName : true";
    object(
        "Whom to trust.",
        [
            req("caSecret", text("The Secret with `ca.crt`: name or namespace/name.").min_length(1).max_length(317)),
            req("subjectName", text("The name that the certificate must have.").min_length(1).max_length(250)),
            opt("subjectNames", list("The names of which it must have one.", text("")).min_items(1).max_items(8)),
        ],
    )
    .rule(rule, "subjectNames[0] must equal subjectName if set")
}

fn slow_start() -> Schema {
    let aggression = text("How fast.").pattern("^([0-9]+([.][0-9]+)?|[.][0-9]+)$").default("1.0");
    object(
        "How new endpoints are eased in.",
        [
            req("window", duration("For how long.", &[])),
            opt("aggression", aggression),
            opt("minWeightPercent", number("The share to begin with.").int32().min(0).max(100).default(10)),
        ],
    )
}

/// Connections that go to backends unread.
pub fn tcp_proxy() -> Schema {
    let include = |about: &str| {
        object(
            about,
            [req("name", text("Its name.")), opt("namespace", text("Its namespace; that of this object if absent."))],
        )
    };
    let health = object(
        "How backends are probed.",
        [
            opt("intervalSeconds", number("Seconds between probes; 10 if absent.").int64()),
            opt("timeoutSeconds", number("Seconds that a connection may take; 2 if absent.").int64()),
            opt("unhealthyThresholdCount", number("Failures after which a backend is not used; 3 if absent.").int32()),
            opt("healthyThresholdCount", number("Successes after which it is used again; 2 if absent.").int32()),
        ],
    );
    object(
        "Connections that go to backends unread; the host must have TLS.",
        [
            opt("loadBalancerPolicy", policy::load_balancer()),
            opt("services", list("The backends and their shares.", service())),
            opt("include", include("A child that says where connections go.")),
            opt("includes", include("The same, under its older name.")),
            opt("healthCheckPolicy", health),
        ],
    )
}

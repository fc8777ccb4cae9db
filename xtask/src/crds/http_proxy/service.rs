//! Backends, and connections that go to them unread.

use super::{
    super::schema::{Schema, choice, duration, flag, list, number, object, opt, req, text},
    policy,
};

/// A backend.
pub fn service() -> Schema {
    object(
        "A port of a Service in the namespace of this HTTPProxy. One that does not exist is an error, and the other \
         services of the route get its share; a route without any answers 503.",
        [
            req("name", text("Name of the Service.")),
            req("port", number("Port of the Service: its number in spec.ports, not the targetPort.").min(1).max(65535)),
            opt(
                "healthPort",
                number("Port of the Service that active health checks use; the same as port if not set.")
                    .min(1)
                    .max(65535),
            ),
            opt(
                "protocol",
                choice(
                    "Protocol to the backend: `tls` (HTTP/1.1 over TLS), `h2` (HTTP/2 over TLS) or `h2c` \
                     (HTTP/2 without TLS). If not set, appProtocol of the port or the annotation \
                     projectcontour.io/upstream-protocol of the Service, else HTTP/1.1.",
                    &["h2", "h2c", "tls"],
                ),
            ),
            opt(
                "weight",
                number(
                    "Share of the requests, relative to the weights of the other services of the route. 0 \
                     is none; if all are 0 or not set, shares are equal. For a mirror: percentage of \
                     requests that are copied.",
                )
                .int64()
                .min(0),
            ),
            opt(
                "mirror",
                flag("Send copies of requests to this service and drop its responses. At most one for each route."),
            ),
            opt("validation", validation()),
            opt("requestHeadersPolicy", policy::headers("Changes of request headers for this service only.")),
            opt("responseHeadersPolicy", policy::headers("Changes of response headers of this service only.")),
            opt("cookieRewritePolicies", policy::cookies()),
            opt("slowStartPolicy", slow_start()),
        ],
    )
}

/// Whom to trust behind a TLS connection.
pub fn validation() -> Schema {
    let rule = "has(self.subjectNames) ? self.subjectNames[0] == self.subjectName : true";
    object(
        "Verification of the server certificate, for TLS protocols. Without it the certificate is \
         not verified.",
        [
            req(
                "caSecret",
                text(
                    "Secret whose key `ca.crt` has the CA certificates: `name`, or `namespace/name` with \
                     a TLSCertificateDelegation.",
                )
                .min_length(1)
                .max_length(317),
            ),
            req(
                "subjectName",
                text("DNS name that the certificate must have among its subject alternative names.")
                    .min_length(1)
                    .max_length(250),
            ),
            opt(
                "subjectNames",
                list("DNS names of which the certificate must have one. The first one equals subjectName.", text(""))
                    .min_items(1)
                    .max_items(8),
            ),
        ],
    )
    .rule(rule, "subjectNames[0] must equal subjectName if set")
}

fn slow_start() -> Schema {
    let aggression = text("How the share grows: 1.0 is linear, above that slower at first.")
        .pattern("^([0-9]+([.][0-9]+)?|[.][0-9]+)$")
        .default("1.0");
    object(
        "Slow start: a new endpoint gets its full share of requests only after a time. For \
         RoundRobin and WeightedLeastRequest.",
        [
            req("window", duration("Time until a new endpoint has its full share, such as `30s`.", &[])),
            opt("aggression", aggression),
            opt(
                "minWeightPercent",
                number("Percentage of its share that a new endpoint begins with.").int32().min(0).max(100).default(10),
            ),
        ],
    )
}

/// Connections that go to backends unread.
pub fn tcp_proxy() -> Schema {
    let include = |about: &str| {
        object(
            about,
            [
                req("name", text("Name of the HTTPProxy.")),
                opt("namespace", text("Namespace of the HTTPProxy; that of this object if not set.")),
            ],
        )
    };
    let health = object(
        "Active health checks: every proxy opens connections to every endpoint and leaves out \
         those that fail.",
        [
            opt("intervalSeconds", number("Seconds between two checks of an endpoint; 10 if not set.").int64()),
            opt("timeoutSeconds", number("Seconds after which a check has failed; 2 if not set.").int64()),
            opt(
                "unhealthyThresholdCount",
                number("Failures in a row after which an endpoint is not used; 3 if not set.").int32(),
            ),
            opt(
                "healthyThresholdCount",
                number("Successes in a row after which an endpoint is used again; 2 if not set.").int32(),
            ),
        ],
    );
    object(
        "Forward connections instead of requests. Requires tls: with passthrough they stay \
         encrypted, with secretName Envoy terminates TLS. Exactly one of services and include \
         must be set. Routes beside it are served over plaintext only.",
        [
            opt("loadBalancerPolicy", policy::load_balancer()),
            opt("services", list("Services that connections are forwarded to, by weight.", service())),
            opt("include", include("An HTTPProxy whose tcpproxy is used instead.")),
            opt("includes", include("Older name of include.")),
            opt("healthCheckPolicy", health),
        ],
    )
}

//! ExtensionService.

use super::{
    Names, crd as whole,
    http_proxy::{policy, route, service},
    schema::{Schema, choice, list, number, object, opt, req, root, text},
    status,
};
use serde_json::{Value, json};

/// The CRD for a group.
pub fn crd(group: &str) -> Value {
    let names = Names {
        kind: "ExtensionService",
        version: "v1alpha1",
        singular: "extensionservice",
        plural: "extensionservices",
        short: &["extensionservice", "extensionservices"],
    };
    let about = "ExtensionService names Services that proxies call themselves: authorization servers, the \
                 rate limit service, the trace collector.";
    let status =
        object("What Sesame made of the object; written by the controller.", [opt("conditions", status::conditions())]);
    whole(group, &names, root(about, spec(), status), json!([]))
}

fn spec() -> Schema {
    let target = object(
        "A port of a Service, and its share of the calls.",
        [
            req("name", text("Name of a Service in the namespace of this object; not one of type ExternalName.")),
            req("port", number("Port of the Service: its number in spec.ports.").min(1).max(65535)),
            opt(
                "weight",
                number("Share of the calls, relative to the other services; shares are equal if none is set.").int32(),
            ),
        ],
    );
    let limit = |about: &str| number(about).int32();
    let breakers = object(
        "Circuit breakers of each proxy; they replace the operator's cluster.circuit-breakers.",
        [
            opt("maxConnections", limit("Maximum number of connections; 1024 if not set.")),
            opt("maxPendingRequests", limit("Maximum number of requests that wait for a connection; 1024 if not set.")),
            opt("maxRequests", limit("Maximum number of parallel requests; 1024 if not set.")),
            opt("maxRetries", limit("Maximum number of parallel retries; 3 if not set.")),
            opt(
                "perHostMaxConnections",
                limit("Maximum number of connections to each endpoint; unlimited if not set."),
            ),
        ],
    );
    object(
        "The Services and how they are called.",
        [
            req("services", list("The Services that are called.", target).min_items(1)),
            opt(
                "protocol",
                choice(
                    "Protocol: `h2` (HTTP/2 over TLS, default), `h2c` (HTTP/2 without TLS) or `http/1.1`.",
                    &["h2", "h2c", "http/1.1"],
                ),
            ),
            opt("protocolVersion", choice("Version of Envoy's API that is used.", &["v3"])),
            opt("validation", service::validation()),
            opt("loadBalancerPolicy", policy::load_balancer()),
            opt("timeoutPolicy", route::timeouts()),
            opt("circuitBreakerPolicy", breakers),
        ],
    )
}

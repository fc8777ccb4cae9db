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
    let about = "Services that proxies ask: for authorization, rate limits, traces.";
    let status = object("What became of it.", [opt("conditions", status::conditions())]);
    whole(group, &names, root(about, spec(), status), json!([]))
}

fn spec() -> Schema {
    let target = object(
        "A Service and its share.",
        [
            req("name", text("The Service, in the namespace of this object.")),
            req("port", number("Its port.").min(1).max(65535)),
            opt("weight", number("Its share; all have the same where none has one.").int32()),
        ],
    );
    let limit = |about: &str| number(about).int32();
    let breakers = object(
        "How much each proxy asks at once; in place of what the operator sets.",
        [
            opt("maxConnections", limit("Connections; 1024 if absent.")),
            opt("maxPendingRequests", limit("Requests that wait for a connection; 1024 if absent.")),
            opt("maxRequests", limit("Requests in flight; 1024 if absent.")),
            opt("maxRetries", limit("Retries in flight; 3 if absent.")),
            opt("perHostMaxConnections", limit("Connections to one endpoint.")),
        ],
    );
    object(
        "What is asked for.",
        [
            req("services", list("The Services that are asked.", target).min_items(1)),
            opt(
                "protocol",
                choice("What is spoken: h2 (with TLS, the default), h2c or http/1.1.", &["h2", "h2c", "http/1.1"]),
            ),
            opt("protocolVersion", choice("The version of the API that they are asked in.", &["v3"])),
            opt("validation", service::validation()),
            opt("loadBalancerPolicy", policy::load_balancer()),
            opt("timeoutPolicy", route::timeouts()),
            opt("circuitBreakerPolicy", breakers),
        ],
    )
}

//! ContourConfiguration: the operator's settings. What each means stands in the table of `docs/configuration.md`.

mod envoy;

use super::{
    Names, crd as whole, http_proxy,
    schema::{Field, Schema, flag, list, number, object, opt, req, root, text, texts},
    status,
};
use serde_json::{Value, json};

/// The CRD for a group.
pub fn crd(group: &str) -> Value {
    let names = Names {
        kind: "ContourConfiguration",
        version: "v1alpha1",
        singular: "contourconfiguration",
        plural: "contourconfigurations",
        short: &["contourconfig"],
    };
    let status = object("What became of it.", [opt("conditions", status::conditions())]);
    let mut schema = root("The operator's settings.", spec(), status);
    schema["required"] = json!(["spec"]);
    whole(group, &names, schema, json!([]))
}

fn spec() -> Schema {
    object(
        "What is set.",
        [
            opt("xdsServer", xds_server()),
            opt("ingress", ingress()),
            opt("debug", object("Debug pages of Sesame.", any_bind())),
            opt("health", object("Health pages of Sesame.", bind())),
            opt("metrics", metrics("Metrics of Sesame.")),
            opt("envoy", envoy::envoy()),
            opt("gateway", gateway()),
            opt("httpproxy", http_proxies()),
            opt("enableExternalNameService", flag("Services of type ExternalName may be used.")),
            opt(
                "enableCrossNamespaceExtensionServices",
                flag("HTTPProxies may use ExtensionServices of all namespaces."),
            ),
            opt("globalExtAuth", http_proxy::security::authorization()),
            opt("rateLimitService", rate_limit_service()),
            opt("policy", policy()),
            opt("tracing", tracing()),
            opt("featureFlags", list("Features; none exist.", text(""))),
        ],
    )
}

/// An address and a port.
fn bind() -> [Field; 2] {
    [opt("address", text("The IP address.").min_length(1)), opt("port", number("The port."))]
}

fn any_bind() -> [Field; 2] {
    [opt("address", text("The IP address.")), opt("port", number("The port."))]
}

/// Where metrics are, and with which files over TLS.
fn metrics(about: &str) -> Schema {
    let both = "has(self.certFile) == has(self.keyFile)";
    let tls = object(
        "Files for metrics over TLS.",
        [
            opt("certFile", text("The certificate.")),
            opt("keyFile", text("Its private key.")),
            opt("caFile", text("The CA of clients; they need no certificate if absent.")),
        ],
    )
    .rule(both, "certFile and keyFile are needed together");
    object(
        about,
        [
            opt("address", text("The IP address.").min_length(1).max_length(253)),
            opt("port", number("The port.")),
            opt("tls", tls),
        ],
    )
}

/// An object of a namespace.
fn reference(about: &str) -> Schema {
    object(about, [req("namespace", text("Its namespace.")), req("name", text("Its name."))])
}

fn xds_server() -> Schema {
    let tls = object(
        "Files of the xDS server.",
        [
            opt("caFile", text("The CA of proxies.")),
            opt("certFile", text("The certificate.")),
            opt("keyFile", text("Its private key.")),
            opt("insecure", flag("No TLS at all.")),
        ],
    );
    let mut fields: Vec<Field> = bind().into();
    fields.push(opt("tls", tls));
    object("Where proxies connect to.", fields)
}

fn ingress() -> Schema {
    object(
        "Settings of Ingresses and HTTPProxies.",
        [
            opt("classNames", list("The classes that are served.", text(""))),
            opt("statusAddress", text("The addresses in their status, separated by commas.")),
        ],
    )
}

fn gateway() -> Schema {
    object("Settings of Gateway API.", [req("gatewayRef", reference("The Gateway of the shared fleet."))])
}

fn http_proxies() -> Schema {
    object(
        "Settings of HTTPProxies.",
        [
            opt("disablePermitInsecure", flag("permitInsecure has no effect.")),
            opt("rootNamespaces", list("The namespaces of roots; all if absent.", text(""))),
            opt("fallbackCertificate", reference("The Secret for clients without SNI.")),
        ],
    )
}

fn rate_limit_service() -> Schema {
    object(
        "The rate limit service.",
        [
            req("extensionService", reference("The ExtensionService.")),
            opt("domain", text("The domain of descriptors.")),
            opt("failOpen", flag("Requests pass when it does not answer.")),
            opt("enableXRateLimitHeaders", flag("Responses have x-ratelimit headers.")),
            opt("enableResourceExhaustedCode", flag("Limited gRPC requests are answered RESOURCE_EXHAUSTED.")),
            opt("addNamespace", flag("Descriptors begin with the namespace of their HTTPProxy.")),
            opt("defaultGlobalRateLimitPolicy", http_proxy::policy::global_rate_limit()),
        ],
    )
}

fn policy() -> Schema {
    let headers = |about: &str| {
        object(
            about,
            [opt("set", texts("Headers that are set.")), opt("remove", list("Headers that are removed.", text("")))],
        )
    };
    object(
        "Headers of every backend.",
        [
            opt("requestHeaders", headers("Of requests.")),
            opt("responseHeaders", headers("Of responses.")),
            opt("applyToIngress", flag("For Ingresses, too.")),
        ],
    )
}

fn tracing() -> Schema {
    let one = "has(self.literal) != has(self.requestHeaderName)";
    let tag = object(
        "A tag of spans.",
        [
            req("tagName", text("Its name.")),
            opt("literal", text("A fixed value.")),
            opt("requestHeaderName", text("The value of this header.")),
        ],
    )
    .rule(one, "exactly one of literal and requestHeaderName is needed");
    let percent = |about: &str| text(about);
    object(
        "Where spans are sent.",
        [
            req("extensionService", reference("The ExtensionService of the collector.")),
            opt("serviceName", text("The name of the service in spans.")),
            opt("overallSampling", percent("The most requests that are traced, in percent.")),
            opt("clientSampling", percent("Of those that clients want traced, in percent.")),
            opt("randomSampling", percent("Of all others, in percent.")),
            opt("maxPathTagLength", number("The longest path in a span.").int32()),
            opt("includePodDetail", flag("Spans have the name and the namespace of the pod.")),
            opt("customTags", list("More tags.", tag)),
        ],
    )
}

//! Keys about Sesame itself: how it reaches the API server, what objects may do, where it is looked at.

use super::row::{Row, rows};
use super::value::{BOOLEAN, Wrong, address, boolean, list, name, port, text, whole};
use kinds::{Node, Value};
use status::Addresses;

/// How the API server is reached, and what is logged.
pub const PROGRAM: &[Row] = rows! {
    works("debug", BOOLEAN, "false", "log everything down to debug", |c, n| c.debug = boolean(n)?);
    works("incluster", BOOLEAN, "false", "use the service account of the pod", |c, n| c.in_cluster = boolean(n)?);
    works("kubeconfig", "a path", "", "the kubeconfig; if not set the usual places are tried, then the service account", |c, n| c.kubeconfig = Some(name(n)?.into()));
    works("kubernetesClientQPS", "a number", "", "how often a second the API server may be asked; no limit if not set", |c, n| c.queries = queries(n)?);
    works("kubernetesClientBurst", "a number", "", "how often at once, after a rest; no limit if not set", |c, n| c.burst = Some(whole(n, 1, u32::MAX)?));
    works("featureFlags", "a list of names", "[]", "what is tried out; of Contour's, `useEndpointSlices` always holds", |_c, n| list(n, feature)?);
    nothing("server.xds-server-type", "which xDS server is used", "there is only one");
};

/// What objects may do, and what is said on them.
pub const OBJECTS: &[Row] = rows! {
    works("ingress-status-address", "IP addresses or host names, separated by commas", "", "the addresses in the status of Ingresses; those of the proxies' Service if not set", |c, n| c.addresses = addresses(n)?);
    works("envoy-service-namespace", "a name", "", "the namespace of the proxies' Service; Sesame's own if not set", |c, n| c.envoy_service_namespace = Some(name(n)?));
    works("envoy-service-name", "a name", "envoy", "the name of the proxies' Service", |c, n| c.envoy_service_name = name(n)?);
    works("enableExternalNameService", BOOLEAN, "false", "follow Services of type ExternalName: whoever may write one chooses what proxies connect to", |c, n| c.pipeline.resolve.external_names = boolean(n)?);
    works("disablePermitInsecure", BOOLEAN, "false", "`permitInsecure` of an HTTPProxy has no effect", |c, n| c.pipeline.http_proxy.disable_permit_insecure = boolean(n)?);
    not_yet("gateway.gatewayRef.namespace", "the namespace of the Gateway that is served");
    not_yet("gateway.gatewayRef.name", "the name of that Gateway");
    not_yet("gateway.controllerName", "the controller name of the GatewayClasses that are served");
};

/// Where figures are shown.
pub const METRICS: &[Row] = rows! {
    works("metrics.contour.address", "an IP address", "0.0.0.0", "where Sesame shows its metrics; `metrics.sesame` is the same", |c, n| c.metrics.address = address(n)?);
    works("metrics.contour.port", "a port", "8000", "the port of that", |c, n| c.metrics.port = port(n)?);
    not_yet("metrics.contour.server-certificate-path", "the certificate, for metrics over TLS");
    not_yet("metrics.contour.server-key-path", "the key of that certificate");
    not_yet("metrics.contour.ca-certificate-path", "the CA of those who may read metrics");
    not_yet("metrics.envoy.address", "where proxies show their metrics, if not where they answer probes");
    not_yet("metrics.envoy.port", "the port of that");
    not_yet("metrics.envoy.server-certificate-path", "the certificate, for metrics over TLS");
    not_yet("metrics.envoy.server-key-path", "the key of that certificate");
    not_yet("metrics.envoy.ca-certificate-path", "the CA of those who may read metrics");
    not_yet("omEnforcedHealthListener.address", "where proxies answer probes only as the overload manager lets them");
    not_yet("omEnforcedHealthListener.port", "the port of that");
};

/// Other services that proxies ask.
pub const SERVICES: &[Row] = rows! {
    not_yet("rateLimitService.extensionService", "the ExtensionService of global rate limits, `namespace/name`");
    not_yet("rateLimitService.domain", "the domain it is asked with");
    not_yet("rateLimitService.failOpen", "whether requests pass when it does not answer");
    not_yet("rateLimitService.enableXRateLimitHeaders", "whether answers have `x-ratelimit` headers");
    not_yet("rateLimitService.enableResourceExhaustedCode", "whether gRPC is answered with RESOURCE_EXHAUSTED");
    not_yet("rateLimitService.defaultGlobalRateLimitPolicy", "what holds for hosts that say nothing");
    not_yet("globalExtAuth.extensionService", "the ExtensionService that decides about requests, `namespace/name`");
    not_yet("globalExtAuth.serviceType", "what that service speaks");
    not_yet("globalExtAuth.httpSettings", "what it is sent over HTTP");
    not_yet("globalExtAuth.failOpen", "whether requests pass when it does not answer");
    not_yet("globalExtAuth.authPolicy", "what holds for routes that say nothing");
    not_yet("globalExtAuth.responseTimeout", "how long it may take");
    not_yet("globalExtAuth.withRequestBody", "how much of a request's body it is sent");
    not_yet("tracing.extensionService", "the ExtensionService that takes traces, `namespace/name`");
    not_yet("tracing.serviceName", "the name of the service in traces");
    not_yet("tracing.overallSampling", "how many of a hundred requests are traced at most");
    not_yet("tracing.clientSampling", "how many of those that the client wants traced");
    not_yet("tracing.randomSampling", "how many of all others");
    not_yet("tracing.maxPathTagLength", "how much of the path a trace has");
    not_yet("tracing.includePodDetail", "whether a trace names the pod");
    not_yet("tracing.customTags", "what else a trace has");
};

fn addresses(node: &Node<'_>) -> Result<Option<Addresses>, Wrong> {
    let text = text(node)?;
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error: status::address::NotAnAddress| Wrong::new(error.to_string()))
}

fn queries(node: &Node<'_>) -> Result<Option<f64>, Wrong> {
    match node.value {
        Value::Int(number) => Ok(Some(number as f64)),
        Value::Float(number) if number.is_finite() => Ok(Some(number)),
        _ => Err(Wrong::new(format!("expected a number, found {}", node.describe()))),
    }
}

fn feature(node: &Node<'_>) -> Result<(), Wrong> {
    match &*text(node)? {
        "useEndpointSlices" | "useEndpointSlices=true" => Ok(()),
        other => Err(Wrong::new(format!("there is no feature `{other}`"))),
    }
}

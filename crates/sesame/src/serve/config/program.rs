//! Keys about Sesame itself: how it reaches the API server, what objects may do, where it is looked at.

use super::row::{Row, rows};
use super::value::{BOOLEAN, Wrong, address, boolean, list, name, port, text, whole};
use kinds::{Node, Value};
use status::Addresses;

/// How the API server is reached, and what is logged.
pub const PROGRAM: &[Row] = rows! {
    works("debug", BOOLEAN, "false", "log at level debug", |c, n| c.debug = boolean(n)?);
    works("incluster", BOOLEAN, "false", "connect to the API server with the pod's service account", |c, n| c.in_cluster = boolean(n)?);
    works("kubeconfig", "a path", "", "path of the kubeconfig; if not set, KUBECONFIG, ~/.kube/config, then the pod's service account", |c, n| c.kubeconfig = Some(name(n)?.into()));
    works("kubernetesClientQPS", "a number", "", "maximum requests per second to the API server; unlimited if not set", |c, n| c.queries = queries(n)?);
    works("kubernetesClientBurst", "a number", "", "maximum burst of requests to the API server; unlimited if not set", |c, n| c.burst = Some(whole(n, 1, u32::MAX)?));
    works("featureFlags", "a list of names", "[]", "feature flags; Contour's `useEndpointSlices` is always on", |_c, n| list(n, feature)?);
    nothing("server.xds-server-type", "xDS server implementation", "there is only one");
};

/// What objects may do, and what is said on them.
pub const OBJECTS: &[Row] = rows! {
    works("ingress-status-address", "IP addresses or host names, separated by commas", "", "addresses published in `status.loadBalancer`; those of the Envoy Service if not set", |c, n| c.addresses = addresses(n)?);
    works("envoy-service-namespace", "a name", "", "namespace of the Envoy Service; that of Sesame if not set", |c, n| c.envoy_service_namespace = Some(name(n)?));
    works("envoy-service-name", "a name", "envoy", "name of the Envoy Service", |c, n| c.envoy_service_name = name(n)?);
    works("enableExternalNameService", BOOLEAN, "false", "allow Services of type ExternalName; anyone who can write one chooses what Envoy connects to", |c, n| c.pipeline.resolve.external_names = boolean(n)?);
    works("disablePermitInsecure", BOOLEAN, "false", "ignore `permitInsecure` of HTTPProxies", |c, n| c.pipeline.http_proxy.disable_permit_insecure = boolean(n)?);
    works("gateway.gatewayRef.namespace", "a name", "", "namespace of a Gateway that the shared fleet serves, whatever its class; with --disable-fleets no other is served", |c, n| c.gateway.0 = Some(name(n)?));
    works("gateway.gatewayRef.name", "a name", "", "name of that Gateway", |c, n| c.gateway.1 = Some(name(n)?));
    works("gateway.controllerName", "a name", "projectsesame.io/gateway-controller", "controller name of the GatewayClasses whose Gateways are served", |c, n| c.pipeline.gateway.controller = name(n)?.into());
};

/// Where figures are shown.
pub const METRICS: &[Row] = rows! {
    works("metrics.contour.address", "an IP address", "0.0.0.0", "listen address of Sesame's metrics; `metrics.sesame` is an alias", |c, n| c.metrics.address = address(n)?);
    works("metrics.contour.port", "a port", "8000", "listen port of Sesame's metrics", |c, n| c.metrics.port = port(n)?);
    not_yet("metrics.contour.server-certificate-path", "certificate, for metrics over TLS");
    not_yet("metrics.contour.server-key-path", "private key of the certificate");
    not_yet("metrics.contour.ca-certificate-path", "CA bundle that client certificates must chain to");
    not_yet("metrics.envoy.address", "listen address of Envoy's metrics, if apart from readiness");
    not_yet("metrics.envoy.port", "listen port of Envoy's metrics");
    not_yet("metrics.envoy.server-certificate-path", "certificate, for metrics over TLS");
    not_yet("metrics.envoy.server-key-path", "private key of the certificate");
    not_yet("metrics.envoy.ca-certificate-path", "CA bundle that client certificates must chain to");
    not_yet("omEnforcedHealthListener.address", "listen address of a readiness endpoint that obeys the overload manager");
    not_yet("omEnforcedHealthListener.port", "listen port of that endpoint");
};

/// Other services that proxies ask.
pub const SERVICES: &[Row] = rows! {
    not_yet("globalExtAuth.extensionService", "ExtensionService of the authorization server, `namespace/name`");
    not_yet("globalExtAuth.serviceType", "protocol of the authorization server");
    not_yet("globalExtAuth.httpSettings", "settings of HTTP authorization servers");
    not_yet("globalExtAuth.failOpen", "allow requests when the service is unavailable");
    not_yet("globalExtAuth.authPolicy", "authorization policy of routes without one");
    not_yet("globalExtAuth.responseTimeout", "response timeout");
    not_yet("globalExtAuth.withRequestBody", "how much of the request body is sent to the authorization server");
    not_yet("tracing.extensionService", "ExtensionService of the trace collector, `namespace/name`");
    not_yet("tracing.serviceName", "service name in traces");
    not_yet("tracing.overallSampling", "maximum percentage of requests traced");
    not_yet("tracing.clientSampling", "percentage of requests traced when the client forces tracing");
    not_yet("tracing.randomSampling", "percentage of requests sampled at random");
    not_yet("tracing.maxPathTagLength", "maximum length of the path tag");
    not_yet("tracing.includePodDetail", "add the pod's name and namespace to traces");
    not_yet("tracing.customTags", "additional tags");
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

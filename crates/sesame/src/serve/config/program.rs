//! Keys about Sesame itself: how it reaches the API server, what objects may do, where it is looked at.

use super::row::{Row, rows};
use super::value::{BOOLEAN, Wrong, address, boolean, list, name, port, text, whole};
use kinds::{Node, Value};
use status::Addresses;
use std::path::PathBuf;

/// How the API server is reached, and what is logged.
pub const PROGRAM: &[Row] = rows! {
    works("debug", BOOLEAN, "false", "log at level debug", |c, n| c.debug = boolean(n)?);
    at_start("incluster", BOOLEAN, "false", "connect to the API server with the pod's service account", |c, n| c.in_cluster = boolean(n)?);
    at_start("kubeconfig", "a path", "", "path of the kubeconfig; if not set, KUBECONFIG, ~/.kube/config, then the pod's service account", |c, n| c.kubeconfig = Some(name(n)?.into()));
    at_start("kubernetesClientQPS", "a number", "", "maximum requests per second to the API server; unlimited if not set", |c, n| c.queries = queries(n)?);
    at_start("kubernetesClientBurst", "a number", "", "maximum burst of requests to the API server; unlimited if not set", |c, n| c.burst = Some(whole(n, 1, u32::MAX)?));
    works("featureFlags" = "featureFlags", "a list of names", "[]", "feature flags; Contour's `useEndpointSlices` is always on", |_c, n| list(n, feature)?);
    nothing("server.xds-server-type", "xDS server implementation", "there is only one");
};

/// What objects may do, and what is said on them.
pub const OBJECTS: &[Row] = rows! {
    works("ingress-status-address" = "ingress.statusAddress", "IP addresses or host names, separated by commas", "", "addresses published in `status.loadBalancer`; those of the Envoy Service if not set", |c, n| c.addresses = addresses(n)?);
    works("envoy-service-namespace" = "envoy.service.namespace", "a name", "", "namespace of the Envoy Service; that of Sesame if not set", |c, n| c.envoy_service_namespace = Some(name(n)?));
    works("envoy-service-name" = "envoy.service.name", "a name", "envoy", "name of the Envoy Service", |c, n| c.envoy_service_name = name(n)?);
    works("enableExternalNameService" = "enableExternalNameService", BOOLEAN, "false", "allow Services of type ExternalName; anyone who can write one chooses what Envoy connects to", |c, n| c.pipeline.resolve.external_names = boolean(n)?);
    works("enableCrossNamespaceExtensionServices" = "enableCrossNamespaceExtensionServices", BOOLEAN, "false", "let HTTPProxies of every namespace use every ExtensionService, as in Contour; otherwise one of another namespace needs a ReferenceGrant, unless it is in the namespace of Sesame or named in the configuration; Sesame only", |c, n| c.pipeline.http_proxy.open_extensions.all = boolean(n)?);
    works("disablePermitInsecure" = "httpproxy.disablePermitInsecure", BOOLEAN, "false", "ignore `permitInsecure` of HTTPProxies", |c, n| c.pipeline.http_proxy.disable_permit_insecure = boolean(n)?);
    works("gateway.gatewayRef.namespace" = "gateway.gatewayRef.namespace", "a name", "", "namespace of a Gateway that the shared fleet serves, whatever its class; with --disable-fleets no other is served", |c, n| c.gateway.0 = Some(name(n)?));
    works("gateway.gatewayRef.name" = "gateway.gatewayRef.name", "a name", "", "name of that Gateway", |c, n| c.gateway.1 = Some(name(n)?));
    works("gateway.controllerName", "a name", "projectsesame.io/gateway-controller", "controller name of the GatewayClasses whose Gateways are served", |c, n| c.pipeline.gateway.controller = name(n)?.into());
};

/// Where Sesame is reached, by proxies and by people: flags say this where there is no object.
pub const SERVER: &[Row] = rows! {
    at_start("" = "xdsServer.address", "an IP address", "0.0.0.0", "listen address of the xDS server", |c, n| c.xds.address = address(n)?);
    at_start("" = "xdsServer.port", "a port", "8001", "listen port of the xDS server", |c, n| c.xds.port = port(n)?);
    at_start("" = "xdsServer.tls.caFile", "a path", "/certs/ca.crt", "CA bundle that client certificates of proxies must chain to", |c, n| c.xds_tls.ca = Some(name(n)?.into()));
    at_start("" = "xdsServer.tls.certFile", "a path", "/certs/tls.crt", "certificate of the xDS server", |c, n| c.xds_tls.certificate = Some(name(n)?.into()));
    at_start("" = "xdsServer.tls.keyFile", "a path", "/certs/tls.key", "private key of the xDS server", |c, n| c.xds_tls.key = Some(name(n)?.into()));
    at_start("" = "xdsServer.tls.insecure", BOOLEAN, "false", "serve xDS without TLS", |c, n| c.xds_tls.insecure = boolean(n)?);
    works("" = "health.address", "an IP address", "0.0.0.0", "listen address of /healthz and /readyz", |c, n| c.health.address = address(n)?);
    works("" = "health.port", "a port", "8000", "listen port of /healthz and /readyz", |c, n| c.health.port = port(n)?);
    works("" = "debug.address", "an IP address", "127.0.0.1", "listen address of /debug", |c, n| c.debug_pages.address = address(n)?);
    works("" = "debug.port", "a port", "6060", "listen port of /debug", |c, n| c.debug_pages.port = port(n)?);
    works("" = "ingress.classNames", "a list of names", "[]", "ingress classes to serve, for Ingress and HTTPProxy", |c, n| c.class_names = names(n)?);
    works("" = "httpproxy.rootNamespaces", "a list of names", "[]", "namespaces that may contain root HTTPProxies; all if empty", |c, n| c.root_namespaces = names(n)?);
    works("" = "envoy.http.address", "an IP address", "0.0.0.0", "address of Envoy's HTTP listener", |c, n| c.pipeline.http.address = address(n)?);
    works("" = "envoy.http.port", "a port", "8080", "port of Envoy's HTTP listener", |c, n| c.pipeline.http.port = port(n)?);
    works("" = "envoy.http.accessLog", "a path", "/dev/stdout", "access log path of the HTTP listener", |c, n| c.pipeline.http_settings.access_log.path = name(n)?.into());
    works("" = "envoy.https.address", "an IP address", "0.0.0.0", "address of Envoy's HTTPS listener", |c, n| c.pipeline.https.address = address(n)?);
    works("" = "envoy.https.port", "a port", "8443", "port of Envoy's HTTPS listener", |c, n| c.pipeline.https.port = port(n)?);
    works("" = "envoy.https.accessLog", "a path", "/dev/stdout", "access log path of the HTTPS listener", |c, n| c.pipeline.https_settings.access_log.path = name(n)?.into());
    works("" = "envoy.listener.useProxyProtocol", BOOLEAN, "false", "require the PROXY protocol on downstream connections", |c, n| { let on = boolean(n)?; c.each(|http| http.proxy_protocol = on) });
    works("" = "envoy.health.address", "an IP address", "0.0.0.0", "address of Envoy's readiness listener", |c, n| c.pipeline.stats.address = address(n)?);
    works("" = "envoy.health.port", "a port", "8002", "port of Envoy's readiness listener", |c, n| c.pipeline.stats.port = port(n)?);
};

/// Where figures are shown.
pub const METRICS: &[Row] = rows! {
    works("metrics.contour.address" = "metrics.address", "an IP address", "0.0.0.0", "listen address of Sesame's metrics; `metrics.sesame` is an alias", |c, n| c.metrics.address = address(n)?);
    works("metrics.contour.port" = "metrics.port", "a port", "8000", "listen port of Sesame's metrics", |c, n| c.metrics.port = port(n)?);
    works("metrics.contour.server-certificate-path" = "metrics.tls.certFile", "a path", "", "certificate, for metrics over TLS; read again when it changes", |c, n| c.metrics_tls.certificate = path(n)?);
    works("metrics.contour.server-key-path" = "metrics.tls.keyFile", "a path", "", "private key of the certificate", |c, n| c.metrics_tls.key = path(n)?);
    works("metrics.contour.ca-certificate-path" = "metrics.tls.caFile", "a path", "", "CA bundle that client certificates must chain to; clients need none if not set", |c, n| c.metrics_tls.ca = path(n)?);
    works("metrics.envoy.address" = "envoy.metrics.address", "an IP address", "", "listen address of Envoy's metrics; that of readiness if not set", |c, n| c.envoy_metrics.0 = Some(address(n)?));
    works("metrics.envoy.port" = "envoy.metrics.port", "a port", "", "listen port of Envoy's metrics; that of readiness if not set", |c, n| c.envoy_metrics.1 = Some(port(n)?));
    works("metrics.envoy.server-certificate-path" = "envoy.metrics.tls.certFile", "a path", "", "certificate in Envoy's container, for metrics over TLS; needs a port apart from readiness", |c, n| c.envoy_metrics_tls.certificate = path(n)?);
    works("metrics.envoy.server-key-path" = "envoy.metrics.tls.keyFile", "a path", "", "private key of the certificate", |c, n| c.envoy_metrics_tls.key = path(n)?);
    works("metrics.envoy.ca-certificate-path" = "envoy.metrics.tls.caFile", "a path", "", "CA bundle that client certificates must chain to; clients need none if not set", |c, n| c.envoy_metrics_tls.ca = path(n)?);
    works("omEnforcedHealthListener.address" = "envoy.omEnforcedHealth.address", "an IP address", "", "listen address of a readiness endpoint that obeys the overload manager; 0.0.0.0 if only the port is set", |c, n| c.overload_health.0 = Some(address(n)?));
    works("omEnforcedHealthListener.port" = "envoy.omEnforcedHealth.port", "a port", "", "listen port of that endpoint; there is none if not set", |c, n| c.overload_health.1 = Some(port(n)?));
};

/// A path; nothing if it is empty.
fn path(node: &Node<'_>) -> Result<Option<PathBuf>, Wrong> {
    Ok(Some(text(node)?).filter(|path| !path.is_empty()).map(Into::into))
}

fn names(node: &Node<'_>) -> Result<Vec<Box<str>>, Wrong> {
    list(node, |item| name(item).map(Into::into))
}

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

//! Every key of the file, and every field of the object, and what it does to the plan.

use super::*;
use crate::serve::config::row::Effect;
use crate::serve::config::rows;
use crate::serve::config::tests::file_with;
use std::num::NonZeroU32;

/// Every key that takes effect: a value, and what it does.
const KEYS: &[(&str, &str, Check)] = &[
    ("debug", "true", |p| p.verbose),
    ("incluster", "true", |p| p.access.in_cluster),
    ("kubeconfig", "/k", |p| p.access.kubeconfig.as_deref() == Some(Path::new("/k"))),
    ("kubernetesClientQPS", "12.5", |p| p.access.rate == Some(Rate { per_second: 12.5, burst: 13 })),
    ("kubernetesClientBurst", "40", |p| p.access.rate == Some(Rate { per_second: 5.0, burst: 40 })),
    (
        "ingress-status-address",
        "10.0.0.1,a.example",
        |p| matches!(&p.status.addresses, Addresses::Fixed(two) if two.len() == 2),
    ),
    ("envoy-service-namespace", "edge", |p| p.status.addresses == Addresses::of_service("edge", "envoy")),
    ("envoy-service-name", "proxies", |p| p.status.addresses == Addresses::of_service("projectsesame", "proxies")),
    ("enableExternalNameService", "true", |p| p.pipeline.resolve.external_names),
    ("enableCrossNamespaceExtensionServices", "true", |p| p.pipeline.http_proxy.open_extensions.all),
    ("gateway.controllerName", "example.com/gateways", |p| {
        &*p.pipeline.gateway.controller == "example.com/gateways" && p.status.controller == "example.com/gateways"
    }),
    ("disablePermitInsecure", "true", |p| p.pipeline.http_proxy.disable_permit_insecure),
    ("accesslog-format", "json", both!(|http| http.access_log.format == AccessLogFormat::Json(Vec::new()))),
    (
        "accesslog-format-string",
        "'%DURATION%'",
        both!(|http| http.access_log.format == AccessLogFormat::Text("%DURATION%\n".into())),
    ),
    ("accesslog-level", "error", both!(|http| http.access_log.level == AccessLogLevel::Error)),
    (
        "accesslog-failed-handshakes-per-second",
        "7",
        both!(|http| http.access_log.handshakes_per_second == NonZeroU32::new(7)),
    ),
    ("tls.minimum-protocol-version", "1.3", |p| {
        p.pipeline.ingress.tls.lowest == TlsVersion::V1_3
            && [p.pipeline.http_proxy.tls, p.pipeline.emissary.tls] == [p.pipeline.ingress.tls; 2]
    }),
    ("tls.maximum-protocol-version", "'1.2'", |p| {
        p.pipeline.ingress.tls.highest == TlsVersion::V1_2 && p.pipeline.http_proxy.tls == p.pipeline.ingress.tls
    }),
    ("tls.cipher-suites", "[AES128-SHA, AES128-SHA]", |p| p.pipeline.connections.ciphers == ["AES128-SHA".into()]),
    ("tls.ecdh-curves", "[P-256]", |p| p.pipeline.connections.curves == ["P-256".into()]),
    ("tls.fingerprint.ja3", "true", |p| p.pipeline.connections.ja3),
    ("tls.fingerprint.ja4", "true", |p| p.pipeline.connections.ja4),
    ("timeouts.request-timeout", "1m", both!(|http| http.request == after(60))),
    ("timeouts.connection-idle-timeout", "infinity", both!(|http| http.connection_idle == Timeout::Infinite)),
    ("timeouts.stream-idle-timeout", "30s", both!(|http| http.stream_idle == after(30))),
    ("timeouts.max-connection-duration", "1h", both!(|http| http.max_connection == after(3600))),
    ("timeouts.delayed-close-timeout", "3s", both!(|http| http.delayed_close == after(3))),
    ("timeouts.connection-shutdown-grace-period", "9s", both!(|http| http.drain == after(9))),
    ("timeouts.connect-timeout", "250ms", |p| p.pipeline.cluster.connect_timeout == Duration::from_millis(250)),
    ("compression.algorithm", "zstd", both!(|http| http.compression == Compression::Zstd)),
    ("serverHeaderTransformation", "pass_through", both!(|http| http.server_header == ServerHeader::PassThrough)),
    ("disableMergeSlashes", "true", both!(|http| !http.merge_slashes)),
    ("disableAllowChunkedLength", "true", both!(|http| !http.chunked_length)),
    ("headersWithUnderscores", "reject", both!(|http| http.underscores == HeadersWithUnderscores::Reject)),
    ("network.num-trusted-hops", "2", both!(|http| http.trusted_hops == 2)),
    ("network.admin-port", "9001", |p| p.pipeline.admin_port == 9001),
    ("listener.local-reply-body", "empty", both!(|http| http.local_reply_body == LocalReplyBody::Empty)),
    ("default-http-versions", "[HTTP/2]", both!(|http| http.versions == HttpVersions::Http2)),
    ("listener.connection-balancer", "exact", |p| p.pipeline.connections.even_balance),
    ("listener.max-requests-per-connection", "7", both!(|http| http.max_requests == Some(7))),
    ("listener.per-connection-buffer-limit-bytes", "4096", |p| p.pipeline.connections.buffer == 4096),
    ("listener.socket-options.tos", "64", |p| p.pipeline.connections.type_of_service == 64),
    ("listener.socket-options.traffic-class", "32", |p| p.pipeline.connections.traffic_class == 32),
    ("listener.http2-max-concurrent-streams", "5", both!(|http| http.max_streams == 5)),
    ("listener.max-connections-to-accept-per-socket-event", "3", |p| {
        p.pipeline.connections.accepted_at_once == Some(3)
    }),
    ("cluster.dns-lookup-family", "all", |p| p.pipeline.cluster.dns_family == DnsFamily::All),
    ("cluster.max-requests-per-connection", "8", |p| p.pipeline.cluster.max_requests == Some(8)),
    ("cluster.per-connection-buffer-limit-bytes", "8192", |p| p.pipeline.cluster.buffer == Some(8192)),
    ("cluster.circuit-breakers.max-connections", "1", |p| p.pipeline.cluster.breakers.max_connections == Some(1)),
    ("cluster.circuit-breakers.max-pending-requests", "2", |p| {
        p.pipeline.cluster.breakers.max_pending_requests == Some(2)
    }),
    ("cluster.circuit-breakers.max-requests", "3", |p| p.pipeline.cluster.breakers.max_requests == Some(3)),
    ("cluster.circuit-breakers.max-retries", "4", |p| p.pipeline.cluster.breakers.max_retries == Some(4)),
    ("cluster.circuit-breakers.per-host-max-connections", "5", |p| {
        p.pipeline.cluster.breakers.per_host_max_connections == Some(5)
    }),
    ("cluster.upstream-tls.minimum-protocol-version", "1.3", |p| p.pipeline.cluster.tls.lowest == TlsVersion::V1_3),
    ("cluster.upstream-tls.maximum-protocol-version", "1.2", |p| p.pipeline.cluster.tls.highest == TlsVersion::V1_2),
    ("cluster.upstream-tls.cipher-suites", "[AES256-SHA]", |p| p.pipeline.cluster.ciphers == ["AES256-SHA".into()]),
    ("cluster.upstream-tls.ecdh-curves", "[X25519]", |p| p.pipeline.cluster.curves == ["X25519".into()]),
    ("policy.request-headers.set", "{X-A: '%CONTOUR_NAMESPACE% %REQ(x-b)%'}", |p| {
        p.pipeline.http_proxy.request_headers.set.len() == 1 && p.pipeline.ingress.request_headers.set.is_empty()
    }),
    ("policy.request-headers.remove", "[X-B]", |p| p.pipeline.http_proxy.request_headers.remove.len() == 1),
    ("policy.response-headers.set", "{X-C: 1}", |p| p.pipeline.http_proxy.response_headers.set.len() == 1),
    ("policy.response-headers.remove", "[X-D]", |p| p.pipeline.http_proxy.response_headers.remove.len() == 1),
    ("metrics.contour.address", "127.0.0.1", |p| p.metrics == "127.0.0.1:8000".parse().unwrap()),
    ("metrics.contour.port", "9000", |p| p.metrics == "0.0.0.0:9000".parse().unwrap()),
    ("metrics.envoy.port", "9003", |p| p.pipeline.metrics == Some(Bind::any(9003))),
    ("omEnforcedHealthListener.port", "9004", |p| p.pipeline.overload_health == Some(Bind::any(9004))),
    ("rateLimitService.extensionService", "edge/limits", |p| {
        p.pipeline.rate_limit_service.as_ref().is_some_and(|(extension, _)| &*extension.name == "limits")
    }),
    ("globalExtAuth.extensionService", "edge/auth", |p| {
        p.pipeline.authorization.as_ref().is_some_and(|server| &*server.extension.name == "auth")
    }),
    ("tracing.extensionService", "edge/otel", |p| {
        p.pipeline.tracing.as_ref().is_some_and(|(extension, _)| &*extension.name == "otel")
    }),
    ("listener.max-requests-per-io-cycle", "2", |p| p.pipeline.runtime.max_requests_per_io_cycle == Some(2)),
    ("listener.max-connections-per-listener", "9", |p| p.pipeline.runtime.max_connections == Some(9)),
    ("runtime-settings", "{a.b: true, c: '7', d: 1.5}", |p| {
        let values: Vec<(&str, &str)> =
            p.pipeline.runtime.values.iter().map(|(key, value)| (&**key, &**value)).collect();
        values == [("a.b", "true"), ("c", "7"), ("d", "1.5")]
    }),
];

/// Every field of ContourConfiguration that the file has no key for: a value, and what it does.
const FIELDS: &[(&str, &str, Check)] = &[
    ("xdsServer.address", "127.0.0.9", |p| p.xds.to_string() == "127.0.0.9:8001"),
    ("xdsServer.port", "9", |p| p.xds.port() == 9),
    ("xdsServer.tls.caFile", "/ca", |p| p.security.as_ref().unwrap().ca == Path::new("/ca")),
    ("xdsServer.tls.certFile", "/cert", |p| p.security.as_ref().unwrap().certificate == Path::new("/cert")),
    ("xdsServer.tls.keyFile", "/key", |p| p.security.as_ref().unwrap().key == Path::new("/key")),
    ("xdsServer.tls.insecure", "true", |p| p.security.is_none()),
    ("health.address", "127.0.0.1", |p| p.health.to_string() == "127.0.0.1:8000"),
    ("health.port", "9", |p| p.health.port() == 9),
    ("debug.address", "127.0.0.2", |p| p.debug.to_string() == "127.0.0.2:6060"),
    ("debug.port", "9", |p| p.debug.port() == 9),
    ("ingress.classNames", "[a, b]", |p| {
        p.pipeline.ingress.class_names == ["a".into(), "b".into()] && p.pipeline.http_proxy.class_names.len() == 2
    }),
    ("httpproxy.rootNamespaces", "[a]", |p| p.pipeline.http_proxy.root_namespaces == ["a".into()]),
    ("envoy.http.address", "127.0.0.1", |p| p.pipeline.http.to_string() == "127.0.0.1:8080"),
    ("envoy.http.port", "80", |p| p.pipeline.http == Bind::any(80)),
    ("envoy.http.accessLog", "/a", |p| &*p.pipeline.http_settings.access_log.path == "/a"),
    ("envoy.https.address", "127.0.0.1", |p| p.pipeline.https.to_string() == "127.0.0.1:8443"),
    ("envoy.https.port", "443", |p| p.pipeline.https == Bind::any(443)),
    ("envoy.https.accessLog", "/b", |p| &*p.pipeline.https_settings.access_log.path == "/b"),
    ("envoy.listener.useProxyProtocol", "true", both!(|http| http.proxy_protocol)),
    ("envoy.health.address", "127.0.0.1", |p| p.pipeline.stats.to_string() == "127.0.0.1:8002"),
    ("envoy.health.port", "9", |p| p.pipeline.stats == Bind::any(9)),
];

/// A row of [`TOGETHER`] about a section whose keys have the same names in the object, beside the reference to its ExtensionService.
macro_rules! of_service {
    ($section:literal, $reference:literal, $key:literal, $value:literal $(, $more:literal)?) => {
        (
            concat!($section, ".", $key),
            concat!($section, ": {extensionService: edge/a", $(", ", $more,)? "}"),
            concat!($section, ": {extensionService: edge/a", $(", ", $more,)? ", ", $key, ": ", $value, "}"),
            concat!(
                $section, ": {", $reference, ": {namespace: edge, name: a}", $(", ", $more,)? ", ", $key, ": ", $value, "}"
            ),
        )
    };
}

/// Keys whose effect is seen only together with others: a file with another value or none, one with a value, and the object that says
/// the same.
const TOGETHER: &[(&str, &str, &str, &str)] = &[
    of_service!("tracing", "extensionService", "serviceName", "shop"),
    of_service!("tracing", "extensionService", "overallSampling", "'10'"),
    of_service!("tracing", "extensionService", "clientSampling", "'0'"),
    of_service!("tracing", "extensionService", "randomSampling", "'0.25'"),
    of_service!("tracing", "extensionService", "maxPathTagLength", "12"),
    of_service!("tracing", "extensionService", "includePodDetail", "false"),
    of_service!("tracing", "extensionService", "customTags", "[{tagName: team, literal: edge}]"),
    of_service!("globalExtAuth", "extensionRef", "serviceType", "http"),
    of_service!("globalExtAuth", "extensionRef", "httpSettings", "{pathPrefix: /a}", "serviceType: http"),
    of_service!("globalExtAuth", "extensionRef", "failOpen", "true"),
    of_service!("globalExtAuth", "extensionRef", "authPolicy", "{disabled: true}"),
    of_service!("globalExtAuth", "extensionRef", "responseTimeout", "1s"),
    of_service!("globalExtAuth", "extensionRef", "withRequestBody", "{maxRequestBytes: 7}"),
    of_service!("rateLimitService", "extensionService", "domain", "shop"),
    of_service!("rateLimitService", "extensionService", "failOpen", "true"),
    of_service!("rateLimitService", "extensionService", "enableXRateLimitHeaders", "true"),
    of_service!("rateLimitService", "extensionService", "enableResourceExhaustedCode", "true"),
    of_service!(
        "rateLimitService",
        "extensionService",
        "defaultGlobalRateLimitPolicy",
        "{descriptors: [{entries: [{remoteAddress: {}}]}]}"
    ),
    of_service!("rateLimitService", "extensionService", "addNamespace", "true"),
    (
        "metrics.envoy.address",
        "metrics: {envoy: {port: 9003}}",
        "metrics: {envoy: {port: 9003, address: 127.0.0.1}}",
        "envoy: {metrics: {port: 9003, address: 127.0.0.1}}",
    ),
    (
        "metrics.contour.server-certificate-path",
        "metrics: {contour: {port: 9000, server-key-path: /k, server-certificate-path: /other}}",
        "metrics: {contour: {port: 9000, server-key-path: /k, server-certificate-path: /c}}",
        "metrics: {port: 9000, tls: {keyFile: /k, certFile: /c}}",
    ),
    (
        "metrics.contour.server-key-path",
        "metrics: {contour: {port: 9000, server-certificate-path: /c, server-key-path: /other}}",
        "metrics: {contour: {port: 9000, server-certificate-path: /c, server-key-path: /k}}",
        "metrics: {port: 9000, tls: {certFile: /c, keyFile: /k}}",
    ),
    (
        "metrics.contour.ca-certificate-path",
        "metrics: {contour: {port: 9000, server-certificate-path: /c, server-key-path: /k}}",
        "metrics: {contour: {port: 9000, server-certificate-path: /c, server-key-path: /k, ca-certificate-path: /ca}}",
        "metrics: {port: 9000, tls: {certFile: /c, keyFile: /k, caFile: /ca}}",
    ),
    (
        "metrics.envoy.server-certificate-path",
        "metrics: {envoy: {port: 9003, server-key-path: /k, server-certificate-path: /other}}",
        "metrics: {envoy: {port: 9003, server-key-path: /k, server-certificate-path: /c}}",
        "envoy: {metrics: {port: 9003, tls: {keyFile: /k, certFile: /c}}}",
    ),
    (
        "metrics.envoy.server-key-path",
        "metrics: {envoy: {port: 9003, server-certificate-path: /c, server-key-path: /other}}",
        "metrics: {envoy: {port: 9003, server-certificate-path: /c, server-key-path: /k}}",
        "envoy: {metrics: {port: 9003, tls: {certFile: /c, keyFile: /k}}}",
    ),
    (
        "metrics.envoy.ca-certificate-path",
        "metrics: {envoy: {port: 9003, server-certificate-path: /c, server-key-path: /k}}",
        "metrics: {envoy: {port: 9003, server-certificate-path: /c, server-key-path: /k, ca-certificate-path: /ca}}",
        "envoy: {metrics: {port: 9003, tls: {certFile: /c, keyFile: /k, caFile: /ca}}}",
    ),
    (
        "omEnforcedHealthListener.address",
        "omEnforcedHealthListener: {port: 9004}",
        "omEnforcedHealthListener: {port: 9004, address: 127.0.0.1}",
        "envoy: {omEnforcedHealth: {port: 9004, address: 127.0.0.1}}",
    ),
    (
        "json-fields",
        "{accesslog-format: json}",
        "{accesslog-format: json, json-fields: [method]}",
        "envoy: {logging: {accessLogFormat: json, accessLogJSONFields: [method]}}",
    ),
    (
        "tls.fallback-certificate.namespace",
        "tls: {fallback-certificate: {name: b, namespace: other}}",
        "tls: {fallback-certificate: {name: b, namespace: a}}",
        "httpproxy: {fallbackCertificate: {name: b, namespace: a}}",
    ),
    (
        "tls.fallback-certificate.name",
        "tls: {fallback-certificate: {namespace: a, name: other}}",
        "tls: {fallback-certificate: {namespace: a, name: b}}",
        "httpproxy: {fallbackCertificate: {namespace: a, name: b}}",
    ),
    (
        "tls.envoy-client-certificate.namespace",
        "tls: {envoy-client-certificate: {name: b, namespace: other}}",
        "tls: {envoy-client-certificate: {name: b, namespace: a}}",
        "envoy: {clientCertificate: {name: b, namespace: a}}",
    ),
    (
        "tls.envoy-client-certificate.name",
        "tls: {envoy-client-certificate: {namespace: a, name: other}}",
        "tls: {envoy-client-certificate: {namespace: a, name: b}}",
        "envoy: {clientCertificate: {namespace: a, name: b}}",
    ),
    (
        "gateway.gatewayRef.namespace",
        "gateway: {gatewayRef: {name: b, namespace: other}}",
        "gateway: {gatewayRef: {name: b, namespace: a}}",
        "gateway: {gatewayRef: {name: b, namespace: a}}",
    ),
    (
        "gateway.gatewayRef.name",
        "gateway: {gatewayRef: {namespace: a, name: other}}",
        "gateway: {gatewayRef: {namespace: a, name: b}}",
        "gateway: {gatewayRef: {namespace: a, name: b}}",
    ),
    (
        "policy.applyToIngress",
        "policy: {request-headers: {set: {X-A: b}}}",
        "policy: {request-headers: {set: {X-A: b}}, applyToIngress: true}",
        "policy: {requestHeaders: {set: {X-A: b}}, applyToIngress: true}",
    ),
];

/// Keys whose effect is not in the plan, and why.
const NOT_IN_THE_PLAN: &[(&str, &str)] = &[("featureFlags", "the only flag is always on")];

/// Whether the effect of a key is shown by [`TOGETHER`], or not in the plan.
fn is_shown_apart(path: &str) -> bool {
    TOGETHER.iter().any(|(key, ..)| *key == path) || NOT_IN_THE_PLAN.iter().any(|(key, _)| *key == path)
}

/// All that a plan has of the keys in [`TOGETHER`]. Of the rest, the default of the idle timeout of connections is another in an object.
fn compared(plan: Plan) -> (pipeline::Settings, String) {
    let mut settings = plan.pipeline;
    for http in [&mut settings.http_settings, &mut settings.https_settings] {
        http.connection_idle = Timeout::Default;
    }
    (settings, format!("{:?} {:?}", plan.metrics, plan.metrics_tls))
}

#[test]
fn every_key_takes_effect() {
    let usual = plan(&[], "");
    for (path, value, check) in KEYS {
        let file = file_with(path, value);
        assert!(!check(&usual), "{path} is so without being written");
        assert!(check(&plan(&[], &file)), "{file}");
    }
    let working = rows().filter(|row| matches!(row.effect, Effect::Works(_))).map(|row| row.path);
    for path in working.filter(|path| !path.is_empty() && !is_shown_apart(path)) {
        assert!(KEYS.iter().any(|(key, ..)| *key == path), "nothing shows that {path} takes effect");
    }
    let fields = plan(&[], "accesslog-format: json\njson-fields: [method, 'took=%DURATION%']");
    let format = &fields.pipeline.http_settings.access_log.format;
    assert_eq!(*format, AccessLogFormat::Json(vec!["method".into(), "took=%DURATION%".into()]));
    let file =
        "policy:\n  request-headers: {set: {X-A: b}}\n  response-headers: {remove: [x-c]}\n  applyToIngress: true";
    let pipeline::Settings { ingress, http_proxy, .. } = plan(&[], file).pipeline;
    assert_eq!(
        (&ingress.request_headers, &ingress.response_headers),
        (&http_proxy.request_headers, &http_proxy.response_headers)
    );
    assert_eq!((ingress.request_headers.set.len(), ingress.response_headers.remove.len()), (1, 1));
    let file = "tls: {fallback-certificate: {namespace: a, name: b}}";
    let fallback = plan(&[], file).pipeline.http_proxy.fallback_certificate;
    assert_eq!(fallback, Some(ObjectRef::new(kind::SECRET, "a", "b")));
    let client = "tls: {envoy-client-certificate: {namespace: a, name: b}}";
    let pipeline::Settings { ingress, http_proxy, .. } = plan(&[], client).pipeline;
    let expected = Some(ObjectRef::new(kind::SECRET, "a", "b"));
    assert_eq!((&http_proxy.client_certificate, &ingress.client_certificate), (&expected, &expected));
    assert_eq!(plan(&["--watch-namespaces=projectsesame"], client).warnings[0].0, Code::NamespaceNotWatched);
    let authorization = |more: &str| {
        plan(&[], &format!("globalExtAuth: {{extensionService: a/b{more}}}")).pipeline.authorization.unwrap()
    };
    for (base, more) in [
        ("", ", serviceType: http"),
        (", serviceType: http", ", serviceType: http, httpSettings: {pathPrefix: /a}"),
        ("", ", failOpen: true"),
        ("", ", authPolicy: {disabled: true}"),
        ("", ", responseTimeout: 1s"),
        ("", ", withRequestBody: {maxRequestBytes: 7}"),
    ] {
        assert_ne!(authorization(base), authorization(more), "{more}");
    }
    let bound = plan(&[], "gateway: {gatewayRef: {namespace: a, name: b}}").pipeline.gateway.bound;
    assert_eq!(bound, Some(("a".into(), "b".into())));
    let narrow = plan(&["--watch-namespaces=projectsesame"], file);
    assert_eq!(narrow.warnings[0].0, Code::NamespaceNotWatched);
    assert!(plan(&[], "featureFlags: [useEndpointSlices]").warnings.is_empty());
    let ours = plan(&[], "metrics: {sesame: {address: '::1', port: 9001}}");
    assert_eq!(ours.metrics, "[::1]:9001".parse().unwrap());
}

#[test]
fn every_field_of_the_object_does_what_its_key_does() {
    let usual = plan_of_object(&[], "{}").unwrap();
    for row in rows().filter(|row| !row.object.is_empty() && matches!(row.effect, Effect::Works(_))) {
        if is_shown_apart(row.path) {
            continue;
        }
        let shown = KEYS.iter().find(|(key, ..)| *key == row.path);
        let shown = shown.or_else(|| FIELDS.iter().find(|(field, ..)| *field == row.object));
        let (_, value, check) = shown.unwrap_or_else(|| panic!("nothing shows that {} takes effect", row.object));
        let spec = file_with(row.object, value);
        assert!(!check(&usual), "{} is so without being written", row.object);
        assert!(check(&plan_of_object(&[], &spec).unwrap()), "{spec}");
    }
    for (path, other, file, object) in TOGETHER {
        assert!(rows().any(|row| row.path == *path && !row.object.is_empty()), "{path}");
        let of_file = compared(plan(&[], file));
        assert_ne!(of_file, compared(plan(&[], other)), "{path} changes nothing: {file}");
        assert_eq!(of_file, compared(plan_of_object(&[], object).unwrap()), "{path}: {object}");
    }
    let no_field = rows().filter(|row| row.object.is_empty()).map(|row| row.path);
    let no_field: Vec<&str> = no_field.collect();
    assert_eq!(
        no_field,
        [
            "debug",
            "incluster",
            "kubeconfig",
            "kubernetesClientQPS",
            "kubernetesClientBurst",
            "server.xds-server-type",
            "gateway.controllerName"
        ]
    );
}

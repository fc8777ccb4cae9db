//! Every error and warning that the status of an HTTPProxy can have, by the words that tools read: type and reason.
//!
//! Each row is an object, in a world of a few others, and what its status must say. The words are Contour's.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use kinds::{Object, kind};
use model::{
    ObjectRef,
    jwt::{Jwks, JwksState},
    status::StatusInput,
};
use pipeline::{Pipeline, Settings};
use serde_json::{Value, json};
use std::sync::Arc;
use testbed::{
    cases::object,
    certs::Ca,
    tokens::{TokenSigner, key_set},
};

/// The world that each row stands in: a Service, a child, a root, a circle, certificates, and one that is not delegated.
fn world() -> Vec<Object> {
    let ca = Ca::new("status");
    let leaf = ca.leaf("a.example.com").make();
    let proxy = |name: &str, spec: Value| {
        let meta = json!({ "name": name, "namespace": "a", "creationTimestamp": "2020-01-01T00:00:00Z" });
        json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": meta, "spec": spec })
    };
    let secret = |namespace: &str, name: &str, data: Value| {
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "name": name, "namespace": namespace }, "stringData": data })
    };
    let pair = json!({ "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() });
    let objects = [
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "a" },
            "spec": { "ports": [{ "port": 80 }] } }),
        json!({ "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
            "metadata": { "name": "auth", "namespace": "a" },
            "spec": { "protocol": "h2c", "services": [{ "name": "web", "port": 80 }] } }),
        json!({ "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
            "metadata": { "name": "broken", "namespace": "a" },
            "spec": { "services": [{ "name": "nobody", "port": 80 }] } }),
        proxy("child", json!({ "routes": [{ "services": [{ "name": "web", "port": 80 }] }] })),
        proxy(
            "root",
            json!({ "virtualhost": { "fqdn": "root.example.com" },
            "routes": [{ "services": [{ "name": "web", "port": 80 }] }] }),
        ),
        secret("a", "cert", pair.clone()),
        secret("a", "garbage", json!({ "tls.crt": "x", "tls.key": "y" })),
        secret("b", "cert", pair),
        secret("b", "ca", json!({ "ca.crt": ca.pem() })),
        secret("a", "clients", json!({ "ca.crt": ca.pem() })),
        secret("b", "crl", json!({ "crl.pem": ca.crl([]).pem() })),
    ];
    objects.iter().map(object).collect()
}

/// What an object `a/it` with this spec says.
fn status(spec: &Value, settings: &Settings) -> Value {
    status_beside(&[], spec, settings)
}

/// The same beside other HTTPProxies of its namespace.
fn status_beside(others: &[(&str, Value)], spec: &Value, settings: &Settings) -> Value {
    settled(&mut pipeline(others, spec, settings))
}

/// The world with these other HTTPProxies and an object `a/it`.
fn pipeline(others: &[(&str, Value)], spec: &Value, settings: &Settings) -> Pipeline {
    let mut pipeline = Pipeline::new(settings);
    let others = others.iter().map(|(name, spec)| {
        object(&json!({
            "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
            "metadata": { "name": name, "namespace": "a" }, "spec": spec,
        }))
    });
    for object in world().into_iter().chain(others) {
        pipeline.put(&object.key(), Some(object));
    }
    let meta = json!({ "name": "it", "namespace": "a", "creationTimestamp": "2024-01-01T00:00:00Z", "generation": 1 });
    let text = json!({ "metadata": meta, "spec": spec }).to_string();
    let kind = kind::CONTOUR_HTTP_PROXY;
    let it = kinds::decode_json(kind, text.as_bytes()).unwrap().object;
    pipeline.put(&ObjectRef::new(kind, "a", "it"), Some(it));
    pipeline
}

/// What `a/it` says after what was put last.
fn settled(pipeline: &mut Pipeline) -> Value {
    let kind = kind::CONTOUR_HTTP_PROXY;
    let subject = ObjectRef::new(kind, "a", "it");
    let verdicts = pipeline.settle().verdicts.into_iter().find(|(object, _)| *object == subject);
    let verdicts = verdicts.and_then(|(_, said)| said).unwrap();
    let facts = pipeline::status_of(kind).unwrap().facts;
    status::render::status(&facts(&StatusInput { verdicts: &verdicts, ..StatusInput::default() }), 1)
}

/// A root with these fields in `virtualhost` and a route.
fn host(fields: Value) -> Value {
    let mut spec = root(json!({}));
    spec["virtualhost"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    spec
}

fn tls(fields: Value) -> Value {
    host(json!({ "tls": fields }))
}

/// A root with one route that has these fields.
fn root(fields: Value) -> Value {
    let mut route = json!({ "services": [{ "name": "web", "port": 80 }] });
    route.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "virtualhost": { "fqdn": "it.example.com" }, "routes": [route] })
}

/// A root with one route to a service that has these fields.
fn service(fields: Value) -> Value {
    let mut service = json!({ "name": "web", "port": 80 });
    service.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    root(json!({ "services": [service] }))
}

/// A provider of tokens whose Secret is not there.
fn local(name: &str) -> Value {
    json!({ "name": name, "localJWKS": { "secretName": "nobody", "key": "a" } })
}

/// A root with these providers of tokens, and a route that has these fields.
fn tokens(providers: Value, route: Value) -> Value {
    let mut spec = root(route);
    spec["virtualhost"]["tls"] = json!({ "secretName": "cert" });
    spec["virtualhost"]["jwtProviders"] = providers;
    spec
}

fn include(include: Value) -> Value {
    json!({ "virtualhost": { "fqdn": "it.example.com" }, "includes": include })
}

/// A host with TLS that asks an ExtensionService that is there, with these fields besides.
fn authorized(fields: Value) -> Value {
    let mut authorization = json!({ "extensionRef": { "name": "auth" } });
    authorization.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    host(json!({ "tls": { "secretName": "cert" }, "authorization": authorization }))
}

fn tcp(fields: Value) -> Value {
    json!({ "virtualhost": { "fqdn": "it.example.com", "tls": { "secretName": "cert" } }, "tcpproxy": fields })
}

fn conditions(list: Value) -> Value {
    root(json!({ "conditions": list }))
}

fn rewrite(conditions: Value, list: Value) -> Value {
    root(json!({ "conditions": conditions, "pathRewritePolicy": { "replacePrefix": list } }))
}

#[test]
fn every_error_is_told_in_contours_words() {
    let web = || json!([{ "name": "web", "port": 80 }]);
    let tls_web = |fields: Value| service(json!({ "protocol": "tls", "validation": fields }));
    let uri = "https://keys.example.com/";
    let default = |mut provider: Value| {
        provider["default"] = true.into();
        provider
    };
    let remote = |fields: Value| tokens(json!([{ "name": "a", "remoteJWKS": fields }]), json!({}));
    let rows = [
        ("VirtualHostError FQDNNotSpecified", json!({ "virtualhost": {}, "routes": [{ "services": web() }] })),
        (
            "VirtualHostError DuplicateVhost",
            json!({ "virtualhost": { "fqdn": "root.example.com" }, "routes": [{ "services": web() }] }),
        ),
        (
            "VirtualHostError RateLimitPolicyNotValid",
            host(json!({ "rateLimitPolicy": { "local": { "requests": 0, "unit": "second" } } })),
        ),
        (
            "VirtualHostError RateLimitPolicyNotValid",
            host(json!({ "rateLimitPolicy": { "global": { "descriptors": [{ "entries": [] }] } } })),
        ),
        ("SpecError NothingDefined", json!({ "virtualhost": { "fqdn": "it.example.com" } })),
        ("Orphaned Orphaned", json!({ "routes": [{ "services": web() }] })),
        ("TLSError TLSIncompatibleFeatures", tls(json!({ "passthrough": true, "enableFallbackCertificate": true }))),
        (
            "TLSError TLSIncompatibleFeatures",
            tls(json!({ "passthrough": true, "clientValidation": { "caSecret": "clients" } })),
        ),
        ("TLSError TLSConfigNotValid", tls(json!({ "passthrough": true, "secretName": "cert" }))),
        ("TLSError TLSConfigNotValid", tls(json!({}))),
        (
            "TLSError TLSConfigNotValid",
            tls(json!({ "secretName": "cert", "minimumProtocolVersion": "1.3", "maximumProtocolVersion": "1.2" })),
        ),
        ("TLSError SecretNotValid", tls(json!({ "secretName": "nobody" }))),
        ("TLSError SecretNotValid", tls(json!({ "secretName": "garbage" }))),
        ("TLSError DelegationNotPermitted", tls(json!({ "secretName": "b/cert" }))),
        ("TLSError ClientValidationInvalid", tls(json!({ "secretName": "cert", "clientValidation": {} }))),
        (
            "TLSError ClientValidationInvalid",
            tls(json!({ "secretName": "cert", "clientValidation": { "caSecret": "nobody" } })),
        ),
        (
            "TLSError ClientValidationInvalid",
            tls(json!({ "secretName": "cert", "clientValidation": { "caSecret": "clients", "crlSecret": "clients" } })),
        ),
        (
            "TLSError DelegationNotPermitted",
            tls(json!({ "secretName": "cert", "clientValidation": { "caSecret": "b/ca" } })),
        ),
        (
            "TLSError DelegationNotPermitted",
            tls(json!({ "secretName": "cert", "clientValidation": { "caSecret": "clients", "crlSecret": "b/crl" } })),
        ),
        (
            "TLSError TLSIncompatibleFeatures",
            tls(json!({ "secretName": "cert", "enableFallbackCertificate": true,
                "clientValidation": { "caSecret": "clients" } })),
        ),
        ("TLSError FallbackNotPresent", tls(json!({ "secretName": "cert", "enableFallbackCertificate": true }))),
        ("TLSError CACertificateNotDelegated", tls_web(json!({ "caSecret": "b/ca", "subjectName": "x" }))),
        (
            "TLSError TLSIncompatibleFeatures",
            host(json!({ "tls": { "secretName": "cert", "enableFallbackCertificate": true },
                "authorization": { "extensionRef": { "name": "auth" } } })),
        ),
        ("AuthError AuthNotPermitted", host(json!({ "authorization": { "extensionRef": { "name": "auth" } } }))),
        (
            "AuthError AuthBadResourceVersion",
            authorized(json!({ "extensionRef": { "name": "auth", "apiVersion": "projectcontour.io/v9" } })),
        ),
        ("AuthError ExtensionServiceNotFound", authorized(json!({ "extensionRef": { "name": "nobody" } }))),
        (
            "AuthError ExtensionServiceNotPermitted",
            authorized(json!({ "extensionRef": { "name": "auth", "namespace": "b" } })),
        ),
        ("AuthError ExtensionServiceNotFound", authorized(json!({ "extensionRef": { "name": "line\nend" } }))),
        ("AuthError ExtensionServiceNotFound", authorized(json!({ "extensionRef": null }))),
        ("AuthError ExtensionServiceNotValid", authorized(json!({ "extensionRef": { "name": "broken" } }))),
        ("AuthError AuthResponseTimeoutInvalid", authorized(json!({ "responseTimeout": "soon" }))),
        (
            "AuthError AuthContextForHTTP",
            authorized(json!({ "serviceType": "http", "authPolicy": { "context": { "a": "b" } } })),
        ),
        (
            "AuthError AuthContextNotValid",
            authorized(json!({ "authPolicy": { "context": { "a": "b".repeat(9_000) } } })),
        ),
        (
            "AuthError AuthBadAllowedHeader",
            authorized(json!({ "serviceType": "http",
                "httpSettings": { "allowedUpstreamHeaders": [{ "exact": "a", "prefix": "b" }] } })),
        ),
        ("AuthError AuthSettingsNotValid", authorized(json!({ "serviceType": "smtp" }))),
        ("AuthError AuthSettingsNotValid", authorized(json!({ "httpSettings": { "pathPrefix": "/a" } }))),
        ("AuthError AuthSettingsNotValid", authorized(json!({ "withRequestBody": { "maxRequestBytes": 99_999_999 } }))),
        (
            "CORSError PolicyDidNotParse",
            host(json!({ "corsPolicy": { "allowOrigin": ["*"], "allowMethods": ["GET"], "maxAge": "-1s" } })),
        ),
        (
            "IPFilterError IncompatibleIPAddressFilters",
            host(
                json!({ "ipAllowPolicy": [{ "source": "Peer", "cidr": "10.0.0.0/8" }], "ipDenyPolicy": [{ "source": "Peer", "cidr": "10.0.0.0/8" }] }),
            ),
        ),
        (
            "IPFilterError IPFilterPolicyNotValid",
            root(json!({ "ipAllowPolicy": [{ "source": "Anybody", "cidr": "10.0.0.0/8" }] })),
        ),
        (
            "IPFilterError InvalidCIDR",
            root(
                json!({ "ipAllowPolicy": [{ "source": "Peer", "cidr": "10.0.0.0/99" }, { "source": "Peer", "cidr": "::1" }] }),
            ),
        ),
        (
            "IncludeError PathMatchConditionsNotValid",
            include(json!([{ "name": "child", "conditions": [{ "exact": "/a" }] }])),
        ),
        (
            "IncludeError DuplicateMatchConditions",
            include(
                json!([{ "name": "child", "conditions": [{ "prefix": "/a" }] }, { "name": "child", "conditions": [{ "prefix": "/a" }] }]),
            ),
        ),
        ("IncludeError IncludeNotFound", include(json!([{ "name": "nobody" }]))),
        ("IncludeError RootIncludesRoot", include(json!([{ "name": "root" }]))),
        ("IncludeError RootIncludesRoot", include(json!([{ "name": "it" }]))),
        ("RouteError RouteActionCountNotValid", root(json!({ "directResponsePolicy": { "statusCode": 200 } }))),
        ("RouteError PathMatchConditionsNotValid", conditions(json!([{ "prefix": "a" }]))),
        (
            "RouteError HeaderMatchConditionsNotValid",
            conditions(
                json!([{ "header": { "name": "x", "exact": "a" } }, { "header": { "name": "x", "exact": "b" } }]),
            ),
        ),
        (
            "RouteError QueryParameterMatchConditionsNotValid",
            conditions(json!([{ "queryParameter": { "name": "q" } }])),
        ),
        ("RouteError RequestHeadersPolicyInvalid", root(json!({ "requestHeadersPolicy": { "remove": ["Host"] } }))),
        (
            "RouteError ResponseHeaderPolicyInvalid",
            root(json!({ "responseHeadersPolicy": { "set": [{ "name": "Host", "value": "a" }] } })),
        ),
        ("RouteError CookieRewritePoliciesInvalid", root(json!({ "cookieRewritePolicies": [{ "name": "a" }] }))),
        ("RouteError TimeoutPolicyNotValid", root(json!({ "timeoutPolicy": { "response": "soon" } }))),
        (
            "RouteError RateLimitPolicyNotValid",
            root(json!({ "rateLimitPolicy": { "local": { "requests": 1, "unit": "day" } } })),
        ),
        (
            "RouteError RateLimitPolicyNotValid",
            root(
                json!({ "rateLimitPolicy": { "global": { "descriptors": [{ "entries": [{ "genericKey": {} }] }] } } }),
            ),
        ),
        (
            "RouteError RequestRedirectPolicy",
            root(json!({ "services": [], "requestRedirectPolicy": { "path": "/a", "prefix": "/b" } })),
        ),
        ("RouteError HealthCheckPolicyInvalid", root(json!({ "healthCheckPolicy": { "path": "" } }))),
        ("PrefixReplaceError MustHavePrefix", rewrite(json!([{ "exact": "/a" }]), json!([{ "replacement": "/" }]))),
        (
            "PrefixReplaceError DuplicateReplacement",
            rewrite(
                json!([{ "prefix": "/a" }]),
                json!([{ "prefix": "/a", "replacement": "/" }, { "prefix": "/a", "replacement": "/b" }]),
            ),
        ),
        (
            "PrefixReplaceError AmbiguousReplacement",
            rewrite(json!([{ "prefix": "/a" }]), json!([{ "replacement": "/" }, { "replacement": "/b" }])),
        ),
        ("ServiceError ServicePortInvalid", service(json!({ "port": 70000 }))),
        ("ServiceError ServiceUnresolvedReference", service(json!({ "name": "nobody" }))),
        ("ServiceError ServiceUnresolvedReference", service(json!({ "port": 81 }))),
        ("ServiceError UnsupportedProtocol", service(json!({ "protocol": "gopher" }))),
        ("ServiceError TLSUpstreamValidation", tls_web(json!({ "caSecret": "nobody", "subjectName": "x" }))),
        (
            "ServiceError RequestHeadersPolicyInvalid",
            service(json!({ "requestHeadersPolicy": { "set": [{ "name": "a b", "value": "c" }] } })),
        ),
        (
            "ServiceError ResponseHeadersPolicyInvalid",
            service(json!({ "responseHeadersPolicy": { "set": [{ "name": "a b", "value": "c" }] } })),
        ),
        ("ServiceError SlowStartInvalid", service(json!({ "slowStartPolicy": { "window": "soon" } }))),
        (
            "ServiceError OnlyOneMirror",
            root(
                json!({ "services": [{ "name": "web", "port": 80 }, { "name": "web", "port": 80, "mirror": true }, { "name": "web", "port": 80, "mirror": true }] }),
            ),
        ),
        (
            "TCPProxyError TLSMustBeConfigured",
            json!({ "virtualhost": { "fqdn": "it.example.com" }, "tcpproxy": { "services": web() } }),
        ),
        ("TCPProxyError NoServicesAndInclude", tcp(json!({ "services": web(), "include": { "name": "child" } }))),
        ("TCPProxyError NothingDefined", tcp(json!({}))),
        ("TCPProxyError ServiceUnresolvedReference", tcp(json!({ "services": [{ "name": "nobody", "port": 80 }] }))),
        ("TCPProxyIncludeError IncludeNotFound", tcp(json!({ "include": { "name": "nobody" } }))),
        ("TCPProxyIncludeError RootIncludesRoot", tcp(json!({ "include": { "name": "root" } }))),
        ("TCPProxyIncludeError RootIncludesRoot", tcp(json!({ "include": { "name": "it" } }))),
        ("JWTVerificationError JWTVerificationNotPermitted", host(json!({ "jwtProviders": [local("a")] }))),
        ("JWTVerificationError DuplicateProviderName", tokens(json!([local("a"), local("a")]), json!({}))),
        (
            "JWTVerificationError MultipleDefaultProvidersSpecified",
            tokens(json!([default(local("a")), default(local("b"))]), json!({})),
        ),
        (
            "JWTVerificationError JWKSSourceConflict",
            tokens(json!([{ "name": "a", "remoteJWKS": {}, "localJWKS": {} }]), json!({})),
        ),
        ("JWTVerificationError JWKSSourceMissing", tokens(json!([{ "name": "a" }]), json!({}))),
        ("JWTVerificationError LocalJWKSInvalid", tokens(json!([local("a")]), json!({}))),
        ("JWTVerificationError RemoteJWKSURIInvalid", remote(json!({ "uri": "https://" }))),
        ("JWTVerificationError RemoteJWKSURIInvalid", remote(json!({ "uri": "http://169.254.169.254/" }))),
        ("JWTVerificationError RemoteJWKSSchemeInvalid", remote(json!({ "uri": "gopher://keys.example.com/" }))),
        (
            "JWTVerificationError RemoteJWKSUpstreamValidationInvalid",
            remote(json!({ "uri": uri, "validation": { "caSecret": "nobody", "subjectName": "x" } })),
        ),
        (
            "JWTVerificationError RemoteJWKSCACertificateNotDelegated",
            remote(json!({ "uri": uri, "validation": { "caSecret": "b/ca", "subjectName": "x" } })),
        ),
        ("JWTVerificationError RemoteJWKSTimeoutInvalid", remote(json!({ "uri": uri, "timeout": "-1s" }))),
        ("JWTVerificationError RemoteJWKSCacheDurationInvalid", remote(json!({ "uri": uri, "cacheDuration": "soon" }))),
        ("JWTVerificationError RemoteJWKSPortInvalid", remote(json!({ "uri": "https://keys.example.com:99999/" }))),
        (
            "JWTVerificationError RemoteJWKSDNSLookupFamilyInvalid",
            remote(json!({ "uri": uri, "dnsLookupFamily": "ipv4" })),
        ),
        (
            "JWTVerificationError InvalidJWTVerificationPolicy",
            tokens(json!([]), json!({ "jwtVerificationPolicy": { "require": "a", "disabled": true } })),
        ),
        (
            "JWTVerificationError JWTProviderNotDefined",
            tokens(json!([]), json!({ "jwtVerificationPolicy": { "require": "a" } })),
        ),
        (
            "JWTVerificationError JWTProviderLimitExceeded",
            tokens((0..17).map(|number| local(&number.to_string())).collect(), json!({})),
        ),
        (
            "TLSError TLSIncompatibleFeatures",
            host(
                json!({ "tls": { "secretName": "cert", "enableFallbackCertificate": true }, "jwtProviders": [local("a")] }),
            ),
        ),
    ];
    let mut wrong = Vec::new();
    for (words, spec) in rows {
        wrong.extend(
            differs(words, &status(&spec, &Settings::default()), "errors").map(|why| format!("{spec}\n  {why}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// As in Contour: of includes, the object that is met again; of a tcpproxy, the one whose include leads back.
#[test]
fn a_cycle_is_told_on_the_object_that_contour_blames() {
    let host = json!({ "fqdn": "cycle.example.com", "tls": { "secretName": "cert" } });
    let to = |name: &str| json!({ "includes": [{ "name": name }] });
    let root = |name: &str| json!({ "virtualhost": { "fqdn": "cycle.example.com" }, "includes": [{ "name": name }] });
    let words = "IncludeError IncludeCreatesCycle";
    let settings = Settings::default();
    // The root includes `it`, and `it` another that leads back to it.
    let first = status_beside(&[("cycle", root("it")), ("other", to("it"))], &to("other"), &settings);
    assert_eq!(differs(words, &first, "errors"), None);
    // The other way round, `it` only leads back.
    let second = status_beside(&[("cycle", root("other")), ("other", to("it"))], &to("other"), &settings);
    assert_eq!(second["currentStatus"], "valid", "{second}");
    let alone = status_beside(&[("cycle", root("it"))], &to("it"), &settings);
    assert_eq!(differs(words, &alone, "errors"), None);
    let tcp = |name: &str| json!({ "tcpproxy": { "include": { "name": name } } });
    let mut tcp_root = tcp("other");
    tcp_root["virtualhost"] = host;
    let back = status_beside(&[("cycle", tcp_root), ("other", tcp("it"))], &tcp("other"), &settings);
    assert_eq!(differs("TCPProxyIncludeError IncludeCreatesCycle", &back, "errors"), None);
}

#[test]
fn what_contour_lets_pass_leaves_an_object_valid() {
    let route =
        |prefix: &str| json!({ "conditions": [{ "prefix": prefix }], "services": [{ "name": "web", "port": 80 }] });
    let root = |fields: Value| {
        let mut spec = json!({ "virtualhost": { "fqdn": "other.example.com" } });
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        spec
    };
    let twice = json!({ "virtualhost": { "fqdn": "it.example.com" }, "routes": [route("/a"), route("/a")] });
    let parent = root(json!({ "includes": [{ "name": "it" }], "routes": [route("/a")] }));
    let tls = json!({ "fqdn": "other.example.com", "tls": { "secretName": "cert" } });
    let tcp = root(json!({ "virtualhost": tls, "tcpproxy": { "include": { "name": "it" } } }));
    let child = || json!({ "routes": [route("/a")] });
    let rows = [
        ("RouteError DuplicateRoute", None, twice),
        ("RouteError DuplicateRoute", Some(parent.clone()), child()),
        ("SpecError NothingDefined", Some(parent), json!({})),
        ("TCPProxyError NothingDefined", Some(tcp), child()),
    ];
    for (words, other, spec) in rows {
        let others: Vec<(&str, Value)> = other.into_iter().map(|other| ("other", other)).collect();
        let status = status_beside(&others, &spec, &Settings::default());
        assert_eq!((&status["currentStatus"], differs(words, &status, "warnings")), (&"valid".into(), None), "{spec}");
    }
    // Includes of several children that all take everything.
    let child = |prefix: &str| json!({ "routes": [route(prefix)] });
    for everything in [json!([]), json!([{ "prefix": "/" }])] {
        let includes = ["one", "two"].map(|name| json!({ "name": name, "conditions": everything }));
        let status = status_beside(
            &[("one", child("/one")), ("two", child("/two"))],
            &include(json!(includes)),
            &Settings::default(),
        );
        assert_eq!(status["currentStatus"], "valid", "{everything}: {status}");
        let valid = &status["conditions"][0];
        assert!(valid["errors"].is_null() && valid["warnings"].is_null(), "{everything}: {status}");
    }
    for spec in [
        host(json!({ "fqdn": "192.0.2.1" })),
        service(json!({ "slowStartPolicy": { "window": "0s" } })),
        self::root(json!({ "healthCheckPolicy": { "path": "/check?x=1" } })),
        authorized(json!({ "failOpen": true, "withRequestBody": { "packAsBytes": true } })),
        authorized(json!({ "extensionRef": null, "authPolicy": { "disabled": true } })),
    ] {
        let status = status(&spec, &Settings::default());
        assert_eq!(status["conditions"][0]["reason"], "Valid", "{spec}: {status}");
    }
}

#[test]
fn errors_that_depend_on_the_operator() {
    let mut settings = Settings::default();
    settings.http_proxy.root_namespaces = vec!["b".into()];
    let spec = root(json!({}));
    let words = "RootNamespaceError RootProxyNotAllowedInNamespace";
    assert_eq!(differs(words, &status(&spec, &settings), "errors"), None);
    let fallback = tls(json!({ "secretName": "cert", "enableFallbackCertificate": true }));
    for (secret, words) in
        [(("b", "cert"), "TLSError FallbackNotDelegated"), (("a", "garbage"), "TLSError FallbackNotValid")]
    {
        let mut settings = Settings::default();
        settings.http_proxy.fallback_certificate = Some(ObjectRef::new(kinds::kind::SECRET, secret.0, secret.1));
        assert_eq!(differs(words, &status(&fallback, &settings), "errors"), None);
    }
    // The client certificate for backends: only what needs it reports it.
    for secret in ["nobody", "garbage"] {
        let mut settings = Settings::default();
        settings.http_proxy.client_certificate = Some(ObjectRef::new(kinds::kind::SECRET, "a", secret));
        let over_tls = status(&service(json!({ "protocol": "tls" })), &settings);
        assert_eq!(differs("TLSError SecretNotValid", &over_tls, "errors"), None);
        assert_eq!(status(&root(json!({})), &settings)["conditions"][0]["reason"], "Valid");
    }
}

/// What became of the keys of a server is told when it is known, and again when it changes.
#[test]
fn what_becomes_of_remote_keys_is_told() {
    let remote = json!({ "uri": "https://keys.example.com/" });
    let spec = tokens(json!([{ "name": "a", "default": true, "remoteJWKS": remote }]), json!({}));
    let mut pipeline = pipeline(&[], &spec, &Settings::default());
    assert_eq!(differs("JWTVerificationError RemoteJWKSPending", &settled(&mut pipeline), "warnings"), None);
    let (source, _) = pipeline.jwks_refs().remove(0);
    let keys = || resolve::jwks::parse(key_set([&TokenSigner::new("a")]).as_bytes()).ok();
    let mut told = |keys: Option<Jwks>, failure: Option<&str>| {
        pipeline.set_jwks(&source, Some(JwksState { keys, failure: failure.map(Arc::from) }));
        settled(&mut pipeline)
    };
    let not_fetched = told(None, Some("no answer"));
    assert_eq!(differs("JWTVerificationError RemoteJWKSNotFetched", &not_fetched, "errors"), None);
    assert_eq!(told(keys(), None)["conditions"][0]["reason"], "Valid");
    let not_refreshed = told(keys(), Some("no answer"));
    assert_eq!(differs("JWTVerificationError RemoteJWKSNotRefreshed", &not_refreshed, "warnings"), None);
}

#[test]
fn warnings_leave_an_object_valid() {
    let rows = [
        ("SpecError IgnoredField", root(json!({ "loadBalancerPolicy": { "strategy": "Sometimes" } }))),
        ("SpecError IgnoredField", tls(json!({ "secretName": "cert", "minimumProtocolVersion": "9" }))),
        ("AuthError AuthServerNotConfigured", root(json!({ "authPolicy": { "disabled": false } }))),
        (
            "TCPProxyError IgnoredField",
            tcp(json!({ "loadBalancerPolicy": { "strategy": "Cookie" }, "services": [{ "name": "web", "port": 80 }] })),
        ),
    ];
    for (words, spec) in rows {
        let status = status(&spec, &Settings::default());
        assert_eq!((&status["currentStatus"], differs(words, &status, "warnings")), (&"valid".into(), None), "{spec}");
    }
    assert_eq!(status(&root(json!({})), &Settings::default())["conditions"][0]["reason"], "Valid");
}

/// What is wrong with a status that must have these words in a list.
fn differs(words: &str, status: &Value, list: &str) -> Option<String> {
    let (kind, reason) = words.split_once(' ').unwrap();
    let valid = &status["conditions"][0];
    let found = valid[list].as_array().into_iter().flatten().any(|one| {
        one["type"] == kind && one["reason"] == reason && one["message"].as_str().unwrap().starts_with("SES")
    });
    let current = match (list, kind) {
        ("warnings", _) => "valid",
        (_, "Orphaned") => "orphaned",
        _ => "invalid",
    };
    let fits = found && status["currentStatus"] == current;
    (!fits).then(|| format!("must be {current} with {words}, and is {status}"))
}

//! Random trees of HTTPProxies, edited at random: after every batch, all tables equal a build from nothing, and a build of
//! the same objects in another order gives the same resources.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod script;

use kinds::{Object, ObjectRef, http_proxy::security::AuthorizationServer, kind};
use model::{
    jwt::{JwksState, JwksUri, RemoteJwks},
    listener::RateLimitService,
};
use pipeline::{
    Pipeline, Settings,
    authorization::{GlobalAuthorization, of_operator},
    extensions::ExtensionName,
    settings::{GlobalRateLimits, default_policy},
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use testbed::certs::Ca;

/// One change.
#[derive(Clone, Debug)]
enum Edit {
    Proxy {
        sesame: bool,
        space: u8,
        name: u8,
        gone: bool,
        spec: Spec,
    },
    Service {
        space: u8,
        name: u8,
        gone: bool,
    },
    Secret {
        space: u8,
        name: u8,
        gone: bool,
        good: bool,
    },
    Delegation {
        space: u8,
        gone: bool,
        to: u8,
    },
    Grant {
        space: u8,
        sesame: bool,
        gone: bool,
        to: u8,
    },
    /// What is known of the keys of a server: nothing, keys, a failure, or both.
    Keys {
        space: u8,
        known: u8,
    },
    Extension {
        space: u8,
        sesame: bool,
        gone: bool,
        services: u8,
        trust: u8,
    },
    /// The operator's configuration becomes another.
    Settings(Operator),
}

/// What the operator configures.
#[derive(Clone, Copy, Debug)]
struct Operator {
    /// Roots and certificates: whose, and which.
    limited: Option<u8>,
    /// The server that is asked about all routes, and whether that fails open.
    global: Option<(u8, bool)>,
    /// The rate limit service: whose, with which default, and whether namespaces are told.
    limits: Option<(u8, bool, bool)>,
}

fn operator() -> impl Strategy<Value = Operator> {
    let limits = (0..2_u8, any::<bool>(), any::<bool>());
    (option::of(0..2_u8), option::of((0..2_u8, any::<bool>())), option::of(limits))
        .prop_map(|(limited, global, limits)| Operator { limited, global, limits })
}

impl Operator {
    fn settings(self) -> Settings {
        let mut settings = Settings::default();
        let extension = |n: u8| ExtensionName { namespace: space(n).into(), name: "e".into() };
        if let Some((n, fail_open)) = self.global {
            let server = AuthorizationServer { fail_open, ..AuthorizationServer::default() };
            let server = of_operator(&server).unwrap();
            settings.authorization = Some(GlobalAuthorization { extension: extension(n), settings: server });
        }
        if let Some((n, default, add_namespace)) = self.limits {
            let service = RateLimitService { fail_open: n == 0, ..RateLimitService::default() };
            settings.rate_limit_service = Some((extension(n), service));
            let policy = serde_json::from_value(global_rate_limit(0)).unwrap();
            let default = default.then(|| default_policy(&policy).unwrap()).flatten().map(Arc::new);
            let service = (space(n).into(), "e".into());
            settings.http_proxy.global_rate_limits = Some(GlobalRateLimits { service, default, add_namespace });
        }
        if let Some(n) = self.limited {
            settings.http_proxy.root_namespaces = vec![space(n).into()];
            let secret = |n: u8, name: &str| Some(ObjectRef::new(kind::SECRET, space(n), name));
            settings.http_proxy.client_certificate = secret(n + 1, "t0");
            settings.http_proxy.fallback_certificate = secret(n, "t1");
        }
        settings
    }
}

#[derive(Clone, Debug)]
struct Spec {
    fqdn: Option<u8>,
    secret: Option<(u8, u8)>,
    clients: Option<(u8, u8, bool)>,
    includes: Vec<(u8, u8, u8)>,
    routes: Vec<(u8, u8, u8)>,
    tcp: Option<(bool, u8, u8)>,
    class: bool,
    created: u8,
    auth: Option<(u8, bool, bool)>,
    tokens: Option<(u8, bool)>,
    limits: Option<u8>,
}

const SPACES: [&str; 2] = ["a", "b"];

fn space(n: u8) -> &'static str {
    SPACES[usize::from(n) % SPACES.len()]
}

fn spec() -> impl Strategy<Value = Spec> {
    (
        proptest::option::of(0..3_u8),
        proptest::option::weighted(0.5, (0..2_u8, 0..2_u8)),
        proptest::option::of((0..2_u8, 0..6_u8, any::<bool>())),
        vec((0..2_u8, 0..5_u8, 0..4_u8), 0..3),
        vec((0..6_u8, 0..3_u8, 0..8_u8), 0..3),
        proptest::option::weighted(0.3, (any::<bool>(), 0..2_u8, 0..5_u8)),
        prop::bool::weighted(0.9),
        0..3_u8,
        proptest::option::weighted(0.5, (0..3_u8, any::<bool>(), any::<bool>())),
        proptest::option::weighted(0.4, (0..4_u8, any::<bool>())),
        proptest::option::weighted(0.4, 0..4_u8),
    )
        .prop_map(|(fqdn, secret, clients, includes, routes, tcp, class, created, auth, tokens, limits)| Spec {
            fqdn,
            secret,
            clients,
            includes,
            routes,
            tcp,
            class,
            created,
            auth,
            tokens,
            limits,
        })
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => (any::<bool>(), 0..2_u8, 0..5_u8, prop::bool::weighted(0.2), spec()).prop_map(|(sesame, space, name, gone, spec)| {
            Edit::Proxy { sesame, space, name, gone, spec }
        }),
        2 => (0..2_u8, 0..3_u8, any::<bool>()).prop_map(|(space, name, gone)| Edit::Service { space, name, gone }),
        1 => (0..2_u8, 0..2_u8, any::<bool>(), any::<bool>()).prop_map(|(space, name, gone, good)| {
            Edit::Secret { space, name, gone, good }
        }),
        1 => (0..2_u8, any::<bool>(), 0..3_u8).prop_map(|(space, gone, to)| Edit::Delegation { space, gone, to }),
        2 => (0..2_u8, any::<bool>(), prop::bool::weighted(0.3), 0..3_u8).prop_map(|(space, sesame, gone, to)| {
            Edit::Grant { space, sesame, gone, to }
        }),
        2 => (0..2_u8, 0..4_u8).prop_map(|(space, known)| Edit::Keys { space, known }),
        2 => (0..2_u8, any::<bool>(), any::<bool>(), 0..4_u8, 0..3_u8).prop_map(|(space, sesame, gone, services, trust)| {
            Edit::Extension { space, sesame, gone, services, trust }
        }),
        1 => operator().prop_map(Edit::Settings),
    ]
}

fn condition(n: u8) -> Value {
    match n {
        0 => json!([]),
        1 => json!([{ "prefix": "/a" }]),
        2 => json!([{ "prefix": "/b" }, { "header": { "name": "x", "exact": "1" } }]),
        3 => json!([{ "queryParameter": { "name": "q", "present": true } }]),
        4 => json!([{ "exact": "/e" }]),
        _ => json!([{ "regex": "/(" }]),
    }
}

fn client_validation((n, kind, forward): (u8, u8, bool)) -> Value {
    let mut validation = json!({ "caSecret": format!("{}/t0", space(n)) });
    match kind {
        0 => {}
        1 => validation["crlSecret"] = "t0".into(),
        2 => {
            validation["crlSecret"] = format!("{}/t1", space(n + 1)).into();
            validation["crlOnlyVerifyLeafCert"] = true.into();
        }
        3 => validation["optionalClientCertificate"] = true.into(),
        4 => validation["skipClientCertValidation"] = true.into(),
        _ => validation = json!({ "skipClientCertValidation": true }),
    }
    if forward {
        validation["forwardClientCertificate"] = json!({ "subject": true });
    }
    validation
}

/// A policy: descriptors of each sort, none, or bad ones.
fn global_rate_limit(n: u8) -> Value {
    let entries = match n {
        0 => {
            json!([{ "genericKey": { "value": "all" } }, { "requestHeader": { "headerName": "x", "descriptorKey": "x" } }])
        }
        1 => {
            json!([{ "remoteAddress": {} }, { "requestHeaderValueMatch": { "headers": [{ "name": "x", "exact": "1" }], "value": "v" } }])
        }
        2 => return json!({ "disabled": true }),
        _ => json!([{}]),
    };
    json!({ "descriptors": [{ "entries": entries }] })
}

fn route((condition_of, service, kind): (u8, u8, u8)) -> Value {
    let mut route = json!({ "conditions": condition(condition_of) });
    match kind {
        0 => route["requestRedirectPolicy"] = json!({ "path": "/there" }),
        1 => route["directResponsePolicy"] = json!({ "statusCode": 200 }),
        2 => {
            route["services"] = json!([{ "name": format!("s{service}"), "port": 80, "protocol": "h2c" }]);
            route["loadBalancerPolicy"] = json!({ "strategy": "Cookie" });
        }
        3 => {
            route["services"] = json!([{ "name": format!("s{service}"), "port": 80, "protocol": "tls" }, { "name": "s0", "port": 80, "mirror": true }]);
            route["pathRewritePolicy"] = json!({ "replacePrefix": [{ "replacement": "/" }] });
        }
        4 => {
            route["directResponsePolicy"] = json!({ "statusCode": 200 });
            route["authPolicy"] = json!({ "disabled": service == 0, "context": { "key": service.to_string() } });
        }
        5 | 6 => {
            let policy = if kind == 5 { json!({ "require": "k1" }) } else { json!({ "disabled": true }) };
            route["jwtVerificationPolicy"] = policy;
            route["permitInsecure"] = (service == 0).into();
            route["services"] = json!([{ "name": format!("s{service}"), "port": 80 }]);
        }
        _ => {
            route["rateLimitPolicy"] = json!({ "global": global_rate_limit(service) });
            route["services"] =
                json!([{ "name": format!("s{service}"), "port": 80 }, { "name": "s1", "port": 80, "weight": 2 }])
        }
    }
    route
}

/// A certificate with its key, its CA, and the CRL of that.
fn pems() -> &'static [String; 4] {
    static PEMS: OnceLock<[String; 4]> = OnceLock::new();
    PEMS.get_or_init(|| {
        let ca = Ca::new("oracle");
        let leaf = ca.leaf("f0.example.com").make();
        [leaf.chain_pem(), leaf.key_pem(), ca.pem(), ca.crl([]).pem()].map(str::to_owned)
    })
}

/// Sets what an edit says about the keys of a server or about the configuration, if it is about that.
fn set_input(edit: &Edit, pipeline: &mut Pipeline) {
    if let Edit::Settings(operator) = edit {
        pipeline.set_settings(&operator.settings());
    }
    let Edit::Keys { space: n, known } = edit else { return };
    let uri = JwksUri::parse("https://keys.example.com/").unwrap();
    let source = Arc::new(RemoteJwks { namespace: space(*n).into(), uri, trust: None, family: None });
    let keys = || resolve::jwks::parse(br#"{"keys":[{"kty":"oct","k":"AQAB"}]}"#).ok();
    let failure = || Some("no answer".into());
    let state = match known {
        0 => None,
        1 => Some(JwksState { keys: keys(), failure: None }),
        2 => Some(JwksState { keys: None, failure: failure() }),
        _ => Some(JwksState { keys: keys(), failure: failure() }),
    };
    pipeline.set_jwks(&source, state);
}

/// The object that an edit puts, or the key that it takes away; nothing if it is about something else.
fn change(edit: &Edit) -> Option<(ObjectRef, Option<Object>)> {
    let (kind, namespace, name, gone, rest) = match edit {
        Edit::Keys { .. } | Edit::Settings(_) => return None,
        Edit::Proxy { sesame, space: n, name, gone, spec } => {
            let kind = if *sesame { kind::SESAME_HTTP_PROXY } else { kind::CONTOUR_HTTP_PROXY };
            let mut body = json!({
                "includes": spec.includes.iter().map(|(n, name, of)| json!({
                    "name": format!("p{name}"), "namespace": space(*n), "conditions": condition(*of),
                })).collect::<Vec<_>>(),
                "routes": spec.routes.iter().copied().map(route).collect::<Vec<_>>(),
            });
            if let Some(fqdn) = spec.fqdn {
                let fqdn = ["f0.example.com", "f1.example.com", "*.example.com"][usize::from(fqdn)];
                body["virtualhost"] = json!({ "fqdn": fqdn });
                if let Some((n, name)) = spec.secret {
                    let fallback = name == 0;
                    let tls =
                        json!({ "secretName": format!("{}/t{name}", space(n)), "enableFallbackCertificate": fallback });
                    body["virtualhost"]["tls"] = tls;
                    if let Some(clients) = spec.clients {
                        body["virtualhost"]["tls"]["clientValidation"] = client_validation(clients);
                    }
                    if let Some((of, default)) = spec.tokens {
                        let source = match of {
                            0 => json!({ "uri": "https://keys.example.com/" }),
                            1 => json!({ "uri": "https://keys.example.com/", "timeout": "2s", "cacheDuration": "1m" }),
                            _ => json!({ "uri": "http://keys.example.com:99999/" }),
                        };
                        let mut provider = json!({ "name": format!("k{}", of % 2), "default": default });
                        if of == 3 {
                            provider["localJWKS"] = json!({ "secretName": "t0", "key": "keys" });
                        } else {
                            provider["remoteJWKS"] = source;
                        }
                        body["virtualhost"]["jwtProviders"] = json!([provider]);
                    }
                } else if spec.tcp.is_some() {
                    body["virtualhost"]["tls"] = json!({ "passthrough": true });
                }
            }
            if let Some((n, disabled, fail_open)) = spec.auth.filter(|_| spec.fqdn.is_some()) {
                let mut authorization = json!({ "authPolicy": { "disabled": disabled }, "failOpen": fail_open });
                if n < 2 {
                    authorization["extensionRef"] = json!({ "name": "e", "namespace": space(n) });
                }
                body["virtualhost"]["authorization"] = authorization;
            }
            if let Some(limits) = spec.limits.filter(|_| spec.fqdn.is_some()) {
                body["virtualhost"]["rateLimitPolicy"] = json!({ "global": global_rate_limit(limits) });
            }
            if let Some((include, n, name)) = spec.tcp {
                body["tcpproxy"] = if include {
                    json!({ "include": { "namespace": space(n), "name": format!("p{name}") } })
                } else {
                    json!({ "services": [{ "name": format!("s{name}"), "port": 80 }, { "name": "s0", "port": 80, "weight": n }] })
                };
            }
            if !spec.class {
                body["ingressClassName"] = "another".into();
            }
            let created = format!("2024-01-0{}T00:00:00Z", spec.created + 1);
            let meta = json!({ "creationTimestamp": created });
            (kind, space(*n), format!("p{name}"), *gone, json!({ "spec": body, "metadata": meta }))
        }
        Edit::Service { space: n, name, gone } => {
            let body = json!({ "spec": { "ports": [{ "port": 80 }] } });
            (kind::SERVICE, space(*n), format!("s{name}"), *gone, body)
        }
        Edit::Secret { space: n, name, gone, good } => {
            let [chain, key, ca, crl] = pems();
            let (key, crl) = if *good { (key.as_str(), crl.as_str()) } else { ("nonsense", "nonsense") };
            let keys = if *good { r#"{"keys":[{"kty":"oct","k":"AQAB"}]}"# } else { "nonsense" };
            let data = json!({ "tls.crt": chain, "tls.key": key, "ca.crt": ca, "crl.pem": crl, "keys": keys });
            let body = json!({ "type": "kubernetes.io/tls", "stringData": data });
            (kind::SECRET, space(*n), format!("t{name}"), *gone, body)
        }
        Edit::Delegation { space: n, gone, to } => {
            let targets = [json!(["*"]), json!(["a"]), json!(["b"])];
            let to = &targets[usize::from(*to)];
            let body = json!({ "spec": { "delegations": [{ "secretName": "t0", "targetNamespaces": to }] } });
            (kind::CONTOUR_TLS_CERTIFICATE_DELEGATION, space(*n), "d".to_owned(), *gone, body)
        }
        Edit::Grant { space: n, sesame, gone, to } => {
            let group = if *sesame { "projectsesame.io" } else { "projectcontour.io" };
            let from = json!([{ "group": group, "kind": "HTTPProxy", "namespace": space(n + 1) }]);
            let targets = [
                json!([{ "group": group, "kind": "ExtensionService" }]),
                json!([{ "group": group, "kind": "ExtensionService", "name": "e" }]),
                json!([{ "group": group, "kind": "ExtensionService", "name": "other" }]),
            ];
            let body = json!({ "spec": { "from": from, "to": targets[usize::from(*to)] } });
            (kind::REFERENCE_GRANT, space(*n), "g".to_owned(), *gone, body)
        }
        Edit::Extension { space: n, sesame, gone, services, trust } => {
            let kind = if *sesame { kind::SESAME_EXTENSION_SERVICE } else { kind::CONTOUR_EXTENSION_SERVICE };
            let services: Vec<Value> =
                (0..*services).map(|name| json!({ "name": format!("s{name}"), "port": 80, "weight": name })).collect();
            let mut body = json!({ "spec": { "services": services } });
            if *trust > 0 {
                body["spec"]["validation"] = json!({ "caSecret": format!("{}/t0", space(*trust)), "subjectName": "x" });
            }
            (kind, space(*n), "e".to_owned(), *gone, body)
        }
    };
    let key = ObjectRef::new(kind, namespace, name.as_str());
    if gone {
        return Some((key, None));
    }
    let mut object = rest;
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = namespace.into();
    let decoded = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap();
    Some((key, Some(decoded.object)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_of_edits_ends_where_a_build_from_nothing_does(
        batches in vec(vec(edit(), 1..8), 1..12),
        operator in operator(),
    ) {
        script::run(&batches, &operator.settings(), set_input, change)?;
    }
}

//! Random trees of HTTPProxies, edited at random: after every batch, all tables equal a build from nothing, and a build of
//! the same objects in another order gives the same resources.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod script;

use kinds::{Object, ObjectRef, kind};
use pipeline::Settings;
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use std::sync::OnceLock;
use testbed::certs::Ca;

/// One change.
#[derive(Clone, Debug)]
enum Edit {
    Proxy { sesame: bool, space: u8, name: u8, gone: bool, spec: Spec },
    Service { space: u8, name: u8, gone: bool },
    Secret { space: u8, name: u8, gone: bool, good: bool },
    Delegation { space: u8, gone: bool, to: u8 },
}

#[derive(Clone, Debug)]
struct Spec {
    fqdn: Option<u8>,
    secret: Option<(u8, u8)>,
    includes: Vec<(u8, u8, u8)>,
    routes: Vec<(u8, u8, u8)>,
    tcp: Option<(bool, u8, u8)>,
    class: bool,
    created: u8,
    tokens: Option<(u8, bool)>,
}

const SPACES: [&str; 2] = ["a", "b"];

fn space(n: u8) -> &'static str {
    SPACES[usize::from(n) % SPACES.len()]
}

fn spec() -> impl Strategy<Value = Spec> {
    (
        proptest::option::of(0..3_u8),
        proptest::option::weighted(0.3, (0..2_u8, 0..2_u8)),
        vec((0..2_u8, 0..5_u8, 0..4_u8), 0..3),
        vec((0..6_u8, 0..3_u8, 0..8_u8), 0..3),
        proptest::option::weighted(0.3, (any::<bool>(), 0..2_u8, 0..5_u8)),
        prop::bool::weighted(0.9),
        0..3_u8,
        proptest::option::weighted(0.4, (0..4_u8, any::<bool>())),
    )
        .prop_map(|(fqdn, secret, includes, routes, tcp, class, created, tokens)| Spec {
            fqdn,
            secret,
            includes,
            routes,
            tcp,
            class,
            created,
            tokens,
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
            route["services"] =
                json!([{ "name": format!("s{service}"), "port": 80 }, { "name": "s0", "port": 80, "mirror": true }]);
            route["pathRewritePolicy"] = json!({ "replacePrefix": [{ "replacement": "/" }] });
        }
        4 => route["authPolicy"] = json!({ "disabled": true }),
        5 | 6 => {
            let policy = if kind == 5 { json!({ "require": "k1" }) } else { json!({ "disabled": true }) };
            route["jwtVerificationPolicy"] = policy;
            route["permitInsecure"] = (service == 0).into();
            route["services"] = json!([{ "name": format!("s{service}"), "port": 80 }]);
        }
        _ => {
            route["services"] =
                json!([{ "name": format!("s{service}"), "port": 80 }, { "name": "s1", "port": 80, "weight": 2 }])
        }
    }
    route
}

fn leaf() -> &'static (String, String) {
    static LEAF: OnceLock<(String, String)> = OnceLock::new();
    LEAF.get_or_init(|| {
        let leaf = Ca::new("oracle").leaf("f0.example.com").make();
        (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned())
    })
}

/// The object that an edit puts, or the key that it takes away.
fn change(edit: &Edit) -> (ObjectRef, Option<Object>) {
    let (kind, namespace, name, gone, rest) = match edit {
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
            let (chain, key) = leaf();
            let key = if *good { key.as_str() } else { "nonsense" };
            let keys = if *good { r#"{"keys":[{"kty":"oct","k":"AQAB"}]}"# } else { "nonsense" };
            let body = json!({ "type": "kubernetes.io/tls", "stringData": { "tls.crt": chain, "tls.key": key, "keys": keys } });
            (kind::SECRET, space(*n), format!("t{name}"), *gone, body)
        }
        Edit::Delegation { space: n, gone, to } => {
            let targets = [json!(["*"]), json!(["a"]), json!(["b"])];
            let to = &targets[usize::from(*to)];
            let body = json!({ "spec": { "delegations": [{ "secretName": "t0", "targetNamespaces": to }] } });
            (kind::CONTOUR_TLS_CERTIFICATE_DELEGATION, space(*n), "d".to_owned(), *gone, body)
        }
    };
    let key = ObjectRef::new(kind, namespace, name.as_str());
    if gone {
        return (key, None);
    }
    let mut object = rest;
    object["metadata"]["name"] = name.into();
    object["metadata"]["namespace"] = namespace.into();
    let decoded = kinds::decode_json(kind, object.to_string().as_bytes()).unwrap();
    (key, Some(decoded.object))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_of_edits_ends_where_a_build_from_nothing_does(
        batches in vec(vec(edit(), 1..8), 1..12),
        limited in any::<bool>(),
    ) {
        let mut settings = Settings::default();
        if limited {
            settings.http_proxy.root_namespaces = vec!["a".into()];
            settings.http_proxy.fallback_certificate = Some(model::ObjectRef::new(kinds::kind::SECRET, "a", "t1"));
        }
        script::run(&batches, &settings, change)?;
    }
}

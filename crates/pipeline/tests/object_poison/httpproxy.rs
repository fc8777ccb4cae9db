//! Nothing that stands in an HTTPProxy makes Envoy refuse anything: what Envoy would not take is told on the field that
//! holds it, and everybody else is served.
//!
//! Hundreds of roots at a time are loaded into a real Envoy.

use crate::dice::{Dice, seed};
use kinds::{Object, http_proxy::security::AuthorizationServer, kind};
use model::{
    ObjectRef,
    jwt::{Jwks, JwksState},
    listener::RateLimitService,
};
use pipeline::{
    Pipeline, Settings,
    authorization::{GlobalAuthorization, of_operator},
    extensions::ExtensionName,
    settings::{Bind, GlobalRateLimits, Packing},
};
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};
use testbed::{
    Client, Net,
    cases::{Backends, Proxy, object},
    certs::Ca,
    tokens::{TokenSigner, key_set},
};

/// How many roots a batch has.
const BATCH: usize = 300;
/// How many batches are loaded one after the other.
const BATCHES: u64 = 4;

fn header(dice: &mut Dice) -> Value {
    let name = dice.text(&["x-a", "x-b", ":method", ":authority", "cookie"]);
    let operator = dice.of(&["present", "notpresent", "contains", "notcontains", "exact", "notexact", "regex"]);
    let value = if operator.ends_with("present") { true.into() } else { dice.text(&["a", "b", "a.*"]) };
    json!({ "name": name, operator: value, "ignoreCase": dice.roll(2) == 0, "treatMissingAsEmpty": dice.roll(2) == 0 })
}

fn query(dice: &mut Dice) -> Value {
    let name = dice.text(&["q", "r"]);
    let operator = dice.of(&["exact", "prefix", "suffix", "regex", "contains", "present"]);
    let value = if operator == "present" { true.into() } else { dice.text(&["a", "b", "a.*"]) };
    json!({ "name": name, operator: value, "ignoreCase": dice.roll(2) == 0 })
}

fn conditions(dice: &mut Dice) -> Value {
    let kind = dice.of(&["prefix", "exact", "regex"]);
    let mut list = vec![json!({ kind: dice.text(&["/a", "/b/", "/c.*", "/d[0-9]+"]) })];
    if dice.roll(3) == 0 {
        list.push(json!({ "header": header(dice) }));
    }
    if dice.roll(3) == 0 {
        list.push(json!({ "queryParameter": query(dice) }));
    }
    list.into()
}

fn headers(dice: &mut Dice) -> Value {
    let set = dice.list(2, |dice| {
        json!({ "name": dice.text(&["x-a", "x-b", "Host"]), "value": dice.text(&["a", "%REQ(x)%", "100%", "%HOSTNAME%"]) })
    });
    json!({ "set": set, "remove": dice.list(2, |dice| dice.text(&["x-c", "x-d"])) })
}

fn cookies(dice: &mut Dice) -> Value {
    dice.list(2, |dice| {
        json!({
            "name": dice.text(&["id", "__Host-a"]), "pathRewrite": { "value": dice.text(&["/", "/a"]) },
            "domainRewrite": { "value": dice.text(&["a.example.com"]) }, "sameSite": dice.text(&["Strict", "None"]),
        })
    })
}

fn limit(dice: &mut Dice) -> Value {
    let mut policy = json!({});
    if dice.roll(3) > 0 {
        let mut number = 0;
        let headers = dice.list(12, |dice| {
            number += 1;
            json!({ "name": dice.text(&[&format!("x-{number}")]), "value": dice.text(&["a", "50%"]) })
        });
        policy["local"] = json!({ "requests": dice.number(&[1, 100]), "unit": dice.text(&["second", "minute", "hour"]),
            "burst": dice.number(&[0, 5]), "responseStatusCode": dice.number(&[429, 503]), "responseHeadersToAdd": headers });
    }
    if dice.roll(2) == 0 {
        let descriptors = dice.list(3, |dice| json!({ "entries": dice.list(3, entry) }));
        policy["global"] = json!({ "disabled": dice.roll(6) == 0, "descriptors": descriptors });
    }
    policy
}

/// An entry of a descriptor: of one sort, now and then of two or none.
fn entry(dice: &mut Dice) -> Value {
    let mut entry = json!({});
    let sorts = dice.of(&[1, 1, 1, 1, 1, 1, 2, 0]);
    for _ in 0..sorts {
        match dice.roll(4) {
            0 => {
                entry["genericKey"] =
                    json!({ "key": dice.text(&["tenant", ""]), "value": dice.text(&["a", "100%", "%REQ(x)%"]) })
            }
            1 => {
                entry["requestHeader"] =
                    json!({ "headerName": dice.text(&["x-a", ":path"]), "descriptorKey": dice.text(&["user"]) })
            }
            2 => {
                let headers = dice.list(3, header);
                let expected = dice.roll(2) == 0;
                entry["requestHeaderValueMatch"] =
                    json!({ "headers": headers, "expectMatch": expected, "value": dice.text(&["batch", "50%"]) });
            }
            _ => entry["remoteAddress"] = json!({}),
        }
    }
    entry
}

fn clients(dice: &mut Dice) -> Value {
    let ranges = ["127.0.0.1", "10.0.0.0/8", "::/0", "2001:db8::/32"];
    dice.list(2, |dice| json!({ "source": dice.text(&["Peer", "Remote"]), "cidr": dice.text(&ranges) }))
}

fn balance(dice: &mut Dice) -> Value {
    let hashes = dice.list(2, |dice| match dice.roll(3) {
        0 => json!({ "headerHashOptions": { "headerName": dice.text(&["x-a"]) }, "terminal": true }),
        1 => json!({ "queryParameterHashOptions": { "parameterName": dice.text(&["q"]) } }),
        _ => json!({ "hashSourceIP": true }),
    });
    let strategies = ["RoundRobin", "Random", "WeightedLeastRequest", "Cookie", "RequestHash"];
    json!({ "strategy": dice.text(&strategies), "requestHashPolicies": hashes })
}

fn health(dice: &mut Dice) -> Value {
    let statuses = dice.list(2, |dice| json!({ "start": dice.number(&[200, 404]), "end": dice.number(&[300, 500]) }));
    json!({ "path": dice.text(&["/", "/health"]), "host": dice.text(&["a.example.com"]), "expectedStatuses": statuses,
        "intervalSeconds": dice.number(&[5, 60]), "timeoutSeconds": dice.number(&[1]),
        "unhealthyThresholdCount": dice.number(&[3]), "healthyThresholdCount": dice.number(&[1]) })
}

fn services(dice: &mut Dice) -> Value {
    dice.list(3, |dice| {
        let mut service = dice.map(
            5,
            &[
                ("weight", |dice| dice.number(&[0, 1, 50])),
                ("mirror", |_| true.into()),
                ("protocol", |dice| dice.text(&["h2", "h2c", "tls"])),
                ("healthPort", |dice| dice.number(&[80])),
                ("requestHeadersPolicy", headers),
                ("responseHeadersPolicy", headers),
                ("cookieRewritePolicies", cookies),
                ("slowStartPolicy", |dice| {
                    json!({ "window": dice.duration(), "aggression": dice.text(&["1.0", "0.5"]), "minWeightPercent": dice.number(&[10]) })
                }),
                ("validation", |dice| json!({ "caSecret": "ca", "subjectName": dice.text(&["backend"]) })),
            ],
        );
        service["name"] = dice.text(&["good"]);
        service["port"] = dice.number(&[80]);
        service
    })
}

fn provider(dice: &mut Dice) -> Value {
    let mut provider = dice.map(
        3,
        &[
            ("issuer", |dice| dice.text(&["https://issuer.example.com"])),
            ("audiences", |dice| dice.list(3, |dice| dice.text(&["shop", "admin"]))),
            ("forwardJWT", |_| true.into()),
            ("default", |_| true.into()),
        ],
    );
    provider["name"] = dice.text(&["a", "b"]);
    if dice.roll(2) == 0 {
        let keys = ["good", "rubbish", "both", "none"];
        provider["localJWKS"] = json!({ "secretName": dice.text(&["keys"]), "key": dice.text(&keys) });
    } else {
        let mut remote = dice.map(
            3,
            &[
                ("timeout", Dice::duration),
                ("cacheDuration", Dice::duration),
                ("dnsLookupFamily", |dice| dice.text(&["auto", "v4", "v6", "all"])),
                ("validation", |dice| json!({ "caSecret": "ca", "subjectName": dice.text(&["keys.example.com"]) })),
            ],
        );
        remote["uri"] =
            dice.text(&["https://keys.example.com/jwks", "http://10.0.0.1:99999/", "https://[fd00::1]/a?b"]);
        provider["remoteJWKS"] = remote;
    }
    provider
}

fn route(dice: &mut Dice) -> Value {
    let mut route = dice.map(
        6,
        &[
            ("enableWebsockets", |_| true.into()),
            ("permitInsecure", |_| true.into()),
            ("ipAllowPolicy", clients),
            ("ipDenyPolicy", clients),
            ("timeoutPolicy", |dice| json!({ "response": dice.duration(), "idle": dice.duration(), "idleConnection": dice.duration() })),
            ("retryPolicy", |dice| {
                let on = dice.list(3, |dice| dice.text(&["5xx", "gateway-error", "retriable-status-codes"]));
                json!({ "count": dice.number(&[-1, 0, 3]), "perTryTimeout": dice.duration(), "retryOn": on,
                    "retriableStatusCodes": dice.list(2, |dice| dice.number(&[503])) })
            }),
            ("healthCheckPolicy", health),
            ("loadBalancerPolicy", balance),
            ("pathRewritePolicy", |dice| {
                json!({ "replacePrefix": dice.list(2, |dice| json!({ "prefix": dice.text(&["/a"]), "replacement": dice.text(&["/", "/z"]) })) })
            }),
            ("requestHeadersPolicy", headers),
            ("responseHeadersPolicy", headers),
            ("cookieRewritePolicies", cookies),
            ("rateLimitPolicy", limit),
            ("authPolicy", auth_policy),
            ("jwtVerificationPolicy", |dice| json!({ "require": dice.text(&["a", "b"]), "disabled": dice.roll(4) == 0 })),
            ("internalRedirectPolicy", |dice| {
                json!({ "maxInternalRedirects": dice.number(&[1, 3]), "redirectResponseCodes": dice.list(2, |dice| dice.number(&[301, 302])),
                    "allowCrossSchemeRedirect": dice.text(&["Always", "Never", "SafeOnly"]) })
            }),
        ],
    );
    route["conditions"] = conditions(dice);
    match dice.roll(5) {
        0 => {
            let redirect = json!({ "scheme": dice.text(&["http", "https"]), "hostname": dice.text(&["b.example.com"]),
                "port": dice.number(&[80, 8443]), "statusCode": dice.number(&[301, 302, 308]), "path": dice.text(&["/z"]) });
            route["requestRedirectPolicy"] = redirect;
        }
        1 => {
            route["directResponsePolicy"] =
                json!({ "statusCode": dice.number(&[200, 404]), "body": dice.text(&["hello"]) })
        }
        _ => route["services"] = services(dice),
    }
    route
}

fn client_validation(dice: &mut Dice) -> Value {
    let details = ["subject", "cert", "chain", "dns", "uri"];
    let mut validation = dice.map(
        3,
        &[
            ("crlSecret", |dice| dice.text(&["ca", "ca", "empty"])),
            ("crlOnlyVerifyLeafCert", |_| true.into()),
            ("optionalClientCertificate", |_| true.into()),
            ("skipClientCertValidation", |_| true.into()),
        ],
    );
    if dice.roll(8) != 0 {
        validation["caSecret"] = dice.text(&["ca"]);
    }
    if dice.roll(2) == 0 {
        validation["forwardClientCertificate"] = details.into_iter().map(|name| (name, dice.roll(2) == 0)).collect();
    }
    validation
}

fn auth_policy(dice: &mut Dice) -> Value {
    let context = json!({ "key": dice.text(&["value"]), dice.of(&["a", "x y", "é\u{1}"]): dice.text(&["b"]) });
    json!({ "disabled": dice.roll(3) == 0, "context": context })
}

fn authorization(dice: &mut Dice) -> Value {
    let mut server = dice.map(
        3,
        &[
            ("authPolicy", auth_policy),
            ("responseTimeout", Dice::duration),
            ("failOpen", |_| true.into()),
            ("withRequestBody", |dice| {
                json!({ "maxRequestBytes": dice.number(&[1, 1024]), "allowPartialMessage": true, "packAsBytes": dice.roll(2) == 0 })
            }),
        ],
    );
    let extension = format!("e{}", dice.roll(EXTENSIONS));
    let mut reference = dice.map(
        4,
        &[
            ("apiVersion", |dice| dice.text(&["projectcontour.io/v1alpha1", "projectsesame.io/v1alpha1"])),
            ("namespace", |dice| dice.text(&["good", "elsewhere"])),
        ],
    );
    reference["name"] = dice.text(&[&extension, "nobody"]);
    server["extensionRef"] = reference;
    if dice.roll(2) == 0 {
        let headers =
            |dice: &mut Dice| json!({ dice.of(&["exact", "prefix", "suffix", "contains"]): dice.text(&["x-a"]) });
        server["serviceType"] = dice.text(&["http"]);
        server["httpSettings"] = json!({ "pathPrefix": dice.text(&["/check"]), "allowedUpstreamHeaders": dice.list(2, headers),
            "allowedAuthorizationHeaders": dice.list(2, headers) });
    }
    server
}

/// How many ExtensionServices there are.
const EXTENSIONS: usize = 8;

fn extension(dice: &mut Dice, number: usize) -> Value {
    let mut spec = dice.map(
        2,
        &[
            ("protocol", |dice| dice.text(&["h2", "h2c", "http/1.1"])),
            ("protocolVersion", |dice| dice.text(&["v3"])),
            ("validation", |dice| json!({ "caSecret": "ca", "subjectName": dice.text(&["backend"]) })),
            ("loadBalancerPolicy", balance),
            ("timeoutPolicy", |dice| {
                json!({ "response": dice.duration(), "idle": dice.duration(), "idleConnection": dice.duration() })
            }),
            ("circuitBreakerPolicy", |dice| {
                json!({ "maxConnections": dice.number(&[1]), "maxPendingRequests": dice.number(&[1]),
                    "maxRequests": dice.number(&[1]), "maxRetries": dice.number(&[1]), "perHostMaxConnections": dice.number(&[1]) })
            }),
        ],
    );
    spec["services"] = dice.list(
        3,
        |dice| json!({ "name": dice.text(&["good"]), "port": dice.number(&[80]), "weight": dice.number(&[0, 1, 7]) }),
    );
    let group = dice.of(&["projectcontour.io", "projectcontour.io", "projectsesame.io"]);
    json!({ "apiVersion": format!("{group}/v1alpha1"), "kind": "ExtensionService", "spec": spec,
        "metadata": { "name": format!("e{number}"), "namespace": "good" } })
}

fn root(dice: &mut Dice, number: usize) -> Value {
    let mut host = dice.map(
        8,
        &[
            ("corsPolicy", |dice| {
                let origins = ["*", "https://a.example.com", "https://.*"];
                json!({ "allowOrigin": dice.list(2, |dice| dice.text(&origins)), "allowMethods": dice.list(2, |dice| dice.text(&["GET"])),
                    "allowHeaders": dice.list(2, |dice| dice.text(&["x-a"])), "maxAge": dice.duration() })
            }),
            ("rateLimitPolicy", limit),
            ("ipAllowPolicy", clients),
            ("ipDenyPolicy", clients),
            ("jwtProviders", |dice| dice.list(3, provider)),
        ],
    );
    let name = format!("p{number}.example.com");
    host["fqdn"] = if dice.roll(10) == 0 { dice.text(&["*.wide.example.com"]) } else { name.as_str().into() };
    let mut spec = json!({ "routes": dice.list(4, route) });
    // Tokens need TLS that ends at the proxy.
    let has_tokens = host.get("jwtProviders").is_some();
    if has_tokens || dice.roll(4) == 0 {
        let pass = !has_tokens && dice.roll(2) == 0;
        host["tls"] = if pass { json!({ "passthrough": true }) } else { json!({ "secretName": dice.text(&["cert"]) }) };
        if dice.roll(6) == 0 {
            host["tls"]["enableFallbackCertificate"] = true.into();
        }
        if dice.roll(2) == 0 {
            host["tls"]["clientValidation"] = client_validation(dice);
        }
        if dice.roll(2) == 0 {
            host["authorization"] = authorization(dice);
        }
        if dice.roll(2) == 0 {
            spec["tcpproxy"] = json!({ "services": services(dice), "loadBalancerPolicy": balance(dice), "healthCheckPolicy": health(dice) });
        }
    }
    spec["virtualhost"] = host;
    json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "spec": spec,
        "metadata": { "name": format!("p{number}"), "namespace": "good" } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_an_httpproxy_envoy_refuses_nothing() {
    load("proxies", Packing::Scoped).await;
}

/// In tables what Envoy refuses spoils all hosts of a port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_stands_in_an_httpproxy_envoy_refuses_nothing_in_tables() {
    load("proxies-tables", Packing::Plain).await;
}

async fn load(name: &str, packing: Packing) {
    let address = Net::here().unwrap().address();
    let bind = |port| Bind { address: address.into(), port };
    let (http, https, stats) = (bind(8080), bind(8443), bind(8002));
    let mut settings = Settings { http, https, stats, admin_port: 0, packing, ..Settings::default() };
    let limits = ExtensionName { namespace: "good".into(), name: "e0".into() };
    let service = (limits.namespace.clone(), limits.name.clone());
    settings.rate_limit_service = Some((limits, RateLimitService::default()));
    settings.http_proxy.global_rate_limits = Some(GlobalRateLimits { service, default: None, add_namespace: true });
    settings.http_proxy.fallback_certificate = Some(ObjectRef::new(kind::SECRET, "good", "cert"));
    let global = GlobalAuthorization {
        extension: ExtensionName { namespace: "good".into(), name: "e1".into() },
        settings: of_operator(&AuthorizationServer::default()).unwrap(),
    };
    let mut proxy = Proxy::start(name).await.unwrap();
    let mut backends = Backends::new();
    let kept = good(&mut backends).await;
    let client = Client::new(SocketAddr::new(address.into(), 8080)).host("good.example.org");
    for batch in 0..BATCHES {
        let mut dice = Dice::new(seed(), batch);
        // In every other batch all routes ask the operator's authorization server, unless they say otherwise.
        settings.authorization = (batch % 2 == 1).then(|| global.clone());
        let mut pipeline = Pipeline::new(&settings);
        for number in 0..EXTENSIONS {
            let object = object(&extension(&mut dice, number));
            pipeline.put(&object.key(), Some(object));
        }
        for object in kept.iter().cloned().chain((0..BATCH).map(|number| object(&root(&mut dice, number)))) {
            pipeline.put(&object.key(), Some(object));
        }
        let mut output = pipeline.settle();
        // Servers of keys answer with keys that cannot be used, or say why there are none.
        let sources = pipeline.jwks_refs();
        println!("batch {batch}: {} key sets are referred to", sources.len());
        for (source, _) in &sources {
            let rubbish = [
                "{}",
                "null",
                r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#,
                r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
            ];
            let keys = Jwks::new([Arc::from(dice.of(&rubbish))]).filter(|_| dice.roll(3) > 0);
            let failure = dice.text(&["no answer"]).as_str().map(Arc::from);
            pipeline.set_jwks(source, Some(JwksState { keys, failure }));
        }
        let again = pipeline.settle();
        output.verdicts.extend(again.verdicts);
        let replaced: Vec<_> = again.xds.upserts.iter().map(|it| (it.kind, it.name.clone())).collect();
        output.xds.upserts.retain(|it| !replaced.contains(&(it.kind, it.name.clone())));
        output.xds.upserts.extend(again.xds.upserts);
        assert!(
            pipeline.engine().failed_rows().is_empty(),
            "a computation panicked: {:?}",
            pipeline.engine().failed_rows()
        );
        let fine = output.verdicts.iter().filter(|(_, said)| said.as_ref().is_some_and(|list| list.is_empty())).count();
        println!("batch {batch}: {fine} of {BATCH} are fine as they are");
        proxy.replace(output.xds.upserts).await.unwrap();
        let answer = client.get("/").await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.backend()), (200, Some("good/good")));
    }
}

/// A host that must be served whatever others write, and what they all refer to.
async fn good(backends: &mut Backends) -> Vec<Object> {
    let address = backends.named("good/good").await.unwrap();
    let meta = |name: &str| json!({ "namespace": "good", "name": name });
    let ca = Ca::new("poison");
    let leaf = ca.leaf("a.example.com").make();
    let slice = json!({ "namespace": "good", "name": "good", "labels": { "kubernetes.io/service-name": "good" } });
    let objects = [
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta("good"), "spec": { "ports": [{ "port": 80 }] } }),
        json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice, "addressType": "IPv4",
            "ports": [{ "port": 80 }], "endpoints": [{ "addresses": [address] }] }),
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": meta("cert"),
            "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("ca"),
            "stringData": { "ca.crt": ca.pem(), "crl.pem": ca.crl([]).pem() } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("empty") }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("keys"), "stringData": {
            "good": key_set([&TokenSigner::new("a")]), "rubbish": "rubbish", "none": "{\"keys\":[]}",
            "both": "{\"keys\":[1,{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"},{\"kty\":\"oct\",\"k\":\"AQAB\"}]}" } }),
        json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": meta("good"),
            "spec": { "virtualhost": { "fqdn": "good.example.org" }, "routes": [{ "authPolicy": { "disabled": true },
                "services": [{ "name": "good", "port": 80 }] }] } }),
    ];
    objects.iter().map(object).collect()
}

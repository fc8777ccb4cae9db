//! What is protected stays so in every request while the configuration changes, the operator's authorization server included: in a file
//! and in a ContourConfiguration.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::auth_server::AuthServer;
use testbed::certs::Ca;
use testbed::load::Plan;
use testbed::tokens::{TokenSigner, claims, key_set};
use testbed::{Backend, Client, Envoy, Load, Net, eventually};

use crate::bed::{Bed, TIMEOUT, app, service};

/// Requests per second, of all loads together, and how many loads there are.
const RATE: f64 = 200.0;
const LOADS: f64 = 7.0;

/// A configuration whose number is in each answer, and in what the authorization server is told.
fn config(namespace: &str, number: usize) -> String {
    format!(
        "timeouts: {{request-timeout: {}s}}\n\
         policy: {{applyToIngress: true, response-headers: {{set: {{x-config: '{number}'}}}}}}\n\
         globalExtAuth: {{extensionService: {namespace}/auth, failOpen: {}, responseTimeout: {}s, \
         authPolicy: {{context: {{config: '{number}'}}}}}}\n",
        20 + number,
        number % 3 == 2,
        30 + number % 2,
    )
}

/// The same as a ContourConfiguration.
fn object(namespace: &str, number: usize) -> Value {
    json!({
        "apiVersion": "projectcontour.io/v1alpha1", "kind": "ContourConfiguration",
        "metadata": { "name": "sesame", "namespace": namespace },
        "spec": {
            "envoy": { "timeouts": { "requestTimeout": format!("{}s", 20 + number) } },
            "policy": { "applyToIngress": true, "responseHeaders": { "set": { "x-config": number.to_string() } } },
            "globalExtAuth": {
                "extensionRef": { "name": "auth", "namespace": namespace }, "failOpen": number % 3 == 2,
                "responseTimeout": format!("{}s", 30 + number % 2),
                "authPolicy": { "context": { "config": number.to_string() } },
            },
        },
    })
}

/// Where the configuration stands.
enum ConfigSource {
    File(PathBuf),
    ContourConfiguration,
}

impl ConfigSource {
    async fn write(&self, bed: &Bed, namespace: &str, number: usize) {
        match self {
            ConfigSource::File(path) => std::fs::write(path, config(namespace, number)).unwrap(),
            ConfigSource::ContourConfiguration => bed.api.apply(&object(namespace, number).to_string()).await.unwrap(),
        }
    }

    /// Writes one that is refused.
    async fn spoil(&self, bed: &Bed, namespace: &str) {
        match self {
            ConfigSource::File(path) => {
                let broken = format!("{}listener: {{socket-options: {{tos: 256}}}}\n", config(namespace, 99));
                std::fs::write(path, broken).unwrap();
            }
            ConfigSource::ContourConfiguration => {
                let mut broken = object(namespace, 99);
                broken["spec"]["envoy"]["timeouts"]["connectTimeout"] = json!("soon");
                bed.api.apply(&broken.to_string()).await.unwrap();
            }
        }
    }

    fn flags<'a>(&'a self, namespace: &'a str) -> Vec<(&'a str, &'a str)> {
        match self {
            ConfigSource::File(path) => vec![("config-path", path.to_str().unwrap())],
            ConfigSource::ContourConfiguration => vec![("contour-config-name", "sesame"), ("namespace", namespace)],
        }
    }
}

/// Every answer has this status.
fn all(plan: Plan, status: u16) -> Load {
    let plan = plan.per_second(RATE / LOADS).in_flight(4).expect(move |answer| match answer.status.as_u16() {
        found if found == status => Ok(()),
        found => Err(format!("{found}, not {status}")),
    });
    plan.start()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_protected_stays_so_while_the_configuration_changes_twenty_times() {
    let bed = Bed::start().await;
    let source = ConfigSource::File(bed.file("sesame.yaml", ""));
    changes_twenty_times(bed, source).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_protected_stays_so_while_a_contour_configuration_changes_twenty_times() {
    changes_twenty_times(Bed::start().await, ConfigSource::ContourConfiguration).await;
}

async fn changes_twenty_times(bed: Bed, source: ConfigSource) {
    let (ca, clients, signer) = (Ca::new("protected"), Ca::new("clients"), TokenSigner::new("one"));
    let backend = Backend::start("web").await.unwrap();
    let server = AuthServer::start("auth", ca.leaf("auth").make().server_config()).await.unwrap();
    let namespace = bed.api.namespace("protected").await.unwrap();
    let meta = |name: &str| json!({ "name": name, "namespace": namespace });
    let certificate = |name: &str, host: &str| {
        let leaf = ca.leaf(host).make();
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta(name),
            "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } })
    };
    let provider = json!({ "name": "main", "default": true, "issuer": "us",
        "localJWKS": { "secretName": "keys", "key": "jwks.json" } });
    let extension_service = json!({ "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService", "metadata": meta("auth"),
        "spec": { "protocol": "h2c", "services": [{ "name": "auth", "port": 80 }] } });
    let slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "auth", "namespace": namespace, "labels": { "kubernetes.io/service-name": "auth" } },
        "ports": [{ "port": 80, "name": "" }], "endpoints": [{ "addresses": [server.ip().to_string()] }] });
    let proxy = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": meta("api"), "spec": {
        "virtualhost": { "fqdn": "api.example.com", "tls": { "secretName": "cert" }, "jwtProviders": [provider] },
        "routes": [{ "services": [{ "name": "api", "port": 80 }] }],
    } });
    let validated = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": meta("mtls"), "spec": {
        "virtualhost": { "fqdn": "mtls.example.com",
            "tls": { "secretName": "cert-mtls", "clientValidation": { "caSecret": "clients" } } },
        "routes": [{ "services": [{ "name": "api", "port": 80 }] }],
    } });
    for object in [
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta("auth"), "spec": { "ports": [{ "port": 80 }] } }),
        slice,
        extension_service,
        certificate("cert", "api.example.com"),
        certificate("cert-mtls", "mtls.example.com"),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("clients"),
            "stringData": { "ca.crt": clients.pem() } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("keys"),
            "stringData": { "jwks.json": key_set([&signer]) } }),
        proxy,
        validated,
    ] {
        bed.api.apply(&object.to_string()).await.unwrap();
    }
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    bed.api.apply(&service(&namespace, "api", &backend)).await.unwrap();
    source.write(&bed, &namespace, 0).await;
    let flags = source.flags(&namespace);
    let replica = bed.replica_at("sesame-0", Net::here().unwrap().address(), &flags).await.ready().await;
    // A request that a busy machine takes long for does not end with the listener that took it.
    let draining = Envoy::config().drain_time(Duration::from_secs(30));
    let envoy = bed.envoy_as(draining, replica.xds(), &[]).await;
    envoy.ready().await.unwrap();

    let web = Client::new(bed.http()).host("web.example.com").timeout(TIMEOUT);
    let secured = |host: &str| {
        let client = Client::new(bed.https()).host(host).https().sni(host).trust(&ca);
        client.timeout(TIMEOUT)
    };
    let (api, mtls) = (secured("api.example.com"), secured("mtls.example.com"));
    let known = mtls.clone().identity(&clients.leaf("somebody").client_only().make());
    let token = format!("Bearer {}", signer.token(&claims("us", "shop")));
    // In effect when the answers have it, and when the authorization server is told of it.
    let in_effect = async |number: usize| {
        let wanted = (Some(number.to_string()), Some(format!("config={number}")));
        let look = async || {
            let answer = web.get("/").await.map_err(|failure| failure.to_string())?;
            let found = answer.headers.get("x-config").and_then(|found| found.to_str().ok()).map(str::to_owned);
            let told = (answer.status == 200).then(|| answer.echo().header("x-auth-context").map(str::to_owned));
            let found = (found, told.flatten());
            if found == wanted { Ok(()) } else { Err(format!("{} {found:?}", answer.status)) }
        };
        eventually(format!("configuration {number}"), TIMEOUT, look).await.unwrap();
    };
    in_effect(0).await;
    let accepted = async || match (api.get("/").header("authorization", &token).await, known.get("/").await) {
        (Ok(api), Ok(mtls)) if api.status == 200 && mtls.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("the hosts with tokens and with client certificates", TIMEOUT, accepted).await.unwrap();

    let loads = [
        all(Load::of(web.get("/")), 200),
        all(Load::of(web.get("/").header("x-auth", "deny")), 401),
        all(Load::of(api.get("/").header("authorization", &token)), 200),
        all(Load::of(api.get("/")), 401),
        all(Load::of(api.get("/").header("authorization", &token).header("x-auth", "deny")), 401),
        all(Load::of(known.get("/")), 200),
    ];
    // Nobody answers whoever has no certificate.
    let unknown = all(Load::of(mtls.get("/")), 0);
    for number in 1..=20 {
        if number % 5 == 0 {
            source.spoil(&bed, &namespace).await;
            replica.expect_metric("sesame_configuration_valid", "", |valid| valid == 0.0).await;
        }
        source.write(&bed, &namespace, number).await;
        in_effect(number).await;
        for load in loads.iter().chain([&unknown]) {
            load.answered(3).await;
        }
    }
    for load in loads {
        load.stop().await.assert_nothing_lost();
    }
    let unknown = unknown.stop().await;
    let answered: Vec<_> = unknown.failed.iter().filter(|failed| failed.status.is_some()).collect();
    assert!(answered.is_empty() && unknown.failed.len() as u64 == unknown.sent, "{answered:?} {unknown}");
    assert_eq!(replica.metric("sesame_configuration_changes_total", "applied").await, 20.0);
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
}

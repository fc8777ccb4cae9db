//! Emissary: canaries that grow, Listeners that come and go, a Module that changes, certificates that are renewed, many Mappings, an
//! AuthService that is replaced.

use kinds::Object;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use testbed::{
    Backend, Client,
    auth_server::AuthServer,
    cases::object,
    certs::{Ca, Leaf},
    eventually,
};

use crate::bed::{Bed, secret, service, slice, slice_of, undisturbed};

const TIMEOUT: Duration = Duration::from_secs(20);

fn of(kind: &str, name: &str, spec: &Value) -> Object {
    object(
        &json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec }),
    )
}

fn listener(name: &str, port: u16, protocol: &str) -> Object {
    let binding = json!({ "namespace": { "from": "ALL" } });
    of("Listener", name, &json!({ "port": port, "protocol": protocol, "securityModel": "XFP", "hostBinding": binding }))
}

fn host() -> Object {
    let policy = json!({ "insecure": { "action": "Route" } });
    of("Host", "web", &json!({ "hostname": "web.example.com", "requestPolicy": policy }))
}

fn mapping(name: &str, prefix: &str, service: &str, weight: Option<u32>) -> Object {
    let mut spec = json!({ "hostname": "web.example.com", "prefix": prefix, "service": service });
    if let Some(weight) = weight {
        spec["weight"] = weight.into();
    }
    of("Mapping", name, &spec)
}

/// A Listener on the shared port, a Host, a Service `web`, and a Mapping to it.
async fn bed(name: &str) -> Bed {
    let mut bed = Bed::with(name, |settings| settings.emissary.address = settings.http.address).await;
    let web = bed.service("default", "web").await;
    bed.apply(web).await;
    bed.apply([listener("http", 8080, "HTTP"), host(), mapping("web", "/", "web", None)]).await;
    bed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_goes_from_none_to_all() {
    let mut bed = bed("canary").await;
    let next = bed.service("default", "next").await;
    bed.apply(next).await;
    let load = bed.load(&bed.http, "web.example.com", "/", 1).start();
    load.answered(50).await;
    for weight in (0..=100).step_by(10) {
        bed.apply([mapping("next", "/", "next", Some(weight))]).await;
        load.answered(40).await;
    }
    for _ in 0..20 {
        let answer = bed.http.clone().host("web.example.com").get("/").await.unwrap();
        assert_eq!(answer.backend(), Some("next"), "all requests go to the canary of a hundred");
    }
    undisturbed([load]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_comes_and_goes() {
    let mut bed = bed("listeners").await;
    let load = bed.load(&bed.http, "web.example.com", "/", 1).start();
    load.answered(50).await;
    let mut address = bed.http.addr();
    address.set_port(9080);
    for _ in 0..5 {
        bed.apply([listener("more", 9080, "HTTP")]).await;
        let answer = Client::new(address).host("web.example.com").get("/").await.unwrap();
        assert_eq!(answer.status, 200);
        load.answered(20).await;
        bed.remove([listener("more", 9080, "HTTP")]).await;
        load.answered(20).await;
    }
    undisturbed([load]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_module_changes_timeouts_and_headers() {
    let mut bed = bed("module").await;
    let load = bed.load(&bed.http, "web.example.com", "/", 1).start();
    load.answered(50).await;
    for round in 1..=20 {
        let headers = json!({ "add_response_headers": { "x-round": round.to_string() } });
        let config = json!({ "cluster_request_timeout_ms": 1000 * round, "defaults": headers });
        bed.apply([of("Module", "ambassador", &json!({ "config": config }))]).await;
        let answer = bed.http.clone().host("web.example.com").get("/").await.unwrap();
        assert_eq!(answer.headers["x-round"], round.to_string());
        load.answered(10).await;
    }
    undisturbed([load]).await;
}

/// How often Envoy has taken listeners and clusters.
async fn listener_and_cluster_updates(bed: &Bed) -> BTreeMap<String, u64> {
    let names = r"^(listener_manager\.lds|cluster_manager\.cds)\.update_success$";
    let counts = bed.envoys().next().unwrap().stats(names).await.unwrap();
    assert_eq!(counts.len(), 2, "{counts:?}");
    counts
}

/// The certificates of a Host and of a TLSContext, the CAs of their clients, which of these are revoked, and what is presented to a
/// service and trusted there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_cas_of_hosts_and_tls_contexts_are_rotated() {
    let mut bed = bed("contexts").await;
    let (ca, services) = (Ca::new("rotation"), Ca::new("services"));
    let cas = [Ca::new("clients"), Ca::new("clients again")];
    let visitors = Ca::new("visitors");
    // One that is never revoked, and two of which one is at a time.
    let [steady, one, another] = [(); 3].map(|()| visitors.leaf("visitor").make());
    let revocable = [&one, &another];
    let opaque = |name: &str, key: &str, pem: &str| {
        object(
            &json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": { "name": name, "namespace": "default" },
            "stringData": { (key): pem } }),
        )
    };
    let trusted = |name: &str, pem: &str| opaque(name, "ca.crt", pem);
    let leaf_of_service = services.leaf("secure").make();
    let backend = Backend::named("secure").tls_for_clients(&leaf_of_service, &ca).start().await.unwrap();
    let rotated = |round: usize| {
        let [web, context, client] =
            ["web.example.com", "context.example.com", "client"].map(|name| ca.leaf(name).make());
        // The CA of the service alone, and beside another.
        let both = format!("{}{}", cas[0].pem(), services.pem());
        let objects = [
            secret("default", "cert", &web),
            secret("default", "context-cert", &context),
            secret("default", "client", &client),
            trusted("ca", cas[round % 2].pem()),
            trusted("services", if round.is_multiple_of(2) { services.pem() } else { &both }),
            opaque("crl", "crl.pem", visitors.crl([revocable[round % 2]]).pem()),
        ];
        (objects, [web, context, client])
    };
    let context = |name: &str, spec: &Value| of("TLSContext", name, spec);
    let mapping_over_tls = json!({ "hostname": "web.example.com", "prefix": "/secure/", "service": "secure:80", "tls": "upstream",
        "cluster_max_connection_lifetime_ms": 50 });
    let of_visitors = json!({ "hostname": "visitors.example.com", "tlsSecret": { "name": "visitors-cert" },
        "tls": { "ca_secret": "visitors", "crl_secret": "crl", "cert_required": true } });
    bed.apply(rotated(0).0).await;
    bed.apply([
        trusted("visitors", visitors.pem()),
        secret("default", "visitors-cert", &ca.leaf("visitors.example.com").make()),
        of("Host", "visitors", &of_visitors),
        of("Mapping", "visitors", &json!({ "hostname": "visitors.example.com", "prefix": "/", "service": "web" })),
        listener("https", 8443, "HTTPS"),
        of(
            "Host",
            "web",
            &json!({ "hostname": "web.example.com", "tlsSecret": { "name": "cert" }, "tls": { "ca_secret": "ca" } }),
        ),
        of("Host", "context", &json!({ "hostname": "context.example.com", "tlsContext": { "name": "context" } })),
        context("context", &json!({ "secret": "context-cert", "ca_secret": "ca" })),
        context("upstream", &json!({ "secret": "client", "ca_secret": "services", "sni": "secure" })),
        of("Mapping", "context", &json!({ "hostname": "context.example.com", "prefix": "/", "service": "web" })),
        of("Mapping", "secure", &mapping_over_tls),
        service("default", "secure"),
        slice_of("default", "secure", &[backend.ip()], 443),
    ])
    .await;
    let client = bed.https.clone().trust(&ca);
    let visitor = |leaf: &Leaf| client.clone().identity(leaf);
    let paths = [
        (client.clone(), "web.example.com", "/"),
        (client.clone(), "context.example.com", "/"),
        (client.clone(), "web.example.com", "/secure/"),
        (visitor(&steady), "visitors.example.com", "/"),
    ];
    let loads = paths.map(|(client, host, path)| bed.load(&client, host, path, 4).start());
    for load in &loads {
        load.answered(20).await;
    }
    let updates = listener_and_cluster_updates(&bed).await;
    for round in 1..=6 {
        let (objects, [web, context, presented]) = rotated(round);
        bed.apply(objects).await;
        let digest = |leaf: &Leaf| echo::CertificateSeen::of(&leaf.chain()[0]).sha256;
        for (host, leaf) in [("web.example.com", &web), ("context.example.com", &context)] {
            let answer = client.clone().host(host).get("/").await.unwrap();
            assert_eq!(answer.certificate().unwrap().sha256, digest(leaf), "{host} shows the new certificate");
        }
        let visit = async |leaf: &Leaf| visitor(leaf).host("visitors.example.com").get("/").await;
        let answer = visit(revocable[(round + 1) % 2]).await.unwrap();
        assert_eq!(answer.status, 200, "it is not revoked any more");
        visit(revocable[round % 2]).await.expect_err("it is revoked");
        // Connections to services that stand go on with the old certificate, each for 50 ms.
        let is_presented = async || {
            let answer = client.clone().host("web.example.com").get("/secure/").await.unwrap();
            let seen = answer.echo().tls.unwrap().peer[0].sha256.clone();
            if seen == digest(&presented) { Ok(()) } else { Err(seen) }
        };
        eventually("the new certificate to be presented to the service", TIMEOUT, is_presented).await.unwrap();
        for load in &loads {
            load.answered(10).await;
        }
    }
    assert_eq!(listener_and_cluster_updates(&bed).await, updates, "no listener and no cluster has changed");
    undisturbed(loads).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_mappings_come_one_by_one() {
    let mut bed = bed("mappings").await;
    let load = bed.load(&bed.http, "web.example.com", "/", 1).start();
    for number in 0..500 {
        bed.apply([mapping(&format!("m{number}"), &format!("/{number}/"), "web", None)]).await;
    }
    let answer = bed.http.clone().host("web.example.com").get("/499/").await.unwrap();
    assert_eq!(answer.status, 200);
    undisturbed([load]).await;
}

/// Requests that are allowed pass all the time, and those that are denied never do: an edit, another object beside it and in its place,
/// another timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auth_service_is_replaced() {
    let mut bed = bed("auth-service").await;
    let tls = Ca::new("auth-service").leaf("auth").make().server_config();
    let servers = [AuthServer::start("s0", tls.clone()).await.unwrap(), AuthServer::start("s1", tls).await.unwrap()];
    for (name, server) in ["s0", "s1"].into_iter().zip(&servers) {
        bed.apply([service("default", name), slice("default", name, &[server.ip()])]).await;
    }
    let auth = |name: &str, server: usize, timeout: u32| {
        let spec = json!({ "auth_service": format!("s{server}:80"), "proto": "grpc", "timeout_ms": timeout });
        of("AuthService", name, &spec)
    };
    bed.apply([auth("auth", 0, 5000)]).await;
    let requests = || bed.load(&bed.http, "web.example.com", "/", 2);
    let denied =
        requests().vary(|_, request| request.header("x-auth", "deny")).expect(|answer| match answer.status.as_u16() {
            401 => Ok(()),
            other => Err(format!("{other} for a request that is denied")),
        });
    let loads = [requests().start(), denied.start()];
    for load in &loads {
        load.answered(20).await;
    }
    for round in 1..=8 {
        let (server, other) = (round % 2, (round + 1) % 2);
        let before = servers[server].asked();
        match round % 4 {
            // Another one beside it, which takes its place.
            0 => {
                bed.apply([auth("another", server, 5000)]).await;
                bed.remove([auth("auth", other, 5000)]).await;
                bed.apply([auth("auth", server, 5000)]).await;
                bed.remove([auth("another", server, 5000)]).await;
            }
            3 => bed.apply([auth("auth", server, 4000)]).await,
            _ => bed.apply([auth("auth", server, 5000)]).await,
        }
        for load in &loads {
            load.answered(20).await;
        }
        assert!(servers[server].asked() > before, "s{server} is not asked in round {round}");
    }
    undisturbed(loads).await;
}

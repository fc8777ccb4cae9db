//! HTTPProxies: certificates, targets of includes, weights and whole namespaces that change.

use kinds::{Object, ObjectRef};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use testbed::{
    Backend, Client, Load,
    cases::object,
    certs::{Ca, Leaf},
    deadline::eventually,
    tokens::{TokenSigner, claims, key_set},
};

use crate::bed::{Bed, refused, secret, slice_of, undisturbed};

fn proxy(namespace: &str, name: &str, spec: &Value) -> Object {
    object(&json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": name, "namespace": namespace }, "spec": spec }))
}

fn routes(service: &str) -> Value {
    json!([{ "services": [{ "name": service, "port": 80 }] }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_rotate_and_no_connection_is_closed() {
    let mut bed = Bed::start("proxy-rotation").await;
    let ca = Ca::new("rotation");
    let leaf = || ca.leaf("web.example.com").dns("tcp.example.com").dns("token.example.com").make();
    let mut objects = bed.service("a", "web").await;
    objects.push(secret("a", "cert", &leaf()));
    let tls = json!({ "secretName": "cert" });
    objects.push(proxy(
        "a",
        "web",
        &json!({ "virtualhost": { "fqdn": "web.example.com", "tls": tls }, "routes": routes("web") }),
    ));
    let services = json!({ "services": [{ "name": "web", "port": 80 }] });
    objects.push(proxy(
        "a",
        "tcp",
        &json!({ "virtualhost": { "fqdn": "tcp.example.com", "tls": tls }, "tcpproxy": services }),
    ));
    // A host that stays closed to those without a token, whichever certificate it shows.
    let signer = TokenSigner::new("0");
    objects.push(entry("a", "keys", "keys", &key_set([&signer])));
    let provider = json!([{ "name": "a", "default": true, "localJWKS": { "secretName": "keys", "key": "keys" } }]);
    objects.push(proxy(
        "a",
        "token",
        &json!({ "virtualhost": { "fqdn": "token.example.com", "tls": tls, "jwtProviders": provider }, "routes": routes("web") }),
    ));
    bed.apply(objects).await;
    let client = bed.https.clone().trust(&ca);
    let token = format!("Bearer {}", signer.token(&claims("a", "b")));
    let with_token =
        bed.load(&client, "token.example.com", "/", 4).vary(move |_, request| request.header("authorization", &token));
    let without = bed.load(&client, "token.example.com", "/", 4).expect(|answer| match answer.status.as_u16() {
        401 => Ok(()),
        other => Err(format!("{other} without a token")),
    });
    let loads = [
        bed.load(&client, "web.example.com", "/", 4).start(),
        bed.load(&client, "tcp.example.com", "/", 4).start(),
        with_token.start(),
        without.start(),
    ];
    for load in &loads {
        load.answered(50).await;
    }
    for _ in 0..10 {
        let leaf = leaf();
        bed.apply([secret("a", "cert", &leaf)]).await;
        let expected = echo::CertificateSeen::of(&leaf.chain()[0]).sha256;
        for host in ["web.example.com", "tcp.example.com", "token.example.com"] {
            let answer = client.clone().host(host).get("/").await.unwrap();
            assert_eq!(answer.certificate().unwrap().sha256, expected, "{host} shows the new certificate");
        }
        for load in &loads {
            load.answered(20).await;
        }
    }
    // No listener changed.
    undisturbed(loads).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_target_of_an_include_is_replaced() {
    let mut bed = Bed::start("proxy-include").await;
    let (first, second) = (bed.service("one", "first").await, bed.service("two", "second").await);
    let root = |namespace: &str, name: &str| {
        let include = json!([{ "name": name, "namespace": namespace, "conditions": [{ "prefix": "/a" }] }]);
        proxy("a", "root", &json!({ "virtualhost": { "fqdn": "web.example.com" }, "includes": include }))
    };
    let children = [
        proxy("one", "child", &json!({ "routes": routes("first") })),
        proxy("two", "child", &json!({ "routes": routes("second") })),
    ];
    bed.apply(first.iter().cloned().chain([children[0].clone(), root("one", "child")])).await;
    let load = bed.load(&bed.http, "web.example.com", "/a/b", 1).start();
    load.answered(50).await;
    for round in 0..10 {
        // Another child takes over, with a Service that is new with it, and the old one goes with its own.
        let (next, old, space) = if round % 2 == 0 { (1, 0, "two") } else { (0, 1, "one") };
        let services = [&first, &second];
        bed.apply(services[next].iter().cloned().chain([children[next].clone(), root(space, "child")])).await;
        bed.remove(services[old].iter().cloned().chain([children[old].clone()])).await;
        load.answered(20).await;
        let answer = bed.http.clone().host("web.example.com").get("/a").await.unwrap();
        assert_eq!(answer.backend(), Some(["first", "second"][next]));
    }
    load.stop().await.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_move_from_none_to_all() {
    let mut bed = Bed::start("proxy-weights").await;
    let ca = Ca::new("weights");
    let mut objects = bed.service("a", "old").await;
    objects.extend(bed.service("a", "new").await);
    objects.push(secret("a", "cert", &ca.leaf("tcp.example.com").make()));
    let services = |share: u32| json!([{ "name": "old", "port": 80, "weight": 100 - share }, { "name": "new", "port": 80, "weight": share }]);
    let both = |share: u32| {
        let host = json!({ "fqdn": "tcp.example.com", "tls": { "secretName": "cert" } });
        [
            proxy(
                "a",
                "web",
                &json!({ "virtualhost": { "fqdn": "web.example.com" }, "routes": [{ "services": services(share) }] }),
            ),
            proxy("a", "tcp", &json!({ "virtualhost": host, "tcpproxy": { "services": services(share) } })),
        ]
    };
    bed.apply(objects.into_iter().chain(both(0))).await;
    let fresh = Arc::new(AtomicU64::new(0));
    let count = fresh.clone();
    let load = bed.load(&bed.http, "web.example.com", "/", 2).expect(move |answer| {
        count.fetch_add(u64::from(answer.backend() == Some("new")), Ordering::Relaxed);
        if answer.status == 200 { Ok(()) } else { Err(answer.status.to_string()) }
    });
    let load = load.start();
    let streams = bed.load(&bed.https, "tcp.example.com", "/", 2).start();
    load.answered(50).await;
    streams.answered(50).await;
    assert_eq!(fresh.load(Ordering::Relaxed), 0);
    let standing = bed.https.clone().host("tcp.example.com").connect().await.unwrap();
    assert_eq!(standing.get("/").await.unwrap().backend(), Some("old"));
    for share in [1, 10, 50, 90, 99, 100] {
        bed.apply(both(share)).await;
        load.answered(40).await;
        streams.answered(40).await;
    }
    for client in [bed.http.clone().host("web.example.com"), bed.https.clone().host("tcp.example.com")] {
        assert_eq!(client.get("/").await.unwrap().backend(), Some("new"));
    }
    // Other hosts come and go beside it, each a change of the listener.
    for round in 0..5 {
        let host = json!({ "fqdn": format!("other-{round}.example.com"), "tls": { "passthrough": true } });
        let other = proxy("a", "other", &json!({ "virtualhost": host, "tcpproxy": { "services": services(50) } }));
        bed.apply([other]).await;
        streams.answered(20).await;
    }
    // A connection that stood before keeps its backend.
    assert_eq!(standing.get("/").await.unwrap().backend(), Some("old"));
    assert!(fresh.load(Ordering::Relaxed) > 40);
    load.stop().await.assert_nothing_lost();
    undisturbed([streams]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_is_deleted() {
    let mut bed = Bed::start("proxy-namespace").await;
    let ca = Ca::new("namespace");
    let leaf = |name: &str| ca.leaf(name).make();
    let host = |name: &str| json!({ "fqdn": name, "tls": { "secretName": "cert" } });
    let mut stays = bed.service("stays", "steady").await;
    stays.push(secret("stays", "cert", &leaf("stays.example.com")));
    let include = json!([{ "name": "child", "namespace": "goes", "conditions": [{ "prefix": "/theirs" }] }]);
    let mut spec = json!({ "virtualhost": host("stays.example.com"), "routes": routes("steady"), "includes": include });
    spec["routes"][0]["permitInsecure"] = true.into();
    stays.push(proxy("stays", "root", &spec));
    bed.apply(stays).await;
    let loads = [
        bed.load(&bed.http, "stays.example.com", "/", 2).start(),
        bed.load(&bed.https.clone().trust(&ca), "stays.example.com", "/", 2).start(),
    ];
    for round in 0..4 {
        let mut goes = bed.service("goes", "going").await;
        goes.push(secret("goes", "cert", &leaf("goes.example.com")));
        goes.push(proxy("goes", "child", &json!({ "routes": routes("going") })));
        goes.push(proxy(
            "goes",
            "root",
            &json!({ "virtualhost": host("goes.example.com"), "routes": routes("going") }),
        ));
        let tcp = json!({ "services": [{ "name": "going", "port": 80 }] });
        goes.push(proxy("goes", "tcp", &json!({ "virtualhost": host("tcp.example.com"), "tcpproxy": tcp })));
        bed.apply(goes.clone()).await;
        let theirs = bed.https.clone().host("stays.example.com");
        assert_eq!(theirs.get("/theirs").await.unwrap().backend(), Some("going"));
        // Objects of a namespace go one after another, in no order that anybody promised.
        goes.rotate_left(round * 2 % 6);
        for object in goes {
            bed.remove([object]).await;
        }
        assert_eq!(theirs.get("/theirs").await.unwrap().status, 502);
        for load in &loads {
            load.answered(20).await;
        }
    }
    for load in loads {
        load.stop().await.assert_nothing_lost();
    }
}

/// A Secret with one entry.
fn entry(namespace: &str, name: &str, key: &str, text: &str) -> Object {
    object(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": namespace },
        "stringData": { key: text } }))
}

/// Whether a client with this certificate gets an answer on a new connection.
async fn gets_in(client: &Client, host: &str, leaf: Option<&Leaf>) -> bool {
    let client = client.clone().host(host);
    let client = leaf.map_or(client.clone(), |leaf| client.identity(leaf));
    match client.get("/").await {
        Ok(answer) => answer.status == 200,
        Err(failure) if failure.is_timeout() => panic!("{failure:?}"),
        Err(_) => false,
    }
}

/// One of so many loads is one whose every request begins with a handshake, which costs both sides more than a request does.
const STRANGERS: u32 = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_cas_and_crls_rotate_and_no_connection_is_closed() {
    let mut bed = Bed::start("proxy-client-rotation").await;
    let (ca, server) = (Ca::new("clients"), Ca::new("server"));
    let good = ca.leaf("good").make();
    let mut objects = bed.service("a", "web").await;
    let validation = json!({ "caSecret": "ca", "crlSecret": "crl" });
    let services = json!({ "services": [{ "name": "web", "port": 80 }] });
    // One shows its certificate on demand, one has a chain of its own, one is passed on.
    let hosts = ["demand.example.com", "chain.example.com", "tcp.example.com"];
    objects.push(secret("a", "demand", &server.leaf(hosts[0]).make()));
    objects.push(secret("a", "chain", &server.leaf(hosts[1]).dns(hosts[2]).make()));
    for (host, certificate) in hosts.into_iter().zip(["demand", "chain", "chain"]) {
        let tls = json!({ "secretName": certificate, "clientValidation": validation });
        let mut spec = json!({ "virtualhost": { "fqdn": host, "tls": tls } });
        match host {
            "tcp.example.com" => spec["tcpproxy"] = services.clone(),
            _ => spec["routes"] = routes("web"),
        }
        objects.push(proxy("a", host.split('.').next().unwrap(), &spec));
    }
    let (ca_secret, crl_secret) =
        (|pem: &str| entry("a", "ca", "ca.crt", pem), |pem: &str| entry("a", "crl", "crl.pem", pem));
    objects.extend([ca_secret(ca.pem()), crl_secret(ca.crl([]).pem())]);
    bed.apply(objects).await;
    let client = bed.https.clone().trust(&server);
    let loads = hosts.map(|host| bed.load(&client.clone().identity(&good), host, "/", 3).start());
    // Whoever shows no certificate, or one of a CA that only has the same name, is let in by no round.
    let foreign = ca.rotated().leaf("good").make();
    let strangers = hosts.iter().flat_map(|host| {
        let [without, with] = [client.clone(), client.clone().identity(&foreign)];
        [bed.load(&without, host, "/", STRANGERS).start(), bed.load(&with, host, "/", STRANGERS).start()]
    });
    let strangers: Vec<Load> = strangers.collect();
    for load in &loads {
        load.answered(20).await;
    }
    for round in 0..10 {
        let (next, revoked) = (Ca::new(&format!("next-{round}")), ca.leaf("revoked").make());
        let newcomer = next.leaf("newcomer").make();
        // Another CA joins, with its CRL, and a certificate is revoked.
        let crls = format!("{}{}", ca.crl([&revoked]).pem(), next.crl([]).pem());
        bed.apply([ca_secret(&format!("{}{}", ca.pem(), next.pem())), crl_secret(&crls)]).await;
        for host in hosts {
            assert!(gets_in(&client, host, Some(&good)).await, "{host}");
            assert!(gets_in(&client, host, Some(&newcomer)).await, "{host}");
            assert!(!gets_in(&client, host, Some(&revoked)).await, "{host}");
            assert!(!gets_in(&client, host, None).await, "{host}");
        }
        // And leaves again.
        bed.apply([ca_secret(ca.pem()), crl_secret(ca.crl([]).pem())]).await;
        for host in hosts {
            assert!(!gets_in(&client, host, Some(&newcomer)).await, "{host}");
            assert!(gets_in(&client, host, Some(&revoked)).await, "{host}");
        }
        for load in &loads {
            load.answered(10).await;
        }
        for load in &strangers {
            load.answered(3).await;
        }
    }
    // No listener changed.
    undisturbed(loads).await;
    refused(strangers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_ca_that_goes_or_breaks_closes_the_host_and_no_other() {
    let mut bed = Bed::start("proxy-client-ca").await;
    let (ca, server) = (Ca::new("clients"), Ca::new("server"));
    let good = ca.leaf("good").make();
    let mut objects = bed.service("a", "web").await;
    for (name, validation) in [
        ("closed", Some(json!({ "caSecret": "ca", "crlSecret": "crl" }))),
        ("maybe", Some(json!({ "caSecret": "ca", "optionalClientCertificate": true }))),
        ("open", None),
    ] {
        let host = format!("{name}.example.com");
        let mut tls = json!({ "secretName": name });
        if let Some(validation) = validation {
            tls["clientValidation"] = validation;
        }
        objects.push(secret("a", name, &server.leaf(&host).make()));
        objects.push(proxy(
            "a",
            name,
            &json!({ "virtualhost": { "fqdn": host, "tls": tls }, "routes": routes("web") }),
        ));
    }
    let (ca_secret, crl_secret) =
        (|pem: &str| entry("a", "ca", "ca.crt", pem), |pem: &str| entry("a", "crl", "crl.pem", pem));
    let (ca_good, crl_good) = (ca_secret(ca.pem()), crl_secret(ca.crl([]).pem()));
    objects.extend([ca_good.clone(), crl_good.clone()]);
    bed.apply(objects).await;
    let client = bed.https.clone().trust(&server).timeout(Duration::from_secs(10));
    let load = bed.load(&client, "open.example.com", "/", 1).start();
    for round in 0..6 {
        for host in ["closed.example.com", "maybe.example.com"] {
            assert!(gets_in(&client, host, Some(&good)).await, "{host}");
        }
        assert!(!gets_in(&client, "closed.example.com", None).await);
        let standing = client.clone().host("closed.example.com").identity(&good).connect().await.unwrap();
        assert_eq!(standing.get("/").await.unwrap().status, 200);
        match round % 3 {
            0 => bed.remove([ca_good.clone()]).await,
            1 => bed.apply([ca_secret("nonsense")]).await,
            _ => bed.apply([crl_secret("nonsense")]).await,
        }
        assert!(!gets_in(&client, "closed.example.com", Some(&good)).await, "{round}");
        assert!(!gets_in(&client, "closed.example.com", None).await, "{round}");
        if round % 3 != 2 {
            assert!(!gets_in(&client, "maybe.example.com", None).await, "{round}");
        }
        // A connection that was let in before does not reach the backend any more.
        let answer = standing.get("/").await;
        assert!(answer.as_ref().is_ok_and(|answer| answer.status != 200) || answer.is_err(), "{answer:?}");
        bed.apply([ca_good.clone(), crl_good.clone()]).await;
        load.answered(20).await;
    }
    undisturbed([load]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_certificate_for_backends_rotates_and_no_request_fails() {
    let certificate = ObjectRef::new(kinds::kind::SECRET, "operator", "client");
    let mut bed = Bed::with("proxy-client-certificate", |settings| {
        settings.http_proxy.client_certificate = Some(certificate);
        // Each request has a connection of its own to the backend.
        settings.cluster.max_requests = Some(1);
    })
    .await;
    let (ca, server) = (Ca::new("clients"), Ca::new("backends"));
    let config = server.leaf("backend").make().server_config_for_clients(&ca, &[]);
    let backend = Backend::named("strict").tls_config(config).start().await.unwrap();
    let web = json!({ "name": "strict", "port": 443, "protocol": "tls" });
    let host = json!({ "fqdn": "web.example.com" });
    let strict = object(&json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "strict", "namespace": "a" }, "spec": { "ports": [{ "port": 443 }] } }));
    let mut objects = bed.service("a", "plain").await;
    objects.extend([
        strict,
        slice_of("a", "strict", &[backend.ip()], 443),
        proxy("a", "web", &json!({ "virtualhost": host, "routes": [{ "services": [web] }] })),
    ]);
    bed.apply(objects).await;
    let client = bed.http.clone().host("web.example.com");
    assert_eq!(client.get("/").await.unwrap().status, 503, "there is no certificate to present");
    let first = ca.leaf("proxy").make();
    bed.apply([secret("operator", "client", &first)]).await;
    let load = bed.load(&bed.http, "web.example.com", "/", 1).start();
    load.answered(50).await;
    for _ in 0..10 {
        let next = ca.leaf("proxy").make();
        let expected = echo::CertificateSeen::of(&next.chain()[0]).sha256;
        bed.apply([secret("operator", "client", &next)]).await;
        eventually("a connection with the new certificate", Duration::from_secs(20), async || {
            let answer = client.get("/").await.map_err(|failure| failure.to_string())?;
            let seen = answer.echo().tls.ok_or("no TLS")?;
            let shown = seen.peer.first().map(|peer| peer.sha256.clone()).unwrap_or_default();
            if shown == expected { Ok(()) } else { Err(shown) }
        })
        .await
        .unwrap();
        load.answered(20).await;
    }
    undisturbed([load]).await;
}

//! Ingresses: hosts that come, Services that take over, endpoints that are rolled, certificates that are renewed.

use kinds::Object;
use serde_json::{Value, json};
use testbed::{cases::object, certs::Ca};

use crate::bed::{Bed, secret, service, slice, undisturbed};

/// An Ingress of one host with these paths and Services.
fn ingress(name: &str, host: &str, paths: &[(&str, &str)], secret: Option<&str>) -> Object {
    let path = |(path, service): &(&str, &str)| json!({ "path": path, "pathType": "Prefix", "backend": { "service": { "name": service, "port": { "number": 80 } } } });
    let paths: Vec<Value> = paths.iter().map(path).collect();
    let tls: Vec<Value> = secret.iter().map(|secret| json!({ "hosts": [host], "secretName": secret })).collect();
    object(&json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": name },
        "spec": { "tls": tls, "rules": [{ "host": host, "http": { "paths": paths } }] } }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_hosts_come_one_by_one() {
    let mut bed = Bed::start("hosts").await;
    let steady = bed.service("default", "steady").await;
    bed.apply(steady).await;
    bed.apply([ingress("steady", "steady.example.com", &[("/", "steady")], None)]).await;
    let load = bed.load(&bed.http, "steady.example.com", "/", 1).start();
    for number in 0..500 {
        let (name, host) = (format!("host-{number}"), format!("host-{number}.example.com"));
        let client = bed.http.clone().host(&host);
        let before = client.get("/").await.unwrap();
        assert_eq!(before.status, 404, "{host} before it is there");
        // Watched on a connection of its own, from before the change until it answers: 404, then 200, nothing else.
        let watch = tokio::spawn(async move {
            let connection = client.connect().await.unwrap();
            loop {
                let answer = connection.get("/").await.unwrap();
                match answer.status.as_u16() {
                    404 => {}
                    200 => return,
                    other => panic!("{other} while it comes: {:?}", answer.headers),
                }
            }
        });
        // The Service is new with the host: a route that came before its cluster would answer 503.
        let address = bed.backends.named("steady").await.unwrap();
        let new = ingress(&name, &host, &[("/", name.as_str())], None);
        bed.apply([service("default", &name), slice("default", &name, &[address]), new]).await;
        testbed::within(format!("{host} to answer"), std::time::Duration::from_secs(10), watch).await.unwrap().unwrap();
    }
    load.stop().await.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_backends_and_endpoints_change() {
    let mut bed = Bed::start("changes").await;
    let (first, second) = (bed.service("default", "first").await, bed.service("default", "second").await);
    bed.apply(first.clone()).await;
    bed.apply([ingress("web", "web.example.com", &[("/", "first"), ("/a", "first")], None)]).await;
    let load = bed.load(&bed.http, "web.example.com", "/a/b", 1).start();
    load.answered(50).await;
    for round in 0..10 {
        // The backend is renamed: another Service takes over and the old one goes.
        let (next, old, name) = if round % 2 == 0 { (&second, &first, "second") } else { (&first, &second, "first") };
        let web = ingress("web", "web.example.com", &[("/", name), ("/a", name)], None);
        bed.apply(next.iter().cloned().chain([web])).await;
        bed.remove(old.iter().cloned()).await;
        load.answered(20).await;
        // Routes are reordered, and others come between them.
        bed.apply([ingress("web", "web.example.com", &[("/a", name), ("/z", name), ("/", name)], None)]).await;
        load.answered(20).await;
    }
    // Endpoints are rolled: one more comes, the other goes, and back.
    let addresses = [bed.backends.named("first").await.unwrap(), bed.backends.named("second").await.unwrap()];
    for round in 0..20 {
        bed.apply([slice("default", "first", &addresses)]).await;
        bed.apply([slice("default", "first", &addresses[round % 2..=round % 2])]).await;
        load.answered(10).await;
    }
    load.stop().await.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_rotated() {
    let mut bed = Bed::start("rotation").await;
    let ca = Ca::new("rotation");
    let web = bed.service("default", "web").await;
    bed.apply(web).await;
    bed.apply([secret("default", "cert", &ca.leaf("web.example.com").make())]).await;
    bed.apply([ingress("web", "web.example.com", &[("/", "web")], Some("cert"))]).await;
    let client = bed.https.clone().trust(&ca);
    let load = bed.load(&client, "web.example.com", "/", 1).start();
    load.answered(50).await;
    for _ in 0..10 {
        let leaf = ca.leaf("web.example.com").make();
        bed.apply([secret("default", "cert", &leaf)]).await;
        let answer = client.clone().host("web.example.com").get("/").await.unwrap();
        let expected = echo::CertificateSeen::of(&leaf.chain()[0]).sha256;
        assert_eq!(answer.certificate().unwrap().sha256, expected, "the new certificate is shown");
        load.answered(20).await;
    }
    // No listener changed.
    undisturbed([load]).await;
}

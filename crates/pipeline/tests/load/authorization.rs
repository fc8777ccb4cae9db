//! An authorization server that moves to other Services: requests that it allows pass all the time, and those that it denies never do.

use kinds::Object;
use model::ObjectRef;
use pipeline::settings::Packing;
use serde_json::json;
use std::{net::IpAddr, time::Duration};
use testbed::{
    KatServer,
    auth_server::AuthServer,
    broken_server::{BrokenServer, Fault},
    cases::object,
    certs::Ca,
    eventually,
};

use crate::bed::{Bed, secret, service, slice, slice_of, undisturbed};

const ROUNDS: usize = 12;

fn extension(services: &[(&str, u32)]) -> Object {
    let services: Vec<_> =
        services.iter().map(|(name, weight)| json!({ "name": name, "port": 80, "weight": weight })).collect();
    object(&json!({
        "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
        "metadata": { "name": "auth", "namespace": "a" },
        "spec": { "protocol": "h2c", "services": services, "timeoutPolicy": { "response": "5s" } },
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_moves_to_other_services() {
    let mut bed = Bed::start("authorization-moved").await;
    let ca = Ca::new("authorization-moved");
    let tls = ca.leaf("auth").make().server_config();
    let servers = [AuthServer::start("s0", tls.clone()).await.unwrap(), AuthServer::start("s1", tls).await.unwrap()];
    let mut objects = bed.service("a", "web").await;
    objects.push(secret("a", "cert", &ca.leaf("*.example.com").make()));
    for (name, server) in ["s0", "s1"].into_iter().zip(&servers) {
        objects.extend([service("a", name), slice("a", name, &[server.ip()])]);
    }
    let host = json!({ "fqdn": "guarded.example.com", "tls": { "secretName": "cert" },
        "authorization": { "extensionRef": { "name": "auth" } } });
    objects.push(object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "guarded", "namespace": "a" },
        "spec": { "virtualhost": host, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] },
    })));
    objects.push(extension(&[("s0", 1)]));
    bed.apply(objects).await;

    let client = bed.https.clone().trust(&ca).sni("guarded.example.com");
    let of = || bed.load(&client, "guarded.example.com", "/", 2);
    let denied =
        of().vary(|_, request| request.header("x-auth", "deny")).expect(|answer| match answer.status.as_u16() {
            401 => Ok(()),
            other => Err(format!("{other} for a request that is denied")),
        });
    let loads = [of().start(), denied.start()];
    for load in &loads {
        load.answered(20).await;
    }
    for round in 1..=ROUNDS {
        let [from, to] = if round % 2 == 1 { ["s0", "s1"] } else { ["s1", "s0"] };
        if round % 3 == 0 {
            bed.apply([extension(&[(from, 1), (to, 3)])]).await;
            for load in &loads {
                load.answered(5).await;
            }
        }
        let (there, before) = (&servers[round % 2], servers[round % 2].asked());
        bed.apply([extension(&[(to, 1)])]).await;
        for load in &loads {
            load.answered(10).await;
        }
        assert!(there.asked() > before, "{to} is not asked in round {round}");
    }
    undisturbed(loads).await;
}

/// A server that asks for a client certificate is presented the operator's, and nobody passes while there is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_tls_is_presented_the_operators_certificate() {
    let certificate = ObjectRef::new(kinds::kind::SECRET, "operator", "client");
    let mut bed = Bed::with("authorization-client-certificate", |settings| {
        settings.http_proxy.client_certificate = Some(certificate);
    })
    .await;
    let (ca, clients) = (Ca::new("authorization-servers"), Ca::new("authorization-clients"));
    let config = ca.leaf("auth").make().server_config_for_clients(&clients, &[]);
    let server = AuthServer::start("strict", config).await.unwrap();
    let mut objects = bed.service("a", "web").await;
    let meta = json!({ "name": "strict", "namespace": "a" });
    objects.extend([
        object(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": { "ports": [{ "port": 443 }] } })),
        slice_of("a", "strict", &[server.ip()], 443),
        object(&json!({
            "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
            "metadata": { "name": "auth", "namespace": "a" },
            "spec": { "services": [{ "name": "strict", "port": 443 }], "timeoutPolicy": { "response": "5s" } },
        })),
        secret("a", "cert", &ca.leaf("*.example.com").make()),
        object(&json!({
            "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "guarded", "namespace": "a" },
            "spec": {
                "virtualhost": { "fqdn": "guarded.example.com", "tls": { "secretName": "cert" },
                    "authorization": { "extensionRef": { "name": "auth" } } },
                "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
            },
        })),
    ]);
    bed.apply(objects).await;
    let client = bed.https.clone().trust(&ca).sni("guarded.example.com").host("guarded.example.com");
    assert_eq!(client.get("/").await.unwrap().status, 403, "there is no certificate to present");
    assert_eq!(server.asked(), 0);
    bed.apply([secret("operator", "client", &clients.leaf("proxy").make())]).await;
    let allowed = async || match client.get("/").await.unwrap().status.as_u16() {
        200 => Ok(()),
        other => Err(other),
    };
    eventually("the server to be asked", Duration::from_secs(20), allowed).await.unwrap();
    assert!(server.asked() > 0);
}

/// An authorization server that somebody else wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_emissary_decides() {
    let mut bed = Bed::start("authorization-emissary").await;
    let (ca, server) = (Ca::new("authorization-emissary"), KatServer::start().await.unwrap());
    let IpAddr::V4(ip) = server.address().ip() else { unreachable!("test addresses are IPv4") };
    let mut objects = bed.service("a", "web").await;
    objects.extend([
        service("a", "kat"),
        slice_of("a", "kat", &[ip], server.address().port()),
        extension(&[("kat", 1)]),
    ]);
    objects.push(secret("a", "cert", &ca.leaf("*.example.com").make()));
    let context = json!({ "context": { "team": "shop" } });
    let host = json!({ "fqdn": "guarded.example.com", "tls": { "secretName": "cert" },
        "authorization": { "extensionRef": { "name": "auth" }, "authPolicy": context } });
    objects.push(object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "guarded", "namespace": "a" },
        "spec": { "virtualhost": host, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] },
    })));
    bed.apply(objects).await;
    let client = bed.https.clone().trust(&ca).sni("guarded.example.com").host("guarded.example.com");
    let asking = |status: &str| client.clone().header("kat-req-extauth-requested-status", status);
    let allowed = asking("200").get("/").await.unwrap();
    assert_eq!(allowed.status, 200);
    let seen = allowed.echo();
    assert_eq!(seen.header("kat-resp-extauth-protocol-version"), Some("v3"));
    assert_eq!(seen.header("kat-resp-extauth-context-extensions"), Some(r#"{"team":"shop"}"#));
    for status in [401, 403, 503] {
        let denied = asking(&status.to_string()).header("kat-req-extauth-requested-location", "/login").get("/");
        let denied = denied.await.unwrap();
        assert_eq!((denied.status.as_u16(), denied.headers["location"].as_bytes()), (status, &b"/login"[..]));
        assert!(denied.try_echo().is_none(), "a backend was asked");
    }
}

/// Hosts of namespace `a` that ask the ExtensionService `auth` by this protocol: `closed` and `open`, which lets requests pass without an
/// answer, each with a wildcard; in plaintext, too.
fn guarded(service_type: &str, ca: &Ca) -> Vec<Object> {
    let cert = ca.leaf("*.example.com").dns("*.closed.example.com").dns("*.open.example.com").make();
    let mut objects = vec![secret("a", "cert", &cert)];
    for (name, fail_open) in [("closed", false), ("open", true)] {
        let authorization =
            json!({ "extensionRef": { "name": "auth" }, "serviceType": service_type, "failOpen": fail_open });
        let wild = (format!("{name}-wild"), format!("*.{name}.example.com"));
        for (name, fqdn) in [(name.to_owned(), format!("{name}.example.com")), wild] {
            let host = json!({ "fqdn": fqdn, "tls": { "secretName": "cert" }, "authorization": authorization });
            let route = json!({ "permitInsecure": true, "services": [{ "name": "web", "port": 80 }] });
            objects.push(object(&json!({
                "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
                "metadata": { "name": name, "namespace": "a" },
                "spec": { "virtualhost": host, "routes": [route] },
            })));
        }
    }
    objects
}

/// Asks all hosts of [`guarded`], however they are spelled, over HTTP/1.1 and HTTP/2, in plaintext and over TLS.
async fn nobody_decides(bed: &Bed, ca: &Ca, how: &str) {
    for (host, expected) in [
        ("closed.example.com", 403),
        ("open.example.com", 200),
        ("CLOSED.example.com", 403),
        ("x.closed.example.com", 403),
        ("x.open.example.com", 200),
        ("X.closed.example.com", 403),
    ] {
        for (number, client) in bed.ways(ca, host).iter().enumerate() {
            assert_eq!(client.get("/").await.unwrap().status.as_u16(), expected, "{how} {host} {number}");
        }
    }
}

/// A server over HTTP that answers with bytes that are no HTTP, or closes: nobody has decided, so requests are denied, or pass where
/// failOpen says so.
async fn a_server_over_http_that_speaks_no_http_denies_unless_it_fails_open(name: &str, packing: Packing) {
    let mut bed = Bed::with(name, |settings| settings.packing = packing).await;
    let ca = Ca::new("authorization-no-http");
    let mut objects = bed.service("a", "web").await;
    objects.extend(guarded("http", &ca));
    objects.push(service("a", "checker"));
    objects.push(object(&json!({
        "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
        "metadata": { "name": "auth", "namespace": "a" },
        "spec": { "protocol": "http/1.1", "services": [{ "name": "checker", "port": 80 }] },
    })));
    bed.apply(objects).await;
    for fault in [Fault::NotHttp2, Fault::Closes] {
        let server = BrokenServer::start(fault).await.unwrap();
        let IpAddr::V4(address) = server.address().ip() else { unreachable!("test addresses are IPv4") };
        bed.apply([slice("a", "checker", &[address])]).await;
        nobody_decides(&bed, &ca, &format!("{packing:?} {fault:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_that_speaks_no_http_denies_unless_it_fails_open_in_scopes() {
    let name = "authorization-no-http-scopes";
    a_server_over_http_that_speaks_no_http_denies_unless_it_fails_open(name, Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_that_speaks_no_http_denies_unless_it_fails_open_in_tables() {
    let name = "authorization-no-http-tables";
    a_server_over_http_that_speaks_no_http_denies_unless_it_fails_open(name, Packing::Plain).await;
}

/// The same over gRPC, whatever is wrong with the server.
async fn a_broken_server_over_grpc_denies_unless_it_fails_open(name: &str, packing: Packing) {
    let mut bed = Bed::with(name, |settings| settings.packing = packing).await;
    let ca = Ca::new("authorization-broken");
    let mut objects = bed.service("a", "web").await;
    objects.extend(guarded("grpc", &ca));
    objects.push(service("a", "checker"));
    objects.push(object(&json!({
        "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
        "metadata": { "name": "auth", "namespace": "a" },
        "spec": { "protocol": "h2c", "services": [{ "name": "checker", "port": 80 }],
            "timeoutPolicy": { "response": "300ms" } },
    })));
    bed.apply(objects).await;
    for fault in Fault::ALL {
        let server = BrokenServer::start(fault).await.unwrap();
        let IpAddr::V4(address) = server.address().ip() else { unreachable!("test addresses are IPv4") };
        bed.apply([slice("a", "checker", &[address])]).await;
        nobody_decides(&bed, &ca, &format!("{packing:?} {fault:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_server_over_grpc_denies_unless_it_fails_open_in_scopes() {
    a_broken_server_over_grpc_denies_unless_it_fails_open("authorization-broken-scopes", Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_server_over_grpc_denies_unless_it_fails_open_in_tables() {
    a_broken_server_over_grpc_denies_unless_it_fails_open("authorization-broken-tables", Packing::Plain).await;
}

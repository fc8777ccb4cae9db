//! Certificates of both sides: renewed while requests and the stream go on, down to the CA, and made by others.

use std::path::PathBuf;
use std::time::Duration;

use testbed::certs::{Ca, KeyType, Leaf};
use testbed::{Backend, Client, Envoy, Load, Net, eventually};
use xds::TlsFiles;

use crate::bed::{Replica, Secrets, TIMEOUT, address, issue, launch};
use crate::world::{endpoints, hosts, serving};

/// How many connections to its server Envoy has made.
async fn connections(envoy: &Envoy) -> u64 {
    envoy.stat("cluster.sesame.upstream_cx_total").await.unwrap().unwrap_or(0)
}

/// The serial numbers of the certificates that Envoy has loaded, CAs included.
async fn serials(envoy: &Envoy) -> Vec<String> {
    let certs = envoy.json("/certs").await.unwrap();
    let lists = certs["certificates"].as_array().into_iter().flatten();
    let each =
        lists.flat_map(|entry| ["ca_cert", "cert_chain"].into_iter().filter_map(move |key| entry[key].as_array()));
    each.flatten().filter_map(|cert| cert["serial_number"].as_str().map(str::to_owned)).collect()
}

/// Waits until Envoy's certificates are no longer what they were.
async fn reloaded(envoy: &Envoy, before: &[String]) {
    let changed = async || match serials(envoy).await {
        now if now != before => Ok(()),
        _ => Err("still the same certificates"),
    };
    eventually("Envoy to load its certificates", TIMEOUT, changed).await.unwrap();
}

/// Moves a host to the other backend, over whatever connection there is, and waits until it answers from there.
async fn takes_changes(replica: &Replica, at: std::net::SocketAddr, host: &str, backend: &Backend) {
    replica.publish(vec![endpoints(host, backend.http())]);
    let moved = async || match Client::new(at).host(host).get("/").await.unwrap().echo().name {
        name if name == backend.name() => Ok(()),
        name => Err(name),
    };
    eventually("the change to be served", TIMEOUT, moved).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_and_their_ca_are_renewed_under_load() {
    let (a, b) = (Backend::start("a").await.unwrap(), Backend::start("b").await.unwrap());
    let secrets = Secrets::new();
    let mut replica = Replica::start(address(), Some(secrets.server_files()));
    let at = Net::here().unwrap().socket(80);
    let hosts = hosts(3);
    replica.publish(serving(at, &hosts, a.http()));
    let envoy = launch(replica.address, Some(secrets.envoy_files()), None).await;
    envoy.ready().await.unwrap();
    let load = Load::of(Client::new(at).host(&hosts[0]).get("/")).per_second(200).start();
    load.answered(20).await;
    let opened = connections(&envoy).await;

    // First both trust both CAs, then both get new certificates, then the old CA goes.
    let (old, new) = (secrets.certificates.clone(), issue(None));
    let both = format!("{}{}", old.ca, new.ca);
    let before = serials(&envoy).await;
    secrets.server.put(&both, &old.server);
    secrets.envoy.put(&both, &old.envoy);
    reloaded(&envoy, &before).await;
    load.answered(50).await;
    let before = serials(&envoy).await;
    secrets.server.put(&both, &new.server);
    secrets.envoy.put(&both, &new.envoy);
    reloaded(&envoy, &before).await;
    load.answered(50).await;
    let before = serials(&envoy).await;
    secrets.server.put(&new.ca, &new.server);
    secrets.envoy.put(&new.ca, &new.envoy);
    reloaded(&envoy, &before).await;
    load.answered(50).await;

    assert_eq!(connections(&envoy).await, opened, "the stream goes on through all of it");
    takes_changes(&replica, at, &hosts[1], &b).await;

    // A new connection, by a server that was never told about the old ones, with nothing old accepted by either side.
    let address = replica.address;
    replica.kill();
    replica = Replica::start(address, Some(secrets.server_files()));
    let mut world = serving(at, &hosts, a.http());
    world.push(endpoints(&hosts[1], b.http()));
    replica.publish(world);
    replica.in_step().await;
    takes_changes(&replica, at, &hosts[2], &b).await;
    assert!(connections(&envoy).await > opened);

    let report = load.stop().await;
    println!("{report}");
    report.assert_nothing_lost();
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_certgen_replaced_are_used_by_the_next_connection() {
    let a = Backend::start("a").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    certgen::files::write(&issue(None), folder.path(), false).unwrap();
    let server = TlsFiles { ca: file("cacert.pem"), certificate: file("sesamecert.pem"), key: file("sesamekey.pem") };
    let tls = envoy::bootstrap::Tls::Certificate(envoy::bootstrap::CertificateFiles {
        ca: file("cacert.pem"),
        certificate: file("envoycert.pem"),
        key: file("envoykey.pem"),
        resources_dir: Some(folder.path().to_owned()),
    });
    let replica = Replica::start(address(), Some(server.clone()));
    let at = Net::here().unwrap().socket(80);
    let hosts = hosts(2);
    replica.publish(serving(at, &hosts, a.http()));
    let envoy = launch(replica.address, Some(tls), None).await;
    envoy.ready().await.unwrap();
    let before = serials(&envoy).await;

    certgen::files::write(&issue(None), folder.path(), true).unwrap();
    // CA, certificate and key arrive one by one; all of them must be in use.
    let all = async || match serials(&envoy).await {
        now if now.len() == before.len() && now.iter().all(|serial| !before.contains(serial)) => Ok(()),
        now => Err(format!("{now:?}")),
    };
    eventually("Envoy to load all three files", TIMEOUT, all).await.unwrap();
    let address = replica.address;
    replica.kill();
    let replica = Replica::start(address, Some(server));
    replica.publish(serving(at, &hosts, a.http()));
    replica.in_step().await;
    let state = envoy.expect_stat("control_plane.connected_state", Duration::from_secs(5), |state| state == 1).await;
    assert_eq!(state.unwrap(), 1);
}

/// Writes `text` to a file of its own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = tempfile::tempdir().unwrap().keep().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// What an Envoy trusts and presents whose certificates somebody else made.
fn envoy_tls(ca: &Ca, client: &Leaf) -> envoy::bootstrap::Tls {
    envoy::bootstrap::Tls::Certificate(envoy::bootstrap::CertificateFiles {
        ca: file("ca.crt", ca.pem()),
        certificate: file("envoy.crt", client.chain_pem()),
        key: file("envoy.key", client.key_pem()),
        resources_dir: None,
    })
}

/// A server and an Envoy with certificates that somebody else made.
async fn made_elsewhere(ca: &Ca, server: &Leaf, client: &Leaf) -> (Replica, Envoy) {
    let files = TlsFiles {
        ca: file("ca.crt", ca.pem()),
        certificate: file("server.crt", server.chain_pem()),
        key: file("server.key", server.key_pem()),
    };
    let replica = Replica::start(address(), Some(files));
    replica.publish(Vec::new());
    let envoy = launch(replica.address, Some(envoy_tls(ca, client)), None).await;
    (replica, envoy)
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_made_for_contour_work_unchanged() {
    let ca = Ca::with_key("Project Contour", KeyType::Rsa2048);
    let server = ca.leaf("contour").dns("contour.projectcontour").key(KeyType::Rsa2048).make();
    let client = ca.leaf("envoy").dns("envoy.projectcontour").key(KeyType::Rsa2048).make();
    let (_replica, envoy) = made_elsewhere(&ca, &server, &client).await;
    envoy.ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_through_an_intermediate_works() {
    let root = Ca::new("root");
    let between = root.intermediate("between");
    let (server, client) = (between.leaf("sesame").make(), between.leaf("envoy").make());
    let (_replica, envoy) = made_elsewhere(&root, &server, &client).await;
    envoy.ready().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_by_another_name_is_not_listened_to() {
    let ca = Ca::new("ca");
    let (server, client) = (ca.leaf("web.example.com").make(), ca.leaf("envoy").make());
    let impostor = Backend::named("impostor").tls_for_clients(&server, &ca).start().await.unwrap();
    let envoy = launch(impostor.https(), Some(envoy_tls(&ca, &client)), None).await;
    envoy.expect_stat("cluster.sesame.ssl.fail_verify_san", TIMEOUT, |failed| failed > 2).await.unwrap();
    assert!(envoy.admin().get("/ready").await.is_err());
}

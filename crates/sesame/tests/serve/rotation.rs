//! Certificates that the controller issues itself: two replicas and a real Envoy, whose files are refreshed as a kubelet would,
//! and a new CA, with no stream dropped and no request lost.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testbed::{Backend, Envoy, Net, StateDir, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::bed::{Bed, Replica, TIMEOUT, app, sesame};
use crate::fleets::{self, Fleet};

/// How long each step takes at least.
const SETTLE: &str = "2s";

/// A replica that issues its certificates. Statistics of Envoys are on every address: proxies are asked where they come from.
async fn replica(bed: &Bed, name: &str, namespace: &str) -> Replica {
    let address = Net::here().unwrap().address();
    start(bed, name, namespace, address).await
}

async fn start(bed: &Bed, name: &str, namespace: &str, address: std::net::Ipv4Addr) -> Replica {
    start_with(bed, name, namespace, address, &[]).await
}

/// The same with more flags.
async fn start_with(
    bed: &Bed,
    name: &str,
    namespace: &str,
    address: std::net::Ipv4Addr,
    more: &[(&str, &str)],
) -> Replica {
    let certificates = bed.state().path().join(format!("{name}-certs"));
    let certificates = certificates.to_str().unwrap();
    let flags = [
        ("xds-certificates-dir", certificates),
        ("xds-certificate-settle-time", SETTLE),
        ("namespace", namespace),
        ("stats-address", "0.0.0.0"),
        ("leader-election-lease-duration", "3s"),
        ("leader-election-renew-deadline", "2s"),
        ("leader-election-retry-period", "500ms"),
    ];
    let flags: Vec<_> = flags.iter().chain(more).copied().collect();
    bed.replica_without_files(name, address, &flags).await
}

fn secrets(bed: &Bed, namespace: &str) -> Api<Secret> {
    Api::namespaced(bed.api.client().unwrap(), namespace)
}

async fn entry(secrets: &Api<Secret>, name: &str, entry: &str) -> Option<String> {
    let secret = secrets.get_opt(name).await.unwrap()?;
    Some(String::from_utf8(secret.data?.get(entry)?.0.clone()).unwrap())
}

/// Writes the Secret of Envoys to a folder as a kubelet does: all files at once, behind a symbolic link.
struct Mounted {
    dir: PathBuf,
    round: u32,
    last: Option<String>,
}

impl Mounted {
    async fn refresh(&mut self, secrets: &Api<Secret>) {
        let Some(secret) = secrets.get_opt("envoycert").await.unwrap() else { return };
        if secret.metadata.resource_version == self.last {
            return;
        }
        self.last = secret.metadata.resource_version;
        self.round += 1;
        let data = self.dir.join(format!("..{}", self.round));
        std::fs::create_dir_all(&data).unwrap();
        for (name, text) in secret.data.unwrap() {
            std::fs::write(data.join(&name), text.0).unwrap();
            let link = self.dir.join(&name);
            if !link.is_symlink() {
                std::os::unix::fs::symlink(Path::new("..data").join(&name), link).unwrap();
            }
        }
        let next = self.dir.join("..data_tmp");
        std::os::unix::fs::symlink(data.file_name().unwrap(), &next).unwrap();
        std::fs::rename(next, self.dir.join("..data")).unwrap();
    }
}

async fn envoy(bed: &Bed, server: SocketAddr, certs: &Path) -> Envoy {
    let sockets = tempfile::tempdir().unwrap().keep();
    let bootstrap = sockets.join("bootstrap.json");
    let written = sesame()
        .arg("bootstrap")
        .arg(&bootstrap)
        .flag("xds-address", server.ip().to_string())
        .flag("xds-port", server.port().to_string())
        .flag("envoy-cafile", certs.join("ca.crt"))
        .flag("envoy-cert-file", certs.join("tls.crt"))
        .flag("envoy-key-file", certs.join("tls.key"))
        .flag("resources-dir", sockets.join("resources"))
        .flag("admin-address", sockets.join("admin.sock"))
        .start_in(bed.state())
        .unwrap();
    assert!(written.exited().await.unwrap().success(), "{}", written.log().text());
    Envoy::config().launch(std::fs::read_to_string(&bootstrap).unwrap()).await.unwrap()
}

/// How many CAs an entry has.
fn count(pem: &str) -> usize {
    pem.matches("BEGIN CERTIFICATE").count()
}

async fn rotate(secrets: &Api<Secret>) {
    let asked = json!({ "metadata": { "annotations": { "projectsesame.io/rotate-ca": "now" } } });
    secrets.patch("sesame-ca", &PatchParams::default(), &Patch::Merge(asked)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_ca_ends_no_stream_and_loses_no_request() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("rotation").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let secrets = secrets(&bed, &namespace);
    let one = replica(&bed, "sesame-0", &namespace).await.ready().await;
    let two = replica(&bed, "sesame-1", &namespace).await.ready().await;
    let first = entry(&secrets, "sesame-ca", "ca.crt").await.unwrap();
    let cache_key = entry(&secrets, "sesame-cache-key", "cache.key").await;
    assert!(cache_key.is_some());

    let folder = StateDir::new("envoycert").unwrap();
    let mut mounted = Mounted { dir: folder.path().to_owned(), round: 0, last: None };
    mounted.refresh(&secrets).await;
    let envoys = [envoy(&bed, one.xds(), folder.path()).await, envoy(&bed, two.xds(), folder.path()).await];
    for envoy in &envoys {
        envoy.ready().await.unwrap();
    }
    let load = bed.load("web.example.com");
    load.answered(100).await;
    rotate(&secrets).await;

    // Replicas have the new CA at once; the proxies do not, and are waited for.
    let both = async || match entry(&secrets, "envoycert", "ca.crt").await {
        Some(bundle) if count(&bundle) == 2 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("both CAs in the bundle of Envoys", TIMEOUT, both).await.unwrap();
    one.expect_metric("sesame_xds_certificates_behind", "", |behind| behind >= 2.0).await;
    one.process.expect_line("still waits for replicas and proxies to trust the next CA", TIMEOUT).await.unwrap();
    assert_eq!(
        entry(&secrets, "sesame-ca", "ca.crt").await.unwrap(),
        first,
        "the old CA signs while one does not trust the new one"
    );
    mounted.refresh(&secrets).await;

    // Then its certificates, and at the end the old CA is gone.
    let done = async || {
        mounted.refresh(&secrets).await;
        let (ca, envoys) = (entry(&secrets, "sesame-ca", "ca.crt").await, entry(&secrets, "envoycert", "ca.crt").await);
        let server = entry(&secrets, "sesamecert", "ca.crt").await;
        match ca.as_ref() != Some(&first) && ca == envoys && ca == server {
            true => Ok(()),
            false => Err(one.process.log().tail().to_string()),
        }
    };
    eventually("the old CA to be gone", TIMEOUT, done).await.unwrap();
    assert_eq!(entry(&secrets, "sesame-ca", "next.key").await, None);
    assert_eq!(entry(&secrets, "sesame-cache-key", "cache.key").await, cache_key, "disk caches can still be read");
    for (replica, envoy) in [&one, &two].into_iter().zip(&envoys) {
        let own = bed.state().path().join(format!("{}-certs/ca.crt", replica.process.name()));
        let alone = async || match std::fs::read_to_string(&own).unwrap() {
            bundle if count(&bundle) == 1 => Ok(()),
            bundle => Err(bundle),
        };
        eventually("the replica to trust the new CA alone", TIMEOUT, alone).await.unwrap();
        for reason in ["expired", "shutdown"] {
            assert_eq!(replica.metric("sesame_xds_streams_ended_total", reason).await, 0.0);
        }
        assert_eq!(replica.metric("sesame_xds_refused_connections_total", "").await, 0.0);
        replica.in_step(1).await;
        let connections = envoy.admin().stat("cluster.projectsesame_sesame_8001.upstream_cx_total").await.unwrap();
        assert_eq!(connections, Some(1), "the stream has not been ended");
    }
    // Whoever comes now has certificates of the new CA, and is let in by it alone.
    mounted.refresh(&secrets).await;
    let late = envoy(&bed, two.xds(), folder.path()).await;
    late.ready().await.unwrap();
    load.answered(50).await;
    load.stop().await.assert_nothing_lost();
}

/// Answers at an address as an Envoy whose certificate no rotation issues; counts the connections.
async fn forged_statistics(at: SocketAddr) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind(at).await.unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        let line = |name: &str| {
            let certificate = "cluster.projectsesame_sesame_8001.ssl.certificate";
            format!("{certificate}.sesame_xds_tls_{name}.expiration_unix_time_seconds: 1\n")
        };
        let body = line("certificate") + &line("validation_context");
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 1024];
            // Whoever asks may be gone before the answer.
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    asked
}

/// Proxies of a Gateway have the CAs in their bootstrap, and say so in their node; there may be one that does not, and whose owner answers for
/// it on the port of statistics.
#[tokio::test(flavor = "multi_thread")]
async fn proxies_of_a_gateway_are_waited_for_by_their_nodes_and_not_by_their_statistics() {
    let bed = Bed::start().await;
    bed.api.install([parts::folder("gateway-api-crds").unwrap().join("standard")]).await.unwrap();
    let namespace = bed.api.namespace("rotation").await.unwrap();
    let shop = bed.api.namespace("shop").await.unwrap();
    let secrets = secrets(&bed, &namespace);
    bed.api.apply(&format!("{}---\n{}", fleets::CLASS, fleets::gateway(&shop, "edge", 7190))).await.unwrap();
    let address = Net::here().unwrap().address();
    let flags = [("fleet-xds-address", &*address.to_string()), ("fleet-replicas", "1")];
    let replica = start_with(&bed, "sesame-0", &namespace, address, &flags).await.ready().await;
    let first = entry(&secrets, "sesame-ca", "ca.crt").await.unwrap();
    let fleet = Fleet::new(&bed, &shop, "edge");
    fleet.service(7190).await;
    let old = fleet.envoy(&bed).await;
    let mut bootstrap: Value = serde_json::from_str(&fleet.bootstrap(&bed).await).unwrap();
    bootstrap["node"]["id"] = "silent".into();
    let metadata = bootstrap["node"]["metadata"].as_object_mut().unwrap();
    assert!(metadata.remove("sesame.ca-expirations").is_some(), "{metadata:?}");
    let silent = Envoy::config().launch(bootstrap).await.unwrap();
    for envoy in [&old, &silent] {
        envoy.ready().await.unwrap();
    }
    // Envoys that run here connect from the address that they connect to.
    let asked = forged_statistics((address, 8002).into()).await;

    // Neither is waited for beyond a day, since the new CA is asked for.
    rotate(&secrets).await;
    let line = replica.process.expect_line("silent=\"2 (", TIMEOUT).await.unwrap();
    assert!(line.contains("behind=\"\""), "{line}");
    let both = async || match count(&fleet.cas().await) {
        2 => Ok(()),
        other => Err(other),
    };
    eventually("both CAs in the Deployment", TIMEOUT, both).await.unwrap();
    assert_eq!(entry(&secrets, "sesame-ca", "ca.crt").await.unwrap(), first, "the old CA signs meanwhile");

    // The rollout ends: a proxy with both CAs takes their place.
    let new = fleet.envoy(&bed).await;
    new.ready().await.unwrap();
    for envoy in [old, silent] {
        envoy.kill().await.unwrap();
    }
    let done = async || {
        let ca = entry(&secrets, "sesame-ca", "ca.crt").await;
        let bundles = [entry(&secrets, "sesamecert", "ca.crt").await, entry(&secrets, "envoycert", "ca.crt").await];
        match ca.as_ref() != Some(&first) && bundles.iter().all(|bundle| *bundle == ca) {
            true => Ok(()),
            false => Err(replica.process.log().tail().to_string()),
        }
    };
    eventually("the old CA to be gone", TIMEOUT, done).await.unwrap();
    let connections = new.admin().stat(&format!("cluster.{namespace}_sesame_8001.upstream_cx_total")).await.unwrap();
    assert_eq!(connections, Some(1), "its stream has not been ended");
    let late = fleet.envoy(&bed).await;
    late.ready().await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0, "statistics of a proxy of a Gateway were read");
}

/// Whoever holds the lease is killed after every step.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_goes_on_whoever_is_killed_in_the_middle() {
    let bed = Bed::start().await;
    let namespace = bed.api.namespace("killed").await.unwrap();
    let secrets = secrets(&bed, &namespace);
    let address = Net::here().unwrap().address();
    let mut running = start(&bed, "sesame-0", &namespace, address).await.ready().await;
    let first = entry(&secrets, "sesame-ca", "ca.crt").await.unwrap();
    rotate(&secrets).await;
    for _ in 0..12 {
        running.process.expect_line(" wrote ", TIMEOUT).await.unwrap();
        running.process.kill().await.unwrap();
        let now = entry(&secrets, "sesame-ca", "ca.crt").await;
        if now.as_ref() != Some(&first) && entry(&secrets, "envoycert", "ca.crt").await == now {
            break;
        }
        running = start(&bed, "sesame-0", &namespace, address).await;
    }
    let last = start(&bed, "sesame-0", &namespace, address).await.ready().await;
    last.process.expect_line("certificates of xDS connections are valid", TIMEOUT).await.unwrap();
    assert_eq!(entry(&secrets, "sesamecert", "ca.crt").await, entry(&secrets, "sesame-ca", "ca.crt").await);
}

/// The versions of all Secrets of a namespace.
async fn versions(secrets: &Api<Secret>) -> BTreeMap<Option<String>, Option<String>> {
    let all = secrets.list(&ListParams::default()).await.unwrap().items;
    all.into_iter().map(|secret| (secret.metadata.name, secret.metadata.resource_version)).collect()
}

/// How often the Secret of the CA is read after the line, in rounds that might write something or say it again.
const ROUNDS: usize = 10;

/// The clock is behind, or was ahead when the CA was made. Nothing tells one from the other, so all is kept until somebody asks for a new CA.
#[tokio::test(flavor = "multi_thread")]
async fn a_ca_that_begins_tomorrow_is_told_once_and_no_secret_is_written_until_a_new_one_is_asked_for() {
    let bed = Bed::audited().await;
    let namespace = bed.api.namespace("early").await.unwrap();
    let secrets = secrets(&bed, &namespace);
    let address = Net::here().unwrap().address();
    let first = start(&bed, "sesame-0", &namespace, address).await.ready().await;
    first.process.expect_line("certificates of xDS connections are valid", TIMEOUT).await.unwrap();
    assert!(first.process.stop(TIMEOUT).await.unwrap().success());
    // As if it had been made tomorrow: it is valid from an hour before that.
    let tomorrow = SystemTime::now() + Duration::from_secs(25 * 3600);
    let ca = certgen::Authority::new(tomorrow, Duration::from_secs(3650 * 24 * 3600)).unwrap().pair();
    let entries = json!({ "stringData": { "ca.crt": ca.certificate, "ca.key": ca.key } });
    secrets.patch("sesame-ca", &PatchParams::default(), &Patch::Merge(entries)).await.unwrap();
    let before = versions(&secrets).await;

    let second = start(&bed, "sesame-0", &namespace, address).await.ready().await;
    let line = second.process.expect_line("SES1045", TIMEOUT).await.unwrap();
    assert!(line.contains("not yet valid according to the leader's clock"), "{line}");
    let reads = || {
        let entries = bed.api.audit().unwrap();
        entries.iter().filter(|entry| entry.verb == "get" && entry.name == "sesame-ca").count()
    };
    let enough = reads() + ROUNDS;
    let read_again = async || match reads() {
        count if count >= enough => Ok(()),
        count => Err(count),
    };
    second.process.expect_ok("to look at the CA again and again", TIMEOUT, read_again).await.unwrap();
    let log = second.process.log().text();
    assert_eq!(log.lines().filter(|line| line.contains("SES1045")).count(), 1, "{log}");
    assert_eq!(versions(&secrets).await, before, "a Secret was written");

    // Certificates of before are served with and let in, also while there is a new CA, which leaves no trace of the early one.
    let folder = StateDir::new("envoycert").unwrap();
    let mut mounted = Mounted { dir: folder.path().to_owned(), round: 0, last: None };
    mounted.refresh(&secrets).await;
    let envoy = envoy(&bed, second.xds(), folder.path()).await;
    envoy.ready().await.unwrap();
    rotate(&secrets).await;
    let early = entry(&secrets, "sesame-ca", "ca.crt").await;
    let done = async || {
        mounted.refresh(&secrets).await;
        let signer = entry(&secrets, "sesame-ca", "ca.crt").await;
        let bundles = [entry(&secrets, "sesamecert", "ca.crt").await, entry(&secrets, "envoycert", "ca.crt").await];
        match signer != early && bundles.iter().all(|bundle| *bundle == signer) {
            true => Ok(()),
            false => Err(second.process.log().tail().to_string()),
        }
    };
    eventually("the new CA to be the only one", TIMEOUT, done).await.unwrap();
    second.in_step(1).await;
    assert_eq!(second.metric("sesame_xds_streams_ended_total", "expired").await, 0.0);
    assert_eq!(second.metric("sesame_xds_refused_connections_total", "").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_another_issuer_are_used_and_left_alone_and_told_of_before_they_expire() {
    let bed = Bed::start().await;
    let namespace = bed.api.namespace("issuer").await.unwrap();
    let secrets = secrets(&bed, &namespace);
    let made = certgen::Certificates::issue(&certgen::Request {
        namespace: namespace.clone(),
        fleet: None,
        lifetime: Duration::from_secs(20 * 24 * 3600),
        now: std::time::SystemTime::now(),
    });
    for mut secret in certgen::secrets(&made.unwrap(), &namespace, certgen::Format::Compact, "") {
        // As cert-manager has it.
        let annotation = ("cert-manager.io/certificate-name".to_owned(), "xds".to_owned());
        secret.metadata.labels = None;
        secret.metadata.annotations = Some([annotation].into());
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }
    let version = secrets.get("sesamecert").await.unwrap().metadata.resource_version;
    let replica = replica(&bed, "sesame-0", &namespace).await.ready().await;
    replica.process.expect_line("the Secrets of xDS connections are not managed by Sesame", TIMEOUT).await.unwrap();
    let events = Api::<Event>::namespaced(bed.api.client().unwrap(), &namespace);
    let told = async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let of = |event: &Event| event.reason.as_deref() == Some("XdsCertificateExpires");
        match all.iter().filter(|event| of(event)).count() {
            2 => Ok(()),
            other => Err(other),
        }
    };
    eventually("events about the CA and the certificate", TIMEOUT, told).await.unwrap();
    assert_eq!(secrets.get("sesamecert").await.unwrap().metadata.resource_version, version);
    assert!(secrets.get_opt("sesame-ca").await.unwrap().is_none());

    // The Secrets go, and with them the other issuer: certificates are issued here.
    for name in ["sesamecert", "envoycert"] {
        secrets.delete(name, &DeleteParams::default()).await.unwrap();
    }
    replica.process.expect_line("certificates of xDS connections are valid", TIMEOUT).await.unwrap();
    assert!(entry(&secrets, "envoycert", "ca.crt").await.is_some());
}

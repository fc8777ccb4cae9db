//! A controller that starts while the API server is away: proxies that have nothing are served what was last published.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use testbed::certs::{Ca, Leaf};
use testbed::{Backend, Client, Net, StateDir, eventually};

use crate::bed::{Bed, Replica, TIMEOUT, app, service};
use crate::outage::MOST_MEMORY;

const KEY: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0\n";
const NEXT: &str = "f0e1d2c3b4a5968778695a4b3c2d1e0ff0e1d2c3b4a5968778695a4b3c2d1e0f\n";

/// How many hosts are added while the cache cannot be written.
const ADDED: usize = 20;

/// A replica with its folder and its key.
struct Cached {
    dir: PathBuf,
    key: PathBuf,
    address: std::net::Ipv4Addr,
}

impl Cached {
    fn new(bed: &Bed, dir: &Path) -> Cached {
        let address = Net::here().unwrap().address();
        Cached { dir: dir.to_owned(), key: bed.file("cache.key", KEY), address }
    }

    async fn start(&self, bed: &Bed) -> Replica {
        let flags = [("cache-dir", self.dir.to_str().unwrap()), ("cache-key-file", self.key.to_str().unwrap())];
        bed.replica_at("sesame-0", self.address, &flags).await
    }

    fn state(&self) -> PathBuf {
        self.dir.join("state")
    }
}

async fn written(replica: &Replica) {
    replica.expect_metric("sesame_disk_cache_enabled", "", |enabled| enabled == 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_envoy_is_served_while_the_api_server_is_away_and_nothing_is_sent_again_when_it_is_back() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("cached").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let folder = StateDir::new("cache").unwrap();
    let cached = Cached::new(&bed, folder.path());
    let first = cached.start(&bed).await.ready().await;
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    let load = bed.load("web.example.com");
    load.answered(100).await;
    written(&first).await;
    let state = std::fs::read(cached.state()).unwrap();
    assert!(!state.windows(11).any(|part| part == b"example.com"), "it is in the clear");
    assert_eq!(std::fs::metadata(cached.state()).unwrap().permissions().mode() & 0o777, 0o600);

    bed.api.kill().await.unwrap();
    first.process.kill().await.unwrap();
    let second = cached.start(&bed).await;
    second.process.expect_line("disk cache loaded", TIMEOUT).await.unwrap();
    // Whoever has something may have something newer, and waits.
    envoy.expect_stat("control_plane.connected_state", TIMEOUT, |state| state == 1).await.unwrap();
    load.answered(100).await;
    assert_eq!(second.sent().await, 0.0, "an Envoy that has everything was disturbed");
    let new = bed.envoy(second.xds()).await;
    new.ready().await.unwrap();
    assert_eq!(second.page("/readyz").await.unwrap().0, 503, "it does not know what holds now");
    load.stop().await.assert_nothing_lost();
    envoy.kill().await.unwrap();
    bed.answers("web.example.com", 200).await;

    let sent = second.sent().await;
    bed.api.restart().await.unwrap();
    let second = second.ready().await;
    second.in_step(1).await;
    assert_eq!(second.sent().await, sent, "what the Envoy had was sent again");
    bed.api.apply(&app(&namespace, "new", &backend)).await.unwrap();
    bed.answers("new.example.com", 200).await;
}

/// A Host of Emissary with a certificate, as YAML.
fn host(namespace: &str, leaf: &Leaf, backend: &Backend) -> String {
    let object = |kind: &str, spec: serde_json::Value| {
        let metadata = json!({ "name": "web", "namespace": namespace });
        json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "metadata": metadata, "spec": spec })
    };
    let binding = json!({ "namespace": { "from": "SELF" } });
    let spec = json!({ "port": 8443, "protocol": "HTTPS", "securityModel": "XFP", "hostBinding": binding });
    let listener = object("Listener", spec);
    let host = object("Host", json!({ "hostname": "web.example.com", "tlsSecret": { "name": "cert" } }));
    let mapping = object("Mapping", json!({ "hostname": "web.example.com", "prefix": "/", "service": "web" }));
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": "cert", "namespace": namespace },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } });
    format!("{listener}\n---\n{host}\n---\n{mapping}\n---\n{secret}\n---\n{}", service(namespace, "web", backend))
}

/// All files below a folder, except in this one.
fn files(folder: &Path, except: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path != except).map(|path| match path.is_dir() {
        true => files(&path, except),
        false => vec![path],
    });
    files.flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_a_host_is_sealed_in_the_cache_and_in_no_other_file() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("sealed").await.unwrap();
    let ca = Ca::new("hosts");
    let leaf = ca.leaf("web.example.com").make();
    bed.api.apply(&host(&namespace, &leaf, &backend)).await.unwrap();
    let client = Client::new(bed.https()).host("web.example.com").https().trust(&ca);
    let served = async || match client.get("/").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    let folder = StateDir::new("cache").unwrap();
    let cached = Cached::new(&bed, folder.path());
    let first = cached.start(&bed).await.ready().await;
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    eventually("the Host to be served", TIMEOUT, served).await.unwrap();
    written(&first).await;

    // The key is in the cache: a new Envoy gets it while there is no API server.
    bed.api.kill().await.unwrap();
    first.process.kill().await.unwrap();
    envoy.kill().await.unwrap();
    let second = cached.start(&bed).await;
    second.process.expect_line("disk cache loaded", TIMEOUT).await.unwrap();
    let new = bed.envoy(second.xds()).await;
    new.ready().await.unwrap();
    eventually("the Host to be served from the cache", TIMEOUT, served).await.unwrap();

    // The keys of xDS connections are files that a replica is given.
    let given = bed.state().path().join("certs");
    let mut files = [folder.path(), bed.state().path()].map(|folder| files(folder, &given)).concat();
    assert!(files.contains(&cached.state()), "{files:?}");
    files.extend([&first, &second].map(|replica| replica.process.log_path().to_owned()));
    let encoded = leaf.key_pem().lines().nth(1).unwrap();
    let key = leaf.key();
    for file in files {
        let content = std::fs::read(&file).unwrap();
        for secret in [b"PRIVATE KEY".as_slice(), encoded.as_bytes(), key.secret_der()] {
            let is_there = content.windows(secret.len()).any(|part| part == secret);
            assert!(!is_there, "a key is in {}", file.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_is_damaged_older_or_of_another_key_is_refused_and_one_of_the_previous_key_is_read() {
    let bed = Bed::start().await;
    let folder = StateDir::new("cache").unwrap();
    let cached = Cached::new(&bed, folder.path());
    let first = cached.start(&bed).await.ready().await;
    written(&first).await;
    first.process.kill().await.unwrap();

    let refused = async |why: &str| {
        let replica = cached.start(&bed).await;
        let line = replica.process.expect_line("SES1036", TIMEOUT).await.unwrap();
        assert!(line.contains(why), "{line}");
        // It is live all the same, and the file is written anew.
        let replica = replica.ready().await;
        written(&replica).await;
        replica.process.kill().await.unwrap();
    };
    let mut state = std::fs::read(cached.state()).unwrap();
    let middle = state.len() / 2;
    state[middle] ^= 1;
    std::fs::write(cached.state(), state).unwrap();
    refused("it is damaged").await;
    // As an older and a newer version wrote it: the number of the format follows the first line.
    for number in [0_u32, 2] {
        let mut state = std::fs::read(cached.state()).unwrap();
        let format = state.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        state[format..format + 4].copy_from_slice(&number.to_le_bytes());
        std::fs::write(cached.state(), state).unwrap();
        refused(&format!("it has format {number}, and this version reads format 1")).await;
    }
    std::fs::write(cached.state(), "apiVersion: v1\n").unwrap();
    refused("it is not a disk cache").await;
    bed.file("cache.key", NEXT);
    refused("it is sealed with a key that is not in the key file").await;

    bed.file("cache.key", &format!("{KEY}{NEXT}"));
    let last = cached.start(&bed).await;
    last.process.expect_line("disk cache loaded", TIMEOUT).await.unwrap();
}

/// As in a new installation: the controller creates the Secret with the key, and the kubelet mounts it into the running pod a while later.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_mounted_after_the_start_is_used_within_seconds_and_without_a_warning() {
    let bed = Bed::start().await;
    let folder = StateDir::new("cache").unwrap();
    let late = Cached { key: bed.state().path().join("late.key"), ..Cached::new(&bed, folder.path()) };
    let replica = late.start(&bed).await.ready().await;
    replica.process.expect_line("the disk cache waits for its key file", TIMEOUT).await.unwrap();
    bed.file("late.key", KEY);
    written(&replica).await;
    let log = replica.process.log().text();
    assert!(!log.contains("SES1037"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_on_the_disk_the_cache_is_off_and_told() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("full").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let folder = StateDir::new("cache").unwrap();
    let mounted =
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=4k", "full"]).arg(folder.path()).status();
    assert!(mounted.unwrap().success(), "a small disk");
    let cached = Cached::new(&bed, folder.path());
    std::fs::write(folder.path().join("other"), [0; 4096]).unwrap();
    let replica = cached.start(&bed).await.ready().await;
    let line = replica.process.expect_line("SES1037", TIMEOUT).await.unwrap();
    assert!(line.contains("No space left on device"), "{line}");
    assert_eq!(replica.metric("sesame_disk_cache_enabled", "").await, 0.0);
    let left = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["other"], "nothing of it takes room");
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    // What cannot be written is not kept for later either.
    let used = replica.memory().await;
    for number in 0..ADDED {
        bed.api.apply(&app(&namespace, &format!("h{number}"), &backend)).await.unwrap();
    }
    bed.answers(&format!("h{}.example.com", ADDED - 1), 200).await;
    let grown = replica.memory().await - used;
    assert!(grown < MOST_MEMORY, "{grown} bytes more");
}

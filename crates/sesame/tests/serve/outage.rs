//! The API server is away, has forgotten its history, or is silent: proxies serve on, and nobody is told half a world.

use std::time::{Duration, Instant};

use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use testbed::certs::Ca;
use testbed::{ApiServer, Backend, Client, Net, Wire, eventually};

use crate::bed::{Bed, Replica, TIMEOUT, app, service};

/// How long it may take a replica to log that the API server is still away: a minute after the first request that failed, with the next one.
const AGAIN: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn for_a_minute_without_an_api_server_and_a_restart_in_it_nothing_is_lost() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("outage").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let first = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    let load = bed.load("web.example.com");
    load.answered(100).await;
    bed.api.kill().await.unwrap();
    load.answered(200).await;
    assert_eq!(first.page("/healthz").await.unwrap().0, 200, "alive is not tied to the API server");
    assert_eq!(first.page("/readyz").await.unwrap().0, 200, "what it knows it can serve");
    // Restarted in the middle, it knows nothing, and says nothing.
    first.process.kill().await.unwrap();
    let away = Instant::now();
    let second = bed.replica_at("sesame-0", first.address, &[]).await;
    second.process.expect_port(second.xds(), TIMEOUT).await.unwrap();
    envoy.expect_stat("control_plane.connected_state", TIMEOUT, |state| state == 1).await.unwrap();
    let address = bed.api.address().to_string();
    let says_what_is_away = async || {
        let (status, why) = second.page("/readyz").await.unwrap();
        assert_eq!(status, 503);
        let is_named = why.starts_with("waiting for the first build (") && why.contains(&address);
        if is_named { Ok(()) } else { Err(why) }
    };
    eventually("a reason with the address of the API server", TIMEOUT, says_what_is_away).await.unwrap();
    assert_eq!(second.page("/healthz").await.unwrap().0, 200);
    load.answered(200).await;
    assert_eq!(second.sent().await, 0.0, "it answered before it knew anything");
    // More than a minute: a replica logs once a minute that the API server is still away.
    let still = second.process.expect_line("API server still unreachable", AGAIN).await.unwrap();
    assert!(still.contains(&address), "{still}");
    bed.api.restart().await.unwrap();
    let second = second.ready().await;
    let over = second.process.expect_line("API server reachable again", TIMEOUT).await.unwrap();
    assert!(over.contains(&address), "{over}");
    second.in_step(1).await;
    assert_eq!(second.sent().await, 0.0, "what Envoy had was sent again");
    bed.api.apply(&app(&namespace, "new", &backend)).await.unwrap();
    bed.answers("new.example.com", 200).await;
    load.stop().await.assert_nothing_lost();
    let log = second.process.log().text();
    let about = |text: &str| log.lines().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let (begun, ongoing) = (about("API server unreachable"), about("API server still unreachable"));
    assert!(begun.len() == 1 && begun[0].contains(&address), "{begun:#?}");
    assert!(!ongoing.is_empty() && ongoing.iter().all(|line| line.contains(&address)), "{ongoing:#?}");
    assert!(ongoing.len() as u64 <= away.elapsed().as_secs() / 60, "more than once a minute: {ongoing:#?}");
    assert_eq!(about("API server reachable again").len(), 1, "{log}");
}

/// Forgets all history before now.
async fn compact(api: &ApiServer) {
    let client = Client::new((api.address().ip(), 2379).into());
    let answer = client.post("/v3/kv/range", r#"{"key": "AA=="}"#).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let revision = answer["header"]["revision"].as_str().unwrap();
    let body = format!(r#"{{"revision": "{revision}", "physical": true}}"#);
    assert_eq!(client.post("/v3/kv/compaction", body).await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_cut_and_whose_history_is_gone_is_made_good() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("compacted").await.unwrap();
    for name in ["web", "old"] {
        bed.api.apply(&app(&namespace, name, &backend)).await.unwrap();
    }
    let replica = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("old.example.com", 200).await;
    let load = bed.load("web.example.com");
    load.answered(50).await;
    // While the watches of the replica cannot go on, an Ingress goes, another comes, and history is forgotten.
    replica.process.signal(rustix::process::Signal::STOP).unwrap();
    let ingresses = Api::<Ingress>::namespaced(bed.api.client().unwrap(), &namespace);
    ingresses.delete("old", &DeleteParams::default()).await.unwrap();
    bed.api.apply(&app(&namespace, "new", &backend)).await.unwrap();
    compact(&bed.api).await;
    bed.api.restart().await.unwrap();
    replica.process.signal(rustix::process::Signal::CONT).unwrap();
    bed.answers("new.example.com", 200).await;
    bed.answers("old.example.com", 404).await;
    load.stop().await.assert_nothing_lost();
}

/// How many lines an outage may have: it begins and ends, the lease is lost and gained, and what was written meanwhile is.
const MOST_LINES: usize = 10;

/// Whoever is woken by it at night reads three lines, not thousands: the source, the lease and the status writer all try again.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_when_it_begins_and_when_it_ends_and_shown_by_a_metric() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("told").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let here = testbed::Net::here().unwrap().address();
    let flags = [("log-format", "json"), ("log", "info,kube_client=off")];
    let replica = bed.replica_at("sesame-0", here, &flags).await.ready().await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    replica.expect_metric("sesame_apiserver_connected", "", |connected| connected == 1.0).await;
    for kind in ["Ingress", "HTTPProxy", "Service", "EndpointSlice", "Secret"] {
        let label = format!("kind=\"{kind}\"");
        let heard = replica.metric("sesame_source_last_event_timestamp_seconds", &label).await;
        assert!(heard > 1.7e9, "{kind}: {heard}");
    }
    let before = replica.process.log().text().lines().count();
    bed.api.kill().await.unwrap();
    replica.expect_metric("sesame_apiserver_connected", "", |connected| connected == 0.0).await;
    // By then the lease has been tried for ten seconds, and is tried on.
    replica.expect_metric("sesame_leader", "", |leader| leader == 0.0).await;
    bed.api.restart().await.unwrap();
    replica.expect_metric("sesame_apiserver_connected", "", |connected| connected == 1.0).await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    let log = replica.process.log().text();
    // Each line is one object with the keys of docs/operate.md.
    for line in log.lines() {
        let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).expect(line);
        for key in ["timestamp", "level", "target", "message"] {
            assert!(fields.get(key).is_some_and(serde_json::Value::is_string), "no {key} in {line}");
        }
        let in_text = line.contains("SES1").then(|| fields["code"].as_str().expect(line));
        assert!(in_text.is_none_or(|code| fields["message"].as_str().expect(line).contains(code)), "{line}");
    }
    // All that was said from the beginning of the outage on: nothing but that it is there, what follows, and that it is over.
    let during: Vec<&str> = log.lines().skip(before).collect();
    println!("{} lines between the end of the API server and its return:\n{}", during.len(), during.join("\n"));
    assert!(during.len() <= MOST_LINES, "{during:#?}");
    let address_of_api = bed.api.address().to_string();
    let foreign = |line: &&&str| line.match_indices("://").any(|(at, _)| !line[at + 3..].starts_with(&address_of_api));
    assert_eq!(during.iter().find(foreign), None, "a URL that is not ours");
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).collect::<Vec<_>>();
    let (begun, ended) = (lines("API server unreachable"), lines("API server reachable again"));
    assert_eq!((begun.len(), ended.len()), (1, 1), "{log}");
    let address = bed.api.address().to_string();
    assert!(begun[0].contains(&address) && ended[0].contains(&address), "{begun:?} {ended:?}");
    let about = log.lines().filter(|line| line.contains("WARN") && line.contains("leader lease")).count();
    assert_eq!(about, 0, "{log}");
}

/// A replica that reaches the API server over a wire.
async fn over(bed: &Bed, wire: &Wire) -> Replica {
    let kubeconfig = bed.kubeconfig_over(wire);
    let flags = [("kubeconfig", kubeconfig.to_str().unwrap())];
    bed.replica_at("sesame-0", Net::here().unwrap().address(), &flags).await.ready().await
}

async fn wire(bed: &Bed) -> Wire {
    Wire::new(Net::here().unwrap().socket(6443), bed.api.address()).await.unwrap()
}

/// How long a silent watch may take to be noticed: after 100 s everything is listed, and that may have to be tried again.
const NOTICED: Duration = Duration::from_secs(240);

/// The connections are open and nothing comes: no end of a watch, no error. Only a list shows what was missed.
#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_watch_makes_a_replica_unready_and_is_named_until_it_brings_something() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("stalled").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let wire = wire(&bed).await;
    let replica = over(&bed, &wire).await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    let load = bed.load("web.example.com");
    load.answered(100).await;
    let used = replica.memory().await;
    wire.stall();
    bed.api.apply(&app(&namespace, "missed", &backend)).await.unwrap();
    assert_eq!(bed.status_of("missed.example.com", "/").await, 404, "no watch told of it");
    let begun = Instant::now();
    let is_named = async || match replica.page("/readyz").await? {
        (503, why) if why.contains("stalled watches of the API server (") && why.contains("ingresses") => Ok(why),
        (status, why) => Err(format!("{status} {why}")),
    };
    let why = eventually("/readyz to name the watch", NOTICED, is_named).await.unwrap();
    println!("after {:.0?}: {why}", begun.elapsed());
    assert_eq!(replica.page("/healthz").await.unwrap().0, 200, "a restart would not help");
    // What the list brought is served, and so is everything else.
    bed.answers("missed.example.com", 200).await;
    // The watches that follow work: each that was stalled has something to bring.
    bed.api.apply(&app(&namespace, "told", &backend)).await.unwrap();
    let replica = replica.ready().await;
    bed.answers("told.example.com", 200).await;
    assert!(replica.process.log().text().contains("is stalled"), "{}", replica.process.log().tail());
    let grown = replica.memory().await - used;
    assert!(grown < MOST_MEMORY, "{grown} bytes more");
    load.stop().await.assert_nothing_lost();
}

/// How much later each request arrives at the API server.
const SLOW: Duration = Duration::from_secs(10);
/// How many hosts are added while it is slow.
const ADDED: usize = 20;
/// How much more memory a replica may take while something that it needs is missing, in bytes.
pub const MOST_MEMORY: f64 = 64e6;

/// An Ingress with a certificate in a Secret, which has to be fetched.
pub fn with_certificate(namespace: &str, ca: &Ca, backend: &Backend) -> String {
    let leaf = ca.leaf("fetched.example.com").make();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": "fetched", "namespace": namespace },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } });
    let service_backend = json!({ "service": { "name": "fetched", "port": { "number": 80 } } });
    let paths = json!([{ "path": "/", "pathType": "Prefix", "backend": service_backend }]);
    let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": "fetched", "namespace": namespace },
        "spec": {
            "tls": [{ "hosts": ["fetched.example.com"], "secretName": "fetched" }],
            "rules": [{ "host": "fetched.example.com", "http": { "paths": paths } }],
        } });
    format!("{secret}\n---\n{ingress}\n---\n{}", service(namespace, "fetched", backend))
}

/// Waits until the host of that Ingress is served with its certificate.
pub async fn certificate_is_served(bed: &Bed, ca: &Ca) {
    let client = Client::new(bed.https()).host("fetched.example.com").https().sni("fetched.example.com").trust(ca);
    let fetched = async || match client.get("/").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("the host with a certificate", TIMEOUT, fetched).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_every_request_reaches_ten_seconds_late_delays_only_what_asks_it_and_is_told() {
    let (bed, ca) = (Bed::start().await, Ca::new("slow"));
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("slow").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let wire = wire(&bed).await;
    let replica = over(&bed, &wire).await;
    replica.expect_metric("sesame_leader", "", |leader| leader == 1.0).await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    let load = bed.load("web.example.com");
    load.answered(100).await;
    let (before, used) = (replica.process.log().text().lines().count(), replica.memory().await);
    wire.delay(SLOW);
    let slow = Instant::now();
    // A host that waits for its Secret, and hosts of others, of which the watches tell.
    bed.api.apply(&with_certificate(&namespace, &ca, &backend)).await.unwrap();
    let begun = Instant::now();
    for number in 0..ADDED {
        bed.api.apply(&app(&namespace, &format!("h{number}"), &backend)).await.unwrap();
    }
    let applied = begun.elapsed();
    bed.answers(&format!("h{}.example.com", ADDED - 1), 200).await;
    let late = begun.elapsed() - applied;
    assert!(late < SLOW, "others waited {late:?}");
    // xDS answers: a proxy that has nothing gets everything at once.
    let begun = Instant::now();
    let another = bed.envoy(replica.xds()).await;
    another.ready().await.unwrap();
    replica.in_step(2).await;
    assert!(begun.elapsed() < SLOW, "a new proxy waited {:?}", begun.elapsed());
    assert_eq!(replica.page("/readyz").await.unwrap().0, 200);
    replica.process.expect_line("API server slow", TIMEOUT).await.unwrap();
    let grown = replica.memory().await - used;
    let log = replica.process.log().text();
    let during: Vec<&str> = log.lines().skip(before).filter(|line| !line.contains("DEBUG")).collect();
    println!("{ADDED} hosts {late:?} after the last write, {grown} bytes more, lines:\n{}", during.join("\n"));
    // That it is slow is told at once and then every minute.
    let (told, minutes) =
        (during.iter().filter(|line| line.contains("API server slow")).count(), slow.elapsed().as_secs() / 60);
    assert!((1..=1 + minutes).contains(&(told as u64)), "told {told} times in {minutes} minutes: {during:#?}");
    assert!(during.len() <= MOST_LINES + 2 * minutes as usize, "{during:#?}");
    assert!(grown < MOST_MEMORY, "{grown} bytes more");
    // What waited is made good.
    wire.delay(Duration::ZERO);
    certificate_is_served(&bed, &ca).await;
    load.stop().await.assert_nothing_lost();
}

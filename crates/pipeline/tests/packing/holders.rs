//! Holder clusters: certificates that nobody asked for are there, whatever becomes of the controller, and a host that comes
//! costs one holder.

use super::requests::TURN;
use super::world::{World, ingress, ingress_with, object, secret, service, settings};
use envoy_api::Message;
use envoy_api::envoy::config::cluster::v3::Cluster;
use envoy_api::envoy::config::core::v3::transport_socket::ConfigType;
use envoy_api::envoy::extensions::transport_sockets::tls::cert_selectors::on_demand_secret::v3::Config as OnDemand;
use envoy_api::envoy::extensions::transport_sockets::tls::v3::UpstreamTlsContext;
use kinds::{Object, Secret, kind};
use pipeline::holders::{MOST, MOST_UNSPLIT};
use pipeline::settings::{Certificates, Packing};
use pipeline::{Pipeline, Settings};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testbed::{Backend, Client, certs::Ca, envoy::Config};

/// How long a handshake may hang, with room for a busy machine: see `envoy::listener::tls::HANDSHAKE_TIMEOUT`.
const BOUND: Duration = Duration::from_secs(15);

fn https(host: &str) -> Client {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 8443));
    Client::new(at).host(host).https().sni(host).timeout(Duration::from_secs(30))
}

/// A host with a certificate of its own.
fn host(ca: &Ca, name: &str) -> [Object; 2] {
    let fqdn = format!("{name}.example.com");
    [secret(ca, name, &fqdn), ingress_with(name, &fqdn, "/", "web", &json!({}), &[(&fqdn, name)])]
}

/// A Secret with a certificate for these names.
fn shared(ca: &Ca, name: &str, hosts: &[&str]) -> Object {
    shared_in("default", ca, name, hosts)
}

fn shared_in(namespace: &str, ca: &Ca, name: &str, hosts: &[&str]) -> Object {
    let leaf = hosts[1..].iter().fold(ca.leaf(hosts[0]), |leaf, host| leaf.dns(host)).make();
    let meta = json!({"namespace": namespace, "name": name});
    let empty = object(kind::SECRET, &json!({"metadata": meta, "type": "kubernetes.io/tls", "data": {}}));
    let empty = empty.get::<Secret>().unwrap();
    let entries = [("tls.crt", leaf.chain_pem()), ("tls.key", leaf.key_pem())];
    let entries = entries.map(|(name, pem)| (name.into(), pem.as_bytes().into()));
    Object::new(kind::SECRET, Secret::clone(empty).with(entries))
}

async fn served(ca: &Ca, host: &str) -> bool {
    https(host).trust(ca).get("/").await.is_ok_and(|answer| answer.status == 200)
}

/// The serial number of the certificate that is shown.
async fn shown(ca: &Ca, host: &str) -> Option<String> {
    let connection = https(host).trust(ca).connect().await.ok()?;
    Some(connection.tls()?.peer[0].serial.clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_nobody_asked_for_outlive_the_controller() {
    const HOSTS: usize = MOST + 8;
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("holders"));
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("holders"), []).await;
    world.put([service("web", backend.ip())]);
    let names: Vec<String> = (0..HOSTS).map(|number| format!("h{number}")).collect();
    let hosts: Vec<String> = names.iter().map(|name| format!("{name}.example.com")).collect();
    // Half of them come one by one, while their holders are split.
    names[..HOSTS / 2].iter().for_each(|name| world.put(host(&ca, name)));
    world.put([
        secret(&ca, "wild", "*.wild.com"),
        ingress_with("wild", "*.wild.com", "/", "web", &json!({}), &[("*.wild.com", "wild")]),
        ingress("below", "below.wild.com", "/", "web"),
        secret(&ca, "own", "own.wild.com"),
        ingress_with("own", "own.wild.com", "/", "web", &json!({}), &[("own.wild.com", "own")]),
        shared(&ca, "both", &["one.both.com", "two.both.com"]),
        ingress_with("one", "one.both.com", "/", "web", &json!({}), &[("one.both.com", "both")]),
        ingress_with("two", "two.both.com", "/", "web", &json!({}), &[("two.both.com", "both")]),
    ]);
    world.put(host(&ca, "gone"));
    world.publish().await;
    for name in &names[HOSTS / 2..] {
        world.put(host(&ca, name));
        world.publish().await;
    }
    for object in host(&ca, "gone") {
        world.remove(&object);
    }
    world.publish().await;
    let own = ["own.wild.com"];
    world.proxy.has_secrets(hosts.iter().map(String::as_str).chain(own)).await.unwrap();
    world.proxy.stop_server().await.unwrap();

    let chains = ["x.wild.com", "y.wild.com", "below.wild.com", "one.both.com", "two.both.com"];
    for host in hosts.iter().map(String::as_str).chain(own).chain(chains) {
        assert!(served(&ca, host).await, "{host} without a controller");
    }
    // Nobody can tell about these; they do not hang for ever.
    for host in ["unknown.org", "gone.example.com", "H0.Example.COM"] {
        let begun = Instant::now();
        let failure = https(host).trust(&ca).get("/").await.expect_err(host);
        assert!(!failure.is_timeout() && begun.elapsed() < BOUND, "{host}: {failure} after {:?}", begun.elapsed());
    }
    world.proxy.envoy().ready().await.unwrap();
}

/// `removed` takes a certificate from its holder as well; when the host is back it must be there again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_back_is_prefetched_again() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("back"));
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("back"), []).await;
    world.put([service("web", backend.ip())]);
    world.put(host(&ca, "stays"));
    let back = host(&ca, "back");
    for _ in 0..3 {
        world.put(back.clone());
        world.publish().await;
        world.proxy.has_secrets(["back.example.com"]).await.unwrap();
        back.iter().for_each(|object| world.remove(object));
        world.publish().await;
        assert!(!served(&ca, "back.example.com").await, "it is gone");
    }
    world.put(back);
    world.publish().await;
    world.proxy.has_secrets(["stays.example.com", "back.example.com"]).await.unwrap();
    world.proxy.stop_server().await.unwrap();
    assert!(served(&ca, "back.example.com").await && served(&ca, "stays.example.com").await);
}

/// Handshakes of several hosts, without a pause, until the end; the names of those that failed.
struct Handshakes {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Handshakes {
    fn start(ca: &Arc<Ca>, hosts: &[&str]) -> Handshakes {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let task = |host: &&str| {
            let (ca, host, stop, count) = (ca.clone(), (*host).to_owned(), stop.clone(), count.clone());
            tokio::spawn(async move {
                let mut failed = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match https(&host).trust(&ca).connect().await {
                        Ok(_) => _ = count.fetch_add(1, Ordering::Relaxed),
                        Err(failure) => failed.push(format!("{host}: {failure}")),
                    }
                }
                failed
            })
        };
        let tasks = hosts.iter().map(task).collect();
        Handshakes { stop, count, tasks }
    }

    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            let failed = task.await.unwrap();
            assert!(failed.is_empty(), "{} handshakes failed:\n{}", failed.len(), failed.join("\n"));
        }
        self.count.load(Ordering::Relaxed)
    }
}

/// For how long the controller is away in each round: not at all, unless `CONTROLLER_AWAY` says how many seconds.
fn away() -> Duration {
    let seconds = std::env::var("CONTROLLER_AWAY").map_or(0, |seconds| seconds.parse().expect("a number of seconds"));
    Duration::from_secs(seconds)
}

/// The controller is killed, away and started again; meanwhile a certificate is renewed, a host gets another chain, one goes,
/// one comes, and one comes and goes. A restarted controller knows its objects and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_handshake_fails_while_the_controller_is_restarted() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Arc::new(Ca::new("restart")));
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("restart"), []).await;
    let mut objects: BTreeMap<String, Object> = BTreeMap::new();
    let add = |objects: &mut BTreeMap<String, Object>, added: Vec<Object>| {
        objects.extend(added.into_iter().map(|object| (object.key().to_string(), object)));
    };
    add(&mut objects, vec![service("web", backend.ip())]);
    let names: Vec<String> = (0..MOST + 4).map(|number| format!("h{number}")).collect();
    for name in names.iter().map(String::as_str).chain(["renewed", "moved", "leaves", "flaps"]) {
        add(&mut objects, host(&ca, name).to_vec());
    }
    world.put(objects.values().cloned());
    world.publish().await;
    let all: Vec<String> = names.iter().map(|name| format!("{name}.example.com")).collect();
    world.proxy.has_secrets(all.iter().map(String::as_str).chain(["renewed.example.com"])).await.unwrap();
    let before = shown(&ca, "renewed.example.com").await;
    let watched = ["h0.example.com", "h1.example.com", "renewed.example.com", "moved.example.com", "h2.example.com"];
    let handshakes = Handshakes::start(&ca, &watched);
    let mut of_flaps: Option<Handshakes> = None;

    let away = away();
    for round in 0..3 {
        world.proxy.stop_server().await.unwrap();
        tokio::time::sleep(away).await;
        // Hosts that nobody asked for are served, too.
        assert!(served(&ca, &format!("h{}.example.com", 10 + round)).await, "round {round}");
        // A host of the last round is served until a controller no longer has it.
        if let Some(handshakes) = of_flaps.take() {
            handshakes.end().await;
        }
        add(&mut objects, vec![secret(&ca, "renewed", "renewed.example.com")]);
        let strict =
            json!({"projectcontour.io/tls-minimum-protocol-version": if round % 2 == 0 { "1.3" } else { "1.2" }});
        let tls = [("moved.example.com", "moved")];
        add(&mut objects, vec![ingress_with("moved", "moved.example.com", "/", "web", &strict, &tls)]);
        let flapping = host(&ca, "flaps");
        match round {
            1 => add(&mut objects, flapping.to_vec()),
            _ => flapping.iter().for_each(|object| _ = objects.remove(&object.key().to_string())),
        }
        if round == 1 {
            host(&ca, "leaves").iter().for_each(|object| _ = objects.remove(&object.key().to_string()));
        }
        add(&mut objects, host(&ca, &format!("new{round}")).to_vec());
        world.pipeline = Pipeline::new(&settings(Packing::Scoped));
        world.proxy.restart_server().await.unwrap();
        world.put(objects.values().cloned());
        world.publish().await;
        let new = format!("new{round}.example.com");
        world.proxy.has_secrets(["renewed.example.com", &new]).await.unwrap();
        assert_ne!(shown(&ca, "renewed.example.com").await, before, "round {round}");
        assert!(served(&ca, &new).await, "round {round}");
        assert_eq!(served(&ca, "leaves.example.com").await, round == 0, "round {round}");
        assert_eq!(served(&ca, "flaps.example.com").await, round == 1, "round {round}");
        of_flaps = (round == 1).then(|| Handshakes::start(&ca, &["flaps.example.com"]));
    }
    println!("{} handshakes, none failed", handshakes.end().await);
}

/// The names of each holder that was published, by the holder's name.
type Held = BTreeMap<String, BTreeSet<String>>;

fn prefetched(resource: &xds::Resource) -> BTreeSet<String> {
    let cluster = Cluster::decode(&*resource.body).unwrap();
    let Some(ConfigType::TypedConfig(context)) = cluster.transport_socket.unwrap().config_type else { panic!("TLS") };
    let context = UpstreamTlsContext::decode(&*context.value).unwrap();
    let selector = context.common_tls_context.unwrap().custom_tls_certificate_selector.unwrap().typed_config.unwrap();
    OnDemand::decode(&*selector.value).unwrap().prefetch_secret_names.into_iter().collect()
}

/// Takes what changed; the names of the holders that did.
fn apply(held: &mut Held, xds: &xds::Changes) -> BTreeSet<String> {
    let is_holder = |name: &str| name.starts_with("tls_holder/");
    let mut changed = BTreeSet::new();
    for (_, name) in xds.removes.iter().filter(|(_, name)| is_holder(name)) {
        held.remove(&**name);
        changed.insert(name.to_string());
    }
    for resource in xds.upserts.iter().filter(|resource| is_holder(&resource.name)) {
        held.insert(resource.name.to_string(), prefetched(resource));
        changed.insert(resource.name.to_string());
    }
    changed
}

#[test]
fn each_host_has_one_holder_and_changes_no_other() {
    const HOSTS: usize = 400;
    let ca = Ca::new("ranges");
    let settings = Settings { certificates: Certificates::OnDemand, ..settings(Packing::Scoped) };
    let mut pipeline = Pipeline::new(&settings);
    let put = |pipeline: &mut Pipeline, object: Object| pipeline.put(&object.key(), Some(object));
    put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
    put(&mut pipeline, secret(&ca, "shared", "*.example.com"));
    let of = |number: usize| {
        let (name, host) = (format!("h{number}"), format!("h{number}.example.com"));
        ingress_with(&name, &host, "/", "web", &json!({}), &[(&host, "shared")])
    };
    let mut held = Held::new();
    let mut there = BTreeSet::new();
    let mut most = 0;
    // They come in one order and go in another.
    let steps = (0..HOSTS).map(|number| (number, true)).chain((0..HOSTS).map(|step| (step * 7 % HOSTS, false)));
    for (step, (number, comes)) in steps.enumerate() {
        let object = of(number);
        pipeline.put(&object.key(), comes.then_some(object));
        let host = format!("h{number}.example.com");
        if comes {
            there.insert(host)
        } else {
            there.remove(&host)
        };
        let changed = apply(&mut held, &pipeline.settle().xds);
        // A range that is split or merged has 16 parts at most.
        assert!((1..=17).contains(&changed.len()), "{changed:?}");
        most += usize::from(changed.len() > 1);
        let mut all: Vec<&String> = held.values().flatten().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(&there), "each once: {held:?}");
        assert!(held.values().all(|names| !names.is_empty() && names.len() <= MOST), "{held:?}");
        if step % 50 == 0 {
            pipeline.self_check().unwrap();
        }
    }
    assert!(held.is_empty());
    println!("{most} of {} changes split or merged a range", 2 * HOSTS);
    assert!(most < HOSTS / 10, "{most}");
}

/// Names of hosts whose hash begins with the same 12 bits, which is as far as ranges are told apart.
fn mined(prefix: &str, count: usize) -> Vec<String> {
    let names = (0..).map(|number| format!("{prefix}{number}.example.com"));
    names.filter(|name| xds::content_version(name.as_bytes()) >> 52 == 0x5e5).take(count).collect()
}

#[test]
fn names_made_up_for_one_range_make_no_holder_large_and_push_out_no_other_namespace() {
    let ca = Ca::new("mined");
    let settings = Settings { certificates: Certificates::OnDemand, ..settings(Packing::Scoped) };
    let of = |namespace: &str, host: &str| {
        object(
            kind::INGRESS,
            &json!({
                "metadata": {"namespace": namespace, "name": host},
                "spec": {"rules": [{"host": host}], "tls": [{"hosts": [host], "secretName": "shared"}]},
            }),
        )
    };
    let (made_up, own) = (mined("a", MOST_UNSPLIT + 40), mined("z", 1));
    let secrets = ["attacker", "tenant"].map(|namespace| shared_in(namespace, &ca, "shared", &["*.example.com"]));
    let ingresses = made_up.iter().map(|host| of("attacker", host)).chain([of("tenant", &own[0])]);
    let mut objects: Vec<Object> = secrets.into_iter().chain(ingresses).collect();
    let build = |objects: &mut Vec<Object>| {
        let mut pipeline = Pipeline::new(&settings);
        let (mut held, mut sent) = (Held::new(), BTreeSet::new());
        for object in objects.iter() {
            pipeline.put(&object.key(), Some(object.clone()));
            let changes = pipeline.settle().xds;
            apply(&mut held, &changes);
            let secrets = changes.upserts.iter().filter(|resource| resource.kind == xds::Kind::Secret);
            sent.extend(secrets.map(|secret| secret.name.to_string()));
        }
        pipeline.self_check().unwrap();
        objects.reverse();
        (held, sent)
    };
    let (held, sent) = build(&mut objects);
    assert_eq!(held.values().map(BTreeSet::len).collect::<Vec<_>>(), [MOST_UNSPLIT], "one holder, and it is bounded");
    assert!(held.values().flatten().any(|host| *host == own[0]), "the other tenant's certificate is prefetched");
    assert!(made_up.iter().chain(&own).all(|host| sent.contains(host)), "every certificate is there for who asks");
    assert_eq!(build(&mut objects), (held, sent), "the same hosts have the same holder in whatever order they come");
}

/// What has a chain of its own by default, and what has its certificate on demand.
#[test]
fn a_certificate_for_several_names_has_a_chain() {
    let ca = Ca::new("several");
    let objects = [
        service("web", Ipv4Addr::LOCALHOST),
        shared(&ca, "both", &["one.com", "two.com"]),
        ingress_with("one", "one.com", "/", "web", &json!({}), &[("one.com", "both")]),
        secret(&ca, "wild", "*.wild.com"),
        ingress_with("wild", "*.wild.com", "/", "web", &json!({}), &[("*.wild.com", "wild")]),
        ingress_with("under", "under.wild.com", "/", "web", &json!({}), &[("under.wild.com", "wild")]),
        secret(&ca, "own", "own.com"),
        ingress_with("own", "own.com", "/", "web", &json!({}), &[("own.com", "own")]),
    ];
    for (certificates, on_demand) in [
        (Certificates::Auto, &["own.com"][..]),
        (Certificates::PerChain, &[]),
        (Certificates::OnDemand, &["one.com", "own.com", "under.wild.com"]),
    ] {
        let mut pipeline = Pipeline::new(&Settings { certificates, ..settings(Packing::Scoped) });
        objects.iter().for_each(|object| pipeline.put(&object.key(), Some(object.clone())));
        let mut held = Held::new();
        apply(&mut held, &pipeline.settle().xds);
        let held: Vec<String> = held.into_values().flatten().collect();
        assert_eq!(held, on_demand, "{certificates:?}");
    }
}

/// Clients may ask for any name while the controller is away. When it is back, Envoy is told about each of them, however many the
/// controller remembers: one that it was told nothing of, Envoy would never ask for again, nor show when its host comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_were_asked_for_while_the_controller_was_away_can_become_hosts() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("away"));
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("away"), []).await;
    let objects = [service("web", backend.ip())].into_iter().chain(host(&ca, "stays"));
    let objects: Vec<Object> = objects.collect();
    world.put(objects.clone());
    world.publish().await;
    world.proxy.has_secrets(["stays.example.com"]).await.unwrap();
    world.proxy.stop_server().await.unwrap();
    // The first in the alphabet is the first to be forgotten.
    let unknown = (0..xds::Limits::default().absent + 50).map(|number| format!("unknown{number}.example.com"));
    let asked: Vec<String> = ["a0.example.com".to_owned()].into_iter().chain(unknown).collect();
    let handshakes = asked
        .iter()
        .map(|name| https(name).accept_any())
        .map(|client| tokio::spawn(async move { client.connect().await.is_err() }));
    for handshake in handshakes.collect::<Vec<_>>() {
        assert!(handshake.await.unwrap(), "nobody has this name");
    }
    world.pipeline = Pipeline::new(&settings(Packing::Scoped));
    world.proxy.restart_server().await.unwrap();
    world.put(objects);
    world.publish().await;
    for name in ["a0", "unknown7"] {
        world.put(host(&ca, name));
        world.publish().await;
        world.proxy.has_secrets([&*format!("{name}.example.com")]).await.unwrap();
        assert!(served(&ca, &format!("{name}.example.com")).await, "{name}");
    }
}

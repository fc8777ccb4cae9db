//! On-demand certificates: each host shows its own, unknown server names are refused at once, and clients cannot fill Envoy.

use super::requests::TURN;
use super::world::{World, http_scope, ingress, ingress_with, object, secret, service, settings};
use kinds::{Object, kind};
use pipeline::settings::{Certificates, Packing};
use pipeline::{Pipeline, Settings};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testbed::{Backend, Client, certs::Ca, client::TlsVersion, envoy::Config};

fn on_demand(packing: Packing) -> Settings {
    Settings { certificates: Certificates::OnDemand, ..settings(packing) }
}

fn https(sni: &str, host: &str) -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8443))).host(host).https().sni(sni)
}

/// A host with a certificate of its own.
fn host(ca: &Ca, name: &str, host: &str) -> [Object; 2] {
    [secret(ca, name, host), ingress_with(name, host, "/", "web", &json!({}), &[(host, name)])]
}

/// The serial number of the certificate that is shown.
async fn shown(ca: &Ca, name: &str) -> String {
    let connection = https(name, name).trust(ca).connect().await.unwrap();
    connection.tls().unwrap().peer[0].serial.clone()
}

/// Not only refused, but at once.
async fn refused_at_once(client: &Client, why: &str) {
    let begun = Instant::now();
    assert!(client.get("/").await.is_err(), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{why}: it took {:?}", begun.elapsed());
}

/// Whoever asks for a host while it comes is refused until it is served: never told that it is elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_comes_has_its_certificate_no_earlier_than_its_routes() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("coming"));
    let mut world = World::with(&on_demand(Packing::Scoped), Config::new().name("coming"), []).await;
    world.put([service("web", backend.ip())]);
    world.put(host(&ca, "first", "first.example.com"));
    world.publish().await;
    for number in 0..20 {
        let name = format!("late{number}");
        let fqdn = format!("{name}.example.com");
        let client = https(&fqdn, &fqdn).trust(&ca);
        let asking = tokio::spawn(async move {
            loop {
                if let Ok(answer) = client.get("/").await {
                    return answer.status.as_u16();
                }
            }
        });
        // With a Service of its own: its routes wait until Envoy has the cluster.
        let tls = [(&*fqdn, &*name)];
        world.put([service(&name, backend.ip()), secret(&ca, &name, &fqdn)]);
        world.put([ingress_with(&name, &fqdn, "/", &name, &json!({}), &tls)]);
        world.publish().await;
        let first = tokio::time::timeout(Duration::from_secs(60), asking).await;
        assert_eq!(first.expect("an answer within a minute").unwrap(), 200, "{fqdn}");
    }
}

async fn each_host_shows_its_own(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("on demand"));
    let mut world = World::with(&on_demand(packing), Config::new().name("on-demand"), []).await;
    world.put([service("web", backend.ip())]);
    world.put(host(&ca, "a", "a.example.com"));
    world.put(host(&ca, "b", "b.example.com"));
    world.put(host(&ca, "wild", "*.wild.com"));
    world.put([ingress("below", "below.wild.com", "/", "web")]);
    let (set, _) = world.publish().await;
    for name in ["sds a.example.com", "sds default/wild", "lds ingress_https"] {
        assert!(set.iter().any(|set| set == name), "{name} in {set:?}");
    }
    // The client takes only a certificate that is valid for the name.
    for (sni, host, status) in [
        ("a.example.com", "a.example.com", 200),
        ("A.Example.COM", "A.example.com:8443", 200),
        ("b.example.com", "b.example.com", 200),
        ("x.wild.com", "x.wild.com", 200),
        ("x.wild.com", "y.wild.com", 200),
        ("below.wild.com", "below.wild.com", 200),
        // Another host of the chain is elsewhere all the same, and nothing that a client writes changes that.
        ("a.example.com", "b.example.com", 421),
        ("a.example.com", "B.EXAMPLE.com.", 421),
        ("a.example.com", "x.wild.com", 421),
        ("a.example.com", "unknown.org", 404),
        ("x.wild.com", "a.example.com", 421),
        ("x.wild.com", "unknown.org", 404),
    ] {
        for client in [https(sni, host), https(sni, host).http2(), https(sni, host).http10()] {
            let forged = client.trust(&ca).header("x-sesame-server-name", host.split(':').next().unwrap());
            let answer = forged.get("/").await.unwrap();
            assert_eq!(answer.status.as_u16(), status, "{packing:?} {sni} {host}");
            if status == 200 {
                assert_eq!(answer.echo().header("x-sesame-server-name"), None, "{packing:?} {sni} {host}");
            }
        }
    }
    refused_at_once(&https("unknown.org", "unknown.org"), "nobody's name").await;
    refused_at_once(&https("wild.com", "wild.com"), "the name above a wildcard").await;
    refused_at_once(&https("a.example.com", "a.example.com").no_sni(), "no name").await;

    // A host that comes touches no listener; one that goes is refused.
    let late = host(&ca, "late", "late.example.com");
    world.put(late.clone());
    let (set, gone) = world.publish().await;
    assert!(set.iter().all(|name| !name.starts_with("lds")) && gone.is_empty(), "{set:?} {gone:?}");
    assert_eq!(https("late.example.com", "late.example.com").trust(&ca).get("/").await.unwrap().status, 200);
    for object in &late {
        world.remove(object);
    }
    world.publish().await;
    refused_at_once(&https("late.example.com", "late.example.com"), "a host that went").await;

    // A certificate that is renewed is shown at once, and connections go on.
    let connection = https("a.example.com", "a.example.com").trust(&ca).connect().await.unwrap();
    let old = shown(&ca, "a.example.com").await;
    world.put([secret(&ca, "a", "a.example.com")]);
    world.publish().await;
    assert_ne!(shown(&ca, "a.example.com").await, old);
    assert_eq!(connection.get("/").await.unwrap().status, 200);

    // Hosts with other settings have a chain of their own, and names are mapped to chains then.
    let strict = json!({"projectcontour.io/tls-minimum-protocol-version": "1.3"});
    let [certificate, _] = host(&ca, "strict", "strict.wild.com");
    world.put([
        certificate,
        ingress_with("strict", "strict.wild.com", "/", "web", &strict, &[("strict.wild.com", "strict")]),
    ]);
    world.publish().await;
    assert_eq!(connection.get("/").await.unwrap().status, 200, "the map is changed in place");
    for (sni, host, status) in [
        ("strict.wild.com", "strict.wild.com", 200),
        ("x.wild.com", "x.wild.com", 200),
        ("a.example.com", "a.example.com", 200),
        ("x.wild.com", "strict.wild.com", 421),
        ("strict.wild.com", "x.wild.com", 421),
    ] {
        let answer = https(sni, host).trust(&ca).get("/").await.unwrap();
        assert_eq!(answer.status.as_u16(), status, "{packing:?} {sni} {host}");
    }
    refused_at_once(&https("unknown.org", "unknown.org"), "nobody's name, where names are mapped").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_host_shows_its_own_in_tables() {
    each_host_shows_its_own(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_host_shows_its_own_in_scopes() {
    each_host_shows_its_own(Packing::Scoped).await;
}

/// A host that takes another chain has no more requests on connections of the old one, which has other hosts and stays.
async fn a_raised_version(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("on demand"));
    let mut world = World::with(&on_demand(packing), Config::new().name("raised"), []).await;
    world.put([service("web", backend.ip())]);
    world.put(host(&ca, "a", "a.example.com"));
    world.put(host(&ca, "b", "b.example.com"));
    world.publish().await;
    let tls12 = |host: &str| https(host, host).trust(&ca).tls_versions(TlsVersion::V1_2, TlsVersion::V1_2);
    let mut connections = Vec::new();
    for client in
        [tls12("a.example.com"), tls12("a.example.com").http2(), https("a.example.com", "a.example.com").trust(&ca)]
    {
        connections.push(client.connect().await.unwrap());
    }
    let other = tls12("b.example.com").connect().await.unwrap();
    for connection in connections.iter().chain([&other]) {
        assert_eq!(connection.get("/").await.unwrap().status, 200);
    }
    let strict = json!({"projectcontour.io/tls-minimum-protocol-version": "1.3"});
    world.put([ingress_with("a", "a.example.com", "/", "web", &strict, &[("a.example.com", "a")])]);
    world.publish().await;
    for connection in &connections {
        assert_eq!(connection.get("/").await.unwrap().status, 421, "{packing:?}: it is to connect again");
    }
    assert_eq!(other.get("/").await.unwrap().status, 200, "{packing:?}: the chain of others is as it was");
    refused_at_once(&tls12("a.example.com"), "too old a version").await;
    assert_eq!(https("a.example.com", "a.example.com").trust(&ca).get("/").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raised_version_reaches_open_connections_in_tables() {
    a_raised_version(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raised_version_reaches_open_connections_in_scopes() {
    a_raised_version(Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_names_fill_nothing_and_hosts_outlive_the_controller() {
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("on demand"));
    let mut world = World::with(&on_demand(Packing::Scoped), Config::new().name("on-demand"), []).await;
    world.put([service("web", backend.ip())]);
    world.put(host(&ca, "seen", "seen.example.com"));
    world.put(host(&ca, "unseen", "unseen.example.com"));
    world.publish().await;
    assert_eq!(https("seen.example.com", "seen.example.com").trust(&ca).get("/").await.unwrap().status, 200);
    // A secret is asked for by the server name as the client spells it.
    let most = xds::Limits::default().aliases_per_resource;
    for spelling in 0..most + 100 {
        let name = spelled("seen.example.com", spelling + 1);
        https(&name, &name).trust(&ca).connect().await.unwrap();
    }
    let held = |world: &World| {
        let acks = world.proxy.server().acks(&xds::Fleet::Shared).unwrap();
        let views = acks.clients();
        let types = views.iter().flat_map(|client| &client.types);
        types.filter(|of| of.kind == "sds").map(|of| of.names).sum::<usize>()
    };
    assert!((most..most + 10).contains(&held(&world)), "{} names are held", held(&world));
    // One that made room comes back when it is asked for.
    let first = spelled("seen.example.com", 1);
    assert_eq!(https(&first, &first).trust(&ca).get("/").await.unwrap().status, 200);

    world.proxy.stop_server().await.unwrap();
    for name in ["seen.example.com", "unseen.example.com", &first] {
        assert_eq!(https(name, name).trust(&ca).get("/").await.unwrap().status, 200, "{name}");
    }
}

/// A name with the letters in upper case whose bits are set.
fn spelled(name: &str, bits: usize) -> String {
    let mut letter = 0;
    let spell = |c: char| {
        letter += usize::from(c.is_ascii_alphabetic());
        if c.is_ascii_alphabetic() && bits >> (letter - 1) & 1 == 1 { c.to_ascii_uppercase() } else { c }
    };
    name.chars().map(spell).collect()
}

/// Names that nobody has, as fast as Envoy takes them: its stream goes on, an edit arrives, and little is remembered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_nobody_neither_end_the_stream_nor_hold_up_an_edit() {
    const NAMES: usize = 6000;
    let _turn = TURN.lock().await;
    let (backend, ca) = (Backend::start("web").await.unwrap(), Ca::new("on demand"));
    let mut world = World::with(&on_demand(Packing::Scoped), Config::new().name("nobody"), []).await;
    world.put([service("web", backend.ip())]);
    world.put(host(&ca, "seen", "seen.example.com"));
    world.publish().await;
    let mut events = world.proxy.server().events();
    let asked = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let misdirected: Vec<_> = (0..16)
        .map(|_| {
            let asked = asked.clone();
            tokio::spawn(async move {
                loop {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    if number >= NAMES {
                        return;
                    }
                    let name = format!("n{number}.nobody.org");
                    let refused = https(&name, &name).timeout(Duration::from_secs(30)).connect().await;
                    assert!(refused.is_err_and(|failure| !failure.is_timeout()), "{name} is refused at once");
                }
            })
        })
        .collect();
    for number in 0..5 {
        let (name, fqdn) = (format!("late{number}"), format!("late{number}.example.com"));
        world.put(host(&ca, &name, &fqdn));
        let edit = Instant::now();
        world.publish().await;
        assert_eq!(https(&fqdn, &fqdn).trust(&ca).get("/").await.unwrap().status, 200);
        println!("a host that came after {} names was served in {:?}", asked.load(Ordering::Relaxed), edit.elapsed());
    }
    for misdirected in misdirected {
        misdirected.await.unwrap();
    }
    println!("{:.0} names a second", NAMES as f64 / begun.elapsed().as_secs_f64());
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, xds::Event::Left { .. }), "the stream ended: {event:?}");
    }
    let clients = world.proxy.server().acks(&xds::Fleet::Shared).unwrap().clients();
    let held: usize = clients[0].types.iter().filter(|of| of.kind == "sds").map(|of| of.names).sum();
    assert!(held <= xds::Limits::default().absent + 10, "{held} names are held");
    assert_eq!(https("seen.example.com", "seen.example.com").trust(&ca).get("/").await.unwrap().status, 200);
}

/// How many rows a host that comes costs, and what is published.
fn coming(certificates: Certificates, hosts: usize) -> (u64, Vec<String>) {
    let ca = Ca::new("on demand");
    let mut pipeline = Pipeline::new(&Settings { certificates, ..settings(Packing::Scoped) });
    let put = |pipeline: &mut Pipeline, object: Object| pipeline.put(&object.key(), Some(object));
    put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
    put(&mut pipeline, secret(&ca, "shared", "*.example.com"));
    for number in 0..hosts {
        let (name, host) = (format!("h{number}"), format!("h{number}.example.com"));
        put(&mut pipeline, ingress_with(&name, &host, "/", "web", &json!({}), &[(&host, "shared")]));
    }
    pipeline.settle();
    for object in host(&ca, "own", "own.example.com") {
        put(&mut pipeline, object);
    }
    let output = pipeline.settle();
    assert!(output.xds.removes.is_empty());
    let mut names: Vec<String> = output.xds.upserts.iter().map(|r| format!("{} {}", r.kind, r.name)).collect();
    names.sort_unstable();
    (pipeline.engine().last_batch().computed, names)
}

#[test]
fn a_host_that_comes_is_a_secret_a_holder_and_its_scopes_whatever_their_number() {
    let (few, published) = coming(Certificates::OnDemand, 3);
    assert_eq!((published.len(), &*published[1]), (4, "sds own.example.com"));
    assert!(published[0].starts_with("cds tls_holder/ingress_https/"), "{published:?}");
    assert!(published.contains(&format!("srds {}", http_scope("own.example.com"))), "{published:?}");
    assert!(published[2..].iter().all(|name| name.starts_with("srds ")), "{published:?}");
    let (many, among_many) = coming(Certificates::OnDemand, 1000);
    assert!(many <= few, "{many} rows among 1,000 hosts, {few} among 3");
    assert_eq!((&among_many[1..], among_many.len()), (&published[1..], 4));
    let (_, published) = coming(Certificates::PerChain, 3);
    assert!(published.contains(&"lds ingress_https".to_owned()), "{published:?}");
}

/// A host that opens a chain wakes none of those whose names are not listed.
#[test]
fn a_host_that_opens_a_chain_costs_the_listener_and_no_other_host() {
    let cost = |hosts: usize| {
        let ca = Ca::new("on demand");
        let mut pipeline = Pipeline::new(&on_demand(Packing::Scoped));
        let put = |pipeline: &mut Pipeline, object: Object| pipeline.put(&object.key(), Some(object));
        put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
        for number in 0..hosts {
            host(&ca, &format!("h{number}"), &format!("h{number}.example.com"))
                .into_iter()
                .for_each(|object| put(&mut pipeline, object));
        }
        pipeline.settle();
        let mut costs = Vec::new();
        for (name, field, version) in
            [("lowest", "minimumProtocolVersion", "1.3"), ("highest", "maximumProtocolVersion", "1.2")]
        {
            let fqdn = format!("{name}.example.com");
            put(&mut pipeline, secret(&ca, name, &fqdn));
            put(
                &mut pipeline,
                object(
                    kind::CONTOUR_HTTP_PROXY,
                    &json!({
                        "metadata": { "namespace": "default", "name": name },
                        "spec": {
                            "virtualhost": { "fqdn": fqdn, "tls": { "secretName": name, field: version } },
                            "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
                        },
                    }),
                ),
            );
            let output = pipeline.settle();
            assert!(output.xds.upserts.iter().any(|it| it.kind == xds::Kind::Listener), "{name}");
            costs.push(pipeline.engine().last_batch().computed);
        }
        costs
    };
    let (few, many) = (cost(3), cost(300));
    assert!(few.iter().zip(&many).all(|(few, many)| many <= few), "{many:?} rows among 300 hosts, {few:?} among 3");
}

/// How many rows a renewed certificate costs among hosts that have one each, and what is published.
fn renewed(hosts: usize) -> (u64, Vec<String>) {
    let ca = Ca::new("on demand");
    let mut pipeline = Pipeline::new(&settings(Packing::Scoped));
    let put = |pipeline: &mut Pipeline, object: Object| pipeline.put(&object.key(), Some(object));
    put(&mut pipeline, service("web", Ipv4Addr::LOCALHOST));
    for number in 0..hosts {
        let name = format!("h{number}");
        for object in host(&ca, &name, &format!("{name}.example.com")) {
            put(&mut pipeline, object);
        }
    }
    pipeline.settle();
    put(&mut pipeline, secret(&ca, "h1", "h1.example.com"));
    let output = pipeline.settle();
    assert!(output.xds.removes.is_empty());
    let names = output.xds.upserts.iter().map(|r| format!("{} {}", r.kind, r.name)).collect();
    (pipeline.engine().last_batch().computed, names)
}

#[test]
fn a_renewed_certificate_is_one_secret_whatever_the_number_of_hosts() {
    let (few, published) = renewed(3);
    assert_eq!(published, ["sds h1.example.com"]);
    let (many, published) = renewed(300);
    assert_eq!(published, ["sds h1.example.com"]);
    assert!(many <= few && few <= 12, "{many} rows among 300 hosts, {few} among 3");
}

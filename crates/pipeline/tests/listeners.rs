//! Fleets, ports and listeners as rows: who has a port, what belongs to which fleet, and what a change of settings reaches.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "packing/claims.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod claims;
#[path = "packing/world.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod world;

use claims::{Claims, cluster, host};
use model::{
    FleetId, ListenerId, ObjectRef, PortId,
    PortProtocol::{self, Http, Tcp, Tls, Udp},
};
use pipeline::{
    FleetSettings, Output, Pipeline, Settings,
    hosts::{Chains, Placements},
    ports::{ActiveListeners, Ports},
    settings::{Bind, Certificates, Packing},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    time::Duration,
};
use testbed::certs::Ca;
use world::{ingress, ingress_with, secret, service};

fn named(number: usize) -> FleetId {
    FleetId::named("team", &format!("gateway-{number}"))
}

fn pipeline() -> Pipeline {
    pipeline_with(Certificates::default())
}

fn pipeline_with(certificates: Certificates) -> Pipeline {
    let mut pipeline = Pipeline::new(&Settings { certificates, ..world::settings(Packing::Scoped) });
    for name in ["web", "other"] {
        let object = service(name, Ipv4Addr::LOCALHOST);
        pipeline.put(&object.key(), Some(object));
    }
    pipeline
}

/// The names of what a fleet is told, and of what it loses.
fn told(output: &mut Output, fleet: &FleetId) -> (BTreeSet<String>, BTreeSet<String>) {
    let changes = output.take_fleet(fleet).xds;
    let set = changes.upserts.iter().map(|resource| format!("{} {}", resource.kind, resource.name));
    let gone = changes.removes.iter().map(|(kind, name)| format!("{kind} {name}"));
    (set.collect(), gone.collect())
}

fn verdicts(output: &Output, name: &str) -> Vec<String> {
    let object = ObjectRef::new(kinds::kind::CONFIG_MAP, "default", name);
    let found = output.verdicts.iter().find(|(of, _)| *of == object).and_then(|(_, list)| list.clone());
    found.iter().flat_map(|list| list.iter()).map(|verdict| format!("{} {}", verdict.code, verdict.message)).collect()
}

/// Who has a port does not depend on who came first, and the others are told.
#[test]
fn a_port_belongs_to_the_strongest_claim_and_to_those_that_fit_beside_it() {
    let one = || Claims::new("one", FleetId::Shared).created(1).listener("one", 9000, Http, "a.example.com");
    let claims = [
        (one(), None),
        (Claims::new("beside", FleetId::Shared).created(2).listener("beside", 9000, Http, "*.example.com"), None),
        (
            Claims::new("tls", FleetId::Shared).created(3).listener("tls", 9000, Tls, "*"),
            Some("SES7007 port 9000 is used for HTTP by listener one"),
        ),
        (
            Claims::new("again", FleetId::Shared).created(4).listener("again", 9000, Http, "a.example.com"),
            Some("SES7007 listener one has port 9000 and host a.example.com"),
        ),
        (Claims::new("udp", FleetId::Shared).created(5).listener("udp", 9000, Udp, "*"), None),
        (Claims::new("elsewhere", named(1)).created(6).listener("one", 9000, Tcp, "*"), None),
        (
            Claims::new("stats", FleetId::Shared).listener("stats", 8002, Http, "*"),
            Some("SES7007 port 8002 is used for Envoy's own pages"),
        ),
        (
            Claims::new("settings", FleetId::Shared).listener("clear", 8080, Tcp, "*"),
            Some("SES7007 port 8080 is used for HTTP by listener ingress_http"),
        ),
        (
            Claims::new("name", FleetId::Shared).created(7).listener("one", 9001, Http, "*"),
            Some("SES7007 listener one: that of ConfigMap default/one spec.listeners.one is in effect"),
        ),
    ];
    for reversed in [false, true] {
        let mut pipeline = pipeline();
        let mut all: Vec<_> = claims.iter().collect();
        if reversed {
            all.reverse();
        }
        for (claims, _) in &all {
            claims.clone().put(&mut pipeline);
            pipeline.settle();
        }
        // Everything is told again by a change that reaches all of it.
        for (claims, _) in &all {
            claims.clone().created(99).put(&mut pipeline);
        }
        pipeline.settle();
        for (claims, _) in &all {
            claims.clone().put(&mut pipeline);
        }
        let port = PortId::new(FleetId::Shared, "tcp-9000");
        pipeline.settle();
        let row = pipeline.engine().get::<Ports>(&port).unwrap();
        assert_eq!((row.protocol, row.listeners.len()), (Http, 2), "{row:?}");
        let verdicts: Vec<_> = ["one", "beside", "tls", "again", "udp", "elsewhere", "stats", "settings", "name"]
            .iter()
            .map(|name| {
                let object = ObjectRef::new(kinds::kind::CONFIG_MAP, "default", *name);
                let list = pipeline.engine().get::<pipeline::verdicts::Verdicts>(&object).unwrap();
                list.iter().map(|verdict| format!("{} {}", verdict.code, verdict.message)).next()
            })
            .collect();
        let expected: Vec<_> = claims.iter().map(|(_, why)| why.map(ToOwned::to_owned)).collect();
        assert_eq!(verdicts, expected);
        pipeline.self_check().unwrap();
        // The port is free again when its owner goes, and the next one has it.
        one().remove(&mut pipeline);
        pipeline.settle();
        let active = |name: &str| {
            pipeline.engine().get::<ActiveListeners>(&ListenerId::new(FleetId::Shared, name)).map(|row| row.protocol)
        };
        assert_eq!(active("again"), Some(Http));
        assert_eq!(active("tls"), None::<PortProtocol>);
        pipeline.self_check().unwrap();
    }
}

/// A request belongs to the narrowest listener of its port, whether that has routes for it or not.
#[test]
fn hosts_belong_to_the_narrowest_listener() {
    let mut pipeline = pipeline();
    Claims::new("gateway", FleetId::Shared)
        .listener("wide", 9000, Http, "*")
        .listener("narrow", 9000, Http, "*.example.com")
        .route("wide", "*", "web")
        .route("wide", "a.example.com", "web")
        .route("wide", "a.example.org", "web")
        .route("narrow", "b.example.com", "web")
        .route("narrow", "b.example.org", "web")
        .put(&mut pipeline);
    pipeline.settle();
    let placed = |listener: &str, of: &str| {
        let key = (ListenerId::new(FleetId::Shared, listener), host(of));
        pipeline.engine().get::<Placements>(&key).is_some()
    };
    assert!(placed("wide", "*") && placed("wide", "a.example.org") && placed("narrow", "b.example.com"));
    assert!(!placed("wide", "a.example.com"), "it is the narrow one's");
    assert!(!placed("narrow", "b.example.org"), "it does not take it");
}

/// Clusters, endpoints and certificates are made once, and belong to the fleets that refer to them.
#[test]
fn what_fleets_share_is_made_once_and_belongs_to_its_users() {
    let ca = Ca::new("fleets");
    // A certificate on demand would have another name in the shared fleet.
    let mut pipeline = pipeline_with(Certificates::PerChain);
    let certificate = secret(&ca, "cert", "a.example.com");
    pipeline.put(&certificate.key(), Some(certificate));
    pipeline.settle();
    let gateway = |fleet: &FleetId, service: &str| {
        let name = format!("{fleet}").replace('/', "-");
        Claims::new(&name, fleet.clone())
            .listener("https", 443, Tls, "a.example.com")
            .tls("https", "a.example.com", &["cert"])
            .route("https", "a.example.com", service)
    };
    let (one, two) = (named(1), named(2));
    gateway(&one, "web").put(&mut pipeline);
    let mut output = pipeline.settle();
    let shared = ["cds default/web/80", "eds default/web/80", "sds default/cert"].map(ToOwned::to_owned);
    let (set, _) = told(&mut output, &one);
    assert!(shared.iter().all(|name| set.contains(name)) && set.contains("lds tcp-443"), "{set:?}");
    let (set, _) = told(&mut output, &FleetId::Shared);
    assert!(set.is_empty(), "the shared fleet has nothing to do with it: {set:?}");

    let computed = pipeline.engine().counters_of::<pipeline::resources::ClusterResources>().computed;
    gateway(&two, "web").put(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, _) = told(&mut output, &two);
    assert!(shared.iter().all(|name| set.contains(name)), "{set:?}");
    assert_eq!(told(&mut output, &one), Default::default(), "one fleet's edit is not told to another");
    let now = pipeline.engine().counters_of::<pipeline::resources::ClusterResources>().computed;
    assert_eq!(now, computed, "the cluster is the same");

    // The shared fleet joins, with the same certificate; and leaves.
    let tls = [("a.example.com", "cert")];
    let object = ingress_with("shared", "a.example.com", "/", "web", &serde_json::json!({}), &tls);
    pipeline.put(&object.key(), Some(object.clone()));
    let mut output = pipeline.settle();
    let (set, _) = told(&mut output, &FleetId::Shared);
    assert!(shared.iter().all(|name| set.contains(name)), "{set:?}");
    assert!(output.fleets.is_empty());
    pipeline.put(&object.key(), None);
    let mut output = pipeline.settle();
    let (_, gone) = told(&mut output, &FleetId::Shared);
    assert!(shared.iter().all(|name| gone.contains(name)), "{gone:?}");
    assert!(output.fleets.is_empty());

    // Another backend: the cluster leaves one fleet and stays in the other. A fleet that goes takes only its own.
    gateway(&one, "other").put(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, gone) = told(&mut output, &one);
    assert!(set.contains("cds default/other/80") && gone.contains("cds default/web/80"), "{set:?} {gone:?}");
    assert!(output.fleets.is_empty());
    gateway(&one, "other").remove(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, gone) = told(&mut output, &one);
    assert!(set.is_empty() && gone.contains("lds tcp-443") && gone.contains("sds default/cert"), "{set:?} {gone:?}");
    assert!(output.fleets.is_empty(), "{:?}", output.fleets.keys());
    assert!(pipeline.engine().get::<pipeline::services::Clusters>(&cluster("web")).is_some());
    pipeline.self_check().unwrap();
}

/// The on-demand chain takes unlisted names unless somebody else does: a host for every name, here. Its names are listed then.
#[test]
fn a_host_for_every_name_has_the_names_that_nobody_lists() {
    let ca = Ca::new("every name");
    let mut pipeline = pipeline();
    let tls = [("a.example.com", "own")];
    let objects = [
        secret(&ca, "own", "a.example.com"),
        secret(&ca, "every", "*.example.com"),
        ingress_with("own", "a.example.com", "/", "web", &serde_json::json!({}), &tls),
    ];
    objects.into_iter().for_each(|object| pipeline.put(&object.key(), Some(object)));
    let on_demand = |pipeline: &Pipeline| {
        let mut chains = pipeline.engine().rows::<Chains>().map(|(_, chain)| chain);
        let chain = chains.find(|chain| chain.termination.is_on_demand()).unwrap();
        (chain.takes_unlisted, chain.hosts.clone())
    };
    pipeline.settle();
    assert_eq!(on_demand(&pipeline), (true, vec![]));
    let every = Claims::new("every", FleetId::Shared).tls("ingress_https", "*", &["every"]);
    every.clone().put(&mut pipeline);
    pipeline.settle();
    assert_eq!(on_demand(&pipeline), (false, vec![host("a.example.com")]));
    pipeline.self_check().unwrap();
    every.remove(&mut pipeline);
    pipeline.settle();
    assert_eq!(on_demand(&pipeline), (true, vec![]));
}

/// Each fleet whose settings have a TLS listener has its own holders.
#[test]
fn holders_belong_to_the_fleet_of_their_listener() {
    let ca = Ca::new("holders");
    let mut pipeline = pipeline();
    let object = secret(&ca, "own", "a.example.com");
    pipeline.put(&object.key(), Some(object));
    let fleet = named(1);
    pipeline.set_fleet(&fleet, Some(FleetSettings { https: Some(Bind::any(443)), ..FleetSettings::default() }));
    let claims = Claims::new("own", fleet.clone()).tls("ingress_https", "a.example.com", &["own"]);
    claims.route("ingress_https", "a.example.com", "web").put(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, _) = told(&mut output, &fleet);
    assert!(set.contains("cds tls_holder/ingress_https/0-0") && set.contains("sds a.example.com"), "{set:?}");
    let (shared, _) = told(&mut output, &FleetId::Shared);
    assert!(!shared.iter().any(|name| name.contains("tls_holder") || name.starts_with("sds")), "{shared:?}");
}

/// 500 fleets of 20 hosts: an edit computes a handful of rows and reaches its own fleet.
#[test]
fn one_of_many_fleets_is_edited_alone() {
    const FLEETS: usize = 500;
    const HOSTS: usize = 20;
    let mut pipeline = pipeline();
    let gateway = |fleet: usize| Claims::new(&format!("gateway-{fleet}"), named(fleet)).listener("http", 80, Http, "*");
    let route = |fleet: usize, number: usize, service: &str| {
        let host = format!("h{number}.example.com");
        Claims::new(&format!("route-{fleet}-{number}"), named(fleet)).route("http", &host, service)
    };
    for fleet in 0..FLEETS {
        gateway(fleet).put(&mut pipeline);
        (0..HOSTS).for_each(|number| route(fleet, number, "web").put(&mut pipeline));
    }
    let output = pipeline.settle();
    assert_eq!(output.fleets.len(), FLEETS);
    assert!(output.fleets.values().all(|fleet| fleet.xds.upserts.len() >= HOSTS + 3));
    route(7, 3, "other").put(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, _) = told(&mut output, &named(7));
    assert_eq!(set.len(), 3, "a scope, a cluster and its endpoints: {set:?}");
    assert!(output.fleets.is_empty() && output.xds.upserts.is_empty());
    let computed = pipeline.engine().last_batch().computed;
    assert!(computed <= 24, "{computed} rows");
    // A fleet that goes costs its own rows.
    gateway(7).remove(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, gone) = told(&mut output, &named(7));
    assert!(set.is_empty() && gone.len() > HOSTS, "{set:?} {gone:?}");
    assert!(output.fleets.is_empty());
    let computed = pipeline.engine().last_batch().computed;
    assert!(computed <= 12 * HOSTS as u64, "{computed} rows");
}

/// Names are the same in every fleet, and what one fleet's proxies refuse is none of the others'.
#[test]
fn a_refusal_is_its_fleets_own() {
    let mut pipeline = pipeline();
    for number in [1, 2] {
        Claims::new(&format!("gateway-{number}"), named(number))
            .listener("http", 80, Http, "*")
            .route("http", "a.example.com", "web")
            .put(&mut pipeline);
    }
    let mut output = pipeline.settle();
    let published: BTreeMap<_, _> = [named(1), named(2)].map(|fleet| (fleet.clone(), output.take_fleet(&fleet))).into();
    let listener = |fleet: &FleetId| {
        let resources = &published[fleet].xds.upserts;
        resources.iter().find(|resource| resource.kind == xds::Kind::Listener).unwrap().clone()
    };
    let (one, two) = (listener(&named(1)), listener(&named(2)));
    assert_eq!((&one.name, &one.body), (&two.name, &two.body));
    let content = xds::content_version(&one.body);
    let outcome = xds::Outcome::Refused { text: "cannot bind".into(), held: None };
    let outcome = xds::ResourceOutcome { kind: one.kind, name: one.name.clone(), version: content, content, outcome };
    pipeline.on_outcome_in(&named(1), &outcome);
    let mut output = pipeline.settle();
    let refused = output.take_fleet(&named(1));
    assert_eq!(refused.xds.upserts.len(), 1);
    assert_eq!(refused.xds.upserts[0].role, xds::Role::Withheld);
    let withheld = refused.withheld.unwrap();
    assert_eq!(withheld.len(), 1);
    assert!(output.fleets.is_empty() && output.withheld.is_none());
    // Another replica hears of it, and does the same in that fleet only.
    let mut other = self::pipeline();
    for number in [1, 2] {
        Claims::new(&format!("gateway-{number}"), named(number))
            .listener("http", 80, Http, "*")
            .route("http", "a.example.com", "web")
            .put(&mut other);
    }
    other.withhold_in(&named(1), withheld);
    let mut output = other.settle();
    let roles = |output: &mut Output, fleet| {
        let changes = output.take_fleet(&fleet).xds;
        changes.upserts.into_iter().find(|resource| resource.kind == xds::Kind::Listener).unwrap().role
    };
    assert_eq!(roles(&mut output, named(1)), xds::Role::Withheld);
    assert_eq!(roles(&mut output, named(2)), xds::Role::Own);
}

/// A change of settings recomputes what reads it, and the state is that of a build with the new ones.
#[test]
fn settings_change_while_it_runs_and_reach_their_readers() {
    let mut settings = world::settings(Packing::Scoped);
    let mut pipeline = pipeline();
    for number in 0..10 {
        let object = ingress(&format!("i{number}"), &format!("h{number}.example.com"), "/", "web");
        pipeline.put(&object.key(), Some(object));
    }
    pipeline.settle();
    let mut change = |settings: &Settings| {
        let computed = |pipeline: &Pipeline| -> u64 { pipeline.engine().counters().iter().map(|of| of.computed).sum() };
        let before = computed(&pipeline);
        pipeline.set_settings(settings);
        let mut output = pipeline.settle();
        let (set, gone) = told(&mut output, &FleetId::Shared);
        let rows = computed(&pipeline) - before;
        pipeline.self_check().unwrap();
        (set.into_iter().collect::<Vec<_>>(), gone.len(), rows)
    };
    // Each part of the settings is a row that is compared.
    const PARTS: u64 = 6;
    assert_eq!(change(&settings), (Vec::new(), 0, PARTS), "nothing has changed");
    settings.http_settings.merge_slashes = false;
    let (set, gone, computed) = change(&settings);
    assert_eq!((set, gone), (vec!["lds ingress_http".to_owned()], 0));
    assert!(computed <= PARTS + 10, "{computed} rows: hosts are not looked at");
    settings.http = Bind::any(8081);
    let (set, ..) = change(&settings);
    assert_eq!(set, ["lds ingress_http"]);
    settings.cluster.connect_timeout = Duration::from_secs(7);
    let (set, _, computed) = change(&settings);
    assert_eq!(set, ["cds default/web/80"]);
    assert!(computed <= PARTS + 3, "{computed} rows");
    settings.admin_port = 0;
    let (set, gone, _) = change(&settings);
    assert_eq!((set.len(), gone), (0, 1), "the admin listener goes");
    settings.ingress.class_names = vec!["other".into()];
    let (set, gone, _) = change(&settings);
    assert!(set.is_empty() && gone > 10, "no Ingress is ours any more: {set:?} {gone}");
}

/// A fleet has settings of its own.
#[test]
fn fleets_differ_in_their_settings() {
    let mut pipeline = pipeline();
    let fleet = named(1);
    let own = FleetSettings { http: Some(Bind::any(80)), stats: Some(Bind::any(8002)), ..FleetSettings::default() };
    pipeline.settle();
    pipeline.set_fleet(&fleet, Some(own));
    let mut output = pipeline.settle();
    let (set, _) = told(&mut output, &fleet);
    let listeners: Vec<_> = set.iter().filter(|name| name.starts_with("lds")).collect();
    assert_eq!(listeners, ["lds ingress_http", "lds stats-health"]);
    assert!(output.xds.upserts.is_empty());
    pipeline.set_fleet(&fleet, None);
    let (set, gone) = told(&mut pipeline.settle(), &fleet);
    assert!(set.is_empty() && gone.contains("lds ingress_http"), "{gone:?}");
    pipeline.self_check().unwrap();
}

/// The oldest object has a TCP listener, and the others are told.
#[test]
fn one_object_has_a_stream() {
    let mut pipeline = pipeline();
    Claims::new("gateway", FleetId::Shared).listener("tcp", 9000, Tcp, "*").put(&mut pipeline);
    Claims::new("young", FleetId::Shared).created(2).stream("tcp", &[("other", 1)]).put(&mut pipeline);
    Claims::new("old", FleetId::Shared).created(1).stream("tcp", &[("web", 1)]).put(&mut pipeline);
    let output = pipeline.settle();
    assert_eq!(verdicts(&output, "old"), [""; 0]);
    assert_eq!(verdicts(&output, "young"), ["SES7008 listener tcp: ConfigMap default/old spec.backends is served"]);
}

/// Endpoints of a UDP listener are as urgent as any: they do not wait for the end of a long batch. Where the listener leads is
/// told once, under one name, whatever the backends are.
#[test]
fn endpoints_of_a_udp_listener_come_out_in_the_middle_of_a_batch() {
    const ENDPOINTS: &str = "eds udp:datagrams";
    let mut pipeline = pipeline();
    let claims = Claims::new("udp", FleetId::Shared).listener("datagrams", 5300, Udp, "*");
    claims.clone().stream("datagrams", &[("web", 1)]).put(&mut pipeline);
    let (set, _) = told(&mut pipeline.settle(), &FleetId::Shared);
    assert!(set.contains(ENDPOINTS), "{set:?}");
    let moved = service("web", Ipv4Addr::new(198, 18, 0, 1));
    pipeline.put(&moved.key(), Some(moved));
    for number in 0..5_000 {
        let object = ingress(&format!("i{number}"), &format!("h{number}.example.com"), "/", "web");
        pipeline.put(&object.key(), Some(object));
    }
    let mut output = Output::default();
    assert_eq!(pipeline.step(&mut output), engine::Progress::More, "the batch is longer than a slice");
    let (set, gone) = told(&mut output, &FleetId::Shared);
    assert!(set.contains(ENDPOINTS) && gone.is_empty(), "{gone:?}");
    pipeline.settle();
    // Another backend is another row, but no other resource.
    claims.clone().stream("datagrams", &[("other", 1)]).put(&mut pipeline);
    let (set, gone) = told(&mut pipeline.settle(), &FleetId::Shared);
    assert!(set.contains(ENDPOINTS) && !gone.contains(ENDPOINTS), "{set:?} {gone:?}");
    claims.remove(&mut pipeline);
    let (set, gone) = told(&mut pipeline.settle(), &FleetId::Shared);
    assert!(!set.contains(ENDPOINTS) && gone.contains(ENDPOINTS), "{set:?} {gone:?}");
}

//! What belongs to which fleet, and what a change of settings reaches.

use super::*;
use model::{
    cluster::{CaBundle, ClusterOverrides, SubjectAltName, TrustedCa, Validation},
    route::Action,
};
use pipeline::{
    certificates,
    membership::SharedCas,
    resources::{ClusterResources, EndpointResources, SecretResources},
};

/// How often clusters, endpoint sets and certificates were computed, and certificates checked.
fn computed_of_shared(pipeline: &Pipeline) -> [u64; 4] {
    let engine = pipeline.engine();
    [
        engine.counters_of::<ClusterResources>().computed,
        engine.counters_of::<EndpointResources>().computed,
        engine.counters_of::<SecretResources>().computed,
        engine.counters_of::<certificates::Certificates>().computed,
    ]
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
    let (set, _) = reported(&mut output, &one);
    assert!(shared.iter().all(|name| set.contains(name)) && set.contains("lds tcp-443"), "{set:?}");
    let (set, _) = reported(&mut output, &FleetId::Shared);
    assert!(set.is_empty(), "the shared fleet has nothing to do with it: {set:?}");

    let computed = computed_of_shared(&pipeline);
    gateway(&two, "web").put(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, _) = reported(&mut output, &two);
    assert!(shared.iter().all(|name| set.contains(name)), "{set:?}");
    assert_eq!(reported(&mut output, &one), Default::default(), "one fleet's edit is not told to another");
    assert_eq!(computed_of_shared(&pipeline), computed, "a fleet joins: all of it is there");

    // The shared fleet joins, with the same certificate; and leaves.
    let tls = [("a.example.com", "cert")];
    let object = ingress_with("shared", "a.example.com", "/", "web", &serde_json::json!({}), &tls);
    pipeline.put(&object.key(), Some(object.clone()));
    let mut output = pipeline.settle();
    let (set, _) = reported(&mut output, &FleetId::Shared);
    assert!(shared.iter().all(|name| set.contains(name)), "{set:?}");
    assert!(output.fleets.is_empty());
    assert_eq!(computed_of_shared(&pipeline), computed, "the shared fleet joins: all of it is there");
    pipeline.put(&object.key(), None);
    let mut output = pipeline.settle();
    let (_, gone) = reported(&mut output, &FleetId::Shared);
    assert!(shared.iter().all(|name| gone.contains(name)), "{gone:?}");
    assert!(output.fleets.is_empty());

    // Another backend: the cluster leaves one fleet and stays in the other. A fleet that goes takes only its own.
    gateway(&one, "other").put(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, gone) = reported(&mut output, &one);
    assert!(set.contains("cds default/other/80") && gone.contains("cds default/web/80"), "{set:?} {gone:?}");
    assert!(output.fleets.is_empty());
    gateway(&one, "other").remove(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, gone) = reported(&mut output, &one);
    assert!(set.is_empty() && gone.contains("lds tcp-443") && gone.contains("sds default/cert"), "{set:?} {gone:?}");
    assert!(output.fleets.is_empty(), "{:?}", output.fleets.keys());
    assert!(pipeline.engine().get::<ClusterResources>(&cluster("web")).is_some());
    pipeline.self_check().unwrap();
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
    let (set, _) = reported(&mut output, &fleet);
    assert!(set.contains("cds tls_holder/ingress_https/0-0") && set.contains("sds a.example.com"), "{set:?}");
    let (shared, _) = reported(&mut output, &FleetId::Shared);
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
    let (set, _) = reported(&mut output, &named(7));
    assert_eq!(set.len(), 3, "a scope, a cluster and its endpoints: {set:?}");
    assert!(output.fleets.is_empty() && output.xds.upserts.is_empty());
    let computed = pipeline.engine().last_batch().computed;
    assert!(computed <= 24, "{computed} rows");
    // A fleet that goes costs its own rows.
    gateway(7).remove(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, gone) = reported(&mut output, &named(7));
    assert!(set.is_empty() && gone.len() > HOSTS, "{set:?} {gone:?}");
    assert!(output.fleets.is_empty());
    let computed = pipeline.engine().last_batch().computed;
    assert!(computed <= 12 * HOSTS as u64, "{computed} rows");
    // So does one that comes back, and one that is new.
    gateway(7).put(&mut pipeline);
    let mut output = pipeline.settle();
    let (set, gone) = reported(&mut output, &named(7));
    assert!(set.len() > HOSTS && gone.is_empty(), "{set:?} {gone:?}");
    assert!(output.fleets.is_empty() && output.xds.upserts.is_empty());
    let computed = pipeline.engine().last_batch().computed;
    assert!(computed <= 12 * HOSTS as u64, "{computed} rows");
    gateway(FLEETS).put(&mut pipeline);
    (0..HOSTS).for_each(|number| route(FLEETS, number, "web").put(&mut pipeline));
    let mut output = pipeline.settle();
    let (set, gone) = reported(&mut output, &named(FLEETS));
    assert!(set.len() > HOSTS && gone.is_empty(), "{set:?} {gone:?}");
    assert!(output.fleets.is_empty() && output.xds.upserts.is_empty());
    let computed = pipeline.engine().last_batch().computed;
    assert!(computed <= 16 * HOSTS as u64, "{computed} rows");
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
    assert_eq!(one.name, two.name);
    let content = xds::content_version(&one.body);
    let outcome = xds::Outcome::Rejected { text: "cannot bind".into(), held: None };
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

/// A cluster, its endpoints, a CA or a certificate is made once for all fleets. One Gateway's proxies, which may be old or broken, do
/// not take it from those of others.
#[test]
fn what_one_fleet_refuses_others_keep() {
    let ca = Ca::new("fleets");
    let mut pipeline = pipeline_with(Certificates::PerChain);
    let certificate = secret(&ca, "cert", "a.example.com");
    pipeline.put(&certificate.key(), Some(certificate));
    for number in [1, 2] {
        Claims::new(&format!("gateway-{number}"), named(number))
            .listener("https", 443, Tls, "a.example.com")
            .tls("https", "a.example.com", &["cert"])
            .route("https", "a.example.com", "web")
            .put(&mut pipeline);
    }
    let object =
        ingress_with("shared", "a.example.com", "/", "web", &serde_json::json!({}), &[("a.example.com", "cert")]);
    pipeline.put(&object.key(), Some(object.clone()));
    let mut output = pipeline.settle();
    let published = output.take_fleet(&named(1)).xds.upserts;
    let shared = [
        (xds::Kind::Cluster, "default/web/80"),
        (xds::Kind::Endpoints, "default/web/80"),
        (xds::Kind::Secret, "default/cert"),
    ];
    let roles = |output: &mut Output, fleet: &FleetId| {
        let changes = output.take_fleet(fleet).xds.upserts.into_iter();
        changes
            .map(|resource| (format!("{} {}", resource.kind, resource.name), resource.role))
            .collect::<BTreeMap<_, _>>()
    };
    for (kind, name) in shared {
        let resource = published.iter().find(|found| found.kind == kind && &*found.name == name).unwrap();
        let content = xds::content_version(&resource.body);
        let outcome = xds::Outcome::Rejected { text: "too old for this".into(), held: None };
        let outcome = xds::ResourceOutcome { kind, name: name.into(), version: content, content, outcome };
        pipeline.on_outcome_in(&named(1), &outcome);
        let mut output = pipeline.settle();
        let told = output.fleets[&named(1)].withheld.clone().unwrap();
        assert!(told.iter().any(|held| held.target == xds::QuarantineTarget::resource(kind, name.into())), "{told:?}");
        assert!(output.withheld.is_none(), "replicas are told of the fleet that refused it");
        let text = format!("SES8001 {kind} {name} in fleet {}: too old for this", named(1));
        if kind != xds::Kind::Endpoints {
            assert!(verdicts(&output, "gateway-1").contains(&text), "{:?}", verdicts(&output, "gateway-1"));
        }
        for object in ["gateway-2", "shared"] {
            let told = output.verdicts.iter().filter(|(of, _)| of.name.as_ref() == object);
            assert_eq!(told.count(), 0, "{object} is served");
        }
        let name = format!("{kind} {name}");
        assert_eq!(roles(&mut output, &named(1))[&name], xds::Role::Withheld);
        for fleet in [named(2), FleetId::Shared] {
            assert!(roles(&mut output, &fleet).values().all(|role| *role == xds::Role::Own), "{fleet}");
        }
        pipeline.self_check().unwrap();
    }

    // A fleet that comes to use it gets it, and one that no longer does withholds nothing.
    Claims::new("gateway-3", named(3))
        .listener("http", 80, Http, "*")
        .route("http", "a.example.com", "web")
        .put(&mut pipeline);
    let mut output = pipeline.settle();
    assert_eq!(roles(&mut output, &named(3))["cds default/web/80"], xds::Role::Own);
    Claims::new("gateway-1", named(1))
        .listener("http", 80, Http, "*")
        .route("http", "a.example.com", "other")
        .put(&mut pipeline);
    let output = pipeline.settle();
    assert_eq!(output.fleets[&named(1)].withheld.as_deref(), Some(&[][..]));
    assert_eq!(verdicts(&output, "gateway-1"), Vec::<String>::new());
    pipeline.self_check().unwrap();
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
        let computed = |pipeline: &Pipeline| -> BTreeMap<&str, u64> {
            pipeline.engine().counters().iter().map(|of| (of.name, of.computed)).collect()
        };
        let before = computed(&pipeline);
        pipeline.set_settings(settings);
        let mut output = pipeline.settle();
        let (set, gone) = reported(&mut output, &FleetId::Shared);
        let mut rows = computed(&pipeline);
        rows.iter_mut().for_each(|(name, count)| *count -= before[name]);
        rows.retain(|_, count| *count > 0);
        pipeline.self_check().unwrap();
        (set.into_iter().collect::<Vec<_>>(), gone.len(), rows)
    };
    // Each part of the settings is a row that is compared.
    let parts: BTreeMap<&str, u64> = [
        "fleets",
        "cluster settings",
        "resolve settings",
        "ingress settings",
        "httpproxy settings",
        "gateway settings",
        "emissary settings",
        "authorization settings",
    ]
    .map(|name| (name, 1))
    .into();
    assert_eq!(change(&settings), (Vec::new(), 0, parts.clone()), "nothing has changed");
    settings.http_settings.merge_slashes = false;
    let (set, gone, mut computed) = change(&settings);
    assert_eq!((set, gone), (vec!["lds ingress_http".to_owned()], 0));
    computed.retain(|name, _| !parts.contains_key(name));
    // None of a host.
    let readers = [
        ("Module in effect", 1),
        ("TCP mappings of Emissary", 1),
        ("authorization services of Emissary", 1),
        ("defaults of mappings of Emissary", 1),
        ("extensions of fleets", 1),
        ("listener resources", 3),
        ("listeners", 2),
        ("listeners of Emissary", 1),
        ("log services of Emissary", 1),
        ("port numbers", 2),
        ("port settings", 2),
        ("rate limit services of Emissary", 1),
        ("runtime resources", 1),
        ("slot resources", 1),
        ("tracers", 1),
        ("tracing services of Emissary", 1),
    ];
    assert_eq!(computed, readers.into());
    settings.http = Bind::any(8081);
    let (set, ..) = change(&settings);
    assert_eq!(set, ["lds ingress_http"]);
    settings.cluster.connect_timeout = Duration::from_secs(7);
    let (set, _, mut computed) = change(&settings);
    assert_eq!(set, ["cds default/web/80"]);
    computed.retain(|name, _| !parts.contains_key(name));
    assert_eq!(computed, [("cluster resources", 1)].into());
    settings.admin_port = 9001;
    let (set, ..) = change(&settings);
    assert_eq!(set, ["lds envoy-admin"]);
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
    let (set, _) = reported(&mut output, &fleet);
    let listeners: Vec<_> = set.iter().filter(|name| name.starts_with("lds")).collect();
    assert_eq!(listeners, ["lds ingress_http", "lds stats-health"]);
    assert!(output.xds.upserts.is_empty());
    pipeline.set_fleet(&fleet, None);
    let (set, gone) = reported(&mut pipeline.settle(), &fleet);
    assert!(set.is_empty() && gone.contains("lds ingress_http"), "{gone:?}");
    pipeline.self_check().unwrap();
}

/// Whether the shared fleet uses a CA is one question, however many clusters of another fleet trust it.
#[test]
fn who_uses_a_ca_costs_nothing_for_the_clusters_that_trust_it() {
    let ca = CaBundle::from(ObjectRef::new(kinds::kind::SECRET, "default", "ca"));
    let trusting = |claims: Claims, listener: &str, number: usize| {
        let names = vec![SubjectAltName::Dns("web".into())];
        let validation = Some(Validation { ca: TrustedCa::Bundle(ca.clone()), names });
        let server_name = Some(format!("n{number}").as_str().into());
        let overrides = ClusterOverrides { server_name, validation, ..ClusterOverrides::default() };
        claims.routed(listener, &format!("h{number}.example.com"), "web", |route| {
            let Action::Forward(forward) = &mut route.action else { panic!("it forwards") };
            forward.clusters[0].cluster.overrides = overrides.shared();
        })
    };
    let gateway = Claims::new("gateway", named(1)).listener("web", 80, Http, "*");
    let gateway = (0..50).fold(gateway, |claims, number| trusting(claims, "web", number));
    let shared = trusting(Claims::new("shared", FleetId::Shared), "ingress_http", 49);
    let mut pipeline = pipeline();
    gateway.put(&mut pipeline);
    pipeline.settle();
    let is_shared = |pipeline: &Pipeline| {
        assert_eq!(pipeline.engine().reads_of::<SharedCas>(&ca).len(), 1);
        **pipeline.engine().get::<SharedCas>(&ca).unwrap()
    };
    assert!(!is_shared(&pipeline));
    shared.clone().put(&mut pipeline);
    pipeline.settle();
    assert!(is_shared(&pipeline));
    shared.remove(&mut pipeline);
    pipeline.settle();
    assert!(!is_shared(&pipeline));
    pipeline.self_check().unwrap();
}

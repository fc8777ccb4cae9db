//! Who has a port, and which hosts belong to a listener.

use super::*;

/// Who has a port does not depend on who came first, and the others are told.
#[test]
fn a_port_belongs_to_the_strongest_claim_and_to_those_that_fit_beside_it() {
    let bound = |name: &str| Claims::new(name, FleetId::Shared).bound();
    let one = || bound("one").created(1).listener("one", 9000, Http, "a.example.com");
    let claims = [
        (one(), None),
        (bound("beside").created(2).listener("beside", 9000, Http, "*.example.com"), None),
        (
            Claims::new("tls", FleetId::Shared).created(3).listener("tls", 9000, Tls, "*"),
            Some("SES7007 port 9000 is used for HTTP by listener one"),
        ),
        (
            bound("again").created(4).listener("again", 9000, Http, "a.example.com"),
            Some("SES7007 listener one has port 9000 and host a.example.com"),
        ),
        (Claims::new("udp", FleetId::Shared).created(5).listener("udp", 9000, Udp, "*"), None),
        (
            Claims::new("alone", FleetId::Shared).created(8).listener("alone", 9000, Http, "b.example.com"),
            Some(
                "SES7007 port 9000 belongs to listener one of ConfigMap default/one spec.listeners.one, which does not share it",
            ),
        ),
        (
            Claims::new("greedy", FleetId::Shared).listener("greedy", 8443, Tls, "*.com"),
            Some("SES7007 port 8443 belongs to listener ingress_https of the settings, which does not share it"),
        ),
        (bound("may").listener("may", 8443, Tls, "*.com"), None),
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
        let names = [
            "one",
            "beside",
            "tls",
            "again",
            "udp",
            "alone",
            "greedy",
            "may",
            "elsewhere",
            "stats",
            "settings",
            "name",
        ];
        let verdicts: Vec<_> = names
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

/// Sockets that exclude each other are one port number's matter, whatever their addresses.
#[test]
fn of_two_listeners_on_overlapping_addresses_the_weaker_loses() {
    let mut pipeline = pipeline();
    let claim = |name: &str, created: i64, address: &str, port: u16| {
        Claims::new(name, FleetId::Shared).bound().created(created).at(address).listener(name, port, Http, "*")
    };
    let used = |port: u16, address: &str, by: &str| {
        vec![format!("SES7007 port {port} of address {address} is used by listener {by}")]
    };
    let claims = [
        (claim("steals", 1, "10.0.0.5", 8080), used(8080, "0.0.0.0", "ingress_http")),
        (claim("page", 1, "127.0.0.1", 8002), vec!["SES7007 port 8002 is used for Envoy's own pages".to_owned()]),
        (claim("zero", 1, "0.0.0.0", 0), vec!["SES7007 port 0 is not a port to listen on".to_owned()]),
        (claim("first", 1, "10.0.0.5", 9000), vec![]),
        (claim("second", 2, "10.0.0.6", 9000), vec![]),
        (claim("every", 3, "0.0.0.0", 9000), used(9000, "10.0.0.5", "first")),
        (
            claim("mapped", 4, "::ffff:10.0.0.5", 9000),
            vec!["SES7007 listener first has port 9000 and host *".to_owned()],
        ),
        (claim("six", 5, "::", 9000), vec![]),
        (claim("loopback", 6, "::1", 9000), used(9000, "::", "six")),
        (claim("six-too", 1, "::1", 8080), vec![]),
    ];
    claims.iter().rev().for_each(|(claim, _)| claim.clone().put(&mut pipeline));
    let output = pipeline.settle();
    let names =
        ["steals", "page", "zero", "first", "second", "every", "mapped", "six", "loopback", "six-too"].into_iter();
    for (name, (_, expected)) in names.zip(&claims) {
        assert_eq!(verdicts(&output, name), *expected, "{name}");
    }
    let (set, _) = reported(&mut { output }, &FleetId::Shared);
    let listeners: Vec<_> = set.iter().filter(|name| name.starts_with("lds tcp")).collect();
    assert_eq!(listeners, ["lds tcp-8080-::1", "lds tcp-9000-10.0.0.5", "lds tcp-9000-10.0.0.6", "lds tcp-9000-::"]);
    // Whoever was in the way goes.
    claims[3].0.clone().remove(&mut pipeline);
    claims[4].0.clone().remove(&mut pipeline);
    let output = pipeline.settle();
    assert_eq!((verdicts(&output, "every"), verdicts(&output, "mapped")), (vec![], used(9000, "0.0.0.0", "every")));
    pipeline.self_check().unwrap();
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
    assert!(placed("narrow", "*.example.com"), "its other names are not those of the wide one");
}

/// Whoever has routes or TLS for a host that a narrower listener has, or that its listener is not for, is told.
#[test]
fn who_loses_a_host_to_a_narrower_listener_is_told() {
    let ca = Ca::new("narrower");
    let mut pipeline = pipeline();
    let objects = [
        secret(&ca, "own", "a.example.com"),
        ingress_with("tls", "a.example.com", "/", "web", &serde_json::json!({}), &[("a.example.com", "own")]),
        ingress("plain", "b.example.com", "/", "web"),
        ingress("other", "c.example.org", "/", "web"),
    ];
    objects.into_iter().for_each(|object| pipeline.put(&object.key(), Some(object)));
    pipeline.settle();
    let reported = |output: &Output| -> BTreeMap<String, Vec<String>> {
        let lists = output.verdicts.iter().map(|(object, list)| {
            let list = list.iter().flat_map(|list| list.iter());
            let list = list.filter(|verdict| verdict.code == model::Code::HostOfOtherListener);
            (object.name.to_string(), list.map(|verdict| verdict.message.to_string()).collect())
        });
        lists.collect()
    };
    let bound = |name: &str| Claims::new(name, FleetId::Shared).bound();
    bound("narrow").listener("narrow", 8443, Tls, "*.com").route("narrow", "x.example.org", "web").put(&mut pipeline);
    let lost = reported(&pipeline.settle());
    let why = "listener ingress_https: host a.example.com belongs to listener narrow of the same port";
    assert_eq!(lost["tls"], [why]);
    assert_eq!(lost["narrow"], ["listener narrow is not for host x.example.org"; 0], "nobody asks for TLS there");
    assert!(!lost.contains_key("plain") && !lost.contains_key("other"), "they have no TLS: {lost:?}");
    bound("http").listener("http", 8080, Http, "b.example.com").put(&mut pipeline);
    let lost = reported(&pipeline.settle());
    let why = "listener ingress_http: host b.example.com belongs to listener http of the same port";
    assert_eq!(lost["plain"], [why]);
    assert!(!lost.contains_key("tls"));
    bound("http")
        .listener("http", 8080, Http, "b.example.com")
        .route("http", "c.example.org", "web")
        .put(&mut pipeline);
    assert_eq!(reported(&pipeline.settle())["http"], ["listener http is not for host c.example.org"]);
    bound("http").remove(&mut pipeline);
    bound("narrow").remove(&mut pipeline);
    let lost = reported(&pipeline.settle());
    assert_eq!((lost["tls"].len(), lost["plain"].len()), (0, 0));
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

/// A host for every name has the clients that the fallback certificate is for, and whoever asked for that is told.
#[test]
fn who_asked_for_the_fallback_certificate_is_told_that_another_has_every_name() {
    let ca = Ca::new("fallback");
    let mut pipeline = pipeline();
    for name in ["own", "every", "fallback"] {
        let object = secret(&ca, name, "a.example.com");
        pipeline.put(&object.key(), Some(object));
    }
    let own = Claims::new("own", FleetId::Shared);
    own.tls_with_fallback("ingress_https", "a.example.com", "own", "fallback").put(&mut pipeline);
    let is_fallback = |pipeline: &Pipeline| pipeline.engine().rows::<Chains>().any(|(chain, _)| chain.is_fallback);
    assert_eq!(verdicts(&pipeline.settle(), "own"), [""; 0]);
    assert!(is_fallback(&pipeline));
    let every = Claims::new("every", FleetId::Shared).tls("ingress_https", "*", &["every"]);
    every.clone().put(&mut pipeline);
    let why =
        "SES7012 host a.example.com: clients that send no name, or an unknown one, are those of listener ingress_https";
    assert_eq!(verdicts(&pipeline.settle(), "own"), [why]);
    assert!(!is_fallback(&pipeline));
    pipeline.self_check().unwrap();
    every.remove(&mut pipeline);
    assert_eq!(verdicts(&pipeline.settle(), "own"), [""; 0]);
    assert!(is_fallback(&pipeline));
}

/// A claim on the port of many hosts, or of many listeners, costs its own rows and those of the hosts that it takes.
#[test]
fn a_listener_that_joins_a_port_wakes_the_hosts_that_it_takes() {
    const MANY: usize = 1_000;
    let mut pipeline = pipeline();
    for number in 0..MANY {
        let object = ingress(&format!("i{number}"), &format!("h{number}.example.com"), "/", "web");
        pipeline.put(&object.key(), Some(object));
        let name = format!("l{number}");
        Claims::new(&name, FleetId::Shared)
            .bound()
            .listener(&name, 9000, Http, &format!("{name}.example.com"))
            .route(&name, &format!("{name}.example.com"), "web")
            .put(&mut pipeline);
    }
    pipeline.settle();
    let mut cost = |claims: Claims| {
        let computed = |pipeline: &Pipeline| -> BTreeMap<&'static str, u64> {
            pipeline.engine().counters().iter().map(|table| (table.name, table.computed)).collect()
        };
        let before = computed(&pipeline);
        let mut costs = Vec::new();
        for there in [true, false] {
            if there {
                claims.clone().put(&mut pipeline)
            } else {
                claims.clone().remove(&mut pipeline)
            }
            pipeline.settle();
            let after = computed(&pipeline);
            let rows = after.iter().map(|(name, count)| (*name, count - before[name])).filter(|(_, count)| *count > 0);
            let rows: BTreeMap<_, _> = rows.collect();
            costs.push(rows.values().sum::<u64>());
            assert!(*costs.last().unwrap() <= 60, "{rows:?}");
        }
        costs
    };
    cost(Claims::new("beside", FleetId::Shared).bound().listener("beside", 9000, Http, "*.example.org"));
    cost(Claims::new("narrow", FleetId::Shared).bound().listener("narrow", 8080, Http, "*.example.org"));
    cost(Claims::new("one", FleetId::Shared).bound().listener("one", 8080, Http, "h7.example.com"));
}

/// Whoever asked for a listener that proxies refuse, or for what it needs, is told.
#[test]
fn who_claimed_a_listener_that_proxies_refuse_is_told() {
    let mut pipeline = pipeline();
    let claims = Claims::new("gateway", FleetId::Shared)
        .listener("http", 9100, Http, "*.example.com")
        .listener("tls", 9101, Tls, "*")
        .passthrough("tls", "a.example.com", "web")
        .listener("tcp", 9102, Tcp, "*")
        .listener("udp", 9103, Udp, "*")
        .stream("udp", &[("web", 1)]);
    claims.put(&mut pipeline);
    let output = pipeline.settle();
    assert_eq!(verdicts(&output, "gateway"), [""; 0]);
    for name in ["lds tcp-9100", "lds tcp-9101", "lds tcp-9102", "lds udp-9103", "cds udp:udp"] {
        let mut upserts = output.xds.upserts.iter();
        let resource = upserts.find(|resource| format!("{} {}", resource.kind, resource.name) == name).unwrap();
        let content = xds::content_version(&resource.body);
        let outcome = xds::Outcome::Rejected { text: "cannot bind".into(), held: None };
        let (kind, name) = (resource.kind, resource.name.clone());
        pipeline.on_outcome(&xds::ResourceOutcome { kind, name, version: content, content, outcome });
    }
    let output = pipeline.settle();
    let told: Vec<_> = verdicts(&output, "gateway").into_iter().map(|text| text.replace("SES8001 ", "")).collect();
    assert_eq!(
        told,
        [
            "cds udp:udp: cannot bind",
            "lds tcp-9100: cannot bind",
            "lds tcp-9101: cannot bind",
            "lds tcp-9102: cannot bind",
            "lds udp-9103: cannot bind",
        ]
    );
    pipeline.self_check().unwrap();
}

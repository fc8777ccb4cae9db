//! What is said about classes, Gateways, ListenerSets and their listeners.

use super::world::{World, listener};
use crate::fleet::{self, FleetState, OwnFleet};
use crate::listeners::Namespaces;
use crate::status::{CLASS, GATEWAY, LISTENER_SET, Outside, complete, of_fleet};
use crate::{Listeners, Settings};
use kinds::{Gateway, Kind, kind};
use model::{
    Code,
    status::{
        Address, Mark, ProxyCounts, ProxyRefusal, ProxyState, Scope, StatusFacts, StatusInput, StatusKind, StatusValue,
        Truth,
    },
};
use serde_json::{Value, json};

/// That one proxy is connected, and has it.
fn by_one() -> ProxyState {
    ProxyState::acknowledged(ProxyCounts { acknowledged: 1, connected: 1 })
}

pub(super) fn facts(world: &mut World, kind: Kind, name: &str, programmed: bool) -> StatusFacts {
    facts_with(world, kind, name, &if programmed { by_one() } else { ProxyState::Pending })
}

fn facts_with(world: &mut World, kind: Kind, name: &str, proxies: &ProxyState) -> StatusFacts {
    let translation = world.translate(kind, name).unwrap();
    let outside = |_: &str| Outside { attached: 2, has_port: true };
    let sets = (kind == kind::GATEWAY).then_some(1);
    let facts = complete(translation.facts.as_ref().unwrap(), sets, outside);
    let status: &StatusKind =
        [(kind::GATEWAY_CLASS, &CLASS), (kind::GATEWAY, &GATEWAY), (kind::LISTENER_SET, &LISTENER_SET)]
            .into_iter()
            .find(|(of, _)| *of == kind)
            .unwrap()
            .1;
    let addresses = [Address::ip("192.0.2.1")];
    let input = StatusInput {
        verdicts: &translation.verdicts,
        translated: Some(&facts),
        proxies: Some(proxies),
        addresses: &addresses,
    };
    (status.facts)(&input)
}

/// The conditions as `Type=Status/Reason`; those that are only stated at first with a `?`.
pub(super) fn conditions(scope: &Scope) -> String {
    let shown = |it: &model::status::Condition| format!("{}={}/{}", it.kind, it.status.word(), it.reason);
    let stated = scope.conditions.iter().map(shown).chain(scope.initial.iter().map(|it| format!("?{}", shown(it))));
    stated.collect::<Vec<_>>().join(" ")
}

pub(super) fn of_listener(facts: &StatusFacts, at: usize) -> String {
    conditions(&facts.lists[0].1[at].scope)
}

const GOOD: &str =
    "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts Programmed=True/Programmed";

/// A fleet of a Gateway that asks for addresses.
fn own_fleet(addresses: &[&str]) -> OwnFleet {
    let addresses: Vec<Value> = addresses.iter().map(|address| json!({ "value": address })).collect();
    let object = json!({ "metadata": { "name": "web", "namespace": "infra" }, "spec": { "addresses": addresses } });
    let decoded = kinds::decode_json(kind::GATEWAY, object.to_string().as_bytes()).unwrap();
    let settings = Settings { own_fleets: true, ..Settings::default() };
    let gateway = decoded.object.key();
    let listeners = Listeners { gateway, listeners: Vec::new(), allowed_sets: Namespaces::None, refused: None };
    fleet::own(decoded.object.get::<Gateway>().unwrap(), &listeners, &settings).unwrap()
}

#[test]
fn a_load_balancer_is_asked_for_one_address_and_has_that_or_another() {
    assert_eq!(own_fleet(&["192.0.2.1", "192.0.2.2"]).address, None);
    assert_eq!(own_fleet(&["lb.example.com"]).address, None);
    let own = own_fleet(&["192.0.2.7"]);
    let said = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|ip| Address::ip(ip)).collect();
        let fleet = FleetState { addresses, has_ready_proxy: true, ..FleetState::default() };
        let facts = of_fleet(StatusFacts::default(), &own, &fleet);
        let StatusValue::List(listed) = &facts.object.values[0].1 else { panic!("{facts:?}") };
        (listed.len(), conditions(&facts.object))
    };
    assert_eq!(said(&[]), (0, "Programmed=False/AddressNotAssigned".to_owned()));
    assert_eq!(said(&["192.0.2.1"]), (0, "Programmed=False/AddressNotUsable".to_owned()));
    assert_eq!(said(&["192.0.2.1", "192.0.2.7"]), (1, String::new()));
    let fleet = FleetState { addresses: vec![Address::ip("192.0.2.1")], ..FleetState::default() };
    let facts = of_fleet(StatusFacts::default(), &own, &fleet);
    assert!(facts.object.conditions[0].message.starts_with("SES6002: "), "{:?}", facts.object.conditions);
}

/// What is wrong with the proxies of one Gateway is said on it, in the words and with the code of whoever creates them.
#[test]
fn a_gateway_whose_proxies_cannot_be_created_has_no_resources() {
    let problem = Some("SES6902: a quota of the namespace is exceeded".into());
    let fleet = FleetState { problem, ..FleetState::default() };
    let facts = of_fleet(StatusFacts::default(), &own_fleet(&[]), &fleet);
    assert_eq!(conditions(&facts.object), "Programmed=False/NoResources");
    assert!(facts.object.conditions[0].message.starts_with("SES6902: "));
}

#[test]
fn a_gateway_is_not_programmed_before_a_proxy_of_its_own_is_ready() {
    let mut world = World::default();
    world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]), json!({}));
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    let own = own_fleet(&[]);
    let mut fleet = FleetState { addresses: vec![Address::ip("192.0.2.1")], ..FleetState::default() };
    let said = |fleet: &FleetState| {
        let facts = of_fleet(translation.facts.as_deref().unwrap().clone(), &own, fleet);
        let proxies = by_one();
        let input = StatusInput { verdicts: &[], translated: Some(&facts), proxies: Some(&proxies), addresses: &[] };
        let said = (GATEWAY.facts)(&input);
        [conditions(&said.object), of_listener(&said, 0)].map(|said| said.rsplit_once(' ').unwrap().1.to_owned())
    };
    assert_eq!(said(&fleet), ["Programmed=False/Pending"; 2]);
    fleet.has_ready_proxy = true;
    assert_eq!(said(&fleet), ["Programmed=True/Programmed"; 2]);
}

#[test]
fn a_good_gateway() {
    let mut world = World::default();
    world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]), json!({}));
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    let object = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs Programmed=True/Programmed";
    assert_eq!((conditions(&said.object), of_listener(&said, 0)), (object.to_owned(), GOOD.to_owned()));
    let address = vec![("type", StatusValue::text("IPAddress")), ("value", StatusValue::text("192.0.2.1"))];
    let values = [
        ("attachedListenerSets", StatusValue::Integer(1)),
        ("addresses", StatusValue::List(vec![StatusValue::Record(address)])),
    ];
    assert_eq!(said.object.values, values);
    let entry = &said.lists[0].1[0];
    assert_eq!(entry.identity, [("name", StatusValue::text("http"))]);
    assert_eq!(entry.scope.values[1], ("attachedRoutes", StatusValue::Integer(2)));
    let StatusValue::List(kinds) = &entry.scope.values[0].1 else { panic!("{entry:?}") };
    assert_eq!(kinds.len(), 2);
    // Before proxies have it, whatever was said about this generation stays.
    let said = facts(&mut world, kind::GATEWAY, "web", false);
    let object = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs ?Programmed=False/Pending";
    let pending = GOOD.replace("Programmed=True/Programmed", "?Programmed=False/Pending");
    assert_eq!((conditions(&said.object), of_listener(&said, 0)), (object.to_owned(), pending));
}

#[test]
fn proxies_that_are_gone_or_refuse_are_said() {
    let mut world = World::default();
    world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]), json!({}));
    let mut said = |proxies: ProxyState| {
        let facts = facts_with(&mut world, kind::GATEWAY, "web", &proxies);
        [conditions(&facts.object), of_listener(&facts, 0)].map(|said| said.rsplit_once(' ').unwrap().1.to_owned())
    };
    assert_eq!(said(ProxyState::NoProxies { is_lasting: false }), ["?Programmed=False/Pending"; 2]);
    assert_eq!(said(ProxyState::NoProxies { is_lasting: true }), ["Programmed=False/Pending"; 2]);
    let refusal = Some(ProxyRefusal { node: "envoy-7xk".into(), text: "no".into() }.into());
    let counts = ProxyCounts { acknowledged: 2, connected: 3 };
    assert_eq!(said(ProxyState::Acknowledged { counts, refusal }), ["Programmed=True/PartiallyProgrammed"; 2]);
}

#[test]
fn a_port_of_another_is_said() {
    let mut world = World::default();
    world.gateway(
        "web",
        json!([listener("a", "HTTP", 80, json!({})), listener("b", "HTTP", 81, json!({}))]),
        json!({}),
    );
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    let of = |lost: &[&str]| {
        let facts = translation.facts.as_ref().unwrap();
        let said = complete(facts, Some(0), |name| Outside { attached: 0, has_port: !lost.contains(&name) });
        [conditions(&said.object), of_listener(&said, 1)]
    };
    let lost = "Accepted=False/PortUnavailable ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts Programmed=False/Invalid";
    assert_eq!(of(&["b"]), ["Accepted=True/ListenersNotValid ResolvedRefs=True/ResolvedRefs", lost]);
    let all = "Accepted=False/ListenersNotValid ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid";
    assert_eq!(of(&["a", "b"]), [all, lost]);
}

fn https(refs: Value) -> (String, Vec<String>) {
    let mut world = World::default();
    world.secret("good", &["a.com"]);
    world.secret("other/good", &["a.com"]);
    world.bad_secret("bad", Code::CertificateNotPem);
    world.grant("other", ("Gateway", "default"), Some("good"));
    let tls = json!({ "tls": { "certificateRefs": refs }, "hostname": "a.com" });
    world.gateway("web", json!([listener("a", "HTTPS", 443, tls)]), json!({}));
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    let codes = translation.verdicts.iter().map(|verdict| verdict.code.to_string()).collect();
    (
        of_listener(&said, 0).split(' ').nth(1).unwrap().to_owned()
            + if translation.tls.iter().any(|piece| piece.mode.http().is_some()) { " served" } else { "" },
        codes,
    )
}

#[test]
fn certificates_are_resolved_by_kind_permission_and_existence() {
    let invalid = "ResolvedRefs=False/InvalidCertificateRef";
    let denied = "ResolvedRefs=False/RefNotPermitted";
    for (refs, expected, code) in [
        (json!([{ "name": "good" }]), "ResolvedRefs=True/ResolvedRefs served", None),
        (json!([{ "name": "good", "group": "", "kind": "Secret" }]), "ResolvedRefs=True/ResolvedRefs served", None),
        (json!([{ "name": "good", "namespace": "other" }]), "ResolvedRefs=True/ResolvedRefs served", None),
        (json!([{ "name": "none" }]), invalid, Some("SES3101")),
        (json!([{ "name": "bad" }]), invalid, Some("SES3104")),
        (json!([{ "name": "good", "kind": "ConfigMap" }]), invalid, Some("SES6009")),
        (json!([{ "name": "good", "group": "a.com" }]), invalid, Some("SES6009")),
        (json!([]), invalid, Some("SES6009")),
        (json!([7]), invalid, Some("SES6009")),
        // Permission comes before existence: nobody learns what is there.
        (json!([{ "name": "none", "namespace": "other" }]), denied, Some("SES6010")),
        (json!([{ "name": "none", "namespace": "third" }]), denied, Some("SES6010")),
        // One that is good is served, and the other is told.
        (json!([{ "name": "none" }, { "name": "good" }]), &format!("{invalid} served"), Some("SES3101")),
    ] {
        let (said, codes) = https(refs.clone());
        assert_eq!((&*said, codes.first().map(|code| &**code)), (expected, code), "{refs}");
    }
}

#[test]
fn a_listener_that_is_bad_is_told_and_the_gateway_says_so() {
    let mut world = World::default();
    let kinds = |kinds: &[&str]| {
        let kinds: Vec<_> = kinds.iter().map(|kind| json!({ "kind": kind })).collect();
        json!({ "allowedRoutes": { "kinds": kinds } })
    };
    world.gateway(
        "web",
        json!([
            listener("odd", "example.com/odd", 90, json!({})),
            listener("kinds", "HTTP", 91, kinds(&["HTTPRoute", "TCPRoute"])),
            listener("none", "HTTP", 92, kinds(&["TCPRoute"])),
            listener("twice", "HTTP", 93, json!({})),
            listener("again", "HTTP", 93, json!({})),
        ]),
        json!({}),
    );
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    assert_eq!(
        conditions(&said.object),
        "Accepted=True/ListenersNotValid ResolvedRefs=False/ListenersNotResolved Programmed=True/Programmed"
    );
    let good = GOOD.replace("ResolvedRefs=True/ResolvedRefs", "ResolvedRefs=False/InvalidRouteKinds");
    let odd = "Accepted=False/UnsupportedProtocol ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts Programmed=False/Invalid";
    let twice = "Accepted=False/HostnameConflict ResolvedRefs=True/ResolvedRefs Conflicted=True/HostnameConflict Programmed=False/HostnameConflict";
    assert_eq!([0, 1, 2, 3, 4].map(|at| of_listener(&said, at)), [odd, &good, &good, twice, twice]);
    let supported = |at: usize| match &said.lists[0].1[at].scope.values[0].1 {
        StatusValue::List(kinds) => kinds.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!([0, 1, 2, 3].map(supported), [0, 1, 0, 2]);
    world.gateway("web", json!([listener("odd", "example.com/odd", 90, json!({}))]), json!({}));
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    let all = "Accepted=False/ListenersNotValid ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid";
    assert_eq!(conditions(&said.object), all);
}

#[test]
fn a_gateway_that_is_refused_as_a_whole_serves_nothing() {
    let mut world = World::default();
    world.class(
        "odd",
        crate::CONTROLLER,
        json!({ "parametersRef": { "group": "a.com", "kind": "Settings", "name": "a" } }),
    );
    let http = json!([listener("http", "HTTP", 80, json!({}))]);
    let parameters =
        json!({ "infrastructure": { "parametersRef": { "group": "a.com", "kind": "Settings", "name": "a" } } });
    for (class, more, reason, code) in [
        ("sesame", parameters, "InvalidParameters", "SES6001"),
        ("sesame", json!({ "addresses": [{ "type": "a.com/odd", "value": "x" }] }), "UnsupportedAddress", "SES6002"),
        ("sesame", json!({ "addresses": [{ "routability": "Cluster" }] }), "UnsupportedAddress", "SES6002"),
        ("odd", json!({}), "Invalid", "SES6003"),
    ] {
        world.gateway_of(class, "web", http.clone(), more);
        let said = facts(&mut world, kind::GATEWAY, "web", true);
        let expected = format!("Accepted=False/{reason} ResolvedRefs=True/ResolvedRefs Programmed=False/Invalid");
        assert_eq!(conditions(&said.object), expected);
        let translation = world.translate(kind::GATEWAY, "web").unwrap();
        assert!(translation.listeners.is_empty() && translation.hosts.is_empty());
        assert!(
            translation.verdicts.iter().any(|verdict| verdict.code.to_string() == code),
            "{:?}",
            translation.verdicts
        );
        assert!(!world.merged("web").listeners[0].is_served(), "routes must not be served by it either");
    }
    let said = facts(&mut world, kind::GATEWAY_CLASS, "odd", false);
    assert_eq!(conditions(&said.object), "Accepted=False/InvalidParameters");
    let said = facts(&mut world, kind::GATEWAY_CLASS, "sesame", false);
    assert_eq!(conditions(&said.object), "Accepted=True/Accepted");
}

#[test]
fn a_class_says_whether_the_crds_are_of_its_release() {
    let said = |versions: &[(&str, Option<&str>)]| {
        let mut world = World::default();
        for (name, version) in versions {
            let annotations = version.map(|version| json!({ "gateway.networking.k8s.io/bundle-version": version }));
            let meta = json!({ "name": name, "annotations": annotations });
            world.put(kind::CUSTOM_RESOURCE_DEFINITION, json!({ "metadata": meta }));
        }
        let codes: Vec<_> = world.translate(kind::GATEWAY_CLASS, "sesame").unwrap().verdicts;
        let codes: Vec<_> = codes.iter().map(|verdict| verdict.code).collect();
        let facts = facts(&mut world, kind::GATEWAY_CLASS, "sesame", false);
        (conditions(&facts.object).split(' ').nth(1).map(str::to_owned), codes)
    };
    let (gateways, routes, foreign) =
        ("gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io", "things.example.com");
    let good = (Some("SupportedVersion=True/SupportedVersion".to_owned()), vec![]);
    let bad = (Some("SupportedVersion=False/UnsupportedVersion".to_owned()), vec![Code::GatewayApiVersion]);
    assert_eq!(said(&[]), (None, vec![]), "in a folder there are none");
    assert_eq!(said(&[(gateways, Some("v1.7.0")), (routes, Some("v1.7.3")), (foreign, None)]), good);
    for other in [Some("v1.6.1"), Some("v1.70.0"), Some("v1.7"), Some("dev"), Some(""), None] {
        assert_eq!(said(&[(gateways, Some("v1.7.0")), (routes, other)]), bad, "{other:?}");
    }
}

#[test]
fn an_address_is_not_chosen_by_a_gateway() {
    let mut world = World::default();
    let http = json!([listener("http", "HTTP", 80, json!({}))]);
    let said = |world: &mut World, address: Value| {
        world.gateway("web", http.clone(), json!({ "addresses": [{}, address] }));
        let codes: Vec<_> = world.translate(kind::GATEWAY, "web").unwrap().verdicts.iter().map(|it| it.code).collect();
        (conditions(&facts(world, kind::GATEWAY, "web", true).object).rsplit(' ').next().unwrap().to_owned(), codes)
    };
    let unusable = ("Programmed=False/AddressNotUsable".to_owned(), vec![Code::GatewayAddress]);
    assert_eq!(said(&mut world, json!({ "type": "IPAddress", "value": "192.0.2.9" })), unusable);
    assert_eq!(said(&mut world, json!({ "value": "" })), ("Programmed=True/Programmed".to_owned(), vec![]));
}

#[test]
fn what_has_no_effect_is_told() {
    let mut world = World::default();
    let more = json!({
        "infrastructure": { "labels": { "a": "b" } },
        "defaultScope": "All",
    });
    world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]), more);
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    let told: Vec<_> =
        translation.verdicts.iter().map(|it| (it.code.to_string(), it.origin.field.to_string())).collect();
    let fields = ["spec.defaultScope", "spec.infrastructure"];
    assert_eq!(told, fields.map(|field| ("SES6004".to_owned(), field.to_owned())));
    world.settings.own_fleets = true;
    let own = world.translate(kind::GATEWAY, "web").unwrap();
    assert!(own.verdicts.iter().all(|verdict| verdict.origin.field.to_string() != "spec.infrastructure"));
}

#[test]
fn a_set_is_judged_by_its_own_listeners() {
    let mut world = World::default();
    let allowed = json!({ "allowedListeners": { "namespaces": { "from": "Same" } } });
    world.gateway("web", json!([listener("http", "HTTP", 80, json!({}))]), allowed);
    world.secret("other/cert", &["a.com"]);
    let tls = json!({ "tls": { "certificateRefs": [{ "name": "cert", "namespace": "other" }] }, "hostname": "a.com" });
    world.set("default", "tls", 1, json!([listener("a", "HTTPS", 443, tls)]));
    world.set(
        "default",
        "both",
        2,
        json!([listener("a", "HTTP", 80, json!({})), listener("b", "HTTP", 81, json!({}))]),
    );
    world.set("shop", "far", 3, json!([listener("a", "HTTP", 82, json!({}))]));
    let said = |world: &mut World, name: &str| conditions(&facts(world, kind::LISTENER_SET, name, true).object);
    assert_eq!(said(&mut world, "tls"), "Accepted=False/ListenersNotValid Programmed=False/ListenersNotValid");
    assert_eq!(said(&mut world, "both"), "Accepted=True/ListenersNotValid Programmed=True/Programmed");
    assert_eq!(said(&mut world, "shop/far"), "Accepted=False/NotAllowed Programmed=False/NotAllowed");
    let attached = |world: &mut World, name: &str| world.translate(kind::LISTENER_SET, name).unwrap().attached.len();
    assert_eq!(["tls", "both", "shop/far"].map(|name| attached(&mut world, name)), [0, 1, 0]);
    // A grant for Gateways is none for ListenerSets.
    world.grant("other", ("Gateway", "default"), None);
    assert!(said(&mut world, "tls").starts_with("Accepted=False"));
    world.grant("other", ("ListenerSet", "default"), None);
    assert_eq!(said(&mut world, "tls"), "Accepted=True/Accepted Programmed=True/Programmed");
    // The API has no reason for a set that no proxy has acknowledged yet, but one for its listeners.
    let said = facts(&mut world, kind::LISTENER_SET, "tls", false);
    let pending = GOOD.replace("Programmed=True/Programmed", "?Programmed=False/Pending");
    assert_eq!(conditions(&said.object), "Accepted=True/Accepted ?Programmed=Unknown/Pending");
    assert_eq!(of_listener(&said, 0), pending);
}

#[test]
fn the_listeners_of_a_set_say_what_those_of_a_gateway_do() {
    let mut world = World::default();
    world.secret("cert", &["a.com", "b.com"]);
    let tls = |secret: &str| json!({ "tls": { "certificateRefs": [{ "name": secret }] } });
    let of_host = |host: &str| json!({ "hostname": host, "tls": { "certificateRefs": [{ "name": "cert" }] } });
    let listeners = json!([
        listener("good", "HTTP", 80, json!({})),
        listener("kinds", "HTTP", 81, json!({ "allowedRoutes": { "kinds": [{ "kind": "TCPRoute" }] } })),
        listener("cert", "HTTPS", 444, tls("none")),
        listener("ca", "HTTPS", 445, tls("cert")),
        listener("a", "HTTPS", 446, of_host("a.com")),
        listener("b", "HTTPS", 446, of_host("b.com")),
    ]);
    let ca = json!({ "validation": { "caCertificateRefs": [{ "group": "", "kind": "Service", "name": "ca" }] } });
    let more = json!({
        "tls": { "frontend": { "perPort": [{ "port": 445, "tls": ca }] } },
        "allowedListeners": { "namespaces": { "from": "Same" } },
    });
    let all = |facts: &StatusFacts| [0, 1, 2, 3, 4, 5].map(|at| of_listener(facts, at));
    world.gateway("web", listeners.clone(), more.clone());
    let of_gateway = all(&facts(&mut world, kind::GATEWAY, "web", true));
    world.gateway("web", json!([listener("own", "HTTP", 8080, json!({}))]), more);
    world.set("default", "set", 1, listeners);
    let of_set = all(&facts(&mut world, kind::LISTENER_SET, "set", true));
    assert_eq!(of_set, of_gateway);
    let overlapping = "OverlappingTLSConfig=True/OverlappingCertificates";
    let expected = [
        "ResolvedRefs=True/ResolvedRefs",
        "ResolvedRefs=False/InvalidRouteKinds",
        "ResolvedRefs=False/InvalidCertificateRef",
        "ResolvedRefs=False/InvalidCACertificateKind",
        overlapping,
        overlapping,
    ];
    for (said, expected) in of_set.iter().zip(expected) {
        assert!(said.contains(expected), "{said}, without {expected}");
    }
}

/// A translation that failed has decided nothing.
#[test]
fn what_was_not_translated_is_neither_accepted_nor_rejected() {
    let accepted = "Accepted=Unknown/Pending";
    for (status, programmed) in
        [(CLASS, ""), (GATEWAY, " ?Programmed=False/Pending"), (LISTENER_SET, " ?Programmed=Unknown/Pending")]
    {
        let input = StatusInput { verdicts: &[], translated: None, proxies: None, addresses: &[] };
        assert_eq!(conditions(&(status.facts)(&input).object), format!("{accepted}{programmed}"));
    }
}

#[test]
fn tls_listeners_with_names_in_common_say_so() {
    let mut world = World::default();
    world.secret("cert", &["*.a.com", "b.a.com", "c.com"]);
    let tls = |host: &str| json!({ "tls": { "certificateRefs": [{ "name": "cert" }] }, "hostname": host });
    let listeners = [("wide", "*.a.com"), ("narrow", "b.a.com"), ("other", "c.com")];
    let listeners: Vec<_> = listeners.iter().map(|(name, host)| listener(name, "HTTPS", 443, tls(host))).collect();
    world.gateway("web", json!(listeners), json!({}));
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    let overlapping =
        [0, 1, 2].map(|at| of_listener(&said, at).contains("OverlappingTLSConfig=True/OverlappingHostnames"));
    assert_eq!(overlapping, [true, true, false]);
}

/// Whoever reads a condition finds by its code what to do.
#[test]
fn a_condition_that_does_not_hold_has_a_code() {
    let mut world = World::default();
    let bad = json!({ "tls": { "certificateRefs": [{ "name": "none" }] } });
    let listeners = json!([
        listener("a", "ICMP", 80, json!({})),
        listener("b", "HTTPS", 443, bad),
        listener("c", "HTTP", 81, json!({ "allowedRoutes": { "kinds": [{ "kind": "TCPRoute" }] } })),
        listener("d", "HTTP", 82, json!({})),
        listener("e", "HTTP", 82, json!({})),
        listener("f", "HTTP", 83, json!({})),
    ]);
    world.gateway("web", listeners, json!({ "addresses": [{ "value": "192.0.2.9" }] }));
    let translation = world.translate(kind::GATEWAY, "web").unwrap();
    let outside = |name: &str| Outside { attached: 0, has_port: name != "f" };
    let said = complete(translation.facts.as_ref().unwrap(), Some(0), outside);
    let mut codes = Vec::new();
    for entry in &said.lists[0].1 {
        let lost = |it: &&model::status::Condition| (it.kind == "Conflicted") == (it.status == Truth::True);
        for condition in entry.scope.conditions.iter().filter(|it| it.reason != "Accepted").filter(lost) {
            if condition.status == Truth::True && condition.kind != "Conflicted" {
                continue;
            }
            let code = condition.message.split_once(": ").map(|(code, _)| code.to_owned());
            codes.extend(code.filter(|code| code.starts_with("SES")).ok_or(condition.message.clone()).ok());
        }
    }
    codes.sort();
    codes.dedup();
    assert_eq!(codes, ["SES3101", "SES6005", "SES6006", "SES6008", "SES6009", "SES7007"]);
    let message = |kind: &str| said.object.conditions.iter().find(|it| it.kind == kind).map(|it| it.message.clone());
    assert!(message("Programmed").is_some_and(|text| text.starts_with("SES6002: ")), "{:?}", message("Programmed"));
}

/// What is said about an object as a whole has the code of the first listener that it is about.
#[test]
fn a_gateway_and_a_set_say_the_code_of_their_first_listener_that_cannot_be_served() {
    let mut world = World::default();
    let bad = json!({ "tls": { "certificateRefs": [{ "name": "none" }] } });
    let allowed = json!({ "allowedListeners": { "namespaces": { "from": "Same" } } });
    let listeners = json!([listener("a", "HTTPS", 443, bad), listener("b", "ICMP", 80, json!({}))]);
    world.gateway("web", listeners, allowed);
    world.set("default", "set", 1, json!([listener("c", "ICMP", 81, json!({}))]));
    let mut said = |kind: Kind, name: &str| {
        let said = facts(&mut world, kind, name, true);
        let code = |text: &str| text.split_once(": ").map_or(String::new(), |(code, _)| code.to_owned());
        let shown = |it: &model::status::Condition| format!("{}={} {}", it.kind, it.status.word(), code(&it.message));
        said.object.conditions.iter().map(shown).collect::<Vec<_>>()
    };
    let gateway = ["Accepted=True SES6005", "ResolvedRefs=False SES3101", "Programmed=False SES6009"];
    assert_eq!(said(kind::GATEWAY, "web"), gateway);
    assert_eq!(said(kind::LISTENER_SET, "set"), ["Accepted=False SES6005", "Programmed=False SES6005"]);
}

/// What is switched off is not claimed: neither as a kind that may attach nor as a feature.
#[test]
fn a_kind_that_is_switched_off_is_not_claimed() {
    let mut world = World::default();
    world.settings.disabled = vec![kind::GRPC_ROUTE, kind::TLS_ROUTE];
    let passthrough = json!({ "tls": { "mode": "Passthrough" } });
    let asked = json!({ "allowedRoutes": { "kinds": [{ "kind": "GRPCRoute" }, { "kind": "HTTPRoute" }] } });
    let listeners = json!([
        listener("http", "HTTP", 80, json!({})),
        listener("tls", "TLS", 443, passthrough),
        listener("asked", "HTTP", 81, asked),
    ]);
    world.gateway("web", listeners, json!({}));
    let said = facts(&mut world, kind::GATEWAY, "web", true);
    let kinds = |at: usize| {
        let (_, value) = said.lists[0].1[at].scope.values.iter().find(|(field, _)| *field == "supportedKinds").unwrap();
        format!("{value:?}")
    };
    assert!(kinds(0).contains("HTTPRoute") && !kinds(0).contains("GRPCRoute"), "{}", kinds(0));
    assert!(!kinds(1).contains("TLSRoute"), "{}", kinds(1));
    assert!(of_listener(&said, 2).contains("ResolvedRefs=False/InvalidRouteKinds"), "{}", of_listener(&said, 2));
    let class = facts(&mut world, kind::GATEWAY_CLASS, "sesame", true);
    let features = format!("{:?}", class.object.values);
    assert!(features.contains("TCPRoute") && features.contains("HTTPRouteCORS"), "{features}");
    assert!(!features.contains("TLSRoute") && !features.contains("GRPCRoute"), "{features}");
}

/// After a restart nothing else tells whether the status of an object that is not ours is to be withdrawn.
#[test]
fn a_status_shows_that_it_was_written_here() {
    let mut world = World::default();
    let parameters = json!({ "parametersRef": { "group": "a.com", "kind": "Settings", "name": "a" } });
    world.class("odd", crate::CONTROLLER, parameters);
    let allowed = json!({ "allowedListeners": { "namespaces": { "from": "Same" } } });
    let (good, bad) = (listener("http", "HTTP", 80, json!({})), listener("odd", "ICMP", 81, json!({})));
    world.gateway("web", json!([good]), allowed);
    world.gateway("some", json!([good, bad]), json!({}));
    world.gateway("none", json!([bad]), json!({}));
    world.gateway("empty", json!([]), json!({}));
    world.gateway_of("odd", "refused", json!([good]), json!({}));
    world.set("default", "good", 1, json!([listener("http", "HTTP", 82, json!({}))]));
    world.set("default", "bad", 1, json!([bad]));
    world.set("shop", "far", 1, json!([good]));
    for (status, kind, names) in [
        (&CLASS, kind::GATEWAY_CLASS, &["sesame", "odd"][..]),
        (&GATEWAY, kind::GATEWAY, &["web", "some", "none", "empty", "refused"][..]),
        (&LISTENER_SET, kind::LISTENER_SET, &["good", "bad", "shop/far"][..]),
    ] {
        let [Mark::Condition(of, texts)] = status.layout.marks else { panic!("{:?}", status.layout.marks) };
        for name in names {
            let said = facts(&mut world, kind, name, true);
            let message = said.object.conditions.iter().find(|it| it.kind == *of).map(|it| it.message.clone());
            let message = message.unwrap_or_default();
            assert!(texts.iter().any(|text| message.starts_with(text)), "{kind} {name}: {message}");
        }
    }
}

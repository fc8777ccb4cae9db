//! What depends on time and on endpoints is told on the objects that refer to it, and wakes nobody else.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use kinds::Object;
use model::ObjectRef;
use pipeline::{Output, Pipeline, Settings};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use testbed::{cases::object, certs::Ca};

const YEAR: u64 = 365 * 86_400;

fn ingress(name: &str, host: &str) -> Object {
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let paths = json!([{ "path": "/", "pathType": "Prefix", "backend": backend }]);
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": name },
        "spec": {
            "tls": [{ "hosts": [host], "secretName": name }],
            "rules": [{ "host": host, "http": { "paths": paths } }],
        },
    }))
}

/// The host `a.example.com` with the certificate in Secret `a` and the Service `web`, as each API writes it. The first object refers to
/// the certificate, the last to the Service.
fn sites() -> [Vec<Object>; 4] {
    let of = |version: &str, kind: &str, spec: Value| {
        object(&json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "a" }, "spec": spec }))
    };
    let host = "a.example.com";
    let proxy = json!({
        "virtualhost": { "fqdn": host, "tls": { "secretName": "a" } },
        "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
    });
    let (gateway_api, tls) = ("gateway.networking.k8s.io/v1", json!({ "certificateRefs": [{ "name": "a" }] }));
    let listener = json!({ "name": "https", "protocol": "HTTPS", "port": 443, "hostname": host, "tls": tls });
    let gateway = json!({ "gatewayClassName": "a", "listeners": [listener] });
    let class = json!({ "controllerName": dialect_gateway::CONTROLLER });
    let backends = json!([{ "backendRefs": [{ "name": "web", "port": 80 }] }]);
    let route = json!({ "parentRefs": [{ "name": "a" }], "rules": backends });
    let (emissary, binding) = ("getambassador.io/v3alpha1", json!({ "namespace": { "from": "ALL" } }));
    let port = json!({ "port": 8443, "protocol": "HTTPS", "securityModel": "XFP", "hostBinding": binding });
    let mapping = json!({ "hostname": host, "prefix": "/", "service": "web", "resolver": "endpoint" });
    [
        vec![ingress("a", host)],
        vec![of("projectcontour.io/v1", "HTTPProxy", proxy)],
        vec![
            of(gateway_api, "Gateway", gateway),
            of(gateway_api, "GatewayClass", class),
            of(gateway_api, "HTTPRoute", route),
        ],
        vec![
            of(emissary, "Host", json!({ "hostname": host, "tlsSecret": { "name": "a" } })),
            of(emissary, "Listener", port),
            of(emissary, "Mapping", mapping),
        ],
    ]
}

fn service() -> Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] },
    }))
}

fn slice(ready: &[bool]) -> Object {
    let endpoints: Vec<Value> = ready
        .iter()
        .enumerate()
        .map(|(n, ready)| json!({ "addresses": [format!("192.0.2.{n}")], "conditions": { "ready": ready } }))
        .collect();
    object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "web", "labels": { "kubernetes.io/service-name": "web" } },
        "ports": [{ "port": 8080 }], "endpoints": endpoints,
    }))
}

/// A Secret with a certificate for a host, valid from one year of the epoch to another.
fn secret(ca: &Ca, name: &str, host: &str, from: u64, until: u64) -> Object {
    let time = |year: u64| UNIX_EPOCH + Duration::from_secs(year * YEAR);
    let leaf = ca.leaf(host).valid(time(from), time(until)).make();
    object(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": { "name": name },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() },
    }))
}

/// An HTTPProxy that accepts client certificates of a CA that are not in its CRLs.
fn validated(name: &str) -> Object {
    let validation = json!({ "caSecret": "ca", "crlSecret": name });
    let tls = json!({ "secretName": "cert", "clientValidation": validation });
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name },
        "spec": {
            "virtualhost": { "fqdn": format!("{name}.example.com"), "tls": tls },
            "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
        },
    }))
}

fn entry(name: &str, entry: &str, text: &str) -> Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": { entry: text },
    }))
}

fn put(pipeline: &mut Pipeline, object: Object) {
    pipeline.put(&object.key(), Some(object));
}

/// All that is told about an Ingress, if it is told anew.
fn reported(output: &Output, name: &str) -> Option<Vec<String>> {
    reported_on(output, &ObjectRef::new(kinds::kind::INGRESS, "default", name))
}

fn reported_on(output: &Output, subject: &ObjectRef) -> Option<Vec<String>> {
    let (_, list) = output.verdicts.iter().find(|(object, _)| object == subject)?;
    Some(
        list.iter()
            .flat_map(|list| list.iter())
            .map(|verdict| format!("{} {}", verdict.code, verdict.message))
            .collect(),
    )
}

fn computed(pipeline: &Pipeline) -> BTreeMap<&'static str, u64> {
    pipeline.engine().counters().iter().map(|table| (table.name, table.computed)).collect()
}

/// The tables that computed a row since.
fn woken(pipeline: &Pipeline, before: &BTreeMap<&'static str, u64>) -> Vec<(&'static str, u64)> {
    let after = computed(pipeline).into_iter().map(|(name, count)| (name, count - before[name]));
    after.filter(|(_, count)| *count > 0).collect()
}

/// Only certificates that hosts use, those that end first at the front; a renewed one moves.
#[test]
fn the_certificates_that_expire_soonest_are_named() {
    let ca = Ca::new("expiry");
    let at = |year: u64| i64::try_from(year * YEAR).unwrap();
    let mut pipeline = Pipeline::new(&Settings::default());
    put(&mut pipeline, service());
    for (name, until) in [("short", 42), ("long", 60), ("middle", 50), ("unused", 41)] {
        let host = format!("{name}.example.com");
        if name != "unused" {
            put(&mut pipeline, ingress(name, &host));
        }
        put(&mut pipeline, secret(&ca, name, &host, 40, until));
    }
    pipeline.settle_at(at(41));
    let soonest = |pipeline: &Pipeline, most: usize| -> Vec<(String, i64)> {
        pipeline.soonest_expiries(most).into_iter().map(|(secret, end)| (secret.name.to_string(), end)).collect()
    };
    assert_eq!(soonest(&pipeline, 2), [("short".to_owned(), at(42)), ("middle".to_owned(), at(50))]);
    put(&mut pipeline, secret(&ca, "short", "short.example.com", 40, 55));
    let middle = ingress("middle", "middle.example.com");
    pipeline.put(&middle.key(), None);
    pipeline.settle_at(at(41));
    assert_eq!(soonest(&pipeline, 9), [("short".to_owned(), at(55)), ("long".to_owned(), at(60))]);
}

#[test]
fn a_certificate_that_ends_is_told_at_its_time_and_nothing_is_sent() {
    let ca = Ca::new("validity");
    let at = |year: u64| i64::try_from(year * YEAR).unwrap();
    let mut pipeline = Pipeline::new(&Settings::default());
    put(&mut pipeline, service());
    put(&mut pipeline, slice(&[true]));
    for (name, until) in [("short", 42), ("long", 60)] {
        let host = format!("{name}.example.com");
        put(&mut pipeline, ingress(name, &host));
        put(&mut pipeline, secret(&ca, name, &host, 40, until));
    }
    let output = pipeline.settle_at(at(41));
    assert_eq!((reported(&output, "short"), reported(&output, "long")), (Some(Vec::new()), Some(Vec::new())));
    assert_eq!(pipeline.time_due(), Some(at(42) + 1));
    assert!(!pipeline.set_time(at(42)), "its last second");

    let before = computed(&pipeline);
    assert!(pipeline.set_time(at(42) + 1));
    let output = pipeline.settle();
    let expected = "SES3108 the certificate in Secret default/short expired at 2011-12-22T00:00:00Z";
    assert_eq!(reported(&output, "short"), Some(vec![expected.to_owned()]));
    assert_eq!((reported(&output, "long"), output.xds.upserts.len()), (None, 0));
    assert_eq!(woken(&pipeline, &before), [("certificates out of date", 1), ("verdicts", 1)]);
    assert_eq!(pipeline.self_check(), Ok(()));

    put(&mut pipeline, secret(&ca, "short", "short.example.com", 42, 43));
    assert_eq!(reported(&pipeline.settle_at(at(42) + 2), "short"), Some(Vec::new()));
    assert_eq!(pipeline.time_due(), Some(at(43) + 1));
    // A clock that is set back.
    let early = reported(&pipeline.settle_at(at(39)), "short").unwrap();
    assert_eq!(early, ["SES3108 the certificate in Secret default/short is not valid before 2011-12-22T00:00:00Z"]);
    assert_eq!(pipeline.time_due(), Some(at(40)));
    assert_eq!(pipeline.self_check(), Ok(()));
}

#[test]
fn every_api_is_told_of_a_certificate_that_ends_and_nothing_is_sent() {
    let ca = Ca::new("validity");
    let at = |year: u64| i64::try_from(year * YEAR).unwrap();
    for site in sites() {
        let subject = site[0].key();
        let mut pipeline = Pipeline::new(&Settings::default());
        let others = [service(), slice(&[true]), secret(&ca, "a", "a.example.com", 40, 42)];
        for object in site.into_iter().chain(others) {
            put(&mut pipeline, object);
        }
        assert_eq!(reported_on(&pipeline.settle_at(at(41)), &subject), Some(Vec::new()), "{subject}");
        assert_eq!(pipeline.time_due(), Some(at(42) + 1), "{subject}");
        assert!(pipeline.set_time(at(42) + 1), "{subject}");
        let output = pipeline.settle();
        let expected = "SES3108 the certificate in Secret default/a expired at 2011-12-22T00:00:00Z";
        assert_eq!(reported_on(&output, &subject), Some(vec![expected.to_owned()]), "{subject}");
        assert_eq!(output.xds.upserts.len(), 0, "{subject}");
    }
}

/// As the control loop does it: the time is set when nothing waits, before the first build comes out.
#[test]
fn the_first_build_knows_the_time() {
    let ca = Ca::new("validity");
    let at = |year: u64| i64::try_from(year * YEAR).unwrap();
    let mut pipeline = Pipeline::new(&Settings::default());
    assert!(!pipeline.set_time(at(41)), "nothing is known yet");
    assert_eq!(pipeline.time_due(), None);
    put(&mut pipeline, service());
    put(&mut pipeline, slice(&[true]));
    put(&mut pipeline, ingress("a", "a.example.com"));
    put(&mut pipeline, secret(&ca, "a", "a.example.com", 40, 42));
    let mut output = Output::default();
    let mut settle = |pipeline: &mut Pipeline| while pipeline.step(&mut output) == engine::Progress::More {};
    settle(&mut pipeline);
    assert!(pipeline.set_time(at(43)), "there is something to work on");
    settle(&mut pipeline);
    assert!(!pipeline.set_time(at(43)));
    pipeline.finish(&mut output);
    let expected = "SES3108 the certificate in Secret default/a expired at 2011-12-22T00:00:00Z";
    assert_eq!(reported(&output, "a"), Some(vec![expected.to_owned()]), "told once, and by the first build");
    assert!(!output.xds.upserts.is_empty(), "and served");
    assert_eq!(pipeline.self_check(), Ok(()));
}

#[test]
fn every_api_is_told_of_a_certificate_for_another_host() {
    let ca = Ca::new("validity");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / YEAR;
    for site in sites() {
        let subject = site[0].key();
        let mut pipeline = Pipeline::new(&Settings::default());
        let others = [service(), slice(&[true]), secret(&ca, "a", "b.example.com", now, now + 2)];
        for object in site.into_iter().chain(others) {
            put(&mut pipeline, object);
        }
        let expected = "SES3111 the certificate in Secret default/a is for b.example.com, not for a.example.com";
        assert_eq!(reported_on(&pipeline.settle(), &subject), Some(vec![expected.to_owned()]), "{subject}");
    }
}

#[test]
fn every_api_is_told_of_a_service_without_endpoints() {
    let ca = Ca::new("validity");
    for site in sites() {
        let subject = site[site.len() - 1].key();
        let mut pipeline = Pipeline::new(&Settings::default());
        let others = [service(), secret(&ca, "a", "a.example.com", 40, 90)];
        for object in site.into_iter().chain(others) {
            put(&mut pipeline, object);
        }
        let none = Some(vec!["SES3007 Service default/web has no ready endpoint for port 80".to_owned()]);
        assert_eq!(reported_on(&pipeline.settle(), &subject), none, "{subject}");
        put(&mut pipeline, slice(&[true]));
        assert_eq!(reported_on(&pipeline.settle(), &subject), Some(Vec::new()), "{subject}");
        put(&mut pipeline, slice(&[false]));
        assert_eq!(reported_on(&pipeline.settle(), &subject), none, "{subject}");
    }
}

#[test]
fn a_service_without_endpoints_is_told_and_endpoints_recompute_no_translation() {
    let ca = Ca::new("validity");
    let mut pipeline = Pipeline::new(&Settings::default());
    put(&mut pipeline, ingress("a", "a.example.com"));
    put(&mut pipeline, secret(&ca, "a", "a.example.com", 40, 90));
    put(&mut pipeline, service());
    let none = vec!["SES3007 Service default/web has no ready endpoint for port 80".to_owned()];
    assert_eq!(reported(&pipeline.settle(), "a"), Some(none.clone()));

    let before = computed(&pipeline);
    put(&mut pipeline, slice(&[true, false]));
    assert_eq!(reported(&pipeline.settle(), "a"), Some(Vec::new()));
    let tables: Vec<&str> = woken(&pipeline, &before).into_iter().map(|(table, _)| table).collect();
    assert_eq!(tables, ["endpoint resources", "endpointslices", "verdicts"]);

    // A rollout, in which one is always there.
    for ready in [[true, true], [false, true]] {
        let before = computed(&pipeline);
        put(&mut pipeline, slice(&ready));
        assert!(pipeline.settle().verdicts.is_empty());
        let tables: Vec<&str> = woken(&pipeline, &before).into_iter().map(|(table, _)| table).collect();
        assert_eq!(tables, ["endpoint resources", "endpointslices"]);
    }
    put(&mut pipeline, slice(&[false, false]));
    assert_eq!(reported(&pipeline.settle(), "a"), Some(none));
    assert_eq!(pipeline.self_check(), Ok(()));
}

#[test]
fn a_crl_is_told_before_it_ends_and_when_it_has_ended_and_nothing_is_sent() {
    let ca = Ca::new("clients");
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let mut pipeline = Pipeline::new(&Settings::default());
    put(&mut pipeline, service());
    put(&mut pipeline, slice(&[true]));
    put(&mut pipeline, secret(&ca, "cert", "short.example.com", 40, 100));
    put(&mut pipeline, entry("ca", "ca.crt", ca.pem()));
    put(&mut pipeline, validated("short"));
    put(&mut pipeline, entry("short", "crl.pem", ca.crl([]).pem()));
    let subject = ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "default", "short");
    let output = pipeline.settle_at(now);
    assert_eq!(reported_on(&output, &subject), Some(Vec::new()));

    // The list is two days old and good for 30 more: its last fifth begins 6.4 days before its end.
    let notice = pipeline.time_due().unwrap();
    let (end, day) = (now + 30 * 86_400, 86_400);
    assert!((notice - (end - 32 * day / 5)).abs() < 60, "{notice}");
    assert!(!pipeline.set_time(notice - 1));
    let before = computed(&pipeline);
    assert!(pipeline.set_time(notice));
    let output = pipeline.settle();
    let said = reported_on(&output, &subject).unwrap();
    assert!(said.len() == 1 && said[0].starts_with("SES3122 a CRL in Secret default/short expires at "), "{said:?}");
    assert_eq!(output.xds.upserts.len(), 0);
    assert_eq!(woken(&pipeline, &before), [("certificates out of date", 1), ("verdicts", 1)]);

    let due = pipeline.time_due().unwrap();
    assert!((due - end).abs() < 60, "{due}");
    assert!(pipeline.set_time(due));
    let output = pipeline.settle();
    let said = reported_on(&output, &subject).unwrap();
    assert!(said.len() == 1 && said[0].starts_with("SES3121 a CRL in Secret default/short expired at "), "{said:?}");
    assert_eq!(pipeline.self_check(), Ok(()));

    // One that came too late is told at once, and a good one ends it.
    put(&mut pipeline, entry("short", "crl.pem", ca.stale_crl([]).pem()));
    let said = reported_on(&pipeline.settle_at(now), &subject).unwrap();
    assert!(said.len() == 1 && said[0].starts_with("SES3121"), "{said:?}");
    put(&mut pipeline, entry("short", "crl.pem", ca.crl([]).pem()));
    assert_eq!(reported_on(&pipeline.settle_at(now), &subject), Some(Vec::new()));
    assert_eq!(pipeline.self_check(), Ok(()));
}

#[test]
fn a_client_ca_is_told_before_it_expires_and_when_it_has_and_nothing_is_sent() {
    let ca = Ca::new("clients");
    let (now, day) = (i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap(), 86_400);
    // All of them count from one time: a bundle that is made later must not end later.
    let time = SystemTime::now();
    let until = |days: u64| {
        ca.leaf("ca").valid(time - Duration::from_secs(86_400), time + Duration::from_secs(days * 86_400)).make()
    };
    let mut pipeline = Pipeline::new(&Settings::default());
    put(&mut pipeline, service());
    put(&mut pipeline, slice(&[true]));
    put(&mut pipeline, secret(&ca, "cert", "clients.example.com", 40, 100));
    // The one that expires first counts: of its 100 days the last fifth.
    let bundle = |days: u64| format!("{}{}", until(days).cert_pem(), until(2000).cert_pem());
    put(&mut pipeline, entry("ca", "ca.crt", &bundle(99)));
    let mut host = json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "clients" },
        "spec": { "virtualhost": { "fqdn": "clients.example.com", "tls": { "secretName": "cert" } },
            "routes": [{ "services": [{ "name": "web", "port": 80 }] }] },
    });
    host["spec"]["virtualhost"]["tls"]["clientValidation"] = json!({ "caSecret": "ca" });
    put(&mut pipeline, object(&host));
    let subject = ObjectRef::new(kinds::kind::CONTOUR_HTTP_PROXY, "default", "clients");
    assert_eq!(reported_on(&pipeline.settle_at(now), &subject), Some(Vec::new()));

    let notice = pipeline.time_due().unwrap();
    assert!((notice - (now + 79 * day)).abs() < 60, "{}", notice - now);
    assert!(!pipeline.set_time(notice - 1));
    let before = computed(&pipeline);
    assert!(pipeline.set_time(notice));
    let output = pipeline.settle();
    let said = reported_on(&output, &subject).unwrap();
    assert!(said.len() == 1 && said[0].starts_with("SES5184 a CA in Secret default/ca expires at "), "{said:?}");
    assert_eq!(output.xds.upserts.len(), 0);
    assert_eq!(woken(&pipeline, &before), [("certificates out of date", 1), ("verdicts", 1)]);

    let end = pipeline.time_due().unwrap();
    assert!((end - (now + 99 * day)).abs() < 60, "{}", end - now);
    assert!(pipeline.set_time(end));
    let said = reported_on(&pipeline.settle(), &subject).unwrap();
    assert!(said.len() == 1 && said[0].starts_with("SES5183 a CA in Secret default/ca expired at "), "{said:?}");
    assert_eq!(pipeline.self_check(), Ok(()));

    // One that has expired hides neither that another soon will, nor when.
    let two = format!("{}{}", until(99).cert_pem(), until(149).cert_pem());
    put(&mut pipeline, entry("ca", "ca.crt", &two));
    assert_eq!(reported_on(&pipeline.settle_at(end), &subject), None, "it has been told");
    let notice = pipeline.time_due().unwrap();
    assert!((notice - (now + 119 * day)).abs() < 60, "{}", notice - now);
    assert!(pipeline.set_time(notice));
    let said = reported_on(&pipeline.settle(), &subject).unwrap();
    assert_eq!(said.iter().map(|text| &text[..7]).collect::<Vec<_>>(), ["SES5183", "SES5184"], "{said:?}");
    assert_eq!(pipeline.self_check(), Ok(()));

    // A month is enough for a CA of many years.
    put(&mut pipeline, entry("ca", "ca.crt", &bundle(1000)));
    assert_eq!(reported_on(&pipeline.settle_at(now), &subject), Some(Vec::new()));
    assert!((pipeline.time_due().unwrap() - (now + 970 * day)).abs() < 60);
    assert_eq!(pipeline.self_check(), Ok(()));
}

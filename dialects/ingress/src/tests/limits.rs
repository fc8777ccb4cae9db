//! One Ingress has its limits: what lies within them is served in order, and the object is told where it is cut.

use super::*;
use crate::budget::{HOSTS, PATHS};
use model::translation::RoutePiece;

fn wide(hosts: usize, paths: usize) -> Value {
    let paths: Vec<Value> = (0..paths)
        .map(|n| json!({ "path": format!("/{n}"), "pathType": "Prefix", "backend": backend("web") }))
        .collect();
    let rules: Vec<Value> =
        (0..hosts).map(|n| json!({ "host": format!("h{n}.example.com"), "http": { "paths": paths } })).collect();
    json!({ "spec": { "rules": rules } })
}

fn limits(translation: &Translation) -> Vec<(String, String)> {
    let limits = translation.verdicts.iter().filter(|verdict| verdict.code == Code::IngressLimit);
    limits.map(|verdict| (verdict.origin.field.to_string(), verdict.message.to_string())).collect()
}

#[test]
fn as_many_paths_as_an_ingress_may_have_are_all_served() {
    let translation = Objects::usual().translation(&Settings::default(), &wide(100, PATHS / 100)).unwrap();
    assert_eq!((translation.routes.len(), translation.verdicts.len()), (2 * PATHS, 0));
}

#[test]
fn what_lies_past_the_limit_of_paths_answers_503_on_its_host() {
    let translation = Objects::usual().translation(&Settings::default(), &wide(150, 100)).unwrap();
    let said = |piece: &&RoutePiece| !piece.route.precedence.implied;
    assert_eq!(translation.routes.iter().filter(said).count(), 2 * PATHS);
    assert_eq!(
        limits(&translation),
        [(
            "spec.rules[100].http.paths[0]".to_owned(),
            "this and everything after it is omitted: the Ingress has more than 10000 paths".to_owned()
        )]
    );
    let of = |host: &str| translation.routes_of(&ListenerId::http(), &Host::parse(host).unwrap()).to_vec();
    assert_eq!(of("h99.example.com").len(), 100);
    for host in ["h100.example.com", "h149.example.com"] {
        let [only] = &of(host)[..] else { panic!("{host} has one route") };
        assert!(only.route.precedence.implied);
        assert!(matches!(&only.route.action, Action::DirectResponse(respond) if respond.status == 503));
    }
    assert_eq!(translation.hosts.len(), 2 * 150);
}

#[test]
fn a_default_backend_does_not_answer_for_paths_that_are_left_out() {
    let mut object = wide(101, 100);
    object["spec"]["defaultBackend"] = backend("web");
    let translation = Objects::usual().translation(&Settings::default(), &object).unwrap();
    let host = Host::parse("h100.example.com").unwrap();
    let routes = translation.routes_of(&ListenerId::http(), &host);
    let first = routes.iter().min_by_key(|piece| &piece.route.precedence).unwrap();
    assert!(matches!(&first.route.action, Action::DirectResponse(respond) if respond.status == 503));
}

#[test]
fn hosts_have_a_limit_with_and_without_tls() {
    let rules: Vec<Value> = (0..HOSTS + 5).map(|n| json!({ "host": format!("h{n}.example.com") })).collect();
    let hosts: Vec<String> = (0..HOSTS + 5).map(|n| format!("h{n}.example.com")).collect();
    let object = json!({ "spec": { "rules": rules, "tls": [{ "hosts": hosts, "secretName": "cert" }] } });
    let translation = Objects::usual().translation(&Settings::default(), &object).unwrap();
    assert_eq!((translation.hosts.len(), translation.tls.len()), (2 * HOSTS, HOSTS));
    let fields: Vec<String> = limits(&translation).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["spec.rules[10000]", "spec.tls[0].hosts[10000]"]);
}

use std::collections::BTreeMap;

use model::Code;
use serde_json::json;

use super::*;
use crate::XdsAddress;
use crate::spec::{Owner, Port, Transport};

fn settings() -> Settings {
    Settings {
        envoy_image: "envoy:1".to_owned(),
        sesame_image: "sesame:1".to_owned(),
        xds: XdsAddress { host: "xds".to_owned(), port: 8001, ca: None },
        namespace: "projectsesame".to_owned(),
        namespaces: Vec::new(),
        manager: "sesame".to_owned(),
        replicas: 1,
    }
}

fn spec(name: &str, uid: &str, port: u16) -> Arc<FleetSpec> {
    Arc::new(FleetSpec {
        name: FleetName::new("shop", name),
        owner: Owner { api_version: "g/v1".to_owned(), kind: "Gateway".to_owned(), uid: uid.to_owned() },
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        ports: [Port { port, transport: Transport::Tcp }].into(),
        address: None,
    })
}

fn started() -> Targets {
    let mut targets = Targets::new(settings());
    targets.set_ca(Ok(None));
    for kind in ObjectKind::ALL {
        targets.list_begins(kind, None);
        targets.list_ends(kind, None);
    }
    targets.synced();
    targets
}

fn want(targets: &mut Targets, spec: &Arc<FleetSpec>) {
    targets.want(&spec.name, Some(spec.clone()));
}

/// Does what there is to do, and says which kinds were applied for which fleet.
fn work(targets: &mut Targets, now: Instant) -> Vec<(String, Vec<ObjectKind>)> {
    let mut all = Vec::new();
    while let Some((key, work)) = targets.next(now) {
        let (kinds, objects) = match &work {
            Work::Apply(fleet, kinds) => {
                let kinds: Vec<ObjectKind> = kinds.iter().map(|(kind, _)| *kind).collect();
                let object = |kind: &ObjectKind| (*kind, fleet.get(*kind).expect("it is applied").body.clone());
                (kinds.clone(), kinds.iter().map(object).collect())
            }
            Work::Delete(_, _, objects) => (objects.iter().map(|(kind, _)| *kind).collect(), Vec::new()),
        };
        targets.done(&key, Done { objects, problem: None }, now);
        all.push((key.1, kinds));
    }
    all
}

fn fail(targets: &mut Targets, now: Instant) -> Key {
    let (key, _) = targets.next(now).expect("work");
    let problem = Some(Problem { code: Code::FleetQuota, message: "full".to_owned() });
    targets.done(&key, Done { objects: Vec::new(), problem }, now);
    key
}

#[test]
fn nothing_is_done_before_it_is_known_what_exists() {
    let (mut targets, now) = (Targets::new(settings()), Instant::now());
    targets.set_ca(Ok(None));
    want(&mut targets, &spec("edge", "1", 80));
    assert!(targets.next(now).is_none());
    for kind in ObjectKind::ALL {
        assert!(targets.next(now).is_none());
        targets.list_begins(kind, None);
        targets.list_ends(kind, None);
    }
    assert_eq!(work(&mut targets, now)[0].1, ObjectKind::ALL);
}

#[test]
fn only_what_differs_is_applied() {
    let (mut targets, now) = (started(), Instant::now());
    want(&mut targets, &spec("edge", "1", 80));
    assert_eq!(work(&mut targets, now)[0].1, ObjectKind::ALL);
    want(&mut targets, &spec("edge", "1", 80));
    assert_eq!(work(&mut targets, now + INTERVAL), []);
    want(&mut targets, &spec("edge", "1", 81));
    assert_eq!(work(&mut targets, now + INTERVAL)[0].1, [ObjectKind::Service]);
}

#[test]
fn a_fleet_in_trouble_waits_alone_and_is_told_of() {
    let (mut targets, now) = (started(), Instant::now());
    want(&mut targets, &spec("a", "1", 80));
    let poor = fail(&mut targets, now);
    want(&mut targets, &spec("b", "2", 80));
    assert_eq!(work(&mut targets, now).len(), 1, "the other is not held up");
    let statuses: BTreeMap<_, _> = targets.statuses().into_iter().collect();
    let of = |name: &str| statuses[&FleetName::new("shop", name)].clone().expect("a status");
    assert_eq!(of("a").problem.map(|problem| problem.to_string()).as_deref(), Some("SES6902: full"));
    assert_eq!(of("b").problem, None);
    let mut at = now;
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert!(targets.next(at).is_none());
        assert_eq!(targets.wake(), Some(at + Duration::from_secs(seconds)));
        at += Duration::from_secs(seconds);
        assert_eq!(fail(&mut targets, at), poor);
    }
    want(&mut targets, &spec("a", "1", 81));
    assert_eq!(work(&mut targets, Instant::now() + INTERVAL).len(), 1, "an edit is tried at once");
    assert_eq!(targets.statuses()[0].1.as_ref().expect("a status").problem, None);
}

/// As when the answer of the API server was lost, or when what could not be repaired was undone by its author.
#[test]
fn trouble_is_over_once_there_is_nothing_left_to_do() {
    let (mut targets, now) = (started(), Instant::now());
    let spec = spec("edge", "1", 80);
    want(&mut targets, &spec);
    fail(&mut targets, now);
    let problem = |targets: &mut Targets| targets.statuses().pop().and_then(|(_, status)| status?.problem);
    assert!(problem(&mut targets).is_some());
    let applied = FleetObjects::new(spec, &settings(), None);
    for kind in ObjectKind::ALL {
        targets.observe(kind, applied.get(kind).expect("one of each").body.clone());
    }
    assert!(targets.next(now + BACKOFF.0).is_none());
    let statuses = targets.statuses();
    assert_eq!(statuses.len(), 1, "{statuses:?}");
    assert_eq!(statuses[0].1.as_ref().expect("a status").problem, None);
}

#[test]
fn what_somebody_changes_is_repaired_at_a_pace_that_slows() {
    let (mut targets, now) = (started(), Instant::now());
    let spec = spec("edge", "1", 80);
    want(&mut targets, &spec);
    work(&mut targets, now);
    let applied = FleetObjects::new(spec, &settings(), None);
    let mut service = applied.get(ObjectKind::Service).expect("one").body.clone();
    service["spec"]["type"] = json!("ClusterIP");
    let mut at = now + INTERVAL;
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        targets.observe(ObjectKind::Service, service.clone());
        assert_eq!(work(&mut targets, at)[0].1, [ObjectKind::Service]);
        targets.observe(ObjectKind::Service, service.clone());
        assert!(targets.next(at).is_none());
        assert_eq!(targets.wake(), Some(at + Duration::from_secs(seconds)));
        at += Duration::from_secs(seconds);
    }
}

#[test]
fn what_belongs_to_no_fleet_is_deleted_once_all_fleets_are_known() {
    let (mut targets, now) = (Targets::new(settings()), Instant::now());
    let old = FleetObjects::new(spec("old", "1", 80), &settings(), None);
    for kind in ObjectKind::ALL {
        targets.list_begins(kind, None);
        let mut object = old.get(kind).expect("one").body.clone();
        object["metadata"]["uid"] = json!("x");
        targets.listed(kind, None, object.clone());
        object["metadata"]["name"] = json!("a-copy");
        targets.listed(kind, None, object);
        targets.list_ends(kind, None);
    }
    targets.set_ca(Ok(None));
    assert!(targets.next(now).is_none());
    targets.synced();
    assert_eq!(work(&mut targets, now), [(old.name, ObjectKind::ALL.to_vec())], "what was copied is left alone");
}

#[test]
fn a_gateway_that_is_created_again_has_other_objects() {
    let (mut targets, now) = (started(), Instant::now());
    want(&mut targets, &spec("edge", "1", 80));
    let first = work(&mut targets, now);
    want(&mut targets, &spec("edge", "2", 80));
    let second = work(&mut targets, now + INTERVAL);
    assert_eq!(second.len(), 2, "one is deleted, one is created: {second:?}");
    assert!(second.iter().any(|(name, _)| *name == first[0].0));
    assert_eq!(targets.statuses()[0].1.as_ref().expect("a status").uid, "2");
    targets.want(&FleetName::new("shop", "edge"), None);
    assert_eq!(targets.statuses(), [(FleetName::new("shop", "edge"), None)]);
}

#[test]
fn a_fleet_is_ready_with_a_proxy_and_an_address() {
    let (mut targets, now) = (started(), Instant::now());
    let spec = spec("edge", "1", 80);
    want(&mut targets, &spec);
    work(&mut targets, now);
    assert!(!targets.statuses()[0].1.as_ref().expect("a status").is_ready());
    let objects = FleetObjects::new(spec, &settings(), None);
    let mut deployment = objects.get(ObjectKind::Deployment).expect("one").body.clone();
    deployment["status"]["readyReplicas"] = json!(1);
    targets.observe(ObjectKind::Deployment, deployment);
    let mut service = objects.get(ObjectKind::Service).expect("one").body.clone();
    service["status"]["loadBalancer"]["ingress"] = json!([{ "ip": "192.0.2.1" }]);
    targets.observe(ObjectKind::Service, service);
    assert_eq!(work(&mut targets, now + INTERVAL), [], "a status is no drift");
    let status = targets.statuses().remove(0).1.expect("a status");
    assert!(status.is_ready(), "{status:?}");
    assert_eq!(status.addresses, [model::status::Address::ip("192.0.2.1")]);
}

#[test]
fn an_answer_from_before_an_object_vanished_or_changed_is_not_believed() {
    let (mut targets, now) = (started(), Instant::now());
    want(&mut targets, &spec("edge", "1", 80));
    let (key, Work::Apply(fleet, _)) = targets.next(now).expect("work") else { panic!("nothing to apply") };
    let object = |kind: ObjectKind, version: &str, replicas: u64| {
        let mut object = fleet.get(kind).expect("it is applied").body.clone();
        object["metadata"]["uid"] = format!("{kind}").into();
        object["metadata"]["resourceVersion"] = version.into();
        object["status"] = json!({ "readyReplicas": replicas });
        object
    };
    // Watches show what happened after the requests were answered, before the answers are taken.
    targets.observe(ObjectKind::Deployment, object(ObjectKind::Deployment, "11", 1));
    targets.observe(ObjectKind::Service, object(ObjectKind::Service, "9", 0));
    targets.vanished(ObjectKind::Service, &object(ObjectKind::Service, "9", 0));
    let answers = ObjectKind::ALL.map(|kind| (kind, object(kind, "9", 0)));
    targets.done(&key, Done { objects: answers.into(), problem: None }, now);
    let status = targets.statuses().pop().and_then(|(_, status)| status).expect("a status");
    assert_eq!(status.ready, 1);
    assert_eq!(work(&mut targets, now + BACKOFF.1), [(key.1, vec![ObjectKind::Service])]);
}

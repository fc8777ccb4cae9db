//! An edit that reaches many hosts is worked off in parts: others' edits are published in between, no host is ever published in
//! part, and the end is that of a build from nothing.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use engine::{Offloading, Progress};
use pipeline::{Output, Pipeline, Settings, partition::AT_ONCE};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testbed::cases::object;
use xds::Kind;

/// How many hosts the wide object has. It is a large one, too, so that its translation is computed by a job.
const HOSTS: usize = 1000;

/// What proxies have been given.
type Given = BTreeMap<(Kind, String), Vec<u8>>;

fn put(pipeline: &mut Pipeline, value: &Value) {
    let object = object(value);
    pipeline.put(&object.key(), Some(object));
}

fn service(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] } })
}

fn rule(host: &str, path: &str, service: &str) -> Value {
    json!({ "host": host, "http": { "paths": [{ "path": path, "pathType": "Prefix",
        "backend": { "service": { "name": service, "port": { "number": 80 } } } }] } })
}

fn ingress(name: &str, rules: &[Value], hosts_with_tls: &[String]) -> Value {
    json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": name },
        "spec": { "rules": rules, "tls": [{ "hosts": hosts_with_tls, "secretName": "tls" }] } })
}

fn host(n: usize) -> String {
    format!("w{n}.wide.example.com")
}

/// 1,000 hosts, in plaintext and under TLS.
fn wide(path: &str) -> Value {
    let hosts: Vec<String> = (0..HOSTS).map(host).collect();
    let rules: Vec<Value> = hosts.iter().map(|host| rule(host, path, "web")).collect();
    ingress("wide", &rules, &hosts)
}

fn other(path: &str) -> Value {
    ingress("other", &[rule("other.example.com", path, "web")], &[])
}

fn secret() -> Value {
    let ca = testbed::certs::Ca::new("ca");
    let leaf = ca.leaf("*.wide.example.com").make();
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": { "name": "tls" },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } })
}

/// A pipeline that has both, and works as the control loop does.
fn running(settings: &Settings, secret: &Value) -> (Pipeline, Given) {
    let mut pipeline = Pipeline::new(settings);
    for value in [&service("web"), secret, &wide("/old"), &other("/old")] {
        put(&mut pipeline, value);
    }
    let mut given = Given::new();
    take(pipeline.settle(), &mut given);
    pipeline.set_offloading(Offloading::Large);
    (pipeline, given)
}

/// What a batch publishes, on top of what was there; says what it was.
fn take(output: Output, given: &mut Given) -> Vec<(Kind, String)> {
    for (kind, name) in output.xds.removes {
        given.remove(&(kind, name.to_string()));
    }
    let mut names = Vec::new();
    for resource in output.xds.upserts {
        let name = (resource.kind, resource.name.to_string());
        given.insert(name.clone(), resource.body.to_vec());
        names.push(name);
    }
    names
}

fn batch(pipeline: &mut Pipeline, given: &mut Given) -> Vec<(Kind, String)> {
    let mut output = Output::default();
    while pipeline.step(&mut output) == Progress::More {}
    pipeline.finish(&mut output);
    take(output, given)
}

/// Puts the wide object in, up to the point at which its hosts have to be computed.
fn put_wide(path: &str, pipeline: &mut Pipeline, given: &mut Given) {
    put(pipeline, &wide(path));
    assert_eq!(batch(pipeline, given), [], "everything waits for its translation");
    let job = pipeline.next_job().unwrap();
    pipeline.share_tables();
    let finished = job.run();
    pipeline.reclaim_tables();
    drop(pipeline.finish_job(finished));
}

fn computed(pipeline: &Pipeline) -> u64 {
    pipeline.engine().counters().iter().map(|table| table.computed).sum()
}

/// How many hosts have the path on all of their listeners, and how many on none; it must not be on some.
fn hosts_with(path: &str, given: &Given) -> (usize, usize) {
    let is_with = |body: &[u8]| body.windows(path.len()).any(|window| window == path.as_bytes());
    let mut counts = (0, 0);
    for n in 0..HOSTS {
        let host = model::Host::parse(&host(n)).unwrap();
        let scopes = ["ingress_http", "ingress_https"].map(|port| {
            let name = envoy::name::scope(&model::PortId::new(model::FleetId::Shared, port), &host);
            is_with(given.get(&(Kind::ScopedRoute, name)).unwrap())
        });
        match scopes {
            [true, true] => counts.0 += 1,
            [false, false] => counts.1 += 1,
            _ => panic!("host {host} has a part of its change: {scopes:?}"),
        }
    }
    counts
}

fn scope_of_other() -> (Kind, String) {
    let port = model::PortId::new(model::FleetId::Shared, "ingress_http");
    (Kind::ScopedRoute, envoy::name::scope(&port, &model::Host::parse("other.example.com").unwrap()))
}

#[test]
fn anothers_edit_is_published_in_the_middle_of_a_wide_one() {
    let secret = secret();
    let (mut pipeline, mut given) = running(&Settings::default(), &secret);

    // In one batch, behind it.
    put_wide("/new", &mut pipeline, &mut given);
    put(&mut pipeline, &other("/new"));
    let before = computed(&pipeline);
    assert!(batch(&mut pipeline, &mut given).contains(&scope_of_other()));
    let rows = computed(&pipeline) - before;
    assert!(rows < 10 * AT_ONCE as u64, "{rows} rows were computed before it was published");
    assert_eq!(hosts_with("/new", &given), (AT_ONCE, HOSTS - AT_ONCE));

    // While the rest is worked off.
    pipeline.admit(AT_ONCE);
    batch(&mut pipeline, &mut given);
    // One of the rows that were admitted is that of the object itself.
    assert_eq!(hosts_with("/new", &given), (2 * AT_ONCE - 1, HOSTS - 2 * AT_ONCE + 1));
    put(&mut pipeline, &other("/newer"));
    let before = computed(&pipeline);
    assert_eq!(batch(&mut pipeline, &mut given), [scope_of_other()]);
    let rows = computed(&pipeline) - before;
    assert!(rows < 20, "an ordinary edit computes {rows} rows");

    while pipeline.backlog() > 0 {
        pipeline.admit(100);
        batch(&mut pipeline, &mut given);
        hosts_with("/new", &given);
    }
    assert_eq!(hosts_with("/new", &given), (HOSTS, 0));

    let mut fresh = Pipeline::new(&Settings::default());
    for value in [&service("web"), &secret, &wide("/new"), &other("/newer")] {
        put(&mut fresh, value);
    }
    let mut expected = Given::new();
    take(fresh.settle(), &mut expected);
    assert!(given == expected, "proxies have something else than after a build from nothing");
    pipeline.self_check().unwrap();
}

/// With the plain packing all hosts of a port share a resource: it is not computed with every part, and has others' edits at once.
#[test]
fn a_shared_resource_has_anothers_edit_and_is_not_computed_with_every_part() {
    let settings = Settings { packing: pipeline::settings::Packing::Plain, ..Settings::default() };
    let (mut pipeline, mut given) = running(&settings, &secret());
    put_wide("/new", &mut pipeline, &mut given);
    batch(&mut pipeline, &mut given);
    pipeline.admit(AT_ONCE);
    batch(&mut pipeline, &mut given);
    put(&mut pipeline, &other("/new-other"));
    batch(&mut pipeline, &mut given);
    pipeline.admit(1);
    batch(&mut pipeline, &mut given);
    let table = &given[&(Kind::Route, "ingress_http".to_owned())];
    assert!(table.windows(10).any(|window| window == b"/new-other") && pipeline.backlog() > HOSTS / 2);

    let routes = |pipeline: &Pipeline| {
        pipeline.engine().counters().iter().find(|table| table.name == "route resources").unwrap().computed
    };
    let before = routes(&pipeline);
    while pipeline.backlog() > 0 {
        pipeline.admit(AT_ONCE);
        batch(&mut pipeline, &mut given);
    }
    assert!(routes(&pipeline) - before <= 4, "{}", routes(&pipeline) - before);
    pipeline.self_check().unwrap();
}

/// Nothing is told of an object before all of its hosts are published.
#[test]
fn an_object_is_pending_until_its_last_host_is_published() {
    let (mut pipeline, mut given) = running(&Settings::default(), &secret());
    let (wide_key, other_key) = (object(&wide("/")).key(), object(&other("/")).key());
    put_wide("/new", &mut pipeline, &mut given);
    put(&mut pipeline, &other("/new"));
    loop {
        batch(&mut pipeline, &mut given);
        assert!(!pipeline.is_pending(&other_key));
        let is_published = hosts_with("/new", &given) == (HOSTS, 0);
        assert!(is_published || pipeline.is_pending(&wide_key));
        if pipeline.backlog() == 0 {
            break;
        }
        pipeline.admit(100);
    }
    assert_eq!(hosts_with("/new", &given), (HOSTS, 0));
    assert!(!pipeline.is_pending(&wide_key));
}

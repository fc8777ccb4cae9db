//! The dialect on a handful of objects, and on far too many.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod limits;

use super::*;
use kinds::kind;
use model::{
    Code, ObjectRef,
    route::{Action, PathMatch},
};
use resolve::{Certificate, KnownExtension, Service};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Objects by name; every Service is there.
#[derive(Default)]
struct World {
    proxies: BTreeMap<String, Arc<HttpProxy>>,
    /// Whether no Secret has been read yet.
    is_pending: bool,
}

impl World {
    fn with(mut self, name: &str, spec: Value) -> Self {
        let object = json!({ "metadata": { "name": name, "namespace": "a" }, "spec": spec }).to_string();
        let decoded = kinds::decode_json(kind::CONTOUR_HTTP_PROXY, object.as_bytes()).unwrap();
        self.proxies.insert(name.to_owned(), decoded.object.get::<HttpProxy>().unwrap().clone());
        self
    }

    fn translation(&mut self, name: &str) -> Translation {
        let object = self.proxies[name].clone();
        translate(kind::CONTOUR_HTTP_PROXY, &object, self, &Settings::default()).unwrap()
    }
}

impl View for World {
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        let object =
            json!({ "metadata": { "name": name, "namespace": namespace }, "spec": { "ports": [{ "port": 80 }] } });
        let decoded = kinds::decode_json(kind::SERVICE, object.to_string().as_bytes()).unwrap();
        Some(Arc::new(Service::read(decoded.object.get::<kinds::Service>().unwrap(), &resolve::Settings::default())))
    }

    fn certificate(&mut self, _: &ObjectRef) -> Option<Arc<Result<Certificate, resolve::Rejection>>> {
        None
    }

    fn ca(&mut self, _: &ObjectRef) -> Option<Arc<Result<Arc<str>, resolve::Rejection>>> {
        self.is_pending.then(|| Arc::new(Err(resolve::Rejection::new(Code::SecretPending, "it has not been read yet"))))
    }

    fn crls(&mut self, _: &ObjectRef) -> Option<Arc<Result<resolve::RevocationLists, resolve::Rejection>>> {
        None
    }

    fn is_own_namespace(&mut self, namespace: &str) -> bool {
        namespace == "projectsesame"
    }

    fn delegated(&mut self, _: &ObjectRef, _: &str) -> bool {
        false
    }

    fn grants(&mut self, _: &str, _: Kind, _: &str) -> Vec<Arc<kinds::ReferenceGrant>> {
        Vec::new()
    }

    fn extension(&mut self, _: &ObjectRef) -> Option<Arc<KnownExtension>> {
        None
    }
}

impl HttpProxyView for World {
    fn proxy(&mut self, object: &ObjectRef) -> Option<Arc<HttpProxy>> {
        self.proxies.get(&*object.name).filter(|_| *object.namespace == *"a").cloned()
    }

    fn roots(&mut self, fqdn: &str) -> Vec<(Kind, Arc<HttpProxy>)> {
        let is_root = |object: &&Arc<HttpProxy>| {
            let host = object.spec.virtual_host.ok().and_then(Option::as_ref);
            host.is_some_and(|host| matches!(host.fqdn.ok(), Some(Some(own)) if **own == *fqdn))
        };
        self.proxies.values().filter(is_root).map(|object| (kind::CONTOUR_HTTP_PROXY, object.clone())).collect()
    }

    fn jwks(&mut self, _: &Arc<RemoteJwks>) -> Option<Arc<JwksState>> {
        None
    }

    fn local_jwks(&mut self, _: &ObjectRef, _: &str) -> Option<Result<Jwks, resolve::Rejection>> {
        None
    }
}

fn routes() -> Value {
    json!([{ "services": [{ "name": "web", "port": 80 }] }])
}

fn root(includes: Value) -> Value {
    json!({ "virtualhost": { "fqdn": "a.example.com" }, "includes": includes })
}

fn codes(translation: &Translation) -> Vec<Code> {
    translation.verdicts.iter().map(|verdict| verdict.code).collect()
}

/// The CPU time of this thread: what a bound of time is about, however busy the machine is.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn a_thousand_children_in_a_row_and_side_by_side() {
    let begun = cpu_time();
    let mut deep = World::default().with("root", root(json!([{ "name": "c0" }])));
    for n in 0..1000 {
        let next = json!([{ "name": format!("c{}", n + 1), "conditions": [{ "prefix": "/x" }] }]);
        let includes = if n < 999 { next } else { json!([]) };
        deep = deep.with(&format!("c{n}"), json!({ "includes": includes, "routes": routes() }));
    }
    let translation = deep.translation("root");
    assert_eq!((translation.routes.len(), translation.includes.len(), codes(&translation)), (1000, 1000, Vec::new()));

    let includes = (0..1000).map(|n| json!({ "name": format!("c{n}"), "conditions": [{ "prefix": format!("/{n}") }] }));
    let mut wide = World::default().with("root", root(includes.collect()));
    for n in 0..1000 {
        wide = wide.with(&format!("c{n}"), json!({ "routes": routes() }));
    }
    let translation = wide.translation("root");
    assert_eq!((translation.routes.len(), translation.includes.len(), codes(&translation)), (1000, 1000, Vec::new()));
    assert!(cpu_time() - begun < Duration::from_secs(20));
}

#[test]
fn children_that_double_at_each_level_come_to_an_end() {
    let begun = cpu_time();
    let mut world = World::default().with("root", root(json!([{ "name": "c0" }])));
    for n in 0..40 {
        let name = format!("c{}", n + 1);
        let twice = json!([
            { "name": name, "conditions": [{ "prefix": "/a" }] },
            { "name": name, "conditions": [{ "prefix": "/b" }] },
        ]);
        world = world.with(&format!("c{n}"), json!({ "includes": twice }));
    }
    let translation = world.with("c40", json!({ "routes": routes() })).translation("root");
    assert!(codes(&translation).contains(&Code::ProxyIncludeLimit));
    assert!(translation.routes.len() <= budget::ROUTES);
    assert!(cpu_time() - begun < Duration::from_secs(20));
}

#[test]
fn many_conditions_take_no_more_than_their_share_of_time() {
    let begun = cpu_time();
    let conditions: Vec<Value> =
        (0..1500).map(|n| json!({ "header": { "name": format!("x-{n}"), "exact": "a value" } })).collect();
    let spec = json!({
        "virtualhost": { "fqdn": "a.example.com" },
        "routes": [{ "conditions": conditions, "services": [{ "name": "web", "port": 80 }] }],
    });
    assert!(spec.to_string().len() > 64 * 1024);
    let translation = World::default().with("root", spec).translation("root");
    assert_eq!(translation.routes[0].route.conditions.headers.len(), 1500);
    assert!(cpu_time() - begun < Duration::from_secs(10));
}

#[test]
fn a_pattern_of_a_child_stays_behind_its_parents_prefix() {
    let child = json!({ "routes": [
        { "conditions": [{ "regex": "/x|/admin" }], "directResponsePolicy": { "statusCode": 200 } },
        { "conditions": [{ "regex": "/a//b" }], "directResponsePolicy": { "statusCode": 200 } },
    ] });
    let includes = json!([{ "name": "child", "conditions": [{ "prefix": "/a.b/" }] }]);
    let translation = World::default().with("root", root(includes)).with("child", child).translation("root");
    let paths: Vec<&str> = translation.routes.iter().map(|piece| piece.route.path.text()).collect();
    assert_eq!(paths, [r"/a\.b(?:/x|/admin)", r"/a\.b(?:/a//b)"]);
    assert!(translation.routes.iter().all(|piece| matches!(piece.route.path, PathMatch::Regex(_))));
}

#[test]
fn of_two_routes_that_match_alike_the_parents_and_the_later_one_win() {
    let respond = |status: u16| json!({ "directResponsePolicy": { "statusCode": status } });
    let mut spec = root(json!([{ "name": "child" }]));
    spec["routes"] = json!([respond(201), respond(202)]);
    let mut world = World::default().with("root", spec).with("child", json!({ "routes": [respond(203)] }));
    let translation = world.translation("root");
    let winner = translation.routes.iter().min_by_key(|piece| piece.route.precedence.clone()).unwrap();
    assert!(matches!(&winner.route.action, Action::DirectResponse(respond) if respond.status == 202));
}

#[test]
fn a_list_of_addresses_that_is_too_long_for_a_listener_ends_connections() {
    let proxy = |ranges: usize| {
        let list = (0..ranges).map(|n| json!({ "source": "Peer", "cidr": format!("10.{}.{}.0/24", n / 256, n % 256) }));
        let host = json!({
            "fqdn": "a.example.com", "tls": { "passthrough": true }, "ipDenyPolicy": list.collect::<Vec<_>>(),
        });
        let services = json!([{ "name": "web", "port": 80 }]);
        let mut world =
            World::default().with("root", json!({ "virtualhost": host, "tcpproxy": { "services": services } }));
        let translation = world.translation("root");
        let proxy = translation.tls[0].mode.tcp().unwrap().clone();
        (proxy.clusters.len(), proxy.ip_filter.as_ref().map(|ip_filter| ip_filter.ranges.len()), codes(&translation))
    };
    assert_eq!(proxy(1000), (1, Some(1000), vec![]));
    assert_eq!(proxy(1001), (0, None, vec![Code::ProxyIpPolicy]));
}

#[test]
fn a_child_by_itself_asks_for_nothing() {
    let translation = World::default().with("child", json!({ "routes": routes() })).translation("child");
    assert!(
        translation.is_child
            && translation.routes.is_empty()
            && translation.hosts.is_empty()
            && translation.verdicts.is_empty()
    );
}

#[test]
fn headers_that_the_operator_sets_stand_beneath_those_of_a_service() {
    let name = |text: &str| model::MutableHeader::parse(text).unwrap();
    let settings = Settings {
        request_headers: HeaderDefaults {
            set: [(name("x-service"), "%CONTOUR_SERVICE_NAME%".into()), (name("x-own"), "operator".into())].into(),
            ..HeaderDefaults::default()
        },
        ..Settings::default()
    };
    let own = json!({ "set": [{ "name": "X-Own", "value": "tenant" }] });
    let services = json!([{ "services": [{ "name": "web", "port": 80, "requestHeadersPolicy": own }] }]);
    let mut world =
        World::default().with("root", json!({ "virtualhost": { "fqdn": "a.example.com" }, "routes": services }));
    let object = world.proxies["root"].clone();
    let translation = translate(kind::CONTOUR_HTTP_PROXY, &object, &mut world, &settings).unwrap();
    let Action::Forward(forward) = &translation.routes[0].route.action else { panic!("it goes to a backend") };
    let set = &forward.clusters[0].request_headers.set;
    let set: Vec<_> = set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(set, [("x-own", "tenant"), ("x-service", "web")]);
}

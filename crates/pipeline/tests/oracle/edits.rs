//! Edits at random: of objects, settings, fleets and claims, and what happens between them.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use testbed::certs::Ca;

const NAMESPACES: [&str; 2] = ["one", "two"];
/// Those of Ingresses and endpoints: they share Services with the claims of other fleets.
const USERS: [&str; 3] = ["one", "two", "default"];
pub const SERVICES: [&str; 3] = ["web", "api", "admin"];
pub const SECRETS: [&str; 2] = ["cert", "other"];
const CLASSES: [&str; 2] = ["internal", "nginx"];

/// Chains and keys: two good ones, and one of which the key is another's.
pub static PAIRS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let ca = Ca::new("oracle");
    let leaf = |name: &str| ca.leaf(name).make();
    let (first, second) = (leaf("a.example.com"), leaf("*.example.com"));
    let pair = |leaf: &testbed::certs::Leaf| (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned());
    vec![pair(&first), pair(&second), (first.chain_pem().to_owned(), second.key_pem().to_owned())]
});

#[derive(Clone, Debug)]
pub enum Edit {
    Put(Value),
    Remove(Value),
    /// One row, and what the lane has.
    Step,
    Settle,
    /// A row is computed on another thread.
    Job,
    /// The result is put in place.
    Finish,
    /// So many hosts and objects that wait for their turn are worked on.
    Admit(usize),
    Check,
    /// Proxies refuse one of the resources that they were told of.
    Refuse(u16),
    /// Other replicas hold nothing, or what this one would.
    Share(bool),
    /// The operator changes settings.
    Settings(u8),
    /// A fleet has settings of its own, or no longer.
    Fleet(u8, bool),
    /// An object claims listeners, or no longer.
    Claim(u8, u16),
}

pub fn meta(namespace: &str, name: &str) -> Value {
    json!({ "namespace": namespace, "name": name })
}

fn host() -> impl Strategy<Value = Option<&'static str>> {
    let hosts =
        ["a.example.com", "b.example.com", "*.example.com", "x.b.example.com", "*.b.example.com", "A.example.com"];
    option::weighted(0.85, select(hosts.to_vec()))
}

fn backend() -> impl Strategy<Value = Value> {
    let port = prop_oneof![
        4 => Just(json!({ "number": 80 })),
        1 => Just(json!({ "name": "http" })),
        1 => Just(json!({ "number": 81 })),
    ];
    let service = (select(SERVICES.to_vec()), port);
    service.prop_map(|(name, port)| json!({ "service": { "name": name, "port": port } }))
}

fn path() -> impl Strategy<Value = Value> {
    let paths = ["/", "/a", "/a/b", "/a[0-9]+", "/a[", "/.well-known/acme-challenge/x"];
    let kinds = ["Exact", "Prefix", "ImplementationSpecific"];
    (select(paths.to_vec()), select(kinds.to_vec()), backend())
        .prop_map(|(path, kind, backend)| json!({ "path": path, "pathType": kind, "backend": backend }))
}

fn rule() -> impl Strategy<Value = Value> {
    (host(), vec(path(), 0..3)).prop_map(|(host, paths)| json!({ "host": host, "http": { "paths": paths } }))
}

fn tls() -> impl Strategy<Value = Value> {
    (vec(host(), 0..3), select(SECRETS.to_vec())).prop_map(|(hosts, secret)| {
        let hosts: Vec<_> = hosts.into_iter().flatten().collect();
        json!({ "hosts": hosts, "secretName": secret })
    })
}

fn annotations() -> impl Strategy<Value = Value> {
    let known = vec![
        ("ingress.kubernetes.io/force-ssl-redirect", "true"),
        ("kubernetes.io/ingress.allow-http", "false"),
        ("kubernetes.io/ingress.class", "internal"),
        ("projectcontour.io/tls-cert-namespace", "one"),
        ("projectcontour.io/tls-minimum-protocol-version", "1.3"),
        ("projectcontour.io/response-timeout", "5s"),
        ("projectcontour.io/retry-on", "5xx"),
        ("projectcontour.io/websocket-routes", "/a"),
        ("projectcontour.io/nonsense", "x"),
    ];
    let count = prop_oneof![3 => Just(0..1usize), 1 => Just(1..3)];
    count.prop_flat_map(move |count| vec(select(known.clone()), count)).prop_map(|list| {
        list.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>().into()
    })
}

fn ingress() -> impl Strategy<Value = Value> {
    let names = (select(USERS.to_vec()), select(vec!["a", "b", "c"]), 0..3u32);
    let class = option::weighted(0.3, select(CLASSES.to_vec()));
    let spec = (class, vec(rule(), 0..3), vec(tls(), 0..2), option::weighted(0.2, backend()));
    (names, annotations(), spec).prop_map(|((namespace, name, age), annotations, (class, rules, tls, default))| {
        let mut metadata = meta(namespace, name);
        metadata["annotations"] = annotations;
        metadata["creationTimestamp"] = format!("202{age}-01-01T00:00:00Z").into();
        let spec = json!({ "ingressClassName": class, "rules": rules, "tls": tls, "defaultBackend": default });
        json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec })
    })
}

fn service_annotations() -> impl Strategy<Value = Value> {
    select(vec![
        Value::Null,
        json!({ "projectcontour.io/max-connections": "10" }),
        json!({ "projectcontour.io/max-connections": "many" }),
        json!({ "projectcontour.io/upstream-protocol.h2c": "80" }),
    ])
}

fn service() -> impl Strategy<Value = Value> {
    let ports = vec![json!([{ "name": "http", "port": 80 }]), json!([{ "port": 80 }, { "port": 81 }]), json!([])];
    let external = prop_oneof![4 => Just(false), 1 => Just(true)];
    (select(NAMESPACES.to_vec()), select(SERVICES.to_vec()), service_annotations(), select(ports), external).prop_map(
        |(namespace, name, annotations, ports, external)| {
            let mut metadata = meta(namespace, name);
            metadata["annotations"] = annotations;
            let mut spec = json!({ "ports": ports });
            if external {
                spec["type"] = "ExternalName".into();
                spec["externalName"] = "elsewhere.example.com".into();
            }
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
        },
    )
}

/// A Service that claims refer to: a dialect would not refer to what is not there, so this one always has its port.
fn service_of_claims() -> impl Strategy<Value = Edit> {
    (select(vec!["web", "api"]), service_annotations()).prop_map(|(name, annotations)| {
        let mut service = claimed_service(name);
        service["metadata"]["annotations"] = annotations;
        Edit::Put(service)
    })
}

pub fn claimed_service(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta("default", name), "spec": { "ports": [{ "port": 80 }] } })
}

fn slice() -> impl Strategy<Value = Value> {
    let names = (select(USERS.to_vec()), select(SERVICES.to_vec()), 0..2u32);
    let endpoints = vec((1..5u8, option::of(any::<bool>()), option::of(select(vec!["a", "b"]))), 0..4);
    let port = select(vec![Value::Null, json!("http")]);
    (names, endpoints, port).prop_map(|((namespace, service, number), endpoints, port)| {
        let mut metadata = meta(namespace, &format!("slice-{service}-{number}"));
        metadata["labels"] = json!({ "kubernetes.io/service-name": service });
        let endpoints: Vec<_> = endpoints
            .into_iter()
            .map(|(address, ready, zone)| {
                json!({ "addresses": [format!("192.0.2.{address}")], "conditions": { "ready": ready }, "zone": zone })
            })
            .collect();
        json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata,
            "addressType": "IPv4", "ports": [{ "name": port, "port": 8080 }], "endpoints": endpoints })
    })
}

fn secret() -> impl Strategy<Value = Value> {
    (select(NAMESPACES.to_vec()), select(SECRETS.to_vec()), 0..PAIRS.len()).prop_map(|(namespace, name, pair)| {
        let (chain, key) = &PAIRS[pair];
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": meta(namespace, name),
            "stringData": { "tls.crt": chain, "tls.key": key } })
    })
}

fn class() -> impl Strategy<Value = Value> {
    let controllers = vec!["projectsesame.io/ingress-controller", "k8s.io/ingress-nginx"];
    (select(CLASSES.to_vec()), select(controllers), any::<bool>(), 0..2u32).prop_map(
        |(name, controller, default, age)| {
            json!({ "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {
            "name": name, "creationTimestamp": format!("202{age}-01-01T00:00:00Z"),
            "annotations": { "ingressclass.kubernetes.io/is-default-class": default.to_string() },
        }, "spec": { "controller": controller } })
        },
    )
}

fn delegation() -> impl Strategy<Value = Value> {
    let vendors = vec!["projectcontour.io/v1", "projectsesame.io/v1"];
    let targets = vec![json!(["two"]), json!(["*"]), json!(["three"])];
    (select(vendors), select(SECRETS.to_vec()), select(targets)).prop_map(|(version, secret, targets)| {
        json!({ "apiVersion": version, "kind": "TLSCertificateDelegation", "metadata": meta("one", "delegation"),
            "spec": { "delegations": [{ "secretName": secret, "targetNamespaces": targets }] } })
    })
}

pub fn edit() -> impl Strategy<Value = Edit> {
    let object = prop_oneof![
        8 => ingress().boxed(), 4 => service().boxed(), 4 => slice().boxed(), 3 => secret().boxed(),
        1 => class().boxed(), 1 => delegation().boxed(),
    ];
    let change = (object, prop_oneof![3 => Just(true), 1 => Just(false)]);
    prop_oneof![
        20 => change.prop_map(|(object, put)| if put { Edit::Put(object) } else { Edit::Remove(object) }),
        2 => service_of_claims(),
        8 => Just(Edit::Step),
        3 => Just(Edit::Settle),
        4 => Just(Edit::Job),
        4 => Just(Edit::Finish),
        4 => (1..3usize).prop_map(Edit::Admit),
        1 => Just(Edit::Check),
        4 => any::<u16>().prop_map(Edit::Refuse),
        1 => any::<bool>().prop_map(Edit::Share),
        2 => any::<u8>().prop_map(Edit::Settings),
        2 => (0..3_u8, any::<bool>()).prop_map(|(fleet, there)| Edit::Fleet(fleet, there)),
        6 => (0..4_u8, any::<u16>()).prop_map(|(name, form)| Edit::Claim(name, form)),
    ]
}

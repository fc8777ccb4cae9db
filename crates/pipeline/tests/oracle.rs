//! Any script of edits, in any slices, ends in what a build from nothing gives: the same resources, byte for byte, and the
//! same verdicts, in whatever order the objects came.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use engine::Progress;
use kinds::{Object, ObjectRef};
use pipeline::{
    Output, Pipeline, Quarantined, Settings,
    settings::{Certificates, Packing},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::LazyLock};
use testbed::{cases::object, certs::Ca};
use xds::{Kind, Name, Outcome, ResourceOutcome};

const NAMESPACES: [&str; 2] = ["one", "two"];
const SERVICES: [&str; 3] = ["web", "api", "admin"];
const SECRETS: [&str; 2] = ["cert", "other"];
const CLASSES: [&str; 2] = ["internal", "nginx"];

/// Chains and keys: two good ones, and one of which the key is another's.
static PAIRS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let ca = Ca::new("oracle");
    let leaf = |name: &str| ca.leaf(name).make();
    let (first, second) = (leaf("a.example.com"), leaf("*.example.com"));
    let pair = |leaf: &testbed::certs::Leaf| (leaf.chain_pem().to_owned(), leaf.key_pem().to_owned());
    vec![pair(&first), pair(&second), (first.chain_pem().to_owned(), second.key_pem().to_owned())]
});

#[derive(Clone, Debug)]
enum Edit {
    Put(Value),
    Remove(Value),
    /// One slice of work.
    Step,
    Settle,
    Check,
    /// Proxies refuse one of the resources that they were told of.
    Refuse(u16),
    /// Other replicas hold nothing, or what this one would.
    Share(bool),
}

fn meta(namespace: &str, name: &str) -> Value {
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
    let names = (select(NAMESPACES.to_vec()), select(vec!["a", "b", "c"]), 0..3u32);
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

fn service() -> impl Strategy<Value = Value> {
    let annotations = vec![
        Value::Null,
        json!({ "projectcontour.io/max-connections": "10" }),
        json!({ "projectcontour.io/max-connections": "many" }),
        json!({ "projectcontour.io/upstream-protocol.h2c": "80" }),
    ];
    let ports = vec![json!([{ "name": "http", "port": 80 }]), json!([{ "port": 80 }, { "port": 81 }]), json!([])];
    let external = prop_oneof![4 => Just(false), 1 => Just(true)];
    (select(NAMESPACES.to_vec()), select(SERVICES.to_vec()), select(annotations), select(ports), external).prop_map(
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

fn slice() -> impl Strategy<Value = Value> {
    let names = (select(NAMESPACES.to_vec()), select(SERVICES.to_vec()), 0..2u32);
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

fn edit() -> impl Strategy<Value = Edit> {
    let object = prop_oneof![
        8 => ingress().boxed(), 4 => service().boxed(), 4 => slice().boxed(), 3 => secret().boxed(),
        1 => class().boxed(), 1 => delegation().boxed(),
    ];
    let change = (object, prop_oneof![3 => Just(true), 1 => Just(false)]);
    prop_oneof![
        20 => change.prop_map(|(object, put)| if put { Edit::Put(object) } else { Edit::Remove(object) }),
        4 => Just(Edit::Step),
        3 => Just(Edit::Settle),
        1 => Just(Edit::Check),
        4 => any::<u16>().prop_map(Edit::Refuse),
        1 => any::<bool>().prop_map(Edit::Share),
    ]
}

/// A resource in a form that can be compared.
type Told = (Vec<u8>, Vec<xds::Ref>, xds::Role, bool, Option<String>);

/// What an outside that hears only of changes knows.
#[derive(Default, PartialEq, Debug)]
struct KnownServices {
    resources: BTreeMap<(Kind, Name), Told>,
    verdicts: BTreeMap<String, Vec<String>>,
}

impl KnownServices {
    fn on_outcome(&mut self, output: Output) {
        for (kind, name) in output.xds.removes {
            self.resources.remove(&(kind, name));
        }
        for resource in output.xds.upserts {
            let origin = resource.origin.map(|origin| origin.to_string());
            let told = (resource.body.to_vec(), resource.refs, resource.role, resource.warms, origin);
            self.resources.insert((resource.kind, resource.name), told);
        }
        for (object, list) in output.verdicts {
            match list {
                Some(list) => {
                    let list = list.iter().map(ToString::to_string).collect();
                    self.verdicts.insert(object.to_string(), list);
                }
                None => _ = self.verdicts.remove(&object.to_string()),
            }
        }
    }

    /// A refusal of one of the resources by a proxy that has nothing else.
    fn refusal(&self, which: u16) -> Option<ResourceOutcome> {
        let which = usize::from(which).checked_rem(self.resources.len())?;
        let ((kind, name), (body, ..)) = self.resources.iter().nth(which)?;
        let outcome = Outcome::Refused { text: "no".into(), held: None };
        let content = xds::content_version(body);
        Some(ResourceOutcome { kind: *kind, name: name.clone(), version: content, content, outcome })
    }

    /// Everything that is pointed at and ours to send is there: nobody is sent to a name that nobody has.
    fn assert_whole(&self) {
        for ((kind, name), (_, refs, ..)) in &self.resources {
            for to in refs {
                let xds::Ref::To(to, target) = to else { continue };
                assert!(self.resources.contains_key(&(*to, target.clone())), "{kind} {name} points at {to} {target}");
            }
        }
    }
}

fn built<'a>(
    settings: &Settings,
    withheld: &[Quarantined],
    objects: impl Iterator<Item = (&'a ObjectRef, &'a Object)>,
) -> KnownServices {
    let mut pipeline = Pipeline::new(settings);
    pipeline.withhold(withheld.to_vec());
    for (key, object) in objects {
        pipeline.put(key, Some(object.clone()));
    }
    let mut known = KnownServices::default();
    known.on_outcome(pipeline.settle());
    known
}

/// Takes note of what comes out.
fn told(mut output: Output, known: &mut KnownServices, withheld: &mut Vec<Quarantined>) {
    if let Some(new) = output.withheld.take() {
        *withheld = new;
    }
    known.on_outcome(output);
}

fn run(settings: &Settings, script: Vec<Edit>) {
    let mut pipeline = Pipeline::new(settings);
    let mut objects: BTreeMap<ObjectRef, Object> = BTreeMap::new();
    let mut known = KnownServices::default();
    let (mut withheld, mut others): (Vec<Quarantined>, Vec<Quarantined>) = Default::default();
    for edit in script {
        match edit {
            Edit::Put(value) => {
                let object = object(&value);
                pipeline.put(&object.key(), Some(object.clone()));
                objects.insert(object.key(), object);
            }
            Edit::Remove(value) => {
                let key = object(&value).key();
                pipeline.put(&key, None);
                objects.remove(&key);
            }
            Edit::Step => {
                let mut output = Output::default();
                if pipeline.step(&mut output) == Progress::Settled {
                    pipeline.finish(&mut output);
                }
                told(output, &mut known, &mut withheld);
            }
            Edit::Settle => {
                told(pipeline.settle(), &mut known, &mut withheld);
                known.assert_whole();
            }
            Edit::Check => {
                pipeline.self_check().unwrap();
                told(pipeline.settle(), &mut known, &mut withheld);
            }
            Edit::Refuse(which) => {
                let Some(outcome) = known.refusal(which) else { continue };
                pipeline.on_outcome(&outcome);
                told(pipeline.settle(), &mut known, &mut withheld);
            }
            Edit::Share(some) => {
                others = if some { withheld.clone() } else { Vec::new() };
                pipeline.withhold(others.clone());
            }
        }
    }
    // What waits for others to be tried is taken, at last.
    loop {
        let output = pipeline.settle();
        let probes = output.probes.clone();
        told(output, &mut known, &mut withheld);
        let Some((kind, name)) = probes.into_iter().next() else { break };
        pipeline.on_outcome(&ResourceOutcome { kind, name, version: 0, content: 0, outcome: Outcome::Taken });
    }
    withheld.extend(others);
    known.assert_whole();
    pipeline.self_check().unwrap();
    assert_eq!(known, built(settings, &withheld, objects.iter()), "a build from nothing differs");
    assert_eq!(known, built(settings, &withheld, objects.iter().rev()), "the order of the objects matters");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_ends_where_a_build_from_nothing_does(
        script in vec(edit(), 1..60),
        scoped in any::<bool>(),
        on_demand in any::<bool>(),
    ) {
        let packing = if scoped { Packing::Scoped } else { Packing::Plain };
        let certificates = if on_demand { Certificates::OnDemand } else { Certificates::PerChain };
        let mut settings = Settings { packing, certificates, ..Settings::default() };
        settings.resolve.external_names = true;
        run(&settings, script);
    }
}

//! Any script of edits, in any slices, ends in what a build from nothing gives: the same resources, byte for byte, and the
//! same verdicts, in whatever order the objects came.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "packing/claims.rs"]
mod claims;

use claims::Claims;
use engine::{Finished, Offloading, Progress};
use kinds::{Object, ObjectRef, http_proxy::security::AuthorizationServer};
use model::{
    FleetId, PortProtocol,
    listener::{RateLimitService, Tracing},
};
use pipeline::{
    FleetSettings, Output, Pipeline, Quarantined, Settings,
    authorization::{GlobalAuthorization, of_operator},
    extensions::ExtensionName,
    settings::{Bind, Certificates, MetricsTls, Packing},
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    sync::LazyLock,
    time::Duration,
};
use testbed::{cases::object, certs::Ca};
use xds::{Kind, Name, Outcome, ResourceOutcome};

const NAMESPACES: [&str; 2] = ["one", "two"];
/// Those of Ingresses and endpoints: they share Services with the claims of other fleets.
const USERS: [&str; 3] = ["one", "two", "default"];
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

fn claimed_service(name: &str) -> Value {
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

fn edit() -> impl Strategy<Value = Edit> {
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

/// A resource in a form that can be compared.
type Told = (Vec<u8>, Vec<xds::Ref>, xds::Role, bool, Option<String>);

/// What an outside that hears only of changes knows.
#[derive(Default, PartialEq, Debug)]
struct KnownServices {
    resources: BTreeMap<(FleetId, Kind, Name), Told>,
    verdicts: BTreeMap<String, Vec<String>>,
}

impl KnownServices {
    fn on_outcome(&mut self, output: Output) {
        let named = output.fleets.into_iter().map(|(fleet, output)| (fleet, output.xds));
        for (fleet, changes) in std::iter::once((FleetId::Shared, output.xds)).chain(named) {
            for (kind, name) in changes.removes {
                self.resources.remove(&(fleet.clone(), kind, name));
            }
            for resource in changes.upserts {
                let origin = resource.origin.map(|origin| origin.to_string());
                let told = (resource.body.to_vec(), resource.refs, resource.role, resource.warms, origin);
                self.resources.insert((fleet.clone(), resource.kind, resource.name), told);
            }
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
    fn refusal(&self, which: u16) -> Option<(FleetId, ResourceOutcome)> {
        let which = usize::from(which).checked_rem(self.resources.len())?;
        let ((fleet, kind, name), (body, ..)) = self.resources.iter().nth(which)?;
        let outcome = Outcome::Refused { text: "no".into(), held: None };
        let content = xds::content_version(body);
        let outcome = ResourceOutcome { kind: *kind, name: name.clone(), version: content, content, outcome };
        Some((fleet.clone(), outcome))
    }

    /// Everything that is pointed at and ours to send is there: nobody is sent to a name that nobody has.
    fn assert_whole(&self) {
        for ((fleet, kind, name), (_, refs, ..)) in &self.resources {
            for to in refs {
                let xds::Ref::To(to, target) = to else { continue };
                let there = self.resources.contains_key(&(fleet.clone(), *to, target.clone()));
                assert!(there, "{fleet}: {kind} {name} points at {to} {target}");
            }
        }
    }
}

/// What is withheld in each fleet.
type Withheld = BTreeMap<FleetId, Vec<Quarantined>>;

/// Everything that can be edited.
#[derive(Clone)]
struct Inputs {
    settings: Settings,
    fleets: BTreeMap<u8, FleetSettings>,
    objects: BTreeMap<ObjectRef, Object>,
    claims: BTreeMap<u8, Claims>,
}

fn fleet(number: u8) -> FleetId {
    if number == 0 { FleetId::Shared } else { FleetId::named("team", &format!("gateway-{number}")) }
}

fn fleet_settings(number: u8) -> FleetSettings {
    let mut settings = FleetSettings { http: Some(Bind::any(80)), ..FleetSettings::default() };
    settings.http_settings.max_streams = u32::from(number);
    settings
}

/// Listeners on one of two ports of one of three fleets, with a route, TLS or a target that may or may not fit.
fn claim(name: u8, form: u16) -> Claims {
    use PortProtocol::{Http, Quic, Tcp, Tls, Udp};
    let pick = |at: u32, of: u16| usize::from((form >> at) % of);
    let protocol = [Http, Tls, Tcp, Udp, Quic][pick(0, 5)];
    let host = ["*", "*.example.com", "a.example.com", "b.a.example.com"][pick(2, 4)];
    let listener = ["one", "two"][pick(4, 2)];
    let service = ["web", "api"][pick(5, 2)];
    let port = [80, 9000, 8080][pick(6, 3)];
    let claims = Claims::new(&format!("claim-{name}"), fleet(u8::try_from(pick(8, 3)).unwrap()));
    let claims = if pick(14, 3) > 0 { claims.bound() } else { claims };
    let claims = claims.at(["0.0.0.0", "0.0.0.0", "10.0.0.5", "::"][pick(9, 4)]);
    let claims = claims.created(i64::try_from(pick(10, 3)).unwrap()).listener(listener, port, protocol, host);
    match pick(12, 4) {
        0 => claims.route(listener, host, service),
        1 if name == 0 => claims.route(listener, host, service).tls_with_fallback(listener, host, "one", "one"),
        1 => claims.route(listener, host, service).tls(listener, host, &["one"]),
        2 => claims.passthrough(listener, host, service),
        _ => claims.stream(listener, &[(service, 1)]),
    }
}

/// What claims refer to.
fn targets_of_claims() -> [Object; 3] {
    let (chain, key) = &PAIRS[0];
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("default", "one"),
        "type": "kubernetes.io/tls", "stringData": { "tls.crt": chain, "tls.key": key } });
    [object(&claimed_service("web")), object(&claimed_service("api")), object(&secret)]
}

/// Spans go to an extension that there is now and then.
fn tracing(form: u8) -> (ExtensionName, Arc<Tracing>) {
    let extension = ExtensionName { namespace: "one".into(), name: SERVICES[usize::from(form) % 2].into() };
    let tracing = Tracing { max_path: u32::from(form), ..Tracing::default() };
    (extension, Arc::new(tracing))
}

fn vary(settings: &mut Settings, form: u8) {
    settings.http_settings.merge_slashes = form.is_multiple_of(2);
    settings.https_settings.max_requests = form.is_multiple_of(3).then_some(7);
    settings.cluster.max_requests = form.is_multiple_of(5).then_some(9);
    settings.admin_port = if form.is_multiple_of(7) { 0 } else { 9001 };
    settings.http = Bind::any([8080, 9000][usize::from(form / 64) % 2]);
    settings.resolve.external_names = !form.is_multiple_of(11);
    settings.ingress.https_port = form.is_multiple_of(4).then_some(8443);
    settings.metrics = form.is_multiple_of(3).then(|| Bind::any([8002, 8003][usize::from(form) % 2]));
    settings.metrics_tls = form.is_multiple_of(6).then(|| {
        let ca = form.is_multiple_of(12).then(|| "/ca".into());
        Arc::new(MetricsTls { certificate: "/certificate".into(), key: "/key".into(), ca })
    });
    settings.overload_health = form.is_multiple_of(5).then(|| Bind::any(8004));
    settings.runtime.max_connections = form.is_multiple_of(4).then_some(u32::from(form) + 1);
    settings.runtime.max_requests_per_io_cycle = form.is_multiple_of(9).then_some(3);
    let values = form.is_multiple_of(7).then(|| ("some.key".into(), form.to_string().into()));
    settings.runtime.values = values.into_iter().collect();
    settings.tracing = form.is_multiple_of(5).then(|| tracing(form));
    settings.authorization = form.is_multiple_of(4).then(|| authorization(form));
    settings.rate_limit_service = form.is_multiple_of(6).then(|| {
        let service = RateLimitService { fail_open: form.is_multiple_of(12), ..RateLimitService::default() };
        (tracing(form / 2).0, service)
    });
    let secret = |number: u8| ObjectRef::new(kinds::kind::SECRET, "one", SECRETS[usize::from(number) % 2]);
    let certificate = form.is_multiple_of(3).then(|| secret(form));
    settings.ingress.client_certificate.clone_from(&certificate);
    settings.http_proxy.client_certificate = certificate;
    settings.http_proxy.fallback_certificate = form.is_multiple_of(8).then(|| secret(form / 8));
}

/// The authorization server for all routes.
fn authorization(form: u8) -> GlobalAuthorization {
    let server = AuthorizationServer { fail_open: form.is_multiple_of(8), ..AuthorizationServer::default() };
    GlobalAuthorization { extension: tracing(form / 4).0, settings: of_operator(&server).unwrap() }
}

impl Inputs {
    fn built(&self, withheld: &Withheld, reversed: bool) -> KnownServices {
        let mut pipeline = Pipeline::new(&self.settings);
        for (fleet, withheld) in withheld {
            pipeline.withhold_in(fleet, withheld.clone());
        }
        self.fleets.iter().for_each(|(number, settings)| pipeline.set_fleet(&fleet(*number), Some(settings.clone())));
        let mut objects: Vec<_> = self.objects.iter().collect();
        let mut claims: Vec<_> = self.claims.values().collect();
        if reversed {
            objects.reverse();
            claims.reverse();
        }
        objects.into_iter().for_each(|(key, object)| pipeline.put(key, Some(object.clone())));
        claims.into_iter().for_each(|claims| claims.clone().put(&mut pipeline));
        let mut known = KnownServices::default();
        known.on_outcome(pipeline.settle());
        known
    }
}

/// Takes note of what comes out.
fn reported(mut output: Output, known: &mut KnownServices, withheld: &mut Withheld) {
    if let Some(new) = output.withheld.take() {
        withheld.insert(FleetId::Shared, new);
    }
    for (fleet, output) in &mut output.fleets {
        if let Some(new) = output.withheld.take() {
            withheld.insert(fleet.clone(), new);
        }
    }
    known.on_outcome(output);
}

/// Computes a row as another thread would.
fn job(pipeline: &mut Pipeline) -> Option<Finished> {
    let job = pipeline.next_job()?;
    pipeline.lend();
    let finished = job.run();
    pipeline.take_back();
    Some(finished)
}

fn run(settings: &Settings, script: Vec<Edit>, offloading: Offloading) {
    let mut pipeline = Pipeline::new(settings);
    pipeline.set_offloading(offloading);
    let mut finished: VecDeque<Finished> = VecDeque::new();
    let (fleets, objects, all_claims) = Default::default();
    let mut inputs = Inputs { settings: settings.clone(), fleets, objects, claims: all_claims };
    for object in targets_of_claims() {
        pipeline.put(&object.key(), Some(object.clone()));
        inputs.objects.insert(object.key(), object);
    }
    let mut known = KnownServices::default();
    let (mut withheld, mut others): (Withheld, Withheld) = Default::default();
    for edit in script {
        match edit {
            Edit::Put(value) => {
                let object = object(&value);
                pipeline.put(&object.key(), Some(object.clone()));
                inputs.objects.insert(object.key(), object);
            }
            Edit::Remove(value) => {
                let key = object(&value).key();
                pipeline.put(&key, None);
                inputs.objects.remove(&key);
            }
            Edit::Settings(form) => {
                vary(&mut inputs.settings, form);
                pipeline.set_settings(&inputs.settings);
            }
            Edit::Fleet(number, there) => {
                // The shared fleet's are those of the operator.
                if number > 0 && there {
                    inputs.fleets.insert(number, fleet_settings(number));
                } else {
                    inputs.fleets.remove(&number);
                }
                if number > 0 {
                    pipeline.set_fleet(&fleet(number), inputs.fleets.get(&number).cloned());
                }
            }
            Edit::Claim(name, form) => {
                let claims = claim(name, form);
                if form.is_multiple_of(5) {
                    inputs.claims.remove(&name);
                    claims.remove(&mut pipeline);
                } else {
                    inputs.claims.insert(name, claims.clone());
                    claims.put(&mut pipeline);
                }
            }
            Edit::Step => {
                let mut output = Output::default();
                if pipeline.step_for(Duration::ZERO, &mut output) == Progress::Settled {
                    pipeline.finish(&mut output);
                }
                reported(output, &mut known, &mut withheld);
            }
            Edit::Settle => {
                reported(pipeline.settle(), &mut known, &mut withheld);
                known.assert_whole();
            }
            Edit::Admit(partitions) => pipeline.admit(partitions),
            Edit::Job => finished.extend(job(&mut pipeline)),
            Edit::Finish => {
                if let Some(finished) = finished.pop_front() {
                    drop(pipeline.finish_job(finished));
                }
            }
            Edit::Check => {
                // A job has a place in the books until it is done.
                finished.drain(..).for_each(|finished| drop(pipeline.finish_job(finished)));
                pipeline.self_check().unwrap();
                reported(pipeline.settle(), &mut known, &mut withheld);
            }
            Edit::Refuse(which) => {
                let Some((fleet, outcome)) = known.refusal(which) else { continue };
                pipeline.on_outcome_in(&fleet, &outcome);
                reported(pipeline.settle(), &mut known, &mut withheld);
            }
            Edit::Share(some) => {
                for fleet in (0..3).map(fleet) {
                    let list = if some { withheld.get(&fleet).cloned().unwrap_or_default() } else { Vec::new() };
                    pipeline.withhold_in(&fleet, list.clone());
                    others.insert(fleet, list);
                }
            }
        }
    }
    // Jobs and parts alone bring everything up to date.
    finished.into_iter().for_each(|finished| drop(pipeline.finish_job(finished)));
    loop {
        let mut output = Output::default();
        while pipeline.step(&mut output) == Progress::More {}
        pipeline.finish(&mut output);
        reported(output, &mut known, &mut withheld);
        if pipeline.backlog() > 0 {
            pipeline.admit(1);
            continue;
        }
        let Some(finished) = job(&mut pipeline) else { break };
        drop(pipeline.finish_job(finished));
    }
    assert_eq!((pipeline.engine().offloaded(), pipeline.backlog()), (0, 0));
    known.assert_whole();
    // What waits for others to be tried is taken, at last.
    loop {
        let output = pipeline.settle();
        let probes = output.probes.iter().map(|probe| (FleetId::Shared, probe.clone()));
        let named =
            output.fleets.iter().flat_map(|(fleet, of)| of.probes.iter().map(|probe| (fleet.clone(), probe.clone())));
        let probe = probes.chain(named).next();
        reported(output, &mut known, &mut withheld);
        let Some((fleet, (kind, name))) = probe else { break };
        let outcome = ResourceOutcome { kind, name, version: 0, content: 0, outcome: Outcome::Taken };
        pipeline.on_outcome_in(&fleet, &outcome);
    }
    for (fleet, list) in others {
        withheld.entry(fleet).or_default().extend(list);
    }
    known.assert_whole();
    pipeline.self_check().unwrap();
    assert_eq!(known, inputs.built(&withheld, false), "a build from nothing differs");
    assert_eq!(known, inputs.built(&withheld, true), "the order of the objects matters");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_ends_where_a_build_from_nothing_does(
        script in vec(edit(), 1..60),
        scoped in any::<bool>(),
        on_demand in any::<bool>(),
        offloads in any::<bool>(),
    ) {
        let packing = if scoped { Packing::Scoped } else { Packing::Plain };
        let certificates = if on_demand { Certificates::OnDemand } else { Certificates::PerChain };
        let mut settings = Settings { packing, certificates, ..Settings::default() };
        settings.resolve.external_names = true;
        run(&settings, script, if offloads { Offloading::All } else { Offloading::Off });
    }
}

/// The shared fleet loses one user of a cluster and gets another while the row that counts its users is computed elsewhere.
#[test]
fn a_cluster_whose_users_change_keeps_its_endpoints() {
    let backend = json!({ "service": { "name": "api", "port": { "number": 80 } } });
    let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta("default", "a"),
        "spec": { "rules": [{ "http": { "paths": [{ "path": "/", "pathType": "Exact", "backend": backend }] } }] } });
    let mut slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": meta("default", "api"), "endpoints": [{ "addresses": ["192.0.2.1"] }], "ports": [{ "port": 8080 }] });
    slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": "api" });
    let (before, after) = ([Edit::Claim(0, 10336), Edit::Claim(2, 14626), Edit::Settle], Edit::Claim(2, 27904));
    let script = before.into_iter().chain([after, Edit::Put(ingress), Edit::Put(slice), Edit::Step, Edit::Job]);
    let certificates = Certificates::PerChain;
    run(&Settings { certificates, ..Settings::default() }, script.collect(), Offloading::All);
}

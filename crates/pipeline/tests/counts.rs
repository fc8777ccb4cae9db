//! How little is done: an edit costs what depends on it, however many objects there are.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "counts/emissary.rs"]
mod emissary;
#[path = "counts/gateway.rs"]
mod gateway;
#[path = "counts/includes.rs"]
mod includes;
#[path = "counts/jwt.rs"]
mod jwt;
#[path = "counts/redirects.rs"]
mod redirects;
#[path = "counts/references.rs"]
mod references;

use model::Timeout;
use pipeline::{Pipeline, Settings, settings::Packing};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use testbed::cases::object;
use xds::{Kind, Outcome, ResourceOutcome};

const MANY: usize = 10_000;

fn ingress(number: usize, path: &str) -> kinds::Object {
    let backend = json!({ "service": { "name": format!("web-{number}"), "port": { "number": 80 } } });
    let paths = json!([{ "path": path, "pathType": "Prefix", "backend": backend }]);
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": format!("web-{number}") },
        "spec": { "rules": [{ "host": format!("web-{number}.example.com"), "http": { "paths": paths } }] },
    }))
}

fn service(number: usize) -> kinds::Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": format!("web-{number}") },
        "spec": { "ports": [{ "port": 80 }] },
    }))
}

fn slice(number: usize, address: &str) -> kinds::Object {
    object(&json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": format!("web-{number}"), "labels": { "kubernetes.io/service-name": format!("web-{number}") } },
        "ports": [{ "port": 8080 }], "endpoints": [{ "addresses": [address] }],
    }))
}

/// A pipeline with many Ingresses, and what each table has computed so far.
struct Bed {
    pipeline: Pipeline,
    before: BTreeMap<&'static str, u64>,
    /// What came out at first.
    first: pipeline::Output,
}

impl Bed {
    fn new(packing: Packing) -> Self {
        let objects = |number| [ingress(number, "/"), service(number), slice(number, "192.0.2.1")];
        Self::of(packing, (0..MANY).flat_map(objects))
    }

    fn of(packing: Packing, objects: impl IntoIterator<Item = kinds::Object>) -> Self {
        let mut pipeline = Pipeline::new(&Settings { packing, ..Settings::default() });
        for object in objects {
            pipeline.put(&object.key(), Some(object));
        }
        let first = pipeline.settle();
        let before = computed(&pipeline);
        Self { pipeline, before, first }
    }

    /// Puts an object; gives what came out, and how often each table computed a row because of it.
    fn put(&mut self, object: kinds::Object) -> (pipeline::Output, BTreeMap<&'static str, u64>) {
        self.pipeline.put(&object.key(), Some(object));
        self.settle()
    }

    /// Does something; gives what it gave, and how much was read from outside of the engine.
    fn reads<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> (R, u64) {
        let before = self.pipeline.engine().outside_reads();
        let result = act(self);
        (result, self.pipeline.engine().outside_reads() - before)
    }

    fn settle(&mut self) -> (pipeline::Output, BTreeMap<&'static str, u64>) {
        let output = self.pipeline.settle();
        let after = computed(&self.pipeline);
        let difference = after.iter().map(|(name, count)| (*name, count - self.before[name])).filter(|(_, n)| *n > 0);
        let difference = difference.collect();
        self.before = after;
        (output, difference)
    }
}

fn computed(pipeline: &Pipeline) -> BTreeMap<&'static str, u64> {
    pipeline.engine().counters().iter().map(|table| (table.name, table.computed)).collect()
}

#[test]
fn an_edit_costs_what_depends_on_it_among_ten_thousand() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut bed = Bed::new(packing);
        one_route_costs_a_handful(&mut bed);
        an_endpoint_wakes_only_endpoints(&mut bed);
        a_service_that_nobody_uses_costs_nothing_further(&mut bed);
    }
}

fn one_route_costs_a_handful(bed: &mut Bed) {
    let (output, computed) = bed.put(ingress(4711, "/other"));
    let total: u64 = computed.values().sum();
    assert!(total <= 12, "{total} rows were computed: {computed:?}");
    assert_eq!(output.xds.upserts.len(), 1, "{:?}", output.xds.upserts);
    assert!(output.object_resources.len() <= 1, "{:?}", output.object_resources);
    // What says the same is no edit at all.
    let (output, computed) = bed.put(ingress(4711, "/other"));
    assert!(computed.values().sum::<u64>() <= 1 && output.xds.upserts.is_empty(), "{computed:?}");
}

fn an_endpoint_wakes_only_endpoints(bed: &mut Bed) {
    let (output, computed) = bed.put(slice(4711, "192.0.2.2"));
    let tables: Vec<&str> = computed.keys().copied().collect();
    assert_eq!(tables, ["endpoint resources", "endpointslices"], "{computed:?}");
    assert!(computed.values().all(|&count| count == 1), "{computed:?}");
    let told: Vec<_> = output.xds.upserts.iter().map(|resource| (resource.kind, &*resource.name)).collect();
    assert_eq!(told, [(xds::Kind::Endpoints, "default/web-4711/80")]);
    assert!(output.verdicts.is_empty() && output.xds.removes.is_empty());
}

/// The outcome that all proxies rejected a resource; `held` is what they have of it.
fn rejected(resource: &xds::Resource, held: Option<Arc<xds::Entry>>) -> ResourceOutcome {
    let version = xds::content_version(&resource.body);
    let outcome = Outcome::Rejected { text: "no".into(), held };
    ResourceOutcome { kind: resource.kind, name: resource.name.clone(), version, content: version, outcome }
}

/// What a rejection and edits beside it cost: rows computed, and rows and index keys read from outside of the engine.
#[test]
fn a_rejection_costs_what_it_withholds_among_ten_thousand() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let server = xds::Server::new(xds::Config::default());
        let publish = |changes: xds::Changes| {
            server.publish(xds::Batch { fleet: xds::Fleet::Shared, changes }).unwrap();
            server.acks(&xds::Fleet::Shared).unwrap().snapshot().unwrap()
        };
        let mut bed = Bed::new(packing);
        publish(std::mem::take(&mut bed.first.xds));
        let (output, alone) = bed.reads(|bed| bed.put(ingress(4711, "/beside-nothing")).0);
        let mut snapshot = publish(output.xds);
        for number in 0..20 {
            let (output, _) = bed.put(ingress(number, "/bad"));
            let bad = output.xds.upserts[0].clone();
            let held = snapshot.get(bad.kind, &bad.name).cloned();
            publish(output.xds);
            bed.pipeline.on_outcome(&rejected(&bad, held));
            let ((output, computed), reads) = bed.reads(Bed::settle);
            let total: u64 = computed.values().sum();
            assert!(total <= 12, "{packing:?}: {total} rows were computed: {computed:?}");
            assert!(reads <= 12, "{packing:?}: {reads} reads");
            assert_eq!(output.withheld.map(|list| list.len()), Some(number + 1), "{packing:?}");
            snapshot = publish(output.xds);
        }
        let ((output, computed), reads) = bed.reads(|bed| bed.put(ingress(4711, "/beside-others")));
        assert!(computed.values().sum::<u64>() <= 12, "{packing:?}: {computed:?}");
        assert_eq!(reads, alone, "{packing:?}: what is withheld costs nothing beside it");
        assert!(output.withheld.is_none());
        let ((output, computed), reads) = bed.reads(|bed| bed.put(ingress(7, "/good")));
        assert!(computed.values().sum::<u64>() <= 24, "{packing:?}: {computed:?}");
        assert!(reads <= alone + 4, "{packing:?}: {reads} reads");
        assert_eq!(output.withheld.map(|list| list.len()), Some(19), "{packing:?}: an edit ends it");
    }
}

/// An outcome of a version that is no longer made withholds nothing.
#[test]
fn an_outcome_that_comes_late_withholds_nothing() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut bed = Bed::new(packing);
        let bad = bed.put(ingress(1, "/bad")).0.xds.upserts[0].clone();
        bed.put(ingress(1, "/good"));
        bed.pipeline.on_outcome(&rejected(&bad, None));
        let (output, _) = bed.settle();
        assert!(output.xds.upserts.is_empty() && output.verdicts.is_empty(), "{packing:?}");
        assert!(output.withheld.is_none_or(|list| list.is_empty()), "{packing:?}");
    }
}

/// A stand-in that is rejected, too, leaves nothing to try, and the version that it stands in for stays withheld.
#[test]
fn a_rejected_stand_in_changes_nothing() {
    let mut bed = Bed::new(Packing::Scoped);
    let bad = bed.put(ingress(1, "/bad")).0.xds.upserts[0].clone();
    bed.pipeline.on_outcome(&rejected(&bad, None));
    let stand_in = bed.settle().0.xds.upserts[0].clone();
    assert_eq!(stand_in.role, xds::Role::StandIn);
    bed.pipeline.on_outcome(&rejected(&stand_in, None));
    let (output, _) = bed.settle();
    assert!(output.xds.upserts.is_empty() && output.withheld.is_none(), "{:?}", output.xds.upserts);
    bed.pipeline.self_check().unwrap();
}

fn a_service_that_nobody_uses_costs_nothing_further(bed: &mut Bed) {
    let (output, computed) = bed.put(service(MANY));
    assert!(computed.values().sum::<u64>() <= 2, "{computed:?}");
    assert!(output.xds.upserts.is_empty() && output.verdicts.is_empty());
}

/// An Ingress of many hosts with as many paths each as an API server lets one have; the first path of one of them is another.
fn wide(hosts: usize, paths: usize, other: Option<usize>) -> kinds::Object {
    let backend = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let rules = (0..hosts).map(|host| {
        let path = |at: usize| if at == 0 && other == Some(host) { "/other".to_owned() } else { format!("/{at}") };
        let paths = (0..paths).map(|at| json!({ "path": path(at), "pathType": "Prefix", "backend": backend }));
        json!({ "host": format!("h{host}.example.com"), "http": { "paths": paths.collect::<Vec<_>>() } })
    });
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "wide" },
        "spec": { "rules": rules.collect::<Vec<_>>() },
    }))
}

/// A root HTTPProxy with so many children.
fn root(children: usize) -> impl Iterator<Item = kinds::Object> {
    let proxy = |name: String, spec: serde_json::Value| {
        object(&json!({
            "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name }, "spec": spec,
        }))
    };
    let includes: Vec<_> = (0..children)
        .map(|child| json!({ "name": format!("child-{child}"), "conditions": [{ "prefix": format!("/{child}") }] }))
        .collect();
    let spec = json!({ "virtualhost": { "fqdn": "root.example.com" }, "includes": includes });
    let children = (0..children).map(move |number| proxy(format!("child-{number}"), child(200)));
    std::iter::once(proxy("root".to_owned(), spec)).chain(children)
}

fn child(status: u16) -> serde_json::Value {
    json!({ "routes": [{ "directResponsePolicy": { "statusCode": status } }] })
}

#[test]
fn a_path_of_one_host_among_a_thousand_of_an_object_costs_one_virtual_host() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut bed = Bed::of(packing, [wide(1_000, 28, None)]);
        let (_, computed) = bed.put(wide(1_000, 28, Some(7)));
        // Under TLS it is not there without a certificate.
        assert_eq!(computed["virtual hosts"], 1, "{computed:?}");
        let total: u64 = computed.values().sum();
        assert!(total <= 10, "{total} rows were computed: {computed:?}");
        assert_eq!(bed.pipeline.self_check(), Ok(()));
    }
}

#[test]
fn a_child_among_a_thousand_of_a_root_costs_the_one_virtual_host_of_the_root() {
    let mut bed = Bed::of(Packing::Scoped, root(1_000));
    let changed = object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "child-7" }, "spec": child(201),
    }));
    let (_, computed) = bed.put(changed);
    assert_eq!(computed["virtual hosts"], 1, "{computed:?}");
    // The other children are not looked at: neither what is said about them, nor what carries them, depends on this one.
    assert_eq!(computed.get("verdicts").copied().unwrap_or_default(), 0, "{computed:?}");
    assert!(computed["object resources"] <= 1_001, "{computed:?}");
    assert_eq!(bed.pipeline.self_check(), Ok(()));
}

/// The rows, and the records of what they read, that an object of so many hosts takes.
fn size(hosts: usize, paths: usize) -> (usize, usize) {
    let bed = Bed::of(Packing::Scoped, [wide(hosts, paths, None)]);
    let counters = bed.pipeline.engine().counters();
    (counters.iter().map(|table| table.rows).sum(), counters.iter().map(|table| table.reads).sum())
}

#[test]
fn an_object_of_many_hosts_and_paths_costs_what_it_has_and_not_its_square() {
    let ((few_rows, few_reads), (many_rows, many_reads)) = (size(100, 20), size(1_000, 20));
    assert!(
        many_rows <= 10 * few_rows && many_reads <= 10 * few_reads,
        "{few_rows} {many_rows} {few_reads} {many_reads}"
    );
    // Paths are in their host's row alone.
    let (longer_rows, longer_reads) = size(100, 90);
    assert_eq!((longer_rows, longer_reads), (few_rows, few_reads));
    // Each path is in one virtual host.
    let bed = Bed::of(Packing::Scoped, [wide(300, 28, None)]);
    let hosts = bed.pipeline.engine().rows::<pipeline::hosts::VirtualHosts>();
    assert_eq!(hosts.map(|(_, host)| host.host.routes.len()).sum::<usize>(), 300 * 28);
}

fn certificate() -> kinds::Object {
    certificate_in("cert")
}

fn certificate_in(name: &str) -> kinds::Object {
    let leaf = testbed::certs::Ca::new("counts").leaf("*.example.com").make();
    object(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": { "name": name },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() },
    }))
}

/// A host that asks the authorization server of an ExtensionService.
fn authorized(number: usize) -> kinds::Object {
    let fqdn = format!("web-{number}.example.com");
    let authorization = json!({ "extensionRef": { "name": "auth" } });
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": format!("web-{number}") },
        "spec": {
            "virtualhost": { "fqdn": fqdn, "tls": { "secretName": "cert" }, "authorization": authorization },
            "routes": [{ "services": [{ "name": "web-0", "port": 80 }] }],
        },
    }))
}

/// The endpoints of a server that a thousand hosts ask cost what the endpoints of any Service cost.
#[test]
fn endpoints_of_an_extension_service_wake_only_endpoints() {
    const HOSTS: usize = 1_000;
    let extension = object(&json!({
        "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService", "metadata": { "name": "auth" },
        "spec": { "protocol": "h2c", "services": [{ "name": "web-1", "port": 80 }, { "name": "web-2", "port": 80 }] },
    }));
    for packing in [Packing::Plain, Packing::Scoped] {
        let servers = (0..3).flat_map(|number| [service(number), slice(number, "192.0.2.1")]);
        let objects = servers.chain([extension.clone(), certificate()]).chain((0..HOSTS).map(authorized));
        let mut bed = Bed::of(packing, objects);
        for address in ["192.0.2.2", "192.0.2.3"] {
            let (output, computed) = bed.put(slice(1, address));
            let expected = BTreeMap::from([("endpoint resources", 1), ("endpointslices", 1)]);
            assert_eq!(computed, expected, "{packing:?}");
            let told: Vec<_> = output.xds.upserts.iter().map(|resource| (resource.kind, &*resource.name)).collect();
            assert_eq!(told, [(Kind::Endpoints, "extension/default/auth")], "{packing:?}");
            assert!(output.verdicts.is_empty() && output.xds.removes.is_empty());
        }
    }
}

/// A timeout of listeners is no edit of hosts, and one of clusters is none of listeners.
#[test]
fn a_changed_timeout_publishes_what_differs_among_ten_thousand() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut bed = Bed::new(packing);
        let mut settings = Settings { packing, ..Settings::default() };
        let mut published = |settings: &Settings| {
            bed.pipeline.set_settings(settings);
            let (output, computed) = bed.settle();
            assert!(output.xds.removes.is_empty());
            let sent = output.xds.upserts.iter().map(|it| (it.kind, it.name.to_string())).collect::<Vec<_>>();
            (sent, computed.values().sum::<u64>())
        };
        settings.http_settings.connection_idle = Timeout::After(Duration::from_secs(61));
        settings.https_settings.connection_idle = Timeout::After(Duration::from_secs(61));
        let (sent, computed) = published(&settings);
        assert_eq!(sent, [(Kind::Listener, "ingress_http".to_owned())]);
        assert!(computed < 100, "{computed} rows");
        settings.cluster.connect_timeout = Duration::from_secs(3);
        let (sent, _) = published(&settings);
        assert!(sent.len() == MANY && sent.iter().all(|(kind, _)| *kind == Kind::Cluster), "{}", sent.len());
        assert_eq!(published(&settings).0, [], "nothing has changed");
    }
}

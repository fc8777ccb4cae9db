//! What a Mapping of Emissary costs among many Hosts.

use super::{Bed, service};
use pipeline::settings::Packing;
use serde_json::json;
use testbed::cases::object;
use xds::Kind;

/// Of how many Hosts and Mappings of Emissary these tests are.
const HOSTS: usize = 100;

fn emissary(kind: &str, name: &str, spec: &serde_json::Value) -> kinds::Object {
    let metadata = json!({ "name": name });
    object(&json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind, "metadata": metadata, "spec": spec }))
}

/// A Mapping for a host name.
fn mapping(number: usize, hostname: &str, path: &str) -> kinds::Object {
    let spec =
        json!({ "hostname": hostname, "prefix": format!("{path}/{number}/"), "service": format!("web-{number}") });
    emissary("Mapping", &format!("web-{number}"), &spec)
}

fn host_of(number: usize) -> String {
    format!("web-{number}.example.com")
}

/// A Listener, Hosts, and as many Mappings, each for the host name that it is given.
fn mappings(hostname: fn(usize) -> String) -> impl Iterator<Item = kinds::Object> {
    let binding = json!({ "namespace": { "from": "ALL" } });
    let spec = json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding });
    let listener = emissary("Listener", "http", &spec);
    let objects = move |number: usize| {
        let policy = json!({ "insecure": { "action": "Route" } });
        let spec = json!({ "hostname": host_of(number), "requestPolicy": policy });
        let host = emissary("Host", &format!("web-{number}"), &spec);
        [host, service(number), mapping(number, &hostname(number), "/a")]
    };
    std::iter::once(listener).chain((0..HOSTS).flat_map(objects))
}

/// Neither the first build nor an edit looks at Hosts that a Mapping is not for.
#[test]
fn a_mapping_costs_its_own_host_among_many() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut bed = Bed::of(packing, mappings(host_of));
        let most = bed.before.iter().max_by_key(|(_, computed)| **computed).unwrap();
        assert!(*most.1 <= 4 * HOSTS as u64, "{packing:?}: {most:?}");
        let reads: usize = bed.pipeline.engine().counters().iter().map(|table| table.reads).sum();
        assert!(reads <= 200 * HOSTS, "{packing:?}: {reads} reads are kept");
        let (output, computed) = bed.put(mapping(7, &host_of(7), "/other"));
        let total: u64 = computed.values().sum();
        assert!(total <= 16, "{packing:?}: {total} rows were computed: {computed:?}");
        assert_eq!(output.xds.upserts.len(), 1, "{packing:?}: {:?}", output.xds.upserts);
    }
}

/// Where every Host has all Mappings, they are gathered once, and an edit makes each Host once.
#[test]
fn a_mapping_for_every_host_is_gathered_once() {
    for packing in [Packing::Plain, Packing::Scoped] {
        let mut bed = Bed::of(packing, mappings(|_| "*".to_owned()));
        let most = bed.before.iter().max_by_key(|(_, computed)| **computed).unwrap();
        assert!(*most.1 <= 4 * HOSTS as u64, "{packing:?}: {most:?}");
        let (_, computed) = bed.put(mapping(7, "*", "/other"));
        assert_eq!(computed.get("selected routes"), Some(&1), "{packing:?}: {computed:?}");
        let most = computed.iter().max_by_key(|(_, computed)| **computed).unwrap();
        assert!(*most.1 <= HOSTS as u64 + 1, "{packing:?}: {most:?}");
    }
}

/// The types of the resources that carry routes, in order, and their bytes.
fn routes_in(output: &pipeline::Output) -> (Vec<Kind>, usize) {
    let routes = output.xds.upserts.iter().filter(|it| matches!(it.kind, Kind::Route | Kind::ScopedRoute));
    let mut kinds: Vec<Kind> = routes.clone().map(|it| it.kind).collect();
    kinds.sort();
    (kinds, routes.map(|it| it.body.len()).sum())
}

/// Hosts with equal routes share one resource: what is sent grows with Hosts and Mappings, not with their product, and an edit is sent
/// once. A Host that a Mapping names has a resource of its own, for as long as it does.
#[test]
fn hosts_with_equal_routes_share_one_resource() {
    let mut bed = Bed::of(Packing::Scoped, mappings(|_| "*".to_owned()));
    let (kinds, bytes) = routes_in(&bed.first);
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Route).count(), 1);
    // One for each Host, one that keeps the routes at hand, and one for all other names of the port.
    assert_eq!(kinds.len(), 1 + HOSTS + 2, "{kinds:?}");
    assert!(bytes <= 100_000, "{bytes} bytes");

    let (output, computed) = bed.put(mapping(7, "*", "/other"));
    assert_eq!(output.xds.upserts.len(), 1, "{:?}", output.xds.upserts);
    assert_eq!(routes_in(&output).0, [Kind::Route]);
    assert_eq!((computed.get("routes of equal hosts"), computed.get("shared route resources")), (Some(&1), Some(&1)));

    let (output, _) = bed.put(mapping(7, &host_of(7), "/own"));
    assert_eq!(routes_in(&output).0, [Kind::Route, Kind::ScopedRoute], "its routes are those of one Host now");
    assert!(output.xds.removes.is_empty());
    let (output, _) = bed.put(mapping(7, "*", "/other"));
    assert_eq!(routes_in(&output).0, [Kind::Route, Kind::ScopedRoute]);
    assert_eq!(bed.pipeline.self_check(), Ok(()));
}

/// The same where Hosts have a certificate and answer without TLS, too: a list for each port, and one for plaintext on the port of TLS, however
/// many Hosts name it.
#[test]
fn hosts_with_tls_share_one_resource_on_each_port() {
    let leaf = testbed::certs::Ca::new("hosts").leaf("*.example.com").make();
    let secret = object(&json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": "cert" }, "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } }));
    let listener = |name: &str, port: u16, protocol: &str| {
        let binding = json!({ "namespace": { "from": "ALL" } });
        let spec = json!({ "port": port, "protocol": protocol, "securityModel": "XFP", "hostBinding": binding });
        emissary("Listener", name, &spec)
    };
    let objects = |number: usize| {
        let policy = json!({ "insecure": { "action": "Route" } });
        let spec = json!({ "hostname": host_of(number), "tlsSecret": { "name": "cert" }, "requestPolicy": policy });
        [emissary("Host", &format!("web-{number}"), &spec), service(number), mapping(number, "*", "/a")]
    };
    let listeners = [listener("http", 8080, "HTTP"), listener("https", 8443, "HTTPS")];
    let mut bed = Bed::of(Packing::Scoped, listeners.into_iter().chain([secret]).chain((0..HOSTS).flat_map(objects)));
    let (kinds, bytes) = routes_in(&bed.first);
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Route).count(), 3, "{kinds:?}");
    assert!(bytes <= 200_000, "{bytes} bytes");
    let (output, _) = bed.put(mapping(7, "*", "/other"));
    assert_eq!(routes_in(&output).0, [Kind::Route, Kind::Route, Kind::Route]);
    assert_eq!(bed.pipeline.self_check(), Ok(()));
}

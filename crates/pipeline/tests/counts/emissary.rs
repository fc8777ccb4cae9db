//! What a Mapping of Emissary costs among many Hosts.

use super::{Bed, service};
use pipeline::settings::Packing;
use serde_json::json;
use testbed::cases::object;

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

//! What an object that one of many hosts refers to costs: a Secret, an IngressClass, a delegation.

use super::{Bed, service, slice};
use kinds::Object;
use pipeline::settings::Packing;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testbed::{cases::object, certs::Ca};
use xds::Kind;

const HOSTS: usize = 300;

/// The most rows that an edit of one host's own may compute.
const HANDFUL: u64 = 20;
/// The same where the host gets another filter chain: that has slots of its own.
const HANDFUL_WITH_CHAIN: u64 = 40;

fn host(number: usize) -> String {
    format!("web-{number}.example.com")
}

fn ingress(number: usize, mut spec: Value) -> Object {
    let backend = json!({ "service": { "name": "web-0", "port": { "number": 80 } } });
    let paths = json!([{ "path": "/", "pathType": "Prefix", "backend": backend }]);
    spec["rules"] = json!([{ "host": host(number), "http": { "paths": paths } }]);
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": format!("web-{number}") },
        "spec": spec,
    }))
}

fn proxy(number: usize, secret: &str) -> Object {
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": format!("web-{number}") },
        "spec": {
            "virtualhost": { "fqdn": host(number), "tls": { "secretName": secret } },
            "routes": [{ "services": [{ "name": "web-0", "port": 80 }] }],
        },
    }))
}

/// A certificate for the hosts.
fn pair() -> Value {
    let leaf = Ca::new("counts").leaf("*.example.com").make();
    json!({ "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() })
}

fn secret(namespace: &str, number: usize, pair: &Value) -> Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": format!("cert-{number}"), "namespace": namespace }, "stringData": pair,
    }))
}

fn class(name: &str, controller: &str) -> Object {
    object(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": { "name": name },
        "spec": { "controller": controller },
    }))
}

fn delegation(number: usize, to: &str) -> Object {
    let delegation = json!({ "secretName": format!("cert-{number}"), "targetNamespaces": [to] });
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "TLSCertificateDelegation",
        "metadata": { "name": format!("cert-{number}"), "namespace": "certs" }, "spec": { "delegations": [delegation] },
    }))
}

fn backend() -> [Object; 2] {
    [service(0), slice(0, "192.0.2.1")]
}

fn is_handful(computed: &BTreeMap<&'static str, u64>) {
    let total: u64 = computed.values().sum();
    let most = if computed.contains_key("encoded chains") { HANDFUL_WITH_CHAIN } else { HANDFUL };
    assert!((1..=most).contains(&total), "{total} rows were computed: {computed:?}");
}

/// The codes of what is newly said about objects.
fn codes(output: &pipeline::Output) -> Vec<String> {
    let lists = output.verdicts.iter().filter_map(|(_, list)| list.as_deref());
    lists.flatten().map(|verdict| verdict.code.to_string()).collect()
}

/// A renewed certificate is one secret for proxies, and no host is translated or assembled again.
#[test]
fn a_renewed_secret_among_hundreds_of_hosts_is_one_secret() {
    let tls = |number: usize| {
        ingress(number, json!({ "tls": [{ "hosts": [host(number)], "secretName": format!("cert-{number}") }] }))
    };
    let (old, new) = (pair(), pair());
    for packing in [Packing::Plain, Packing::Scoped] {
        let hosts = (0..HOSTS).map(|number| match number % 2 {
            0 => tls(number),
            _ => proxy(number, &format!("cert-{number}")),
        });
        let secrets = (0..HOSTS).map(|number| secret("default", number, &old));
        let mut bed = Bed::of(packing, hosts.chain(secrets).chain(backend()));
        for number in [70, 71] {
            let (output, computed) = bed.put(secret("default", number, &new));
            let sent: Vec<Kind> = output.xds.upserts.iter().map(|resource| resource.kind).collect();
            assert!(sent == [Kind::Secret] && output.xds.removes.is_empty(), "{packing:?}: {sent:?}");
            is_handful(&computed);
            assert!(!computed.contains_key("virtual hosts"), "{computed:?}");
        }
        assert_eq!(bed.pipeline.self_check(), Ok(()));
    }
}

/// A class that becomes Sesame's, or another controller's, costs the Ingresses of that class.
#[test]
fn an_ingress_class_costs_the_ingresses_of_that_class() {
    const OURS: &str = "projectsesame.io/ingress-controller";
    for packing in [Packing::Plain, Packing::Scoped] {
        let ingresses = (0..HOSTS).map(|number| {
            let name = if number == 70 { "other" } else { "shop" };
            ingress(number, json!({ "ingressClassName": name }))
        });
        let classes = [class("shop", OURS), class("other", "example.com/other")];
        let mut bed = Bed::of(packing, ingresses.chain(classes).chain(backend()));
        assert_eq!(bed.pipeline.engine().rows::<pipeline::hosts::VirtualHosts>().count(), HOSTS - 1);
        let (output, computed) = bed.put(class("other", OURS));
        is_handful(&computed);
        assert!(!output.xds.upserts.is_empty(), "{packing:?}: the host is served");
        assert_eq!(bed.pipeline.engine().rows::<pipeline::hosts::VirtualHosts>().count(), HOSTS);
        let (_, computed) = bed.put(class("other", "example.com/other"));
        is_handful(&computed);
        assert_eq!(bed.pipeline.engine().rows::<pipeline::hosts::VirtualHosts>().count(), HOSTS - 1);
        assert_eq!(bed.pipeline.self_check(), Ok(()));
    }
}

/// A delegation that is withdrawn, or given again, costs the hosts that use its Secret.
#[test]
fn a_delegation_that_is_withdrawn_costs_the_host_that_used_it() {
    let pair = pair();
    for packing in [Packing::Plain, Packing::Scoped] {
        let of = |number: usize| {
            let secret = secret("certs", number, &pair);
            [proxy(number, &format!("certs/cert-{number}")), secret, delegation(number, "default")]
        };
        let mut bed = Bed::of(packing, (0..HOSTS).flat_map(of).chain(backend()));
        let (output, computed) = bed.put(delegation(70, "elsewhere"));
        is_handful(&computed);
        assert_eq!(codes(&output), ["SES3201"], "{packing:?}");
        let (output, computed) = bed.put(delegation(70, "default"));
        is_handful(&computed);
        assert_eq!(codes(&output), [""; 0], "{packing:?}");
        assert_eq!(bed.pipeline.self_check(), Ok(()));
    }
}

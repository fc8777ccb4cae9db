//! Objects of Emissary on a real API server: the fields of status that its CRDs keep, events with code and field for every kind, and
//! instances of several ids, each of which reads and tells its own objects alone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testbed::certs::Ca;
use testbed::{Net, eventually};

use crate::bed::{Bed, Replica, TIMEOUT};

/// An object of each kind about which there is something to say, and how its event begins. The resolvers of Kubernetes have no
/// field that could be wrong.
const BAD: &[(&str, &str, &str, &str)] = &[
    ("Mapping", "bad", "hostname: '*', prefix: /bad/, service: gone", "SES3001: spec.service: "),
    ("TCPMapping", "bad", "port: 9999, service: gone", "SES3001: spec.service: "),
    ("Host", "bad", "hostname: bad.example.com, tlsSecret: {name: gone}", "SES3101: spec.tlsSecret: "),
    (
        "Listener",
        "bad",
        "port: 9998, protocol: HTTP, securityModel: XFP, l7Depth: -1, hostBinding: {namespace: {from: SELF}}",
        "SES9110: spec.l7Depth: ",
    ),
    ("TLSContext", "bad", "cipher_suites: [RC4-MD5]", "SES9104: spec.cipher_suites: "),
    ("Module", "ambassador", "config: {admin_port: 9000}", "SES9002: spec.config.admin_port: "),
    (
        "AuthService",
        "bad",
        "auth_service: 'auth.example.org:80', protocol_version: v2",
        "SES9102: spec.protocol_version: ",
    ),
    (
        "RateLimitService",
        "bad",
        "service: 'limits.example.org:80', protocol_version: v2",
        "SES9210: spec.protocol_version: ",
    ),
    (
        "LogService",
        "bad",
        "service: 'log.example.org:80', driver: tcp, flush_interval_time: 0",
        "SES9213: spec.flush_interval_time: ",
    ),
    ("TracingService", "bad", "service: 'localhost:9411', driver: zipkin", "SES9212: spec.service: "),
    ("ConsulResolver", "bad", "address: 'consul.example.org:8500', datacenter: dc1", "SES9101: spec: "),
    ("DevPortal", "bad", "default: true", "SES9001: spec: "),
];

const LISTENER: &str = "port: 8080, protocol: HTTP, securityModel: XFP, hostBinding: {namespace: {from: SELF}}";

/// An instance of that id, and its user: the audit log tells what each has done. All are of one namespace unless flags say otherwise,
/// and write under the same name.
async fn instance(bed: &Bed, id: &str, flags: &[(&str, &str)], variables: &[(&str, &str)]) -> Replica {
    let name = instance_name(id);
    let kubeconfig = bed.api.kubeconfig_as(&name, &["system:masters"]).unwrap();
    let own = [("kubeconfig", kubeconfig.to_str().unwrap()), ("leader-election-resource-name", &*name)];
    let flags: Vec<_> = own.into_iter().chain(flags.iter().copied()).collect();
    let variables: Vec<_> = [("AMBASSADOR_ID", id)].into_iter().chain(variables.iter().copied()).collect();
    bed.replica_in(&name, Net::here().unwrap().address(), &flags, &variables).await.ready().await
}

fn instance_name(id: &str) -> String {
    format!("sesame-{id}")
}

/// An object for the instance of an id; the default one need not be named.
async fn apply(bed: &Bed, id: &str, namespace: &str, kind: &str, name: &str, labels: &str, spec: &str) {
    let id = if id == "default" { String::new() } else { format!("ambassador_id: ['{id}'], ") };
    let metadata = format!("{{name: {name}, namespace: {namespace}, labels: {{{labels}}}}}");
    let api_version = "getambassador.io/v3alpha1";
    let yaml = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}\nspec: {{{id}{spec}}}\n");
    bed.api.apply(&yaml).await.unwrap();
}

/// A Secret `cert` with a certificate for a host.
async fn apply_certificate(bed: &Bed, namespace: &str, host: &str) {
    let leaf = Ca::new("hosts").leaf(host).make();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": "cert", "namespace": namespace },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } });
    bed.api.apply(&secret.to_string()).await.unwrap();
}

async fn status(bed: &Bed, namespace: &str, kind: &str, name: &str) -> Value {
    let resource = GroupVersionKind::gvk("getambassador.io", "v3alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&resource, &format!("{}s", kind.to_lowercase()));
    let objects = Api::<DynamicObject>::namespaced_with(bed.api.client().unwrap(), namespace, &resource);
    objects.get(name).await.unwrap().data["status"].clone()
}

/// Waits until fields of the status of an object begin so; one without text is not there.
async fn expect_status(bed: &Bed, namespace: &str, kind: &str, name: &str, wish: &[(&str, &str)]) {
    let written = async || {
        let status = status(bed, namespace, kind, name).await;
        let is_so = |(field, text): &(&str, &str)| match status[*field].as_str() {
            Some(said) => !text.is_empty() && said.starts_with(text),
            None => text.is_empty(),
        };
        if wish.iter().all(is_so) { Ok(()) } else { Err(status.to_string()) }
    };
    eventually(format!("the status of {kind} {namespace}/{name}"), TIMEOUT, written).await.unwrap();
}

/// The events of a namespace: about which kind and object, by whom, and the note.
async fn events(bed: &Bed, namespace: &str) -> Vec<[String; 4]> {
    let events = Api::<Event>::namespaced(bed.api.client().unwrap(), namespace);
    let all = events.list(&ListParams::default()).await.unwrap().items;
    let of = |event: Event| {
        let about = event.regarding.unwrap_or_default();
        [about.kind, about.name, event.reporting_instance, event.note].map(Option::unwrap_or_default)
    };
    all.into_iter().map(of).collect()
}

/// Who has written the status of objects of Emissary in a namespace, and how often.
fn writers(bed: &Bed, namespace: &str) -> BTreeMap<String, usize> {
    let mut writers = BTreeMap::new();
    for entry in bed.api.audit().unwrap() {
        let is_status = entry.group == "getambassador.io" && entry.resource.ends_with("/status");
        if is_status && entry.namespace == namespace && matches!(&*entry.verb, "patch" | "update") {
            *writers.entry(entry.user).or_default() += 1;
        }
    }
    writers
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_tell_their_own_objects_alone() {
    let bed = Bed::audited().await;
    let (default, blue) = tokio::join!(instance(&bed, "default", &[], &[]), instance(&bed, "blue", &[], &[]));
    every_kind_is_told_by_its_instance(&bed).await;
    an_object_of_two_ids_or_of_another_is_written_once_by_each(&bed).await;
    drop((default, blue));
    the_environment_says_what_is_read(&bed).await;
}

async fn every_kind_is_told_by_its_instance(bed: &Bed) {
    let mut namespaces = Vec::new();
    for id in ["default", "blue"] {
        let namespace = bed.api.namespace(id).await.unwrap();
        apply(bed, id, &namespace, "Listener", "http", "", LISTENER).await;
        apply(bed, id, &namespace, "Host", "plain", "", "hostname: plain.example.com").await;
        apply_certificate(bed, &namespace, "secure.example.com").await;
        let secure = "hostname: secure.example.com, tlsSecret: {name: cert}";
        apply(bed, id, &namespace, "Host", "secure", "", secure).await;
        let good = "hostname: '*', prefix: /, service: 'web.example.org:80'";
        apply(bed, id, &namespace, "Mapping", "good", "", good).await;
        for (kind, name, spec, _) in BAD {
            apply(bed, id, &namespace, kind, name, "", spec).await;
        }
        namespaces.push((id, namespace));
    }
    for (_, namespace) in &namespaces {
        expect_status(bed, namespace, "Mapping", "good", &[("state", "Running"), ("reason", "")]).await;
        let reason = [("state", "Inactive"), ("reason", "SES3001 spec.service: ")];
        expect_status(bed, namespace, "Mapping", "bad", &reason).await;
        let ready = [("state", "Ready"), ("tlsCertificateSource", "None"), ("errorReason", "")];
        expect_status(bed, namespace, "Host", "plain", &ready).await;
        let secure = [("state", "Ready"), ("tlsCertificateSource", "Other"), ("errorReason", "")];
        expect_status(bed, namespace, "Host", "secure", &secure).await;
        let error =
            [("state", "Error"), ("tlsCertificateSource", "Unknown"), ("errorReason", "SES3101 spec.tlsSecret: ")];
        expect_status(bed, namespace, "Host", "bad", &error).await;
        let told = async || {
            let all = events(bed, namespace).await;
            let is_told = |(kind, name, note): (&str, &str, &str)| {
                all.iter().any(|[of, object, _, text]| of == kind && object == name && text.starts_with(note))
            };
            let missing: Vec<_> = BAD.iter().filter(|(kind, name, _, note)| !is_told((kind, name, note))).collect();
            if missing.is_empty() { Ok(()) } else { Err(format!("no {missing:?} in {all:#?}")) }
        };
        eventually("events on objects of every kind", TIMEOUT, told).await.unwrap();
    }
    // An edit of each shows that both have been through all that was there before.
    for (id, namespace) in &namespaces {
        apply(bed, id, namespace, "Mapping", "bad", "", "hostname: '*', prefix: /bad/, service: gone-again").await;
    }
    for (id, namespace) in &namespaces {
        let again = format!("SES3001 spec.service: Service {namespace}/gone-again ");
        expect_status(bed, namespace, "Mapping", "bad", &[("reason", &again)]).await;
        let name = instance_name(id);
        assert_eq!(writers(bed, namespace).keys().collect::<Vec<_>>(), [&name], "of {namespace}");
        let tellers: BTreeSet<_> = events(bed, namespace).await.into_iter().map(|[_, _, by, _]| by).collect();
        assert_eq!(tellers, BTreeSet::from([name]), "of {namespace}");
    }
}

async fn an_object_of_two_ids_or_of_another_is_written_once_by_each(bed: &Bed) {
    let namespace = bed.api.namespace("moved").await.unwrap();
    let gone = |service: &str| format!("hostname: '*', prefix: /, service: {service}");
    let says = |service: &str| format!("SES3001 spec.service: Service {namespace}/{service} ");
    // It changes hands, and whoever had it leaves it alone.
    apply(bed, "default", &namespace, "Mapping", "moved", "", &gone("one")).await;
    expect_status(bed, &namespace, "Mapping", "moved", &[("reason", &says("one"))]).await;
    apply(bed, "blue", &namespace, "Mapping", "moved", "", &gone("two")).await;
    expect_status(bed, &namespace, "Mapping", "moved", &[("reason", &says("two"))]).await;
    // It is for both, and both say the same: the one that is late finds nothing to write.
    apply(bed, "_automatic_", &namespace, "Mapping", "shared", "", &gone("three")).await;
    expect_status(bed, &namespace, "Mapping", "shared", &[("reason", &says("three"))]).await;
    for id in ["default", "blue"] {
        apply(bed, id, &namespace, "Mapping", &format!("last-{id}"), "", &gone("four")).await;
        expect_status(bed, &namespace, "Mapping", &format!("last-{id}"), &[("reason", &says("four"))]).await;
    }
    let written = writers(bed, &namespace);
    assert!(written.values().all(|writes| (2..=3).contains(writes)) && written.len() == 2, "{written:?}");
    expect_status(bed, &namespace, "Mapping", "moved", &[("reason", &says("two"))]).await;
}

async fn the_environment_says_what_is_read(bed: &Bed) {
    let own = bed.api.namespace("own").await.unwrap();
    let other = bed.api.namespace("other").await.unwrap();
    for (name, labels) in [("labelled", "team: a"), ("unlabelled", "")] {
        let metadata = format!("{{name: {name}, namespace: {own}, labels: {{{labels}}}}}");
        let service = format!("apiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {{ports: [{{port: 80}}]}}\n");
        bed.api.apply(&service).await.unwrap();
    }
    let to = |service: &str| format!("hostname: '*', prefix: /, service: {service}");
    apply(bed, "green", &other, "Mapping", "elsewhere", "team: a", &to("labelled")).await;
    apply(bed, "green", &own, "Mapping", "unselected", "team: b", &to("labelled")).await;
    apply(bed, "green", &own, "Mapping", "skipped", "team: a", &to("labelled")).await;
    apply(bed, "default", &own, "Mapping", "default", "team: a", &to("labelled")).await;
    apply(bed, "green", &own, "Listener", "http", "team: a", LISTENER).await;
    apply(bed, "green", &own, "Host", "any", "team: a", "hostname: '*'").await;
    apply(bed, "green", &own, "Mapping", "lost", "team: a", &to("unlabelled")).await;
    apply(bed, "green", &own, "Mapping", "taken", "team: a", &to("labelled")).await;
    let variables = [
        ("AMBASSADOR_SINGLE_NAMESPACE", "true"),
        ("AMBASSADOR_LABEL_SELECTOR", "team=a"),
        ("AMBASSADOR_FIELD_SELECTOR", "metadata.name!=skipped"),
    ];
    let _green = instance(bed, "green", &[("namespace", &own)], &variables).await;
    expect_status(bed, &own, "Mapping", "taken", &[("state", "Running"), ("reason", "")]).await;
    // Services are selected, too.
    let lost = format!("SES3001 spec.service: Service {own}/unlabelled ");
    expect_status(bed, &own, "Mapping", "lost", &[("state", "Inactive"), ("reason", &lost)]).await;
    for (namespace, name) in [(&other, "elsewhere"), (&own, "unselected"), (&own, "skipped"), (&own, "default")] {
        assert_eq!(status(bed, namespace, "Mapping", name).await, Value::Null, "of {name}");
    }
    let read = bed.api.audit().unwrap().into_iter().filter(|entry| entry.user == instance_name("green"));
    let read = read.filter(|entry| entry.group == "getambassador.io" && matches!(&*entry.verb, "list" | "watch"));
    let namespaces: BTreeSet<_> = read.map(|entry| entry.namespace).collect();
    assert_eq!(namespaces, BTreeSet::from([own]));
}

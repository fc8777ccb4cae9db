//! The real API server: every kind, every change, kinds that come later, objects that cannot be read.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use kinds::kind;
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use source::Subject;
use source::cluster::Options;
use testbed::ApiServer;

use crate::mirror::{Mirror, TIMEOUT, hasty, options};

/// A CRD that takes anything, as old ones do.
pub const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tlscertificatedelegations.projectcontour.io}
spec:
  group: projectcontour.io
  scope: Namespaced
  names: {plural: tlscertificatedelegations, singular: tlscertificatedelegation, kind: TLSCertificateDelegation}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
"#;

/// A Service.
pub fn service(name: &str, port: i32) -> Service {
    let ports = Some(vec![ServicePort { port, ..ServicePort::default() }]);
    Service {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(ServiceSpec { ports, ..ServiceSpec::default() }),
        ..Service::default()
    }
}

fn delegations(client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("projectcontour.io", "v1", "TLSCertificateDelegation");
    Api::namespaced_with(client, namespace, &ApiResource::from_gvk(&kind))
}

fn delegation(name: &str, spec: serde_json::Value) -> DynamicObject {
    let object = serde_json::json!({
        "apiVersion": "projectcontour.io/v1", "kind": "TLSCertificateDelegation",
        "metadata": { "name": name }, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn all_that_is_there_is_told_and_every_change_of_it() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("follow").await.unwrap();
    let objects = |host: &str, addresses: &str| {
        format!(
            "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: {namespace}, annotations: {{kubectl.kubernetes.io/last-applied-configuration: x}}}}
spec: {{rules: [{{host: {host}, http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {namespace}}}
spec: {{ports: [{{port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
endpoints: [{{addresses: [{addresses}]}}]
ports: [{{port: 80}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: of-nobody, namespace: {namespace}}}
addressType: IPv4
endpoints: []
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: {namespace}}}
spec: {{controller: projectsesame.io/ingress-controller}}
---
apiVersion: v1
kind: Secret
metadata: {{name: hidden, namespace: {namespace}}}
stringData: {{a: b}}
"
        )
    };
    api.apply(&objects("a.example.com", "10.0.0.1")).await.unwrap();
    let mut mirror = Mirror::start(api.client().unwrap(), Options { timing: hasty(), ..Options::default() });
    mirror.synced().await;
    assert!(mirror.of(kind::NAMESPACE, "").contains(&*namespace));
    assert!(mirror.of(kind::INGRESS_CLASS, "").contains(&*namespace));
    assert_eq!(mirror.of(kind::INGRESS, &namespace), ["web"].into());
    assert_eq!(mirror.of(kind::SERVICE, &namespace), ["web"].into());
    assert_eq!(mirror.of(kind::ENDPOINT_SLICE, &namespace), ["web-1"].into());
    assert!(mirror.of(kind::SECRET, &namespace).is_empty(), "nothing refers to it");
    let ingress = |mirror: &Mirror| {
        let key = kinds::ObjectRef::new(kind::INGRESS, &*namespace, "web");
        mirror.objects.get(&key).and_then(|object| object.get::<kinds::Ingress>().cloned())
    };
    assert!(ingress(&mirror).unwrap().meta.annotations.is_empty(), "kubectl's copy is kept");

    api.apply(&objects("b.example.com", "10.0.0.2")).await.unwrap();
    mirror.until("the edits", |mirror| format!("{:?}", ingress(mirror)).contains("b.example.com")).await;
    mirror
        .until("the new endpoint", |mirror| {
            let slices = mirror.objects.values().filter_map(|object| object.get::<kinds::EndpointSlice>());
            slices.into_iter().any(|slice| format!("{slice:?}").contains("10.0.0.2"))
        })
        .await;
    let services = Api::<Service>::namespaced(api.client().unwrap(), &namespace);
    services.delete("web", &DeleteParams::default()).await.unwrap();
    mirror.until("the Service to be gone", |mirror| mirror.of(kind::SERVICE, &namespace).is_empty()).await;
}

#[tokio::test]
async fn lists_longer_than_a_page_are_read_whole() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("pages").await.unwrap();
    let services = Api::<Service>::namespaced(api.client().unwrap(), &namespace);
    // ExternalNames need no address, of which there are not enough for everybody.
    let make = |number: usize| {
        let spec = ServiceSpec {
            type_: Some("ExternalName".to_owned()),
            external_name: Some("example.com".to_owned()),
            ..ServiceSpec::default()
        };
        let name = format!("s-{number:04}");
        let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        Service { metadata, spec: Some(spec), ..Service::default() }
    };
    let made: Vec<_> = (0..1100).map(make).collect();
    let post = PostParams::default();
    let all = futures::stream::iter(made.iter().map(|service| services.create(&post, service)));
    let all: Vec<_> = futures::StreamExt::collect(futures::StreamExt::buffer_unordered(all, 32)).await;
    assert!(all.iter().all(Result::is_ok));
    let mut mirror = Mirror::start(api.client().unwrap(), options(&[kind::SERVICE]));
    mirror.synced().await;
    assert_eq!(mirror.of(kind::SERVICE, &namespace).len(), 1100);
}

/// Of several versions that Sesame reads, an API server may serve any one, and another after an upgrade.
#[tokio::test]
async fn a_kind_is_read_in_the_version_that_is_served() {
    static ROW: object_ref::ApiResource = object_ref::ApiResource::new(
        "projectcontour.io",
        &["v2", "v1", "v1alpha1"],
        "TLSCertificateDelegation",
        "tlscertificatedelegations",
        object_ref::Scope::Namespaced,
    );
    let kind = kinds::Kind::new(&ROW);
    let api = ApiServer::start().await.unwrap();
    let namespace = api.namespace("versions").await.unwrap();
    let schema = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}";
    let crd = |old: bool| {
        let version = format!("  - {{name: v1alpha1, served: {old}, storage: false, {schema}}}\n");
        CRD.replace("{name: v1, served: true,", &format!("{{name: v1, served: {},", !old)) + &version
    };
    api.apply(&crd(true)).await.unwrap();
    let in_version = |version: &str| {
        let kind = GroupVersionKind::gvk("projectcontour.io", version, "TLSCertificateDelegation");
        Api::<DynamicObject>::namespaced_with(api.client().unwrap(), &namespace, &ApiResource::from_gvk(&kind))
    };
    let named = |version: &str, name: &str| {
        let mut object = delegation(name, serde_json::json!({ "delegations": [] }));
        object.types = object
            .types
            .map(|types| kube::core::TypeMeta { api_version: format!("projectcontour.io/{version}"), ..types });
        object
    };
    in_version("v1alpha1").create(&PostParams::default(), &named("v1alpha1", "old")).await.unwrap();
    let options = options(&[kind]);
    let versions = options.versions.clone();
    let mut mirror = Mirror::start(api.client().unwrap(), options);
    mirror.synced().await;
    assert_eq!((mirror.of(kind, &namespace), versions.of(kind)), (["old"].into(), "v1alpha1"));

    api.apply(&crd(false)).await.unwrap();
    in_version("v1").create(&PostParams::default(), &named("v1", "new")).await.unwrap();
    mirror.until("the object of the new version", |mirror| mirror.of(kind, &namespace) == ["old", "new"].into()).await;
    // The watch of the old version may have brought it, before it ended.
    let followed = async || (versions.of(kind) == "v1").then_some(()).ok_or("not yet");
    testbed::eventually("the new version to be told to those who write", TIMEOUT, followed).await.unwrap();
    assert!(mirror.problems.is_empty(), "{}", mirror.complaints());
}

#[tokio::test]
async fn a_kind_may_come_later_and_one_object_that_cannot_be_read_hurts_only_itself() {
    let kind = kind::CONTOUR_TLS_CERTIFICATE_DELEGATION;
    let api = ApiServer::start().await.unwrap();
    let namespace = api.namespace("later").await.unwrap();
    let mut mirror = Mirror::start(api.client().unwrap(), Options { timing: hasty(), ..Options::default() });
    mirror.synced().await;
    assert!(mirror.problems.is_empty(), "{}", mirror.complaints());

    api.apply(CRD).await.unwrap();
    let delegations = delegations(api.client().unwrap(), &namespace);
    let good = serde_json::json!({ "delegations": [{ "secretName": "s", "targetNamespaces": ["*"] }] });
    delegations.create(&PostParams::default(), &delegation("good", good.clone())).await.unwrap();
    mirror.until("the first of the kind", |mirror| mirror.of(kind, &namespace) == ["good"].into()).await;

    // One that was good, and one that never was.
    let bad = serde_json::json!("no map");
    delegations.create(&PostParams::default(), &delegation("bad", bad.clone())).await.unwrap();
    let patch = Patch::Merge(serde_json::json!({ "spec": bad }));
    delegations.patch("good", &PatchParams::default(), &patch).await.unwrap();
    let on = |name: &str| Subject::Object(kinds::ObjectRef::new(kind, &*namespace, name));
    mirror.until("both problems", |mirror| mirror.problems.len() == 2).await;
    let complaint = mirror.problems[&on("bad")][0].to_string();
    assert!(complaint.contains("SES2002") && complaint.contains("spec: expected a map"), "{complaint}");
    assert_eq!(mirror.of(kind, &namespace), ["good"].into(), "what was read before stays in force");
    delegations.create(&PostParams::default(), &delegation("other", good.clone())).await.unwrap();
    mirror.until("the next one", |mirror| mirror.of(kind, &namespace).contains("other")).await;

    // From nothing, the bad ones are in the first list.
    let mut fresh = Mirror::start(api.client().unwrap(), options(&[kind]));
    fresh.synced().await;
    assert_eq!(fresh.of(kind, &namespace), ["other"].into());
    assert_eq!(fresh.problems.len(), 2);

    // Mended, and deleted.
    let patch = Patch::Merge(serde_json::json!({ "spec": good }));
    delegations.patch("good", &PatchParams::default(), &patch).await.unwrap();
    delegations.delete("bad", &DeleteParams::default()).await.unwrap();
    let names = BTreeMap::from([("mirror", &mut mirror), ("fresh", &mut fresh)]);
    for (_, mirror) in names {
        mirror.until("all problems to be over", |mirror| mirror.problems.is_empty()).await;
        assert_eq!(mirror.of(kind, &namespace), ["good", "other"].into());
    }

    // The CRD goes, and with it everything.
    let crds = Api::<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>::all(
        api.client().unwrap(),
    );
    crds.delete("tlscertificatedelegations.projectcontour.io", &DeleteParams::default()).await.unwrap();
    mirror.until("everything to be gone", |mirror| mirror.of(kind, &namespace).is_empty()).await;
}

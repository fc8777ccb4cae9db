//! Kinds that have several versions: whichever an API server serves is read, and what is written in another becomes the same.

use std::path::Path;

use kinds::{ObjectRef, emissary, kind};
use source::cluster::{Options, Selectors};
use testbed::ApiServer;

use crate::mirror::{Mirror, hasty};

fn crd(plural: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    std::fs::read_to_string(folder.join(format!("{plural}.getambassador.io.yaml"))).unwrap()
}

/// A CRD that stores `v2` and leaves the conversion to a webhook that is not there.
const UNCONVERTED: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hosts.getambassador.io}
spec:
  group: getambassador.io
  scope: Namespaced
  names: {plural: hosts, singular: host, kind: Host, listKind: HostList}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: nobody, namespace: default, path: /, port: 443}}
  versions:
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v3alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
"#;

/// A CRD whose last version is not served.
fn without_last_version(crd: &str) -> String {
    let (before, after) = crd.rsplit_once("served: true").unwrap();
    format!("{before}served: false{after}")
}

#[tokio::test]
async fn objects_of_any_version_are_read_in_the_best_that_is_served() {
    let api = ApiServer::start().await.unwrap();
    let namespace = api.namespace("versions").await.unwrap();
    api.apply(&crd("mappings")).await.unwrap();
    api.apply(&without_last_version(&crd("tlscontexts"))).await.unwrap();
    api.apply(UNCONVERTED).await.unwrap();
    let host = format!(
        "{{apiVersion: getambassador.io/v2, kind: Host, metadata: {{name: host, namespace: {namespace}}}, \
         spec: {{hostname: a.example.com, selector: {{matchLabels: {{team: a}}}}}}}}"
    );
    apply(&api, &host).await;
    let options = Options {
        kinds: vec![kind::MAPPING, kind::TLS_CONTEXT, kind::HOST],
        selectors: Selectors { kinds: vec![kind::MAPPING], labels: Some("team in (a)".into()), fields: None },
        timing: hasty(),
        ..Options::default()
    };
    let mut mirror = Mirror::start(api.client().unwrap(), options);
    mirror.synced().await;

    let mapping = |version: &str, name: &str, team: &str, more: &str| {
        format!(
            "{{apiVersion: getambassador.io/{version}, kind: Mapping, metadata: {{name: {name}, namespace: {namespace}, \
             labels: {{team: {team}}}}}, spec: {{prefix: /a/, service: a{more}}}}}"
        )
    };
    // The API server takes a while until it serves what a CRD defines.
    let (old, older) = (", tls: true, ambassador_id: blue", ", host: '*.example.com', headers: {x: true}");
    for object in [
        mapping("v2", "old", "a", old),
        mapping("v1", "older", "a", older),
        mapping("v3alpha1", "new", "a", ", hostname: a.example.com"),
        mapping("v3alpha1", "other", "b", ""),
    ] {
        apply(&api, &object).await;
    }
    let context = format!(
        "{{apiVersion: getambassador.io/v2, kind: TLSContext, metadata: {{name: context, namespace: {namespace}}}, \
         spec: {{secret: cert, ambassador_id: blue, v3CRLSecret: crl}}}}"
    );
    apply(&api, &context).await;

    mirror.until("all Mappings", |mirror| mirror.of(kind::MAPPING, &namespace).len() == 3).await;
    assert_eq!(mirror.of(kind::MAPPING, &namespace), ["new", "old", "older"].into(), "the label selects them");
    let found = |name: &str| {
        let object = &mirror.objects[&ObjectRef::new(kind::MAPPING, &*namespace, name)];
        let spec = &object.get::<emissary::Mapping>().unwrap().spec;
        let text = |field: &kinds::Checked<Option<Box<str>>>| field.get().unwrap().as_deref().unwrap_or("-").to_owned();
        (text(&spec.hostname), text(&spec.service), spec.clone())
    };
    let (host, service, spec) = found("old");
    assert_eq!((&*host, &*service), ("*", "https://a"));
    assert!(emissary::is_for(&spec.ambassador_id, "blue") && !emissary::is_for(&spec.ambassador_id, "default"));
    let (host, _, spec) = found("older");
    assert_eq!((&*host, &*spec.regex_headers.get().unwrap()["x"]), ("*.example.com", ".*"));
    assert_eq!(found("new").0, "a.example.com");

    mirror.until("the TLSContext", |mirror| !mirror.of(kind::TLS_CONTEXT, &namespace).is_empty()).await;
    let object = &mirror.objects[&ObjectRef::new(kind::TLS_CONTEXT, &*namespace, "context")];
    let spec = &object.get::<emissary::TlsContext>().unwrap().spec;
    assert!(emissary::is_for(&spec.ambassador_id, "blue"), "v2 is read where v3alpha1 is not served");
    assert_eq!(spec.crl_secret.get().unwrap().as_deref(), Some("crl"));

    mirror.until("the Host", |mirror| !mirror.of(kind::HOST, &namespace).is_empty()).await;
    let object = &mirror.objects[&ObjectRef::new(kind::HOST, &*namespace, "host")];
    let spec = &object.get::<emissary::Host>().unwrap().spec;
    assert!(spec.mapping_selector.get().unwrap().is_some(), "v2 is read where the conversion webhook does not answer");
}

/// Applies an object whose kind may not be served yet.
async fn apply(api: &ApiServer, object: &str) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while let Err(error) = api.apply(object).await {
        assert!(std::time::Instant::now() < deadline, "{object}: {error:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

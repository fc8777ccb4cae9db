//! A source that may read a namespace and nothing else.

use kinds::kind;
use source::cluster::Options;
use testbed::ApiServer;

use crate::mirror::{Mirror, hasty};

fn objects(namespace: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {namespace}}}
spec: {{ports: [{{port: 80}}]}}
---
apiVersion: v1
kind: Secret
metadata: {{name: key, namespace: {namespace}}}
stringData: {{a: b}}
"
    )
}

fn role(namespace: &str) -> String {
    format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: reader, namespace: {namespace}}}
rules:
- {{apiGroups: [''], resources: [services, secrets, configmaps], verbs: [get, list, watch]}}
- {{apiGroups: [networking.k8s.io], resources: [ingresses], verbs: [get, list, watch]}}
- {{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: reader, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}
subjects: [{{kind: User, name: narrow}}]
"
    )
}

#[tokio::test]
async fn roles_of_the_namespaces_suffice() {
    let api = ApiServer::shared().await.unwrap();
    let (one, two, other) = (
        api.namespace("one").await.unwrap(),
        api.namespace("two").await.unwrap(),
        api.namespace("other").await.unwrap(),
    );
    for namespace in [&one, &two, &other] {
        api.apply(&objects(namespace)).await.unwrap();
    }
    api.apply(&role(&one)).await.unwrap();
    let namespaces = vec![one.as_str().into(), two.as_str().into()];
    let client = api.client_as("narrow", &["system:authenticated"]).unwrap();
    let mut mirror = Mirror::start(client, Options { namespaces, timing: hasty(), ..Options::default() });
    // The second namespace is not granted yet.
    mirror.until("the complaint", |mirror| mirror.complaints().contains(&format!("services in namespace {two}"))).await;
    let rule = format!(
        "add to Sesame's Role in namespace {two}: {{apiGroups: [''], resources: [services], verbs: [list, watch]}}"
    );
    assert!(mirror.complaints().contains(&rule), "{}", mirror.complaints());
    assert!(!mirror.is_synced);
    api.apply(&role(&two)).await.unwrap();
    mirror.synced().await;
    assert_eq!(mirror.of(kind::SERVICE, &one), ["web"].into());
    assert_eq!(mirror.of(kind::SERVICE, &two), ["web"].into());
    assert!(
        mirror.objects.keys().all(|key| [&one, &two].iter().any(|it| **it == *key.namespace)),
        "{:?}",
        mirror.names()
    );
    mirror.wants.want(kinds::ObjectRef::new(kind::SECRET, two.as_str(), "key"));
    mirror.until("the Secret", |mirror| mirror.of(kind::SECRET, &two) == ["key"].into()).await;
    // A Secret of a namespace that is not ours is answered too: with nothing, and why.
    let foreign = kinds::ObjectRef::new(kind::SECRET, other.as_str(), "key");
    mirror.told.clear();
    mirror.wants.want(foreign.clone());
    mirror.until("the answer", |mirror| mirror.told.contains(&foreign)).await;
    assert!(!mirror.objects.contains_key(&foreign));
    assert!(mirror.complaints().contains(&format!("namespace {other} is not watched")), "{}", mirror.complaints());
}

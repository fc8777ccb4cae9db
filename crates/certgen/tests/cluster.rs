//! The Secrets arrive in a real cluster, with no more rights than are needed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, SystemTime};

use certgen::cluster::{ClusterError, Outcome, write};
use certgen::{Certificates, Format, Request, secrets};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use testbed::ApiServer;

fn set(namespace: &str) -> Vec<Secret> {
    let certificates = Certificates::issue(&Request {
        namespace: namespace.to_owned(),
        fleet: None,
        lifetime: Duration::from_secs(3600),
        now: SystemTime::now(),
    })
    .unwrap();
    secrets(&certificates, namespace, Format::Compact, "")
}

#[tokio::test]
async fn a_set_is_written_kept_replaced_and_never_mixed() {
    let server = ApiServer::shared().await.unwrap();
    let namespace = server.namespace("certgen").await.unwrap();
    let client = server.client().unwrap();
    let api: Api<Secret> = Api::namespaced(client.clone(), &namespace);

    let first = set(&namespace);
    assert_eq!(write(client.clone(), &first, false).await.unwrap(), Outcome::Written);
    let there = api.get("sesamecert").await.unwrap();
    assert_eq!((there.data, there.type_), (first[0].data.clone(), first[0].type_.clone()));

    let second = set(&namespace);
    assert_eq!(write(client.clone(), &second, false).await.unwrap(), Outcome::Kept);
    assert_eq!(api.get("envoycert").await.unwrap().data, first[1].data, "kept means untouched");

    assert_eq!(write(client.clone(), &second, true).await.unwrap(), Outcome::Written);
    assert_eq!(api.get("envoycert").await.unwrap().data, second[1].data);

    api.delete("envoycert", &DeleteParams::default()).await.unwrap();
    let error = write(client.clone(), &first, false).await.unwrap_err();
    assert!(matches!(error, ClusterError::Mixed { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "of the Secrets that belong together, sesamecert exists already in namespace {namespace}, \
             but envoycert does not"
        )
    );
    assert!(api.get_opt("envoycert").await.unwrap().is_none(), "nothing of a mixed set is written");
}

#[tokio::test]
async fn the_rights_to_create_and_update_are_enough() {
    let server = ApiServer::shared().await.unwrap();
    let namespace = server.namespace("rights").await.unwrap();
    let metadata = ObjectMeta { name: Some("certgen".to_owned()), ..Default::default() };
    let role = Role {
        metadata: metadata.clone(),
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["secrets".to_owned()]),
            verbs: vec!["create".to_owned(), "update".to_owned()],
            ..Default::default()
        }]),
    };
    let binding = RoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: "certgen".to_owned(),
        },
        subjects: Some(vec![Subject { kind: "User".to_owned(), name: "certgen".to_owned(), ..Default::default() }]),
    };
    let admin = server.client().unwrap();
    Api::namespaced(admin.clone(), &namespace).create(&PostParams::default(), &role).await.unwrap();
    Api::namespaced(admin, &namespace).create(&PostParams::default(), &binding).await.unwrap();

    let client = server.client_as("certgen", &[]).unwrap();
    assert_eq!(write(client.clone(), &set(&namespace), false).await.unwrap(), Outcome::Written);
    assert_eq!(write(client.clone(), &set(&namespace), false).await.unwrap(), Outcome::Kept);
    assert_eq!(write(client.clone(), &set(&namespace), true).await.unwrap(), Outcome::Written);

    let error = write(client, &set("default"), false).await.unwrap_err();
    assert_eq!(error.to_string(), "Secret default/sesamecert cannot be written");
}

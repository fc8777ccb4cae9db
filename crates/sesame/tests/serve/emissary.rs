//! Hosts and Mappings on a real API server: the fields of status that Emissary's CRDs keep, and events with code and field.

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use testbed::{Net, eventually};

use crate::bed::{Bed, TIMEOUT};

/// Waits for the status of an object.
async fn expect_status(bed: &Bed, namespace: &str, kind: &str, name: &str, wish: impl Fn(&Value) -> bool) {
    let resource = GroupVersionKind::gvk("getambassador.io", "v3alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&resource, &format!("{}s", kind.to_lowercase()));
    let objects = Api::<DynamicObject>::namespaced_with(bed.api.client().unwrap(), namespace, &resource);
    let written = async || {
        let status = objects.get(name).await.map_err(|error| error.to_string())?.data["status"].clone();
        if wish(&status) { Ok(()) } else { Err(status.to_string()) }
    };
    eventually(format!("the status of {kind} {name}"), TIMEOUT, written).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_mappings_are_told_in_the_fields_of_emissary_and_by_events() {
    let bed = Bed::start().await;
    let namespace = bed.api.namespace("emissary").await.unwrap();
    let address = Net::here().unwrap().address();
    let _replica = bed.replica_at("sesame-0", address, &[]).await.ready().await;
    let object = |kind: &str, name: &str, spec: &str| {
        format!(
            "apiVersion: getambassador.io/v3alpha1\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {spec}\n"
        )
    };
    for (kind, name, spec) in [
        (
            "Listener",
            "http",
            "{port: 8080, protocol: HTTP, securityModel: XFP, hostBinding: {namespace: {from: SELF}}}",
        ),
        ("Host", "plain", "{hostname: plain.example.com}"),
        ("Host", "broken", "{hostname: broken.example.com, tlsSecret: {name: gone}}"),
        ("Mapping", "good", "{hostname: '*', prefix: /, service: 'web.example.org:80'}"),
        ("Mapping", "bad", "{hostname: '*', prefix: /bad/, service: gone}"),
        ("TLSContext", "bad", "{cipher_suites: [RC4-MD5]}"),
    ] {
        bed.api.apply(&object(kind, name, spec)).await.unwrap();
    }
    let text = |status: &Value, field: &str| status[field].as_str().unwrap_or_default().to_owned();
    expect_status(&bed, &namespace, "Mapping", "good", |status| {
        text(status, "state") == "Running" && status["reason"].is_null()
    })
    .await;
    expect_status(&bed, &namespace, "Mapping", "bad", |status| {
        text(status, "state") == "Inactive" && text(status, "reason").starts_with("SES3001 spec.service: ")
    })
    .await;
    expect_status(&bed, &namespace, "Host", "plain", |status| {
        text(status, "state") == "Ready"
            && text(status, "tlsCertificateSource") == "None"
            && status["errorReason"].is_null()
    })
    .await;
    expect_status(&bed, &namespace, "Host", "broken", |status| {
        text(status, "state") == "Error"
            && text(status, "tlsCertificateSource") == "Unknown"
            && text(status, "errorReason").starts_with("SES3101 spec.tlsSecret: ")
    })
    .await;
    let events = Api::<Event>::namespaced(bed.api.client().unwrap(), &namespace);
    let told = async || {
        let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let has = |kind: &str, name: &str, start: &str| {
            all.iter().any(|event| {
                let about = event.regarding.as_ref();
                about.is_some_and(|about| about.kind.as_deref() == Some(kind) && about.name.as_deref() == Some(name))
                    && event.note.as_deref().is_some_and(|note| note.starts_with(start))
            })
        };
        let found = [
            has("Mapping", "bad", "SES3001: spec.service: "),
            has("Host", "broken", "SES3101: spec.tlsSecret: "),
            has("TLSContext", "bad", "SES9104: spec.cipher_suites: "),
        ];
        let notes = || all.iter().map(|event| event.note.clone().unwrap_or_default()).collect::<Vec<_>>();
        if found == [true; 3] { Ok(()) } else { Err(format!("{found:?} {:?}", notes())) }
    };
    eventually("events on the objects", TIMEOUT, told).await.unwrap();
}

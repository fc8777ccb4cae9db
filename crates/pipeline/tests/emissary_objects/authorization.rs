//! AuthServices beside the operator's own authorization server.

use super::{decoded, object, put, reported, settings};
use kinds::{ObjectRef, http_proxy::security::AuthorizationServer, kind};
use pipeline::{
    Pipeline,
    authorization::{GlobalAuthorization, of_operator},
    emissary::authorization::EmissaryAuthService,
    extensions::ExtensionName,
};
use serde_json::json;

/// Whoever may write AuthServices in a namespace of their own cannot set the operator's authorization aside.
#[test]
fn an_auth_service_of_a_tenant_does_not_take_the_place_of_the_operators_server() {
    let mut settings = settings("default");
    let extension = ExtensionName { namespace: "operator".into(), name: "guard".into() };
    let server = of_operator(&AuthorizationServer::default()).unwrap();
    settings.authorization = Some(GlobalAuthorization { extension, settings: server });
    settings.resolve.namespace = "elsewhere".into();
    let mut pipeline = Pipeline::new(&settings);
    put(&mut pipeline, &object(kind::AUTH_SERVICE, "mine", &json!({ "auth_service": "open" })));
    let output = pipeline.settle();
    assert!(pipeline.engine().get::<EmissaryAuthService>(&()).is_none());
    assert!(
        reported(&output)["AuthService shop/mine"][0].starts_with("SES9003 the operator has configured globalExtAuth"),
        "{:?}",
        reported(&output)
    );
    settings.resolve.namespace = "shop".into();
    pipeline.set_settings(&settings);
    pipeline.settle();
    assert!(pipeline.engine().get::<EmissaryAuthService>(&()).is_some(), "the operator's own does");
    pipeline.self_check().unwrap();

    // Where the operator's server is asked only about routes that say so, which Mappings cannot, they do not pass unasked.
    let closing = |pipeline: &Pipeline| {
        let service = pipeline.engine().get::<EmissaryAuthService>(&())?;
        (!service.is_usable).then(|| service.object.to_string())
    };
    settings.resolve.namespace = "elsewhere".into();
    settings.authorization.as_mut().unwrap().settings.disabled = true;
    pipeline.set_settings(&settings);
    let output = pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("AuthService shop/mine"));
    let told = reported(&output);
    assert!(told["AuthService shop/mine"][0].starts_with("SES9203 globalExtAuth is configured"), "{told:?}");
    pipeline.self_check().unwrap();
    settings.emissary.cross_namespace = true;
    pipeline.set_settings(&settings);
    let told = reported(&pipeline.settle());
    assert!(told["AuthService shop/mine"][0].starts_with("SES3001 "), "it is in effect: {told:?}");
    settings.emissary.cross_namespace = false;
    pipeline.set_settings(&settings);
    pipeline.settle();

    // A Module closes them, too, once there is no AuthService.
    let module = |namespace: &str, day: u32| {
        let created = format!("2026-01-{day:02}T00:00:00Z");
        let metadata = json!({ "name": "authentication", "namespace": namespace, "creationTimestamp": created });
        decoded(kind::MODULE, &json!({ "metadata": metadata, "spec": { "config": { "auth_service": "open" } } }))
    };
    put(&mut pipeline, &module("elsewhere", 9));
    let told = reported(&pipeline.settle());
    assert_eq!(closing(&pipeline).as_deref(), Some("AuthService shop/mine"));
    assert!(told["Module elsewhere/authentication"][0].starts_with("SES9001 "), "{told:?}");
    pipeline.put(&ObjectRef::new(kind::AUTH_SERVICE, "shop", "mine"), None);
    pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("Module elsewhere/authentication"));
    pipeline.self_check().unwrap();

    // Of several Modules that of Sesame's namespace closes, then the oldest.
    put(&mut pipeline, &module("b", 2));
    put(&mut pipeline, &module("a", 3));
    pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("Module elsewhere/authentication"));
    pipeline.put(&ObjectRef::new(kind::MODULE, "elsewhere", "authentication"), None);
    pipeline.settle();
    assert_eq!(closing(&pipeline).as_deref(), Some("Module b/authentication"));
    for namespace in ["a", "b"] {
        pipeline.put(&ObjectRef::new(kind::MODULE, namespace, "authentication"), None);
    }
    settings.resolve.namespace = "shop".into();
    settings.authorization.as_mut().unwrap().settings.disabled = false;
    pipeline.set_settings(&settings);
    pipeline.settle();
    pipeline.self_check().unwrap();

    // Nor do tenants close all Mappings by the older form, which cannot be asked.
    put(&mut pipeline, &object(kind::MODULE, "authentication", &json!({ "config": { "auth_service": "open" } })));
    pipeline.settle();
    let service = pipeline.engine().get::<EmissaryAuthService>(&());
    assert!(service.is_some_and(|service| !service.is_usable), "the operator's own closes them");
    settings.resolve.namespace = "elsewhere".into();
    pipeline.set_settings(&settings);
    let output = pipeline.settle();
    assert!(pipeline.engine().get::<EmissaryAuthService>(&()).is_none());
    let told = reported(&output);
    assert!(told["Module shop/authentication"][0].starts_with("SES9001 a Module `authentication`"), "{told:?}");
    pipeline.self_check().unwrap();

    // An operator's server that is asked only about routes that say so is asked about no Mapping.
    settings.authorization.as_mut().unwrap().settings.disabled = true;
    pipeline.set_settings(&settings);
    pipeline.settle();
    let service = pipeline.engine().get::<EmissaryAuthService>(&());
    assert!(service.is_some_and(|service| !service.is_usable), "nobody else guards them");
    pipeline.self_check().unwrap();
}

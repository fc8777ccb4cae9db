//! Extensions: what their status says, in which fleets their clusters exist, and what their endpoints are.

use super::*;
use envoy_api::{
    Message,
    envoy::config::{cluster::v3::Cluster, endpoint::v3::ClusterLoadAssignment},
};
use kinds::{Object, http_proxy::security::AuthorizationServer, kind};
use model::listener::RateLimitService;
use model::status::StatusInput;
use pipeline::{
    authorization::{GlobalAuthorization, of_operator},
    extensions::{ExtensionName, find},
    secret_refs::FetchResult,
};
use serde_json::{Value, json};
use testbed::cases::object;

fn extension(api_version: &str, spec: &Value) -> Object {
    let meta = json!({ "name": "auth", "namespace": "default", "generation": 1 });
    object(&json!({ "apiVersion": api_version, "kind": "ExtensionService", "metadata": meta, "spec": spec }))
}

fn contour(spec: &Value) -> Object {
    extension("projectcontour.io/v1alpha1", spec)
}

fn ca(namespace: &str, name: &str) -> Object {
    object(&json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "name": name, "namespace": namespace }, "stringData": { "ca.crt": Ca::new("extension").pem() } }))
}

fn name() -> ExtensionName {
    ExtensionName { namespace: "default".into(), name: "auth".into() }
}

fn put(pipeline: &mut Pipeline, object: &Object) -> Output {
    pipeline.put(&object.key(), Some(object.clone()));
    pipeline.settle()
}

/// The errors and warnings in the status of an ExtensionService, as `type reason`.
#[test]
fn every_error_of_an_extension_service_is_in_its_status() {
    let external = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "external", "namespace": "default" },
        "spec": { "type": "ExternalName", "externalName": "auth.example.com", "ports": [{ "port": 80 }] } });
    let said_by = |mut pipeline: Pipeline, spec: Value| -> Vec<String> {
        for object in [object(&external), ca("default", "ca"), ca("other", "ca")] {
            pipeline.put(&object.key(), Some(object));
        }
        let it = contour(&spec);
        let output = put(&mut pipeline, &it);
        let verdicts = output.verdicts.into_iter().find(|(of, _)| *of == it.key()).unwrap().1.unwrap();
        let facts = pipeline::status_of(kind::CONTOUR_EXTENSION_SERVICE).unwrap().facts;
        let status = status::render::status(&facts(&StatusInput { verdicts: &verdicts, ..StatusInput::default() }), 1);
        let valid = &status["conditions"][0];
        let list = ["errors", "warnings"].map(|list| valid[list].as_array().cloned().unwrap_or_default()).concat();
        if list.is_empty() {
            assert_eq!((&valid["reason"], &valid["message"]), (&json!("Valid"), &json!("Valid ExtensionService")));
        }
        let words = |it: &Value| format!("{} {}", it["type"].as_str().unwrap(), it["reason"].as_str().unwrap());
        list.iter().map(words).collect()
    };
    let said = |spec: Value| said_by(pipeline(), spec);
    let web = json!([{ "name": "web", "port": 80 }]);
    let with = |field: &str, value: Value| {
        let mut spec = json!({ "services": web });
        spec[field] = value;
        said(spec)
    };
    let services = |list: Value| said(json!({ "services": list }));
    let trust = |secret: &str| json!({ "caSecret": secret, "subjectName": "auth" });
    let none: [&str; 0] = [];
    assert_eq!(with("protocol", json!("h2c")), none);
    assert_eq!(with("protocol", json!("http/1.1")), none);
    assert_eq!(with("validation", trust("ca")), none);
    assert_eq!(with("circuitBreakerPolicy", json!({ "maxConnections": 5 })), none);
    assert_eq!(with("timeoutPolicy", json!({ "response": "-1s" })), ["SpecError TimeoutPolicyNotValid"]);
    assert_eq!(with("timeoutPolicy", json!({ "idle": "1s" })), ["SpecError IgnoredField"]);
    assert_eq!(with("loadBalancerPolicy", json!({ "strategy": "Cookie" })), ["SpecError IgnoredField"]);
    assert_eq!(with("protocol", json!("h3")), ["SpecError InconsistentProtocol"]);
    assert_eq!(with("protocolVersion", json!("v2")), ["SpecError InconsistentProtocol"]);
    let h2c = json!({ "services": web, "protocol": "h2c", "validation": trust("ca") });
    assert_eq!(said(h2c), ["SpecError InconsistentProtocol"]);
    assert_eq!(with("validation", trust("nowhere")), ["SpecError TLSUpstreamValidation"]);
    assert_eq!(with("validation", trust("other/ca")), ["TLSError CACertificateNotDelegated"]);
    // The certificate that proxies present is missing, or none.
    let presenting = |certificate: &str, spec: Value| {
        let mut settings = world::settings(Packing::Scoped);
        settings.http_proxy.client_certificate = Some(ObjectRef::new(kind::SECRET, "default", certificate));
        let mut pipeline = Pipeline::new(&settings);
        let web = service("web", Ipv4Addr::LOCALHOST);
        pipeline.put(&web.key(), Some(web));
        said_by(pipeline, spec)
    };
    for certificate in ["nowhere", "ca"] {
        let refused = presenting(certificate, json!({ "services": web, "validation": trust("ca") }));
        assert_eq!(refused, ["TLSError SecretNotValid"], "{certificate}");
        assert_eq!(presenting(certificate, json!({ "services": web, "protocol": "h2c" })), none, "without TLS");
    }
    assert_eq!(with("circuitBreakerPolicy", json!({ "maxRequests": -1 })), ["SpecError CircuitBreakerPolicyNotValid"]);
    assert_eq!(services(json!([])), ["ServiceError ServiceUnresolvedReference"]);
    assert_eq!(services(json!([{ "name": "nobody", "port": 80 }])), ["ServiceError ServiceUnresolvedReference"]);
    assert_eq!(services(json!([{ "name": "web", "port": 99999 }])), ["ServiceError ServiceUnresolvedReference"]);
    assert_eq!(
        services(json!([{ "name": "web", "port": 80, "weight": -1 }])),
        ["ServiceError ServiceUnresolvedReference"]
    );
    assert_eq!(
        services(json!([{ "name": "web", "port": 80 }, { "name": "external", "port": 80 }])),
        ["ServiceError UnsupportedServiceType"]
    );
    assert_eq!(with("services", json!("web")), ["ServiceError ServiceUnresolvedReference", "SpecError FieldNotValid"]);
}

fn body<M: Message + Default>(output: &mut Output, fleet: &FleetId, what: &str) -> Option<M> {
    let changes = output.take_fleet(fleet).xds;
    let found = changes.upserts.into_iter().find(|it| format!("{} {}", it.kind, it.name) == what)?;
    Some(M::decode(found.body).unwrap())
}

/// Settings whose rate limit service is the extension.
fn rate_limited() -> Settings {
    Settings { rate_limit_service: Some((name(), RateLimitService::default())), ..world::settings(Packing::Scoped) }
}

/// An extension that the settings of a fleet use is a cluster there, whatever the routes are; what it consists of changes in place.
#[test]
fn an_extension_that_the_settings_of_a_fleet_use_exists_there() {
    let settings = rate_limited();
    let mut pipeline = Pipeline::new(&settings);
    let fleet = named(1);
    let own = FleetSettings { rate_limit_service: settings.rate_limit_service.clone(), ..FleetSettings::default() };
    pipeline.set_fleet(&fleet, Some(own));
    for object in [service("web", Ipv4Addr::LOCALHOST), service("other", [127, 0, 0, 2].into()), ca("default", "ca")] {
        pipeline.put(&object.key(), Some(object));
    }
    pipeline.settle();
    let missing = pipeline.engine().read(|reads| find(&name(), reads)).unwrap_err();
    assert_eq!(missing.code, model::Code::ExtensionNotFound);

    let spec = json!({ "services": [{ "name": "web", "port": 80, "weight": 3 }, { "name": "other", "port": 80, "weight": 1 }],
        "validation": { "caSecret": "ca", "subjectName": "auth.local" }, "timeoutPolicy": { "response": "250ms" } });
    let mut output = put(&mut pipeline, &contour(&spec));
    for fleet in [&FleetId::Shared, &fleet] {
        let (set, _) = reported(&mut output, fleet);
        let expected = ["cds extension/default/auth", "eds extension/default/auth", "sds ca/default/ca"];
        assert!(expected.iter().all(|name| set.contains(*name)), "{fleet}: {set:?}");
    }
    let found = pipeline.engine().read(|reads| find(&name(), reads)).unwrap();
    assert_eq!(
        (&*found.authority, found.response_timeout),
        ("auth.local", model::Timeout::After(Duration::from_millis(250)))
    );

    // Other Services, another protocol: the same cluster, with other contents; the CA goes with who trusts it.
    let moved = json!({ "services": [{ "name": "other", "port": 80 }, { "name": "web", "port": 80 }], "protocol": "h2c",
        "circuitBreakerPolicy": { "maxConnections": 7 } });
    let mut output = put(&mut pipeline, &contour(&moved));
    assert!(reported(&mut output, &fleet).1.contains("sds ca/default/ca"));
    let cluster: Cluster = body(&mut output, &FleetId::Shared, "cds extension/default/auth").unwrap();
    let limits = &cluster.circuit_breakers.unwrap().thresholds[0];
    assert_eq!(limits.max_connections.map(|it| it.value), Some(7));
    assert!(cluster.common_lb_config.unwrap().locality_config_specifier.is_some());
    let even: ClusterLoadAssignment = {
        let mut output =
            put(&mut pipeline, &contour(&json!({ "services": [{ "name": "web", "port": 80, "weight": 2 }] })));
        body(&mut output, &FleetId::Shared, "eds extension/default/auth").unwrap()
    };
    let weights: Vec<_> = even.endpoints.iter().map(|it| it.load_balancing_weight.map(|it| it.value)).collect();
    assert_eq!(weights, [Some(2)]);

    // That of Contour's group wins over one of the same name; without it the other one is found.
    let sesame = extension("projectsesame.io/v1alpha1", &moved);
    let (set, _) = reported(&mut put(&mut pipeline, &sesame), &FleetId::Shared);
    assert_eq!(set, BTreeSet::new());
    pipeline.put(&contour(&moved).key(), None);
    let (set, gone) = reported(&mut pipeline.settle(), &FleetId::Shared);
    let name = "cds extension/ExtensionService.projectsesame.io/default/auth";
    assert!(set.contains(name) && gone.contains("cds extension/default/auth"), "{set:?} {gone:?}");
    pipeline.self_check().unwrap();
    pipeline.set_settings(&Settings { rate_limit_service: None, ..settings });
    let (_, gone) = reported(&mut pipeline.settle(), &FleetId::Shared);
    assert!(gone.contains(name), "{gone:?}");
    pipeline.self_check().unwrap();
}

/// A fleet has the cluster of an extension as long as a route or a setting of its own uses it, and no other fleet has it.
#[test]
fn a_fleet_that_does_not_use_an_extension_is_not_told_of_it() {
    let server = of_operator(&AuthorizationServer::default()).unwrap();
    let authorization = Some(GlobalAuthorization { extension: name(), settings: server });
    let mut pipeline = Pipeline::new(&Settings { authorization, ..rate_limited() });
    let fleets = [FleetId::Shared, named(1), named(2)];
    let limited = FleetSettings { rate_limit_service: rate_limited().rate_limit_service, ..FleetSettings::default() };
    pipeline.set_fleet(&fleets[1], Some(FleetSettings::default()));
    pipeline.set_fleet(&fleets[2], Some(limited));
    let web = service("web", Ipv4Addr::LOCALHOST);
    pipeline.put(&web.key(), Some(web));
    let is_extension = |names: &BTreeSet<String>| names.iter().any(|name| name.ends_with("ds extension/default/auth"));
    let mut output = put(&mut pipeline, &contour(&json!({ "services": [{ "name": "web", "port": 80 }] })));
    let have = fleets.each_ref().map(|fleet| is_extension(&reported(&mut output, fleet).0));
    assert_eq!(have, [true, false, true], "the settings of the first and the third fleet use it");
    // The operator's authorization server is asked about a route.
    let route =
        Claims::new("route", fleets[1].clone()).listener("l", 8089, Http, "").route("l", "a.example.com", "web");
    route.clone().put(&mut pipeline);
    assert!(is_extension(&reported(&mut pipeline.settle(), &fleets[1]).0));
    pipeline.self_check().unwrap();
    route.remove(&mut pipeline);
    let mut output = pipeline.settle();
    let lose = fleets.each_ref().map(|fleet| is_extension(&reported(&mut output, fleet).1));
    assert_eq!(lose, [false, true, false]);
    pipeline.self_check().unwrap();
}

/// While the Secret of a changed extension is being read, the extension stays what it was.
#[test]
fn an_extension_stays_what_it_was_until_its_ca_is_read() {
    let settings = Settings { fetched_secrets: true, ..rate_limited() };
    let mut pipeline = Pipeline::new(&settings);
    let web = service("web", Ipv4Addr::LOCALHOST);
    pipeline.put(&web.key(), Some(web));
    let services = json!([{ "name": "web", "port": 80 }]);
    put(&mut pipeline, &contour(&json!({ "services": services })));
    let secret = ca("default", "ca");
    let trust = json!({ "services": services, "validation": { "caSecret": "ca", "subjectName": "auth.local" } });
    let mut output = put(&mut pipeline, &contour(&trust));
    assert_eq!(reported(&mut output, &FleetId::Shared), Default::default());
    assert_eq!(pipeline.secret_refs().new, [secret.key()]);
    assert!(pipeline.is_pending(&contour(&trust).key()));
    pipeline.put(&secret.key(), Some(secret.clone()));
    pipeline.set_fetch_result(&secret.key(), Some(FetchResult::Found));
    let (set, _) = reported(&mut pipeline.settle(), &FleetId::Shared);
    assert!(set.contains("cds extension/default/auth") && set.contains("sds ca/default/ca"), "{set:?}");
    pipeline.self_check().unwrap();
}

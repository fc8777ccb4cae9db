//! Services as people write them, and what is known about them afterwards.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use serde_json::json;

fn service(spec: serde_json::Value, annotations: serde_json::Value, settings: &Settings) -> Service {
    let object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "namespace": "shop", "annotations": annotations },
        "spec": spec,
    });
    let decoded = kinds::decode_json(kinds::kind::SERVICE, object.to_string().as_bytes()).unwrap();
    Service::read(decoded.object.get::<kinds::Service>().unwrap(), settings)
}

fn plain(spec: serde_json::Value) -> Service {
    service(spec, json!({}), &Settings::default())
}

fn external(name: &str) -> Result<ClusterId, Rejection> {
    let spec = json!({ "type": "ExternalName", "externalName": name, "ports": [{ "port": 80 }] });
    let on = Settings { external_names: true, ..Settings::default() };
    service(spec, json!({}), &on).backend(&PortRef::Number(80))
}

#[test]
fn ports_are_found_by_name_and_by_number() {
    let service = plain(json!({ "ports": [{ "name": "http", "port": 80 }, { "name": "admin", "port": 8081 }] }));
    let id = service.backend(&PortRef::Name("http".into())).unwrap();
    assert_eq!(id.to_string(), "shop/web/80");
    assert_eq!(service.backend(&PortRef::Number(80)), Ok(id));
    let rejection = service.backend(&PortRef::Number(81)).unwrap_err();
    assert_eq!(rejection.code, Code::ServicePortNotFound);
    assert_eq!(&*rejection.why, "Service shop/web has no port 81; it has 80 (`http`), 8081 (`admin`)");
}

#[test]
fn a_port_that_is_not_there_is_told_with_a_few_of_those_that_are() {
    let ports: Vec<_> = (1..=1000).map(|port| json!({ "name": format!("p{port}"), "port": port })).collect();
    let rejection = plain(json!({ "ports": ports })).backend(&PortRef::Number(2000)).unwrap_err();
    assert!(rejection.why.ends_with(", 9 (`p9`), 10 (`p10`), …"), "{}", rejection.why);
}

#[test]
fn a_port_that_carries_udp_is_no_backend_for_http() {
    let service = plain(json!({ "ports": [{ "name": "dns", "port": 53, "protocol": "UDP" }] }));
    assert_eq!(service.backend(&PortRef::Number(53)).unwrap_err().code, Code::ServicePortNotTcp);
}

#[test]
fn one_bad_port_does_not_spoil_the_others() {
    let service = plain(json!({ "ports": [{ "port": 70000 }, { "port": "x" }, { "port": 80 }] }));
    assert!(service.backend(&PortRef::Number(80)).is_ok());
    assert_eq!(service.verdicts.len(), 1);
}

#[test]
fn tcp_and_udp_may_share_a_number() {
    let udp = json!({ "name": "quic", "port": 443, "protocol": "UDP" });
    let tcp = json!({ "name": "web", "port": 443, "appProtocol": "https" });
    for ports in [json!([udp, tcp]), json!([tcp, udp])] {
        let service = plain(json!({ "ports": ports }));
        assert!(service.backend(&PortRef::Number(443)).is_ok(), "{ports}");
        assert!(service.backend(&PortRef::Name("web".into())).is_ok(), "{ports}");
        let rejection = service.backend(&PortRef::Name("quic".into())).unwrap_err();
        assert_eq!(rejection.code, Code::ServicePortNotTcp, "{ports}");
        assert_eq!(service.cluster(443, Transport::Tcp).unwrap().protocol, Protocol::Tls, "{ports}");
    }
    let service = plain(json!({ "ports": [tcp, udp] }));
    let of = |transport| service.backend_of(&PortRef::Number(443), transport).unwrap().to_string();
    assert_eq!((of(Transport::Tcp), of(Transport::Udp)), ("shop/web/443".into(), "shop/web/udp:443".into()));
    assert_eq!(service.cluster(443, Transport::Udp).unwrap().protocol, Protocol::Http1);
    let udp_alone = plain(json!({ "ports": [udp] }));
    assert!(udp_alone.backend_of(&PortRef::Number(443), Transport::Udp).is_ok());
    assert_eq!(udp_alone.cluster(443, Transport::Tcp), None);
    assert_eq!(udp_alone.backend(&PortRef::Number(443)).unwrap_err().code, Code::ServicePortNotTcp);
}

#[test]
fn a_headless_service_is_as_any_other() {
    let service = plain(json!({ "clusterIP": "None", "ports": [{ "port": 80 }] }));
    assert_eq!(service.cluster(80, Transport::Tcp).unwrap().discovery, Discovery::Endpoints);
}

#[test]
fn app_protocol_is_stronger_than_annotations() {
    let annotations =
        json!({ "projectcontour.io/upstream-protocol.h2": "a, 81", "projectcontour.io/upstream-protocol.tls": "b" });
    let spec = json!({ "ports": [
        { "name": "a", "port": 80 }, { "name": "c", "port": 81 }, { "name": "b", "port": 82 },
        { "name": "d", "port": 83, "appProtocol": "kubernetes.io/h2c" }, { "name": "e", "port": 84, "appProtocol": "https" },
        { "name": "f", "port": 85 }, { "name": "g", "port": 86, "appProtocol": "kubernetes.io/ws" },
        { "name": "h", "port": 87, "appProtocol": "kubernetes.io/wss" },
    ] });
    let service = service(spec, annotations, &Settings::default());
    let protocols: Vec<_> = service.ports.iter().map(|port| port.protocol).collect();
    let [http1, h2c, tls, h2] = [Protocol::Http1, Protocol::H2c, Protocol::Tls, Protocol::H2];
    assert_eq!(protocols, [h2, h2, tls, h2c, tls, http1, http1, tls]);
}

#[test]
fn limits_come_from_annotations_and_ours_win() {
    let annotations = json!({
        "projectcontour.io/max-connections": "10", "projectsesame.io/max-connections": "20",
        "projectcontour.io/max-requests": "0", "projectcontour.io/max-retries": "many",
    });
    let service = service(json!({ "ports": [{ "port": 80 }] }), annotations, &Settings::default());
    assert_eq!(service.breakers, CircuitBreakers { max_connections: Some(20), ..Default::default() });
    assert_eq!(service.verdicts.len(), 1);
    assert_eq!(service.verdicts[0].code, Code::AnnotationValue);
    assert_eq!(service.verdicts[0].origin.field.as_str(), "metadata.annotations[\"projectcontour.io/max-retries\"]");
}

#[test]
fn external_names_are_off_unless_they_are_on() {
    let spec = json!({ "type": "ExternalName", "externalName": "a.example.com", "ports": [{ "port": 80 }] });
    assert_eq!(plain(spec).backend(&PortRef::Number(80)).unwrap_err().code, Code::ExternalNameOff);
    assert!(external("a.example.com").is_ok());
    assert!(external("A.Example.com.").is_ok());
    assert!(external("203.0.113.7").is_ok());
}

#[test]
fn external_names_never_lead_back_to_us() {
    for name in [
        "localhost",
        "LOCALHOST.",
        "x.localhost",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "metadata.google.internal",
        "",
        "a b",
        "255.255.255.255",
        "224.0.0.1",
    ] {
        let Err(rejection) = external(name) else { panic!("{name:?} was let through") };
        assert_eq!(rejection.code, Code::ExternalNameNotAllowed, "{name:?}");
    }
}

#[test]
fn endpoints_may_be_listed_beside_a_folder_only() {
    let annotations = json!({ "projectsesame.io/endpoints": "127.0.0.1:8001, [::1]:8002,localhost:8003" });
    let spec = json!({ "ports": [{ "port": 80 }] });
    let on = Settings { listed_endpoints: true, ..Settings::default() };
    let local = service(spec.clone(), annotations.clone(), &on);
    assert_eq!(local.cluster(80, Transport::Tcp).unwrap().discovery, Discovery::Endpoints);
    let off = service(spec.clone(), annotations, &Settings::default());
    assert_eq!(off.backend(&PortRef::Number(80)).unwrap_err().code, Code::EndpointsNotValid);
    let named = service(spec.clone(), json!({ "projectsesame.io/endpoints": "db.lan:1" }), &on);
    assert!(matches!(named.cluster(80, Transport::Tcp).unwrap().discovery, Discovery::Dns(_)));
    let wrong = service(spec, json!({ "projectsesame.io/endpoints": "nowhere" }), &on);
    assert_eq!(wrong.backend(&PortRef::Number(80)).unwrap_err().code, Code::EndpointsNotValid);
}

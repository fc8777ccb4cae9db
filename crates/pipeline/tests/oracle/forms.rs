//! What the numbers of an edit stand for: settings, fleets, and the claims of an object of no dialect.

use super::claims::Claims;
use super::edits::{PAIRS, SECRETS, SERVICES, claimed_service, meta};
use kinds::{Object, ObjectRef, http_proxy::security::AuthorizationServer};
use model::{
    FleetId, PortProtocol,
    listener::{RateLimitService, Tracing},
};
use pipeline::{
    FleetSettings, Settings,
    authorization::{GlobalAuthorization, of_operator},
    extensions::ExtensionName,
    settings::{Bind, MetricsTls},
};
use serde_json::json;
use std::sync::Arc;
use testbed::cases::object;

pub fn fleet(number: u8) -> FleetId {
    if number == 0 { FleetId::Shared } else { FleetId::named("team", &format!("gateway-{number}")) }
}

pub fn fleet_settings(number: u8) -> FleetSettings {
    let mut settings = FleetSettings { http: Some(Bind::any(80)), ..FleetSettings::default() };
    settings.http_settings.max_streams = u32::from(number);
    settings
}

/// Listeners on one of two ports of one of three fleets, with a route, TLS or a target that may or may not fit.
pub fn claim(name: u8, form: u16) -> Claims {
    use PortProtocol::{Http, Quic, Tcp, Tls, Udp};
    let pick = |at: u32, of: u16| usize::from((form >> at) % of);
    let protocol = [Http, Tls, Tcp, Udp, Quic][pick(0, 5)];
    let host = ["*", "*.example.com", "a.example.com", "b.a.example.com"][pick(2, 4)];
    let listener = ["one", "two"][pick(4, 2)];
    let service = ["web", "api"][pick(5, 2)];
    let port = [80, 9000, 8080][pick(6, 3)];
    let claims = Claims::new(&format!("claim-{name}"), fleet(u8::try_from(pick(8, 3)).unwrap()));
    let claims = if pick(14, 3) > 0 { claims.bound() } else { claims };
    let claims = claims.at(["0.0.0.0", "0.0.0.0", "10.0.0.5", "::"][pick(9, 4)]);
    let claims = claims.created(i64::try_from(pick(10, 3)).unwrap()).listener(listener, port, protocol, host);
    match pick(12, 4) {
        0 => claims.route(listener, host, service),
        1 if name == 0 => claims.route(listener, host, service).tls_with_fallback(listener, host, "one", "one"),
        1 => claims.route(listener, host, service).tls(listener, host, &["one"]),
        2 => claims.passthrough(listener, host, service),
        _ => claims.stream(listener, &[(service, 1)]),
    }
}

/// What claims refer to.
pub fn targets_of_claims() -> [Object; 3] {
    let (chain, key) = &PAIRS[0];
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("default", "one"),
        "type": "kubernetes.io/tls", "stringData": { "tls.crt": chain, "tls.key": key } });
    [object(&claimed_service("web")), object(&claimed_service("api")), object(&secret)]
}

/// Spans go to an extension that there is now and then.
fn tracing(form: u8) -> (ExtensionName, Arc<Tracing>) {
    let extension = ExtensionName { namespace: "one".into(), name: SERVICES[usize::from(form) % 2].into() };
    let tracing = Tracing { max_path: u32::from(form), ..Tracing::default() };
    (extension, Arc::new(tracing))
}

pub fn vary(settings: &mut Settings, form: u8) {
    settings.http_settings.merge_slashes = form.is_multiple_of(2);
    settings.https_settings.max_requests = form.is_multiple_of(3).then_some(7);
    settings.cluster.max_requests = form.is_multiple_of(5).then_some(9);
    settings.admin_port = if form.is_multiple_of(7) { 0 } else { 9001 };
    settings.http = Bind::any([8080, 9000][usize::from(form / 64) % 2]);
    settings.resolve.external_names = !form.is_multiple_of(11);
    settings.ingress.https_port = form.is_multiple_of(4).then_some(8443);
    settings.metrics = form.is_multiple_of(3).then(|| Bind::any([8002, 8003][usize::from(form) % 2]));
    settings.metrics_tls = form.is_multiple_of(6).then(|| {
        let ca = form.is_multiple_of(12).then(|| "/ca".into());
        Arc::new(MetricsTls { certificate: "/certificate".into(), key: "/key".into(), ca })
    });
    settings.overload_health = form.is_multiple_of(5).then(|| Bind::any(8004));
    settings.runtime.max_connections = form.is_multiple_of(4).then_some(u32::from(form) + 1);
    settings.runtime.max_requests_per_io_cycle = form.is_multiple_of(9).then_some(3);
    let values = form.is_multiple_of(7).then(|| ("some.key".into(), form.to_string().into()));
    settings.runtime.values = values.into_iter().collect();
    settings.tracing = form.is_multiple_of(5).then(|| tracing(form));
    settings.authorization = form.is_multiple_of(4).then(|| authorization(form));
    settings.rate_limit_service = form.is_multiple_of(6).then(|| {
        let service = RateLimitService { fail_open: form.is_multiple_of(12), ..RateLimitService::default() };
        (tracing(form / 2).0, service)
    });
    let secret = |number: u8| ObjectRef::new(kinds::kind::SECRET, "one", SECRETS[usize::from(number) % 2]);
    let certificate = form.is_multiple_of(3).then(|| secret(form));
    settings.ingress.client_certificate.clone_from(&certificate);
    settings.http_proxy.client_certificate = certificate;
    settings.http_proxy.fallback_certificate = form.is_multiple_of(8).then(|| secret(form / 8));
}

/// The authorization server for all routes.
fn authorization(form: u8) -> GlobalAuthorization {
    let server = AuthorizationServer { fail_open: form.is_multiple_of(8), ..AuthorizationServer::default() };
    GlobalAuthorization { extension: tracing(form / 4).0, settings: of_operator(&server).unwrap() }
}

//! The dialect by itself, on a handful of objects: what a Listener does with requests, and on which field each finding is told.
//!
//! What routes do with requests is shown by the golden cases, through a real Envoy.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::{
    ClientDefaults, EmissaryView, Listeners, MappingDefaults, OwnListener, OwnListeners, Resolver, Settings, host,
    listener,
    listeners::MOST,
    mapping::{self, defaults::Closed},
};
use kinds::{
    Kind, Typed,
    emissary::{self, Host, Listener, Mapping},
    kind,
};
use model::{
    Code, ObjectRef, Translation,
    listener::HttpSettings,
    route::{Action, Authorization, Lengths},
    shared_routes::{Exposure, InsecureAction},
};
use resolve::{Certificate, KnownExtension, Rejection, Service, View};
use serde_json::{Value, json};
use std::sync::Arc;

/// A few objects.
#[derive(Default)]
pub(crate) struct Objects {
    listeners: Arc<Listeners>,
    hosts: Vec<Arc<Host>>,
    auth_service: Option<crate::AuthServiceInEffect>,
    rate_limit_service: Option<crate::RateLimitServiceInEffect>,
    defaults: Arc<MappingDefaults>,
}

impl View for Objects {
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        let ports = json!([{ "name": "http", "port": 80 }, { "name": "tls", "port": 443 }]);
        let meta = json!({ "namespace": namespace, "name": name });
        let object = decoded::<kinds::Service>(kind::SERVICE, &json!({ "metadata": meta, "spec": { "ports": ports } }));
        (name == "web").then(|| Arc::new(Service::read(&object, &resolve::Settings::default())))
    }

    fn certificate(&mut self, _: &ObjectRef) -> Option<Arc<Result<Certificate, Rejection>>> {
        None
    }

    fn ca(&mut self, _: &ObjectRef) -> Option<Arc<Result<Arc<str>, Rejection>>> {
        None
    }

    fn crls(&mut self, _: &ObjectRef) -> Option<Arc<Result<resolve::RevocationLists, Rejection>>> {
        None
    }

    fn is_own_namespace(&mut self, namespace: &str) -> bool {
        namespace == "projectsesame"
    }

    fn delegated(&mut self, _: &ObjectRef, _: &str) -> bool {
        false
    }

    fn grants(&mut self, _: &str, _: Kind, _: &str) -> Vec<Arc<kinds::ReferenceGrant>> {
        Vec::new()
    }

    fn extension(&mut self, _: &ObjectRef) -> Option<Arc<KnownExtension>> {
        None
    }
}

impl EmissaryView for Objects {
    fn listeners(&mut self) -> Arc<Listeners> {
        Arc::clone(&self.listeners)
    }

    fn has_hosts(&mut self) -> bool {
        !self.hosts.is_empty()
    }

    fn hosts_named(&mut self, hostname: &str) -> Vec<Arc<Host>> {
        self.hosts.iter().filter(|host| host::server_name(host) == hostname).cloned().collect()
    }

    fn resolver(&mut self, _: &str, _: &str) -> Option<Resolver> {
        None
    }

    fn tls_context(&mut self, _: &str, _: &str) -> Option<Arc<emissary::TlsContext>> {
        None
    }

    fn any_resolver(&mut self, _: &str) -> Option<Resolver> {
        None
    }

    fn any_tls_context(&mut self, _: &str) -> Option<Arc<emissary::TlsContext>> {
        None
    }

    fn tls_contexts_of(&mut self, _: &str) -> Vec<Arc<emissary::TlsContext>> {
        Vec::new()
    }

    fn tcp_plan(&mut self) -> Arc<crate::TcpPlan> {
        Arc::default()
    }

    fn tcp_mapping(&mut self, _: &ObjectRef) -> Option<Arc<emissary::TcpMapping>> {
        None
    }

    fn auth_service(&mut self) -> Option<crate::AuthServiceInEffect> {
        self.auth_service.clone()
    }

    fn mapping_defaults(&mut self) -> Arc<MappingDefaults> {
        Arc::clone(&self.defaults)
    }

    fn client_defaults(&mut self) -> Arc<ClientDefaults> {
        Arc::default()
    }

    fn rate_limit_service(&mut self) -> Option<crate::RateLimitServiceInEffect> {
        self.rate_limit_service.clone()
    }
}

fn decoded<T: Typed>(kind: Kind, object: &Value) -> Arc<T> {
    kinds::decode_json(kind, object.to_string().as_bytes()).unwrap().object.get::<T>().unwrap().clone()
}

fn settings() -> Settings {
    let own = |port| Some(OwnListener { port, http: HttpSettings::default(), buffer: 32 * 1024 });
    Settings { own: OwnListeners { http: own(8080), https: own(8443) }, ..Settings::default() }
}

fn a_listener(name: &str, spec: &Value) -> Arc<Listener> {
    let mut spec = spec.clone();
    for (field, value) in [("securityModel", json!("XFP")), ("hostBinding", json!({ "namespace": { "from": "ALL" } }))]
    {
        if spec.get(field).is_none() {
            spec[field] = value;
        }
    }
    decoded(kind::LISTENER, &json!({ "metadata": { "namespace": "ns", "name": name }, "spec": spec }))
}

fn reported(translation: &Translation) -> Vec<(Code, String)> {
    translation.verdicts.iter().map(|verdict| (verdict.code, verdict.origin.field.to_string())).collect()
}

fn mapped(spec: &Value) -> Translation {
    let mut spec = spec.clone();
    for (field, value) in [("prefix", "/a/"), ("service", "web"), ("hostname", "*")] {
        if spec.get(field).is_none() {
            spec[field] = value.into();
        }
    }
    let object = json!({ "metadata": { "namespace": "ns", "name": "a" }, "spec": spec });
    mapping::translate(&decoded::<Mapping>(kind::MAPPING, &object), &mut Objects::default(), &settings())
}

#[test]
fn what_a_request_becomes_follows_from_the_model_the_connection_and_the_proxies_in_front() {
    let redirect = InsecureAction::Redirect(None);
    let (insecure, forwarded) = (Exposure::Insecure(redirect), Exposure::Forwarded(redirect));
    let all = Exposure::All;
    for (protocol, model, depth, expected) in [
        ("HTTP", "XFP", 0, vec![insecure]),
        ("HTTP", "XFP", 1, vec![forwarded]),
        ("HTTP", "SECURE", 0, vec![all]),
        ("HTTP", "INSECURE", 0, vec![insecure]),
        // Over TLS, and in plaintext on the same port.
        ("HTTPS", "XFP", 0, vec![all, insecure]),
        ("HTTPS", "XFP", 1, vec![forwarded, forwarded]),
        ("HTTPS", "SECURE", 0, vec![all, insecure]),
        ("HTTPS", "SECURE", 1, vec![all, insecure]),
        ("HTTPS", "INSECURE", 0, vec![insecure, insecure]),
    ] {
        let spec = json!({ "port": 9000, "protocol": protocol, "securityModel": model, "l7Depth": depth });
        let listeners = Listeners::of([&*a_listener("a", &spec)], None, &settings());
        let bound = &listeners.served[0];
        let exposures = |action| bound.connections(action).map(|it| it.exposure).collect::<Vec<_>>();
        assert_eq!(exposures(Some(redirect)), expected, "{protocol} {model} {depth}");
        assert_eq!(exposures(None), vec![all; expected.len()], "{protocol} {model} {depth}");
    }
}

#[test]
fn stacks_that_are_served_and_those_that_are_told() {
    let read = |spec: Value| {
        let object = a_listener("a", &spec);
        let listeners = Arc::new(Listeners::of([&*object], None, &settings()));
        let told = reported(&listener::translate(
            &object,
            &mut Objects { listeners: listeners.clone(), ..Objects::default() },
            &settings(),
        ));
        (listeners.served.first().map(|bound| (bound.is_tls, bound.claim.is_some())), told)
    };
    let stack = |words: &[&str]| json!({ "port": 9000, "protocolStack": words });
    for (spec, expected) in [
        (json!({ "port": 8080, "protocol": "HTTP" }), (false, false)),
        (json!({ "port": 8443, "protocol": "HTTPS" }), (true, false)),
        (json!({ "port": 9000, "protocol": "HTTP" }), (false, true)),
        (json!({ "port": 9000, "protocol": "HTTPPROXY" }), (false, true)),
        (json!({ "port": 9000, "protocol": "HTTPSPROXY" }), (true, true)),
        (stack(&["PROXY", "TLS", "HTTP", "TCP"]), (true, true)),
        (stack(&["TLS", "HTTP", "UDP"]), (true, true)),
        // The shared listener has the port of TCP.
        (json!({ "port": 8443, "protocolStack": ["TLS", "HTTP", "UDP"] }), (true, true)),
    ] {
        assert_eq!(read(spec.clone()), (Some(expected), Vec::new()), "{spec}");
    }
    for (spec, field) in [
        (json!({ "port": 8080, "protocol": "HTTPPROXY" }), "spec.protocol"),
        (json!({ "port": 8080, "protocol": "TCP" }), "spec.port"),
        (json!({ "port": 9000, "protocol": "UDP" }), "spec.protocol"),
        (json!({ "port": 9000 }), "spec.protocol"),
        (json!({ "port": 9000, "protocol": "HTTP", "protocolStack": ["HTTP", "TCP"] }), "spec.protocolStack"),
        (stack(&["HTTP"]), "spec.protocolStack"),
        (stack(&["UDP"]), "spec.protocolStack"),
        (stack(&["HTTP", "UDP"]), "spec.protocolStack"),
        (stack(&["TLS", "UDP"]), "spec.protocolStack"),
        (stack(&["PROXY", "TLS", "HTTP", "UDP"]), "spec.protocolStack"),
        (json!({ "port": 0, "protocol": "HTTP" }), "spec.port"),
        (json!({ "port": "x", "protocol": "HTTP" }), "spec.port"),
        (json!({ "port": 9000, "protocol": "HTTP", "securityModel": "X" }), "spec.securityModel"),
        (json!({ "port": 9000, "protocol": "HTTP", "hostBinding": {} }), "spec.hostBinding"),
        (json!({ "port": 9000, "protocol": "HTTP", "l7Depth": -1 }), "spec.l7Depth"),
    ] {
        let (served, told) = read(spec.clone());
        assert_eq!(served, None, "{spec}");
        assert!(told.iter().any(|(_, at)| at == field), "{spec}: {told:?}");
    }
    // What differs from the settings of a shared listener is told, and the listener is served as they say.
    let (served, told) = read(json!({ "port": 8080, "protocol": "HTTP", "l7Depth": 2 }));
    assert_eq!(
        (served, told),
        (Some((false, false)), vec![(Code::EmissaryListenerSettings, "spec.l7Depth".to_owned())])
    );
}

#[test]
fn of_two_listeners_on_a_port_the_older_is_served_and_there_is_a_limit() {
    let many: Vec<_> = (0..=MOST as u16)
        .map(|at| a_listener(&format!("l{at:03}"), &json!({ "port": 9000 + at, "protocol": "HTTP" })))
        .collect();
    let all = Listeners::of(many.iter().map(|it| &**it), None, &settings());
    assert_eq!((all.served.len(), all.refused.len()), (MOST, 1));
    let pair = [
        a_listener("a", &json!({ "port": 9000, "protocol": "HTTP" })),
        a_listener("b", &json!({ "port": 9000, "protocol": "HTTPS" })),
    ];
    let two = Listeners::of(pair.iter().rev().map(|it| &**it), None, &settings());
    assert_eq!(two.served.iter().map(|it| &*it.object.name).collect::<Vec<_>>(), ["a"]);
    assert!(two.refused.values().next().unwrap().contains("keeping definition from ns/a"));
    let http3 = |name| a_listener(name, &json!({ "port": 9000, "protocolStack": ["TLS", "HTTP", "UDP"] }));
    let beside = [pair[0].clone(), http3("c"), http3("d")];
    let beside = Listeners::of(beside.iter().map(|it| &**it), None, &settings());
    assert_eq!(beside.served.iter().map(|it| &*it.object.name).collect::<Vec<_>>(), ["a", "c"]);
    assert!(beside.refused.values().next().unwrap().contains("keeping definition from ns/c"));
}

#[test]
fn lengths_are_those_of_the_texts_that_are_matched() {
    let lengths = |spec: Value| mapped(&spec).shared[0].routes[0].precedence.lengths;
    let of = |path, headers, query| Lengths { path, headers, query };
    assert_eq!(lengths(json!({ "prefix": "/abc" })), of(4, 11, 0));
    assert_eq!(lengths(json!({ "hostname": "a.b" })), of(3, 13, 0));
    assert_eq!(lengths(json!({ "method": "GET" })), of(3, 21, 0));
    assert_eq!(lengths(json!({ "headers": { "x-a": "bc" }, "regex_headers": { "x-b": "c" } })), of(3, 21, 0));
    assert_eq!(
        lengths(json!({ "query_parameters": { "a": "1" }, "regex_query_parameters": { "b": "2" } })),
        of(3, 11, 5)
    );
}

#[test]
fn a_field_that_cannot_be_served_is_told_and_the_mapping_answers_503() {
    let long = "(a|b)".repeat(64 * 1024 / 5);
    let pair = json!({ "pattern": long, "substitution": "/" });
    for (spec, code, field) in [
        (json!({ "timeout_ms": "soon" }), Code::EmissaryField, "timeout_ms"),
        (json!({ "weight": 101 }), Code::MappingWeight, "weight"),
        (json!({ "service": "localhost" }), Code::MappingService, "service"),
        (json!({ "service": "nowhere" }), Code::ServiceNotFound, "service"),
        (json!({ "tls": "context" }), Code::MappingUpstreamTls, "tls"),
        (json!({ "resolver": "consul" }), Code::EmissaryNotServed, "resolver"),
        (json!({ "headers": { "x-a": "" } }), Code::MappingMatch, "headers.x-a"),
        (json!({ "regex_headers": { "x-a": "(" } }), Code::MappingMatch, "regex_headers.x-a"),
        (json!({ "method": "(", "method_regex": true }), Code::MappingMatch, "method"),
        (json!({ "rewrite": "a\tb" }), Code::MappingRewrite, "rewrite"),
        (json!({ "outlier_detection": {} }), Code::EmissaryNotServed, "outlier_detection"),
        (json!({ "regex_headers": { "x-a": long } }), Code::MappingMatch, "regex_headers.x-a"),
        (json!({ "method": long, "method_regex": true }), Code::MappingMatch, "method"),
        (json!({ "regex_query_parameters": { "a": long } }), Code::MappingMatch, "regex_query_parameters.a"),
        (json!({ "regex_rewrite": pair }), Code::MappingRewrite, "regex_rewrite.pattern"),
        (
            json!({ "host_redirect": true, "service": "a.example.com", "regex_redirect": pair }),
            Code::MappingRewrite,
            "regex_redirect.pattern",
        ),
        (
            json!({ "host_redirect": true, "service": "a.example.com", "regex_redirect": { "pattern": "^/a/(.*)", "substitution": "\\1" } }),
            Code::MappingRewrite,
            "regex_redirect.substitution",
        ),
    ] {
        let translation = mapped(&spec);
        assert_eq!(reported(&translation), [(code, format!("spec.{field}"))], "{spec}");
        let action = &translation.shared[0].routes[0].action;
        assert!(matches!(action, Action::DirectResponse(it) if it.status == 503), "{spec}: {action:?}");
    }
    // Without a path or a host nobody knows which requests are meant.
    let long = "/(a|b)".repeat(64 * 1024 / 6);
    for (spec, field) in [
        (json!({ "prefix": "" }), "prefix"),
        (json!({ "hostname": "a.*.b" }), "hostname"),
        (json!({ "prefix": long, "prefix_regex": true }), "prefix"),
        (json!({ "hostname": "", "host": long, "host_regex": true }), "host"),
    ] {
        let translation = mapped(&spec);
        assert!(translation.shared.is_empty(), "{spec}");
        assert_eq!(reported(&translation)[0].1, format!("spec.{field}"), "{spec}");
    }
}

#[test]
fn headers_of_framing_and_of_our_own_cannot_be_changed() {
    for name in ["Content-Length", "Transfer-Encoding", "Connection", "X-Sesame-Host", ":path", "Proxy-Foo", "Host"] {
        let added = |is_appended: bool| json!({ name: { "value": "1", "append": is_appended } });
        for direction in ["request", "response"] {
            let (add, remove) = (format!("add_{direction}_headers"), format!("remove_{direction}_headers"));
            for (spec, field) in [
                (json!({ &add: added(true) }), format!("spec.{add}.{name}")),
                (json!({ &add: added(false) }), format!("spec.{add}.{name}")),
                (json!({ &remove: [name] }), format!("spec.{remove}")),
            ] {
                let translation = mapped(&spec);
                assert_eq!(reported(&translation), [(Code::MappingPolicy, field)], "{spec}");
                let action = &translation.shared[0].routes[0].action;
                assert!(matches!(action, Action::DirectResponse(it) if it.status == 503), "{spec}: {action:?}");
            }
        }
        // A health check that cannot be made is left out, and requests are served.
        let http = "health_checks[0].health_check.http";
        for (changes, field) in [
            (json!({ "add_request_headers": added(true) }), format!("spec.{http}.add_request_headers.{name}")),
            (json!({ "add_request_headers": added(false) }), format!("spec.{http}.add_request_headers.{name}")),
            (json!({ "remove_request_headers": [name] }), format!("spec.{http}.remove_request_headers")),
        ] {
            let mut check = json!({ "path": "/healthz" });
            check.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            let translation = mapped(&json!({ "health_checks": [{ "health_check": { "http": check } }] }));
            assert_eq!(reported(&translation), [(Code::MappingPolicy, field)], "{changes}");
            let Action::Forward(forward) = &translation.shared[0].routes[0].action else { panic!("{changes}") };
            let overrides = forward.clusters[0].cluster.overrides.as_ref();
            assert!(overrides.is_none_or(|overrides| overrides.health.is_none()), "{changes}");
        }
    }
}

#[test]
fn labels_of_a_mapping_have_so_much_text() {
    let object = ObjectRef::new(kind::RATE_LIMIT_SERVICE, "ns", "limits");
    let in_effect = crate::RateLimitServiceInEffect { object, domain: "shop".into(), is_usable: true };
    for (groups, expected) in [(8, Vec::new()), (32, vec![(Code::MappingLabels, "spec.labels.shop".to_owned())])] {
        let group = |n: usize| json!({ (format!("g{n}")): [{ "generic_key": { "value": "x".repeat(1000) } }] });
        let labels = json!({ "shop": (0..groups).map(group).collect::<Vec<_>>() });
        let spec = json!({ "prefix": "/", "hostname": "*", "service": "web", "labels": labels });
        let object =
            decoded::<Mapping>(kind::MAPPING, &json!({ "metadata": { "namespace": "ns", "name": "a" }, "spec": spec }));
        let mut view = Objects { rate_limit_service: Some(in_effect.clone()), ..Objects::default() };
        let translation = mapping::translate(&object, &mut view, &settings());
        assert_eq!(reported(&translation), expected, "{groups} groups");
        assert_eq!(translation.shared[0].routes[0].policy.global_limit.is_some(), expected.is_empty());
    }
}

#[test]
fn requests_do_not_pass_an_authorization_service_unasked() {
    let service = ObjectRef::new(kind::AUTH_SERVICE, "ns", "auth");
    for bypasses in [false, true] {
        let spec = json!({ "prefix": "/", "hostname": "*", "service": "web", "bypass_auth": bypasses });
        let object =
            decoded::<Mapping>(kind::MAPPING, &json!({ "metadata": { "namespace": "ns", "name": "a" }, "spec": spec }));
        let in_effect = crate::AuthServiceInEffect { object: service.clone(), is_usable: false, is_over_http: false };
        let mut view = Objects { auth_service: Some(in_effect), ..Objects::default() };
        let translation = mapping::translate(&object, &mut view, &settings());
        let authorization = &translation.shared[0].routes[0].policy.authorization;
        assert_eq!(matches!(authorization, Authorization::AskFleet(_)), !bypasses, "{authorization:?}");
    }
}

#[test]
fn requests_do_not_pass_a_module_that_would_keep_them_away() {
    for spec in [
        json!({ "prefix": "/", "hostname": "*", "service": "web", "bypass_auth": true }),
        json!({ "prefix": "/", "hostname": "*", "service": "a.example.com", "host_redirect": true }),
    ] {
        let object =
            decoded::<Mapping>(kind::MAPPING, &json!({ "metadata": { "namespace": "ns", "name": "a" }, "spec": spec }));
        let module = ObjectRef::new(kind::MODULE, "ns", "ambassador");
        let closed = Some(Closed { module, key: "ip_deny", why: "it cannot be read".into() });
        let defaults = Arc::new(MappingDefaults { closed, ..MappingDefaults::default() });
        let mut view = Objects { defaults, ..Objects::default() };
        let translation = mapping::translate(&object, &mut view, &settings());
        let action = &translation.shared[0].routes[0].action;
        assert!(matches!(action, Action::DirectResponse(_)), "{action:?}");
    }
}

#[test]
fn of_two_hosts_with_one_name_the_older_is_served() {
    let named = |name: &str, created: &str| {
        let meta = json!({ "namespace": "ns", "name": name, "creationTimestamp": created });
        decoded::<Host>(kind::HOST, &json!({ "metadata": meta, "spec": { "hostname": "a.example.com" } }))
    };
    let (old, new) = (named("z", "2026-01-01T00:00:00Z"), named("a", "2026-01-02T00:00:00Z"));
    let listeners =
        Arc::new(Listeners::of([&*a_listener("l", &json!({ "port": 8080, "protocol": "HTTP" }))], None, &settings()));
    let mut view = Objects { listeners, hosts: vec![new.clone(), old.clone()], ..Objects::default() };
    let served = host::translate(&old, &mut view, &settings());
    assert_eq!((served.hosts.len(), reported(&served)), (1, Vec::new()));
    let lost = host::translate(&new, &mut view, &settings());
    assert_eq!(
        (lost.hosts.len(), reported(&lost)),
        (0, vec![(Code::EmissaryHostDuplicate, "spec.hostname".to_owned())])
    );
}

#[test]
fn an_object_of_another_instance_is_none_of_ours() {
    let object = a_listener("a", &json!({ "port": 9000, "protocol": "HTTP", "ambassador_id": ["other"] }));
    assert!(!emissary::is_for(&object.spec.ambassador_id, &settings().ambassador_id));
}

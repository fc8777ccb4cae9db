//! The dialect by itself, on a handful of objects: whose an Ingress is, and on which field each finding is told.
//!
//! What the routes do with requests is shown by the golden cases, through a real Envoy.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod limits;

use crate::{CONTROLLER, IngressView, Settings, class, translate};
use kinds::{Ingress, IngressClass, Kind, Typed, kind};
use model::{
    CertificateRef, Code, Host, ListenerId, MutableHeader, ObjectRef, Translation,
    route::{Action, HeaderDefaults, PathMatch},
    tls::KeyPair,
};
use resolve::{Certificate, KnownExtension, Rejection, Service, View, certificate::Validity};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};

/// A few objects by name.
#[derive(Default)]
struct Objects {
    services: HashMap<(String, String), Arc<Service>>,
    certificates: HashMap<ObjectRef, Arc<Result<Certificate, Rejection>>>,
    delegated: Vec<(ObjectRef, String)>,
    classes: HashMap<String, Arc<IngressClass>>,
    default_class: Option<String>,
}

impl View for Objects {
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        self.services.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    fn certificate(&mut self, id: &ObjectRef) -> Option<Arc<Result<Certificate, Rejection>>> {
        self.certificates.get(id).cloned()
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

    fn delegated(&mut self, id: &ObjectRef, to: &str) -> bool {
        self.delegated.contains(&(id.clone(), to.to_owned()))
    }

    fn grants(&mut self, _: &str, _: kinds::Kind, _: &str) -> Vec<Arc<kinds::ReferenceGrant>> {
        Vec::new()
    }

    fn extension(&mut self, _: &ObjectRef) -> Option<Arc<KnownExtension>> {
        None
    }
}

impl IngressView for Objects {
    fn class(&mut self, name: &str) -> Option<Arc<IngressClass>> {
        self.classes.get(name).cloned()
    }

    fn default_class(&mut self) -> Option<Arc<IngressClass>> {
        self.classes.get(self.default_class.as_deref()?).cloned()
    }
}

impl Objects {
    /// With a Service `shop/web` that has a port 80, and a certificate `shop/cert`.
    fn usual() -> Self {
        let service = object::<kinds::Service>(
            kind::SERVICE,
            &json!({ "metadata": { "namespace": "shop", "name": "web" }, "spec": { "ports": [{ "name": "http", "port": 80 }] } }),
        );
        let service = Arc::new(Service::read(&service, &resolve::Settings::default()));
        let mut objects = Self { services: [(("shop".into(), "web".into()), service)].into(), ..Self::default() };
        objects.certificate("shop", "cert");
        objects
    }

    fn certificate(&mut self, namespace: &str, name: &str) {
        let pair = KeyPair { chain: "chain".into(), key: "key".into() };
        let validity = Validity { not_before: 0, not_after: i64::MAX, notice: None };
        let names = vec!["*.example.com".into()];
        let certificate = Certificate { pair, validity, names };
        self.certificates.insert(ObjectRef::new(kinds::kind::SECRET, namespace, name), Arc::new(Ok(certificate)));
    }

    fn class(mut self, name: &str, controller: &str, is_default: bool) -> Self {
        let class = json!({ "metadata": { "name": name }, "spec": { "controller": controller } });
        self.classes.insert(name.into(), object(kind::INGRESS_CLASS, &class));
        if is_default {
            self.default_class = Some(name.into());
        }
        self
    }

    fn translation(&mut self, settings: &Settings, object: &Value) -> Option<Translation> {
        translate(&ingress(object), self, settings)
    }

    /// The findings about an object: code and field.
    fn findings(&mut self, object: &Value) -> Vec<(Code, String)> {
        let translation = self.translation(&Settings::default(), object).unwrap();
        translation.verdicts.iter().map(|verdict| (verdict.code, verdict.origin.field.to_string())).collect()
    }
}

fn object<T: Typed>(kind: Kind, value: &Value) -> Arc<T> {
    let decoded = kinds::decode_json(kind, value.to_string().as_bytes()).unwrap();
    decoded.object.get::<T>().unwrap().clone()
}

/// An Ingress `shop/a` of this `spec`, or of these `annotations` and `spec`.
fn ingress(value: &Value) -> Arc<Ingress> {
    let spec = value.get("spec").unwrap_or(value);
    let annotations = value.get("annotations").unwrap_or(&Value::Null);
    let metadata = json!({ "namespace": "shop", "name": "a", "annotations": annotations });
    object(kind::INGRESS, &json!({ "metadata": metadata, "spec": spec }))
}

fn backend(name: &str) -> Value {
    json!({ "service": { "name": name, "port": { "number": 80 } } })
}

/// A spec of one host with these paths.
fn paths(paths: &Value) -> Value {
    json!({ "rules": [{ "host": "a.example.com", "http": { "paths": paths } }] })
}

#[test]
fn whose_an_ingress_is() {
    let none = || Objects::default().class("internal", CONTROLLER, false).class("nginx", "k8s.io/nginx", false);
    let ours = || Objects::default().class("internal", CONTROLLER, true);
    let foreign = || Objects::default().class("nginx", "k8s.io/nginx", true);
    let field = |class: &str| json!({ "spec": { "ingressClassName": class } });
    let annotated = |name: &str, class: &str| json!({ "annotations": { name: class }, "spec": {} });
    let usual = Settings::default();
    let configured = Settings { class_names: vec!["internal".into()], ..Settings::default() };
    let emissary = Settings { emissary_class: true, ..Settings::default() };
    let both = Settings { emissary_class: true, ..configured.clone() };
    let theirs = || Objects::default().class("edge", class::EMISSARY_CONTROLLER, false);
    let old = "kubernetes.io/ingress.class";
    let contours = "projectcontour.io/ingress.class";
    let over_field = |class: &str| json!({ "annotations": { old: "" }, "spec": { "ingressClassName": class } });
    let over_weaker = |class: &str| json!({ "annotations": { contours: "", old: class } });
    let rows: [(&str, Objects, &Settings, Value, bool); 30] = [
        ("no class", none(), &usual, json!({}), true),
        ("an empty field", none(), &usual, field(""), true),
        ("an empty annotation", none(), &usual, annotated(old, ""), true),
        ("an empty annotation over a field", none(), &usual, over_field("nginx"), false),
        ("an empty annotation over a weaker one", none(), &usual, over_weaker("nginx"), true),
        ("an empty field, the default another's", foreign(), &usual, field(""), false),
        ("configured, an empty field", none(), &configured, field(""), false),
        ("configured, an empty annotation", none(), &configured, annotated(old, ""), false),
        ("configured, an empty annotation over a field", none(), &configured, over_field("internal"), true),
        ("contour", none(), &usual, field("contour"), true),
        ("sesame by annotation", none(), &usual, annotated(old, "sesame"), true),
        ("a class of ours", none(), &usual, field("internal"), true),
        ("a class of ours by annotation", none(), &usual, annotated(old, "internal"), true),
        ("a class of another", none(), &usual, field("nginx"), false),
        ("a class that is not there", none(), &usual, field("gone"), false),
        ("no class, the default ours", ours(), &usual, json!({}), true),
        ("no class, the default another's", foreign(), &usual, json!({}), false),
        ("named, the default another's", foreign(), &usual, field("sesame"), true),
        ("configured", none(), &configured, field("internal"), true),
        ("configured, no class", none(), &configured, json!({}), false),
        ("configured, no class, the default configured", ours(), &configured, json!({}), true),
        ("configured, contour", none(), &configured, field("contour"), false),
        ("Emissary's class, not on request", none(), &usual, annotated(old, "ambassador"), false),
        ("Emissary's class", none(), &emissary, annotated(old, "ambassador"), true),
        ("Emissary's class beside configured ones", none(), &both, field("ambassador"), true),
        ("a class of Emissary's controller, not on request", theirs(), &usual, field("edge"), false),
        ("a class of Emissary's controller", theirs(), &emissary, field("edge"), true),
        ("a class of Emissary's controller beside configured ones", theirs(), &both, field("edge"), true),
        ("configured beside Emissary's, a class of our controller", ours(), &both, field("other"), false),
        ("a class that cannot be read", none(), &usual, json!({ "spec": { "ingressClassName": 7 } }), false),
    ];
    for (what, mut objects, settings, object, expected) in rows {
        assert_eq!(objects.translation(settings, &object).is_some(), expected, "{what}");
    }
}

#[test]
fn an_ingress_of_emissarys_classes_is_for_the_instances_that_its_ids_name() {
    let settings = |id: &str, report_other_classes| Settings {
        emissary_class: true,
        ambassador_id: id.into(),
        report_other_classes,
        ..Settings::default()
    };
    let rows = [
        (json!(null), true, false),
        (json!("default"), true, false),
        (json!("blue"), false, true),
        (json!("green"), false, false),
        (json!("_automatic_"), true, true),
        (json!("[\"blue\", \"default\"]"), true, true),
        (json!("[blue, 'green']"), false, true),
        (json!("- blue\n- green\n"), false, true),
        (json!(7), false, false),
    ];
    for (ids, of_default, of_blue) in rows {
        let mut annotations = json!({ "kubernetes.io/ingress.class": "ambassador" });
        if !ids.is_null() {
            annotations["getambassador.io/ambassador-id"] = ids.clone();
        }
        let object = json!({ "annotations": annotations, "spec": {} });
        for (id, expected) in [("default", of_default), ("blue", of_blue)] {
            let served = Objects::default().translation(&settings(id, true), &object);
            assert_eq!(served.is_some(), expected, "{id} of {ids}; that of another instance is not told");
        }
    }
    let ids = "getambassador.io/ambassador-id";
    let rows = [("blue", "blue", true), ("green", "blue", false), ("blue", "green", false)];
    for (of_class, of_ingress, expected) in rows {
        let metadata = json!({ "name": "edge", "annotations": { ids: of_class } });
        let class = json!({ "metadata": metadata, "spec": { "controller": class::EMISSARY_CONTROLLER } });
        let mut objects = Objects::default();
        objects.classes.insert("edge".into(), object(kind::INGRESS_CLASS, &class));
        let object = json!({ "annotations": { ids: of_ingress }, "spec": { "ingressClassName": "edge" } });
        let served = objects.translation(&settings("blue", false), &object);
        assert_eq!(served.is_some(), expected, "{of_class} {of_ingress}");
    }
    // A class object called as Emissary's class has ids of its own, which an annotation does not go by.
    let metadata = json!({ "name": "ambassador", "annotations": { ids: "blue" } });
    let class = json!({ "metadata": metadata, "spec": { "controller": class::EMISSARY_CONTROLLER } });
    let mut objects = Objects::default();
    objects.classes.insert("ambassador".into(), object(kind::INGRESS_CLASS, &class));
    let by_field = json!({ "spec": { "ingressClassName": "ambassador" } });
    let by_annotation = json!({ "annotations": { "kubernetes.io/ingress.class": "ambassador" }, "spec": {} });
    assert!(objects.translation(&settings("default", false), &by_field).is_none());
    assert!(objects.translation(&settings("default", false), &by_annotation).is_some());
}

#[test]
fn the_annotation_that_is_ours_beats_the_others() {
    let names = ["kubernetes.io/ingress.class", "projectcontour.io/ingress.class", "projectsesame.io/ingress.class"];
    for strongest in 0..names.len() {
        let classes = names.iter().take(strongest + 1).enumerate();
        let annotations: serde_json::Map<String, Value> = classes
            .map(|(at, name)| ((*name).to_owned(), if at == strongest { "sesame" } else { "nginx" }.into()))
            .collect();
        let object = json!({ "annotations": annotations, "spec": { "ingressClassName": "nginx" } });
        assert!(Objects::default().translation(&Settings::default(), &object).is_some(), "{}", names[strongest]);
    }
}

#[test]
fn each_finding_stands_on_its_field() {
    let path = |fields: Value| {
        let mut path = json!({ "path": "/", "pathType": "Prefix", "backend": backend("web") });
        path.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        paths(&json!([{ "pathType": "Prefix", "backend": backend("web") }, path]))
    };
    let service =
        |port: Value| path(json!({ "path": "/x", "backend": { "service": { "name": "web", "port": port } } }));
    let tls = |entry: Value| {
        let mut spec = paths(&json!([{ "pathType": "Prefix", "backend": backend("web") }]));
        spec.as_object_mut().unwrap().insert("tls".into(), json!([entry]));
        spec
    };
    let at = "spec.rules[0].http.paths[1]";
    let rows: Vec<(Value, Code, String)> = vec![
        (json!({}), Code::IngressEmpty, "spec".into()),
        (json!({ "rules": [{ "host": "A" }] }), Code::IngressHost, "spec.rules[0].host".into()),
        (path(json!({ "path": "x" })), Code::IngressPath, format!("{at}.path")),
        (path(json!({ "path": "/[", "pathType": null })), Code::IngressRegex, format!("{at}.path")),
        (path(json!({ "path": "/x", "pathType": "Glob" })), Code::PathType, format!("{at}.pathType")),
        (
            path(json!({ "path": "/x", "backend": backend("no") })),
            Code::ServiceNotFound,
            format!("{at}.backend.service.name"),
        ),
        (service(json!({ "number": 81 })), Code::ServicePortNotFound, format!("{at}.backend.service.port.number")),
        (service(json!({})), Code::ServicePortNotFound, format!("{at}.backend.service.port")),
        (path(json!({ "path": "/x", "backend": {} })), Code::IngressBackendMissing, format!("{at}.backend")),
        (
            path(json!({ "path": "/x", "backend": { "resource": { "kind": "A", "name": "b" } } })),
            Code::ResourceBackend,
            format!("{at}.backend.resource"),
        ),
        (json!({ "defaultBackend": backend("no") }), Code::ServiceNotFound, "spec.defaultBackend.service.name".into()),
        (
            tls(json!({ "hosts": ["a.example.com"], "secretName": "no" })),
            Code::SecretNotFound,
            "spec.tls[0].secretName".into(),
        ),
        (tls(json!({ "hosts": ["a.example.com"] })), Code::SecretNotFound, "spec.tls[0].secretName".into()),
        (tls(json!({ "secretName": "cert" })), Code::TlsWithoutHost, "spec.tls[0]".into()),
        (
            tls(json!({ "hosts": ["a.example.com", ""], "secretName": "cert" })),
            Code::TlsWithoutHost,
            "spec.tls[0].hosts[1]".into(),
        ),
        (tls(json!({ "hosts": ["A"], "secretName": "cert" })), Code::IngressHost, "spec.tls[0].hosts[0]".into()),
    ];
    for (spec, code, field) in rows {
        assert_eq!(Objects::usual().findings(&spec), [(code, field)], "{spec}");
    }
}

#[test]
fn each_finding_about_an_annotation_stands_on_it() {
    let rows = [
        ("projectcontour.io/response-timeout", "soon", Code::AnnotationValue),
        ("projectcontour.io/response-timeout", "-1s", Code::AnnotationValue),
        ("projectcontour.io/request-timeout", "5", Code::AnnotationValue),
        ("projectcontour.io/response-timeout", "9999h", Code::DurationTooLong),
        ("projectcontour.io/retry-on", "sometimes", Code::AnnotationValue),
        ("projectcontour.io/tls-minimum-protocol-version", "1.1", Code::AnnotationValue),
        ("projectcontour.io/tls-maximum-protocol-version", "2", Code::AnnotationValue),
        ("ingress.kubernetes.io/force-ssl-redirect", "maybe", Code::AnnotationValue),
        ("kubernetes.io/ingress.allow-http", "", Code::AnnotationValue),
        ("projectcontour.io/no-such-thing", "", Code::AnnotationUnknown),
        ("projectsesame.io/response-timout", "5s", Code::AnnotationUnknown),
        ("ingress.kubernetes.io/auth-type", "basic", Code::ForeignProtection),
    ];
    let mut spec = paths(&json!([{ "pathType": "Prefix", "backend": backend("web") }]));
    spec["tls"] = json!([{ "hosts": ["a.example.com"], "secretName": "cert" }]);
    for (name, value, code) in rows {
        let object = json!({ "annotations": { name: value }, "spec": spec });
        let expected = (code, format!("metadata.annotations[\"{name}\"]"));
        assert_eq!(Objects::usual().findings(&object), [expected], "{name}: {value}");
    }
}

#[test]
fn a_secret_of_another_namespace_needs_its_owners_word() {
    let mut spec = paths(&json!([{ "pathType": "Prefix", "backend": backend("web") }]));
    spec["tls"] = json!([{ "hosts": ["a.example.com"], "secretName": "cert" }]);
    let object = json!({ "annotations": { "projectcontour.io/tls-cert-namespace": "certs" }, "spec": spec });
    let mut objects = Objects::usual();
    objects.certificate("certs", "cert");
    assert_eq!(objects.findings(&object), [(Code::DelegationMissing, "spec.tls[0].secretName".into())]);
    objects.delegated.push((ObjectRef::new(kinds::kind::SECRET, "certs", "cert"), "shop".into()));
    assert_eq!(objects.findings(&object), []);
    let translation = objects.translation(&Settings::default(), &object).unwrap();
    assert_eq!(
        translation.tls[0].mode.http().unwrap().certificate,
        CertificateRef::Secret(ObjectRef::new(kinds::kind::SECRET, "certs", "cert"))
    );
}

#[test]
fn every_host_is_named_on_both_listeners_whatever_is_left_of_its_rule() {
    let spec = json!({ "rules": [
        { "host": "bad.example.com", "http": { "paths": [{ "path": "/[", "backend": backend("web") }] } },
        { "host": "good.example.com", "http": { "paths": [{ "path": "/", "backend": backend("web") }] } },
        { "host": "bare.example.com" },
    ]});
    let annotations = json!({ "kubernetes.io/ingress.allow-http": "false" });
    let translation = Objects::usual()
        .translation(&Settings::default(), &json!({ "annotations": annotations, "spec": spec }))
        .unwrap();
    for listener in [ListenerId::http(), ListenerId::https()] {
        for host in ["bad.example.com", "good.example.com", "bare.example.com"] {
            assert!(translation.hosts.contains(&(listener.clone(), Host::parse(host).unwrap())), "{listener} {host}");
        }
    }
    let routes: Vec<_> =
        translation.routes.iter().map(|piece| (piece.listener.clone(), piece.host.to_string())).collect();
    assert_eq!(routes, [(ListenerId::https(), "good.example.com".to_owned())]);
}

#[test]
fn a_path_that_cannot_be_served_still_answers() {
    let translation = Objects::usual()
        .translation(
            &Settings::default(),
            &paths(&json!([{ "path": "/a", "pathType": "Exact", "backend": backend("no") }])),
        )
        .unwrap();
    let route = &translation.routes[0].route;
    assert!(matches!(&route.path, PathMatch::Exact(path) if path.as_str() == "/a"));
    assert!(matches!(&route.action, Action::DirectResponse(respond) if respond.status == 503));
    assert_eq!(route.origin.to_string(), "Ingress shop/a spec.rules[0].http.paths[0]");
}

#[test]
fn headers_that_the_operator_sets_are_on_the_way_to_every_backend() {
    let settings = Settings {
        request_headers: HeaderDefaults {
            set: [(MutableHeader::parse("x-service").unwrap(), "%CONTOUR_SERVICE_NAME%".into())].into(),
            remove: [MutableHeader::parse("x-debug").unwrap()].into(),
        },
        ..Settings::default()
    };
    let spec = paths(&json!([{ "path": "/", "pathType": "Prefix", "backend": backend("web") }]));
    let translation = Objects::usual().translation(&settings, &json!({ "spec": spec })).unwrap();
    let Action::Forward(forward) = &translation.routes[0].route.action else { panic!("it goes to a backend") };
    let changes = &forward.clusters[0].request_headers;
    let set: Vec<_> = changes.set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(set, [("x-service", "web")]);
    assert_eq!(changes.remove, [MutableHeader::parse("x-debug").unwrap()]);
}

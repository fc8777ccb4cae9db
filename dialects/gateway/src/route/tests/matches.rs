//! Which requests a rule is for.

use super::world::{World, backend, codes, message, parents, routes};
use kinds::kind;
use model::{
    Code, Translation,
    cluster::Protocol,
    route::{Action, Route, StringMatch, ValueMatch},
};
use serde_json::{Value, json};

fn value(value: &ValueMatch) -> String {
    match value {
        ValueMatch::Present => "*".to_owned(),
        ValueMatch::Text { text: StringMatch::Exact(text), .. } => format!("={text}"),
        ValueMatch::Text { text, .. } => format!("~{}", text.as_str()),
    }
}

/// A match as text.
fn shown(route: &Route) -> String {
    let headers = route.conditions.headers.iter().map(|header| format!(" {}{}", header.name, value(&header.value)));
    let query = route.conditions.query.iter().map(|query| format!(" ?{}{}", query.name, value(&query.value)));
    format!("{}{}", route.path, headers.chain(query).collect::<String>())
}

fn all(translation: &Translation) -> Vec<String> {
    routes(translation).into_iter().map(|route| shown(route)).collect()
}

fn http(matches: Value) -> Translation {
    World::new().http(json!([{ "matches": matches, "backendRefs": [backend("app", 80)] }]))
}

#[test]
fn a_rule_without_matches_is_for_every_request() {
    assert_eq!(all(&World::new().http(json!([{ "backendRefs": [backend("app", 80)] }]))), ["/…"]);
    assert_eq!(all(&http(json!([{}]))), ["/…"]);
    // As the API server fills it in.
    assert_eq!(all(&World::new().http(json!([]))), ["/…"]);
}

#[test]
fn paths_methods_headers_and_parameters() {
    let path = |of: &str, value: &str| json!({ "path": { "type": of, "value": value } });
    let matches = json!([
        path("Exact", "/a/"), path("PathPrefix", "/a/"), path("PathPrefix", "/"), path("RegularExpression", "/a[0-9]+"),
        { "path": { "value": "/b" }, "method": "GET" },
        { "headers": [{ "name": "X-A", "value": "1" }, { "name": "x-a", "value": "2" }, { "name": "x-b", "type": "RegularExpression", "value": "[a-z]" }] },
        { "headers": [{ "name": "Host", "value": "a" }] },
        { "queryParams": [{ "name": "q", "value": "1" }, { "name": "q", "value": "2" }, { "name": "Q", "type": "RegularExpression", "value": ".*" }] },
    ]);
    assert_eq!(
        all(&http(matches)),
        [
            "= /a/",
            "/a/…",
            "/…",
            "~ /a[0-9]+",
            "/b/… :method=GET",
            "/… x-a=1 x-b~[a-z]",
            "/… :authority=a",
            "/… ?Q~.* ?q=1",
        ]
    );
}

#[test]
fn a_match_that_is_wrong_is_dropped_alone() {
    for wrong in [
        json!({ "path": { "value": "a" } }),
        json!({ "path": { "value": "/a b" } }),
        json!({ "path": { "type": "RegularExpression", "value": "(" } }),
        json!({ "path": { "type": "Suffix", "value": "/a" } }),
        json!({ "path": { "value": 7 } }),
        json!({ "method": "G T" }),
        json!({ "headers": [{ "name": "a b", "value": "1" }] }),
        json!({ "headers": [{ "name": ":path", "value": "1" }] }),
        json!({ "headers": [{ "name": "a", "type": "RegularExpression", "value": "(" }] }),
        json!({ "headers": [{ "name": "a", "type": "Present", "value": "" }] }),
        json!({ "queryParams": [{ "name": "", "value": "1" }] }),
    ] {
        let translation = http(json!([wrong, { "path": { "value": "/right" } }]));
        assert_eq!(all(&translation), ["/right/…"], "{wrong}");
        assert_eq!(codes(&translation), [Code::GatewayRouteMatch], "{wrong}");
        let partial = message(&translation, "PartiallyInvalid");
        assert!(partial.starts_with("Dropped Rule match: SES6023: spec.rules[0].matches[0]"), "{partial}");
        let alone = http(json!([wrong]));
        assert_eq!(parents(&alone)[0][0], "Accepted=False UnsupportedValue", "{wrong}");
        assert!(alone.routes.is_empty() && alone.attached.is_empty(), "{wrong}");
    }
}

/// The API asks for messages that begin with `Dropped Rule` or `Fall Back`.
#[test]
fn what_is_left_out_is_told_in_the_words_of_the_api() {
    let rule = |matches: Value, backends: Value| json!([{ "matches": matches, "backendRefs": backends }]);
    let (right, app) = (json!([{ "path": { "value": "/right" } }]), backend("app", 80));
    let hostnames = json!(["a.example.com", "-"]);
    for spec in [
        json!({ "rules": [{ "filters": [7] }, { "backendRefs": [app] }] }),
        json!({ "rules": [7, { "backendRefs": [app] }] }),
        json!({ "rules": rule(json!([7, right[0]]), json!([app])) }),
        json!({ "rules": rule(right.clone(), json!([7, app])) }),
        json!({ "rules": rule(right.clone(), json!([app])), "hostnames": hostnames }),
    ] {
        let translation = World::new().route(kind::HTTP_ROUTE, spec.clone());
        assert_eq!(parents(&translation)[0][0], "Accepted=True Accepted", "{spec}");
        assert_eq!(parents(&translation)[0][2], "PartiallyInvalid=True UnsupportedValue", "{spec}");
        let partial = message(&translation, "PartiallyInvalid");
        assert!(partial.starts_with("Dropped Rule"), "{partial}");
    }
}

#[test]
fn a_rule_that_is_wrong_is_dropped_alone() {
    let translation = World::new().http(json!([7, { "backendRefs": [backend("app", 80)] }]));
    assert_eq!((all(&translation), codes(&translation)), (vec!["/…".to_owned()], vec![Code::GatewayRouteRule]));
    assert_eq!(parents(&translation)[0][2], "PartiallyInvalid=True UnsupportedValue");
}

#[test]
fn rules_and_matches_have_their_order() {
    let rule = |path: &str| json!({ "matches": [{ "path": { "value": path } }, { "path": { "value": "/z" } }], "backendRefs": [backend("app", 80)] });
    let translation = World::new().http(json!([rule("/b"), rule("/a")]));
    assert_eq!(all(&translation), ["/b/…", "/z/…", "/a/…", "/z/…"]);
    let origins: Vec<_> = routes(&translation).iter().map(|route| route.origin.field.to_string()).collect();
    assert_eq!(origins, ["spec.rules[0]", "spec.rules[0]", "spec.rules[1]", "spec.rules[1]"]);
}

#[test]
fn services_and_methods_of_grpc_are_paths() {
    let of = |matches: Value| {
        let rules = json!([{ "matches": matches, "backendRefs": [backend("app", 80)] }]);
        World::new().route(kind::GRPC_ROUTE, json!({ "rules": rules }))
    };
    let method = |of: &str, service: Value, method: Value| json!({ "method": { "type": of, "service": service, "method": method } });
    let translation = of(json!([
        method("Exact", json!("a.B"), json!("C")), method("Exact", json!("a.B"), json!(null)), method("Exact", json!(null), json!("C.D")),
        method("RegularExpression", json!("a|b"), json!(null)), { "headers": [{ "name": "x", "value": "1" }] }, {},
    ]));
    assert_eq!(
        all(&translation),
        ["= /a.B/C", "/a.B/…", "/… :path~/[^/]+/C\\.D(\\?.*)?", "~ /(?:a|b)/(?:[^/]+)", "/… x=1", "/…"]
    );
    let routes = routes(&translation);
    let Action::Forward(forward) = &routes[0].action else { panic!("it goes to a backend") };
    let protocol = forward.clusters[0].cluster.overrides.as_ref().and_then(|overrides| overrides.protocol);
    assert_eq!((protocol, forward.websocket), (Some(Protocol::H2c), false));
    for wrong in [
        method("Exact", json!(null), json!(null)),
        method("Exact", json!("a/b"), json!(null)),
        method("Exact", json!("a b"), json!(null)),
        method("RegularExpression", json!("("), json!(null)),
        method("Prefix", json!("a"), json!(null)),
    ] {
        assert_eq!(codes(&of(json!([wrong, {}]))), [Code::GatewayRouteMatch], "{wrong}");
    }
}

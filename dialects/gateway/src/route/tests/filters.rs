//! Filters, timeouts and retries: what is done, and what is refused.

use super::world::{FINE, World, backend, backends, codes, forward, listener, message, parents, routes};
use kinds::kind;
use model::{
    Code, Timeout, Translation,
    route::{Action, HeaderChanges, HostRewrite, PathRewrite, Redirect, UnavailableAnswer, cors::AllowedOrigin},
};
use serde_json::{Value, json};
use std::time::Duration;

fn rule(filters: Value) -> Value {
    json!({ "filters": filters, "backendRefs": [backend("app", 80)] })
}

fn http(filters: Value) -> Translation {
    World::new().http(json!([rule(filters)]))
}

fn request(modifier: Value) -> Value {
    json!([{ "type": "RequestHeaderModifier", "requestHeaderModifier": modifier }])
}

fn response(modifier: Value) -> Value {
    json!([{ "type": "ResponseHeaderModifier", "responseHeaderModifier": modifier }])
}

/// The changes as text: `=` sets, `+` adds, `-` removes.
fn shown(changes: &HeaderChanges) -> Vec<String> {
    let set = changes.set.iter().map(|(name, value)| format!("={name} {}", value.as_str()));
    let add = changes.add.iter().map(|(name, value)| format!("+{name} {}", value.as_str()));
    set.chain(add).chain(changes.remove.iter().map(|name| format!("-{name}"))).collect()
}

#[test]
fn headers_are_set_added_and_removed_as_they_are_written() {
    let modifier = json!({
        "set": [{ "name": "X-B", "value": "1" }, { "name": "x-b", "value": "2" }, { "name": "x-a", "value": "%HOSTNAME% 100%" }],
        "add": [{ "name": "X-C", "value": "4" }, { "name": "x-c", "value": "3" }, { "name": "x-b", "value": "5" }],
        "remove": ["X-D", "x-d"],
    });
    let expected = ["=x-a %%HOSTNAME%% 100%%", "=x-b 1", "+x-b 5", "+x-c 4", "+x-c 3", "-x-d"];
    let translation = http(request(modifier.clone()));
    assert_eq!(shown(&routes(&translation)[0].policy.request_headers), expected);
    assert_eq!(parents(&translation), [FINE]);
    let translation = http(response(modifier));
    assert_eq!(shown(&routes(&translation)[0].policy.response_headers), expected);
}

#[test]
fn the_host_is_rewritten_and_nothing_else_can_be_done_with_it() {
    let host = json!([{ "name": "Host", "value": "other.example.com" }]);
    let translation = http(request(json!({ "set": host })));
    let HostRewrite::Literal(found) = forward(&translation).host.unwrap() else { panic!("a literal") };
    assert_eq!(found.as_str(), "other.example.com");
    for wrong in
        [request(json!({ "add": host })), request(json!({ "remove": ["host"] })), response(json!({ "set": host }))]
    {
        assert_eq!(codes(&http(wrong.clone())), [Code::GatewayRouteFilter], "{wrong}");
    }
}

#[test]
fn headers_of_framing_and_of_our_own_cannot_be_changed() {
    for name in ["Content-Length", "Transfer-Encoding", "Connection", "X-Sesame-Host", ":path", "a b", "Proxy-Foo"] {
        for modifier in [
            json!({ "set": [{ "name": name, "value": "1" }] }),
            json!({ "add": [{ "name": name, "value": "1" }] }),
            json!({ "remove": [name] }),
        ] {
            for filters in [request(modifier.clone()), response(modifier.clone())] {
                let translation = http(filters.clone());
                assert_eq!(codes(&translation), [Code::GatewayRouteFilter], "{filters}");
                assert_eq!(parents(&translation)[0][0], "Accepted=False UnsupportedValue", "{filters}");
            }
        }
    }
    assert_eq!(codes(&http(request(json!({ "set": [{ "name": "a", "value": "b\nc" }] })))), [Code::GatewayRouteFilter]);
}

#[test]
fn requests_of_a_rule_that_cannot_be_used_are_answered_and_the_other_rules_served() {
    let wrong = [
        json!([{ "type": "ExtensionRef", "extensionRef": { "group": "a", "kind": "B", "name": "c" } }]),
        json!([{ "type": "ExternalAuth", "externalAuth": {} }]),
        json!([{ "type": "Wasm" }]),
        json!([{ "type": "RequestRedirect" }]),
        json!([{}]),
        json!([7]),
    ];
    for filters in wrong {
        let right = json!({ "matches": [{ "path": { "value": "/right" } }], "backendRefs": [backend("app", 80)] });
        let translation = World::new().http(json!([rule(filters.clone()), right]));
        let routes = routes(&translation);
        let [refused, served] = &routes[..] else { panic!("{filters}: {} routes", routes.len()) };
        let Action::Forward(refused) = &refused.action else { panic!("{filters}") };
        let share = refused.unavailable.unwrap();
        assert_eq!(
            (backends(refused), share.answer),
            (vec![("-".to_owned(), 1)], UnavailableAnswer::InternalServerError)
        );
        let Action::Forward(served) = &served.action else { panic!("{filters}") };
        assert_eq!(backends(served), [("default/app/80".to_owned(), 1)]);
        assert_eq!(parents(&translation)[0], [FINE[0], FINE[1], "PartiallyInvalid=True UnsupportedValue"], "{filters}");
        assert!(
            message(&translation, "PartiallyInvalid").starts_with("Dropped Rule: SES6024: spec.rules[0].filters"),
            "{filters}"
        );
        // Alone it is a route that is not accepted; its requests are no other route's.
        let alone = World::new().http(json!([rule(filters.clone())]));
        assert_eq!(parents(&alone)[0], ["Accepted=False UnsupportedValue", FINE[1]], "{filters}");
        assert_eq!(backends(&forward(&alone)), [("-".to_owned(), 1)], "{filters}");
        assert!(alone.attached.is_empty(), "{filters}");
    }
    let session = json!([{ "sessionPersistence": { "type": "Cookie" }, "backendRefs": [backend("app", 80)] }]);
    assert_eq!(codes(&World::new().http(session)), [Code::GatewayRouteRule]);
}

#[test]
fn filters_that_exclude_each_other_are_incompatible() {
    let redirect = json!({ "type": "RequestRedirect", "requestRedirect": { "hostname": "a.example.com" } });
    let rewrite = json!({ "type": "URLRewrite", "urlRewrite": { "hostname": "a.example.com" } });
    let host = json!({ "type": "RequestHeaderModifier", "requestHeaderModifier": { "set": [{ "name": "host", "value": "b" }] } });
    for rule in [
        json!({ "filters": [redirect, rewrite] }),
        json!({ "filters": [redirect], "backendRefs": [backend("app", 80)] }),
        json!({ "filters": [rewrite, rewrite], "backendRefs": [backend("app", 80)] }),
        json!({ "filters": [rewrite, host], "backendRefs": [backend("app", 80)] }),
    ] {
        let translation = World::new().http(json!([rule]));
        assert_eq!(parents(&translation)[0][0], "Accepted=False IncompatibleFilters", "{rule}");
    }
}

/// The redirect of a rule for `/a` on the listener.
fn redirect(of: &str, filter: Value) -> Redirect {
    let mut world = World::new();
    let tls = json!({ "tls": { "certificateRefs": [{ "name": "cert" }] } });
    world.gateway(
        "web",
        json!([
            listener("http", "HTTP", 80, json!({})),
            listener("alt", "HTTP", 8080, json!({})),
            listener("exact", "HTTP", 8081, json!({ "hostname": "a.example.com" })),
            listener("https", "HTTPS", 443, tls),
        ]),
    );
    let filters = json!([{ "type": "RequestRedirect", "requestRedirect": filter }]);
    let rules = json!([{ "matches": [{ "path": { "value": "/a" } }], "filters": filters }]);
    let parents = json!([{ "name": "web", "sectionName": of }]);
    let translation = world.route(kind::HTTP_ROUTE, json!({ "parentRefs": parents, "rules": rules }));
    match &routes(&translation)[..] {
        [route] => match &route.action {
            Action::Redirect(redirect) => redirect.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{} routes: {:?}", other.len(), translation.verdicts),
    }
}

#[test]
fn a_redirect_leads_to_the_port_of_its_scheme_or_of_its_listener() {
    for (of, filter, port) in [
        ("http", json!({ "hostname": "a.b" }), None),
        ("http", json!({ "scheme": "https" }), None),
        ("http", json!({ "port": 80 }), None),
        ("http", json!({ "port": 8443 }), Some(8443)),
        ("http", json!({ "scheme": "https", "port": 443 }), None),
        ("http", json!({ "scheme": "https", "port": 80 }), Some(80)),
        ("alt", json!({ "hostname": "a.b" }), Some(8080)),
        // The host of the request may have the port of the listener, which Envoy would keep.
        ("alt", json!({ "scheme": "http" }), Some(80)),
        ("alt", json!({ "scheme": "https" }), Some(443)),
        ("alt", json!({ "port": 80 }), Some(80)),
        ("alt", json!({ "scheme": "https", "hostname": "a.b" }), None),
        ("exact", json!({ "scheme": "https" }), None),
        ("exact", json!({ "port": 80 }), None),
        ("exact", json!({}), Some(8081)),
        ("https", json!({ "hostname": "a.b" }), None),
        ("https", json!({ "port": 443 }), None),
        ("https", json!({ "scheme": "http" }), None),
        ("https", json!({ "scheme": "http", "port": 443 }), Some(443)),
    ] {
        assert_eq!(redirect(of, filter.clone()).port, port, "{of} {filter}");
    }
    let host = |of: &str, filter: Value| redirect(of, filter).host.map(|host| host.to_string());
    assert_eq!(host("exact", json!({ "scheme": "https" })).as_deref(), Some("a.example.com"));
    assert_eq!([host("exact", json!({})), host("http", json!({ "scheme": "https" }))], [None, None]);
    assert_eq!(redirect("http", json!({})).status, 302);
    for code in [301, 302, 303, 307, 308] {
        assert_eq!(redirect("http", json!({ "statusCode": code })).status, code);
    }
    let path = |path: Value| redirect("http", json!({ "path": path })).path.unwrap();
    let whole = path(json!({ "type": "ReplaceFullPath", "replaceFullPath": "/b" }));
    assert!(matches!(&whole, PathRewrite::Whole(path) if path.as_str() == "/b"), "{whole:?}");
    let prefix = path(json!({ "type": "ReplacePrefixMatch", "replacePrefixMatch": "" }));
    let PathRewrite::Below { matched, path } = prefix else { panic!("{prefix:?}") };
    assert_eq!((matched.as_str(), path.as_str()), ("/a", "/"));
}

#[test]
fn a_redirect_that_is_wrong_is_refused() {
    for wrong in [
        json!({ "scheme": "ftp" }),
        json!({ "hostname": "a b" }),
        json!({ "port": 0 }),
        json!({ "port": 70000 }),
        json!({ "statusCode": 200 }),
        json!({ "path": { "type": "ReplaceFullPath" } }),
        json!({ "path": { "type": "ReplaceFullPath", "replaceFullPath": "b" } }),
        json!({ "path": { "replaceFullPath": "/b" } }),
        json!({ "path": { "type": "Append", "replaceFullPath": "/b" } }),
    ] {
        let filters = json!([{ "type": "RequestRedirect", "requestRedirect": wrong }]);
        let translation = World::new().http(json!([{ "filters": filters }]));
        assert_eq!(codes(&translation), [Code::GatewayRouteFilter], "{wrong}");
    }
}

#[test]
fn paths_are_rewritten_for_each_match() {
    let rewrite = |path: Value| json!([{ "type": "URLRewrite", "urlRewrite": { "path": path } }]);
    let rule = |matches: Value, filters: Value| json!([{ "matches": matches, "filters": filters, "backendRefs": [backend("app", 80)] }]);
    let prefix = rewrite(json!({ "type": "ReplacePrefixMatch", "replacePrefixMatch": "/x/" }));
    let matches = json!([{ "path": { "value": "/a" } }, { "path": { "value": "/b/" } }, {}]);
    let translation = World::new().http(rule(matches, prefix.clone()));
    let rewrites: Vec<_> = routes(&translation)
        .iter()
        .map(|route| match &route.action {
            Action::Forward(forward) => match forward.rewrite.as_ref().unwrap() {
                PathRewrite::Below { matched, path } => format!("{matched} {path}"),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rewrites, ["/a /x", "/b /x", "/ /x"]);
    let exact = json!([{ "path": { "value": "/a" } }, { "path": { "type": "Exact", "value": "/a" } }]);
    assert_eq!(codes(&World::new().http(rule(exact, prefix))), [Code::GatewayRouteFilter], "there is no prefix");
}

#[test]
fn requests_are_mirrored_in_part() {
    let mirror = |more: Value| {
        let mut value = json!({ "backendRef": backend("app", 80) });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([{ "type": "RequestMirror", "requestMirror": value }])
    };
    for (more, per_million) in [
        (json!({}), Some(1_000_000)),
        (json!({ "percent": 20 }), Some(200_000)),
        (json!({ "percent": 0 }), None),
        (json!({ "fraction": { "numerator": 1, "denominator": 3 } }), Some(333_333)),
        (json!({ "fraction": { "numerator": 5 } }), Some(50_000)),
        (json!({ "fraction": { "numerator": 1, "denominator": 2147483647 } }), Some(1)),
    ] {
        let found = forward(&http(mirror(more.clone()))).mirrors;
        assert_eq!(
            found.first().map(|mirror| (mirror.per_million, mirror.keeps_host)),
            per_million.map(|it| (it, true)),
            "{more}"
        );
    }
    for wrong in [
        json!({ "percent": 101 }),
        json!({ "percent": 1, "fraction": { "numerator": 1 } }),
        json!({ "fraction": { "numerator": 2, "denominator": 1 } }),
        json!({ "fraction": { "numerator": 0, "denominator": 0 } }),
    ] {
        assert_eq!(codes(&http(mirror(wrong.clone()))), [Code::GatewayRouteFilter], "{wrong}");
    }
    // One that leads nowhere is left out.
    let translation = http(mirror(json!({ "backendRef": backend("gone", 80) })));
    assert!(forward(&translation).mirrors.is_empty());
    assert_eq!(parents(&translation), [[FINE[0], "ResolvedRefs=False BackendNotFound"]]);
}

#[test]
fn origins_of_cors_may_have_a_wildcard() {
    let cors = |cors: Value| http(json!([{ "type": "CORS", "cors": cors }]));
    let policy = |translation: &Translation| routes(translation)[0].policy.cors.clone().unwrap();
    let found = policy(&cors(json!({
        "allowOrigins": ["https://a.com", "https://*.b.com:8443", "*"], "allowMethods": ["GET", "*"], "allowHeaders": ["X-A"],
        "exposeHeaders": ["X-B"], "allowCredentials": true, "maxAge": 60,
    })));
    let origins = found.origins.iter().map(|origin| match origin {
        AllowedOrigin::Any => "*",
        AllowedOrigin::Matching(text) => text.as_str(),
    });
    assert_eq!(origins.collect::<Vec<_>>(), ["https://a.com", "(?i)https://[^/]+\\.b\\.com:8443", "*"]);
    assert_eq!((found.credentials, found.max_age), (true, Some(Duration::from_secs(60))));
    assert_eq!(policy(&cors(json!({ "allowOrigins": ["*"] }))).max_age, Some(Duration::from_secs(5)));
    for wrong in [
        json!({}),
        json!({ "allowOrigins": ["a.com"] }),
        json!({ "allowOrigins": ["https://a.*.com"] }),
        json!({ "allowOrigins": ["https://*"] }),
        json!({ "allowOrigins": ["*"], "allowMethods": ["G T"] }),
        json!({ "allowOrigins": ["*"], "maxAge": -1 }),
        json!({ "allowOrigins": ["*"], "exposeHeaders": ["*"], "allowCredentials": true }),
    ] {
        assert_eq!(codes(&cors(wrong.clone())), [Code::GatewayRouteFilter], "{wrong}");
    }
}

#[test]
fn without_a_timeout_there_is_none() {
    let of = |more: Value| {
        let mut rule = json!({ "backendRefs": [backend("app", 80)] });
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        World::new().http(json!([rule]))
    };
    let after = |ms| Timeout::After(Duration::from_millis(ms));
    for (more, timeout, per_try) in [
        (json!({}), Timeout::Infinite, None),
        (json!({ "timeouts": { "request": "0s" } }), Timeout::Infinite, None),
        (json!({ "timeouts": { "request": "500ms" } }), after(500), None),
        (json!({ "timeouts": { "backendRequest": "500ms" } }), after(500), None),
        (json!({ "timeouts": { "request": "1s", "backendRequest": "500ms" } }), after(500), None),
        (json!({ "timeouts": { "request": "1s", "backendRequest": "0s" } }), after(1000), None),
        (
            json!({ "timeouts": { "request": "1s", "backendRequest": "500ms" }, "retry": {} }),
            after(1000),
            Some(after(500)),
        ),
        (json!({ "timeouts": { "backendRequest": "500ms" }, "retry": {} }), Timeout::Infinite, Some(after(500))),
    ] {
        let forward = forward(&of(more.clone()));
        assert_eq!((forward.timeout, forward.retry.map(|retry| retry.per_try)), (timeout, per_try), "{more}");
    }
    let retry =
        forward(&of(json!({ "retry": { "codes": [500, 503], "attempts": 3, "backoff": "50ms" } }))).retry.unwrap();
    let words: Vec<_> = retry.on.iter().map(|on| on.word()).collect();
    assert_eq!(words, ["connect-failure", "refused-stream", "retriable-status-codes"]);
    assert_eq!((retry.count, retry.status_codes, retry.backoff), (3, vec![500, 503], Some(Duration::from_millis(50))));
    let room = |more: Value| forward(&of(more)).clusters[0].cluster.overrides.as_ref().and_then(|it| it.max_retries);
    assert_eq!(room(json!({ "retry": {} })), Some(1024), "Envoy's own limit is 3 at once");
    assert_eq!((room(json!({})), room(json!({ "retry": { "attempts": 0 } }))), (None, None));
    assert_eq!(forward(&of(json!({ "retry": { "attempts": 0 } }))).retry, None);
    for wrong in [
        json!({ "timeouts": { "request": "soon" } }),
        json!({ "timeouts": { "request": "-1s" } }),
        json!({ "timeouts": { "request": "1s", "backendRequest": "2s" } }),
        json!({ "timeouts": 7 }),
        json!({ "retry": { "codes": [200] } }),
        json!({ "retry": { "attempts": -1 } }),
        json!({ "retry": { "attempts": 1000 } }),
        json!({ "retry": { "backoff": "x" } }),
    ] {
        assert_eq!(codes(&of(wrong.clone())), [Code::GatewayRouteRule], "{wrong}");
    }
}

#[test]
fn what_grpc_has_no_filter_for_is_refused() {
    for of in ["RequestRedirect", "URLRewrite", "CORS"] {
        let filters =
            json!([{ "type": of, "requestRedirect": {}, "urlRewrite": {}, "cors": { "allowOrigins": ["*"] } }]);
        let rules = json!([{ "filters": filters, "backendRefs": [backend("app", 80)] }]);
        let translation = World::new().route(kind::GRPC_ROUTE, json!({ "rules": rules }));
        assert_eq!(codes(&translation), [Code::GatewayRouteFilter], "{of}");
    }
}

//! Routes of every kind.

use super::{GATEWAYS, GROUP, OPEN_PORTS, SERVICES, SETS, listeners};
use crate::dice::Dice;
use serde_json::{Value, json};

/// The specification of an HTTPRoute.
pub fn http(dice: &mut Dice, number: usize) -> Value {
    let mut spec = common(dice, number);
    spec["hostnames"] = hostnames(dice, number);
    spec["rules"] = dice.list(4, |dice| {
        let mut rule = dice.map(
            8,
            &[
                ("name", |dice| dice.any(&["first"])),
                ("timeouts", |dice| dice.map(2, &[("request", duration), ("backendRequest", duration)])),
                ("retry", |dice| {
                    let codes = dice.list(2, |dice| dice.number(&[500, 503, 599]));
                    json!({ "codes": codes, "attempts": dice.number(&[0, 1, 3]), "backoff": duration(dice) })
                }),
            ],
        );
        persistence(dice, &mut rule);
        rule["matches"] = dice.list(3, http_match);
        rule["filters"] = dice.list(2, filter);
        rule["backendRefs"] = dice.list(3, |dice| backend(dice, true));
        if dice.once_in(60) { dice.wrong() } else { rule }
    });
    spec
}

/// The specification of a GRPCRoute.
pub fn grpc(dice: &mut Dice, number: usize) -> Value {
    let mut spec = common(dice, number);
    spec["hostnames"] = hostnames(dice, number);
    spec["rules"] = dice.list(4, |dice| {
        let mut rule = dice.map(8, &[("name", |dice| dice.any(&["first"]))]);
        persistence(dice, &mut rule);
        rule["matches"] = dice.list(3, |dice| {
            let mut method = dice.map(
                2,
                &[
                    ("type", |dice| dice.any(&["Exact", "RegularExpression"])),
                    ("service", |dice| dice.any(&["shop.Cart", "shop\\..*", "a+"])),
                ],
            );
            if method["service"].is_null() || dice.once_in(2) {
                method["method"] = dice.any(&["Get", "Get", "(Get|Put)", "a/b"]);
            }
            let mut found = json!({ "headers": dice.list(2, value_match) });
            if dice.roll(3) != 0 {
                found["method"] = method;
            }
            if dice.once_in(60) { dice.wrong() } else { found }
        });
        rule["filters"] = dice.list(2, filter);
        rule["backendRefs"] = dice.list(3, |dice| backend(dice, true));
        if dice.once_in(60) { dice.wrong() } else { rule }
    });
    spec
}

/// The specification of a TLSRoute.
pub fn tls(dice: &mut Dice, number: usize) -> Value {
    let mut spec = stream(dice, number);
    spec["parentRefs"] = common(dice, number)["parentRefs"].take();
    spec["hostnames"] = hostnames(dice, number);
    spec
}

/// The specification of a TCPRoute or UDPRoute.
pub fn stream(dice: &mut Dice, number: usize) -> Value {
    let mut spec = common(dice, number);
    if dice.roll(4) != 0 {
        let section = format!("{}{}", dice.of(&["tcp", "udp"]), number % OPEN_PORTS);
        spec["parentRefs"] = json!([{ "name": "open", "namespace": "poison", "sectionName": section }]);
    }
    let rule = |dice: &mut Dice| json!({ "name": dice.any(&["first"]), "backendRefs": dice.list(3, |dice| backend(dice, false)) });
    spec["rules"] = if dice.once_in(10) { dice.list(3, rule) } else { json!([rule(dice)]) };
    spec
}

fn common(dice: &mut Dice, number: usize) -> Value {
    let mut parents: Vec<Value> = (0..dice.roll(3)).map(|_| parent(dice, number)).collect();
    if dice.roll(4) != 0 {
        parents.push(json!({ "name": "open", "namespace": "poison" }));
    }
    let mut spec = json!({ "parentRefs": parents });
    if dice.once_in(20) {
        spec["useDefaultGateways"] = dice.any(&["All", "None"]);
    }
    spec
}

fn parent(dice: &mut Dice, number: usize) -> Value {
    let mut parent = dice.map(
        8,
        &[
            ("group", |dice| dice.any(&[GROUP, ""])),
            ("namespace", |dice| dice.any(&["poison", "other", "good"])),
            ("sectionName", |dice| dice.any(&["a", "b", "c"])),
            ("port", |dice| dice.number(&[80, 443, 7001, 5300])),
        ],
    );
    parent["name"] = match dice.roll(10) {
        0 => dice.any(&["good", "nobody"]),
        1 => {
            parent["kind"] = "ListenerSet".into();
            format!("listenerset{}", dice.roll(SETS)).into()
        }
        2 => {
            parent["kind"] = dice.any(&["Gateway", "Service"]);
            listeners::name(dice).into()
        }
        3..6 => format!("gateway{}", number % GATEWAYS).into(),
        _ => listeners::name(dice).into(),
    };
    if dice.once_in(60) { dice.wrong() } else { parent }
}

fn hostnames(dice: &mut Dice, number: usize) -> Value {
    let (own, wide) = (format!("g{}.example.com", number % GATEWAYS), format!("*.g{}.example.com", number % GATEWAYS));
    let mut hostnames: Vec<Value> = (0..dice.roll(3))
        .map(|_| dice.any(&[&own, &own, &wide, "a.example.com", "*.example.com", "x.b.example.com", "10.0.0.1"]))
        .collect();
    if dice.roll(6) != 0 {
        hostnames.push(format!("r{number}.routes.example.com").into());
    }
    hostnames.into()
}

fn duration(dice: &mut Dice) -> Value {
    if dice.once_in(6) { dice.duration() } else { dice.any(&["1s", "500ms", "1h", "0s"]) }
}

fn persistence(dice: &mut Dice, rule: &mut Value) {
    if dice.once_in(24) {
        rule["sessionPersistence"] = json!({ "type": dice.any(&["Cookie", "Header"]), "absoluteTimeout": duration(dice),
            "cookie": { "name": dice.any(&["id"]), "path": dice.any(&["/"]), "lifetimeType": dice.any(&["Session", "Permanent"]) },
            "header": { "name": dice.any(&["x-id"]) } });
    }
}

fn http_match(dice: &mut Dice) -> Value {
    let mut found = dice.map(
        3,
        &[
            ("headers", |dice| dice.list(2, value_match)),
            ("queryParams", |dice| dice.list(2, value_match)),
            ("method", |dice| dice.any(&["GET", "POST", "PATCH"])),
        ],
    );
    if dice.roll(4) != 0 {
        let kind = dice.any(&["Exact", "PathPrefix", "RegularExpression"]);
        found["path"] =
            json!({ "type": kind, "value": dice.any(&["/", "/a", "/b/", "/c.*", "/d[0-9]+", "/e;f", "/%41"]) });
    }
    if dice.once_in(60) { dice.wrong() } else { found }
}

fn value_match(dice: &mut Dice) -> Value {
    let mut found = dice.map(2, &[("type", |dice| dice.any(&["Exact", "RegularExpression"]))]);
    found["name"] = dice.any(&["x-a", "x-b", "cookie", "host", ":path"]);
    found["value"] = dice.any(&["a", "b", "a.*", "(a|b)+"]);
    found
}

fn backend(dice: &mut Dice, has_filters: bool) -> Value {
    let mut backend = reference(dice);
    if dice.once_in(2) {
        backend["weight"] = dice.number(&[0, 1, 50, 1_000_000]);
    }
    if has_filters && dice.once_in(5) {
        backend["filters"] = dice.list(2, filter);
    }
    if dice.once_in(60) { dice.wrong() } else { backend }
}

fn reference(dice: &mut Dice) -> Value {
    let mut reference = dice.map(
        12,
        &[
            ("group", |dice| dice.any(&[""])),
            ("kind", |dice| dice.any(&["Service", "ServiceImport"])),
            ("namespace", |dice| dice.any(&["poison", "good", "other"])),
        ],
    );
    let name = format!("service{}", dice.roll(SERVICES));
    reference["name"] = dice.any(&[&name, &name, &name, "good"]);
    reference["port"] = dice.number(&[80, 80, 80, 53]);
    reference
}

fn headers(dice: &mut Dice) -> Value {
    let set = |dice: &mut Dice| {
        dice.list(2, |dice| json!({ "name": dice.any(&["x-a", "X-B", "Host", "via"]), "value": dice.any(&["a", "%REQ(x)%", "100%", ""]) }))
    };
    json!({ "set": set(dice), "add": set(dice), "remove": dice.list(2, |dice| dice.any(&["x-c", "x-d"])) })
}

fn path(dice: &mut Dice) -> Value {
    let kind = dice.any(&["ReplaceFullPath", "ReplacePrefixMatch"]);
    let field = if kind == "ReplaceFullPath" { "replaceFullPath" } else { "replacePrefixMatch" };
    json!({ "type": kind, field: dice.any(&["/", "/z", "/z/", "", "/100%", "/a?b"]) })
}

/// A filter of a rule or backend; now and then with the field of another type besides.
fn filter(dice: &mut Dice) -> Value {
    let types: [(&str, &str, crate::dice::Make); 8] = [
        ("RequestHeaderModifier", "requestHeaderModifier", headers),
        ("ResponseHeaderModifier", "responseHeaderModifier", headers),
        ("RequestMirror", "requestMirror", |dice| {
            let mut mirror = dice.map(
                3,
                &[
                    ("percent", |dice| dice.number(&[0, 50, 100])),
                    (
                        "fraction",
                        |dice| json!({ "numerator": dice.number(&[0, 1]), "denominator": dice.number(&[1, 3, 1000]) }),
                    ),
                ],
            );
            mirror["backendRef"] = reference(dice);
            mirror
        }),
        ("RequestRedirect", "requestRedirect", |dice| {
            dice.map(
                2,
                &[
                    ("scheme", |dice| dice.any(&["http", "https"])),
                    ("hostname", |dice| dice.any(&["b.example.com", "*.b.example.com"])),
                    ("port", |dice| dice.number(&[80, 8443])),
                    ("statusCode", |dice| dice.number(&[301, 302, 308])),
                    ("path", path),
                ],
            )
        }),
        ("URLRewrite", "urlRewrite", |dice| {
            dice.map(2, &[("hostname", |dice| dice.any(&["b.example.com"])), ("path", path)])
        }),
        ("CORS", "cors", |dice| {
            let origins = ["*", "https://a.example.com", "https://*.example.com", "http://*:8080"];
            let mut cors = dice.map(
                2,
                &[
                    ("allowCredentials", |dice| (dice.roll(2) == 0).into()),
                    ("allowMethods", |dice| dice.list(2, |dice| dice.any(&["GET", "*"]))),
                    ("allowHeaders", |dice| dice.list(2, |dice| dice.any(&["x-a", "*"]))),
                    ("exposeHeaders", |dice| dice.list(2, |dice| dice.any(&["x-a", "*"]))),
                    ("maxAge", |dice| dice.number(&[0, 5, 3600])),
                ],
            );
            cors["allowOrigins"] = dice.list(3, |dice| dice.any(&origins));
            cors
        }),
        ("ExternalAuth", "externalAuth", external_auth),
        (
            "ExtensionRef",
            "extensionRef",
            |dice| json!({ "group": dice.any(&["example.com"]), "kind": dice.any(&["Filter"]), "name": dice.any(&["a"]) }),
        ),
    ];
    // The last two are refused in any case.
    let (name, field, make) = if dice.once_in(12) { dice.of(&types) } else { dice.of(&types[..6]) };
    let mut filter = json!({ "type": dice.any(&[name]), field: make(dice) });
    if dice.once_in(12) {
        let (_, field, make) = dice.of(&types);
        filter[field] = make(dice);
    }
    if dice.once_in(60) { dice.wrong() } else { filter }
}

/// Authorization by a service.
pub fn external_auth(dice: &mut Dice) -> Value {
    let list = |dice: &mut Dice| dice.list(2, |dice| dice.any(&["x-a"]));
    json!({ "protocol": dice.any(&["HTTP", "GRPC"]), "backendRef": reference(dice), "grpc": { "allowedHeaders": list(dice) },
        "http": { "path": dice.any(&["/check"]), "allowedHeaders": list(dice), "allowedResponseHeaders": list(dice) },
        "forwardBody": { "maxSize": dice.number(&[0, 1024]) } })
}

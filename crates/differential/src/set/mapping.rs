//! The Mappings of a set.
//!
//! In: choices. Out: Mappings that match by everything a Mapping can match by, and forward, rewrite or redirect. Some are twins of
//! others: the same match, another service, perhaps with weights.

use serde_json::{Value, json};

use super::{ELSEWHERE, object};
use crate::random::Random;

const SERVICES: [&str; 10] =
    ["a", "b", "c", "a.other", "d.other", "b.default:80", "http://c", "http://a.default", "gone", "https://b"];
const PREFIXES: [&str; 14] = [
    "/",
    "/x",
    "/x/",
    "/x/y",
    "/x/y/",
    "/X/",
    "/x/y/z",
    "/w/",
    "/longer/than/others/",
    "/x%2Fy",
    "/x/1",
    "/.well-known/acme-challenge/",
    "/w",
    "/v1/items/",
];
const REGEXES: [&str; 6] = ["/x/[0-9]+", "/(x|w)/.*", "/x/.*/z", ".*", "/v[0-9]/items/.*", "/x"];
const HOSTNAMES: [&str; 9] =
    ["*", "*", "*", "one.example.com", "two.example.com", "*.example.com", "three.example.org", "*.com", "one.*"];

/// All Mappings of a set.
pub fn mappings(random: &mut Random, has_weights: bool, has_selectors: bool) -> Vec<Value> {
    let mut mappings: Vec<Value> = Vec::new();
    let count = random.between(2, 9);
    for number in 0..count {
        let twin = (!mappings.is_empty() && random.percent(if has_weights { 60 } else { 10 }))
            .then(|| mappings[random.below(mappings.len())]["spec"].clone());
        let mut spec = match twin {
            Some(mut spec) => {
                spec["service"] = json!(random.pick(&SERVICES));
                spec
            }
            None => matched(random),
        };
        if has_weights && spec["host_redirect"].is_null() && random.percent(60) {
            spec["weight"] = json!([0, 20, 40, 40, 60, 100][random.below(6)]);
        }
        let namespace = if random.percent(85) { "default" } else { "other" };
        let mut mapping = object("Mapping", namespace, &format!("mapping-{number}"), spec);
        if has_selectors && random.percent(60) {
            mapping["metadata"]["labels"] = json!({ "team": random.pick(&["red", "blue"]) });
        }
        mappings.push(mapping);
    }
    mappings
}

/// Whether Emissary takes two Mappings for the same requests: it does not look at whether paths and values are patterns.
pub fn are_alike(one: &Value, other: &Value) -> bool {
    let matched = |mapping: &Value| {
        let spec = &mapping["spec"];
        let host = if spec["hostname"].is_null() { &spec["host"] } else { &spec["hostname"] };
        let merged =
            |exact: &str, regex: &str| if spec[exact].is_null() { spec[regex].clone() } else { spec[exact].clone() };
        let (headers, query) =
            (merged("headers", "regex_headers"), merged("query_parameters", "regex_query_parameters"));
        let precedence = spec["precedence"].as_i64().unwrap_or_default();
        (spec["prefix"].clone(), host.clone(), spec["method"].clone(), headers, query, precedence)
    };
    matched(one) == matched(other)
}

/// What a Mapping matches, and what it does.
fn matched(random: &mut Random) -> Value {
    let mut spec = json!({ "service": random.pick(&SERVICES) });
    match random.below(10) {
        0 | 1 => {
            spec["prefix"] = json!(random.pick(&REGEXES));
            spec["prefix_regex"] = json!(true);
        }
        2 => {
            spec["prefix"] = json!(random.pick(&PREFIXES));
            spec["prefix_exact"] = json!(true);
        }
        _ => spec["prefix"] = json!(random.pick(&PREFIXES)),
    }
    if random.percent(10) {
        spec["case_sensitive"] = json!(false);
    }
    hostname(random, &mut spec);
    conditions(random, &mut spec);
    if random.percent(20) {
        spec["precedence"] = json!([-1, 1, 1, 2, 10][random.below(5)]);
    }
    if random.percent(15) {
        redirect(random, &mut spec);
    } else {
        rewrite(random, &mut spec);
    }
    headers(random, &mut spec);
    spec
}

fn hostname(random: &mut Random, spec: &mut Value) {
    match random.below(20) {
        0 => {}
        1 => spec["host"] = json!("one.example.com"),
        2 => {
            spec["host"] = json!(random.pick(&["(one|two)\\.example\\.com", ".*\\.org"]));
            spec["host_regex"] = json!(true);
        }
        _ => spec["hostname"] = json!(random.pick(&HOSTNAMES)),
    }
}

fn conditions(random: &mut Random, spec: &mut Value) {
    match random.below(12) {
        0 | 1 => spec["method"] = json!(random.pick(&["GET", "POST"])),
        2 => {
            spec["method"] = json!("P.*");
            spec["method_regex"] = json!(true);
        }
        _ => {}
    }
    match random.below(10) {
        0 | 1 => spec["headers"] = json!({ "x-v": random.pick(&["1", "2"]) }),
        2 => spec["regex_headers"] = json!({ "x-v": random.pick(&["[0-9]+", ".*", "1"]) }),
        3 => spec["headers"] = json!({ "x-v": "1", "x-w": "1" }),
        _ => {}
    }
    match random.below(10) {
        0 => spec["query_parameters"] = json!({ "q": random.pick(&["1", "2"]) }),
        1 => spec["regex_query_parameters"] = json!({ "q": random.pick(&["[0-9]+", ".*"]) }),
        _ => {}
    }
}

fn rewrite(random: &mut Random, spec: &mut Value) {
    match random.below(10) {
        0 => spec["rewrite"] = json!(""),
        1 => spec["rewrite"] = json!("/"),
        2 => spec["rewrite"] = json!(random.pick(&["/z", "/z/", "/z/?"])),
        3 => spec["regex_rewrite"] = json!({ "pattern": "/x/([a-z0-9]+)", "substitution": "/\\1/y" }),
        4 => spec["regex_rewrite"] = json!({ "pattern": "x", "substitution": "u" }),
        _ => {}
    }
    match random.below(10) {
        0 => spec["host_rewrite"] = json!("rewritten.example.net"),
        1 => spec["auto_host_rewrite"] = json!(true),
        _ => {}
    }
}

fn redirect(random: &mut Random, spec: &mut Value) {
    spec["host_redirect"] = json!(true);
    spec["service"] = if random.percent(50) { json!(ELSEWHERE) } else { json!(format!("{ELSEWHERE}:8443")) };
    match random.below(5) {
        0 => spec["path_redirect"] = json!("/moved"),
        1 => spec["prefix_redirect"] = json!("/moved/"),
        2 => spec["regex_redirect"] = json!({ "pattern": "x", "substitution": "moved" }),
        _ => {}
    }
    if random.percent(60) {
        spec["redirect_response_code"] = json!([301, 302, 303, 307, 308][random.below(5)]);
    }
}

fn headers(random: &mut Random, spec: &mut Value) {
    if random.percent(15) {
        let append = random.percent(50);
        spec["add_request_headers"] = json!({ "x-set-request": { "value": "mapping", "append": append } });
    }
    if random.percent(15) {
        spec["add_response_headers"] = json!({ "x-set-response": { "value": "mapping" } });
    }
    if random.percent(10) {
        spec["remove_request_headers"] = json!(["x-drop"]);
    }
    if random.percent(10) {
        spec["remove_response_headers"] = json!(["x-echo-name"]);
    }
}

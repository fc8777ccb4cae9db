//! The golden part of a case: what became of its objects, and what Envoy gets, as YAML that people can read.
//!
//! Left out is what is the same in every case (a case that prints everything shows it), what differs in every run
//! (addresses of backends stand there by name), and keys. What is left is what a change of the code may change. What is printed of
//! listeners is in [`listeners`].

mod listeners;

use std::collections::BTreeMap;

use envoy::listener::slots::Slot;
use envoy::packing::{admission, redirects, scoped};
use envoy_api::{Any, Message, json};
use model::status::{Entry, Scope, StatusValue};
use model::{FleetId, PortId};
use pipeline::Output;
use serde_json::Value;
use source::Problem;
use xds::Kind;

use super::settings::Print;
use super::{Backends, text};
use listeners::of_listener;

/// What every cluster has.
const OF_EVERY_CLUSTER: [&str; 6] =
    ["@type", "name", "common_lb_config", "eds_cluster_config", "type", "load_assignment.cluster_name"];

/// How long a connection may take to stand where nothing is said: in every dialect, and in Emissary's Mappings.
const USUAL_CONNECT_TIMEOUTS: [&str; 2] = ["2s", "3s"];

/// The text.
pub(super) fn render(output: &Output, problems: &[Problem], backends: &Backends, print: Print) -> String {
    let mut out = String::new();
    for problem in problems {
        if out.is_empty() {
            out.push_str("problems:\n");
        }
        let object = problem.object.as_ref().map(|key| format!("{key}")).unwrap_or_default();
        let line = format!("{} {object} {}: {}", problem.code, problem.field, problem.message);
        out.push_str(&format!("- {}\n", text::word(&line)));
    }
    out.push_str(&verdicts(output));
    out.push_str(&statuses(output));
    let of = |kind: Kind| -> BTreeMap<String, Value> {
        let resources = output.xds.upserts.iter().filter(|resource| resource.kind == kind);
        resources.map(|resource| (resource.name.to_string(), value(resource))).collect()
    };
    if print == Print::Everything {
        let kinds = [
            ("listeners", Kind::Listener),
            ("routes", Kind::Route),
            ("scopes", Kind::ScopedRoute),
            ("extensions", Kind::Extension),
            ("clusters", Kind::Cluster),
        ];
        for (title, kind) in kinds.into_iter().filter(|(_, kind)| !of(*kind).is_empty()) {
            let all: Value = of(kind).into_iter().collect::<serde_json::Map<_, _>>().into();
            out.push_str(&format!("{title}:{}", text::below(&all, 0)));
        }
    } else {
        out.push_str(&listeners::chains(&of(Kind::Listener)));
        let mut tables = of(Kind::Route);
        let shared = tables.extract_if(.., |name, _| envoy::name::is_shared_routes(name)).collect();
        tables.extend(unpacked(of(Kind::ScopedRoute), &shared));
        out.push_str(&routes(&tables));
        let mut extensions = of(Kind::Extension);
        let slots: BTreeMap<String, Value> = extensions.extract_if(.., |name, _| name.starts_with("slot/")).collect();
        out.push_str(&streams(&extensions));
        out.push_str(&filled(slots));
        out.push_str(&listeners::telemetry(&of(Kind::Listener)));
        out.push_str(&listeners::ports(&of(Kind::Listener)));
        let values = of(Kind::Runtime).into_values().map(|runtime| runtime["layer"].clone());
        out.extend(values.map(|layer| format!("runtime:{}", text::below(&layer, 0))));
        out.push_str(&clusters(&of(Kind::Cluster)));
    }
    out.push_str(&endpoints(&of(Kind::Endpoints), backends));
    let mut secrets: Vec<&str> =
        output.xds.upserts.iter().filter(|r| r.kind == Kind::Secret).map(|r| &*r.name).collect();
    secrets.sort_unstable();
    if !secrets.is_empty() {
        out.push_str("secrets:\n");
        out.extend(secrets.into_iter().map(|name| format!("- {}\n", text::word(name))));
    }
    out
}

/// The slots that do something. Those of ports that are as empty as they can be do nothing, or are closed and get no requests.
fn filled(mut slots: BTreeMap<String, Value>) -> String {
    let port = PortId::new(FleetId::Shared, "any");
    let empty = Slot::ON_EVERY_PORT.map(|slot| {
        let body = slot.empty(&port).encode_to_vec();
        value(&xds::Resource::new(Kind::Extension, envoy::name::slot(&port, slot), body))["typed_config"].clone()
    });
    let does_something = |slot: &Value| {
        let config = &slot["typed_config"];
        !empty.contains(config) && config.as_object().is_some_and(|config| config.len() > 1)
    };
    slots.retain(|_, slot| does_something(slot));
    if slots.is_empty() {
        return String::new();
    }
    let slots = slots.into_iter().map(|(name, slot)| (name, slot["typed_config"].clone()));
    let slots: Value = slots.collect::<serde_json::Map<_, _>>().into();
    format!("slots:{}", text::below(&slots, 0))
}

fn value(resource: &xds::Resource) -> Value {
    if resource.kind == Kind::Secret {
        return Value::Null;
    }
    let any = Any { type_url: resource.kind.type_url().to_owned(), value: resource.body.clone() };
    json::any_to_json(&any).unwrap_or_else(|error| Value::from(format!("not readable: {error}")))
}

/// Every object that is ours, and what is wrong with it.
fn verdicts(output: &Output) -> String {
    let mut objects: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (object, list) in &output.verdicts {
        let lines = list.iter().flat_map(|list| list.iter());
        let lines = lines.map(|verdict| format!("{} {}: {}", verdict.code, verdict.origin.field, verdict.message));
        objects.insert(object.to_string(), lines.collect());
    }
    if objects.is_empty() {
        return "verdicts: {}\n".to_owned();
    }
    let mut out = String::from("verdicts:\n");
    for (object, lines) in objects {
        match &lines[..] {
            [] => out.push_str(&format!("  {object}: fine\n")),
            lines => {
                out.push_str(&format!("  {object}:\n"));
                out.extend(lines.iter().map(|line| format!("  - {}\n", Value::from(line.as_str()))));
            }
        }
    }
    out
}

/// What the status of objects says besides, with the reasons of conditions.
fn statuses(output: &Output) -> String {
    let mut lines = BTreeMap::new();
    for (object, facts) in output.facts.iter().filter_map(|(object, facts)| Some((object, facts.as_ref()?))) {
        let mut of: Vec<String> = Some(scope(&facts.object)).filter(|line| !line.is_empty()).into_iter().collect();
        for (field, entries) in &facts.lists {
            let name = |entry: &Entry| entry.identity.iter().map(|(_, of)| simple(of)).collect::<Vec<_>>().join(" ");
            of.extend(entries.iter().map(|entry| format!("{field} {}: {}", name(entry), scope(&entry.scope))));
        }
        lines.insert(object.to_string(), of);
    }
    let mut out = String::from(if lines.is_empty() { "" } else { "status:\n" });
    for (object, lines) in lines {
        let rest = if lines.is_empty() { " nothing" } else { "" };
        out.push_str(&format!("  {object}:{rest}\n"));
        out.extend(lines.iter().map(|line| format!("  - {}\n", text::word(line))));
    }
    out
}

fn scope(scope: &Scope) -> String {
    let conditions = scope.conditions.iter().map(|it| format!("{}={}/{}", it.kind, it.status.word(), it.reason));
    let counts = scope.values.iter().filter_map(|(field, value)| match value {
        StatusValue::Integer(number) => Some(format!("{field}={number}")),
        _ => None,
    });
    conditions.chain(counts).collect::<Vec<_>>().join(" ")
}

fn simple(value: &StatusValue) -> String {
    match value {
        StatusValue::Text(text) => text.clone(),
        StatusValue::Integer(number) => number.to_string(),
        StatusValue::List(list) => list.iter().map(simple).collect::<Vec<_>>().join(","),
        StatusValue::Record(fields) => fields.iter().map(|(_, value)| simple(value)).collect::<Vec<_>>().join("/"),
        StatusValue::LoadBalancer(_) => String::new(),
    }
}

/// Scopes as the tables that they stand for, without what makes them scopes, and with the routes that hosts share: cases look alike in
/// every packing.
fn unpacked(mut scopes: BTreeMap<String, Value>, shared: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    scopes.retain(|_, scope| with_shared_routes(scope, shared));
    let mut tables: BTreeMap<String, (Vec<Value>, Vec<Value>)> = BTreeMap::new();
    // The name of a scope is a hash of its key; its routes have the key for a name.
    let key = |scope: &Value| scope["route_configuration"]["name"].as_str().unwrap_or_default().to_owned();
    let scopes: BTreeMap<String, Value> = scopes.into_values().map(|scope| (key(&scope), scope)).collect();
    for (key, mut scope) in scopes {
        let (group, host) = key.split_once('|').unwrap_or((&key, ""));
        let (exact, others) = tables.entry(group.to_owned()).or_default();
        let Value::Array(mut hosts) = scope["route_configuration"]["virtual_hosts"].take() else { continue };
        let again = format!("{} on ", redirects::AGAIN);
        let is_again = |name: &str| name == redirects::AGAIN || name.starts_with(&again);
        hosts.retain(|host| !host["name"].as_str().is_some_and(is_again));
        for host in &mut hosts {
            let Some(routes) = host["routes"].as_array_mut() else { continue };
            routes.retain(|route| route["name"] != scoped::NO_PATH);
        }
        if host == "*" { others } else { exact }.append(&mut hosts);
    }
    let hosts = |(mut exact, mut others): (Vec<Value>, Vec<Value>)| {
        exact.append(&mut others);
        serde_json::json!({ "virtual_hosts": exact })
    };
    tables.into_iter().map(|(group, lists)| (group, hosts(lists))).collect()
}

/// Gives a scope that names shared routes a host of its own that has them; says whether it is the scope of a host.
fn with_shared_routes(scope: &mut Value, shared: &BTreeMap<String, Value>) -> bool {
    let Some(routes) = scope["route_configuration_name"].as_str() else { return true };
    let key = scope["key"]["fragments"][0]["string_key"].as_str().unwrap_or_default().to_owned();
    let Some((_, host)) = key.split_once('|') else { return false };
    let mut routes = shared.get(routes).cloned().unwrap_or_default();
    for own in routes["virtual_hosts"].as_array_mut().into_iter().flatten() {
        own["name"] = host.into();
        own["domains"] = serde_json::json!([host]);
    }
    routes["name"] = key.into();
    scope["route_configuration"] = routes;
    true
}

/// Each route under its origin, on one line.
fn routes(tables: &BTreeMap<String, Value>) -> String {
    let mut out = String::new();
    for (table, value) in tables {
        let hosts = value["virtual_hosts"].as_array().map(Vec::as_slice).unwrap_or_default();
        out.push_str(&format!("routes of {table}:{}\n", if hosts.is_empty() { " {}" } else { "" }));
        for host in hosts {
            let mut host = host.clone();
            let mut routes = host["routes"].take().as_array().cloned().unwrap_or_default();
            let name = host["name"].as_str().unwrap_or("?");
            let domains = text::flow(&host["domains"]);
            let admitted = admitted(table, &mut routes);
            if admitted.as_deref() == Some("") {
                out.push_str(&format!("  {}: misdirected\n", text::key(name)));
                continue;
            }
            let mut title = name.to_owned();
            if host["domains"] != serde_json::json!([name]) {
                title.push_str(&format!(" {domains}"));
            }
            if let Some(chains) = admitted {
                title.push_str(&format!(" on {chains}"));
            }
            let title = text::key(&title);
            out.push_str(&format!("  {title}:{}\n", if routes.is_empty() { " []" } else { "" }));
            for mut route in routes {
                let origin = route["name"].as_str().unwrap_or("?").to_owned();
                strip(&mut route, &["name", "metadata"]);
                without_key(&mut route);
                without_scripts(&mut route);
                out.push_str(&format!("  - {}: {}\n", text::key(&origin), text::flow(&route)));
            }
        }
    }
    out
}

/// Takes out the route that answers 421 and what other routes ask of the connection: the chains whose connections may carry the
/// requests of a host; nothing where all may.
fn admitted(port: &str, routes: &mut Vec<Value>) -> Option<String> {
    let (misdirected, others): (Vec<Value>, Vec<Value>) =
        std::mem::take(routes).into_iter().partition(|route| route["name"] == "misdirected");
    *routes = others;
    let lists = misdirected.iter().map(|route| &route["match"]["headers"]);
    let conditions = lists.filter_map(Value::as_array).flatten().filter(|header| header["invert_match"] == true);
    let chains = conditions.filter_map(|header| match header["name"].as_str()? {
        admission::CHAIN => Some(of_listener(port, header["string_match"]["exact"].as_str()?).to_owned()),
        admission::SERVER_NAME => Some("its server name".to_owned()),
        _ => None,
    });
    let chains: Vec<String> = chains.collect();
    for route in routes {
        let Some(headers) = route.pointer_mut("/match/headers").and_then(Value::as_array_mut) else { continue };
        headers.retain(|header| header["name"] != admission::CHAIN && header["name"] != admission::SERVER_NAME);
        if headers.is_empty() {
            strip(route, &["match.headers"]);
        }
    }
    (!misdirected.is_empty()).then(|| chains.join(", "))
}

/// Where the connections of each host go.
fn streams(extensions: &BTreeMap<String, Value>) -> String {
    let mut out = String::new();
    for (name, value) in extensions {
        let mut proxy = value["typed_config"].clone();
        strip(&mut proxy, &["@type", "stat_prefix", "idle_timeout", "access_log"]);
        if out.is_empty() {
            out.push_str("connections:\n");
        }
        out.push_str(&format!("  {}: {}\n", text::key(name), text::flow(&proxy)));
    }
    out
}

/// Each cluster with what is special about it.
fn clusters(clusters: &BTreeMap<String, Value>) -> String {
    let mut out = String::new();
    for (name, value) in clusters {
        let mut value = value.clone();
        if name.starts_with("tls_holder/") {
            value = holder(&value);
        }
        let dns = value["type"] == "STRICT_DNS";
        strip(&mut value, &OF_EVERY_CLUSTER);
        without_usual(name, &mut value);
        if dns {
            value["type"] = "STRICT_DNS".into();
        }
        if out.is_empty() {
            out.push_str("clusters:\n");
        }
        out.push_str(&format!("  {}: {}\n", text::key(name), text::flow(&value)));
    }
    out
}

/// Takes out what a cluster has where nothing is said.
fn without_usual(name: &str, cluster: &mut Value) {
    let keepalive = &cluster["upstream_connection_options"]["tcp_keepalive"];
    let usual = [
        ("alt_stat_name", cluster["alt_stat_name"].as_str().is_some_and(|stats| is_name_in_stats(stats, name))),
        ("connect_timeout", USUAL_CONNECT_TIMEOUTS.iter().any(|usual| cluster["connect_timeout"] == *usual)),
        ("upstream_connection_options", *keepalive == serde_json::json!({})),
    ];
    usual.into_iter().filter(|(_, is_usual)| *is_usual).for_each(|(field, _)| strip(cluster, &[field]));
}

/// Whether a cluster has the name in statistics that follows from its own, which may end with the hash of its settings.
fn is_name_in_stats(stats: &str, name: &str) -> bool {
    let is_hash = |part: &str| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let backend = name.rsplit_once('/').filter(|(_, hash)| is_hash(hash)).map_or(name, |(backend, _)| backend);
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    plain(stats) == plain(backend)
}

/// Of a cluster that holds certificates, their names.
fn holder(cluster: &Value) -> Value {
    let context = &cluster["transport_socket"]["typed_config"]["common_tls_context"];
    let selector = &context["custom_tls_certificate_selector"]["typed_config"];
    serde_json::json!({ "certificates of": selector["prefetch_secret_names"] })
}

/// Each endpoint as `address:port`, a backend of the runner's by its name.
fn endpoints(sets: &BTreeMap<String, Value>, backends: &Backends) -> String {
    let mut out = String::new();
    for (name, value) in sets {
        let mut list = Vec::new();
        for locality in value["endpoints"].as_array().into_iter().flatten() {
            let zone = locality["locality"]["zone"].as_str();
            for endpoint in locality["lb_endpoints"].as_array().into_iter().flatten() {
                let socket = &endpoint["endpoint"]["address"]["socket_address"];
                let address = socket["address"].as_str().unwrap_or("?");
                let who = backends.name_of(address).unwrap_or(address);
                let zone = zone.map(|zone| format!(" in {zone}")).unwrap_or_default();
                list.push(Value::from(format!("{who}:{}{zone}", socket["port_value"])));
            }
        }
        // The one endpoint that the runner gives a Service is no news.
        let service = name.rsplit_once('/').map_or("", |(service, _)| service);
        if list == [Value::from(format!("{service}:80"))] {
            continue;
        }
        if out.is_empty() {
            out.push_str("endpoints:\n");
        }
        out.push_str(&format!("  {}: {}\n", text::key(name), text::flow(&Value::Array(list))));
    }
    out
}

/// Takes out what is done to headers of ours.
fn without_key(route: &mut Value) {
    let lists = [("request_headers_to_remove", "/"), ("request_headers_to_add", "/header/key")];
    for (name, key) in lists {
        let Some(list) = route.get_mut(name).and_then(Value::as_array_mut) else { continue };
        let ours = [redirects::KEY, admission::CHAIN, admission::SERVER_NAME];
        list.retain(|entry| !ours.iter().any(|ours| entry.pointer(key).unwrap_or(entry) == ours));
        if list.is_empty() {
            strip(route, &[name]);
        }
    }
}

/// Takes the fixed text of scripts out, which stands with the data that differs.
fn without_scripts(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.contains_key("filter_context") {
                map.remove("source_code");
            }
            map.values_mut().for_each(without_scripts);
        }
        Value::Array(list) => list.iter_mut().for_each(without_scripts),
        _ => {}
    }
}

/// Takes fields out, by their names or paths.
fn strip(value: &mut Value, fields: &[&str]) {
    for field in fields {
        let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
        let parent = if parent.is_empty() { Some(&mut *value) } else { value.get_mut(parent) };
        if let Some(Value::Object(map)) = parent {
            map.remove(name);
        }
    }
}

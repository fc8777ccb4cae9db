//! The golden part of a case: what became of its objects, and what Envoy gets, as YAML that people can read.
//!
//! Left out is what is the same in every case (a case that prints everything shows it), what differs in every run
//! (addresses of backends stand there by name), and keys. What is left is what a change of the code may change.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use envoy::listener::connection::connection_manager;
use envoy::listener::slots::Slot;
use envoy::packing::{Packing, admission, redirects, scoped};
use envoy_api::{Any, Message, json};
use model::listener::{ConnectionSettings, HttpSettings};
use model::status::{Entry, Scope, StatusValue};
use model::{FleetId, Port, PortId, PortProtocol};
use pipeline::Output;
use serde_json::Value;
use source::Problem;
use xds::Kind;

use super::settings::Print;
use super::{Backends, text};

/// What every cluster has.
const OF_EVERY_CLUSTER: [&str; 6] =
    ["@type", "name", "common_lb_config", "eds_cluster_config", "type", "load_assignment.cluster_name"];

/// How long a connection may take to stand where nothing is said: in every dialect, and in Emissary's Mappings.
const USUAL_CONNECT_TIMEOUTS: [&str; 2] = ["2s", "3s"];

/// What only an object says about all requests of a port, and where it stands in a connection manager.
const OF_REQUESTS: [(&str, &str); 8] = [
    ("accept_http_10", "/http_protocol_options/accept_http_10"),
    ("allow_chunked_length", "/http_protocol_options/allow_chunked_length"),
    ("header_key_format", "/http_protocol_options/header_key_format"),
    ("idle_timeout", "/common_http_protocol_options/idle_timeout"),
    ("max_request_headers_kb", "/max_request_headers_kb"),
    ("preserve_external_request_id", "/preserve_external_request_id"),
    ("server_name", "/server_name"),
    ("xff_num_trusted_hops", "/xff_num_trusted_hops"),
];

/// How many requests a connection may have in flight, of HTTP/2 and of HTTP/3.
const STREAMS: [&str; 2] = [
    "/http2_protocol_options/max_concurrent_streams",
    "/http3_protocol_options/quic_protocol_options/max_concurrent_streams",
];

/// The filters that an object may ask for, or turn off.
const FILTERS: [&str; 4] = ["buffer", "compressor", "grpc_http1_bridge", "grpc_web"];

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
        out.push_str(&listeners(&of(Kind::Listener)));
        let mut tables = of(Kind::Route);
        let shared = tables.extract_if(.., |name, _| envoy::name::is_shared_routes(name)).collect();
        tables.extend(unpacked(of(Kind::ScopedRoute), &shared));
        out.push_str(&routes(&tables));
        let mut extensions = of(Kind::Extension);
        let slots: BTreeMap<String, Value> = extensions.extract_if(.., |name, _| name.starts_with("slot/")).collect();
        out.push_str(&streams(&extensions));
        out.push_str(&filled(slots));
        out.push_str(&telemetry(&of(Kind::Listener)));
        out.push_str(&ports(&of(Kind::Listener)));
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

/// Under TLS, which names lead to which chain; a listener in the clear is always the same.
fn listeners(listeners: &BTreeMap<String, Value>) -> String {
    let mut out = String::new();
    for (name, listener) in listeners {
        let matcher = &listener["filter_chain_matcher"];
        if matcher.is_null() {
            continue;
        }
        out.push_str(&format!("chains of {name}:\n"));
        let by_transport = &matcher["matcher_tree"]["exact_match_map"]["map"];
        for (transport, on_match) in by_transport.as_object().into_iter().flatten() {
            let mut chains = Vec::new();
            led_to(on_match, &mut chains);
            out.push_str(&format!("  {}: {transport}\n", chains.first().copied().unwrap_or("?")));
        }
        let matcher = if by_transport.is_null() { matcher } else { &matcher["on_no_match"]["matcher"] };
        let domains = &matcher["matcher_tree"]["custom_match"]["typed_config"]["domain_matchers"];
        for entry in domains.as_array().into_iter().flatten() {
            let on_match = &entry["on_match"];
            let mut chains = Vec::new();
            led_to(on_match, &mut chains);
            chains.retain(|chain| *chain != envoy::name::REFUSED_CHAIN);
            let chain = text::key(of_listener(name, chains.first().copied().unwrap_or("?")));
            out.push_str(&format!("  {chain}: {}\n", text::flow(&entry["domains"])));
            if !on_match["matcher"].is_null() {
                out.push_str(&format!("  clients of {chain}: {}\n", text::flow(&by_address(on_match))));
            }
        }
        let mut others = Vec::new();
        led_to(matcher, &mut others);
        led_to(&matcher["on_no_match"], &mut others);
        others.extend(listener["default_filter_chain"]["name"].as_str());
        if let Some(chain) = others.first() {
            out.push_str(&format!("  {}: every other name\n", text::key(of_listener(name, chain))));
        }
    }
    out
}

/// Who gets spans and entries of access logs from each listener, where that is anybody but a file, and of which methods of gRPC statistics
/// are kept.
fn telemetry(listeners: &BTreeMap<String, Value>) -> String {
    let mut all = serde_json::Map::new();
    for (name, listener) in listeners {
        for manager in network_filters(listener).into_iter().map(|filter| filter["typed_config"].clone()) {
            let is_sent = |log: &Value| log["name"] != "envoy.access_loggers.file";
            let logs = items(&manager["access_log"]).into_iter().filter(is_sent);
            let logs: Vec<Value> = logs.map(|log| log["typed_config"].clone()).collect();
            let mut of = serde_json::Map::new();
            of.extend(manager.get("tracing").map(|tracing| ("tracing".to_owned(), tracing.clone())));
            of.extend((!logs.is_empty()).then(|| ("access_log".to_owned(), logs.into())));
            let is_counted = |filter: &Value| filter["name"] == "envoy.filters.http.grpc_stats";
            let counted =
                items(&manager["http_filters"]).into_iter().find(is_counted).map(|it| it["typed_config"].clone());
            let counts_methods = |stats: &Value| {
                ["stats_for_all_methods", "individual_method_stats_allowlist"]
                    .iter()
                    .any(|key| stats.get(key).is_some())
            };
            of.extend(counted.filter(counts_methods).map(|stats| ("grpc_stats".to_owned(), stats)));
            if !of.is_empty() {
                all.insert(name.clone(), of.into());
            }
        }
    }
    if all.is_empty() { String::new() } else { format!("telemetry:{}", text::below(&all.into(), 0)) }
}

fn items(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}

/// What the connections of a listener go through, of all its chains.
fn network_filters(listener: &Value) -> Vec<Value> {
    let chains = items(&listener["filter_chains"]).into_iter().chain([listener["default_filter_chain"].clone()]);
    chains.flat_map(|chain| items(&chain["filters"])).collect()
}

/// What an object says about all connections and requests of a port.
fn ports(listeners: &BTreeMap<String, Value>) -> String {
    let usual = usual_manager();
    let buffer = Value::from(ConnectionSettings::default().buffer);
    let mut out = String::new();
    for (name, listener) in listeners {
        let mut of = serde_json::Map::new();
        let field = "per_connection_buffer_limit_bytes";
        of.extend(listener.get(field).filter(|most| **most != buffer).map(|most| (field.to_owned(), most.clone())));
        // What has its routes in the listener are pages of Envoy's own.
        let is_http = |filter: &Value| {
            filter["name"] == "envoy.filters.network.http_connection_manager"
                && filter["typed_config"].get("route_config").is_none()
        };
        for manager in network_filters(listener).iter().filter(|filter| is_http(filter)).map(|it| &it["typed_config"]) {
            of.extend(differing(manager, &usual));
            let prefix = manager["stat_prefix"].as_str().unwrap_or_default();
            // Plaintext connections of a port for TLS have statistics of their own.
            let is_name = listener["name"] == *prefix.strip_suffix("-plaintext").unwrap_or(prefix);
            of.extend((!is_name).then(|| ("stat_prefix".to_owned(), prefix.into())));
        }
        if !of.is_empty() {
            out.push_str(if out.is_empty() { "ports:\n" } else { "" });
            out.push_str(&format!("  {}: {}\n", text::key(name), text::flow(&of.into())));
        }
    }
    out
}

/// The connection manager of a port about which nothing is said.
fn usual_manager() -> Value {
    let port = Port {
        id: PortId::new(FleetId::Shared, "any"),
        address: Ipv4Addr::LOCALHOST.into(),
        port: 80,
        protocol: PortProtocol::Http,
        connections: ConnectionSettings::default(),
        http: HttpSettings::default(),
        tracer: None,
    };
    json::to_json(&connection_manager(&port, None, Packing::Plain)).unwrap_or_default()
}

/// What a connection manager has and another does not. What is missing in protobuf's JSON is false, or not there.
fn differing(manager: &Value, usual: &Value) -> serde_json::Map<String, Value> {
    let mut all = serde_json::Map::new();
    let mut add = |name: &str, found: Option<&Value>, usual: Option<&Value>| {
        if found != usual {
            let none = if usual.is_some_and(Value::is_boolean) { Value::from(false) } else { Value::Null };
            all.insert(name.to_owned(), found.cloned().unwrap_or(none));
        }
    };
    for (name, path) in OF_REQUESTS {
        add(name, manager.pointer(path), usual.pointer(path));
    }
    let [http2, http3] = STREAMS;
    let streams = if manager.get("http3_protocol_options").is_some() { http3 } else { http2 };
    add("max_concurrent_streams", manager.pointer(streams), usual.pointer(http2));
    for name in FILTERS {
        let [mut found, usual] = [manager, usual].map(|manager| http_filter(manager, name));
        // Cases say which compression the operator has chosen.
        if name == "compressor" && found.as_ref().is_none_or(|it| it["compressor_library"]["name"] != "gzip") {
            found.clone_from(&usual);
        }
        add(name, found.as_ref(), usual.as_ref());
    }
    all
}

/// A filter of a connection manager, if it is there.
fn http_filter(manager: &Value, name: &str) -> Option<Value> {
    let name = format!("envoy.filters.http.{name}");
    let mut filter = items(&manager["http_filters"]).into_iter().find(|filter| filter["name"] == *name)?;
    let mut config = filter["typed_config"].take();
    strip(&mut config, &["@type"]);
    Some(config)
}

/// The name of a chain without that of its listener.
fn of_listener<'v>(listener: &str, chain: &'v str) -> &'v str {
    chain.strip_prefix(listener).and_then(|rest| rest.strip_prefix('/')).unwrap_or(chain)
}

/// The chains that a part of a matcher ends with.
fn led_to<'v>(on_match: &'v Value, chains: &mut Vec<&'v str>) {
    chains.extend(on_match["action"]["typed_config"]["value"].as_str());
    let list = &on_match["matcher_list"]["matchers"];
    list.as_array().into_iter().flatten().for_each(|matcher| led_to(&matcher["on_match"], chains));
    let matcher = &on_match["matcher"];
    if matcher.is_null() {
        return;
    }
    led_to(matcher, chains);
    let ranges = &matcher["matcher_tree"]["custom_match"]["typed_config"]["range_matchers"];
    ranges.as_array().into_iter().flatten().for_each(|ranges| led_to(&ranges["on_match"], chains));
    led_to(&matcher["on_no_match"], chains);
}

/// Which clients take which chain: the address, its ranges, and what is for all others.
fn by_address(on_match: &Value) -> Value {
    let matcher = &on_match["matcher"];
    if matcher.is_null() {
        return on_match["action"]["typed_config"]["value"].clone();
    }
    let tree = &matcher["matcher_tree"];
    let input = tree["input"]["typed_config"]["@type"].as_str().unwrap_or("?").rsplit('.').next().unwrap_or("?");
    let text = |range: &Value| format!("{}/{}", range["address_prefix"].as_str().unwrap_or("?"), range["prefix_len"]);
    let ranges = tree["custom_match"]["typed_config"]["range_matchers"].as_array().into_iter().flatten();
    let ranges = ranges.map(|entry| {
        let list: Vec<String> = entry["ranges"].as_array().into_iter().flatten().map(text).collect();
        (list.join(" "), by_address(&entry["on_match"]))
    });
    let ranges: Value = ranges.collect::<serde_json::Map<_, _>>().into();
    serde_json::json!({ input: ranges, "others": by_address(&matcher["on_no_match"]) })
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

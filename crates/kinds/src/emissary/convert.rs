//! From `v1` and `v2` to `v3alpha1`, in the tree of an object before it is typed.
//!
//! In: a tree of any served version. Out: the same object in the shape of `v3alpha1`. `v1` and `v2` have the same fields. What is
//! valid in `v3alpha1` stays as it is. The spellings of `v2` that `v3alpha1` does not have (`tls: true`, one id in place of a
//! list, labels as plain text) are taken in any version: an API server without a conversion webhook hands out what was written as
//! `v2` under the name of the version that it is asked for. Only what the two versions read differently depends on the version
//! that is named: `host` and `selector`.
//!
//! A moved field keeps the name it was written with for messages ([`Key::written`]), and its position. What no rule applies to is
//! left as it is: the decoder reports it on its field.

mod fields;
mod labels;
mod tls;

use super::{GROUP, module};
use crate::{Kind, Node, Value, node::Key};
use fields::{Entries, each_entry, entries, rename, take};

/// The version that everything is converted to.
const VERSION: &str = "getambassador.io/v3alpha1";

/// What Emissary puts before each id that it stores as `v2`, so that releases before 2.0 ignore the object.
const MANGLED_ID: &str = "--apiVersion-v3alpha1-only--";

/// The host of a Mapping without one that Emissary has stored as `v2`.
const NO_HOST: &str = "_skip_mapping_with_empty_host_";

/// Fields of `v3alpha1` that `v2` has under another name.
const STASHED: &[(&str, &str)] = &[
    ("v3StatsName", "stats_name"),
    ("v3health_checks", "health_checks"),
    ("v3CRLSecret", "crl_secret"),
    ("v3CircuitBreakers", "circuit_breakers"),
    ("v3GRPC", "grpc"),
    ("v3ProtocolVersion", "protocol_version"),
    ("v3CustomTags", "custom_tags"),
];

/// Settings of TLS in a Host that may be written in camel case.
const HOST_TLS: &[(&str, &str)] = &[
    ("certChainFile", "cert_chain_file"),
    ("privateKeyFile", "private_key_file"),
    ("caSecret", "ca_secret"),
    ("cacertChainFile", "cacert_chain_file"),
    ("crlSecret", "crl_secret"),
    ("v3CRLSecret", "crl_secret"),
    ("alpnProtocols", "alpn_protocols"),
    ("certRequired", "cert_required"),
    ("minTlsVersion", "min_tls_version"),
    ("maxTlsVersion", "max_tls_version"),
    ("cipherSuites", "cipher_suites"),
    ("ecdhCurves", "ecdh_curves"),
    ("redirectCleartextFrom", "redirect_cleartext_from"),
];

/// The tree of an object that is written in a version, in the shape of `v3alpha1`; none if the kind is of another group, or the tree has no `spec`.
pub fn convert<'a>(kind: Kind, api_version: &str, node: &Node<'a>) -> Option<Node<'a>> {
    if kind.group() != GROUP || !matches!(node.get("spec")?.value, Value::Map(_)) {
        return None;
    }
    let is_v2 = api_version.rsplit_once('/').is_some_and(|(_, version)| matches!(version, "v1" | "v2"));
    let is_v2 = is_v2 || is_mangled(node.get("spec")?);
    let name = node.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::text).map(str::to_owned);
    let mut node = node.clone();
    if is_v2 && let Some(version) = fields::field(entries(&mut node)?, "apiVersion") {
        version.value = Value::Text(VERSION.into());
    }
    let spec = entries(fields::field(entries(&mut node)?, "spec")?)?;
    spec.retain(|(_, node)| node.value != Value::Null);
    ids(spec);
    for (from, to) in STASHED {
        rename(spec, from, to);
    }
    match kind.name() {
        "Mapping" => mapping(spec, is_v2),
        "TCPMapping" | "RateLimitService" => tls::fold(spec, "service"),
        "AuthService" => tls::fold(spec, "auth_service"),
        "Host" => host(spec, is_v2),
        "TracingService" => tracing_service(spec),
        "Module" => module(spec, name.as_deref()),
        _ => {}
    }
    Some(node)
}

/// Whether Emissary has stored an object as `v2`, whatever version it is handed out in.
fn is_mangled(spec: &Node<'_>) -> bool {
    let is_mangled = |id: &Node<'_>| id.text().is_some_and(|id| id.starts_with(MANGLED_ID));
    match spec.get("ambassador_id").map(|ids| &ids.value) {
        Some(Value::List(ids)) => ids.iter().any(is_mangled),
        _ => false,
    }
}

/// One list of ids from either spelling of the field.
fn ids<'a>(spec: &mut Entries<'a>) {
    rename(spec, "ambassadorId", "ambassador_id");
    let others: Vec<_> = std::iter::from_fn(|| take(spec, "ambassadorId")).collect();
    let Some((_, ids)) = spec.iter_mut().find(|(key, _)| key.text == "ambassador_id") else { return };
    fields::listed(ids);
    if let Value::List(ids) = &mut ids.value {
        for (_, mut other) in others {
            fields::listed(&mut other);
            match other.value {
                Value::List(other) => ids.extend(other),
                _ => ids.push(other),
            }
        }
        for id in ids {
            if let Some(id_text) = id.text().and_then(|id| id.strip_prefix(MANGLED_ID)) {
                id.value = Value::Text(id_text.to_owned().into());
            }
        }
    }
}

fn mapping<'a>(spec: &mut Entries<'a>, is_v2: bool) {
    tls::fold(spec, "service");
    for (exact, regex) in [("headers", "regex_headers"), ("query_parameters", "regex_query_parameters")] {
        fields::present(spec, exact, regex);
    }
    headers_and_cors(spec);
    if let Some(labels) = fields::field(spec, "labels") {
        each_entry(labels, labels::domain);
    }
    let is_glob = fields::field(spec, "host").is_some_and(|host| host.text().is_some_and(|host| host.contains('*')));
    if is_v2 || is_glob {
        v2_host(spec);
    }
}

/// The fields that Mappings and the defaults of a Module have in common.
fn headers_and_cors<'a>(spec: &mut Entries<'a>) {
    for name in ["add_request_headers", "add_response_headers"] {
        if let Some(headers) = fields::field(spec, name) {
            each_entry(headers, fields::added_header);
        }
    }
    for name in ["remove_request_headers", "remove_response_headers"] {
        if let Some(names) = fields::field(spec, name) {
            fields::listed(names);
        }
    }
    if let Some(cors) = fields::field(spec, "cors").and_then(entries) {
        if let Some(origins) = fields::field(cors, "origins") {
            fields::comma_separated(origins);
        }
        for name in ["methods", "headers", "exposed_headers"] {
            if let Some(names) = fields::field(cors, name) {
                fields::listed(names);
            }
        }
        if let Some(age) = fields::field(cors, "max_age")
            && let Value::Int(seconds) = age.value
        {
            age.value = Value::Text(seconds.to_string().into());
        }
    }
}

/// `host` of `v2` is `hostname`, unless it is a regular expression; without one the Mapping is for every host. A `host` with a `*`
/// is a glob in any version: as an exact name it could match nothing.
fn v2_host<'a>(spec: &mut Entries<'a>) {
    let is_regex = fields::field(spec, "host_regex").is_some_and(|regex| regex.value == Value::Bool(true));
    if is_regex {
        return;
    }
    rename(spec, "host", "hostname");
    let is =
        |spec: &mut Entries<'a>, text| fields::field(spec, "hostname").is_some_and(|host| host.text() == Some(text));
    if is(spec, NO_HOST) {
        drop(take(spec, "hostname"));
        return;
    }
    if is(spec, "") {
        drop(take(spec, "hostname"));
    }
    if fields::field(spec, "hostname").is_none() {
        spec.push((Key::from("hostname"), Value::Text("*".into()).into()));
    }
}

fn host<'a>(spec: &mut Entries<'a>, is_v2: bool) {
    if is_v2 {
        rename(spec, "selector", "mappingSelector");
    }
    if let Some(tls) = fields::field(spec, "tls").and_then(entries) {
        for (from, to) in HOST_TLS {
            rename(tls, from, to);
        }
    }
}

/// `tag_headers` are custom tags, unless there are some.
fn tracing_service<'a>(spec: &mut Entries<'a>) {
    if let Some(config) = fields::field(spec, "config").and_then(entries) {
        rename(config, "v3PropagationModes", "propagation_modes");
    }
    let is_list =
        |tags: &mut Node<'a>| matches!(&tags.value, Value::List(tags) if tags.iter().all(|tag| tag.text().is_some()));
    if fields::field(spec, "custom_tags").is_some() || !fields::field(spec, "tag_headers").is_some_and(is_list) {
        return;
    }
    rename(spec, "tag_headers", "custom_tags");
    let Some(Value::List(tags)) = fields::field(spec, "custom_tags").map(|tags| &mut tags.value) else { return };
    for tag in tags {
        let header = fields::map([("name", tag.clone())]);
        *tag = Node { value: fields::map([("tag", tag.clone()), ("request_header", header)]).value, ..*tag };
    }
}

/// The settings of a Module go into the field of its name.
fn module<'a>(spec: &mut Entries<'a>, name: Option<&str>) {
    match name {
        Some(module::AMBASSADOR) => {
            if let Some(config) = fields::field(spec, "config").and_then(entries) {
                module_settings(config);
            }
        }
        Some(module::TLS) => rename(spec, "config", "tls_config"),
        Some(module::AUTHENTICATION) => {
            rename(spec, "config", "authentication_config");
            if let Some(config) = fields::field(spec, "authentication_config").and_then(entries) {
                tls::fold(config, "auth_service");
            }
        }
        _ => rename(spec, "config", "other_config"),
    }
}

fn module_settings<'a>(config: &mut Entries<'a>) {
    headers_and_cors(config);
    if let Some(keepalive) = fields::field(config, "keepalive").and_then(entries) {
        rename(keepalive, "time", "idle_time");
    }
    if let Some(domains) = fields::field(config, "default_labels") {
        each_entry(domains, |domain| {
            if let Some(Value::List(labels)) =
                entries(domain).and_then(|domain| fields::field(domain, "defaults")).map(|labels| &mut labels.value)
            {
                labels.iter_mut().for_each(labels::specifier);
            }
        });
    }
    if let Some(defaults) = fields::field(config, "defaults").and_then(entries) {
        headers_and_cors(defaults);
        if let Some(defaults) = fields::field(defaults, "httpmapping").and_then(entries) {
            headers_and_cors(defaults);
        }
    }
}

#[cfg(test)]
mod tests;

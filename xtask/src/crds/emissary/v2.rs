//! `v2`, and `v1`, which has the same fields: made from `v3alpha1`.
//!
//! Fields that may be written in several ways (`tls` as a name or a boolean, one id or a list of them) cannot be in a structural
//! schema: they are left out, and what is not in the schema is kept.

use serde_json::{Map, Value, json};

/// Fields whose values have several forms, and those that `v2` does not have.
const LEFT_OUT: &[&str] = &[
    "ambassador_id",
    "remove_request_headers",
    "remove_response_headers",
    "v2BoolHeaders",
    "v2BoolQueryParameters",
    "v2ExplicitTLS",
];

/// Maps whose values have several forms.
const OPEN: &[&str] = &["add_request_headers", "add_response_headers", "headers", "query_parameters"];

/// Fields that have another name.
const RENAMED: &[(&str, &str)] = &[
    ("stats_name", "v3StatsName"),
    ("health_checks", "v3health_checks"),
    ("crl_secret", "v3CRLSecret"),
    ("propagation_modes", "v3PropagationModes"),
];

/// The `spec` of a kind.
pub fn of(kind: &str, mut spec: Value) -> Value {
    spec["x-kubernetes-preserve-unknown-fields"] = true.into();
    if kind == "Module" {
        spec.as_object_mut().expect("a schema is a map").remove("required");
    }
    let fields = properties(&mut spec);
    LEFT_OUT.iter().for_each(|name| drop(fields.remove(*name)));
    renamed(fields);
    match kind {
        "Mapping" => mapping(fields),
        "TCPMapping" => drop(fields.remove("tls")),
        "AuthService" => {
            fields.remove("tls");
            rename(fields, "circuit_breakers", "v3CircuitBreakers");
        }
        "RateLimitService" => {
            fields.remove("tls");
            rename(fields, "grpc", "v3GRPC");
        }
        "LogService" => rename(fields, "protocol_version", "v3ProtocolVersion"),
        "Host" => {
            fields.remove("mappingSelector");
            renamed(properties(&mut fields["tls"]));
        }
        "TracingService" => {
            rename(fields, "custom_tags", "v3CustomTags");
            renamed(properties(&mut fields["config"]));
        }
        _ => {}
    }
    spec
}

/// Adds the fields to the schema of what is stored that `v2` alone has: the API server drops what the stored version has no
/// name for.
pub fn keep(stored: &mut Value, v2: &Value) {
    let (Some(fields), Some(of_v2)) = (stored["properties"].as_object_mut(), v2["properties"].as_object()) else {
        return;
    };
    for (name, schema) in of_v2 {
        match fields.get_mut(name) {
            Some(field) if field.get("properties").is_some() => keep(field, schema),
            Some(_) => {}
            None => _ = fields.insert(name.clone(), schema.clone()),
        }
    }
}

fn mapping(fields: &mut Map<String, Value>) {
    fields.remove("tls");
    fields.remove("hostname");
    for name in OPEN {
        let map = fields[*name].as_object_mut().expect("a schema is a map");
        map.remove("additionalProperties");
        map.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    }
    let cors = &mut fields["cors"];
    cors["x-kubernetes-preserve-unknown-fields"] = true.into();
    properties(cors).retain(|name, _| ["credentials", "max_age"].contains(&name.as_str()));
    let group = &mut fields["labels"]["additionalProperties"]["items"];
    group.as_object_mut().expect("a schema is a map").remove("additionalProperties");
    group["x-kubernetes-preserve-unknown-fields"] = true.into();
    // A Mapping of `v2` without a host is for every host, one of `v3alpha1` for none.
    fields["host"]["default"] = json!("*");
}

fn properties(schema: &mut Value) -> &mut Map<String, Value> {
    schema["properties"].as_object_mut().expect("an object has fields")
}

fn renamed(fields: &mut Map<String, Value>) {
    RENAMED.iter().for_each(|(from, to)| rename(fields, from, to));
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(field) = fields.remove(from) {
        fields.insert(to.to_owned(), field);
    }
}

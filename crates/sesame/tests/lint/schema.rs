//! As much of JSON Schema as `docs/lint.schema.json` uses: types, constants, enumerations, required properties, items, bounds of
//! numbers, and references into `$defs`. Stricter than the schema, whose readers must put up with fields that are added: a property that it does not
//! describe is a violation here.

use serde_json::Value;

/// Everything in a value that a schema does not allow.
pub fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "$", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.strip_prefix('#').expect("references are local");
        return check(root, root.pointer(pointer).expect("the definition exists"), value, at, found);
    }
    if let Some(expected) = schema["type"].as_str()
        && !is_of_type(expected, value)
    {
        return found.push(format!("{at} is no {expected}"));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        found.push(format!("{at} is not {}", schema["const"]));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        found.push(format!("{at} is none of {allowed:?}"));
    }
    if let Some(least) = schema["minimum"].as_u64()
        && value.as_u64().is_some_and(|number| number < least)
    {
        found.push(format!("{at} is below {least}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{at}.{name} is missing"));
        }
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(schema) => check(root, schema, value, &format!("{at}.{name}"), found),
            None => found.push(format!("{at}.{name} is not described")),
        }
    }
    if schema["items"].is_object() {
        for (index, value) in value.as_array().into_iter().flatten().enumerate() {
            check(root, &schema["items"], value, &format!("{at}[{index}]"), found);
        }
    }
}

fn is_of_type(expected: &str, value: &Value) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("the type {other} is not known here"),
    }
}

//! Messages as JSON, in protobuf's mapping, with every [`Any`] expanded by its type.
//!
//! In: a message, or an [`Any`] of any type this crate knows. Out: a [`Value`] whose keys are sorted, so that equal
//! messages print alike and dumps can be compared as text; and back. Works through descriptors, not generated code:
//! it is for people's eyes, goldens and files, never for the hot path.

use std::sync::LazyLock;

use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::well_known::{Any, type_name};

/// Why a message could not be turned into JSON, or JSON into a message.
#[derive(Debug, Error)]
pub enum JsonError {
    /// A type that is not part of this crate.
    #[error("message type {0} is not known")]
    UnknownType(String),
    /// Bytes that are not a message of their type.
    #[error("message of type {0} cannot be decoded")]
    Decode(String, #[source] prost::DecodeError),
    /// A value that has no JSON form (or the reverse): most often an unknown type inside, or a misspelt field.
    #[error("message of type {0} does not fit JSON")]
    Shape(String, #[source] serde_json::Error),
}

/// A typed message as JSON.
pub fn to_json<M: Name>(message: &M) -> Result<Value, JsonError> {
    render(&M::full_name(), &message.encode_to_vec())
}

/// The message inside an [`Any`] as JSON, with its type under `@type`.
pub fn any_to_json(any: &Any) -> Result<Value, JsonError> {
    let mut value = render(type_name(&any.type_url), &any.value)?;
    let url = Value::String(any.type_url.clone());
    match &mut value {
        Value::Object(fields) => {
            fields.insert("@type".to_owned(), url);
            value.sort_all_objects();
            Ok(value)
        }
        // Well-known types whose JSON is not an object stand under `value`, as protobuf has it.
        _ => Ok(Value::Object(Map::from_iter([("@type".to_owned(), url), ("value".to_owned(), value)]))),
    }
}

/// Reads a typed message from JSON; a field that does not exist is an error.
pub fn from_json<M: Name + Default>(json: &Value) -> Result<M, JsonError> {
    let name = M::full_name();
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let message = DynamicMessage::deserialize_with_options(descriptor(&name)?, json, &options)
        .map_err(|error| JsonError::Shape(name.clone(), error))?;
    M::decode(message.encode_to_vec().as_slice()).map_err(|error| JsonError::Decode(name, error))
}

fn render(name: &str, bytes: &[u8]) -> Result<Value, JsonError> {
    let message =
        DynamicMessage::decode(descriptor(name)?, bytes).map_err(|error| JsonError::Decode(name.to_owned(), error))?;
    let options = SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(true);
    let mut value = message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| JsonError::Shape(name.to_owned(), error))?;
    value.sort_all_objects();
    Ok(value)
}

fn descriptor(name: &str) -> Result<MessageDescriptor, JsonError> {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        DescriptorPool::decode(crate::DESCRIPTORS).expect("the descriptors were written by protoc at build time")
    });
    POOL.get_message_by_name(name).ok_or_else(|| JsonError::UnknownType(name.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;
    use crate::any;
    use crate::envoy::config::core::v3 as core;
    use crate::envoy::config::listener::v3 as listener;
    use crate::envoy::extensions::filters::http::router::v3::Router;
    use crate::envoy::extensions::filters::network::http_connection_manager::v3 as hcm;
    use crate::google::protobuf::UInt32Value;
    use crate::xds::r#type::matcher::v3::ServerNameMatcher;

    /// A listener whose HTTP filters stand two [`Any`]s deep.
    fn a_listener() -> listener::Listener {
        let router = hcm::HttpFilter {
            name: "envoy.filters.http.router".to_owned(),
            config_type: Some(hcm::http_filter::ConfigType::TypedConfig(any(&Router::default()))),
            ..Default::default()
        };
        let manager = hcm::HttpConnectionManager {
            stat_prefix: "http".to_owned(),
            http_filters: vec![router],
            ..Default::default()
        };
        listener::Listener {
            name: "ingress_http".to_owned(),
            per_connection_buffer_limit_bytes: Some(32768.into()),
            filter_chains: vec![listener::FilterChain {
                filters: vec![listener::Filter {
                    name: "envoy.filters.network.http_connection_manager".to_owned(),
                    config_type: Some(listener::filter::ConfigType::TypedConfig(any(&manager))),
                }],
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn an_any_is_expanded_however_deep_it_stands() {
        let value = any_to_json(&any(&a_listener())).unwrap();
        assert_eq!(
            value,
            json!({
                "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
                "name": "ingress_http",
                "per_connection_buffer_limit_bytes": 32768,
                "filter_chains": [{"filters": [{
                    "name": "envoy.filters.network.http_connection_manager",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                        "stat_prefix": "http",
                        "http_filters": [{
                            "name": "envoy.filters.http.router",
                            "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
                        }],
                    },
                }]}],
            })
        );
    }

    #[test]
    fn keys_are_sorted_in_the_text() {
        let text = serde_json::to_string(&any_to_json(&any(&a_listener())).unwrap()).unwrap();
        let at = |key: &str| text.find(key).unwrap();
        assert!(at("\"@type\"") < at("\"filter_chains\""));
        assert!(at("\"filter_chains\"") < at("\"per_connection_buffer_limit_bytes\""));
    }

    #[test]
    fn what_was_written_is_read_back() {
        let before = a_listener();
        let after: listener::Listener = from_json(&to_json(&before).unwrap()).unwrap();
        assert_eq!(after, before);
    }

    #[test]
    fn a_scalar_in_an_any_stands_under_value() {
        let value = any_to_json(&any(&UInt32Value { value: 7 })).unwrap();
        assert_eq!(value, json!({"@type": "type.googleapis.com/google.protobuf.UInt32Value", "value": 7}));
    }

    #[test]
    fn a_misspelt_field_is_an_error_that_names_it() {
        let error = from_json::<core::Node>(&json!({"idd": "a"})).unwrap_err();
        let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
        assert!(text.contains("envoy.config.core.v3.Node") && text.contains("idd"), "{text}");
    }

    #[test]
    fn an_unknown_type_is_named() {
        let stranger = Any { type_url: "type.googleapis.com/acme.Thing".to_owned(), ..Default::default() };
        assert_eq!(any_to_json(&stranger).unwrap_err().to_string(), "message type acme.Thing is not known");
    }

    #[test]
    fn messages_of_our_own_protos_are_known() {
        let value = any_to_json(&any(&ServerNameMatcher::default())).unwrap();
        assert_eq!(value, json!({"@type": "type.googleapis.com/xds.type.matcher.v3.ServerNameMatcher"}));
    }
}

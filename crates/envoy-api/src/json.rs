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

use crate::any::{Any, type_name};

#[cfg(test)]
mod tests;

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

//! Protobuf's well-known messages as Rust values: `google.protobuf.Any`, and those that Envoy wraps optional scalars
//! in.
//!
//! A message is packed into an [`Any`] as its bytes under its type URL, encoded once; clones share them.

use crate::google::protobuf;
use prost::Name;
use std::time::Duration;
use thiserror::Error;

pub use crate::google::protobuf::Any;

/// Why an [`Any`] could not be unpacked.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// The message inside is of another type.
    #[error("expected a message of type {expected}, found {found}")]
    Type {
        /// The type URL asked for.
        expected: String,
        /// The type URL found.
        found: String,
    },
    /// The bytes are not a message of the type they claim to be.
    #[error("message of type {0} cannot be decoded")]
    Decode(String, #[source] prost::DecodeError),
}

/// Packs a message with its type URL (`type.googleapis.com/…`).
pub fn any<M: Name>(message: &M) -> Any {
    Any { type_url: M::type_url(), value: message.encode_to_vec().into() }
}

/// Unpacks a message of a known type.
pub fn unpack<M: Name + Default>(any: &Any) -> Result<M, UnpackError> {
    if type_name(&any.type_url) != M::full_name() {
        return Err(UnpackError::Type { expected: M::type_url(), found: any.type_url.clone() });
    }
    M::decode(any.value.clone()).map_err(|error| UnpackError::Decode(any.type_url.clone(), error))
}

/// The part of a type URL that names the message: what follows the last slash.
pub(crate) fn type_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

impl From<Duration> for protobuf::Duration {
    /// Saturates at the largest duration that protobuf can say (about 292 billion years).
    fn from(duration: Duration) -> Self {
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        let nanos = i32::try_from(duration.subsec_nanos()).unwrap_or(i32::MAX);
        Self { seconds, nanos }
    }
}

impl From<bool> for protobuf::BoolValue {
    fn from(value: bool) -> Self {
        Self { value }
    }
}

impl From<u32> for protobuf::UInt32Value {
    fn from(value: u32) -> Self {
        Self { value }
    }
}

impl From<u64> for protobuf::UInt64Value {
    fn from(value: u64) -> Self {
        Self { value }
    }
}

impl From<f64> for protobuf::DoubleValue {
    fn from(value: f64) -> Self {
        Self { value }
    }
}

impl From<&str> for protobuf::Value {
    fn from(value: &str) -> Self {
        Self { kind: Some(protobuf::value::Kind::StringValue(value.to_owned())) }
    }
}

/// A whole number of seconds as protobuf says it.
pub fn seconds(seconds: u32) -> protobuf::Duration {
    Duration::from_secs(seconds.into()).into()
}

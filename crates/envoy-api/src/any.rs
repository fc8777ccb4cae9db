//! Packing messages into `google.protobuf.Any` and back.
//!
//! In: a message. Out: its bytes under its type URL, encoded once; clones of an [`Any`] share them.

use prost::Name;
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

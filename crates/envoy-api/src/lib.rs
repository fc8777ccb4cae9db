//! Envoy's API as Rust types, generated at build time from a pinned package of its protobuf files.
//!
//! In: nothing at run time. Out: [`envoy`] (and the [`google`], [`xds`], … messages it uses) with clients and servers of
//! the discovery services; [`any`] to pack a message; [`json`] to read and write any of them as JSON.
//!
//! Two choices differ from what `prost` does by default, and Sesame rests on both. Maps are ordered, so equal messages
//! encode to equal bytes: a resource's version is a hash of its bytes and must agree between replicas and rebuilds.
//! The content of an [`Any`] is [`bytes::Bytes`], so one encoded resource is shared by every stream that sends it.

pub mod json;
mod well_known;

pub use generated::*;
pub use prost::{Message, Name};
pub use well_known::{Any, UnpackError, any, seconds, unpack};

/// The generated modules; rustc's and clippy's opinions on their style are of no use to anybody.
#[allow(missing_docs, clippy::all, rustdoc::all, reason = "generated code")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/_includes.rs"));
}

/// The descriptors of every message in this crate, as an encoded `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

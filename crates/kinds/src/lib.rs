//! The objects that Sesame reads, typed and lean.
//!
//! In: a tree of values ([`Node`]) that came from JSON or YAML. Out: an [`Object`] of one of the kinds in [`kind`], and
//! what could not be understood about it. Nothing here knows where objects come from or what they mean.
//!
//! Three decisions shape the types:
//!
//! * **Lean.** Tens of thousands of each are held in memory, so a type has only the fields that something reads, text
//!   is a `Box<str>`, lists have no spare room, and `managedFields` and the `last-applied-configuration` annotation are
//!   dropped on arrival. The fields of the API that nothing reads are listed by name (`UNREAD` in each kind's file), so
//!   that a misspelt field can be told from one that we merely do not need.
//! * **One bad value spoils the smallest thing around it.** See [`checked`] for the rule.
//! * **Open.** An unknown value of an enumeration is kept as [`Unknown`](open_enum), an unknown field is reported and
//!   skipped, `null` means absent: an object made for a newer Kubernetes is read as far as we know it.
//!
//! A new kind is a file of its own and a row in [`kind`].

pub mod checked;
pub mod config_map;
pub mod contour_configuration;
pub mod custom_resource_definition;
pub mod decode;
pub mod emissary;
pub mod endpoint_slice;
pub mod extension_service;
pub mod gateway;
pub mod http_proxy;
pub mod ingress;
pub mod ingress_class;
pub mod kind;
pub mod label_selector;
pub mod meta;
pub mod name;
pub mod namespace;
pub mod node;
pub mod object;
pub mod open_enum;
pub mod secret;
pub mod service;
pub mod status;
pub mod suggest;
pub mod text_map;
pub mod tls_certificate_delegation;
pub mod uid;

pub use checked::{Checked, Fault, List};
pub use config_map::ConfigMap;
pub use contour_configuration::ContourConfiguration;
pub use custom_resource_definition::CustomResourceDefinition;
pub use decode::{DecodeError, Decoded, UnknownField, decode, decode_as, decode_json, decode_part};
pub use endpoint_slice::EndpointSlice;
pub use extension_service::ExtensionService;
pub use gateway::{
    BackendTlsPolicy, Gateway, GatewayClass, GrpcRoute, HttpRoute, ListenerSet, ReferenceGrant, TcpRoute, TlsRoute,
    UdpRoute,
};
pub use http_proxy::HttpProxy;
pub use ingress::Ingress;
pub use ingress_class::IngressClass;
pub use kind::Kind;
pub use meta::Meta;
pub use namespace::Namespace;
pub use node::{Node, Position, Value};
pub use object::{Object, Typed};
pub use object_ref::ObjectRef;
pub use secret::Secret;
pub use service::Service;
pub use status::Status;
pub use text_map::TextMap;
pub use tls_certificate_delegation::TlsCertificateDelegation;
pub use uid::Uid;

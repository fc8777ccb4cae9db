//! Gateway, `gateway.networking.k8s.io/v1` and `v1beta1`.

use super::{
    listener::{Listener, ListenerNamespaces},
    reference::{LocalReference, ObjectReference},
};
use crate::{Checked, List, Meta, Status, TextMap, open_enum::open_enum};
use serde::Deserialize;

/// Listeners, and the proxies that serve them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Gateway {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: GatewaySpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// The specification of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// The class.
    #[serde(default)]
    pub gateway_class_name: Checked<Option<Box<str>>>,
    /// The listeners.
    #[serde(default)]
    pub listeners: List<Listener>,
    /// The addresses that are asked for.
    #[serde(default)]
    pub addresses: List<Address>,
    /// Metadata and parameters of what is created for it.
    #[serde(default)]
    pub infrastructure: Checked<Option<Box<Infrastructure>>>,
    /// Which ListenerSets may attach.
    #[serde(default)]
    pub allowed_listeners: Checked<Option<Box<AllowedListeners>>>,
    /// Client certificates, towards clients and towards backends.
    #[serde(default)]
    pub tls: Checked<Option<Box<GatewayTls>>>,
    /// Which routes without a parent attach by default (experimental).
    #[serde(default)]
    pub default_scope: Checked<Option<Box<str>>>,
}

/// An address that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Address {
    /// Its type; `IPAddress` if absent.
    pub r#type: Option<AddressType>,
    /// The address; any if absent.
    pub value: Option<Box<str>>,
    /// From where it must be reachable (experimental).
    pub routability: Option<Box<str>>,
}

open_enum! {
    /// The type of an address.
    AddressType {
        /// An IPv4 or IPv6 address.
        IpAddress = "IPAddress",
        /// A DNS name.
        Hostname = "Hostname",
    }
}

/// Metadata and parameters of what is created for a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Infrastructure {
    /// Labels of everything that is created.
    #[serde(default)]
    pub labels: TextMap,
    /// Annotations of everything that is created.
    #[serde(default)]
    pub annotations: TextMap,
    /// Configuration of the controller for this Gateway.
    pub parameters_ref: Option<LocalReference>,
}

/// Which ListenerSets may attach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AllowedListeners {
    /// Their namespaces; none if absent.
    pub namespaces: Option<ListenerNamespaces>,
}

/// Client certificates, towards clients and towards backends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GatewayTls {
    /// Towards backends.
    #[serde(default)]
    pub backend: Checked<Option<Box<BackendTls>>>,
    /// Towards clients.
    #[serde(default)]
    pub frontend: Checked<Option<Box<FrontendTls>>>,
}

/// TLS towards backends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendTls {
    /// The client certificate that backends are shown.
    pub client_certificate_ref: Option<ObjectReference>,
}

/// TLS towards clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrontendTls {
    /// For every HTTPS listener.
    pub default: Option<FrontendTlsSettings>,
    /// For ports that differ.
    #[serde(default)]
    pub per_port: List<PortTls>,
}

/// TLS towards clients on one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PortTls {
    /// The port.
    pub port: i64,
    /// The settings, in place of the default.
    #[serde(default)]
    pub tls: FrontendTlsSettings,
}

/// Settings of TLS towards clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FrontendTlsSettings {
    /// Validation of client certificates; none are asked for if absent.
    pub validation: Option<FrontendValidation>,
}

/// Validation of client certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrontendValidation {
    /// The CA certificates that are trusted.
    #[serde(default)]
    pub ca_certificate_refs: List<ObjectReference>,
    /// What happens without a valid certificate; `AllowValidOnly` if absent.
    pub mode: Option<FrontendValidationMode>,
}

open_enum! {
    /// What happens to a client without a valid certificate.
    FrontendValidationMode {
        /// The handshake fails.
        AllowValidOnly = "AllowValidOnly",
        /// The connection is accepted.
        AllowInsecureFallback = "AllowInsecureFallback",
    }
}

//! A listener of a Gateway or ListenerSet.

use super::{
    filter::ExternalAuth,
    reference::{LocalReference, ObjectReference},
};
use crate::{Checked, List, TextMap, label_selector::LabelSelector, open_enum::open_enum};
use serde::Deserialize;

/// A port, protocol and hostname that routes can attach to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// Its name, unique in its object.
    pub name: Box<str>,
    /// The hostname; every one if absent.
    #[serde(default)]
    pub hostname: Checked<Option<Box<str>>>,
    /// The port.
    #[serde(default)]
    pub port: Checked<i64>,
    /// The protocol.
    #[serde(default)]
    pub protocol: Checked<Option<Protocol>>,
    /// TLS.
    #[serde(default)]
    pub tls: Checked<Option<Box<ListenerTls>>>,
    /// Which routes may attach.
    #[serde(default)]
    pub allowed_routes: Checked<Option<Box<AllowedRoutes>>>,
    /// Filters that run before routes are matched (experimental).
    #[serde(default)]
    pub filters: Checked<Option<Box<ListenerFilters>>>,
}

open_enum! {
    /// The protocol of a listener.
    Protocol {
        /// HTTP over plaintext.
        Http = "HTTP",
        /// HTTP over TLS.
        Https = "HTTPS",
        /// TLS, terminated or passed through by server name.
        Tls = "TLS",
        /// TCP.
        Tcp = "TCP",
        /// UDP.
        Udp = "UDP",
        /// Contour's name for HTTPS.
        ContourHttps = "projectcontour.io/https",
    }
}

/// TLS of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerTls {
    /// Whether TLS is terminated; `Terminate` if absent.
    pub mode: Option<TlsMode>,
    /// The certificates.
    #[serde(default)]
    pub certificate_refs: List<ObjectReference>,
    /// Options of an implementation.
    #[serde(default)]
    pub options: TextMap,
}

open_enum! {
    /// Whether TLS is terminated.
    TlsMode {
        /// It is terminated at the proxy.
        Terminate = "Terminate",
        /// It is passed through to the backend.
        Passthrough = "Passthrough",
    }
}

/// Which routes may attach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AllowedRoutes {
    /// Their namespaces; the same one if absent.
    pub namespaces: Option<ListenerNamespaces>,
    /// Their kinds; those that suit the protocol if empty.
    #[serde(default)]
    pub kinds: List<RouteGroupKind>,
}

/// Namespaces from which objects may attach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListenerNamespaces {
    /// Which ones; the default depends on the field.
    pub from: Option<FromNamespaces>,
    /// Those with these labels, for `Selector`.
    pub selector: Option<Box<LabelSelector>>,
}

open_enum! {
    /// From which namespaces objects may attach.
    FromNamespaces {
        /// From every one.
        All = "All",
        /// From those that a selector matches.
        Selector = "Selector",
        /// From the same one.
        Same = "Same",
        /// From none.
        None = "None",
    }
}

/// A kind of route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct RouteGroupKind {
    /// The group; `gateway.networking.k8s.io` if absent.
    pub group: Option<Box<str>>,
    /// The kind.
    pub kind: Box<str>,
}

/// Filters that run before routes are matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ListenerFilters {
    /// For every request, in this order.
    #[serde(default)]
    pub requests: List<ListenerFilter>,
}

/// A filter of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerFilter {
    /// Its type.
    pub r#type: Option<ListenerFilterType>,
    /// Authorization by a service.
    pub external_auth: Option<Box<ExternalAuth>>,
    /// A filter of an implementation.
    pub extension_ref: Option<Box<LocalReference>>,
}

open_enum! {
    /// The type of a filter of a listener.
    ListenerFilterType {
        /// Authorization by a service.
        ExternalAuth = "ExternalAuth",
        /// A filter of an implementation.
        ExtensionRef = "ExtensionRef",
    }
}

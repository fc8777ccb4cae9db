//! Listener: a port, the protocols on it, and the Hosts that it serves.

use super::{AmbassadorId, Selector};
use crate::{Checked, Meta, open_enum::open_enum};
use serde::Deserialize;

/// A port, the protocols on it, and the Hosts that it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Listener {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: ListenerSpec,
}

/// The specification of a Listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSpec {
    /// The instances it is for.
    #[serde(rename = "ambassador_id")]
    pub ambassador_id: Checked<AmbassadorId>,
    /// The port; required.
    pub port: Checked<Option<i64>>,
    /// The protocol: a well-known stack of protocols.
    pub protocol: Checked<Option<Protocol>>,
    /// The stack of protocols, the outermost last; in place of `protocol`.
    pub protocol_stack: Checked<Option<Box<[StackProtocol]>>>,
    /// Which requests are secure; required.
    pub security_model: Checked<Option<SecurityModel>>,
    /// The Hosts; required.
    pub host_binding: Checked<Option<Box<HostBinding>>>,
    /// The prefix of statistics.
    pub stats_prefix: Checked<Option<Box<str>>>,
    /// Proxies in front that are trusted in `x-forwarded-for`.
    #[serde(rename = "l7Depth")]
    pub l7_depth: Checked<Option<i64>>,
    /// Streams at a time on one HTTP/2 connection.
    #[serde(rename = "http2MaxConcurrentStreams")]
    pub http2_max_concurrent_streams: Checked<Option<i64>>,
}

open_enum! {
    /// A well-known stack of protocols.
    Protocol {
        /// HTTP.
        Http = "HTTP",
        /// HTTP over TLS.
        Https = "HTTPS",
        /// HTTP after a PROXY header.
        HttpProxy = "HTTPPROXY",
        /// HTTP after a PROXY header inside TLS.
        HttpsProxy = "HTTPSPROXY",
        /// TCP.
        Tcp = "TCP",
        /// TCP over TLS.
        Tls = "TLS",
        /// UDP: refused, it is no protocol of its own.
        Udp = "UDP",
    }
}

open_enum! {
    /// A protocol of a stack.
    StackProtocol {
        /// HTTP.
        Http = "HTTP",
        /// A PROXY header.
        Proxy = "PROXY",
        /// TLS.
        Tls = "TLS",
        /// TCP.
        Tcp = "TCP",
        /// UDP.
        Udp = "UDP",
    }
}

open_enum! {
    /// Which requests are secure.
    SecurityModel {
        /// Those whose `x-forwarded-proto` is `https`.
        Xfp = "XFP",
        /// All of them.
        Secure = "SECURE",
        /// None of them.
        Insecure = "INSECURE",
    }
}

/// The Hosts of a Listener: one of the two should be there, a Host must satisfy both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HostBinding {
    /// Their namespaces.
    pub namespace: Option<NamespaceBinding>,
    /// Their labels.
    pub selector: Option<Selector>,
}

/// The namespaces of the Hosts of a Listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NamespaceBinding {
    /// Which ones; `SELF` if absent.
    pub from: Option<NamespaceFrom>,
}

open_enum! {
    /// Which namespaces.
    NamespaceFrom {
        /// That of the Listener.
        Itself = "SELF",
        /// All.
        All = "ALL",
        /// Those with certain labels: not supported by Emissary.
        Selector = "SELECTOR",
    }
}

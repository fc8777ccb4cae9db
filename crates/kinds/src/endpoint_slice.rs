//! EndpointSlice, `discovery.k8s.io/v1`.

use crate::{Checked, Fault, List, Meta, TextMap, open_enum::open_enum, service::TransportProtocol};
use serde::{Deserialize, Deserializer};

/// The label that names the Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Some of the endpoints of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointSlice {
    /// Its names. There are many of them and they change often, so of labels and annotations only [`SERVICE_NAME`] is
    /// kept.
    #[serde(default, rename = "metadata", deserialize_with = "lean_meta")]
    pub meta: Meta,
    /// What the addresses are.
    #[serde(default)]
    pub address_type: Checked<Option<AddressType>>,
    /// The endpoints.
    #[serde(default)]
    pub endpoints: List<Endpoint>,
    /// The ports that each endpoint has.
    #[serde(default)]
    pub ports: List<EndpointPort>,
}

impl EndpointSlice {
    /// The Service in the same namespace whose endpoints these are.
    pub fn service_name(&self) -> Result<Option<&str>, &Fault> {
        Ok(self.meta.labels.get(SERVICE_NAME)?.map(|name| &**name))
    }
}

fn lean_meta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Meta, D::Error> {
    let mut meta = Meta::deserialize(deserializer)?;
    meta.labels.retain(|label| label == SERVICE_NAME);
    meta.annotations = TextMap::default();
    Ok(meta)
}

open_enum! {
    /// What the addresses of a slice are.
    AddressType {
        /// IPv4 addresses.
        Ipv4 = "IPv4",
        /// IPv6 addresses.
        Ipv6 = "IPv6",
        /// DNS names.
        Fqdn = "FQDN",
    }
}

/// One endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    /// Its addresses; all lead to the same place.
    pub addresses: Box<[Box<str>]>,
    /// What it can do now.
    #[serde(default)]
    pub conditions: Conditions,
    /// The zone it is in.
    pub zone: Option<Box<str>>,
}

/// What an endpoint can do now; an absent answer is an unknown one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct Conditions {
    /// It takes requests and is not about to end.
    pub ready: Option<bool>,
    /// It takes requests.
    pub serving: Option<bool>,
    /// It is about to end.
    pub terminating: Option<bool>,
}

/// A port that each endpoint of a slice has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointPort {
    /// The name of the Service's port; absent or empty where that has none.
    pub name: Option<Box<str>>,
    /// What goes over it; TCP if absent.
    #[serde(default)]
    pub protocol: TransportProtocol,
    /// Its number; every port if absent.
    pub port: Option<i32>,
    /// What is spoken inside.
    pub app_protocol: Option<Box<str>>,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] =
    &[crate::meta::UNREAD, ("Endpoint", &["deprecatedTopology", "hints", "hostname", "nodeName", "targetRef"])];

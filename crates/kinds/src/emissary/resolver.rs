//! KubernetesServiceResolver, KubernetesEndpointResolver and ConsulResolver: how the endpoints of a service are found.

use super::AmbassadorId;
use crate::{Checked, Meta};
use serde::Deserialize;

/// Finds a service by its DNS name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KubernetesServiceResolver {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: KubernetesResolverSpec,
}

/// Finds the endpoints of a Kubernetes Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KubernetesEndpointResolver {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: KubernetesResolverSpec,
}

/// The specification of a resolver of Kubernetes Services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KubernetesResolverSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
}

/// Finds the endpoints of a service in Consul.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ConsulResolver {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: ConsulResolverSpec,
}

/// The specification of a ConsulResolver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConsulResolverSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// The address of Consul.
    pub address: Checked<Option<Box<str>>>,
    /// The datacenter; required.
    pub datacenter: Checked<Option<Box<str>>>,
}

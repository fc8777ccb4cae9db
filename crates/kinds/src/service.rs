//! Service, `v1`.

use crate::{Checked, List, Meta, open_enum::open_enum};
use serde::Deserialize;

/// A name for a set of endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Service {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is asked for.
    #[serde(default)]
    pub spec: ServiceSpec,
    /// Its status.
    #[serde(default)]
    pub status: Checked<ServiceStatus>,
}

/// What a Service asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// What sort of Service; `ClusterIP` if absent.
    #[serde(default, rename = "type")]
    pub service_type: Checked<Option<ServiceType>>,
    /// Its address in the cluster; `None` in words for a headless Service.
    #[serde(default, rename = "clusterIP")]
    pub cluster_ip: Checked<Option<Box<str>>>,
    /// The DNS name behind a Service of type `ExternalName`.
    #[serde(default)]
    pub external_name: Checked<Option<Box<str>>>,
    /// Its ports.
    #[serde(default)]
    pub ports: List<ServicePort>,
}

impl ServiceSpec {
    /// Whether the Service has no address of its own.
    pub fn is_headless(&self) -> bool {
        matches!(self.cluster_ip.ok(), Some(Some(ip)) if **ip == *"None")
    }
}

open_enum! {
    /// What sort of Service.
    ServiceType {
        /// An address inside the cluster.
        ClusterIp = "ClusterIP",
        /// A port on every node.
        NodePort = "NodePort",
        /// An address outside the cluster.
        LoadBalancer = "LoadBalancer",
        /// A DNS name.
        ExternalName = "ExternalName",
    }
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name; may be absent where there is only one.
    pub name: Option<Box<str>>,
    /// What goes over it; TCP if absent.
    #[serde(default)]
    pub protocol: TransportProtocol,
    /// Its number.
    pub port: i32,
    /// What is spoken inside: `kubernetes.io/h2c`, `https`.
    pub app_protocol: Option<Box<str>>,
}

open_enum! {
    /// What a port carries.
    #[derive(Default)]
    TransportProtocol {
        /// TCP.
        #[default]
        Tcp = "TCP",
        /// UDP.
        Udp = "UDP",
        /// SCTP.
        Sctp = "SCTP",
    }
}

/// The status of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// Its load balancer.
    #[serde(default)]
    pub load_balancer: LoadBalancer,
}

/// A load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LoadBalancer {
    /// Its addresses.
    #[serde(default)]
    pub ingress: List<LoadBalancerAddress>,
}

/// An address: one of the two should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct LoadBalancerAddress {
    /// An IP address.
    pub ip: Option<Box<str>>,
    /// A host name.
    pub hostname: Option<Box<str>>,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[
    crate::meta::UNREAD,
    (
        "ServiceSpec",
        &[
            "allocateLoadBalancerNodePorts",
            "clusterIPs",
            "externalIPs",
            "externalTrafficPolicy",
            "healthCheckNodePort",
            "internalTrafficPolicy",
            "ipFamilies",
            "ipFamilyPolicy",
            "loadBalancerClass",
            "loadBalancerIP",
            "loadBalancerSourceRanges",
            "publishNotReadyAddresses",
            "selector",
            "sessionAffinity",
            "sessionAffinityConfig",
            "trafficDistribution",
        ],
    ),
    ("ServicePort", &["targetPort", "nodePort"]),
    ("ServiceStatus", &["conditions"]),
    ("LoadBalancerAddress", &["ports", "ipMode"]),
];

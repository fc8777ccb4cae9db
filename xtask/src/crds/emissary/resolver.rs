//! KubernetesServiceResolver, KubernetesEndpointResolver and ConsulResolver.

use super::{EmissaryKind, Since, ids};
use crate::crds::schema::{object, opt, text};

/// The three of them.
pub fn kinds() -> [EmissaryKind; 3] {
    let kubernetes = |kind, plural, about| EmissaryKind {
        kind,
        plural,
        about,
        since: Since::V1,
        spec: object("A name for the resolver.", [opt("ambassador_id", ids())]),
        status: None,
        columns: &[],
    };
    let consul = EmissaryKind {
        kind: "ConsulResolver",
        plural: "consulresolvers",
        about: "ConsulResolver finds the endpoints of a service in Consul.",
        since: Since::V1,
        spec: object(
            "Where Consul is.",
            [
                opt("ambassador_id", ids()),
                opt("address", text("Address of Consul, with its port.")),
                opt("datacenter", text("Datacenter of the services.")),
            ],
        ),
        status: None,
        columns: &[],
    };
    [
        kubernetes(
            "KubernetesServiceResolver",
            "kubernetesserviceresolvers",
            "KubernetesServiceResolver finds a service by its DNS name.",
        ),
        kubernetes(
            "KubernetesEndpointResolver",
            "kubernetesendpointresolvers",
            "KubernetesEndpointResolver finds the endpoints of a Service.",
        ),
        consul,
    ]
}

//! The table of statuses: how the status of each kind is decided, by the dialect that the kind belongs to.

use kinds::{
    BackendTlsPolicy, ExtensionService, Gateway, GatewayClass, GrpcRoute, HttpProxy, HttpRoute, Ingress, Kind,
    ListenerSet, TcpRoute, TlsCertificateDelegation, TlsRoute, Typed, UdpRoute,
    emissary::{Host, Mapping},
};
use model::status::StatusKind;

/// The kinds whose status is ours.
const TABLE: [(&[Kind], &StatusKind); 15] = [
    (Ingress::KINDS, &dialect_ingress::status::STATUS),
    (HttpProxy::KINDS, &dialect_httpproxy::status::STATUS),
    (TlsCertificateDelegation::KINDS, &dialect_httpproxy::delegation::STATUS),
    (ExtensionService::KINDS, &dialect_httpproxy::extension_service::STATUS),
    (GatewayClass::KINDS, &dialect_gateway::status::CLASS),
    (Gateway::KINDS, &dialect_gateway::status::GATEWAY),
    (ListenerSet::KINDS, &dialect_gateway::status::LISTENER_SET),
    (HttpRoute::KINDS, &dialect_gateway::route::status::ROUTE),
    (GrpcRoute::KINDS, &dialect_gateway::route::status::ROUTE),
    (TlsRoute::KINDS, &dialect_gateway::route::status::ROUTE),
    (TcpRoute::KINDS, &dialect_gateway::route::status::ROUTE),
    (UdpRoute::KINDS, &dialect_gateway::route::status::ROUTE),
    (BackendTlsPolicy::KINDS, &dialect_gateway::tls_policy::STATUS),
    (Mapping::KINDS, &dialect_emissary::status::MAPPING),
    (Host::KINDS, &dialect_emissary::status::HOST),
];

/// How the status of objects of a kind is decided; none for kinds without a status of ours.
pub fn status_of(kind: Kind) -> Option<&'static StatusKind> {
    TABLE.iter().find(|(kinds, _)| kinds.contains(&kind)).map(|(_, status)| *status)
}

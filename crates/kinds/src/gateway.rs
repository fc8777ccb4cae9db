//! Gateway API, `gateway.networking.k8s.io`: every kind of release 1.7, standard and experimental channel.
//!
//! Each part that can be rejected alone is [`Checked`](crate::Checked) or an element of a [`List`](crate::List): a rule, a
//! match, a filter, a reference, a listener. Defaults that the API server fills in are absent in files, so a missing value is
//! kept as `None` and the dialect applies the default. Every field is here, also those that nothing serves: what is not
//! supported must be seen to be refused.

pub mod backend_tls_policy;
pub mod class;
pub mod filter;
pub mod grpc_route;
pub mod http_route;
pub mod listener;
pub mod listener_set;
pub mod reference;
pub mod reference_grant;
pub mod route_spec;
pub mod spec;
pub mod stream_route;

pub use backend_tls_policy::BackendTlsPolicy;
pub use class::GatewayClass;
pub use grpc_route::GrpcRoute;
pub use http_route::HttpRoute;
pub use listener_set::ListenerSet;
pub use reference_grant::ReferenceGrant;
pub use spec::Gateway;
pub use stream_route::{TcpRoute, TlsRoute, UdpRoute};

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD, ("GatewayClassSpec", &["description"])];

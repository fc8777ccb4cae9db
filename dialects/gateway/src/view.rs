//! Where the dialect looks things up besides Services and Secrets.

use crate::{
    Listener, Listeners,
    gateway::{backend_certificate::BackendCertificate, tls::ListenerTls},
    tls_policy::InEffect,
};
use kinds::{BackendTlsPolicy, CustomResourceDefinition, Gateway, GatewayClass, ListenerSet, Namespace};
use model::ObjectRef;
use resolve::View;
use std::sync::Arc;

/// The objects of Gateway API, and what has been made of them.
pub trait GatewayView: View {
    /// A class by its name.
    fn class(&mut self, name: &str) -> Option<Arc<GatewayClass>>;

    /// The CRDs of an API group, in any order; none where they cannot be read, as in a folder.
    fn definitions(&mut self, group: &str) -> Vec<Arc<CustomResourceDefinition>>;

    /// A Gateway, whoever's it is.
    fn gateway(&mut self, gateway: &ObjectRef) -> Option<Arc<Gateway>>;

    /// A ListenerSet, whoever's it is.
    fn listener_set(&mut self, set: &ObjectRef) -> Option<Arc<ListenerSet>>;

    /// The ListenerSets that name a Gateway as their parent, in any order.
    fn sets_of(&mut self, gateway: &ObjectRef) -> Vec<Arc<ListenerSet>>;

    /// The listeners of a Gateway and its ListenerSets; nothing if the Gateway is not there or not ours.
    fn listeners(&mut self, gateway: &ObjectRef) -> Option<Arc<Listeners>>;

    /// The listeners of one Gateway or ListenerSet, as far as they concern routes ([`Listeners::for_routes`]); nothing if it is not
    /// there, not ours, or a set without listeners.
    fn route_listeners(&mut self, owner: &ObjectRef) -> Option<Arc<Vec<Listener>>>;

    /// Which certificates a listener shows whose connections are decrypted ([`gateway::tls::of`](crate::gateway::tls::of)).
    fn listener_certificates(&mut self, listener: &Listener) -> Option<Arc<ListenerTls>>;

    /// Which client certificate proxies of a Gateway present to TLS backends, if any
    /// ([`gateway::backend_certificate::of`](crate::gateway::backend_certificate::of)).
    fn backend_certificate(&mut self, gateway: &ObjectRef) -> Option<Arc<BackendCertificate>>;

    /// A namespace, for its labels.
    fn namespace(&mut self, name: &str) -> Option<Arc<Namespace>>;

    /// The BackendTLSPolicies that are in effect for a Service, by section ([`tls_policy::in_effect`](crate::tls_policy::in_effect)).
    fn policies_in_effect(&mut self, service: &ObjectRef) -> InEffect;

    /// A BackendTLSPolicy.
    fn tls_policy(&mut self, policy: &ObjectRef) -> Option<Arc<BackendTlsPolicy>>;
}

//! Emissary-ingress, `getambassador.io`: Listeners, Hosts and Mappings in, [`Translation`](model::Translation)s out.
//!
//! A [Mapping](mapping) shares its routes with all Hosts that take it, by host name and labels; it knows no Listener. A [Host](host)
//! has a name on each [Listener](listener) that binds it, a certificate, and what becomes of requests that did not come over HTTPS.
//! Which routes a Host has, in which order they are tried and how several share the same requests is decided in assembly, by the
//! [`Lengths`](model::route::Lengths) and shares that a Mapping fills in.
//!
//! Objects are in the shape of `v3alpha1`, whatever version they are written in, and only those that are for this instance come
//! here ([`Settings::ambassador_id`]). Those that stand in annotations of Services and Ingresses come as if they stood by themselves; what
//! is told about them is told on the object that carries them.
//!
//! Every "no" stays with the smallest thing that contains it: a Mapping of which a field cannot be served answers 503, and is told
//! with a code and the field; no other is affected. Words that users of Emissary search for stand behind the code.

pub mod auth_service;
pub mod consul_resolver;
pub mod dev_portal;
mod duration;
pub mod host;
pub mod hostname;
pub mod listener;
pub mod listeners;
pub mod log_service;
pub mod mapping;
pub mod module;
pub mod problem;
pub mod rate_limit_service;
mod secret;
pub mod status;
pub mod tcp_mapping;
pub mod tls_context;
pub mod tracing_service;
mod upstream_service;

pub use auth_service::AuthServiceInEffect;
pub use listeners::{BoundListener, Listeners};
pub use mapping::defaults::MappingDefaults;
pub use module::clients::ClientDefaults;
pub use problem::{Problem, Problems};
pub use rate_limit_service::RateLimitServiceInEffect;
pub use tcp_mapping::TcpPlan;

use kinds::{
    Meta,
    emissary::{self, DEFAULT_ID},
};
use model::{
    Code, ObjectRef,
    listener::HttpSettings,
    route::{Dialect, OnEqual, Precedence, SplitMessages, TieBreak},
    tls::TlsVersions,
};
use resolve::{ForeignProtection, View};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// Gateway API and HTTPProxy win where they have a route for the same requests, Ingress loses. Mappings have an order of their own.
pub const DIALECT: Dialect = Dialect { rank: 30, tie_break: TieBreak::Length, falls_through: false };

/// The pool of routes that Hosts take from.
pub const POOL: &str = "emissary";

/// What is said about Mappings that cannot share the same requests.
pub const MESSAGES: SplitMessages = SplitMessages {
    code: Code::MappingGroup,
    mismatch: "cannot accept new mapping {name} with mismatched {fields}; {other} is served",
    exceeded: "Total weight of mappings exceeds 100; {name} gets what the others leave",
    redirect: "cannot accept {name} beside {other}: a mapping with host_redirect shares its requests with no other",
    mirror: "cannot accept {name} as second shadow after {other}",
    foreign_mirror: "{name} gets no copies of the requests of {other}: it is in another namespace; --emissary-cross-namespace allows it",
};

/// What the operator of Sesame sets for all objects of Emissary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The id of this instance: it reads the objects whose `ambassador_id` names it.
    pub ambassador_id: Box<str>,
    /// The namespace of Sesame: TLSContexts and resolvers there may be used by everybody.
    pub namespace: Box<str>,
    /// Whether objects may refer to those of any namespace without a grant, as in Emissary.
    pub cross_namespace: bool,
    /// What becomes of scripts of the Module.
    pub scripts: Scripts,
    /// The address that Listeners bind.
    pub address: IpAddr,
    /// The shared fleet's own listeners: a Listener on the port of one of them is that listener.
    pub own: OwnListeners,
    /// The runtime values of proxies that the operator has set.
    pub runtime_keys: BTreeSet<Arc<str>>,
    /// The port that clients reach HTTPS at, where it is not the usual one.
    pub https_port: Option<u16>,
    /// The TLS versions that any Host may speak.
    pub tls: TlsVersions,
    /// The TLS versions that are spoken with services.
    pub upstream_tls: TlsVersions,
    /// What is done with objects that ask other controllers for protection.
    pub foreign_protection: ForeignProtection,
    /// Whether a Host whose Secret is not there gets a certificate that we sign ourselves: for work on one's own machine.
    pub self_signed: bool,
}

impl Settings {
    /// Whether an object may say what proxies do with everybody's requests, beyond what Mappings may say for their own.
    pub fn trusts(&self, object: &ObjectRef) -> bool {
        *object.namespace == *self.namespace || self.cross_namespace
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ambassador_id: DEFAULT_ID.into(),
            namespace: "projectsesame".into(),
            cross_namespace: false,
            scripts: Scripts::Refuse,
            address: Ipv4Addr::UNSPECIFIED.into(),
            own: OwnListeners::default(),
            runtime_keys: BTreeSet::new(),
            https_port: None,
            tls: TlsVersions::default(),
            upstream_tls: TlsVersions::default(),
            foreign_protection: ForeignProtection::default(),
            self_signed: false,
        }
    }
}

/// What becomes of scripts of the Module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scripts {
    /// Mappings answer 503 while there are some.
    #[default]
    Refuse,
    /// They are told and nothing else.
    Ignore,
    /// Those of Sesame's own namespace are run; while there are others, Mappings answer 503.
    Run,
}

/// The shared fleet's own listeners for plaintext and TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnListeners {
    /// Plaintext HTTP.
    pub http: Option<OwnListener>,
    /// TLS.
    pub https: Option<OwnListener>,
}

/// A listener that the operator has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnListener {
    /// Its port.
    pub port: u16,
    /// What holds for its requests.
    pub http: HttpSettings,
    /// What a connection may hold in memory in each direction, in bytes.
    pub buffer: u32,
}

/// How the endpoints of a service are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// By the name of the Service.
    Service,
    /// By the endpoints of the Service.
    Endpoint,
    /// In Consul.
    Consul,
}

/// Where the dialect looks things up.
pub trait EmissaryView: View {
    /// All Listeners of this instance, as they bind Hosts.
    fn listeners(&mut self) -> Arc<Listeners>;

    /// Whether there is a Host of this instance, be it usable or not.
    fn has_hosts(&mut self) -> bool;

    /// The Hosts with this hostname, with any port or none.
    fn hosts_named(&mut self, hostname: &str) -> Vec<Arc<emissary::Host>>;

    /// The resolver of this name in a namespace.
    fn resolver(&mut self, namespace: &str, name: &str) -> Option<Resolver>;

    /// A TLSContext of a namespace.
    fn tls_context(&mut self, namespace: &str, name: &str) -> Option<Arc<emissary::TlsContext>>;

    /// The oldest resolver of this name in any namespace.
    fn any_resolver(&mut self, name: &str) -> Option<Resolver>;

    /// The oldest TLSContext of this name in any namespace.
    fn any_tls_context(&mut self, name: &str) -> Option<Arc<emissary::TlsContext>>;

    /// The TLSContexts that list a host name, as it is written.
    fn tls_contexts_of(&mut self, host: &str) -> Vec<Arc<emissary::TlsContext>>;

    /// All TCPMappings of this instance: which share connections.
    fn tcp_plan(&mut self) -> Arc<TcpPlan>;

    /// A TCPMapping.
    fn tcp_mapping(&mut self, object: &ObjectRef) -> Option<Arc<emissary::TcpMapping>>;

    /// The AuthService of this instance, if there is one: requests that do not bypass it must not pass unasked.
    fn auth_service(&mut self) -> Option<AuthServiceInEffect>;

    /// What the Module in effect says where a Mapping does not.
    fn mapping_defaults(&mut self) -> Arc<MappingDefaults>;

    /// What the Module in effect says about TLS of clients.
    fn client_defaults(&mut self) -> Arc<ClientDefaults>;

    /// The RateLimitService of this instance that is in effect, if there is one.
    fn rate_limit_service(&mut self) -> Option<RateLimitServiceInEffect>;
}

/// Which object wins where two are in each other's way: the older one.
pub(crate) fn precedence(meta: &Meta, index: usize) -> Precedence {
    let created = meta.created.map_or(0, |time| time.as_second());
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    let by_age = Precedence::by_age(DIALECT, created, meta.namespace.clone(), meta.name.clone(), index);
    Precedence { on_equal: OnEqual::Lose, ..by_age }
}

#[cfg(test)]
mod tests;

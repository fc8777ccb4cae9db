//! Gateway API, `gateway.networking.k8s.io`: a class, a Gateway, a ListenerSet or a route in, one [`Translation`] out.
//!
//! Listeners come first. [`listeners::merge`] reads those of a Gateway and of the ListenerSets that may attach to it, and decides
//! about conflicts; it knows nothing of certificates and grants, so that a renewed certificate wakes no route. The translation of
//! a Gateway or ListenerSet claims its listeners, names their hosts, so that no request leaks to a wider listener, and brings their
//! certificates. A route looks its parents up among the listeners and brings routes for the hosts that it has in common with them.
//!
//! Every "no" stays with the smallest thing that contains it: a listener, a rule, a reference. It is told as a condition where the
//! API has one for it, and as a verdict with a code and the field in any case.
//!
//! Reading order: [`view`] (where things are looked up), [`class`] (is it ours?), [`fleet`] (who serves it), [`listeners`],
//! [`gateway`], [`listener_set`], [`route`], [`tls_policy`], [`status`].

pub mod class;
pub mod features;
pub mod fleet;
pub mod gateway;
pub mod listener_set;
pub mod listeners;
pub mod route;
pub mod status;
pub mod tls_policy;
pub mod view;

pub use listeners::{Listener, Listeners, Protocol};
pub use view::GatewayView;

use kinds::{Kind, Meta};
use model::{
    Code, ObjectRef, PortProtocol, Translation, Verdict,
    route::{Dialect, Precedence, TieBreak},
    tls::TlsVersions,
};
use resolve::ForeignProtection;
use std::net::{IpAddr, Ipv4Addr};

/// Where another dialect has a route for the same requests, that of Gateway API is served.
pub const DIALECT: Dialect = Dialect { rank: 10, tie_break: TieBreak::Age, falls_through: true };

/// The controller name that makes a GatewayClass ours, unless the operator chooses another.
pub const CONTROLLER: &str = "projectsesame.io/gateway-controller";

/// The API group of all kinds here.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// What the operator of Sesame sets for all Gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The controller name that makes a GatewayClass ours.
    pub controller: Box<str>,
    /// A class that is ours although no GatewayClass says so: for folders of files.
    pub implied_class: Option<Box<str>>,
    /// The namespace and name of a Gateway that the shared fleet serves, whatever its class.
    pub bound: Option<(Box<str>, Box<str>)>,
    /// Whether each other Gateway has a fleet of its own. Otherwise the shared fleet serves all of them, or the one that is bound to
    /// it and no other.
    pub own_fleets: bool,
    /// The address that listeners bind in the shared fleet.
    pub address: IpAddr,
    /// Which port a listener binds in the shared fleet. In a fleet of its own it is the port that clients connect to.
    pub ports: PortShift,
    /// The ports of the shared fleet's own listeners: a Gateway's listener for every host of such a port is that listener.
    pub own_ports: OwnPorts,
    /// The TLS versions that any listener may speak.
    pub tls: TlsVersions,
    /// Whether a listener whose Secret is not there gets a certificate that we sign ourselves: for work on one's own machine.
    pub self_signed: bool,
    /// The kinds that the operator has switched off: none of their objects is read.
    pub disabled: Vec<Kind>,
    /// What is done with an object that asks another controller for protection.
    pub foreign_protection: ForeignProtection,
    /// Whether it is told that an object is not ours, by its class or by its parents: where nobody else serves it.
    pub report_other_classes: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            controller: CONTROLLER.into(),
            implied_class: None,
            bound: None,
            own_fleets: false,
            address: Ipv4Addr::UNSPECIFIED.into(),
            ports: PortShift { by: 8000, privileged_only: false },
            own_ports: OwnPorts::default(),
            tls: TlsVersions::default(),
            self_signed: false,
            disabled: Vec::new(),
            foreign_protection: ForeignProtection::default(),
            report_other_classes: false,
        }
    }
}

/// The ports of the shared fleet's own listeners for plaintext and TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnPorts {
    /// Plaintext HTTP.
    pub http: Option<u16>,
    /// TLS.
    pub https: Option<u16>,
}

impl OwnPorts {
    fn of(self, protocol: PortProtocol) -> Option<u16> {
        match protocol {
            PortProtocol::Http => self.http,
            PortProtocol::Tls => self.https,
            PortProtocol::Tcp | PortProtocol::Udp | PortProtocol::Quic => None,
        }
    }
}

/// How far the port that a proxy binds is from the port that clients connect to: proxies run without privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortShift {
    /// By how much.
    pub by: u16,
    /// Whether only ports below 1024 are shifted.
    pub privileged_only: bool,
}

impl PortShift {
    /// The port that is bound for a port of a listener. What would be larger than the largest port begins again at 1024.
    pub fn bound(self, port: u16) -> u16 {
        if self.privileged_only && port >= 1024 {
            return port;
        }
        port.checked_add(self.by).unwrap_or_else(|| 1024 + (port.wrapping_add(self.by)))
    }
}

impl Settings {
    /// Whether a Gateway is bound to the shared fleet.
    pub fn is_bound(&self, gateway: &Meta) -> bool {
        let own = (&*gateway.namespace, &*gateway.name);
        self.bound.as_ref().is_some_and(|(namespace, name)| own == (&**namespace, &**name))
    }

    /// The port that proxies bind for a port of a listener: those of HTTP and HTTPS where the shared fleet has them.
    pub fn bound(&self, port: u16) -> u16 {
        let own = match port {
            80 => self.own_ports.http,
            443 => self.own_ports.https,
            _ => None,
        };
        own.unwrap_or_else(|| self.ports.bound(port))
    }
}

/// Why an object is not served that asks another controller for protection: the first of what is told about its annotations
/// ([`resolve::annotation::foreign::look`]). Nothing where it is served all the same.
pub(crate) fn unprotected<'v>(verdicts: &'v [Verdict], settings: &Settings) -> Option<&'v Verdict> {
    let refuses = settings.foreign_protection == ForeignProtection::Refuse;
    verdicts.iter().find(|verdict| refuses && verdict.code == Code::ForeignProtection)
}

/// Which object wins where two are in each other's way: the older one.
pub(crate) fn precedence(meta: &Meta, index: usize) -> Precedence {
    let created = meta.created.map_or(0, |time| time.as_second());
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    Precedence::by_age(DIALECT, created, meta.namespace.clone(), meta.name.clone(), index)
}

/// A translation with status facts and verdicts only.
pub(crate) fn only_status(
    subject: ObjectRef,
    facts: model::status::StatusFacts,
    verdicts: model::VerdictList,
) -> Translation {
    Translation { facts: Some(facts.into()), verdicts: verdicts.into_sorted(), ..Translation::empty(subject) }
}

/// What is told about an object that is not ours, where nobody else serves it.
pub(crate) fn not_ours(verdict: Verdict, settings: &Settings) -> Option<Translation> {
    let subject = verdict.origin.object.clone();
    settings.report_other_classes.then(|| Translation { verdicts: vec![verdict], ..Translation::empty(subject) })
}

#[cfg(test)]
mod tests;

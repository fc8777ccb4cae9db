//! The status of GatewayClasses, Gateways and ListenerSets.
//!
//! In: what the translation has decided, the acknowledgements and the addresses. Out: facts. A translation says whether a listener
//! is accepted and its references are resolved, and that it is not programmed where it can never be; that proxies have it, and where
//! they are reached, is added here. What counts routes and ports of others is added before ([`complete`]).

pub mod conditions;

use crate::fleet::{FleetState, OwnFleet};
use conditions::{ACCEPTED, PROGRAMMED, RESOLVED_REFS};
use model::{
    Code, Severity,
    status::{
        Acknowledgement, Address, Entry, ListLayout, Mark, ProxyState, Scope, StatusFacts, StatusInput, StatusKind,
        StatusLayout, StatusValue, Truth,
    },
};
use std::{net::IpAddr, time::Duration};

/// Counts of routes and ListenerSets are written at most this often.
const COUNTED: Duration = Duration::from_secs(1);
/// The field with the addresses.
const ADDRESSES: &str = "addresses";
/// The field with the listeners.
pub const LISTENERS: &str = "listeners";
/// What is said of a class that is accepted.
pub const CLASS_IS_ACCEPTED: &str = "The class is served by Sesame.";
/// What is said of a Gateway or ListenerSet that is accepted.
pub const LISTENERS_ARE_VALID: &str = "All listeners are valid.";
/// How the message of a condition begins that is not accepted: with a code.
const CODE: &str = "SES";
/// By what a Gateway or ListenerSet shows that we wrote its status.
const OF_OWNERS: Mark = Mark::Condition(ACCEPTED, &[LISTENERS_ARE_VALID, CODE]);

const OF_LISTENERS: ListLayout = ListLayout {
    field: LISTENERS,
    fields: &["supportedKinds", "attachedRoutes"],
    conditions: &[ACCEPTED, PROGRAMMED, RESOLVED_REFS, conditions::CONFLICTED, conditions::OVERLAPPING_TLS],
    atomic: None,
};

/// The status of GatewayClasses.
pub const CLASS: StatusKind = StatusKind {
    layout: StatusLayout {
        fields: &["supportedFeatures"],
        conditions: &[ACCEPTED, conditions::SUPPORTED_VERSION],
        lists: &[],
        marks: &[Mark::Condition(ACCEPTED, &[CLASS_IS_ACCEPTED, CODE])],
    },
    facts: stated,
    acknowledgement: Acknowledgement::Ignored,
    interval: Duration::ZERO,
};

/// The status of Gateways.
pub const GATEWAY: StatusKind = StatusKind {
    layout: StatusLayout {
        fields: &[ADDRESSES, "attachedListenerSets"],
        conditions: &[ACCEPTED, PROGRAMMED, RESOLVED_REFS, conditions::INSECURE_FRONTEND],
        lists: &[OF_LISTENERS],
        marks: &[OF_OWNERS],
    },
    facts: gateway,
    acknowledgement: Acknowledgement::Reported,
    interval: COUNTED,
};

/// The status of ListenerSets.
pub const LISTENER_SET: StatusKind = StatusKind {
    layout: StatusLayout {
        fields: &[],
        conditions: &[ACCEPTED, PROGRAMMED],
        lists: &[OF_LISTENERS],
        marks: &[OF_OWNERS],
    },
    facts: listener_set,
    acknowledgement: Acknowledgement::Reported,
    interval: COUNTED,
};

/// What the translation has decided. One that failed has decided nothing: the verdict says why.
pub fn stated(input: &StatusInput<'_>) -> StatusFacts {
    if let Some(facts) = input.translated {
        return facts.clone();
    }
    let error = input.verdicts.iter().find(|verdict| verdict.severity() == Severity::Error);
    let why = error.map_or_else(|| "Waiting for the controller.".to_owned(), |error| error.message.to_string());
    let accepted = conditions::new(ACCEPTED, Truth::Unknown, "Pending", why);
    StatusFacts { object: Scope { conditions: vec![accepted], ..Scope::default() }, lists: Vec::new() }
}

fn gateway(input: &StatusInput<'_>) -> StatusFacts {
    let mut facts = programmed(input, Truth::False);
    // Those of its own fleet are there already.
    if !facts.object.values.iter().any(|(field, _)| *field == ADDRESSES) {
        facts.object.values.push((ADDRESSES, listed(input.addresses)));
    }
    facts
}

fn listed(all: &[Address]) -> StatusValue {
    StatusValue::List(all.iter().flat_map(addresses).collect())
}

/// The facts of a Gateway that has a fleet of its own.
#[must_use]
pub fn of_fleet(mut facts: StatusFacts, own: &OwnFleet, fleet: &FleetState) -> StatusFacts {
    let is_wanted = |address: &Address| own.address.is_none_or(|wanted| ip_of(address) == Some(wanted));
    let usable: Vec<Address> = fleet.addresses.iter().filter(|address| is_wanted(address)).cloned().collect();
    facts.object.values.push((ADDRESSES, listed(&usable)));
    if facts.object.conditions.iter().any(|condition| condition.kind == PROGRAMMED) {
        return facts;
    }
    if let Some(problem) = &fleet.problem {
        facts.object.conditions.push(conditions::new(PROGRAMMED, Truth::False, "NoResources", &**problem));
    } else if fleet.addresses.is_empty() {
        let why = "The load balancer of the proxies has no address yet.";
        facts.object.conditions.push(conditions::new(PROGRAMMED, Truth::False, "AddressNotAssigned", why));
    } else if let Some(wanted) = own.address.filter(|_| usable.is_empty()) {
        let why = format!("The load balancer of the proxies has another address than {wanted}.");
        facts.object.conditions.push(conditions::refused(PROGRAMMED, "AddressNotUsable", Code::GatewayAddress, why));
    } else if !fleet.has_ready_proxy {
        let listeners =
            facts.lists.iter_mut().filter(|(field, _)| *field == LISTENERS).flat_map(|(_, entries)| entries);
        for scope in [&mut facts.object].into_iter().chain(listeners.map(|entry| &mut entry.scope)) {
            if !scope.conditions.iter().any(|condition| condition.kind == PROGRAMMED) {
                scope.conditions.push(conditions::new(PROGRAMMED, Truth::False, "Pending", "No proxy is ready yet."));
            }
        }
    }
    facts
}

fn ip_of(address: &Address) -> Option<IpAddr> {
    address.ip.as_deref()?.parse().ok()
}

fn addresses(address: &Address) -> impl Iterator<Item = StatusValue> {
    let value = |kind: &str, value: &str| {
        StatusValue::Record(vec![("type", StatusValue::text(kind)), ("value", StatusValue::text(value))])
    };
    let ip = address.ip.as_deref().map(|ip| value("IPAddress", ip));
    let hostname = address.hostname.as_deref().map(|name| value("Hostname", name));
    ip.into_iter().chain(hostname)
}

fn listener_set(input: &StatusInput<'_>) -> StatusFacts {
    programmed(input, Truth::Unknown)
}

/// What the translation has decided, and whether proxies have it. As long as they have not, `pending` is what the object says: the
/// API has no reason for a ListenerSet that is not programmed yet. A listener is then not programmed.
fn programmed(input: &StatusInput<'_>, pending: Truth) -> StatusFacts {
    let mut facts = stated(input);
    let proxies = input.proxies.unwrap_or(&ProxyState::Pending);
    program(&mut facts.object, proxies, pending);
    for entry in facts.lists.iter_mut().flat_map(|(_, entries)| entries) {
        program(&mut entry.scope, proxies, Truth::False);
    }
    facts
}

/// Says whether proxies have it, unless it is already said why they never will. A proxy that joins takes nothing back, nor does a
/// restart of ours: only that no proxy has been connected for a while stands over what was acknowledged.
fn program(scope: &mut Scope, proxies: &ProxyState, pending: Truth) {
    if scope.conditions.iter().any(|condition| condition.kind == PROGRAMMED) {
        return;
    }
    let not_yet = || conditions::new(PROGRAMMED, pending, "Pending", proxies.message());
    match proxies {
        ProxyState::Pending | ProxyState::Waiting | ProxyState::NoProxies { is_lasting: false } => {
            scope.initial.push(not_yet())
        }
        ProxyState::NoProxies { is_lasting: true } => scope.conditions.push(not_yet()),
        ProxyState::Acknowledged { refusal, .. } => {
            scope.conditions.push(conditions::programmed(proxies, refusal.is_some()))
        }
    }
}

/// What is known about a listener outside of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// How many routes are attached to it.
    pub attached: usize,
    /// Whether no other Gateway, nor a setting, has its port.
    pub has_port: bool,
}

/// The facts of a Gateway or ListenerSet with what is known outside of it: about each listener by its name, and how many
/// ListenerSets are attached.
#[must_use]
pub fn complete(facts: &StatusFacts, sets: Option<usize>, mut of: impl FnMut(&str) -> Outside) -> StatusFacts {
    let mut facts = facts.clone();
    if let Some(sets) = sets {
        facts.object.values.push(("attachedListenerSets", count(sets)));
    }
    let entries = facts.lists.iter_mut().filter(|(field, _)| *field == LISTENERS).flat_map(|(_, entries)| entries);
    let (mut all, mut without_port, mut accepted, mut usable) = (0, 0, 0, 0);
    for entry in entries {
        let Outside { attached, has_port } = of(name(entry));
        entry.scope.values.push(("attachedRoutes", count(attached)));
        all += 1;
        if !conditions::is_true(&entry.scope, ACCEPTED) {
            continue;
        }
        if has_port {
            accepted += 1;
            usable += usize::from(is_usable(&entry.scope));
            continue;
        }
        without_port += 1;
        let code = Code::ListenerConflict;
        let why = "Another listener has the port of the proxies, or Envoy needs it itself.";
        conditions::replace(&mut entry.scope, conditions::refused(ACCEPTED, "PortUnavailable", code, why));
        conditions::replace(&mut entry.scope, conditions::refused(PROGRAMMED, "Invalid", code, why));
    }
    if without_port > 0 && conditions::is_true(&facts.object, ACCEPTED) {
        let why = conditions::coded(Code::ListenerConflict, format!("{without_port} of {all} listeners have no port."));
        // A Gateway is accepted for the listeners that are valid, a ListenerSet for those that can be served.
        let is_accepted = Truth::from(if sets.is_some() { accepted > 0 } else { usable > 0 });
        let condition = conditions::new(ACCEPTED, is_accepted, "ListenersNotValid", why.clone());
        conditions::replace(&mut facts.object, condition);
        if usable == 0 {
            conditions::replace(&mut facts.object, conditions::new(PROGRAMMED, Truth::False, "Invalid", why));
        }
    }
    facts
}

/// Whether any listener of an object can be served and has its port: without one a ListenerSet is not accepted.
pub fn has_usable_listener(facts: &StatusFacts, mut has_port: impl FnMut(&str) -> bool) -> bool {
    let entries = facts.lists.iter().filter(|(field, _)| *field == LISTENERS).flat_map(|(_, entries)| entries);
    let mut accepted = entries.filter(|entry| conditions::is_true(&entry.scope, ACCEPTED) && is_usable(&entry.scope));
    accepted.any(|entry| has_port(name(entry)))
}

/// Whether nothing is in the way of programming a listener.
fn is_usable(listener: &Scope) -> bool {
    !listener.conditions.iter().any(|condition| condition.kind == PROGRAMMED && condition.status == Truth::False)
}

fn count(number: usize) -> StatusValue {
    StatusValue::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn name(entry: &Entry) -> &str {
    let name = entry.identity.iter().find(|(field, _)| *field == "name");
    name.map_or("", |(_, value)| if let StatusValue::Text(name) = value { name } else { "" })
}

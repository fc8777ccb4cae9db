//! Which listeners a route attaches to, by each of its parentRefs.
//!
//! A parentRef names a Gateway or a ListenerSet; one that is neither ours nor there is somebody else's, and nothing is said about
//! it. Of the listeners of that very object those count that `sectionName` and `port` leave, whose `allowedRoutes` let the route
//! in, and that have a host in common with it. Each parentRef is judged by itself.

use super::{Part, Rejection, UNSUPPORTED_VALUE, Work, hostname, pieces};
use crate::{GROUP, GatewayView, Listener, listeners};
use kinds::{Checked, Kind, List, gateway::reference::ParentReference, kind};
use model::{Code, FieldPath, Host, ObjectRef};
use std::sync::Arc;

/// The most parentRefs that are looked at: what the API server takes.
const PARENTS: usize = 32;
/// The most host names that are looked at: what the API server takes, of a TLSRoute.
const HOSTNAMES: usize = 1024;

/// The word for attaching to no default Gateway.
const NO_DEFAULT: &str = "None";

/// A parentRef whose parent is ours.
#[derive(Clone, Debug)]
pub(crate) struct Parent<'r> {
    /// The reference.
    pub reference: &'r ParentReference,
    /// Its place.
    pub index: usize,
    /// The Gateway that is the parent, or whose ListenerSet is.
    pub gateway: ObjectRef,
    /// The listeners of the parent.
    listeners: Arc<Vec<Listener>>,
    /// The places of those that the route attaches to, each with the hosts that they have in common.
    attached: Vec<(usize, Vec<Common>)>,
    /// Why the route is not accepted.
    refused: Option<NotAttached>,
}

/// A host that a route and a listener have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Common {
    /// The host.
    pub host: Host,
    /// How much wider the route's own name is.
    pub widening: u16,
}

/// Why a route is not accepted by a parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotAttached {
    /// The reason of the condition.
    pub reason: &'static str,
    /// The row of the table of codes.
    pub code: Code,
    /// This very case.
    pub why: String,
}

impl Parent<'_> {
    /// The listeners that the route attaches to, with the hosts that they have in common. Where it is not accepted for what it asks
    /// for, its requests are answered there all the same, and no other route's.
    pub fn attached(&self) -> impl Iterator<Item = (&Listener, &[Common])> {
        let attached = self.attached.iter();
        attached.map(|(at, hosts)| (&self.listeners[*at], hosts.as_slice()))
    }

    /// Why the route is not accepted.
    pub fn refused(&self) -> Option<&NotAttached> {
        self.refused.as_ref()
    }

    /// Lets the route attach to nothing.
    pub fn refuse(&mut self, reason: &'static str, code: Code, why: impl Into<String>) {
        self.attached.clear();
        self.refuse_rules(reason, code, why);
    }

    /// Does not accept the route, whose requests are not left to others.
    pub fn refuse_rules(&mut self, reason: &'static str, code: Code, why: impl Into<String>) {
        self.refused = Some(NotAttached { reason, code, why: why.into() });
    }
}

/// The parents of a route that are ours. Where there are any, what the route asks for in vain as a whole is told: default Gateways, and
/// what its annotations ask another controller for. `hostnames` are the route's own, one of them at least; a route without host names has
/// that for every name.
pub(crate) fn parents<'r>(
    work: &mut Work<'_, impl GatewayView>,
    references: &'r List<ParentReference>,
    default_gateways: &Checked<Option<Box<str>>>,
    hostnames: &[Host],
) -> Vec<Parent<'r>> {
    let mut parents: Vec<Parent<'r>> = Vec::new();
    let mut left = pieces::ROUTES;
    for fault in references.faults() {
        work.report(&Rejection::fault(Code::GatewayRouteParent, fault));
    }
    for (index, reference) in references.good() {
        if index >= PARENTS {
            let field = FieldPath::from("spec.parentRefs").index(index);
            let why = format!("a route has at most {PARENTS} parentRefs; this one and those after it have no effect");
            work.report(&Rejection::new(Code::GatewayRouteLimit, field, why));
            break;
        }
        if parents.iter().any(|parent| parent.reference == reference) {
            continue;
        }
        let Some((owner, gateway)) = owner(work, reference) else {
            report_parent(work, reference, index);
            continue;
        };
        let listeners = match work.view.route_listeners(&owner) {
            Some(listeners) => listeners,
            // A ListenerSet without listeners, or one that is not allowed.
            None if work.view.route_listeners(&gateway).is_some() => Arc::default(),
            None => {
                report_parent(work, reference, index);
                continue;
            }
        };
        let attached = attach(work, reference, &owner, &listeners, hostnames, &mut left);
        if let Err(NotAttached { why, .. }) = &attached {
            let field = FieldPath::from("spec.parentRefs").index(index);
            work.report(&Rejection::new(Code::GatewayRouteParent, field, why.as_str()));
        }
        if let Ok(attached) = &attached
            && !attached.iter().any(|(at, _)| listeners[*at].is_served())
        {
            // Attachment does not depend on the status of listeners: the route is accepted, and counted there.
            let field = FieldPath::from("spec.parentRefs").index(index);
            let why = format!("no listener of {owner} that the route attaches to is served");
            work.report(&Rejection::new(Code::GatewayRouteUnserved, field, why));
        }
        let (attached, refused) = match attached {
            Ok(attached) => (attached, None),
            Err(refused) => (Vec::new(), Some(refused)),
        };
        parents.push(Parent { reference, index, gateway, listeners, attached, refused });
    }
    if references.is_empty() && work.settings.report_other_classes {
        let why = "parentRefs is empty: the route attaches to nothing";
        work.report(&Rejection::new(Code::GatewayParentNotServed, "spec.parentRefs".into(), why));
    }
    let is_ours = !parents.is_empty();
    if is_ours {
        work.look_at_annotations();
    }
    let asks_for_default = match default_gateways.get() {
        Ok(scope) => scope.as_deref().is_some_and(|scope| scope != NO_DEFAULT),
        Err(_) => true,
    };
    if asks_for_default && (is_ours || work.settings.report_other_classes) {
        let why = "default Gateways are not supported: the route attaches to the parents that it names";
        work.report(&Rejection::new(Code::GatewayUnsupported, "spec.useDefaultGateways".into(), why));
    }
    parents
}

/// Tells that a parent is not ours, where nobody else serves it.
fn report_parent(work: &mut Work<'_, impl GatewayView>, reference: &ParentReference, index: usize) {
    if !work.settings.report_other_classes {
        return;
    }
    let field = FieldPath::from("spec.parentRefs").index(index).field("name");
    let (group, name) = (reference.group.as_deref().unwrap_or(GROUP), reference.kind.as_deref());
    let name = name.unwrap_or(kind::GATEWAY.name());
    let Some(kind) =
        [kind::GATEWAY, kind::LISTENER_SET].into_iter().find(|kind| (kind.group(), kind.name()) == (group, name))
    else {
        let why = format!("routes attach to a Gateway or a ListenerSet, not to a {name} of {group}");
        return work.report(&Rejection::new(Code::GatewayParentNotServed, field, why));
    };
    let namespace = reference.namespace.as_deref().unwrap_or(&work.meta.namespace);
    let parent = ObjectRef::new(kind, namespace, &*reference.name);
    let exists = match kind == kind::GATEWAY {
        true => work.view.gateway(&parent).is_some(),
        false => work.view.listener_set(&parent).is_some(),
    };
    let rejection = match exists {
        true => Rejection::new(Code::GatewayParentNotServed, field, format!("{parent} is not served")),
        false => Rejection::absent(Code::GatewayParentNotServed, field, parent),
    };
    work.report(&rejection);
}

/// The object that a parentRef names, and the Gateway that it belongs to.
fn owner(work: &mut Work<'_, impl GatewayView>, reference: &ParentReference) -> Option<(ObjectRef, ObjectRef)> {
    if reference.group.as_deref().unwrap_or(GROUP) != GROUP {
        return None;
    }
    let namespace = reference.namespace.as_deref().unwrap_or(&work.meta.namespace);
    let named = |kind: Kind| ObjectRef::new(kind, namespace, &*reference.name);
    match reference.kind.as_deref().unwrap_or(kind::GATEWAY.name()) {
        name if name == kind::GATEWAY.name() => Some((named(kind::GATEWAY), named(kind::GATEWAY))),
        name if name == kind::LISTENER_SET.name() => {
            let set = work.view.listener_set(&named(kind::LISTENER_SET))?;
            Some((named(kind::LISTENER_SET), listeners::parent(&set)?))
        }
        _ => None,
    }
}

fn attach(
    work: &mut Work<'_, impl GatewayView>,
    reference: &ParentReference,
    owner: &ObjectRef,
    listeners: &[Listener],
    hostnames: &[Host],
    left: &mut usize,
) -> Result<Vec<(usize, Vec<Common>)>, NotAttached> {
    let reject = |reason, why: String| NotAttached { reason, code: Code::GatewayRouteParent, why };
    let section = reference.section_name.as_deref().filter(|name| !name.is_empty());
    let named: Vec<(usize, &Listener)> = listeners
        .iter()
        .enumerate()
        .filter(|(_, listener)| section.is_none_or(|name| *name == *listener.name))
        .filter(|(_, listener)| reference.port.is_none_or(|port| port == i64::from(listener.port)))
        .collect();
    if named.is_empty() {
        let section = section.map_or_else(String::new, |name| format!(" named {name}"));
        let port = reference.port.map_or_else(String::new, |port| format!(" on port {port}"));
        return Err(reject("NoMatchingParent", format!("{owner} has no listener{section}{port}")));
    }
    let (kind, namespace) = (work.kind, work.meta.namespace.clone());
    let mut allowed = named;
    allowed.retain(|(_, listener)| {
        listener.kinds.contains(&kind) && listener.namespaces.allow(&namespace, &mut *work.view)
    });
    if allowed.is_empty() {
        let why = format!("no listener of {owner} allows a {kind} of namespace {namespace}");
        return Err(reject("NotAllowedByListeners", why));
    }
    let mut common = Vec::new();
    for (at, listener) in allowed {
        let hosts = hosts(&listener.host, hostnames);
        *left = left.checked_sub(hosts.len()).ok_or_else(|| {
            let why = format!("the listeners of all parents and the hostnames make more than {} hosts", pieces::ROUTES);
            reject(UNSUPPORTED_VALUE, why)
        })?;
        if !hosts.is_empty() {
            common.push((at, hosts));
        }
    }
    if common.is_empty() {
        let why = format!("no hostname of the route matches one of a listener of {owner}");
        return Err(reject("NoMatchingListenerHostname", why));
    }
    Ok(common)
}

/// The hosts that a listener and a route have in common, each once, with the narrowest of the route's names for it.
fn hosts(listener: &Host, hostnames: &[Host]) -> Vec<Common> {
    let common = hostnames.iter().filter_map(|own| {
        let host = hostname::intersection(listener, own)?.clone();
        let widening = hostname::widening(own, &host);
        Some(Common { host, widening })
    });
    let mut common: Vec<_> = common.collect();
    common.sort();
    common.dedup_by(|later, first| later.host == first.host);
    common
}

/// The host names of a route; one for every name where it has none. One that cannot be read is left out, and none is left
/// where none can be read.
pub(crate) fn hostnames(work: &mut Work<'_, impl GatewayView>, written: &List<Box<str>>) -> Vec<Host> {
    if written.is_empty() {
        return vec![Host::Any];
    }
    let mut hosts = Vec::new();
    for (index, name) in written.iter().enumerate() {
        let field = FieldPath::from("spec.hostnames").index(index);
        if index >= HOSTNAMES {
            let why = format!("a route has at most {HOSTNAMES} hostnames; this one and those after it have no effect");
            work.drop_part(Part::Hostname, &Rejection::new(Code::GatewayRouteLimit, field, why));
            break;
        }
        let reject = |why: String| Rejection::new(Code::GatewayRouteHostname, field, why);
        let read = match name.get() {
            Err(fault) => Err(reject(fault.why.to_string())),
            Ok(name) => match Host::parse(name) {
                Ok(Host::Any) => Err(reject("a hostname is a DNS name, or one with `*.` in front".to_owned())),
                Ok(host) => Ok(host),
                Err(error) => Err(reject(error.to_string())),
            },
        };
        match read {
            Ok(host) => hosts.push(host),
            Err(rejection) => work.drop_part(Part::Hostname, &rejection),
        }
    }
    hosts.sort();
    hosts.dedup();
    hosts
}

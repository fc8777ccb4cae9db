//! backendRefs: Services, and the share of each.
//!
//! Permission comes before existence: a Service of another namespace without a ReferenceGrant is not looked for. A backend that
//! cannot be used keeps its share, and the proxy answers for it.

use super::{
    Part, Rejection, Work, Wrong,
    filters::{self, BackendFilters, PathChange},
};
use crate::{GatewayView, tls_policy};
use kinds::{
    List,
    gateway::{
        http_route::HttpBackend,
        reference::{BackendReference, WeightedBackend},
    },
    kind,
};
use model::{
    ClusterId, Code, FieldPath, ObjectRef, Transport,
    cluster::{ClusterOverrides, Protocol},
    route::{HostRewrite, WeightedCluster},
};
use resolve::PortRef;

/// The largest weight.
const HEAVIEST: u32 = 1_000_000;

/// What backends are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP, as the Service says.
    Http,
    /// gRPC: HTTP/2 in any case.
    Grpc,
    /// Bytes or datagrams.
    Stream(Transport),
    /// Bytes of a TLS connection of the client's, which are not encrypted again.
    Passthrough,
}

impl Protocols {
    fn transport(self) -> Transport {
        match self {
            Protocols::Http | Protocols::Grpc | Protocols::Passthrough => Transport::Tcp,
            Protocols::Stream(transport) => transport,
        }
    }
}

/// A reference to a backend, whatever it is a part of.
pub(crate) struct Reference<'r> {
    pub group: Option<&'r str>,
    pub kind: Option<&'r str>,
    pub namespace: Option<&'r str>,
    pub name: &'r str,
    pub port: Option<i64>,
}

macro_rules! references {
    ($($written:ty)*) => {
        $(
            impl<'r> From<&'r $written> for Reference<'r> {
                fn from(written: &'r $written) -> Self {
                    Self {
                        group: written.group.as_deref(),
                        kind: written.kind.as_deref(),
                        namespace: written.namespace.as_deref(),
                        name: &written.name,
                        port: written.port,
                    }
                }
            }
        )*
    };
}

references!(BackendReference HttpBackend WeightedBackend);

/// Why a backend cannot be used.
pub(crate) enum Unusable {
    /// The reference is not resolved: the reason of the condition.
    Reference(&'static str, Rejection),
    /// The reference is, but something about the backend is not valid.
    Other(Rejection),
}

/// Finds the cluster of a reference.
pub(crate) fn resolve(
    work: &mut Work<'_, impl GatewayView>,
    reference: &Reference<'_>,
    field: &FieldPath,
    protocols: Protocols,
) -> Result<ClusterId, Unusable> {
    let reject =
        |reason, code, field: FieldPath, why: String| Unusable::Reference(reason, Rejection::new(code, field, why));
    let (group, kind) = (reference.group.unwrap_or_default(), reference.kind.unwrap_or(kind::SERVICE.name()));
    if (group, kind) != (kind::SERVICE.group(), kind::SERVICE.name()) {
        let group = if group.is_empty() { "the core group" } else { group };
        let why = format!("{kind} {} of {group} is not a Service", reference.name);
        return Err(reject("InvalidKind", Code::GatewayRouteBackend, field.field("kind"), why));
    }
    let own = work.meta.namespace.clone();
    let namespace = reference.namespace.unwrap_or(&own);
    let id = ObjectRef::new(kind::SERVICE, namespace, reference.name);
    if !resolve::grant::permits(work.view, work.kind, &own, &id) {
        let kind = work.kind;
        let why = format!("no ReferenceGrant in namespace {namespace} lets a {kind} of {own} use {id}");
        return Err(reject("RefNotPermitted", Code::ReferenceNotPermitted, field.clone(), why));
    }
    work.services.insert(id.clone());
    let port = reference.port.and_then(|port| u16::try_from(port).ok()).filter(|&port| port != 0);
    let Some(port) = port else {
        let why = "a port number from 1 to 65535 must be set".to_owned();
        return Err(reject("BackendNotFound", Code::GatewayRouteBackend, field.field("port"), why));
    };
    let Some(service) = work.view.service(namespace, reference.name) else {
        let rejection = Rejection::absent(Code::ServiceNotFound, field.field("name"), id);
        return Err(Unusable::Reference("BackendNotFound", rejection));
    };
    let (port, transport) = (PortRef::Number(port), protocols.transport());
    let cluster = service.backend_of(&port, transport).map_err(|found| {
        let (reason, name) = match found.code {
            Code::ServicePortNotTcp => ("UnsupportedProtocol", "port"),
            Code::ServicePortNotFound => ("BackendNotFound", "port"),
            _ => ("BackendNotFound", "name"),
        };
        Unusable::Reference(reason, Rejection::new(found.code, field.field(name), found.why))
    })?;
    if transport == Transport::Udp {
        return Ok(cluster);
    }
    let port = service.port(&port).map_err(|found| {
        Unusable::Reference("BackendNotFound", Rejection::new(found.code, field.field("port"), found.why))
    })?;
    let is_plain = matches!(protocols, Protocols::Stream(_) | Protocols::Passthrough);
    let policy = match protocols {
        Protocols::Passthrough => Ok(None),
        _ => tls_policy::of_port(work.view, &service, &port.name),
    };
    let policy = policy.map_err(|found| Unusable::Other(Rejection::new(found.code, field.clone(), found.why)))?;
    let overrides = match policy {
        None if protocols == Protocols::Grpc && !port.protocol.is_h2() => {
            let protocol = if port.protocol.is_tls() { Protocol::H2 } else { Protocol::H2c };
            ClusterOverrides { protocol: Some(protocol), ..ClusterOverrides::default() }
        }
        // What the Service says is spoken inside of the stream.
        None if is_plain && (port.protocol.is_tls() || port.protocol.is_h2()) => {
            ClusterOverrides { protocol: Some(Protocol::Http1), ..ClusterOverrides::default() }
        }
        None => ClusterOverrides::default(),
        Some(tls) => {
            let is_h2 = protocols == Protocols::Grpc || (protocols == Protocols::Http && port.protocol.is_h2());
            ClusterOverrides {
                protocol: Some(if is_h2 { Protocol::H2 } else { Protocol::Tls }),
                server_name: Some(tls.server_name),
                validation: Some(tls.validation),
                ..ClusterOverrides::default()
            }
        }
    };
    Ok(ClusterId { overrides: overrides.shared(), ..cluster })
}

/// The cluster, if it can be used; otherwise that is told.
pub(crate) fn used(work: &mut Work<'_, impl GatewayView>, found: Result<ClusterId, Unusable>) -> Option<ClusterId> {
    match found {
        Ok(cluster) => Some(cluster),
        Err(Unusable::Reference(reason, rejection)) => {
            work.unresolved(reason, &rejection);
            None
        }
        Err(Unusable::Other(rejection)) => {
            work.report(&rejection);
            None
        }
    }
}

/// The backends of a rule for requests.
#[derive(Default)]
pub(crate) struct Backends {
    pub clusters: Vec<WeightedCluster>,
    /// The share of those that cannot be used.
    pub unavailable: u32,
    /// What the only backend asks for.
    pub host: Option<HostRewrite>,
    pub rewrite: Option<PathChange>,
}

/// The share of a backend, 1 if its weight is absent, and why the backend cannot be used if the weight is out of range. One that is too
/// large is then the largest share, and one below zero is 1.
fn share_of(weight: Option<i64>, field: &FieldPath) -> (u32, Option<Rejection>) {
    let Some(weight) = weight else { return (1, None) };
    match u32::try_from(weight) {
        Ok(share) if share <= HEAVIEST => (share, None),
        _ => {
            let why = format!("must be from 0 to {HEAVIEST}, not {weight}");
            let rejection = Rejection::new(Code::GatewayRouteBackend, field.field("weight"), why);
            (if weight < 0 { 1 } else { HEAVIEST }, Some(rejection))
        }
    }
}

/// The sum of all shares, or that it is too large.
struct Sum(u64);

impl Sum {
    /// Adds a share.
    fn add(&mut self, share: u32, field: &FieldPath) -> Result<u32, Rejection> {
        self.0 += u64::from(share);
        if self.0 > u64::from(u32::MAX) {
            let why = format!("the sum of the weights is larger than {}", u32::MAX);
            return Err(Rejection::new(Code::GatewayRouteBackend, field.field("weight"), why));
        }
        Ok(share)
    }
}

/// The backends of a rule for requests.
pub(crate) fn weighted(
    work: &mut Work<'_, impl GatewayView>,
    written: &List<HttpBackend>,
    field: &FieldPath,
    protocols: Protocols,
    wrong: &mut Wrong,
) -> Backends {
    let (mut backends, mut sum) = (Backends::default(), Sum(0));
    let is_only = written.len() == 1;
    for (index, backend) in written.iter().enumerate() {
        let field = field.index(index);
        let backend = match backend.get() {
            Ok(backend) => backend,
            Err(fault) => {
                let rejection = Rejection::fault(Code::GatewayRouteBackend, fault);
                backends.unavailable += wrong.take(sum.add(1, &field)).unwrap_or_default();
                work.drop_part(Part::BackendRef, &rejection);
                continue;
            }
        };
        let (share, out_of_range) = share_of(backend.weight, &field);
        let weight = wrong.take(sum.add(share, &field)).unwrap_or_default();
        let found = resolve(work, &backend.into(), &field, protocols);
        let cluster = used(work, found);
        let mut of_backend = Wrong::default();
        out_of_range.into_iter().for_each(|rejection| of_backend.add(rejection));
        let filters = filters::of_backend(&backend.filters, &field.field("filters"), &mut of_backend);
        if filters.rewrite.is_some() && (!is_only || protocols != Protocols::Http) {
            let why = "the path can only be rewritten for a backend that is the only one of its rule";
            of_backend.add(Rejection::new(Code::GatewayRouteFilter, field.field("filters"), why));
        }
        let rejection = of_backend.first(work);
        rejection.iter().for_each(|rejection| work.drop_part(Part::BackendRef, rejection));
        let filters = Some(filters).filter(|_| rejection.is_none());
        let (Some(cluster), Some(BackendFilters { request, response, host, rewrite })) = (cluster, filters) else {
            backends.unavailable += weight;
            continue;
        };
        if weight == 0 {
            continue;
        }
        backends.rewrite = rewrite;
        backends.clusters.push(WeightedCluster {
            request_headers: request.into(),
            response_headers: response.into(),
            host,
            ..WeightedCluster::new(cluster, weight)
        });
    }
    if let [only] = &mut backends.clusters[..]
        && is_only
    {
        backends.host = only.host.take().map(HostRewrite::Literal);
    }
    backends
}

/// The backends of a rule for connections or datagrams, none of them with a share of zero, and the share of those that cannot be
/// used.
pub(crate) fn stream(
    work: &mut Work<'_, impl GatewayView>,
    written: &List<WeightedBackend>,
    field: &FieldPath,
    protocols: Protocols,
) -> Result<(Vec<(ClusterId, u32)>, u32), Rejection> {
    let (mut clusters, mut unavailable, mut sum) = (Vec::new(), 0, Sum(0));
    let mut wrong = Wrong::default();
    for (index, backend) in written.iter().enumerate() {
        let field = field.index(index);
        match backend.get() {
            Ok(backend) => {
                let (share, out_of_range) = share_of(backend.weight, &field);
                let weight = wrong.take(sum.add(share, &field)).unwrap_or_default();
                let found = resolve(work, &backend.into(), &field, protocols);
                let cluster = used(work, found);
                out_of_range.iter().for_each(|rejection| work.drop_part(Part::BackendRef, rejection));
                match cluster.filter(|_| out_of_range.is_none()) {
                    Some(cluster) if weight > 0 => clusters.push((cluster, weight)),
                    Some(_) => {}
                    None => unavailable += weight,
                }
            }
            Err(fault) => {
                unavailable += wrong.take(sum.add(1, &field)).unwrap_or_default();
                work.drop_part(Part::BackendRef, &Rejection::fault(Code::GatewayRouteBackend, fault));
            }
        }
    }
    match wrong.first(work) {
        Some(rejection) => Err(rejection),
        None => Ok((clusters, unavailable)),
    }
}

//! ExtensionService of both groups: Services that proxies call for authorization, rate limits and traces.
//!
//! In: one object. Out: what is known about the extension ([`KnownExtension`]), for those who use it and for its status. A Service
//! that cannot be used loses its share and is told; where none is left, or where a policy cannot be used, the extension cannot be
//! used: whoever needs it denies requests, or lets them pass if the object that names it says `failOpen`.

use crate::{
    Rejection,
    duration::timeout,
    route::{optional, service::upstream_validation},
    status,
};
use kinds::{ExtensionService, Kind, extension_service::CircuitBreakerPolicy, http_proxy::route::Strategy};
use model::{
    Code, EndpointsId, FieldPath, ObjectRef, Timeout, Transport, Verdict, VerdictList,
    cluster::{CircuitBreakers, LoadBalancing, Protocol, Validation},
    status::StatusKind,
};
use resolve::{KnownExtension, PortRef, View, service::Target};
use std::collections::BTreeMap;

/// How many Services an extension may have: each proxy is sent the endpoints of all of them.
const MOST_SERVICES: usize = 100;
/// Envoy's circuit breakers, which hold for what a policy does not set.
const CONNECTIONS: u32 = 1024;
const RETRIES: u32 = 3;

/// Where extensions look things up.
pub trait ExtensionView: View {
    /// Whether a Secret holds a certificate; nothing if it does not exist. Of one that has not been read yet the reason is
    /// [`Code::SecretPending`].
    fn has_certificate(&mut self, secret: &ObjectRef) -> Option<Result<(), resolve::Rejection>>;
}

/// Reads an object; whoever looks up Secrets adds which were asked for. Services that speak TLS are presented the operator's certificate.
pub fn read(
    kind: Kind,
    object: &ExtensionService,
    view: &mut impl ExtensionView,
    certificate: Option<&ObjectRef>,
) -> KnownExtension {
    let id = ObjectRef::new(kind, object.meta.namespace.clone(), object.meta.name.clone());
    let mut work = Reading { id: &id, object, view, certificate, verdicts: VerdictList::default() };
    let found = work.extension();
    let found = found.map_err(|rejection| {
        let reported = resolve::Rejection::new(rejection.code, format!("{}: {}", rejection.field, rejection.why));
        work.report(rejection);
        reported
    });
    KnownExtension { found, verdicts: work.verdicts.into_sorted(), secrets: Vec::new() }
}

struct Reading<'a, V> {
    id: &'a ObjectRef,
    object: &'a ExtensionService,
    view: &'a mut V,
    certificate: Option<&'a ObjectRef>,
    verdicts: VerdictList,
}

impl<V: ExtensionView> Reading<'_, V> {
    fn report(&mut self, rejection: Rejection) {
        self.verdicts.push(rejection.on(self.id));
    }

    fn extension(&mut self) -> Result<resolve::ExtensionService, Rejection> {
        let protocol = self.protocol()?;
        let validation = self.validation(protocol)?;
        let client_certificate = self.client_certificate(protocol)?;
        let balance = self.balance()?;
        let (response_timeout, idle) = self.timeouts()?;
        let breakers = match optional(&self.object.spec.circuit_breaker_policy)? {
            Some(policy) => circuit_breakers(policy)?,
            None => CircuitBreakers::default(),
        };
        if let Some(version) = optional(&self.object.spec.protocol_version)?.filter(|version| *version != "v3") {
            let why = format!("must be v3, not `{version}`");
            return Err(Rejection::new(Code::ExtensionProtocol, spec("protocolVersion"), why));
        }
        let services = self.services()?;
        let object = self.id.clone();
        Ok(resolve::ExtensionService {
            object,
            services,
            protocol,
            validation,
            client_certificate,
            balance,
            idle,
            response_timeout,
            breakers,
        })
    }

    fn protocol(&self) -> Result<Protocol, Rejection> {
        match optional(&self.object.spec.protocol)? {
            None | Some("" | "h2") => Ok(Protocol::H2),
            Some("h2c") => Ok(Protocol::H2c),
            Some("http/1.1") => Ok(Protocol::Http1),
            Some(other) => {
                let why = format!("must be h2, h2c or http/1.1, not `{other}`");
                Err(Rejection::new(Code::ExtensionProtocol, spec("protocol"), why))
            }
        }
    }

    fn validation(&mut self, protocol: Protocol) -> Result<Option<Validation>, Rejection> {
        let Some(policy) = optional(&self.object.spec.validation)? else { return Ok(None) };
        if !protocol.is_tls() {
            let why = "validation requires the protocol h2: without TLS there is no certificate to validate";
            return Err(Rejection::new(Code::ExtensionProtocol, spec("validation"), why));
        }
        let read = upstream_validation(self.view, &self.id.namespace, &spec("validation"), policy);
        read.map(Some).map_err(|rejection| match rejection.code {
            Code::ProxyUpstreamValidation => Rejection { code: Code::ExtensionValidation, ..rejection },
            _ => rejection,
        })
    }

    /// The certificate that proxies present. Without it the extension is not used, as no other TLS backend is.
    fn client_certificate(&mut self, protocol: Protocol) -> Result<Option<ObjectRef>, Rejection> {
        let Some(certificate) = self.certificate.filter(|_| protocol.is_tls()) else { return Ok(None) };
        let found = self.view.has_certificate(certificate);
        let found = found.as_ref().map(|found| found.as_ref().copied());
        let presentable = resolve::presentable(certificate, found);
        presentable.map_err(|rejection| Rejection::resolved(rejection, spec("protocol")))?;
        Ok(Some(certificate.clone()))
    }

    /// Strategies that need a request of a client are told, and have no effect.
    fn balance(&mut self) -> Result<LoadBalancing, Rejection> {
        let Some(policy) = optional(&self.object.spec.load_balancer_policy)? else { return Ok(Default::default()) };
        Ok(match &policy.strategy {
            None | Some(Strategy::RoundRobin) => LoadBalancing::RoundRobin,
            Some(Strategy::Random) => LoadBalancing::Random,
            Some(Strategy::WeightedLeastRequest) => LoadBalancing::LeastRequest,
            Some(Strategy::Cookie | Strategy::RequestHash | Strategy::Unknown(_)) => {
                let why = "must be RoundRobin, Random or WeightedLeastRequest; RoundRobin is used instead";
                self.report(Rejection::new(Code::ProxyIgnored, spec("loadBalancerPolicy").field("strategy"), why));
                LoadBalancing::RoundRobin
            }
        })
    }

    /// How long a call may take, and how long a connection may be idle.
    fn timeouts(&mut self) -> Result<(Timeout, Timeout), Rejection> {
        let Some(policy) = optional(&self.object.spec.timeout_policy)? else { return Ok(Default::default()) };
        let field = spec("timeoutPolicy");
        let mut notes = Vec::new();
        let mut read = |name: &str, text: &Option<Box<str>>| {
            timeout(text.as_deref(), Code::ExtensionTimeout, field.field(name), &mut notes)
        };
        let timeouts = (read("response", &policy.response)?, read("idleConnection", &policy.idle_connection)?);
        let idle = read("idle", &policy.idle)?;
        notes.into_iter().for_each(|note| self.report(note));
        if idle != Timeout::Default {
            let why = "no effect: a call has no idle timeout; use response or idleConnection";
            self.report(Rejection::new(Code::ProxyIgnored, field.field("idle"), why));
        }
        Ok(timeouts)
    }

    /// The Services that can be used, with their shares.
    fn services(&mut self) -> Result<Vec<(EndpointsId, u32)>, Rejection> {
        let list = &self.object.spec.services;
        list.faults().for_each(|fault| self.verdicts.push(verdict(self.id, fault.into())));
        if list.len() > MOST_SERVICES {
            let why = format!("{} services; the limit is {MOST_SERVICES}", list.len());
            return Err(Rejection::new(Code::ExtensionServices, spec("services"), why));
        }
        let mut total = 0;
        let mut found: BTreeMap<EndpointsId, u64> = BTreeMap::new();
        for (index, target) in list.good() {
            let field = spec("services").index(index);
            let Ok(weight) = u32::try_from(target.weight.unwrap_or_default()) else {
                return Err(Rejection::new(Code::ExtensionServices, field.field("weight"), "must be at least 0"));
            };
            total += u64::from(weight);
            match self.service(&field, &target.name, target.port) {
                Ok(id) => *found.entry(id).or_default() += u64::from(weight),
                Err(rejection) => self.report(rejection),
            }
        }
        if total > u64::from(u32::MAX) {
            let why = format!("the sum of the weights is {total}; the limit is {}", u32::MAX);
            return Err(Rejection::new(Code::ExtensionServices, spec("services"), why));
        }
        let is_even = total == 0;
        let services = found.into_iter().filter(|(_, weight)| is_even || *weight > 0);
        let services: Vec<_> = services.map(|(id, weight)| (id, weight.max(1) as u32)).collect();
        if services.is_empty() {
            return Err(Rejection::new(Code::ExtensionServices, spec("services"), "no Service can be used"));
        }
        Ok(services)
    }

    fn service(&mut self, field: &FieldPath, name: &str, port: i64) -> Result<EndpointsId, Rejection> {
        let port = u16::try_from(port).ok().filter(|&port| port != 0).ok_or_else(|| {
            let why = format!("must be a port number from 1 to 65535, not {port}");
            Rejection::new(Code::ExtensionServices, field.field("port"), why)
        })?;
        let namespace = &self.id.namespace;
        let unsupported = |what: &str| {
            let why = format!("Service {namespace}/{name} {what}");
            Rejection::new(Code::ExtensionServiceType, field.field("name"), why)
        };
        let reject = |rejection: resolve::Rejection| {
            let of_port = matches!(rejection.code, Code::ServicePortNotFound | Code::ServicePortNotTcp);
            Rejection::resolved(rejection, field.field(if of_port { "port" } else { "name" }))
        };
        let service = self.view.service(namespace, name).ok_or_else(|| {
            let absent = ObjectRef::new(kinds::kind::SERVICE, namespace.clone(), name);
            Rejection::resolved(resolve::Rejection::absent(Code::ServiceNotFound, absent), field.field("name"))
        })?;
        if let Target::External(_) = service.target {
            return Err(unsupported("is of type ExternalName"));
        }
        let backend = service.backend(&PortRef::Number(port)).map_err(|found| match found.code {
            Code::ExternalNameOff | Code::ExternalNameNotAllowed => unsupported("is of type ExternalName"),
            _ => reject(found),
        })?;
        let by_dns = service.cluster(port, Transport::Tcp).is_none_or(|cluster| !cluster.discovery.is_by_eds());
        match backend.service() {
            Some(id) if !by_dns => Ok(id.clone()),
            _ => Err(unsupported("has endpoints that are names, not addresses")),
        }
    }
}

fn verdict(id: &ObjectRef, rejection: Rejection) -> Verdict {
    rejection.on(id)
}

fn spec(field: &str) -> FieldPath {
    FieldPath::from("spec").field(field)
}

/// The policy replaces what the operator sets: what it does not set is Envoy's default.
fn circuit_breakers(policy: &CircuitBreakerPolicy) -> Result<CircuitBreakers, Rejection> {
    let read = |name: &str, limit: Option<i64>, default: u32| match limit {
        None | Some(0) => Ok(Some(default)),
        Some(limit) => u32::try_from(limit).map(Some).map_err(|_| {
            let why = format!("must be a number from 0 to {}, not {limit}", u32::MAX);
            Rejection::new(Code::ExtensionCircuitBreakers, spec("circuitBreakerPolicy").field(name), why)
        }),
    };
    Ok(CircuitBreakers {
        max_connections: read("maxConnections", policy.max_connections, CONNECTIONS)?,
        max_pending_requests: read("maxPendingRequests", policy.max_pending_requests, CONNECTIONS)?,
        max_requests: read("maxRequests", policy.max_requests, CONNECTIONS)?,
        max_retries: read("maxRetries", policy.max_retries, RETRIES)?,
        per_host_max_connections: read("perHostMaxConnections", policy.per_host_max_connections, u32::MAX)?,
    })
}

/// The status of ExtensionServices.
pub const STATUS: StatusKind = status::valid_only(|input| status::valid_facts("ExtensionService", input));

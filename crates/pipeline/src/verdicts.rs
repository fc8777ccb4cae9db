//! Verdicts: for each object that Sesame serves or found fault with, everything there is to say about it.

use crate::{
    client_trust::CasWithoutCrl,
    hosts::{TlsHosts, VirtualHosts, conditional::ConditionalHosts},
    losers::{Contested, Losers},
    objects::EndpointSlices,
    ports::{Listeners, PortNumbers, Streams},
    quarantine::{ActiveTargets, WithheldByObject},
    resources::WithoutEndpoints,
    services::KnownServices,
    settings::ForResolve,
    shared_routes::{self, SelectedRoutes},
    slots::jwt::JwtOverflows,
    translations::{ObjectPart, Translations, TranslationsBySubject},
    validity::{Expiring, OutOfDateSecrets},
};
use engine::{Derived, Index, Reads, Table};
use kinds::{EndpointSlice, kind};
use model::{
    ClusterId, Code, EndpointsId, ObjectRef, Origin, Transport, Verdict, VerdictList, cluster::Backend,
    translation::TlsPiece,
};
use resolve::{Service, certificate::OutOfDate};
use std::collections::BTreeSet;

/// All verdicts about an object, sorted, each once; an empty list says that all is well.
pub struct Verdicts;

impl Table for Verdicts {
    type Key = ObjectRef;
    type Value = Vec<Verdict>;
    const NAME: &'static str = "verdicts";
}

impl Derived for Verdicts {
    fn compute(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> Option<Vec<Verdict>> {
        // What is told about others is not looked at: a root may have many includes, and many may have lost on one host.
        let mut all = VerdictList::default();
        let (mut is_child, mut used, mut awaited) = (None, false, false);
        let parts = reads.parts::<TranslationsBySubject>(object);
        for (name, part) in &parts {
            if part.is_pending {
                return pending(reads);
            }
            if part.is_subject_pending {
                // Anybody may include it: what is said of it elsewhere does not wait for them.
                awaited = true;
                continue;
            }
            all.extend(part.verdicts.iter().cloned());
            if part.is_subject {
                is_child = Some(part.is_child);
                out_of_date(part.tls, reads, &mut all);
                without_crl(part.tls, reads, &mut all);
            } else {
                used = true;
            }
            without_endpoints(part.backends, reads, &mut all);
            if let Some(why) = reads.failure::<Translations>(name) {
                all.push(Verdict::new(Code::TranslationFailed, object.at(""), why));
            }
        }
        if awaited && !used && is_child != Some(false) {
            return pending(reads);
        }
        if is_child == Some(true) && !used {
            all.push(Verdict::new(Code::ProxyOrphaned, object.at("spec"), "no root HTTPProxy includes it"));
        }
        // An object loses what it asks for, and nothing else. Each question costs memory, and most objects ask for routes alone.
        let asks = |fits: fn(&ObjectPart<'_>) -> bool| parts.iter().any(|(_, part)| fits(part));
        let asks_for_requests = |part: &ObjectPart<'_>| {
            part.has_routes || !part.hosts.is_empty() || !part.conditional.is_empty() || !part.tls.is_empty()
        };
        if asks(asks_for_requests) {
            lost::<VirtualHosts>(object, reads, &mut all);
            lost::<ConditionalHosts>(object, reads, &mut all);
        }
        if asks(|part| !part.tls.is_empty()) {
            lost::<TlsHosts>(object, reads, &mut all);
        }
        if asks(|part| part.has_jwt_providers) {
            lost::<JwtOverflows>(object, reads, &mut all);
        }
        for (_, part) in parts.iter().filter(|(_, part)| !part.shared.is_empty()) {
            lost::<SelectedRoutes>(object, reads, &mut all);
            if !part.shared.iter().any(|shared| shared_routes::is_selected(shared, reads)) {
                let why =
                    "no host selects its routes: no host that may share them has its host name or selects its labels";
                all.push(Verdict::new(Code::SharedRoutesUnused, object.at("spec"), why));
            }
        }
        if asks(|part| !part.listeners.is_empty()) {
            lost::<Listeners>(object, reads, &mut all);
            lost::<PortNumbers>(object, reads, &mut all);
        }
        if asks(|part| !part.streams.is_empty()) {
            lost::<Streams>(object, reads, &mut all);
        }
        withheld(object, reads, &mut all);
        if object.kind == kind::SERVICE {
            let verdicts = reads.get::<KnownServices>(object).into_iter().flat_map(|service| &service.verdicts);
            all.extend(verdicts.cloned());
        }
        if object.kind == kind::ENDPOINT_SLICE {
            all.push(refused_endpoints(object, reads)?);
        }
        Some(all.into_sorted())
    }
}

/// What was said about an object before still holds; about a new one there is nothing to say yet.
fn pending(reads: &mut Reads<'_>) -> Option<Vec<Verdict>> {
    reads.set_pending();
    None
}

/// Certificates that clients reject at this time, and client CAs and CRLs for which clients are rejected, or soon will be.
fn out_of_date(tls: &[TlsPiece], reads: &mut Reads<'_>, all: &mut VerdictList) {
    let mut looked_at = BTreeSet::new();
    for piece in tls {
        for expiring in Expiring::of(&piece.mode) {
            if !looked_at.insert(expiring.clone()) {
                continue;
            }
            let Some(states) = reads.get::<OutOfDateSecrets>(&expiring) else { continue };
            for state in states.iter() {
                let (code, why) = message(&expiring, state);
                all.push(Verdict::new(code, piece.origin.clone(), why));
            }
        }
    }
}

fn message(expiring: &Expiring, state: &OutOfDate) -> (Code, String) {
    match (expiring, state) {
        (Expiring::Certificate(secret), state) => {
            (Code::CertificateExpired, format!("the certificate in {secret} {state}"))
        }
        (Expiring::Crls(secret), state @ OutOfDate::Soon(_)) => {
            let why = format!("a CRL in {secret} {state}; client certificates of its CA are rejected then");
            (Code::CrlExpiresSoon, why)
        }
        (Expiring::ClientCa(object), state @ OutOfDate::Soon(_)) => {
            let why = format!("a CA in {object} {state}; client certificates that it signed are rejected then");
            (Code::ClientCaExpiresSoon, why)
        }
        (Expiring::ClientCa(object), state) => {
            let why = format!("a CA in {object} {state}; client certificates that it signed are rejected");
            (Code::ClientCaExpired, why)
        }
        (Expiring::Crls(secret), state) => {
            (Code::CrlExpired, format!("a CRL in {secret} {state}; client certificates of its CA are rejected"))
        }
    }
}

/// CAs whose client certificates are rejected, because nobody knows which of them are revoked.
fn without_crl(tls: &[TlsPiece], reads: &mut Reads<'_>, all: &mut VerdictList) {
    let mut looked_at = BTreeSet::new();
    for piece in tls {
        let clients = piece.mode.termination().and_then(|termination| termination.clients.as_ref());
        let Some(trust) = clients.map(|clients| &clients.trust).filter(|trust| looked_at.insert(*trust)) else {
            continue;
        };
        let Some(crls) = trust.crl().map(|check| &check.crls) else { continue };
        let Some(names) = reads.get::<CasWithoutCrl>(trust) else { continue };
        let more = if names.len() > CAS { ", …" } else { "" };
        let names = names.iter().take(CAS).map(|name| &**name).collect::<Vec<_>>().join(", ");
        let why = format!("{crls} has no CRL of {names}{more}: client certificates that it signed are rejected");
        all.push(Verdict::new(Code::CrlMissing, piece.origin.clone(), why));
    }
}

/// How many CAs a message lists.
const CAS: usize = 5;

/// Services that requests are sent to though nobody is there.
fn without_endpoints(backends: &[(Origin, ClusterId)], reads: &mut Reads<'_>, all: &mut VerdictList) {
    for (origin, cluster) in backends {
        if reads.probe::<WithoutEndpoints>(cluster).len() > 0 {
            let why = match &cluster.backend {
                Backend::Service(EndpointsId { namespace, service, port, transport }) => {
                    let transport = if *transport == Transport::Udp { "UDP " } else { "" };
                    format!("Service {namespace}/{service} has no ready endpoint for {transport}port {port}")
                }
                Backend::Services(several) => {
                    let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                    format!("none of the Services {} has a ready endpoint", names.join(", "))
                }
                Backend::Extension(object) => format!("no Service of {object} has a ready endpoint"),
                Backend::Outside(outside) => format!("{} has no address", outside.host()),
            };
            all.push(Verdict::new(Code::NoEndpoints, origin.clone(), why));
        }
    }
}

/// What is told about an object where something that it asked for lost against another's.
fn lost<T: Table>(object: &ObjectRef, reads: &mut Reads<'_>, all: &mut VerdictList)
where
    T::Value: Contested,
{
    for (_, lost) in reads.parts::<Losers<T>>(object) {
        all.extend(lost.iter().cloned());
    }
}

/// What is withheld of what was made from an object, or of what its requests need.
fn withheld(object: &ObjectRef, reads: &mut Reads<'_>, all: &mut VerdictList) {
    for target in reads.probe::<WithheldByObject>(object) {
        let withheld = reads.get::<ActiveTargets>(target);
        all.extend(withheld.map(|withheld| Verdict::new(withheld.code, object.at(""), &*withheld.message)));
    }
}

/// That endpoints of an EndpointSlice are not used.
fn refused_endpoints(object: &ObjectRef, reads: &mut Reads<'_>) -> Option<Verdict> {
    let local = reads.get::<ForResolve>(&())?.local_endpoints;
    let (field, why) = resolve::endpoints::refused(reads.get::<EndpointSlices>(object)?, local)?;
    Some(Verdict::new(Code::EndpointIgnored, object.at(field), why))
}

/// EndpointSlices of Services that have endpoints with addresses that may not be used, whatever the settings say.
pub struct RefusedSlices;

impl Index for RefusedSlices {
    type Of = EndpointSlices;
    type Key = ObjectRef;
    const NAME: &'static str = "refused";

    fn keys(key: &ObjectRef, slice: &EndpointSlice) -> impl IntoIterator<Item = ObjectRef> {
        let is_of_service = matches!(slice.service_name(), Ok(Some(_)));
        (is_of_service && resolve::endpoints::refused(slice, false).is_some()).then(|| key.clone())
    }
}

/// Services that something is wrong with.
pub struct FaultyServices;

impl Index for FaultyServices {
    type Of = KnownServices;
    type Key = ObjectRef;
    const NAME: &'static str = "faulty";

    fn keys(key: &ObjectRef, service: &Service) -> impl IntoIterator<Item = ObjectRef> {
        (!service.verdicts.is_empty()).then(|| key.clone())
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<FaultyServices>().index::<RefusedSlices>();
    pipeline
        .derived(Verdicts)
        .per::<TranslationsBySubject>()
        .per::<FaultyServices>()
        .per::<RefusedSlices>()
        .per::<WithheldByObject>()
        .sums_up()
        .output();
}

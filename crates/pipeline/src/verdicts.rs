//! Verdicts: for each object that Sesame serves or found fault with, everything there is to say about it.

use crate::{
    holders::HolderResources,
    hosts::{RouteLosers, TlsLosers},
    packing::{EncodedHosts, ScopeResources},
    ports::{ListenerLosers, PortLosers, StreamLosers},
    redirects::RedirectScopes,
    resources::{
        CaResources, ClusterResources, EndpointResources, HostSecretResources, SecretResources, StreamResources,
        TcpResources, UdpEndpointResources,
    },
    services::{Clusters, KnownServices, WithoutEndpoints},
    shared_routes::SharedRoutesLosers,
    translations::{NamedClustersInUse, SecretsAskedFor, SharedClustersInUse, Translations, TranslationsBySubject},
    validity::OutOfDateCertificates,
    withheld::{Withheld, WithheldByObject, Withholdable},
};
use engine::{Derived, Index, Reads, Table};

use model::{
    CertificateRef, Cluster, ClusterId, Code, EndpointsId, ObjectRef, Origin, Translation, Transport, Verdict,
    VerdictList, cluster::Discovery,
};
use resolve::Service;
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
        for name in reads.probe::<TranslationsBySubject>(object) {
            let translation = reads.get::<Translations>(name);
            if translation.is_some_and(|translation| translation.is_pending(object)) {
                return pending(reads);
            }
            if translation.is_some_and(|translation| translation.is_pending(&translation.subject)) {
                // Anybody may include it: what is said of it elsewhere does not wait for them.
                awaited = true;
                continue;
            }
            all.extend(
                translation.into_iter().flat_map(|translation| Verdict::about(object, &translation.verdicts)).cloned(),
            );
            match translation {
                Some(translation) if translation.subject == *object => {
                    is_child = Some(translation.is_child);
                    out_of_date(translation, reads, &mut all);
                }
                _ => used = true,
            }
            if let Some(translation) = translation {
                without_endpoints(translation.backends_of(object), reads, &mut all);
            }
            if let Some(why) = reads.held::<Translations>(name) {
                all.push(Verdict::new(Code::TranslationFailed, object.at(""), why));
            }
        }
        if awaited && !used && is_child != Some(false) {
            return pending(reads);
        }
        if is_child == Some(true) && !used {
            all.push(Verdict::new(Code::ProxyOrphaned, object.at("spec"), "no root HTTPProxy includes it"));
        }
        lost::<RouteLosers>(object, reads, |host| &host.lost, &mut all);
        lost::<TlsLosers>(object, reads, |host| &host.lost, &mut all);
        lost::<SharedRoutesLosers>(object, reads, |selected| &selected.lost, &mut all);
        lost::<ListenerLosers>(object, reads, |row| &row.lost, &mut all);
        lost::<PortLosers>(object, reads, |row| &row.lost, &mut all);
        lost::<StreamLosers>(object, reads, |row| &row.lost, &mut all);
        withheld::<EncodedHosts>(object, reads, &mut all);
        withheld::<ScopeResources>(object, reads, &mut all);
        withheld::<RedirectScopes>(object, reads, &mut all);
        withheld::<TcpResources>(object, reads, &mut all);
        withheld::<StreamResources>(object, reads, &mut all);
        withheld::<UdpEndpointResources>(object, reads, &mut all);
        withheld::<ClusterResources>(object, reads, &mut all);
        withheld::<RefusedClusters>(object, reads, &mut all);
        withheld::<EndpointResources>(object, reads, &mut all);
        withheld::<SecretResources>(object, reads, &mut all);
        withheld::<HostSecretResources>(object, reads, &mut all);
        withheld::<HolderResources>(object, reads, &mut all);
        withheld::<CaResources>(object, reads, &mut all);
        withheld::<RefusedSecrets>(object, reads, &mut all);
        for name in reads.probe::<FaultyServices>(object) {
            let told = reads.get::<KnownServices>(name).into_iter().flat_map(|service| &service.verdicts);
            all.extend(told.filter(|verdict| verdict.origin.object == *object).cloned());
        }
        Some(all.into_sorted())
    }
}

/// What was said about an object before still holds; about a new one there is nothing to say yet.
fn pending(reads: &mut Reads<'_>) -> Option<Vec<Verdict>> {
    reads.set_pending();
    None
}

/// Certificates that clients refuse at this time.
fn out_of_date(translation: &Translation, reads: &mut Reads<'_>, all: &mut VerdictList) {
    let mut looked_at = BTreeSet::new();
    for piece in &translation.tls {
        let Some(certificate) = piece.mode.certificate().filter(|it| looked_at.insert(*it)) else { continue };
        if let Some(secret) = certificate.secret()
            && let Some(state) = reads.get::<OutOfDateCertificates>(certificate)
        {
            let why = format!("the certificate in {secret} {state}");
            all.push(Verdict::new(Code::CertificateExpired, piece.origin.clone(), why));
        }
    }
}

/// Services that requests are sent to though nobody is there.
fn without_endpoints(backends: &[(Origin, ClusterId)], reads: &mut Reads<'_>, all: &mut VerdictList) {
    for (origin, cluster) in backends {
        let by_endpoints = |cluster: &Cluster| cluster.discovery == Discovery::Endpoints;
        if reads.probe::<WithoutEndpoints>(cluster).len() > 0
            && reads.get::<Clusters>(cluster).is_some_and(|cluster| by_endpoints(cluster))
        {
            let EndpointsId { namespace, service, port, transport } = &cluster.backend;
            let transport = if *transport == Transport::Udp { "UDP " } else { "" };
            let why = format!("Service {namespace}/{service} has no ready endpoint for {transport}port {port}");
            all.push(Verdict::new(Code::NoEndpoints, origin.clone(), why));
        }
    }
}

/// What is told about an object where something that it asked for lost against another's.
fn lost<I: Index<Key = ObjectRef>>(
    object: &ObjectRef,
    reads: &mut Reads<'_>,
    lost: impl Fn(&<I::Of as Table>::Value) -> &Vec<Verdict>,
    all: &mut VerdictList,
) {
    for key in reads.probe::<I>(object) {
        let told = reads.get::<I::Of>(key).map(|row| Verdict::about(object, lost(row)));
        all.extend(told.unwrap_or_default().iter().cloned());
    }
}

/// What is withheld of what was made from an object.
fn withheld<T: Table>(object: &ObjectRef, reads: &mut Reads<'_>, all: &mut VerdictList)
where
    T::Value: Withholdable,
{
    for key in reads.probe::<WithheldByObject<T>>(object) {
        let row = reads.get::<T>(key);
        let refused = row.iter().filter_map(|row| row.refused());
        all.extend(refused.map(|refused| Verdict::new(refused.code, object.at(""), &*refused.message)));
    }
}

/// The users of what is made from other objects than theirs: they are told, too, because their requests fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users(Withheld);

impl Withholdable for Users {
    fn refused(&self) -> Option<&Withheld> {
        Some(&self.0)
    }
}

fn users<'r>(refused: &Withheld, keys: impl Iterator<Item = &'r ObjectRef>, reads: &mut Reads<'r>) -> Users {
    let users = keys.filter_map(|key| reads.get::<Translations>(key)).map(|translation| translation.subject.clone());
    Users(Withheld { objects: users.collect(), ..refused.clone() })
}

/// The users of clusters that are withheld.
pub struct RefusedClusters;

impl Table for RefusedClusters {
    type Key = ClusterId;
    type Value = Users;
    const NAME: &'static str = "users of withheld clusters";
}

impl Derived for RefusedClusters {
    fn compute(&self, id: &ClusterId, reads: &mut Reads<'_>) -> Option<Users> {
        let refused = reads.get::<ClusterResources>(id)?.refused.as_ref()?;
        Some(users(refused, reads.probe::<SharedClustersInUse>(id).chain(reads.probe::<NamedClustersInUse>(id)), reads))
    }
}

/// The users of certificates that are withheld.
pub struct RefusedSecrets;

impl Table for RefusedSecrets {
    type Key = CertificateRef;
    type Value = Users;
    const NAME: &'static str = "users of withheld secrets";
}

impl Derived for RefusedSecrets {
    fn compute(&self, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<Users> {
        let refused = reads.get::<SecretResources>(certificate)?.refused.as_ref()?;
        Some(users(refused, reads.probe::<SecretsAskedFor>(certificate.secret()?), reads))
    }
}

/// Services that something is wrong with.
pub struct FaultyServices;

impl Index for FaultyServices {
    type Of = KnownServices;
    type Key = ObjectRef;
    const NAME: &'static str = "faulty";

    fn keys(_: &ObjectRef, service: &Service) -> impl IntoIterator<Item = ObjectRef> {
        service.verdicts.iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<FaultyServices>();
    pipeline.derived(RefusedClusters).each::<ClusterResources>();
    pipeline.derived(RefusedSecrets).each::<SecretResources>();
    pipeline.index::<WithheldByObject<RefusedClusters>>().index::<WithheldByObject<RefusedSecrets>>();
    pipeline
        .derived(Verdicts)
        .per::<TranslationsBySubject>()
        .per::<RouteLosers>()
        .per::<TlsLosers>()
        .per::<SharedRoutesLosers>()
        .per::<ListenerLosers>()
        .per::<PortLosers>()
        .per::<StreamLosers>()
        .per::<FaultyServices>()
        .per::<WithheldByObject<ClusterResources>>()
        .per::<WithheldByObject<EndpointResources>>()
        .per::<WithheldByObject<SecretResources>>()
        .per::<WithheldByObject<HostSecretResources>>()
        .per::<WithheldByObject<CaResources>>()
        .output();
}

//! Verdicts: for each object that Sesame serves or found fault with, everything there is to say about it.

use crate::{
    holds::{Blamed, Holdable, Refused},
    hosts::{RouteLosers, TlsHosts, TlsLosers, VirtualHosts},
    objects::Named,
    packing::{EncodedHosts, ScopeResources},
    redirects::RedirectScopes,
    resources::{
        AuthorityResources, ClusterResources, EndpointResources, HostSecretResources, SecretResources, TcpResources,
    },
    services::{Clusters, Known, WithoutEndpoints},
    units::{ClustersInUse, SecretsAskedFor, Units, UnitsBySubject},
    validity::OutOfDateCertificates,
};
use engine::{Derived, Index, Reads, Table};
use kinds::ObjectKey;
use model::{
    Cluster, ClusterId, Code, EndpointsId, ObjectRef, Origin, SecretId, Unit, Verdict, VerdictList, cluster::Discovery,
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
        // What is told about others is passed over before it is copied: many may have lost on one host.
        let own = |verdict: &&Verdict| verdict.origin.object == *object;
        let mut all = VerdictList::default();
        let (mut part, mut used) = (false, false);
        for name in reads.probe::<UnitsBySubject>(object) {
            let unit = reads.get::<Units>(name);
            if unit.is_some_and(|unit| unit.pending.contains(object) || unit.pending.contains(&unit.subject)) {
                // What was said about it before still holds; about a new object there is nothing to say yet.
                reads.set_pending();
                return None;
            }
            all.extend(unit.into_iter().flat_map(|unit| &unit.verdicts).filter(own).cloned());
            match unit {
                Some(unit) if unit.subject == *object => {
                    part = unit.part;
                    out_of_date(unit, reads, &mut all);
                }
                _ => used = true,
            }
            if let Some(unit) = unit {
                without_endpoints(unit.backends_of(object), reads, &mut all);
            }
            if let Some(why) = reads.held::<Units>(name) {
                all.push(Verdict::new(Code::TranslationFailed, object.at(""), why));
            }
        }
        if part && !used {
            all.push(Verdict::new(Code::ProxyOrphaned, object.at("spec"), "no root includes it"));
        }
        for key in reads.probe::<RouteLosers>(object) {
            all.extend(reads.get::<VirtualHosts>(key).into_iter().flat_map(|host| &host.lost).filter(own).cloned());
        }
        for key in reads.probe::<TlsLosers>(object) {
            all.extend(reads.get::<TlsHosts>(key).into_iter().flat_map(|host| &host.lost).filter(own).cloned());
        }
        withheld::<EncodedHosts>(object, reads, &mut all);
        withheld::<ScopeResources>(object, reads, &mut all);
        withheld::<RedirectScopes>(object, reads, &mut all);
        withheld::<TcpResources>(object, reads, &mut all);
        withheld::<ClusterResources>(object, reads, &mut all);
        withheld::<RefusedClusters>(object, reads, &mut all);
        withheld::<EndpointResources>(object, reads, &mut all);
        withheld::<SecretResources>(object, reads, &mut all);
        withheld::<HostSecretResources>(object, reads, &mut all);
        withheld::<AuthorityResources>(object, reads, &mut all);
        withheld::<RefusedSecrets>(object, reads, &mut all);
        for name in reads.probe::<FaultyServices>(object) {
            all.extend(reads.get::<Known>(name).into_iter().flat_map(|service| &service.verdicts).filter(own).cloned());
        }
        Some(all.into_sorted())
    }
}

/// Certificates that clients refuse at this time.
fn out_of_date(unit: &Unit, reads: &mut Reads<'_>, all: &mut VerdictList) {
    let mut looked_at = BTreeSet::new();
    for piece in &unit.tls {
        let Some(id) = piece.handling.certificate().filter(|id| looked_at.insert(*id)) else { continue };
        if let Some(state) = reads.get::<OutOfDateCertificates>(id) {
            let why = format!("the certificate in Secret {id} {state}");
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
            let EndpointsId { namespace, service, port } = &cluster.backend;
            let why = format!("Service {namespace}/{service} has no endpoint that is ready for port {port}");
            all.push(Verdict::new(Code::NoEndpoints, origin.clone(), why));
        }
    }
}

/// What is withheld of what was made from an object.
fn withheld<T: Table>(object: &ObjectRef, reads: &mut Reads<'_>, all: &mut VerdictList)
where
    T::Value: Holdable,
{
    for key in reads.probe::<Blamed<T>>(object) {
        let row = reads.get::<T>(key);
        let refused = row.iter().filter_map(|row| row.refused());
        all.extend(refused.map(|refused| Verdict::new(refused.code, object.at(""), &*refused.message)));
    }
}

/// The users of what is made from other objects than theirs: they are told, too, because their requests fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Users(Refused);

impl Holdable for Users {
    fn refused(&self) -> Option<&Refused> {
        Some(&self.0)
    }
}

fn users<'r>(refused: &Refused, keys: impl Iterator<Item = &'r ObjectKey>, reads: &mut Reads<'r>) -> Users {
    let users = keys.filter_map(|key| reads.get::<Units>(key)).map(|unit| unit.subject.clone());
    Users(Refused { objects: users.collect(), ..refused.clone() })
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
        Some(users(refused, reads.probe::<ClustersInUse>(id), reads))
    }
}

/// The users of certificates that are withheld.
pub struct RefusedSecrets;

impl Table for RefusedSecrets {
    type Key = SecretId;
    type Value = Users;
    const NAME: &'static str = "users of withheld secrets";
}

impl Derived for RefusedSecrets {
    fn compute(&self, id: &SecretId, reads: &mut Reads<'_>) -> Option<Users> {
        let refused = reads.get::<SecretResources>(id)?.refused.as_ref()?;
        Some(users(refused, reads.probe::<SecretsAskedFor>(id), reads))
    }
}

/// Services that something is wrong with.
pub struct FaultyServices;

impl Index for FaultyServices {
    type Of = Known;
    type Key = ObjectRef;
    const NAME: &'static str = "faulty";

    fn keys(_: &Named, service: &Service) -> impl IntoIterator<Item = ObjectRef> {
        service.verdicts.iter().map(|verdict| verdict.origin.object.clone()).collect::<Vec<_>>()
    }
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<FaultyServices>();
    pipeline.derived(RefusedClusters).each::<ClusterResources>();
    pipeline.derived(RefusedSecrets).each::<SecretResources>();
    pipeline.index::<Blamed<RefusedClusters>>().index::<Blamed<RefusedSecrets>>();
    pipeline
        .derived(Verdicts)
        .per::<UnitsBySubject>()
        .per::<RouteLosers>()
        .per::<TlsLosers>()
        .per::<FaultyServices>()
        .per::<Blamed<ClusterResources>>()
        .per::<Blamed<EndpointResources>>()
        .per::<Blamed<SecretResources>>()
        .per::<Blamed<HostSecretResources>>()
        .per::<Blamed<AuthorityResources>>()
        .output();
}

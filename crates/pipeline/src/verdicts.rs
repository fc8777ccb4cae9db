//! Verdicts: for each object that Sesame serves or found fault with, everything there is to say about it.

use crate::{
    holds::{Blamed, Holdable, Refused},
    hosts::{RouteLosers, TlsHosts, TlsLosers, VirtualHosts},
    objects::Named,
    packing::{EncodedHosts, ScopeResources},
    resources::{
        AuthorityResources, ClusterResources, EndpointResources, HostSecretResources, SecretResources, TcpResources,
    },
    services::Known,
    units::{ClustersInUse, SecretsAskedFor, Units, UnitsBySubject},
};
use engine::{Derived, Index, Reads, Table};
use kinds::ObjectKey;
use model::{ClusterId, Code, ObjectRef, SecretId, Verdict};
use resolve::Service;

/// All verdicts about an object, sorted, each once; an empty list says that all is well.
pub struct Verdicts;

impl Table for Verdicts {
    type Key = ObjectRef;
    type Value = Vec<Verdict>;
    const NAME: &'static str = "verdicts";
}

impl Derived for Verdicts {
    fn compute(&self, object: &ObjectRef, reads: &mut Reads<'_>) -> Option<Vec<Verdict>> {
        let mut all = Vec::new();
        let (mut part, mut used) = (false, false);
        for name in reads.probe::<UnitsBySubject>(object) {
            let unit = reads.get::<Units>(name);
            all.extend(unit.into_iter().flat_map(|unit| unit.verdicts.iter().cloned()));
            match unit {
                Some(unit) if unit.subject == *object => part = unit.part,
                _ => used = true,
            }
            if let Some(why) = reads.held::<Units>(name) {
                all.push(Verdict::new(Code::TranslationFailed, object.at(""), why));
            }
        }
        if part && !used {
            all.push(Verdict::new(Code::ProxyOrphaned, object.at("spec"), "no root includes it"));
        }
        for key in reads.probe::<RouteLosers>(object) {
            all.extend(reads.get::<VirtualHosts>(key).into_iter().flat_map(|host| host.lost.iter().cloned()));
        }
        for key in reads.probe::<TlsLosers>(object) {
            all.extend(reads.get::<TlsHosts>(key).into_iter().flat_map(|host| host.lost.iter().cloned()));
        }
        withheld::<EncodedHosts>(object, reads, &mut all);
        withheld::<ScopeResources>(object, reads, &mut all);
        withheld::<TcpResources>(object, reads, &mut all);
        withheld::<ClusterResources>(object, reads, &mut all);
        withheld::<RefusedClusters>(object, reads, &mut all);
        withheld::<EndpointResources>(object, reads, &mut all);
        withheld::<SecretResources>(object, reads, &mut all);
        withheld::<HostSecretResources>(object, reads, &mut all);
        withheld::<AuthorityResources>(object, reads, &mut all);
        withheld::<RefusedSecrets>(object, reads, &mut all);
        for name in reads.probe::<FaultyServices>(object) {
            all.extend(reads.get::<Known>(name).into_iter().flat_map(|service| service.verdicts.iter().cloned()));
        }
        all.retain(|verdict| verdict.origin.object == *object);
        all.sort();
        all.dedup();
        Some(all)
    }
}

/// What is withheld of what was made from an object.
fn withheld<T: Table>(object: &ObjectRef, reads: &mut Reads<'_>, all: &mut Vec<Verdict>)
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

//! Verdicts: for each object that Sesame serves or found fault with, everything there is to say about it.

use crate::{
    hosts::{RouteLosers, TlsHosts, TlsLosers, VirtualHosts},
    objects::Named,
    services::Known,
    units::{Units, UnitsBySubject},
};
use engine::{Derived, Index, Reads, Table};
use model::{Code, ObjectRef, Verdict};
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
        for name in reads.probe::<FaultyServices>(object) {
            all.extend(reads.get::<Known>(name).into_iter().flat_map(|service| service.verdicts.iter().cloned()));
        }
        all.retain(|verdict| verdict.origin.object == *object);
        all.sort();
        all.dedup();
        Some(all)
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
    pipeline
        .derived(Verdicts)
        .per::<UnitsBySubject>()
        .per::<RouteLosers>()
        .per::<TlsLosers>()
        .per::<FaultyServices>()
        .output();
}

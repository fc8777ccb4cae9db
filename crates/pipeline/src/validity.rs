//! Which certificates, client CAs and CRLs are out of date: the part of the state that depends on time, kept as an input.
//!
//! Nothing here has a clock. Whoever feeds the pipeline says what time it is, and is told when to say it again: when the
//! next certificate that a host shows begins or ceases to be valid. Only certificates whose state changes are touched, so
//! that a passing second costs nothing, and with equal objects and an equal time a build from nothing gives the same.

use crate::{
    certificates::{CaBundles, Certificates, Crls},
    hosts::TlsHosts,
    translations::HostKey,
};
use assemble::tls::Assembled;
use engine::{Derived, Engine, Index, Input, Reads, Table};
use model::{
    ObjectRef,
    tls::{Termination, TlsMode},
};
use resolve::certificate::{OutOfDate, Validity};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Something that is valid for a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expiring {
    /// The certificate in a Secret.
    Certificate(ObjectRef),
    /// The CRLs in a Secret.
    Crls(ObjectRef),
    /// The CAs of client certificates in a Secret or ConfigMap.
    ClientCa(ObjectRef),
}

impl Expiring {
    /// What the connections of a TLS host depend on.
    pub fn of(mode: &TlsMode) -> impl Iterator<Item = Self> {
        let termination = mode.termination();
        let certificate = termination.and_then(|termination| termination.certificate.secret());
        let certificate = certificate.cloned().map(Expiring::Certificate).into_iter();
        certificate.chain(termination.and_then(Self::crls)).chain(termination.into_iter().flat_map(Self::client_cas))
    }

    fn client_cas(termination: &Termination) -> impl Iterator<Item = Self> {
        let bundle = termination.clients.as_ref().and_then(|clients| clients.trust.ca());
        bundle.into_iter().flat_map(|bundle| bundle.objects()).cloned().map(Expiring::ClientCa)
    }

    fn crls(termination: &Termination) -> Option<Self> {
        Some(Expiring::Crls(termination.clients.as_ref()?.trust.crl()?.crls.clone()))
    }
}

/// TLS hosts by what their connections depend on.
pub struct HostsByExpiring;

impl Index for HostsByExpiring {
    type Of = TlsHosts;
    type Key = Expiring;
    const NAME: &'static str = "by certificate and CRLs";

    fn keys(_: &HostKey, host: &Assembled) -> impl IntoIterator<Item = Expiring> {
        // On demand, the chain does not say which certificate the host shows.
        let own = host.certificate.iter().filter_map(|certificate| certificate.secret());
        own.cloned().map(Expiring::Certificate).chain(Expiring::of(&host.mode)).collect::<BTreeSet<_>>()
    }
}

/// When each certificate that hosts show is valid, and the CAs and CRLs of those that validate clients. Each CA of a bundle has a
/// period of its own: one that has expired hides none that is about to.
pub struct ValidityPeriods;

impl Table for ValidityPeriods {
    type Key = Expiring;
    type Value = Vec<Validity>;
    const NAME: &'static str = "validity of certificates";
}

impl Derived for ValidityPeriods {
    fn compute(&self, expiring: &Expiring, reads: &mut Reads<'_>) -> Option<Vec<Validity>> {
        Some(match expiring {
            Expiring::Certificate(secret) => vec![reads.get::<Certificates>(secret)?.as_ref().as_ref().ok()?.validity],
            Expiring::ClientCa(object) => {
                resolve::ca::validity(reads.get::<CaBundles>(object)?.as_ref().as_ref().ok()?)
            }
            Expiring::Crls(secret) => vec![reads.get::<Crls>(secret)?.as_ref().as_ref().ok()?.validity],
        })
    }
}

/// What is wrong at a time: of each sort the first, however many there are.
fn out_of_date(periods: &[Validity], now: i64) -> Vec<OutOfDate> {
    let states: BTreeSet<OutOfDate> = periods.iter().filter_map(|period| period.out_of_date(now)).collect();
    let mut states: Vec<OutOfDate> = states.into_iter().collect();
    states.dedup_by_key(|state| std::mem::discriminant(state));
    states
}

fn next_change(periods: &[Validity], now: i64) -> Option<i64> {
    periods.iter().filter_map(|period| period.next_change(now)).min()
}

/// The certificates, client CAs and CRLs that are out of date, or soon will be.
pub struct OutOfDateSecrets;

impl Table for OutOfDateSecrets {
    type Key = Expiring;
    type Value = Vec<OutOfDate>;
    const NAME: &'static str = "certificates out of date";
}

impl Input for OutOfDateSecrets {}

/// The time, and when the state of which certificate or CRLs changes next.
#[derive(Default)]
pub(crate) struct Clock {
    now: Option<i64>,
    periods: HashMap<Expiring, Arc<Vec<Validity>>>,
    due: BTreeSet<(i64, Expiring)>,
    /// When each certificate ends.
    ends: BTreeSet<(i64, ObjectRef)>,
}

impl Clock {
    /// Takes what time it is, once nothing waits; says whether anything is out of date that was not, or the other way
    /// round.
    pub fn set(&mut self, engine: &mut Engine, now: i64) -> bool {
        let changes = engine.changes::<ValidityPeriods>();
        let mut touched: BTreeSet<Expiring> = changes.gone.into_iter().collect();
        for id in &touched {
            self.forget(id);
        }
        for (id, periods) in changes.set {
            self.forget(&id);
            if let Expiring::Certificate(secret) = &id {
                self.ends.extend(periods.iter().map(|period| (period.not_after, secret.clone())));
            }
            self.periods.insert(id.clone(), periods);
            touched.insert(id);
        }
        if self.now.is_some_and(|before| now < before) {
            touched.extend(self.periods.keys().cloned());
        }
        while self.due().is_some_and(|at| at <= now) {
            touched.extend(self.due.pop_first().map(|(_, id)| id));
        }
        let before = self.now.replace(now).unwrap_or(now);
        let mut changed = false;
        for id in touched {
            self.forget_due(&id, before);
            let periods = self.periods.get(&id).map(|periods| periods.as_slice()).unwrap_or_default();
            if let Some(at) = next_change(periods, now) {
                self.due.insert((at, id.clone()));
            }
            let states = out_of_date(periods, now);
            changed |= match states.is_empty() {
                false => engine.set::<OutOfDateSecrets>(&id, states),
                true => engine.remove::<OutOfDateSecrets>(&id),
            };
        }
        changed
    }

    /// The Secrets whose certificates end first, and when.
    pub fn soonest_ends(&self, most: usize) -> Vec<(ObjectRef, i64)> {
        self.ends.iter().take(most).map(|(at, secret)| (secret.clone(), *at)).collect()
    }

    /// When the time is to be said again.
    pub fn due(&self) -> Option<i64> {
        self.due.first().map(|(at, _)| *at)
    }

    fn forget(&mut self, id: &Expiring) {
        self.forget_due(id, self.now.unwrap_or(i64::MIN));
        if let (Some(periods), Expiring::Certificate(secret)) = (self.periods.remove(id), id) {
            for period in periods.iter() {
                self.ends.remove(&(period.not_after, secret.clone()));
            }
        }
    }

    fn forget_due(&mut self, id: &Expiring, before: i64) {
        if let Some(at) = self.periods.get(id).and_then(|periods| next_change(periods, before)) {
            self.due.remove(&(at, id.clone()));
        }
    }
}

/// Declares the input.
pub fn declare_input(pipeline: &mut engine::Pipeline) {
    pipeline.input::<OutOfDateSecrets>();
}

/// Declares the table that asks hosts.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(ValidityPeriods).per::<HostsByExpiring>().output();
}

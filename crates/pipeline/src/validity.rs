//! Which certificates are out of date: the part of the state that depends on time, kept as an input.
//!
//! Nothing here has a clock. Whoever feeds the pipeline says what time it is, and is told when to say it again: when the
//! next certificate that a host shows begins or ceases to be valid. Only certificates whose state changes are touched, so
//! that a passing second costs nothing, and with equal objects and an equal time a build from nothing gives the same.

use crate::{certificates::Certificates, hosts::HostsByCertificate};
use engine::{Derived, Engine, Input, Reads, Table};
use model::CertificateRef;
use resolve::certificate::{OutOfDate, Validity};
use std::collections::{BTreeSet, HashMap};

/// When each certificate that hosts show is valid.
pub struct ValidityPeriods;

impl Table for ValidityPeriods {
    type Key = CertificateRef;
    type Value = Validity;
    const NAME: &'static str = "validity of certificates";
}

impl Derived for ValidityPeriods {
    fn compute(&self, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<Validity> {
        Some(reads.get::<Certificates>(certificate.secret()?)?.as_ref().as_ref().ok()?.validity)
    }
}

/// The certificates that are out of date.
pub struct OutOfDateCertificates;

impl Table for OutOfDateCertificates {
    type Key = CertificateRef;
    type Value = OutOfDate;
    const NAME: &'static str = "certificates out of date";
}

impl Input for OutOfDateCertificates {}

/// The time, and when the state of which certificate changes next.
#[derive(Default)]
pub(crate) struct Clock {
    now: Option<i64>,
    periods: HashMap<CertificateRef, Validity>,
    due: BTreeSet<(i64, CertificateRef)>,
}

impl Clock {
    /// Takes what time it is, once nothing waits; says whether anything is out of date that was not, or the other way
    /// round.
    pub fn set(&mut self, engine: &mut Engine, now: i64) -> bool {
        let changes = engine.changes::<ValidityPeriods>();
        let mut touched: BTreeSet<CertificateRef> = changes.gone.into_iter().collect();
        for id in &touched {
            self.forget(id);
        }
        for (id, validity) in changes.set {
            self.forget(&id);
            self.periods.insert(id.clone(), *validity);
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
            let validity = self.periods.get(&id);
            if let Some(at) = validity.and_then(|validity| validity.next_change(now)) {
                self.due.insert((at, id.clone()));
            }
            changed |= match validity.and_then(|validity| validity.out_of_date(now)) {
                Some(state) => engine.set::<OutOfDateCertificates>(&id, state),
                None => engine.remove::<OutOfDateCertificates>(&id),
            };
        }
        changed
    }

    /// When the time is to be said again.
    pub fn due(&self) -> Option<i64> {
        self.due.first().map(|(at, _)| *at)
    }

    fn forget(&mut self, id: &CertificateRef) {
        self.forget_due(id, self.now.unwrap_or(i64::MIN));
        self.periods.remove(id);
    }

    fn forget_due(&mut self, id: &CertificateRef, before: i64) {
        if let Some(at) = self.periods.get(id).and_then(|validity| validity.next_change(before)) {
            self.due.remove(&(at, id.clone()));
        }
    }
}

/// Declares the input.
pub fn declare_input(pipeline: &mut engine::Pipeline) {
    pipeline.input::<OutOfDateCertificates>();
}

/// Declares the table that asks hosts.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(ValidityPeriods).per::<HostsByCertificate>().output();
}

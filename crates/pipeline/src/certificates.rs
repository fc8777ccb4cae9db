//! The certificates, CA bundles and CRLs in Secrets, and those that Sesame signs itself on a machine without a cluster.

use crate::{
    hosts::HostsByCertificate,
    objects::{ConfigMaps, Delegations, DelegationsBySecret, Secrets},
};
use engine::{Derived, Input, Reads, Table};
use kinds::kind;
use model::{CertificateRef, Host, ObjectRef, tls::KeyPair};
use resolve::{Certificate, Rejection, RevocationLists};
use std::sync::Arc;

/// What each Secret holds: a certificate, or the reason why it cannot be one.
pub struct Certificates;

impl Table for Certificates {
    type Key = ObjectRef;
    type Value = Result<Certificate, Rejection>;
    const NAME: &'static str = "certificates";
}

impl Derived for Certificates {
    fn compute(&self, id: &ObjectRef, reads: &mut Reads<'_>) -> Option<Result<Certificate, Rejection>> {
        Some(resolve::certificate::read(reads.get::<Secrets>(id)?))
    }
}

/// The CA bundle in each Secret and ConfigMap, or the reason why there is none. In the lane, as the clusters are that need it.
pub struct CaBundles;

impl Table for CaBundles {
    type Key = ObjectRef;
    type Value = Result<Arc<str>, Rejection>;
    const NAME: &'static str = "CA bundles";
}

impl Derived for CaBundles {
    fn compute(&self, id: &ObjectRef, reads: &mut Reads<'_>) -> Option<Result<Arc<str>, Rejection>> {
        if id.kind == kind::CONFIG_MAP {
            return Some(resolve::ca::read_config_map(reads.get::<ConfigMaps>(id)?));
        }
        Some(resolve::ca::read(reads.get::<Secrets>(id)?))
    }
}

/// The CRLs in each Secret, or the reason why there are none.
pub struct Crls;

impl Table for Crls {
    type Key = ObjectRef;
    type Value = Result<RevocationLists, Rejection>;
    const NAME: &'static str = "CRLs";
}

impl Derived for Crls {
    fn compute(&self, id: &ObjectRef, reads: &mut Reads<'_>) -> Option<Result<RevocationLists, Rejection>> {
        Some(resolve::crl::read(reads.get::<Secrets>(id)?))
    }
}

/// Certificates that were made for hosts without a Secret. Making one is not a pure function, so they are an input.
pub struct SelfSigned;

impl Table for SelfSigned {
    type Key = Host;
    type Value = KeyPair;
    const NAME: &'static str = "self-signed certificates";
}

impl Input for SelfSigned {}

/// The certificates that hosts wait for somebody to sign: a row for each until it was made.
pub struct Unsigned;

impl Table for Unsigned {
    type Key = CertificateRef;
    type Value = ();
    const NAME: &'static str = "unsigned certificates";
}

impl Derived for Unsigned {
    fn compute(&self, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<()> {
        let CertificateRef::SelfSigned(host) = certificate else { return None };
        reads.get::<SelfSigned>(host).is_none().then_some(())
    }
}

/// Whether the owner of a Secret lets a namespace use it.
pub fn is_delegated(id: &ObjectRef, to: &str, reads: &mut Reads<'_>) -> bool {
    let keys: Vec<_> = reads.probe::<DelegationsBySecret>(id).collect();
    keys.into_iter()
        .any(|key| reads.get::<Delegations>(key).is_some_and(|object| resolve::delegation::allows(object, id, to)))
}

/// Declares the tables that hosts ask.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.input::<SelfSigned>();
    pipeline.derived(Certificates).each::<Secrets>().fans_out();
    pipeline.derived(CaBundles).each::<Secrets>().each::<ConfigMaps>().lane().fans_out();
    pipeline.derived(Crls).each::<Secrets>().lane().fans_out();
}

/// Declares the one that asks hosts.
pub fn declare_unsigned(pipeline: &mut engine::Pipeline) {
    pipeline.derived(Unsigned).per::<HostsByCertificate>().output();
}

//! Which client certificates hosts accept: their CAs and CRLs, as one secret for each way to choose them.
//!
//! In: TLS hosts, CA bundles, CRLs. Out: a secret for each trust of a fleet, and the CAs that lack a CRL. A new CA or CRL changes the
//! secret, and no listener. As long as a host refers to one, there is a secret: where a CA or a CRL is gone meanwhile, or withheld,
//! one that accepts no certificate. Envoy would keep what it has if the secret was removed.

use crate::{
    certificates::{CaBundles, Crls},
    hosts::HostsByClientTrust,
    resources::{Resource, authors},
    withheld::WithheldRows,
};
use engine::{Derived, Index, Reads, Table};
use model::{
    FleetId, ObjectRef,
    cluster::CaBundle,
    tls::client_validation::{ClientTrust, RevocationCheck},
};
use prost::Message;
use resolve::RevocationLists;
use std::{collections::BTreeSet, sync::Arc};
use xds::Kind;

/// A trust of a fleet.
pub type ClientTrustKey = (FleetId, ClientTrust);

/// The secrets.
pub struct ClientTrustResources;

impl Table for ClientTrustResources {
    type Key = ClientTrustKey;
    type Value = Resource;
    const NAME: &'static str = "client trust resources";
}

impl Derived for ClientTrustResources {
    fn compute(&self, key: &ClientTrustKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let (fleet, trust) = key;
        let name = client_trust_name(key);
        let message = match material(trust, reads) {
            Some((cas, crls)) => envoy::secret::clients(trust, cas.as_deref(), crls.as_deref()),
            None => envoy::secret::no_clients(trust),
        };
        let mut resource = Resource::new(name, &message).in_fleet(fleet);
        resource.origin = trust.ca().map(|ca| Arc::new(ca.first().clone()));
        let nobody = || envoy::secret::no_clients(trust).encode_to_vec().into();
        let resource = resource.or_stand_in(Kind::Secret, Vec::new(), Some(&nobody), reads);
        Some(resource.reported_on(|| users(key, reads)))
    }
}

/// The name of a secret.
pub fn client_trust_name((_, trust): &ClientTrustKey) -> String {
    envoy::name::client_trust(trust)
}

/// The CAs and the CRLs that a trust names; nothing if either is not there.
fn material(trust: &ClientTrust, reads: &mut Reads<'_>) -> Option<(Option<String>, Option<Arc<str>>)> {
    let cas = match trust.ca() {
        Some(bundle) => Some(cas(bundle, reads)?),
        None => None,
    };
    let crls = match trust.crl() {
        Some(check) => Some(crls(check, reads)?.pem.clone()),
        None => None,
    };
    Some((cas, crls))
}

/// The certificates of a bundle. One that is gone meanwhile is not trusted any more; the others are.
fn cas(bundle: &CaBundle, reads: &mut Reads<'_>) -> Option<String> {
    let mut pem = String::new();
    for object in bundle.objects() {
        if let Some(Ok(certificates)) = reads.get::<CaBundles>(object).map(|it| it.as_ref().as_ref()) {
            pem.push_str(certificates);
        }
    }
    (!pem.is_empty()).then_some(pem)
}

fn crls<'r>(check: &RevocationCheck, reads: &mut Reads<'r>) -> Option<&'r RevocationLists> {
    reads.get::<Crls>(&check.crls)?.as_ref().as_ref().ok()
}

/// The objects whose hosts accept these certificates.
fn users(key: &ClientTrustKey, reads: &mut Reads<'_>) -> Vec<ObjectRef> {
    let hosts: Vec<_> = reads.probe::<HostsByClientTrust>(key).cloned().collect();
    let users: BTreeSet<ObjectRef> = hosts.iter().flat_map(|host| authors(host, reads)).collect();
    users.into_iter().collect()
}

/// Trusts by themselves, whatever the fleet.
pub struct TrustsWithCrls;

impl Index for TrustsWithCrls {
    type Of = ClientTrustResources;
    type Key = ClientTrust;
    const NAME: &'static str = "with CRLs";

    fn keys((_, trust): &ClientTrustKey, _: &Resource) -> impl IntoIterator<Item = ClientTrust> {
        trust.crl().map(|_| trust.clone())
    }
}

/// The CAs of each trust for which there is no CRL, by their subjects: certificates that they signed are refused.
pub struct CasWithoutCrl;

impl Table for CasWithoutCrl {
    type Key = ClientTrust;
    type Value = Vec<Box<str>>;
    const NAME: &'static str = "CAs without a CRL";
}

impl Derived for CasWithoutCrl {
    fn compute(&self, trust: &ClientTrust, reads: &mut Reads<'_>) -> Option<Vec<Box<str>>> {
        let lists = crls(trust.crl()?, reads)?.clone();
        let names = resolve::crl::uncovered(&cas(trust.ca()?, reads)?, &lists);
        (!names.is_empty()).then_some(names)
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.derived(ClientTrustResources).per::<HostsByClientTrust>().output();
    pipeline.index::<WithheldRows<ClientTrustResources>>();
    pipeline.derived(CasWithoutCrl).per::<TrustsWithCrls>();
}

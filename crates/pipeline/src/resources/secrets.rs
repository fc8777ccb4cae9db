//! Certificates with their keys: under the names of their Secrets, and, on demand, under the names of hosts.
//!
//! In: certificates that chains show and clusters present, and hosts with certificates on demand. Out: a secret for each.

use super::{Resource, authors};
use crate::{
    certificates::{Certificates, SelfSigned},
    hosts::TlsHosts,
    on_demand, packing, partition,
    settings::Packing,
    translations::HostKey,
};
use engine::{Derived, Reads, Table};
use envoy::name;
use model::{CertificateRef, ObjectRef};
use std::sync::Arc;
use xds::Kind;

/// Certificates that chains show and clusters present, under the names of their Secrets.
pub struct SecretResources;

impl Table for SecretResources {
    type Key = CertificateRef;
    type Value = Resource;
    const NAME: &'static str = "secret resources";
}

impl Derived for SecretResources {
    fn compute(&self, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<Resource> {
        Some(shown(name::secret(certificate), certificate, reads)?.unless_withheld(Kind::Secret, reads))
    }
}

/// Certificates that hosts show on demand, under the names of the hosts.
pub struct HostSecretResources(pub(super) Packing);

impl Table for HostSecretResources {
    type Key = HostKey;
    type Value = Resource;
    const NAME: &'static str = "host secret resources";
}

impl Derived for HostSecretResources {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let host = reads.get::<TlsHosts>(key)?;
        let termination = host.mode.http().filter(|termination| termination.is_on_demand())?;
        let mut resource = shown(host_secret(key), host.certificate.as_ref()?, reads)?.in_fleet(key.0.fleet());
        let listed_by = on_demand::listed_by(key, termination, reads);
        resource.refs = packing::scope_of(key, self.0, reads).into_iter().chain(listed_by).collect();
        let origin = resource.origin.iter().map(|origin| ObjectRef::clone(origin));
        let authors = origin.chain(authors(key, reads)).collect();
        Some(resource.or_stand_in(Kind::Secret, authors, None, reads))
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

/// A proxy that asks for a certificate by name does not say at which listener: only one of a fleet has such hosts.
pub(super) fn host_secret((_, host): &HostKey) -> String {
    name::host_secret(host)
}

fn shown(name: String, certificate: &CertificateRef, reads: &mut Reads<'_>) -> Option<Resource> {
    let (pair, origin) = match certificate {
        CertificateRef::OnDemand => return None,
        CertificateRef::SelfSigned(host) => (&**reads.get::<SelfSigned>(host)?, None),
        CertificateRef::Secret(id) => {
            (&reads.get::<Certificates>(id)?.as_ref().as_ref().ok()?.pair, Some(Arc::new(id.clone())))
        }
    };
    let message = envoy::secret::certificate(&name, pair);
    Some(Resource { origin, ..Resource::new(name, &message) })
}

//! The door through which a dialect looks at the tables: every look is a read that the engine tracks.

use crate::{
    certificates::{self, Bundles, Certificates},
    objects::{HttpProxies, IngressClasses, Named, RootsByFqdn},
    services::Known,
    units::DefaultClass,
};
use dialect_httpproxy::HttpProxyView;
use dialect_ingress::IngressView;
use engine::Reads;
use kinds::{HttpProxy, IngressClass, Kind, ObjectKey, Vendor};
use model::SecretId;
use resolve::{Certificate, No, Service, View};
use std::sync::Arc;

/// The tables, as dialects see them.
pub struct Door<'d, 'r> {
    reads: &'d mut Reads<'r>,
    secrets: Vec<SecretId>,
}

impl<'d, 'r> Door<'d, 'r> {
    /// A door for one computation.
    pub fn new(reads: &'d mut Reads<'r>) -> Self {
        Self { reads, secrets: Vec::new() }
    }

    /// The Secrets that were looked for, whether they were there or not; sorted, each once.
    pub fn into_secrets(mut self) -> Vec<SecretId> {
        self.secrets.sort_unstable();
        self.secrets.dedup();
        self.secrets
    }
}

impl View for Door<'_, '_> {
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        self.reads.get::<Known>(&Named::new(namespace, name)).cloned()
    }

    fn certificate(&mut self, id: &SecretId) -> Option<Arc<Result<Certificate, No>>> {
        self.secrets.push(id.clone());
        self.reads.get::<Certificates>(id).cloned()
    }

    fn ca(&mut self, id: &SecretId) -> Option<Arc<Result<Arc<str>, No>>> {
        self.secrets.push(id.clone());
        self.reads.get::<Bundles>(id).cloned()
    }

    fn delegated(&mut self, id: &SecretId, to: &str) -> bool {
        certificates::is_delegated(id, to, self.reads)
    }
}

impl IngressView for Door<'_, '_> {
    fn class(&mut self, name: &str) -> Option<Arc<IngressClass>> {
        self.reads.get::<IngressClasses>(&Named::new("", name)).cloned()
    }

    fn default_class(&mut self) -> Option<Arc<IngressClass>> {
        let name = self.reads.get::<DefaultClass>(&())?;
        self.reads.get::<IngressClasses>(name).cloned()
    }
}

impl HttpProxyView for Door<'_, '_> {
    fn proxy(&mut self, vendor: Vendor, namespace: &str, name: &str) -> Option<Arc<HttpProxy>> {
        self.reads.get::<HttpProxies>(&ObjectKey::new(Kind::HttpProxy(vendor), namespace, name)).cloned()
    }

    fn roots(&mut self, fqdn: &str) -> Vec<(Vendor, Arc<HttpProxy>)> {
        let keys: Vec<_> = self.reads.probe::<RootsByFqdn>(&fqdn.into()).collect();
        let roots = keys.into_iter().filter_map(|key| match key.kind {
            Kind::HttpProxy(vendor) => Some((vendor, self.reads.get::<HttpProxies>(key)?.clone())),
            _ => None,
        });
        roots.collect()
    }
}

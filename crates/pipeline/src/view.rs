//! The view through which a dialect looks at the tables: every look is a read that the engine tracks.

use crate::{
    certificates::{self, CaBundles, Certificates, Crls},
    extensions::KnownExtensions,
    objects::{GrantsBySource, Objects, Secrets},
    secret_refs::{FetchResult, FetchResults},
    services::KnownServices,
    settings::ForResolve,
};
use engine::Reads;
use kinds::{Kind, ReferenceGrant, Secret, Typed, kind};
use model::{Code, ObjectRef};
use resolve::{Certificate, KnownExtension, Rejection, RevocationLists, Service, View};
use std::sync::Arc;

/// The tables, as dialects see them.
pub struct TableView<'d, 'r> {
    reads: &'d mut Reads<'r>,
    fetched_secrets: bool,
    secrets: Vec<ObjectRef>,
}

impl<'d, 'r> TableView<'d, 'r> {
    /// A view for one computation, and whether Secrets are [brought on reference](crate::Settings::fetched_secrets).
    pub fn new(reads: &'d mut Reads<'r>, fetched_secrets: bool) -> Self {
        Self { reads, fetched_secrets, secrets: Vec::new() }
    }

    /// An object.
    pub fn get<T: Typed>(&mut self, object: &ObjectRef) -> Option<Arc<T>> {
        self.reads.get::<Objects<T>>(object).cloned()
    }

    /// The tables, for what dialects look up by indexes of their own.
    pub fn reads(&mut self) -> &mut Reads<'r> {
        self.reads
    }

    /// Asks for a Secret that somebody else looked for.
    pub fn want(&mut self, secret: &ObjectRef) {
        self.secrets.push(secret.clone());
    }

    /// The Secrets that were looked for, whether they were there or not; sorted, each once.
    pub fn into_secrets(mut self) -> Vec<ObjectRef> {
        self.secrets.sort_unstable();
        self.secrets.dedup();
        self.secrets
    }

    /// What is read of a Secret; nothing if it does not exist.
    pub fn secret<T>(
        &mut self,
        id: &ObjectRef,
        read: impl FnOnce(&Secret) -> Result<T, Rejection>,
    ) -> Option<Result<T, Rejection>> {
        self.secrets.push(id.clone());
        match self.reads.get::<Secrets>(id) {
            Some(secret) => Some(read(secret)),
            None => self.absent(id).and_then(Arc::into_inner),
        }
    }

    /// What a Secret holds that is not there: nothing, or the reason why that is not known.
    fn absent<T>(&mut self, id: &ObjectRef) -> Option<Arc<Result<T, Rejection>>> {
        if !self.fetched_secrets {
            return None;
        }
        let rejection = match self.reads.get::<FetchResults>(id).map(|answer| &**answer) {
            Some(FetchResult::Found | FetchResult::Absent) => return None,
            Some(FetchResult::NotReadable(why)) => Rejection::new(Code::SecretNotReadable, format!("{id}: {why}")),
            None => Rejection::new(Code::SecretPending, format!("{id} has not been read yet")),
        };
        Some(Arc::new(Err(rejection)))
    }
}

impl View for TableView<'_, '_> {
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        self.reads.get::<KnownServices>(&ObjectRef::new(kind::SERVICE, namespace, name)).cloned()
    }

    fn certificate(&mut self, id: &ObjectRef) -> Option<Arc<Result<Certificate, Rejection>>> {
        self.secrets.push(id.clone());
        self.reads.get::<Certificates>(id).cloned().or_else(|| self.absent(id))
    }

    fn ca(&mut self, id: &ObjectRef) -> Option<Arc<Result<Arc<str>, Rejection>>> {
        self.secrets.push(id.clone());
        self.reads.get::<CaBundles>(id).cloned().or_else(|| self.absent(id))
    }

    fn crls(&mut self, id: &ObjectRef) -> Option<Arc<Result<RevocationLists, Rejection>>> {
        self.secrets.push(id.clone());
        self.reads.get::<Crls>(id).cloned().or_else(|| self.absent(id))
    }

    fn extension(&mut self, id: &ObjectRef) -> Option<Arc<KnownExtension>> {
        self.reads.get::<KnownExtensions>(id).cloned()
    }

    fn grants(&mut self, of: &str, from: Kind, namespace: &str) -> Vec<Arc<ReferenceGrant>> {
        let keys: Vec<_> = self.reads.probe::<GrantsBySource>(&(of.into(), from, namespace.into())).collect();
        keys.into_iter().filter_map(|key| self.get(key)).collect()
    }

    fn is_own_namespace(&mut self, namespace: &str) -> bool {
        self.reads.get::<ForResolve>(&()).is_some_and(|settings| *settings.namespace == *namespace)
    }

    fn delegated(&mut self, id: &ObjectRef, to: &str) -> bool {
        certificates::is_delegated(id, to, self.reads)
    }
}

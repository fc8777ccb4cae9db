//! The door through which a dialect looks at the tables: every look is a read that the engine tracks.

use crate::{
    certificates::Certificates,
    objects::{Delegations, DelegationsBySecret, IngressClasses, Named},
    services::Known,
    units::DefaultClass,
};
use dialect_ingress::IngressView;
use engine::Reads;
use kinds::IngressClass;
use model::SecretId;
use resolve::{Certificate, No, Service, View};
use std::sync::Arc;

/// The tables, as dialects see them.
pub struct Door<'d, 'r>(pub &'d mut Reads<'r>);

impl View for Door<'_, '_> {
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        self.0.get::<Known>(&Named::new(namespace, name)).cloned()
    }

    fn certificate(&mut self, id: &SecretId) -> Option<Arc<Result<Certificate, No>>> {
        self.0.get::<Certificates>(id).cloned()
    }

    fn delegated(&mut self, id: &SecretId, to: &str) -> bool {
        let keys: Vec<_> = self.0.probe::<DelegationsBySecret>(id).collect();
        keys.into_iter()
            .any(|key| self.0.get::<Delegations>(key).is_some_and(|object| resolve::delegation::allows(object, id, to)))
    }
}

impl IngressView for Door<'_, '_> {
    fn class(&mut self, name: &str) -> Option<Arc<IngressClass>> {
        self.0.get::<IngressClasses>(&Named::new("", name)).cloned()
    }

    fn default_class(&mut self) -> Option<Arc<IngressClass>> {
        let name = self.0.get::<DefaultClass>(&())?;
        self.0.get::<IngressClasses>(name).cloned()
    }
}

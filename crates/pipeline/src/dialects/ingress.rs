//! Ingress, wired: its classes, and which of them is the default.

use super::Dialect;
use crate::{objects::Objects, settings::ForIngresses, view::TableView};
use dialect_ingress::{IngressView, budget, translate};
use engine::{Derived, Reads, Table};
use kinds::{Ingress, IngressClass, Kind, Typed, kind};
use model::{ObjectRef, Translation};
use std::sync::Arc;

/// Ingresses.
pub struct IngressDialect;

impl Dialect for IngressDialect {
    fn translates(&self) -> &'static [Kind] {
        Ingress::KINDS
    }

    fn looks_up(&self) -> &'static [Kind] {
        IngressClass::KINDS
    }

    fn declare(&self, pipeline: &mut engine::Pipeline, _: bool) {
        pipeline.derived(DefaultClass).always(()).fans_out();
    }

    fn translate(&self, object: &ObjectRef, view: &mut TableView<'_, '_>) -> Option<Translation> {
        let ingress = view.get::<Ingress>(object)?;
        let settings = view.reads().get::<ForIngresses>(&())?;
        translate(&ingress, view, settings)
    }

    fn exceeds(&self, object: &ObjectRef, routes: usize, view: &mut TableView<'_, '_>) -> bool {
        view.get::<Ingress>(object).is_some_and(|ingress| budget::exceeds(&ingress, routes))
    }
}

/// The class of Ingresses that name none: of several defaults the youngest, as Kubernetes chooses.
pub struct DefaultClass;

impl Table for DefaultClass {
    type Key = ();
    type Value = ObjectRef;
    const NAME: &'static str = "default ingress class";
}

impl Derived for DefaultClass {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<ObjectRef> {
        let names = reads.scan::<Objects<IngressClass>>();
        let classes = names.into_iter().filter_map(|name| {
            let class = reads.get::<Objects<IngressClass>>(name)?;
            class.is_default().then(|| (std::cmp::Reverse(class.meta.created), name))
        });
        classes.min().map(|(_, name)| name.clone())
    }
}

impl IngressView for TableView<'_, '_> {
    fn class(&mut self, name: &str) -> Option<Arc<IngressClass>> {
        self.get(&ObjectRef::new(kind::INGRESS_CLASS, "", name))
    }

    fn default_class(&mut self) -> Option<Arc<IngressClass>> {
        let name = self.reads().get::<DefaultClass>(&())?;
        self.get(name)
    }
}

//! Which object, and which field of it: the identity that every crate shares.
//!
//! An [`ObjectRef`] is a [`Kind`], a namespace and a name. It is the key of the tables of objects, what a verdict is about
//! and what an Envoy resource was made from, so the crates that name no kind (`model`, `assemble`, `envoy`) and the crate
//! that has them all (`kinds`) both depend on this one, and on nothing else of each other.
//!
//! A kind is a pointer to its row in the table of kinds (`kinds::kind`): copying one is free, and a new kind changes
//! nothing here.

mod kind;
mod origin;

pub use kind::{ApiResource, Kind, Scope};
pub use origin::{FieldPath, Origin};

use std::{fmt, sync::Arc};

/// An object of any kind. Cheap to clone; ordered by kind, then namespace, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// The kind, with its API group.
    pub kind: Kind,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// An object by its kind, namespace and name.
    pub fn new(kind: Kind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }

    /// A field of this object.
    pub fn at(&self, field: impl Into<FieldPath>) -> Origin {
        Origin { object: self.clone(), field: field.into() }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static SERVICE: ApiResource = ApiResource::new("", &["v1"], "Service", "services", Scope::Namespaced);
    static NODE: ApiResource = ApiResource::new("", &["v1"], "Node", "nodes", Scope::Cluster);

    #[test]
    fn an_object_reads_as_people_write_it() {
        let service = ObjectRef::new(Kind::new(&SERVICE), "shop", "cart");
        assert_eq!(service.to_string(), "Service shop/cart");
        assert_eq!(service.at("spec.ports[0]").to_string(), "Service shop/cart spec.ports[0]");
        assert_eq!(service.at("").to_string(), "Service shop/cart");
        assert_eq!(ObjectRef::new(Kind::new(&NODE), "", "one").to_string(), "Node one");
    }

    #[test]
    fn objects_are_ordered_by_kind_then_namespace_then_name() {
        let (service, node) = (Kind::new(&SERVICE), Kind::new(&NODE));
        let mut objects = [(service, "b", "a"), (service, "a", "b"), (service, "a", "a"), (node, "", "z")]
            .map(|(kind, namespace, name)| ObjectRef::new(kind, namespace, name));
        objects.sort();
        let order = objects.map(|object| object.to_string());
        assert_eq!(order, ["Node z", "Service a/a", "Service a/b", "Service b/a"]);
    }

    #[test]
    fn a_reference_is_five_words() {
        assert_eq!(size_of::<ObjectRef>(), 5 * size_of::<usize>());
    }
}

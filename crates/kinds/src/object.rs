//! An object of any kind, and the types that one may have.
//!
//! All of it comes from the [table of kinds](crate::kind). Code that has to do something for the type behind a [`Kind`]
//! (decode it, put it into the engine's table of that type) is a [`TypeVisitor`].

use crate::{
    BackendTlsPolicy, ConfigMap, ContourConfiguration, CustomResourceDefinition, EndpointSlice, ExtensionService,
    Gateway, GatewayClass, GrpcRoute, HttpProxy, HttpRoute, Ingress, IngressClass, Kind, ListenerSet, Meta, Namespace,
    ObjectRef, ReferenceGrant, Secret, Service, Status, TcpRoute, TlsCertificateDelegation, TlsRoute, UdpRoute,
    emissary::{
        AuthService, ConsulResolver, DevPortal, Host, KubernetesEndpointResolver, KubernetesServiceResolver, Listener,
        LogService, Mapping, Module, RateLimitService, TcpMapping, TlsContext, TracingService,
    },
    kind::{self, table},
};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, sync::Arc};

/// An object of any kind. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    kind: Kind,
    body: Body,
}

impl Object {
    /// An object of a kind.
    ///
    /// # Panics
    /// If objects of the kind are of another type.
    pub fn new<T: Typed>(kind: Kind, object: impl Into<Arc<T>>) -> Self {
        assert!(T::KINDS.contains(&kind), "{kind} is of another type");
        Self { kind, body: T::into_body(object.into()) }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Which object it is.
    pub fn key(&self) -> ObjectRef {
        let Meta { namespace, name, .. } = self.meta();
        ObjectRef::new(self.kind, namespace.clone(), name.clone())
    }

    /// The object as its type, if it is of that type.
    pub fn get<T: Typed>(&self) -> Option<&Arc<T>> {
        T::of(&self.body)
    }
}

/// A type that an [`Object`] may have. Only the types of the [table of kinds](crate::kind) are.
pub trait Typed: DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The kinds that are read into it: one for each API group.
    const KINDS: &'static [Kind];

    /// The fields of the API that nothing reads, by the struct that would have them.
    const UNREAD: &'static [(&'static str, &'static [&'static str])];

    /// Its metadata.
    fn meta(&self) -> &Meta;

    /// Its metadata, to complete it.
    fn meta_mut(&mut self) -> &mut Meta;

    /// Its status, if it is one that we may write: of the type [`Status`].
    fn status(&self) -> Option<&Status>;

    /// The object without its status: what we write ourselves must not wake those who read what it asks for.
    #[must_use]
    fn without_status(object: Arc<Self>) -> Arc<Self>;

    #[doc(hidden)]
    fn of(body: &Body) -> Option<&Arc<Self>>;

    #[doc(hidden)]
    fn into_body(object: Arc<Self>) -> Body;
}

/// Something that is done for the type behind a kind.
pub trait TypeVisitor {
    /// Does it.
    fn visit<T: Typed>(&mut self);
}

macro_rules! types {
    ($($type:ident in $module:ident $marks:tt {$(
        $(#[$doc:meta])*
        $constant:ident = $group:literal [$($version:literal),+] $name:literal $plural:literal $scope:ident
            $(, shown as $label:literal)?;
    )+})*) => {
        #[doc(hidden)]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Body {
            $($type(Arc<$type>),)*
        }

        impl Object {
            /// Its metadata.
            pub fn meta(&self) -> &Meta {
                match &self.body {
                    $(Body::$type(object) => &object.meta,)*
                }
            }

            /// Its status, if its kind has one that we may write.
            pub fn status(&self) -> Option<&Status> {
                match &self.body {
                    $(Body::$type(object) => object.status(),)*
                }
            }
        }

        $(
            impl Typed for $type {
                const KINDS: &'static [Kind] = &[$(kind::$constant),+];
                const UNREAD: &'static [(&'static str, &'static [&'static str])] = crate::$module::UNREAD;

                fn meta(&self) -> &Meta {
                    &self.meta
                }

                fn meta_mut(&mut self) -> &mut Meta {
                    &mut self.meta
                }

                fn status(&self) -> Option<&Status> {
                    status!($marks self)
                }

                fn without_status(object: Arc<Self>) -> Arc<Self> {
                    without_status!($marks object $type)
                }

                fn of(body: &Body) -> Option<&Arc<Self>> {
                    match body {
                        Body::$type(object) => Some(object),
                        _ => None,
                    }
                }

                fn into_body(object: Arc<Self>) -> Body {
                    Body::$type(object)
                }
            }
        )*

        /// Visits every type, in the order of the table.
        pub fn visit_types(visitor: &mut impl TypeVisitor) {
            $(visitor.visit::<$type>();)*
        }

        /// Visits the type of a kind.
        pub fn visit_type_of(kind: Kind, visitor: &mut impl TypeVisitor) {
            $(
                if <$type as Typed>::KINDS.contains(&kind) {
                    return visitor.visit::<$type>();
                }
            )*
        }
    };
}

macro_rules! status {
    ([status $($rest:ident)*] $object:ident) => {
        Some(&$object.status)
    };
    ([$($rest:ident)*] $object:ident) => {
        None
    };
}

macro_rules! without_status {
    ([status $($rest:ident)*] $object:ident $type:ident) => {{
        if $object.status == Default::default() {
            return $object;
        }
        Arc::new($type { meta: $object.meta.clone(), spec: $object.spec.clone(), status: Default::default() })
    }};
    ([typed_status $($rest:ident)*] $object:ident $type:ident) => {
        without_status!([status $($rest)*] $object $type)
    };
    ([$($rest:ident)*] $object:ident $type:ident) => {
        $object
    };
}

table!(types);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::decode_json;

    #[derive(Default)]
    struct Names(Vec<&'static str>);

    impl TypeVisitor for Names {
        fn visit<T: Typed>(&mut self) {
            self.0.push(T::KINDS[0].name());
        }
    }

    #[test]
    fn every_kind_leads_to_the_type_that_it_is_read_into() {
        let mut all = Names::default();
        visit_types(&mut all);
        for &kind in kind::ALL {
            let mut names = Names::default();
            visit_type_of(kind, &mut names);
            assert_eq!(names.0, [kind.name()]);
            assert!(all.0.contains(&kind.name()));
            let json = r#"{"metadata": {"name": "a"}}"#;
            let object = decode_json(kind, json.as_bytes()).unwrap().object;
            assert_eq!(object.key(), ObjectRef::new(kind, if kind.is_namespaced() { "default" } else { "" }, "a"));
        }
    }

    #[test]
    fn a_status_is_told_from_what_is_asked_for() {
        let read = |json: &str| decode_json(kind::SESAME_HTTP_PROXY, json.as_bytes()).unwrap().object;
        let bare = read(r#"{"metadata": {"name": "a"}}"#);
        let told = read(r#"{"metadata": {"name": "a"}, "status": {"currentStatus": "valid"}}"#);
        let other = read(r#"{"metadata": {"name": "a"}, "spec": {"ingressClassName": "b"}}"#);
        assert!(bare.status() != told.status() && bare != told);
        assert!(bare.status() == other.status() && bare != other);
        assert!(told.status().is_some_and(|status| !status.is_empty()));
        let of = |object: &Object| HttpProxy::without_status(object.get::<HttpProxy>().unwrap().clone());
        assert_eq!(of(&told), of(&bare));
    }
}

//! An object of any kind, its key (the key of every table of objects), and how each kind is read.

use crate::{
    ConfigMap, EndpointSlice, HttpProxy, Ingress, IngressClass, Kind, Meta, Namespace, Secret, Service, Status,
    TlsCertificateDelegation, Vendor,
    decode::{Tree, TreeError},
    meta::DEFAULT_NAMESPACE,
};
use serde::Deserialize;
use std::{fmt, sync::Arc};

/// An object of any kind. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// See [`Namespace`].
    Namespace(Arc<Namespace>),
    /// See [`IngressClass`].
    IngressClass(Arc<IngressClass>),
    /// See [`Ingress`].
    Ingress(Arc<Ingress>),
    /// See [`Service`].
    Service(Arc<Service>),
    /// See [`EndpointSlice`].
    EndpointSlice(Arc<EndpointSlice>),
    /// See [`Secret`].
    Secret(Arc<Secret>),
    /// See [`ConfigMap`].
    ConfigMap(Arc<ConfigMap>),
    /// See [`HttpProxy`].
    HttpProxy(Vendor, Arc<HttpProxy>),
    /// See [`TlsCertificateDelegation`].
    TlsCertificateDelegation(Vendor, Arc<TlsCertificateDelegation>),
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Object::Namespace(_) => Kind::Namespace,
            Object::IngressClass(_) => Kind::IngressClass,
            Object::Ingress(_) => Kind::Ingress,
            Object::Service(_) => Kind::Service,
            Object::EndpointSlice(_) => Kind::EndpointSlice,
            Object::Secret(_) => Kind::Secret,
            Object::ConfigMap(_) => Kind::ConfigMap,
            Object::HttpProxy(vendor, _) => Kind::HttpProxy(*vendor),
            Object::TlsCertificateDelegation(vendor, _) => Kind::TlsCertificateDelegation(*vendor),
        }
    }

    /// Its names.
    pub fn meta(&self) -> &Meta {
        match self {
            Object::Namespace(object) => &object.meta,
            Object::IngressClass(object) => &object.meta,
            Object::Ingress(object) => &object.meta,
            Object::Service(object) => &object.meta,
            Object::EndpointSlice(object) => &object.meta,
            Object::Secret(object) => &object.meta,
            Object::ConfigMap(object) => &object.meta,
            Object::HttpProxy(_, object) => &object.meta,
            Object::TlsCertificateDelegation(_, object) => &object.meta,
        }
    }

    /// Its status, if its kind has one that we write.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Object::Ingress(object) => Some(&object.status),
            Object::HttpProxy(_, object) => Some(&object.status),
            _ => None,
        }
    }

    /// Whether it differs from another state of the same object in its status at most, or in its version.
    pub fn equals_but_status(&self, other: &Object) -> bool {
        match (self, other) {
            (Object::Ingress(one), Object::Ingress(other)) => one.meta == other.meta && one.spec == other.spec,
            (Object::HttpProxy(_, one), Object::HttpProxy(_, other)) => {
                one.meta == other.meta && one.spec == other.spec
            }
            _ => false,
        }
    }

    /// Which object it is.
    pub fn key(&self) -> ObjectKey {
        let Meta { namespace, name, .. } = self.meta();
        ObjectKey::new(self.kind(), namespace.clone(), name.clone())
    }

    /// The object as its type, if it is of that type.
    pub fn get<T: Typed>(&self) -> Option<&Arc<T>> {
        T::of(self)
    }
}

/// A type that an [`Object`] may hold.
pub trait Typed: Sized {
    /// The object as this type, if it is of this type.
    fn of(object: &Object) -> Option<&Arc<Self>>;

    /// Its names.
    fn meta(&self) -> &Meta;
}

/// How a kind is read.
pub(crate) struct Wire {
    pub(crate) read: fn(Kind, Tree<'_, '_, '_>) -> Result<Object, TreeError>,
    pub(crate) unread: &'static [(&'static str, &'static [&'static str])],
}

/// Reads an object and puts it where objects of its kind stand.
fn read<'de, T: Deserialize<'de> + AsMut<Meta>>(kind: Kind, tree: Tree<'de, '_, '_>) -> Result<Arc<T>, TreeError> {
    let mut object = T::deserialize(tree)?;
    let meta = object.as_mut();
    if !kind.is_namespaced() {
        meta.namespace = "".into();
    } else if meta.namespace.is_empty() {
        meta.namespace = DEFAULT_NAMESPACE.into();
    }
    Ok(Arc::new(object))
}

macro_rules! typed {
    ($($type:ident => $pattern:pat => $object:ident;)*) => {
        $(
            impl Typed for $type {
                fn of(object: &Object) -> Option<&Arc<Self>> {
                    match object {
                        $pattern => Some($object),
                        _ => None,
                    }
                }

                fn meta(&self) -> &Meta {
                    &self.meta
                }
            }

            impl AsMut<Meta> for $type {
                fn as_mut(&mut self) -> &mut Meta {
                    &mut self.meta
                }
            }
        )*
    };
}

typed! {
    Namespace => Object::Namespace(object) => object;
    IngressClass => Object::IngressClass(object) => object;
    Ingress => Object::Ingress(object) => object;
    Service => Object::Service(object) => object;
    EndpointSlice => Object::EndpointSlice(object) => object;
    Secret => Object::Secret(object) => object;
    ConfigMap => Object::ConfigMap(object) => object;
    HttpProxy => Object::HttpProxy(_, object) => object;
    TlsCertificateDelegation => Object::TlsCertificateDelegation(_, object) => object;
}

impl Kind {
    /// How the kind is read.
    pub(crate) fn wire(self) -> Wire {
        macro_rules! wire {
            ($module:ident, $variant:ident) => {
                Wire { read: |kind, tree| read(kind, tree).map(Object::$variant), unread: crate::$module::UNREAD }
            };
        }
        match self {
            Kind::Namespace => wire!(namespace, Namespace),
            Kind::IngressClass => wire!(ingress_class, IngressClass),
            Kind::Ingress => wire!(ingress, Ingress),
            Kind::Service => wire!(service, Service),
            Kind::EndpointSlice => wire!(endpoint_slice, EndpointSlice),
            Kind::Secret => wire!(secret, Secret),
            Kind::ConfigMap => wire!(config_map, ConfigMap),
            Kind::HttpProxy(Vendor::Contour) => Wire {
                read: |kind, tree| read(kind, tree).map(|object| Object::HttpProxy(Vendor::Contour, object)),
                unread: crate::http_proxy::UNREAD,
            },
            Kind::HttpProxy(Vendor::Sesame) => Wire {
                read: |kind, tree| read(kind, tree).map(|object| Object::HttpProxy(Vendor::Sesame, object)),
                unread: crate::http_proxy::UNREAD,
            },
            Kind::TlsCertificateDelegation(Vendor::Contour) => Wire {
                read: |kind, tree| {
                    read(kind, tree).map(|object| Object::TlsCertificateDelegation(Vendor::Contour, object))
                },
                unread: crate::tls_certificate_delegation::UNREAD,
            },
            Kind::TlsCertificateDelegation(Vendor::Sesame) => Wire {
                read: |kind, tree| {
                    read(kind, tree).map(|object| Object::TlsCertificateDelegation(Vendor::Sesame, object))
                },
                unread: crate::tls_certificate_delegation::UNREAD,
            },
        }
    }
}

/// Which object. Cheap to clone; ordered by kind, then namespace, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The kind, with its group where it is read from several.
    pub kind: Kind,
    /// The namespace; empty for kinds that stand in none.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// An object by its three names.
    pub fn new(kind: Kind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

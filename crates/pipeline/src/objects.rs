//! The objects, one table for each kind: where every change comes in.

use engine::{Engine, Index, Input, Table};
use kinds::{
    EndpointSlice, HttpProxy, Ingress, IngressClass, Object, ObjectKey, Secret, Service, TlsCertificateDelegation,
};
use model::SecretId;
use std::sync::Arc;

/// An object of a kind, by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// The namespace; empty for kinds that stand in none.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Named {
    /// An object by its two names.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl From<&ObjectKey> for Named {
    fn from(key: &ObjectKey) -> Self {
        Self { namespace: key.namespace.clone(), name: key.name.clone() }
    }
}

macro_rules! objects {
    ($($table:ident $key:ty => $value:ty, $name:literal, $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub struct $table;

            impl Table for $table {
                type Key = $key;
                type Value = $value;
                const NAME: &'static str = $name;
            }

            impl Input for $table {}
        )*

        /// How many objects there are, by the name of their table.
        pub fn counts(engine: &Engine) -> Vec<(&'static str, usize)> {
            vec![$(($name, engine.counters_of::<$table>().rows),)*]
        }
    };
}

objects! {
    Ingresses Named => Ingress, "ingresses", "Ingresses.";
    IngressClasses Named => IngressClass, "ingress classes", "IngressClasses.";
    Services Named => Service, "services", "Services.";
    EndpointSlices Named => EndpointSlice, "endpoint slices", "EndpointSlices.";
    Secrets SecretId => Secret, "secrets", "Secrets.";
    HttpProxies ObjectKey => HttpProxy, "httpproxies", "HTTPProxies of both groups.";
    Delegations ObjectKey => TlsCertificateDelegation, "delegations", "TLSCertificateDelegations of both groups.";
}

/// EndpointSlices by the Service whose endpoints they hold.
pub struct SlicesByService;

impl Index for SlicesByService {
    type Of = EndpointSlices;
    type Key = Named;
    const NAME: &'static str = "by service";

    fn keys(key: &Named, slice: &EndpointSlice) -> impl IntoIterator<Item = Named> {
        let service = slice.service_name().ok().flatten();
        service.map(|service| Named { namespace: key.namespace.clone(), name: service.into() })
    }
}

/// Delegations by the Secrets that they delegate.
pub struct DelegationsBySecret;

impl Index for DelegationsBySecret {
    type Of = Delegations;
    type Key = SecretId;
    const NAME: &'static str = "by secret";

    fn keys(_: &ObjectKey, delegation: &TlsCertificateDelegation) -> impl IntoIterator<Item = SecretId> {
        resolve::delegation::secrets(delegation).collect::<Vec<_>>()
    }
}

/// Roots among HTTPProxies, by the fqdn that they ask for.
pub struct RootsByFqdn;

impl Index for RootsByFqdn {
    type Of = HttpProxies;
    type Key = Arc<str>;
    const NAME: &'static str = "by fqdn";

    fn keys(_: &ObjectKey, object: &HttpProxy) -> impl IntoIterator<Item = Arc<str>> {
        let host = object.spec.virtual_host.ok().and_then(Option::as_ref);
        host.and_then(|host| host.fqdn.ok()?.as_deref()).map(Arc::from)
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.input::<Ingresses>();
    pipeline.input::<IngressClasses>();
    pipeline.input::<Services>();
    pipeline.input::<EndpointSlices>();
    pipeline.input::<Secrets>();
    pipeline.input::<HttpProxies>();
    pipeline.input::<Delegations>();
    pipeline.index::<SlicesByService>().index::<DelegationsBySecret>();
}

/// Whether any dialect reads objects of the kind. What nobody reads need not be asked for.
pub fn reads(kind: kinds::Kind) -> bool {
    !matches!(kind, kinds::Kind::Namespace | kinds::Kind::ConfigMap)
}

/// Puts an object where objects of its kind stand. Kinds that no dialect reads yet are passed over.
pub fn set(engine: &mut Engine, key: &ObjectKey, object: Object) {
    let named = Named::from(key);
    match object {
        Object::Ingress(object) => _ = engine.set::<Ingresses>(&named, object),
        Object::IngressClass(object) => _ = engine.set::<IngressClasses>(&named, object),
        Object::Service(object) => _ = engine.set::<Services>(&named, object),
        Object::EndpointSlice(object) => _ = engine.set::<EndpointSlices>(&named, object),
        Object::Secret(object) => _ = engine.set::<Secrets>(&secret(key), object),
        Object::HttpProxy(_, object) => _ = engine.set::<HttpProxies>(key, without_status(object)),
        Object::TlsCertificateDelegation(_, object) => _ = engine.set::<Delegations>(key, object),
        Object::Namespace(_) | Object::ConfigMap(_) => {}
    }
}

/// The object without what was said about it: what we write ourselves must not wake the roots that include it.
fn without_status(object: Arc<HttpProxy>) -> Arc<HttpProxy> {
    if object.status.is_empty() {
        return object;
    }
    Arc::new(HttpProxy { meta: object.meta.clone(), spec: object.spec.clone(), status: Default::default() })
}

/// Takes an object out.
pub fn remove(engine: &mut Engine, key: &ObjectKey) {
    use kinds::Kind;
    let named = Named::from(key);
    match key.kind {
        Kind::Ingress => _ = engine.remove::<Ingresses>(&named),
        Kind::IngressClass => _ = engine.remove::<IngressClasses>(&named),
        Kind::Service => _ = engine.remove::<Services>(&named),
        Kind::EndpointSlice => _ = engine.remove::<EndpointSlices>(&named),
        Kind::Secret => _ = engine.remove::<Secrets>(&secret(key)),
        Kind::HttpProxy(_) => _ = engine.remove::<HttpProxies>(key),
        Kind::TlsCertificateDelegation(_) => _ = engine.remove::<Delegations>(key),
        Kind::Namespace | Kind::ConfigMap => {}
    }
}

fn secret(key: &ObjectKey) -> SecretId {
    SecretId { namespace: key.namespace.clone(), name: key.name.clone() }
}

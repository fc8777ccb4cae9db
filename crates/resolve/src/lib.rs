//! What objects refer to: Services, endpoints, certificates and grants, or the reason why there is none.
//!
//! In: the objects of Kubernetes that every dialect points to. Out: facts in the words of [`model`], and a [`No`] with a
//! code and a sentence wherever there is nothing to point to. Dialects ask through [`View`], which hides where the facts
//! stand, so that a dialect can be tested on a handful of objects and the engine can see what was read.

pub mod address;
pub mod annotation;
pub mod ca;
pub mod certificate;
pub mod class;
pub mod crl;
pub mod delegation;
pub mod endpoints;
pub mod extension;
pub mod grant;
pub mod jwks;
pub mod reserved;
pub mod service;

pub use annotation::foreign::ForeignProtection;
pub use certificate::Certificate;
pub use class::OtherClass;
pub use crl::RevocationLists;
pub use extension::{ExtensionService, KnownExtension};
pub use kinds::name;
pub use service::{PortRef, Service};

use kinds::{Kind, ReferenceGrant, kind};
use model::{
    ClusterId, Code, EndpointsId, FieldPath, ObjectRef, Verdict,
    cluster::{Backend, ClusterOverrides, Protocol},
};
use std::sync::Arc;

/// What the operator of Sesame allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of Sesame, in which some Secrets are [its own](reserved).
    pub namespace: Box<str>,
    /// Whether Services of type `ExternalName` are followed. Whoever may write a Service then chooses what the proxies
    /// connect to.
    pub external_names: bool,
    /// Whether a Service may list its endpoints in an annotation: for folders of files, where nobody else does it.
    pub listed_endpoints: bool,
    /// Whether EndpointSlices may lead to the machine itself or its network segment: for folders of files, whose author has the
    /// machine anyway. In a cluster, Envoy's own listeners and a metadata service are there.
    pub local_endpoints: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "projectsesame".into(),
            external_names: false,
            listed_endpoints: false,
            local_endpoints: false,
        }
    }
}

/// Why there is nothing to point to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rejection {
    /// The row of the table of codes.
    pub code: Code,
    /// This very case.
    pub why: Box<str>,
    /// The object that is pointed to, where it does not exist.
    pub absent: Option<ObjectRef>,
}

impl Rejection {
    /// A reason.
    pub fn new(code: Code, why: impl Into<Box<str>>) -> Self {
        Self { code, why: why.into(), absent: None }
    }

    /// That an object does not exist.
    pub fn absent(code: Code, object: ObjectRef) -> Self {
        Self { code, why: format!("{object} does not exist").into(), absent: Some(object) }
    }

    /// The reason as a finding about the field that points there.
    pub fn at(&self, object: &ObjectRef, field: FieldPath) -> Verdict {
        let absent = self.absent.as_ref().map(|absent| absent.at(""));
        Verdict::new(self.code, object.at(field), self.why.clone()).related_to(absent)
    }
}

/// The kinds that objects of every dialect refer to.
pub const KINDS: &[Kind] = &[
    kind::SERVICE,
    kind::ENDPOINT_SLICE,
    kind::SECRET,
    kind::CONTOUR_TLS_CERTIFICATE_DELEGATION,
    kind::SESAME_TLS_CERTIFICATE_DELEGATION,
    kind::REFERENCE_GRANT,
];

/// Where a dialect looks things up.
pub trait View {
    /// What is known about a Service.
    fn service(&mut self, namespace: &str, name: &str) -> Option<Arc<Service>>;

    /// The certificate in a Secret; a Secret that is there may hold none that can be used. Of one that has not been read
    /// yet the reason is [`Code::SecretPending`].
    fn certificate(&mut self, id: &ObjectRef) -> Option<Arc<Result<Certificate, Rejection>>>;

    /// The CA bundle in a Secret or ConfigMap; one that is there may hold none that can be used. Of one that has not been read
    /// yet the reason is [`Code::SecretPending`].
    fn ca(&mut self, id: &ObjectRef) -> Option<Arc<Result<Arc<str>, Rejection>>>;

    /// The CRLs in a Secret; one that is there may hold none that can be used. Of one that has not been read yet the reason is
    /// [`Code::SecretPending`].
    fn crls(&mut self, id: &ObjectRef) -> Option<Arc<Result<RevocationLists, Rejection>>>;

    /// Whether a namespace is that of Sesame.
    fn is_own_namespace(&mut self, namespace: &str) -> bool;

    /// Whether the owner of a Secret lets a namespace use it.
    fn delegated(&mut self, id: &ObjectRef, to: &str) -> bool;

    /// The ReferenceGrants of a namespace that name objects of a kind in another namespace.
    fn grants(&mut self, of: &str, from: Kind, namespace: &str) -> Vec<Arc<ReferenceGrant>>;

    /// What is known about an extension.
    fn extension(&mut self, id: &ObjectRef) -> Option<Arc<KnownExtension>>;
}

/// The cluster for a port of a Service.
pub fn backend(view: &mut impl View, namespace: &str, name: &str, port: &PortRef) -> Result<ClusterId, Rejection> {
    let service = view
        .service(namespace, name)
        .ok_or_else(|| Rejection::absent(Code::ServiceNotFound, ObjectRef::new(kind::SERVICE, namespace, name)))?;
    service.backend(port)
}

/// The cluster with the certificate that proxies present to it, if it speaks TLS and the operator has set one. Without the
/// certificate the cluster is not used: a backend that asks for it would refuse every connection.
pub fn presenting(
    view: &mut impl View,
    cluster: ClusterId,
    certificate: Option<&ObjectRef>,
) -> Result<ClusterId, Rejection> {
    let Some(certificate) = certificate else { return Ok(cluster) };
    if !speaks_tls(view, &cluster) {
        return Ok(cluster);
    }
    let found = view.certificate(certificate);
    presentable(certificate, found.as_deref().map(|found| found.as_ref().map(|_| ())))?;
    Ok(with_certificate(cluster, certificate))
}

/// Whether proxies can present the operator's certificate, by what is found in its Secret.
pub fn presentable(certificate: &ObjectRef, found: Option<Result<(), &Rejection>>) -> Result<(), Rejection> {
    let not_valid = |why: &str| {
        Rejection::new(Code::ClientCertificateNotValid, format!("the client certificate for TLS backends: {why}"))
    };
    match found {
        Some(Ok(())) => Ok(()),
        Some(Err(rejection)) if rejection.code == Code::SecretPending => Err(rejection.clone()),
        Some(Err(rejection)) => Err(not_valid(&rejection.why)),
        None => Err(not_valid(&format!("{certificate} does not exist"))),
    }
}

/// Whether proxies connect to a port of a Service over TLS.
pub fn speaks_tls(view: &mut impl View, cluster: &ClusterId) -> bool {
    let Backend::Service(EndpointsId { namespace, service, port, transport }) = &cluster.backend else { return false };
    let overridden = cluster.overrides.as_ref().and_then(|overrides| overrides.protocol);
    let protocol = overridden.or_else(|| Some(view.service(namespace, service)?.cluster(*port, *transport)?.protocol));
    protocol.is_some_and(Protocol::is_tls)
}

/// The cluster with a certificate that proxies present to it.
pub fn with_certificate(cluster: ClusterId, certificate: &ObjectRef) -> ClusterId {
    let overrides = cluster.overrides.as_deref().cloned().unwrap_or_default();
    let overrides = ClusterOverrides { client_certificate: Some(certificate.clone()), ..overrides };
    ClusterId { overrides: overrides.shared(), ..cluster }
}

/// The certificate in a Secret, for an object of namespace `user`.
pub fn certificate(view: &mut impl View, user: &str, id: &ObjectRef) -> Result<(), Rejection> {
    usable(view, user, id)?;
    match view.certificate(id).as_deref() {
        Some(Ok(_)) => Ok(()),
        Some(Err(rejection)) => Err(rejection.clone()),
        None => Err(Rejection::absent(Code::SecretNotFound, id.clone())),
    }
}

/// The CA bundle in a Secret or ConfigMap, for an object of namespace `user`.
pub fn trusted(view: &mut impl View, user: &str, id: &ObjectRef) -> Result<(), Rejection> {
    usable(view, user, id)?;
    match view.ca(id).as_deref() {
        Some(Ok(_)) => Ok(()),
        Some(Err(rejection)) => Err(rejection.clone()),
        None => Err(Rejection::absent(Code::SecretNotFound, id.clone())),
    }
}

/// The CRLs in a Secret, for an object of namespace `user`.
pub fn revocation_lists(view: &mut impl View, user: &str, id: &ObjectRef) -> Result<(), Rejection> {
    usable(view, user, id)?;
    match view.crls(id).as_deref() {
        Some(Ok(_)) => Ok(()),
        Some(Err(rejection)) => Err(rejection.clone()),
        None => Err(Rejection::absent(Code::SecretNotFound, id.clone())),
    }
}

/// Whether a reference names a Secret that can be, and that objects of namespace `user` may use: none of [Sesame's own](reserved),
/// whatever is delegated. Nobody looks for others.
fn usable(view: &mut impl View, user: &str, id: &ObjectRef) -> Result<(), Rejection> {
    if !name::is_label(&id.namespace) || !name::is_subdomain(&id.name) {
        let why = format!(
            "{id} cannot exist: a name consists of lower-case letters, digits, `-` and `.`, and begins and ends with a \
             letter or digit"
        );
        return Err(Rejection::new(Code::SecretNotFound, why));
    }
    reserved::check(view, id)?;
    if *id.namespace != *user && !view.delegated(id, user) {
        let why = format!("{id} is not delegated to namespace {user}");
        return Err(Rejection::new(Code::DelegationMissing, why));
    }
    Ok(())
}

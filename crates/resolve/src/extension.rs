//! An extension: Services that proxies call for themselves, as one cluster.
//!
//! In: what a dialect read from the object that describes it. Out: the cluster, and how a filter calls it.

use crate::{Rejection, View};
use kinds::kind;
use model::{
    Cluster, Code, EndpointsId, ObjectRef, Timeout, Verdict,
    cluster::{CircuitBreakers, ClusterOverrides, Discovery, Extension, LoadBalancing, Protocol, Validation},
};

/// What is known about an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownExtension {
    /// What it is, or why it cannot be used.
    pub found: Result<ExtensionService, Rejection>,
    /// What there is to say about the object.
    pub verdicts: Vec<Verdict>,
    /// The Secrets that were asked for, whether they were there or not.
    pub secrets: Vec<ObjectRef>,
}

/// An extension that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionService {
    /// The object that describes it.
    pub object: ObjectRef,
    /// The Service ports and their shares, each once; never empty, no share is 0.
    pub services: Vec<(EndpointsId, u32)>,
    /// What is spoken.
    pub protocol: Protocol,
    /// How the certificate of its Services is validated.
    pub validation: Option<Validation>,
    /// The Secret with the certificate that proxies present to its Services.
    pub client_certificate: Option<ObjectRef>,
    /// The load balancing policy.
    pub balance: LoadBalancing,
    /// The idle timeout of connections.
    pub idle: Timeout,
    /// How long a call may take.
    pub response_timeout: Timeout,
    /// The circuit breakers.
    pub breakers: CircuitBreakers,
}

impl ExtensionService {
    /// Its cluster.
    pub fn cluster(&self) -> Cluster {
        Cluster {
            protocol: self.protocol,
            server_name: self.server_name(),
            breakers: self.breakers,
            overrides: ClusterOverrides {
                idle: self.idle,
                balance: self.balance,
                validation: self.validation.clone(),
                client_certificate: self.client_certificate.clone(),
                ..ClusterOverrides::default()
            },
            ..Cluster::new(self.extension().cluster, Discovery::WeightedEndpoints)
        }
    }

    /// How it is called.
    pub fn extension(&self) -> Extension {
        Extension::of(self.object.clone(), self.server_name(), self.response_timeout)
    }

    /// The first name that its certificate must have.
    fn server_name(&self) -> Option<std::sync::Arc<str>> {
        let names = self.validation.iter().flat_map(|validation| &validation.names);
        names.map(|name| name.text().clone()).next()
    }
}

/// The extension of a name, in whichever group has one; in Contour's where both have.
pub fn find(view: &mut impl View, namespace: &str, name: &str) -> Result<Extension, Rejection> {
    let id = named(view, namespace, name);
    get(view, &id)
}

/// Which object [`find`] finds by a name.
pub fn named(view: &mut impl View, namespace: &str, name: &str) -> ObjectRef {
    let [contour, sesame] = [kind::CONTOUR_EXTENSION_SERVICE, kind::SESAME_EXTENSION_SERVICE]
        .map(|kind| ObjectRef::new(kind, namespace, name));
    match view.extension(&contour).is_none() && view.extension(&sesame).is_some() {
        true => sesame,
        false => contour,
    }
}

/// An extension.
pub fn get(view: &mut impl View, id: &ObjectRef) -> Result<Extension, Rejection> {
    match view.extension(id).as_deref() {
        None => Err(Rejection::absent(Code::ExtensionNotFound, id.clone())),
        Some(KnownExtension { found: Ok(found), .. }) => Ok(found.extension()),
        Some(KnownExtension { found: Err(rejection), .. }) if rejection.code == Code::SecretPending => {
            Err(rejection.clone())
        }
        Some(KnownExtension { found: Err(rejection), .. }) => {
            Err(Rejection::new(Code::ExtensionNotValid, format!("{id} is not valid: {}", rejection.why)))
        }
    }
}

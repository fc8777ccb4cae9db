//! HTTPProxy, `projectcontour.io/v1` and `projectsesame.io/v1`: one root with all it includes in, one [`Translation`] out.
//!
//! Every "no" stays with the smallest thing that contains it. A route with a policy that cannot be used answers 503 on
//! its own conditions; its siblings, the includes and the host go on. A service that is not there loses its share. An
//! include that leads nowhere answers 502 on its conditions. Only what is wrong with the host itself (its certificate, a
//! policy that protects all of it) makes the whole host answer 503. Each is told on the object that has the field.
//!
//! Reading order: [`class`] (is it ours?), [`root`] (the host: its name, who owns it, its certificate), [`include`] (the tree
//! of children), [`budget`] (how much of it), `jwt` (the tokens that requests must have), [`condition`] (which requests),
//! [`route`] (what is done with them), [`tcp`] (connections that are passed on), [`status`] (what the object says about all
//! that).

pub mod authorization;
pub mod budget;
pub mod class;
pub mod client_validation;
pub mod condition;
pub mod cors;
pub mod delegation;
mod duration;
pub mod extension_service;
pub mod include;
mod jwt;
pub mod root;
pub mod route;
pub mod status;
pub mod tcp;
#[cfg(test)]
mod tests;
pub mod tls;

use kinds::{Fault, HttpProxy, Kind};
use model::{
    Code, FieldPath, ObjectRef, Origin, Translation, Verdict, VerdictList,
    jwt::{Jwks, JwksState, RemoteJwks},
    route::{Dialect, GlobalRateLimit, HeaderDefaults, TieBreak},
    tls::TlsVersions,
    translation::{HostPolicy, Inclusion},
};
use resolve::{ForeignProtection, View, annotation::foreign};
use std::{collections::BTreeSet, sync::Arc};

/// An HTTPProxy wins over an Ingress with a route for the same requests. Routes that are equally specific are tried in the order of
/// their conditions, as Contour does.
pub const DIALECT: Dialect = Dialect { rank: 20, tie_break: TieBreak::Conditions, falls_through: false };

/// What the operator of Sesame sets for all HTTPProxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The classes that are ours; where none is named, the rules of [`class`] hold.
    pub class_names: Vec<Box<str>>,
    /// The namespaces that may have roots; all of them where none is named.
    pub root_namespaces: Vec<Box<str>>,
    /// What is changed about the headers of requests, where a service says nothing about them.
    pub request_headers: HeaderDefaults,
    /// What is changed about the headers of answers.
    pub response_headers: HeaderDefaults,
    /// The TLS versions that any host may speak.
    pub tls: TlsVersions,
    /// The port that clients reach HTTPS at, where it is not the usual one.
    pub https_port: Option<u16>,
    /// Whether a host whose Secret is not there gets a certificate that we sign ourselves: for work on one's own machine.
    pub self_signed: bool,
    /// Whether `permitInsecure` has no effect.
    pub disable_permit_insecure: bool,
    /// The certificate for clients that name no host, for roots that ask for it.
    pub fallback_certificate: Option<ObjectRef>,
    /// The certificate that backends are presented over TLS.
    pub client_certificate: Option<ObjectRef>,
    /// What holds for global rate limits; nothing where no rate limit service is configured.
    pub global_rate_limits: Option<GlobalRateLimits>,
    /// What is done with an HTTPProxy that asks another controller for protection.
    pub foreign_protection: ForeignProtection,
    /// Whether it is told that an object is of a class that is not ours: where nobody else serves it.
    pub report_other_classes: bool,
    /// The authorization server that is asked about routes whose host names none, if there is one.
    pub global_authorization: Option<authorization::OperatorServer>,
    /// Which ExtensionServices of other namespaces may be used without a grant.
    pub open_extensions: OpenExtensions,
}

/// The ExtensionServices that objects of every namespace may use without a ReferenceGrant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenExtensions {
    /// All of them, as in Contour.
    pub all: bool,
    /// Those of the namespace that Sesame runs in.
    pub namespace: Option<Box<str>>,
    /// Those that the operator has configured, by namespace and name.
    pub configured: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl OpenExtensions {
    fn contains(&self, id: &ObjectRef) -> bool {
        self.all
            || self.namespace.as_deref().is_some_and(|own| *own == *id.namespace)
            || self.configured.iter().any(|(namespace, name)| *namespace == id.namespace && *name == id.name)
    }
}

/// What the operator sets for global rate limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalRateLimits {
    /// The namespace and the name of the extension that is asked.
    pub service: (Arc<str>, Arc<str>),
    /// What holds for hosts that say nothing.
    pub default: Option<Arc<GlobalRateLimit>>,
    /// Whether each descriptor of a tenant begins with the tenant's namespace.
    pub add_namespace: bool,
}

/// Where the dialect looks things up.
pub trait HttpProxyView: View {
    /// An HTTPProxy of either group.
    fn proxy(&mut self, object: &ObjectRef) -> Option<Arc<HttpProxy>>;

    /// All HTTPProxies of both groups that have this `virtualhost.fqdn`.
    fn roots(&mut self, fqdn: &str) -> Vec<(Kind, Arc<HttpProxy>)>;

    /// What is known of the keys of a server; nothing while it has not answered yet.
    fn jwks(&mut self, source: &Arc<RemoteJwks>) -> Option<Arc<JwksState>>;

    /// The keys in an entry of a Secret; one that is there may hold none that can be used. Of one that has not been read yet the
    /// reason is [`Code::SecretPending`].
    fn local_jwks(&mut self, secret: &ObjectRef, entry: &str) -> Option<Result<Jwks, resolve::Rejection>>;
}

/// What the object asks for; nothing if it is not ours. A child asks for nothing by itself.
pub fn translate(
    kind: Kind,
    object: &HttpProxy,
    view: &mut impl HttpProxyView,
    settings: &Settings,
) -> Option<Translation> {
    let subject = subject(kind, object);
    if !class::is_ours(object, settings) {
        let verdict = settings.report_other_classes.then(|| class::other(object, settings).on(&subject));
        return verdict.map(|verdict| Translation { verdicts: vec![verdict], ..Translation::empty(subject) });
    }
    if matches!(object.spec.virtual_host.get(), Ok(None)) {
        return Some(Translation { is_child: true, ..Translation::empty(subject) });
    }
    let (verdicts, includes, inclusions, pending, host, authorization, jwt) = Default::default();
    let mut work = Work { kind, settings, view, host, authorization, jwt, verdicts, includes, inclusions, pending };
    let root::Pieces { hosts, routes, tls, jwt_providers } = root::pieces(&mut work, object, &subject);
    let Work { host: policy, verdicts, mut includes, inclusions, pending, .. } = work;
    includes.sort();
    includes.dedup();
    let (pending, verdicts) = (pending.into_iter().collect(), verdicts.into_sorted());
    Some(
        Translation {
            hosts,
            routes,
            tls,
            includes,
            inclusions,
            policy,
            jwt_providers,
            pending,
            verdicts,
            ..Translation::empty(subject)
        }
        .sorted(),
    )
}

/// The object, by name. The group is part of it: both may have an object of one name.
pub fn subject(kind: Kind, object: &HttpProxy) -> ObjectRef {
    ObjectRef::new(kind, object.meta.namespace.clone(), object.meta.name.clone())
}

/// A root on its way through the dialect.
pub(crate) struct Work<'a, V> {
    /// The kind of the root, and so of all that it includes: HTTPProxies of one group do not include those of another.
    pub kind: Kind,
    pub settings: &'a Settings,
    pub view: &'a mut V,
    /// What holds for all routes that say nothing about it.
    pub host: HostPolicy,
    /// Who is asked about requests of all routes.
    pub authorization: authorization::HostAuthorization,
    /// The providers of tokens that routes may name.
    pub jwt: jwt::Names,
    pub verdicts: VerdictList,
    pub includes: Vec<ObjectRef>,
    pub inclusions: Vec<Inclusion>,
    /// The objects that depend on a Secret that has not been read yet. It is not read off the verdicts: of those an object
    /// has so many at most.
    pub pending: BTreeSet<ObjectRef>,
}

impl<V> Work<'_, V> {
    /// Tells something about a field.
    pub fn report(&mut self, object: &ObjectRef, rejection: Rejection) {
        if rejection.code == Code::SecretPending {
            self.pending.insert(object.clone());
        }
        self.verdicts.push(rejection.on(object));
    }

    /// Tells what an object asks of other controllers; whether it is refused, because what would protect it is not there.
    pub fn look_at_foreign(&mut self, object: &HttpProxy, subject: &ObjectRef) -> bool {
        let found = foreign::look(&object.meta, subject);
        self.verdicts.extend(found.verdicts);
        found.protects && self.settings.foreign_protection == ForeignProtection::Refuse
    }
}

/// Why something is not done, and the field that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub code: Code,
    pub field: FieldPath,
    pub why: Box<str>,
    /// The other object, or field of one, that it speaks of, whether it exists or not.
    pub related: Option<Box<Origin>>,
}

impl Rejection {
    pub fn new(code: Code, field: FieldPath, why: impl Into<Box<str>>) -> Self {
        Self { code, field, why: why.into(), related: None }
    }

    /// That what a field refers to cannot be used.
    pub fn resolved(rejection: resolve::Rejection, field: FieldPath) -> Self {
        Self {
            code: rejection.code,
            field,
            why: rejection.why,
            related: rejection.absent.map(|absent| absent.at("").into()),
        }
    }

    /// The same under another code.
    #[must_use]
    pub fn coded(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// The same, with the other object that it speaks of.
    #[must_use]
    pub fn related_to(self, other: Origin) -> Self {
        Self { related: Some(other.into()), ..self }
    }

    /// What is told about an object.
    pub fn on(self, object: &ObjectRef) -> Verdict {
        Verdict { related: self.related, ..Verdict::new(self.code, object.at(self.field), self.why) }
    }
}

impl From<Rejection> for Vec<Rejection> {
    fn from(rejection: Rejection) -> Self {
        vec![rejection]
    }
}

/// Keeps what is in the way, one thing or several, so that all of it is told at once.
pub(crate) fn gather<E: Into<Vec<Rejection>>>(rejections: &mut Vec<Rejection>, found: Result<(), E>) {
    rejections.extend(found.err().map(Into::into).unwrap_or_default());
}

impl From<&Fault> for Rejection {
    fn from(fault: &Fault) -> Self {
        Self::new(Code::ProxyValue, FieldPath::from(&*fault.path), fault.why.clone())
    }
}

//! GatewayClasses: which are ours, and what is said about them.
//!
//! A class says whether the CRDs of Gateway API are of the release that Sesame is made for. Those of another release are served as
//! far as they can be read.

use crate::{
    GatewayView, Settings, features, not_ours, only_status,
    status::{CLASS_IS_ACCEPTED, conditions},
};
use conditions::SUPPORTED_VERSION;
use kinds::{CustomResourceDefinition, Gateway, GatewayClass, kind, suggest};
use model::{
    Code, ObjectRef, Translation, Verdict, VerdictList,
    status::{Condition, Scope, StatusFacts, StatusValue, Truth},
};
use std::sync::Arc;

/// The release of Gateway API that Sesame is made for, whatever its patch.
pub const RELEASE: &str = "v1.7";
/// The annotation of a CRD with its release.
const BUNDLE_VERSION: &str = "gateway.networking.k8s.io/bundle-version";
/// How many CRDs of another release a message names.
const NAMED: usize = 3;

/// Whether a class is ours.
pub fn is_ours(class: &GatewayClass, settings: &Settings) -> bool {
    matches!(class.spec.controller_name.ok(), Some(Some(name)) if **name == *settings.controller)
}

/// Whether a Gateway is ours to serve.
pub fn owns(gateway: &Gateway, view: &mut impl GatewayView, settings: &Settings) -> bool {
    if settings.bound.is_some() && (settings.is_bound(&gateway.meta) || !settings.own_fleets) {
        return settings.is_bound(&gateway.meta);
    }
    let Some(Some(name)) = gateway.spec.gateway_class_name.ok() else { return false };
    match view.class(name) {
        Some(class) => is_ours(&class, settings),
        None => settings.implied_class.as_deref() == Some(name),
    }
}

/// What is told about a Gateway that is not ours, where nobody else serves it.
pub fn other(gateway: &Gateway, subject: &ObjectRef, view: &mut impl GatewayView, settings: &Settings) -> Verdict {
    let at = subject.at("spec.gatewayClassName");
    let unserved = |why: String| Verdict::new(Code::OtherClass, at.clone(), why);
    let Some(Some(name)) = gateway.spec.gateway_class_name.ok() else {
        return unserved("it is not served: gatewayClassName is missing".to_owned());
    };
    if settings.bound.is_some() {
        return unserved("it is not served: another Gateway is configured as the only one".to_owned());
    }
    let class = ObjectRef::new(kind::GATEWAY_CLASS, "", &**name);
    if view.class(name).is_some() {
        let why = format!("it is not served: {class} is of another controller");
        return unserved(why).related_to(class.at("spec.controllerName"));
    }
    let meant = suggest::nearest(name, settings.implied_class.as_deref().into_iter());
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
    unserved(format!("it is not served: {class} does not exist{meant}")).related_to(class.at(""))
}

/// Why a class is not accepted, if it is ours and is not.
pub fn refused(class: &GatewayClass) -> Option<String> {
    match class.spec.parameters_ref.get() {
        Ok(None) => None,
        Ok(Some(parameters)) => {
            let (kind, name) = (parameters.kind.as_deref().unwrap_or_default(), &parameters.name);
            Some(format!("parameters of a class are not supported, but parametersRef names {kind} {name}"))
        }
        Err(fault) => Some(fault.why.to_string()),
    }
}

/// What is said about a class; nothing if it is not ours.
pub fn translate(class: &GatewayClass, view: &mut impl GatewayView, settings: &Settings) -> Option<Translation> {
    let subject = ObjectRef::new(kind::GATEWAY_CLASS, "", class.meta.name.clone());
    if !is_ours(class, settings) {
        let why = format!("it is not served: controllerName is not {}", settings.controller);
        return not_ours(Verdict::new(Code::OtherClass, subject.at("spec.controllerName"), why), settings);
    }
    let mut verdicts = VerdictList::default();
    let accepted = match refused(class) {
        None => conditions::accepted(CLASS_IS_ACCEPTED),
        Some(why) => {
            let at = subject.at("spec.parametersRef");
            verdicts.push(Verdict::new(Code::GatewayParameters, at, why.as_str()));
            conditions::refused(conditions::ACCEPTED, "InvalidParameters", Code::GatewayParameters, why)
        }
    };
    let version = supported_version(view);
    if let Some(other) = version.as_ref().filter(|version| version.status == Truth::False) {
        verdicts.push(Verdict::new(Code::GatewayApiVersion, subject.at(""), other.message.as_str()));
    }
    let version = version.map(|version| match version.status {
        Truth::False => Condition { message: conditions::coded(Code::GatewayApiVersion, &version.message), ..version },
        _ => version,
    });
    let features =
        features::of(&settings.disabled).map(|name| StatusValue::Record(vec![("name", StatusValue::text(name))]));
    let object = Scope {
        values: vec![("supportedFeatures", StatusValue::List(features.collect()))],
        conditions: std::iter::once(accepted).chain(version).collect(),
        ..Scope::default()
    };
    Some(only_status(subject, StatusFacts { object, lists: Vec::new() }, verdicts))
}

/// Whether the CRDs are of the release that Sesame is made for; nothing where there are none to be read.
fn supported_version(view: &mut impl GatewayView) -> Option<Condition> {
    let mut all = view.definitions(crate::GROUP);
    all.sort_by(|one, other| one.meta.name.cmp(&other.meta.name));
    let others: Vec<_> = all.iter().filter(|definition| !is_supported(version_of(definition))).collect();
    let named = |definition: &&Arc<CustomResourceDefinition>| {
        let version = version_of(definition).unwrap_or("no release that is named");
        format!("{} is of {version}", definition.meta.name)
    };
    let condition = |status, reason, message: String| conditions::new(SUPPORTED_VERSION, status, reason, message);
    match (all.len(), others.len()) {
        (0, _) => None,
        (_, 0) => {
            let message = format!("The CRDs of Gateway API are of release {RELEASE}.");
            Some(condition(Truth::True, "SupportedVersion", message))
        }
        (all, count) => {
            let listed = others.iter().take(NAMED).copied().map(|it| named(&it)).collect::<Vec<_>>().join(", ");
            let message = format!(
                "{count} of {all} CRDs of Gateway API are not of release {RELEASE}, which Sesame is made for: {listed}. \
                 Objects are served as far as they can be read."
            );
            Some(condition(Truth::False, "UnsupportedVersion", message))
        }
    }
}

/// The release that a CRD says it is of.
fn version_of(definition: &CustomResourceDefinition) -> Option<&str> {
    definition.meta.annotations.get(BUNDLE_VERSION).ok().flatten().map(|version| &**version)
}

fn is_supported(version: Option<&str>) -> bool {
    version.and_then(|version| version.strip_prefix(RELEASE)).is_some_and(|patch| patch.starts_with('.'))
}

//! GatewayClasses: which are ours, and what is said about them.

use crate::{GatewayView, Settings, features, only_status, status::conditions};
use kinds::{Gateway, GatewayClass, kind};
use model::{
    Code, ObjectRef, Translation, Verdict, VerdictList,
    status::{Scope, StatusFacts, StatusValue, Truth},
};

/// Whether a class is ours.
pub fn is_ours(class: &GatewayClass, settings: &Settings) -> bool {
    matches!(class.spec.controller_name.ok(), Some(Some(name)) if **name == *settings.controller)
}

/// Whether a Gateway is ours to serve.
pub fn owns(gateway: &Gateway, view: &mut impl GatewayView, settings: &Settings) -> bool {
    if let Some((namespace, name)) = &settings.only {
        return *gateway.meta.namespace == **namespace && *gateway.meta.name == **name;
    }
    let Some(Some(name)) = gateway.spec.gateway_class_name.ok() else { return false };
    match view.class(name) {
        Some(class) => is_ours(&class, settings),
        None => settings.implied_class.as_deref() == Some(name),
    }
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
pub fn translate(class: &GatewayClass, settings: &Settings) -> Option<Translation> {
    if !is_ours(class, settings) {
        return None;
    }
    let subject = ObjectRef::new(kind::GATEWAY_CLASS, "", class.meta.name.clone());
    let mut verdicts = VerdictList::default();
    let accepted = match refused(class) {
        None => conditions::accepted("The class is served by Sesame."),
        Some(why) => {
            let at = subject.at("spec.parametersRef");
            verdicts.push(Verdict::new(Code::GatewayParameters, at, why.as_str()));
            conditions::new(conditions::ACCEPTED, Truth::False, "InvalidParameters", why)
        }
    };
    let features = features::SUPPORTED.iter().map(|name| StatusValue::Record(vec![("name", StatusValue::text(*name))]));
    let object = Scope {
        values: vec![("supportedFeatures", StatusValue::List(features.collect()))],
        conditions: vec![accepted],
        ..Scope::default()
    };
    Some(only_status(subject, StatusFacts { object, lists: Vec::new() }, verdicts))
}

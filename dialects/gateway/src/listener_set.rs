//! A ListenerSet: more listeners of a Gateway, in an object of their own.
//!
//! It is ours if the Gateway is that it names. What its listeners may ask for was decided with those of the Gateway.

use crate::{
    GatewayView, Settings,
    gateway::pieces,
    listeners, not_ours,
    status::{LISTENERS_ARE_VALID, conditions},
};
use conditions::{ACCEPTED, PROGRAMMED};
use kinds::{ListenerSet, kind};
use model::{
    Code, ObjectRef, Translation, Verdict, VerdictList,
    status::{Scope, StatusFacts, Truth},
    translation::Section,
};
use resolve::annotation::foreign;

/// What a ListenerSet asks for; nothing if it is not ours.
pub fn translate(set: &ListenerSet, view: &mut impl GatewayView, settings: &Settings) -> Option<Translation> {
    let subject = ObjectRef::new(kind::LISTENER_SET, set.meta.namespace.clone(), set.meta.name.clone());
    let unserved = |why: String| Verdict::new(Code::GatewayParentNotServed, subject.at("spec.parentRef"), why);
    let Some(gateway) = listeners::parent(set) else {
        return not_ours(unserved("parentRef names no Gateway".to_owned()), settings);
    };
    let Some(merged) = view.listeners(&gateway) else {
        let what = if view.gateway(&gateway).is_some() { "is not served" } else { "does not exist" };
        return not_ours(unserved(format!("{gateway} {what}")).related_to(gateway.at("")), settings);
    };
    let mut verdicts = VerdictList::default();
    if !merged.allowed_sets.allow(&subject.namespace, view) {
        let why = format!("{gateway} allows no ListenerSets of namespace {}", subject.namespace);
        verdicts.push(Verdict::new(Code::ListenerSetNotAllowed, subject.at("spec.parentRef"), why.as_str()));
        let code = Code::ListenerSetNotAllowed;
        let refused = [ACCEPTED, PROGRAMMED].map(|kind| conditions::refused(kind, "NotAllowed", code, &why));
        let object = Scope { conditions: refused.into(), ..Scope::default() };
        return Some(crate::only_status(subject, StatusFacts { object, lists: Vec::new() }, verdicts));
    }
    verdicts.extend(foreign::look(&set.meta, &subject).verdicts);
    let parent = view.gateway(&gateway)?;
    let own = merged.of(&subject);
    let pieces = pieces::of(&parent, &set.meta, &subject, &set.spec.listeners, own, view, settings);
    let (all, usable) = (pieces.all, pieces.usable);
    let why = format!("{} of {all} listeners are not valid; the status of each says why.", all - usable);
    let why = conditions::coded(pieces.not_usable.unwrap_or(Code::GatewayListener), why);
    let mut stated = vec![match &merged.refused {
        Some(why) => conditions::refused(ACCEPTED, "ParentNotAccepted", Code::GatewayListener, why),
        None if usable == all => conditions::accepted(LISTENERS_ARE_VALID),
        None => conditions::new(ACCEPTED, (usable > 0).into(), "ListenersNotValid", why.as_str()),
    }];
    if merged.refused.is_some() || usable == 0 {
        stated.push(conditions::new(PROGRAMMED, Truth::False, "ListenersNotValid", why));
    }
    let is_accepted = stated.iter().all(|condition| condition.status == Truth::True);
    let object = Scope { conditions: stated, ..Scope::default() };
    let mut translation = pieces.into_translation(subject, object, verdicts);
    if is_accepted {
        translation.attached.push(Section { object: gateway, name: "".into() });
    }
    Some(translation)
}

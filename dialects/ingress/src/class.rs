//! Whether an Ingress is ours, by its class.
//!
//! The class is that of an annotation, else of `spec.ingressClassName`, else the cluster's default class; an annotation or a field
//! that is empty names none. With classes configured, it must be one of them. With none configured, ours are the classes `sesame` and
//! `contour`, every class whose controller is Sesame, and Ingresses without a class, unless the default class says that they are
//! another's. On request Emissary's class and the classes of its controller are ours, too, where their annotation
//! `getambassador.io/ambassador-id` names this instance.

use crate::{CONTROLLER, IngressView, Settings};
use kinds::{
    Fault, Ingress, IngressClass, Meta,
    emissary::{AmbassadorId, ID_ANNOTATION},
};
use model::FieldPath;
use resolve::OtherClass;

/// The annotations that name a class, the strongest first.
pub const ANNOTATIONS: [&str; 3] =
    ["projectsesame.io/ingress.class", "projectcontour.io/ingress.class", "kubernetes.io/ingress.class"];

/// Classes that are ours by name where none was configured.
const OURS: [&str; 2] = ["sesame", "contour"];

/// The class of Emissary's Ingresses.
const EMISSARY_CLASS: &str = "ambassador";

/// The controller of Emissary's classes.
pub const EMISSARY_CONTROLLER: &str = "getambassador.io/ingress-controller";

/// The class that an object names and that is not ours, with its field; and the classes that are. Classes of our controller are
/// not listed: their names are not known here.
pub fn other<'o>(object: &'o Ingress, settings: &'o Settings) -> OtherClass<'o> {
    let ours = settings.class_names.iter().map(|name| &**name);
    let mut ours = if settings.class_names.is_empty() { OURS.to_vec() } else { ours.collect() };
    ours.extend(settings.emissary_class.then_some(EMISSARY_CLASS));
    let field =
        annotation(object).map_or_else(|| "spec.ingressClassName".into(), |(name, _)| FieldPath::annotation(name));
    OtherClass { field, named: named(object).ok().flatten(), ours }
}

/// Whose an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It is ours.
    Ours,
    /// Another instance with another id serves Emissary's classes, and this object is for that one.
    OtherInstance,
    /// Its class is not ours, or cannot be read.
    OtherClass,
}

/// Whose the object is. One whose class cannot be read is nobody's: to serve what another controller was meant to
/// serve is worse than to wait for the mended object.
pub fn owner(object: &Ingress, view: &mut impl IngressView, settings: &Settings) -> Owner {
    let Ok(named) = named(object) else { return Owner::OtherClass };
    let class = match named {
        Some(name) if is_named(name, settings) && !settings.emissary_class => return Owner::Ours,
        Some(name) => view.class(name),
        None => view.default_class(),
    };
    let Some(name) = named.or(class.as_deref().map(|class| &*class.meta.name)) else {
        return if settings.class_names.is_empty() { Owner::Ours } else { Owner::OtherClass };
    };
    if class.as_deref().is_some_and(|class| is_served(class, settings)) {
        return Owner::Ours;
    }
    // Ids count for Emissary's classes also where these are configured by name.
    match is_for_instance(object, name, class.as_deref(), settings) {
        Some(true) => Owner::Ours,
        Some(false) => Owner::OtherInstance,
        None if is_named(name, settings) => Owner::Ours,
        None => Owner::OtherClass,
    }
}

/// Whether a class is ours by its name.
fn is_named(name: &str, settings: &Settings) -> bool {
    match settings.class_names.is_empty() {
        true => OURS.contains(&name),
        false => settings.class_names.iter().any(|ours| **ours == *name),
    }
}

/// Whether a class is ours by its controller: where classes are configured, no class of Sesame's is.
fn is_served(class: &IngressClass, settings: &Settings) -> bool {
    settings.class_names.is_empty() && controller(class) == Some(CONTROLLER)
}

fn controller(class: &IngressClass) -> Option<&str> {
    class.spec.controller.ok()?.as_deref()
}

/// Whether an Ingress of Emissary's class, or of a class of its controller, is for this instance: the ids of the Ingress say so, and
/// those of the class of its controller, unless an annotation names Emissary's class. Nothing where its class is no such class, or
/// none is served.
fn is_for_instance(object: &Ingress, name: &str, class: Option<&IngressClass>, settings: &Settings) -> Option<bool> {
    let of_controller = class.filter(|class| controller(class) == Some(EMISSARY_CONTROLLER));
    let is_for = |meta: &Meta| {
        let Ok(text) = meta.annotations.get(ID_ANNOTATION) else { return false };
        let ids = text.map(|text| AmbassadorId::of_annotation(text)).unwrap_or_default();
        ids.includes(&settings.ambassador_id)
    };
    match of_controller {
        _ if !settings.emissary_class => None,
        Some(class) if name != EMISSARY_CLASS || annotation(object).is_none() => {
            Some(is_for(&object.meta) && is_for(&class.meta))
        }
        _ => (name == EMISSARY_CLASS).then(|| is_for(&object.meta)),
    }
}

fn named(object: &Ingress) -> Result<Option<&str>, &Fault> {
    match annotation(object) {
        Some((_, class)) => class.map(Some),
        None => Ok(object.spec.ingress_class_name.get()?.as_deref().filter(|name| !name.is_empty())),
    }
}

/// The annotation that names the class, readable or not: the strongest one. An empty one names none and hides weaker ones, as in
/// Contour.
fn annotation(object: &Ingress) -> Option<(&'static str, Result<&str, &Fault>)> {
    let annotations = &object.meta.annotations;
    let mut found = ANNOTATIONS.into_iter().filter_map(|name| Some((name, annotations.get(name).transpose()?)));
    let (name, class) = found.next()?;
    let class = class.map(|class| &**class);
    (class != Ok("")).then_some((name, class))
}

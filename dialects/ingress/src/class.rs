//! Whether an Ingress is ours, by its class.
//!
//! The class is that of an annotation, else of `spec.ingressClassName`, else the cluster's default class. With classes
//! configured, it must be one of them. With none configured, ours are the classes `sesame` and `contour`, every class
//! whose controller is Sesame, and Ingresses without a class, unless the default class says that they are another's. On request
//! Emissary's class and the classes of its controller are ours, too.

use crate::{CONTROLLER, IngressView, Settings};
use kinds::{Fault, Ingress, IngressClass};
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
    let annotated = ANNOTATIONS.iter().find(|name| !matches!(object.meta.annotations.get(name), Ok(None)));
    let field = annotated.map_or_else(|| "spec.ingressClassName".into(), |name| FieldPath::annotation(name));
    OtherClass { field, named: named(object).ok().flatten(), ours }
}

/// Whether the object is ours. One whose class cannot be read is nobody's: to serve what another controller was meant to
/// serve is worse than to wait for the mended object.
pub fn is_ours(object: &Ingress, view: &mut impl IngressView, settings: &Settings) -> bool {
    let Ok(named) = named(object) else { return false };
    match named {
        Some(name) => is_named(name, settings) || view.class(name).is_some_and(|class| is_served(&class, settings)),
        None => match view.default_class() {
            Some(class) => is_named(&class.meta.name, settings) || is_served(&class, settings),
            None => settings.class_names.is_empty(),
        },
    }
}

/// Whether a class is ours by its name.
fn is_named(name: &str, settings: &Settings) -> bool {
    let is_ours = match settings.class_names.is_empty() {
        true => OURS.contains(&name),
        false => settings.class_names.iter().any(|ours| **ours == *name),
    };
    is_ours || settings.emissary_class && name == EMISSARY_CLASS
}

/// Whether a class is ours by its controller: where classes are configured, no class of Sesame's is.
fn is_served(class: &IngressClass, settings: &Settings) -> bool {
    let Some(Some(controller)) = class.spec.controller.ok() else { return false };
    settings.class_names.is_empty() && **controller == *CONTROLLER
        || settings.emissary_class && **controller == *EMISSARY_CONTROLLER
}

fn named(object: &Ingress) -> Result<Option<&str>, &Fault> {
    for annotation in ANNOTATIONS {
        if let Some(name) = object.meta.annotations.get(annotation)? {
            return Ok(Some(name));
        }
    }
    Ok(object.spec.ingress_class_name.get()?.as_deref())
}

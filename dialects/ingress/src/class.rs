//! Whether an Ingress is ours, by its class.
//!
//! The class is that of an annotation, else of `spec.ingressClassName`, else the cluster's default class. With classes
//! configured, it must be one of them. With none configured, ours are the classes `sesame` and `contour`, every class
//! whose controller is Sesame, and Ingresses without a class, unless the default class says that they are another's.

use crate::{CONTROLLER, IngressView, Settings};
use kinds::{Fault, Ingress, IngressClass};
use model::FieldPath;
use resolve::OtherClass;

/// The annotations that name a class, the strongest first.
pub const ANNOTATIONS: [&str; 3] =
    ["projectsesame.io/ingress.class", "projectcontour.io/ingress.class", "kubernetes.io/ingress.class"];

/// Classes that are ours by name where none was configured.
const OURS: [&str; 2] = ["sesame", "contour"];

/// The class that an object names and that is not ours, with its field; and the classes that are. Classes of our controller are
/// not listed: their names are not known here.
pub fn other<'o>(object: &'o Ingress, settings: &'o Settings) -> OtherClass<'o> {
    let ours = settings.class_names.iter().map(|name| &**name);
    let ours = if settings.class_names.is_empty() { OURS.to_vec() } else { ours.collect() };
    let annotated = ANNOTATIONS.iter().find(|name| !matches!(object.meta.annotations.get(name), Ok(None)));
    let field = annotated.map_or_else(|| "spec.ingressClassName".into(), |name| FieldPath::annotation(name));
    OtherClass { field, named: named(object).ok().flatten(), ours }
}

/// Whether the object is ours. One whose class cannot be read is nobody's: to serve what another controller was meant to
/// serve is worse than to wait for the mended object.
pub fn is_ours(object: &Ingress, view: &mut impl IngressView, settings: &Settings) -> bool {
    let Ok(named) = named(object) else { return false };
    match named {
        Some(name) if settings.class_names.is_empty() => {
            OURS.contains(&name) || view.class(name).is_some_and(|class| is_of_our_controller(&class))
        }
        Some(name) => settings.class_names.iter().any(|ours| **ours == *name),
        None => match view.default_class() {
            Some(class) if settings.class_names.is_empty() => {
                OURS.contains(&&*class.meta.name) || is_of_our_controller(&class)
            }
            Some(class) => settings.class_names.iter().any(|ours| **ours == *class.meta.name),
            None => settings.class_names.is_empty(),
        },
    }
}

fn named(object: &Ingress) -> Result<Option<&str>, &Fault> {
    for annotation in ANNOTATIONS {
        if let Some(name) = object.meta.annotations.get(annotation)? {
            return Ok(Some(name));
        }
    }
    Ok(object.spec.ingress_class_name.get()?.as_deref())
}

fn is_of_our_controller(class: &IngressClass) -> bool {
    matches!(class.spec.controller.ok(), Some(Some(controller)) if **controller == *CONTROLLER)
}

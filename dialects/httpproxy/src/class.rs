//! Whether an HTTPProxy is ours, by its class.
//!
//! The class is that of an annotation, else of `spec.ingressClassName`; an annotation or a field that is empty names none. With
//! classes configured, it must be one of them. With none configured, ours are the classes `sesame` and `contour`, and
//! HTTPProxies without a class. A child that is not ours cannot be included.

use crate::Settings;
use kinds::{Fault, HttpProxy};
use model::FieldPath;
use resolve::OtherClass;

/// The annotations that name a class, the strongest first.
pub const ANNOTATIONS: [&str; 3] =
    ["projectsesame.io/ingress.class", "projectcontour.io/ingress.class", "kubernetes.io/ingress.class"];

/// Classes that are ours by name where none was configured.
const OURS: [&str; 2] = ["sesame", "contour"];

/// The class that an object names and that is not ours, with its field; and the classes that are.
pub fn other<'o>(object: &'o HttpProxy, settings: &'o Settings) -> OtherClass<'o> {
    let ours = settings.class_names.iter().map(|name| &**name);
    let ours = if settings.class_names.is_empty() { OURS.to_vec() } else { ours.collect() };
    let field =
        annotation(object).map_or_else(|| "spec.ingressClassName".into(), |(name, _)| FieldPath::annotation(name));
    OtherClass { field, named: named(object).ok().flatten(), ours }
}

/// Whether the object is ours. One whose class cannot be read is nobody's: to serve what another controller was meant to
/// serve is worse than to wait for the mended object.
pub fn is_ours(object: &HttpProxy, settings: &Settings) -> bool {
    match named(object) {
        Ok(Some(name)) if settings.class_names.is_empty() => OURS.contains(&name),
        Ok(Some(name)) => settings.class_names.iter().any(|ours| **ours == *name),
        Ok(None) => settings.class_names.is_empty(),
        Err(_) => false,
    }
}

fn named(object: &HttpProxy) -> Result<Option<&str>, &Fault> {
    match annotation(object) {
        Some((_, class)) => class.map(Some),
        None => Ok(object.spec.ingress_class_name.get()?.as_deref().filter(|name| !name.is_empty())),
    }
}

/// The annotation that names the class, readable or not: the strongest one. An empty one names none and hides weaker ones, as in
/// Contour.
fn annotation(object: &HttpProxy) -> Option<(&'static str, Result<&str, &Fault>)> {
    let annotations = &object.meta.annotations;
    let mut found = ANNOTATIONS.into_iter().filter_map(|name| Some((name, annotations.get(name).transpose()?)));
    let (name, class) = found.next()?;
    let class = class.map(|class| &**class);
    (class != Ok("")).then_some((name, class))
}

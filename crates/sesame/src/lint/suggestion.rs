//! What was probably meant by the name of an object that does not exist.
//!
//! In: all objects that came from files. Out: `did you mean …?`, or the namespace in which an object of that name is. Only objects
//! of the same kind are looked at, and names only in the namespace in question: that bounds the work by the size of a namespace.

use std::collections::{BTreeMap, HashMap};

use kinds::{Kind, suggest};
use model::ObjectRef;
use source::ObjectLocations;

/// How many names are looked for: whoever has more mistakes than this gets their places, and no suggestions for the rest.
const MOST: usize = 200;
/// How many namespaces a message names.
const NAMESPACES: usize = 3;

/// The names of objects.
pub struct Names<'o> {
    origins: &'o ObjectLocations,
    by_kind: Option<BTreeMap<Kind, Vec<&'o ObjectRef>>>,
    found: HashMap<ObjectRef, Option<String>>,
}

impl<'o> Names<'o> {
    /// The names of the objects that came from files.
    pub fn new(origins: &'o ObjectLocations) -> Self {
        Self { origins, by_kind: None, found: HashMap::new() }
    }

    /// What stands near an object that does not exist.
    pub fn near(&mut self, absent: &ObjectRef) -> Option<String> {
        if let Some(found) = self.found.get(absent) {
            return found.clone();
        }
        if self.found.len() >= MOST {
            return None;
        }
        let by_kind = self.by_kind.get_or_insert_with(|| {
            let mut by_kind: BTreeMap<Kind, Vec<&ObjectRef>> = BTreeMap::new();
            self.origins.objects().for_each(|object| by_kind.entry(object.kind).or_default().push(object));
            by_kind.values_mut().for_each(|objects| objects.sort_unstable());
            by_kind
        });
        let found = suggestion(absent, by_kind.get(&absent.kind).map_or(&[], Vec::as_slice));
        self.found.insert(absent.clone(), found.clone());
        found
    }
}

fn suggestion(absent: &ObjectRef, known: &[&ObjectRef]) -> Option<String> {
    let namespaces = known.iter().filter(|object| object.name == absent.name);
    let namespaces: Vec<&str> = namespaces.map(|object| &*object.namespace).take(NAMESPACES + 1).collect();
    match &namespaces[..] {
        [] => {
            let neighbours = known.iter().filter(|object| object.namespace == absent.namespace);
            let meant = suggest::nearest(&absent.name, neighbours.map(|object| &*object.name))?;
            Some(format!("did you mean `{meant}`?"))
        }
        [namespace] => Some(format!("`{}` exists in namespace {namespace}", absent.name)),
        several if several.len() > NAMESPACES => {
            let some = several[..NAMESPACES].join(", ");
            Some(format!("`{}` exists in namespaces {some} and others", absent.name))
        }
        several => Some(format!("`{}` exists in namespaces {}", absent.name, several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind::{SECRET, SERVICE};

    #[test]
    fn names_of_the_same_kind_and_namespace_and_namespaces_of_the_same_name() {
        let objects = [
            ObjectRef::new(SERVICE, "shop", "web"),
            ObjectRef::new(SERVICE, "shop", "checkout"),
            ObjectRef::new(SERVICE, "team-a", "api"),
            ObjectRef::new(SERVICE, "team-b", "api"),
            ObjectRef::new(SECRET, "team-c", "api"),
        ];
        let services: Vec<_> = objects.iter().filter(|object| object.kind == SERVICE).collect();
        let near = |namespace: &str, name: &str| suggestion(&ObjectRef::new(SERVICE, namespace, name), &services);
        assert_eq!(near("shop", "chekout").as_deref(), Some("did you mean `checkout`?"));
        assert_eq!(near("team-a", "chekout"), None, "another namespace has a name that is near");
        assert_eq!(near("default", "web").as_deref(), Some("`web` exists in namespace shop"));
        assert_eq!(near("shop", "api").as_deref(), Some("`api` exists in namespaces team-a, team-b"));
        assert_eq!(near("shop", "billing"), None);
    }
}

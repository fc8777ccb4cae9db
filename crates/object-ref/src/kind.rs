//! A kind of object: a pointer to the row of the table of kinds that says what the API calls it.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
};

/// What the API calls a kind.
#[derive(Debug)]
pub struct ApiResource {
    group: &'static str,
    versions: &'static [&'static str],
    name: &'static str,
    label: &'static str,
    plural: &'static str,
    scope: Scope,
    is_fetched: bool,
    is_metadata_only: bool,
    is_optional: bool,
    has_own_status: bool,
    /// A hash of the name: keys of tables are hashed all the time.
    hash: u32,
}

/// Where objects of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster as a whole.
    Cluster,
}

impl ApiResource {
    /// A kind by its API group (empty for the core group), its versions (the preferred one first), its name, the plural in
    /// URLs, and its scope.
    ///
    /// # Panics
    /// If there is no version.
    pub const fn new(
        group: &'static str,
        versions: &'static [&'static str],
        name: &'static str,
        plural: &'static str,
        scope: Scope,
    ) -> Self {
        assert!(!versions.is_empty(), "a kind has a version");
        let hash = fnv1a(name.as_bytes());
        Self {
            group,
            versions,
            name,
            label: name,
            plural,
            scope,
            is_fetched: false,
            is_metadata_only: false,
            is_optional: false,
            has_own_status: false,
            hash,
        }
    }

    /// The same, shown to people by another name than its own: `Name.group`, where two groups have a kind of one name.
    #[must_use]
    pub const fn labelled(self, label: &'static str) -> Self {
        Self { label, ..self }
    }

    /// The same, fetched by name when something refers to an object. Of the others only names are read.
    #[must_use]
    pub const fn fetched(self) -> Self {
        Self { is_fetched: true, ..self }
    }

    /// The same, of which only the metadata is read.
    #[must_use]
    pub const fn metadata_only(self) -> Self {
        Self { is_metadata_only: true, ..self }
    }

    /// The same, taken for empty where Sesame has not the right to read it. What holds hosts, or decides about them, is not
    /// optional: a right that got lost must not take hosts away.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// The same, with a status that Sesame writes.
    #[must_use]
    pub const fn own_status(self) -> Self {
        Self { has_own_status: true, ..self }
    }
}

const fn fnv1a(bytes: &[u8]) -> u32 {
    let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// A kind of object, in one API group. Ordered by name, then group.
#[derive(Clone, Copy)]
pub struct Kind(&'static ApiResource);

impl Kind {
    /// The kind of a row.
    pub const fn new(resource: &'static ApiResource) -> Self {
        Self(resource)
    }

    /// The API group; empty for the core group.
    pub const fn group(self) -> &'static str {
        self.0.group
    }

    /// The preferred version.
    pub const fn version(self) -> &'static str {
        self.0.versions[0]
    }

    /// Every version that is read, the preferred one first.
    pub const fn versions(self) -> &'static [&'static str] {
        self.0.versions
    }

    /// The name as manifests have it: `EndpointSlice`.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// The name as people read it: with its group where the name alone could be another kind's.
    pub const fn label(self) -> &'static str {
        self.0.label
    }

    /// The name in URLs: `endpointslices`.
    pub const fn plural(self) -> &'static str {
        self.0.plural
    }

    /// Whether its objects are in a namespace.
    pub const fn is_namespaced(self) -> bool {
        matches!(self.0.scope, Scope::Namespaced)
    }

    /// Whether its objects are fetched by name when something refers to them.
    pub const fn is_fetched(self) -> bool {
        self.0.is_fetched
    }

    /// Whether only the metadata of its objects is read.
    pub const fn is_metadata_only(self) -> bool {
        self.0.is_metadata_only
    }

    /// Whether it is taken for empty where Sesame has not the right to read it.
    pub const fn is_optional(self) -> bool {
        self.0.is_optional
    }

    /// Whether Sesame writes the status of its objects.
    pub const fn has_own_status(self) -> bool {
        self.0.has_own_status
    }

    /// Whether a document with this `apiVersion` and the kind's name is of it.
    pub fn is_read_from(self, api_version: &str) -> bool {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.group() == group && self.versions().contains(&version)
    }

    /// Group and preferred version as `apiVersion` has them: `discovery.k8s.io/v1`, `v1`.
    pub fn api_version(self) -> String {
        match (self.group(), self.version()) {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        }
    }

    fn order(self) -> (&'static str, &'static str) {
        (self.0.name, self.0.group)
    }
}

/// Two rows of one name and group are one kind; nearly always the pointers decide.
impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0) || self.order() == other.order()
    }
}

impl Eq for Kind {}

impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        if std::ptr::eq(self.0, other.0) { Ordering::Equal } else { self.order().cmp(&other.order()) }
    }
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.hash);
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.label)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_name_and_group() {
        static ONE: ApiResource = ApiResource::new("a.io", &["v1", "v1alpha1"], "Thing", "things", Scope::Cluster);
        static SAME: ApiResource = ApiResource::new("a.io", &["v1"], "Thing", "things", Scope::Cluster);
        static OTHER: ApiResource =
            ApiResource::new("b.io", &["v1"], "Thing", "things", Scope::Cluster).labelled("Thing.b.io");
        let [one, same, other] = [&ONE, &SAME, &OTHER].map(Kind::new);
        assert_eq!(one, same);
        assert_eq!(one.cmp(&same), Ordering::Equal);
        assert!(one < other && one != other);
        assert_eq!((one.to_string(), other.to_string()), ("Thing".into(), "Thing.b.io".into()));
        assert_eq!((one.version(), one.versions()), ("v1", &["v1", "v1alpha1"][..]));
        assert_eq!((one.api_version(), other.name()), ("a.io/v1".into(), "Thing"));
        assert!(one.is_read_from("a.io/v1") && one.is_read_from("a.io/v1alpha1"));
        assert!(!one.is_read_from("a.io/v2") && !one.is_read_from("b.io/v1") && !one.is_read_from("v1"));
    }
}

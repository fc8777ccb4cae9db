//! What every object has: `metadata`, as far as something reads it.

use crate::{
    TextMap, Uid,
    checked::or_default,
    text_map::{FromText, Written},
};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use std::sync::Arc;

/// Where an object without a namespace stands, if its kind needs one.
pub const DEFAULT_NAMESPACE: &str = "default";

/// The copy of the whole object that kubectl keeps in an annotation.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The names of an object and what is written about it.
///
/// Two that differ only in `resource_version` are equal: it says when something was written, not what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The namespace; empty for kinds that stand in none.
    #[serde(default, deserialize_with = "shared")]
    pub namespace: Arc<str>,
    /// The name.
    #[serde(default, deserialize_with = "shared")]
    pub name: Arc<str>,
    /// What tells it from an object of the same name that was deleted; empty in files.
    #[serde(default, deserialize_with = "written")]
    pub uid: Uid,
    /// Counts the changes of `spec`; 0 in files.
    #[serde(default, deserialize_with = "or_default")]
    pub generation: i64,
    /// When it was created: the older of two that conflict wins.
    #[serde(default, rename = "creationTimestamp", deserialize_with = "time")]
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    #[serde(default, rename = "deletionTimestamp", deserialize_with = "is_there")]
    pub deleting: bool,
    /// The labels.
    #[serde(default)]
    pub labels: TextMap,
    /// The annotations, without kubectl's copy of the object.
    #[serde(default, deserialize_with = "annotations")]
    pub annotations: TextMap,
    /// The API server's count of writes when this one was made; 0 in files. (A number for every kind that is read here.)
    #[serde(default, deserialize_with = "resource_version")]
    pub resource_version: u64,
}

/// The fields of `metadata` that nothing reads.
pub(crate) const UNREAD: (&str, &[&str]) = (
    "Meta",
    &["managedFields", "selfLink", "generateName", "deletionGracePeriodSeconds", "ownerReferences", "finalizers"],
);

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        let Self { namespace, name, uid, generation, created, deleting, labels, annotations, resource_version: _ } =
            self;
        *name == other.name
            && *namespace == other.namespace
            && *uid == other.uid
            && *generation == other.generation
            && *created == other.created
            && *deleting == other.deleting
            && *labels == other.labels
            && *annotations == other.annotations
    }
}

impl Eq for Meta {}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    <&str>::deserialize(deserializer).map(Arc::from)
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    #[derive(Default)]
    struct Time(Option<Timestamp>);

    impl FromText for Time {
        fn from_text(text: &str) -> Result<Self, &'static str> {
            text.parse().map(|time| Time(Some(time))).map_err(|_| "expected a time such as 2006-01-02T15:04:05Z")
        }
    }
    written(deserializer).map(|Time(time)| time)
}

fn written<'de, T: FromText + Default, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    or_default::<Written<T>, D>(deserializer).map(|Written(value)| value)
}

fn resource_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Default)]
    struct Version(u64);

    impl FromText for Version {
        fn from_text(text: &str) -> Result<Self, &'static str> {
            // What is no number is no fault either: nobody but the API server has a use for it.
            Ok(Version(text.parse().unwrap_or_default()))
        }
    }
    written(deserializer).map(|Version(version)| version)
}

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    // `null` fields never get here.
    serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
}

fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TextMap, D::Error> {
    let mut annotations = TextMap::deserialize(deserializer)?;
    annotations.retain(|key| key != LAST_APPLIED);
    Ok(annotations)
}

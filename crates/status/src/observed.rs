//! An object as far as its status is concerned.
//!
//! In: an object as it was read. Out: what decides about a write of its status, and what the request needs. What the object asks
//! for is not kept: tables hold it already, and each write brings the object back as one more copy of it.

use kinds::{Meta, Object, Status, Uid};
use std::hash::{DefaultHasher, Hash, Hasher};

/// An object as it was seen last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    /// What tells it from another object of its name.
    pub uid: Uid,
    /// Counts the changes of what it asks for.
    pub generation: i64,
    /// The API server's count of writes.
    pub version: u64,
    /// What it says.
    pub status: Status,
    /// A hash of what people write into its metadata, of which the generation does not tell.
    metadata: u64,
}

impl Observed {
    /// An object, if it is of a kind that has a status.
    pub fn new(object: &Object) -> Option<Self> {
        let Meta { uid, generation, resource_version, labels, annotations, deleting, .. } = object.meta();
        Some(Self {
            uid: uid.clone(),
            generation: *generation,
            version: *resource_version,
            status: object.status()?.clone(),
            metadata: hash_of(&(labels, annotations, deleting)),
        })
    }

    /// Whether it differs from another state of the same object in its status at most, or in its version.
    pub fn equals_but_status(&self, other: &Self) -> bool {
        self.uid == other.uid && self.generation == other.generation && self.metadata == other.metadata
    }
}

/// A hash, to tell whether something is as it was: what it was is not kept.
pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use kinds::kind;
    use serde_json::{Value, json};

    fn read(version: &str, generation: i64, annotations: &Value, status: &Value) -> Observed {
        let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": version, "generation": generation,
            "annotations": annotations });
        let object = json!({ "metadata": metadata, "status": status });
        let decoded = kinds::decode_json(kind::CONTOUR_HTTP_PROXY, object.to_string().as_bytes()).unwrap();
        Observed::new(&decoded.object).unwrap()
    }

    #[test]
    fn a_status_is_told_from_what_is_asked_for() {
        let bare = read("1", 1, &json!({}), &json!({}));
        let told = read("2", 1, &json!({}), &json!({ "currentStatus": "valid" }));
        assert!(bare.equals_but_status(&told) && bare.status != told.status);
        assert!(!bare.equals_but_status(&read("3", 2, &json!({}), &json!({}))), "another spec");
        assert!(!bare.equals_but_status(&read("3", 1, &json!({ "class": "b" }), &json!({}))), "other annotations");
    }
}

//! A selector of objects by their labels.

use crate::{List, emissary::Map, label_selector::LabelRequirement};
use serde::Deserialize;

/// Selects the objects that have all these labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// The labels.
    pub match_labels: Map<Box<str>>,
    /// Requirements on labels. Emissary ignores them.
    pub match_expressions: List<LabelRequirement>,
}

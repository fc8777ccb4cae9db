//! A selector of objects by their labels, as Kubernetes writes it.

use crate::{List, TextMap, open_enum::open_enum};
use serde::Deserialize;

/// Objects by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that an object must have.
    #[serde(default)]
    pub match_labels: TextMap,
    /// Requirements that an object must meet.
    #[serde(default)]
    pub match_expressions: List<LabelRequirement>,
}

/// A requirement of a label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LabelRequirement {
    /// The label.
    pub key: Box<str>,
    /// How its value is compared.
    pub operator: Option<LabelOperator>,
    /// The values, for `In` and `NotIn`.
    #[serde(default)]
    pub values: Box<[Box<str>]>,
}

open_enum! {
    /// How the value of a label is compared.
    LabelOperator {
        /// The value is one of the list.
        In = "In",
        /// The value is not in the list, or the label is absent.
        NotIn = "NotIn",
        /// The label is present.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
    }
}

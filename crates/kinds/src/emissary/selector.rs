//! A selector of objects by their labels.

use crate::{List, emissary::Map, open_enum::open_enum};
use serde::Deserialize;

/// Selects the objects that have all these labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// The labels.
    pub match_labels: Map<Box<str>>,
    /// Conditions on labels. Emissary ignores them.
    pub match_expressions: List<LabelExpression>,
}

/// A condition on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LabelExpression {
    /// The label.
    pub key: Box<str>,
    /// How it is compared.
    pub operator: Option<LabelOperator>,
    /// The values it is compared with.
    #[serde(default)]
    pub values: Box<[Box<str>]>,
}

open_enum! {
    /// How a label is compared.
    LabelOperator {
        /// It has one of the values.
        In = "In",
        /// It has none of the values.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is not there.
        DoesNotExist = "DoesNotExist",
    }
}

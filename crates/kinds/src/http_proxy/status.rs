//! What was last said about an HTTPProxy.

use crate::{List, ingress::LoadBalancer};
use serde::Deserialize;

/// What was last said about an HTTPProxy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpProxyStatus {
    /// `valid`, `invalid` or `orphaned`.
    pub current_status: Option<Box<str>>,
    /// The same in a sentence.
    pub description: Option<Box<str>>,
    /// Where it is served.
    #[serde(default)]
    pub load_balancer: LoadBalancer,
    /// What holds and what does not.
    #[serde(default)]
    pub conditions: List<DetailedCondition>,
}

/// One thing that holds or does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DetailedCondition {
    /// What it is about.
    pub r#type: Box<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// Why, in one word.
    pub reason: Box<str>,
    /// Why, in a sentence.
    pub message: Box<str>,
    /// When `status` last changed.
    pub last_transition_time: Option<Box<str>>,
    /// The generation that it is about.
    pub observed_generation: Option<i64>,
    /// What is wrong.
    pub errors: Vec<SubCondition>,
    /// What is there, though hardly as it was meant.
    pub warnings: Vec<SubCondition>,
}

/// One finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubCondition {
    /// What it is about.
    pub r#type: Box<str>,
    /// `True`: it is so.
    pub status: Box<str>,
    /// Why, in one word.
    pub reason: Box<str>,
    /// Why, in a sentence.
    pub message: Box<str>,
}

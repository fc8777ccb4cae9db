//! References to Secrets: which Secrets translations refer to, and the result of fetching each.
//!
//! In a cluster most Secrets are nobody's business here, so their contents are not read until a translation asks for them.
//! [`SecretRefs`] has a row for each Secret that some translation asks for, there or not; whoever feeds the pipeline brings what is new
//! in it and may forget what is gone. [`FetchResults`] is the way back: until it has a row, the Secret is pending, and the translation
//! that asks for it keeps what it had ([`crate::pending`]). What is pending is an input like any other, so the state after any
//! order of answers is that of a build from nothing.

use crate::translations::SecretsAskedFor;
use engine::{Input, Table};
use model::ObjectRef;
use std::sync::Arc;

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchResult {
    /// The Secret was read.
    Found,
    /// There is no such Secret.
    Absent,
    /// It cannot be read, for this reason; it is tried again.
    NotReadable(Arc<str>),
}

/// What is known about the Secrets that were asked for.
pub struct FetchResults;

impl Table for FetchResults {
    type Key = ObjectRef;
    type Value = FetchResult;
    const NAME: &'static str = "secret fetch results";
}

impl Input for FetchResults {}

rows_without_value! {
    SecretRefs of ObjectRef, "secret references", "The Secrets that translations ask for.";
}

/// Declares the input.
pub fn declare_results(pipeline: &mut engine::Pipeline) {
    pipeline.input::<FetchResults>();
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<SecretsAskedFor>();
    pipeline.derived(SecretRefs).per::<SecretsAskedFor>().output();
}

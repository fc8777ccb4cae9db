//! Wants: what units refer to and somebody has to bring, and what became of it.
//!
//! In a cluster most Secrets are nobody's business here, so their contents are not read until a unit asks for them.
//! [`Wanted`] has a row for each Secret that some unit asks for, there or not; whoever feeds the pipeline brings what is new
//! in it and may forget what is gone. [`Answers`] is the way back: until it has a row, the Secret is pending, and the unit
//! that asks for it keeps what it had ([`crate::pending`]). What is pending is an input like any other, so the state after any
//! order of answers is that of a build from nothing.

use crate::units::SecretsAskedFor;
use engine::{Derived, Input, Reads, Table};
use model::SecretId;
use std::sync::Arc;

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The Secret was read.
    Found,
    /// There is no such Secret.
    Absent,
    /// It cannot be read, for this reason; it is tried again.
    NotReadable(Arc<str>),
}

/// What is known about the Secrets that were asked for.
pub struct Answers;

impl Table for Answers {
    type Key = SecretId;
    type Value = Answer;
    const NAME: &'static str = "answers about secrets";
}

impl Input for Answers {}

/// The Secrets that units ask for.
pub struct Wanted;

impl Table for Wanted {
    type Key = SecretId;
    type Value = ();
    const NAME: &'static str = "wanted secrets";
}

impl Derived for Wanted {
    fn compute(&self, _: &SecretId, _: &mut Reads<'_>) -> Option<()> {
        Some(())
    }
}

/// Declares the input.
pub fn declare_answers(pipeline: &mut engine::Pipeline) {
    pipeline.input::<Answers>();
}

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<SecretsAskedFor>();
    pipeline.derived(Wanted).per::<SecretsAskedFor>().output();
}

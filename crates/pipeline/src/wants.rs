//! Wants: what units refer to and somebody has to bring.
//!
//! In a cluster most Secrets are nobody's business here, so their contents are not read until a unit asks for them. This
//! table has a row for each Secret that some unit asks for, there or not; whoever feeds the pipeline brings what is new in
//! it and may forget what is gone.

use crate::units::SecretsAskedFor;
use engine::{Derived, Reads, Table};
use model::SecretId;

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

/// Declares the table.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.index::<SecretsAskedFor>();
    pipeline.derived(Wanted).per::<SecretsAskedFor>().output();
}

//! Translations that tests make by hand, for what no dialect asks for yet.

use engine::{Input, Table};
use model::{ObjectRef, Translation};

pub struct GivenTranslations;

impl Table for GivenTranslations {
    type Key = ObjectRef;
    type Value = Translation;
    const NAME: &'static str = "given translations";
}

impl Input for GivenTranslations {}

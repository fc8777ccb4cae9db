//! Annotations that exist under Contour's prefix and under ours, which wins.

use kinds::{Fault, Meta};

/// The prefixes, the strongest first.
pub const PREFIXES: [&str; 2] = ["projectsesame.io/", "projectcontour.io/"];

/// An annotation that was found: its whole name, and its value.
pub struct Found<'a> {
    /// The name with its prefix.
    pub name: String,
    /// The value.
    pub value: &'a str,
}

/// Looks an annotation up by its name without prefix. A value that is no text is an error, never "not there": some
/// annotations protect.
pub fn get<'a>(meta: &'a Meta, name: &str) -> Result<Option<Found<'a>>, &'a Fault> {
    for prefix in PREFIXES {
        let name = format!("{prefix}{name}");
        if let Some(value) = meta.annotations.get(&name)? {
            return Ok(Some(Found { name, value }));
        }
    }
    Ok(None)
}

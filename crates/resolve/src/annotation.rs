//! Annotations that exist under Contour's prefix and under ours, which wins; [`foreign`] has those of others.

pub mod foreign;

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
    // Every object is asked for every name, and most have few annotations: comparing is cheaper than making names.
    for prefix in PREFIXES {
        if let Some((key, value)) = meta.annotations.iter().find(|(key, _)| key.strip_prefix(prefix) == Some(name)) {
            return Ok(Some(Found { name: key.to_owned(), value: value? }));
        }
    }
    meta.annotations.broken().map_or(Ok(None), Err)
}

//! One row of the table of keys.

use super::Config;
use super::value::Wrong;
use kinds::Node;

/// Takes a value into the configuration.
pub type Take = fn(&mut Config, &Node<'_>) -> Result<(), Wrong>;

/// A key of the file and everything there is to say about it.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "what is said of a key is for docs/configuration.md, which a test compares")
)]
pub struct Row {
    /// The key, with those around it: `timeouts.request-timeout`.
    pub path: &'static str,
    /// What may be written, for people.
    pub form: &'static str,
    /// What holds if nothing is written, as it would be written; empty where that cannot be.
    pub default: &'static str,
    /// What it is for.
    pub says: &'static str,
    /// What becomes of it.
    pub effect: Effect,
}

/// What becomes of a key.
pub enum Effect {
    /// It takes effect.
    Works(Take),
    /// Contour has it, we do not yet: an error, since nobody writes a setting to have it ignored.
    NotYet,
    /// It is read for the sake of files that have it, and changes nothing, for this reason.
    Nothing(&'static str),
}

/// Rows, one a line: `works(path, form, default, what it is for, how it is taken)`, `not_yet(path, what it is for)`,
/// `nothing(path, what it is for, why it changes nothing)`.
macro_rules! rows {
    ($($effect:ident $row:tt;)*) => { &[$($crate::serve::config::row::row!($effect $row)),*] };
}

macro_rules! row {
    (works($path:literal, $form:expr, $default:literal, $says:literal, |$config:ident, $node:ident| $take:expr)) => {
        $crate::serve::config::row::Row {
            path: $path,
            form: $form,
            default: $default,
            says: $says,
            effect: $crate::serve::config::row::Effect::Works(|$config, $node| {
                $take;
                Ok(())
            }),
        }
    };
    (not_yet($path:literal, $says:literal)) => {
        $crate::serve::config::row::Row {
            path: $path,
            form: "",
            default: "",
            says: $says,
            effect: $crate::serve::config::row::Effect::NotYet,
        }
    };
    (nothing($path:literal, $says:literal, $why:literal)) => {
        $crate::serve::config::row::Row {
            path: $path,
            form: "",
            default: "",
            says: $says,
            effect: $crate::serve::config::row::Effect::Nothing($why),
        }
    };
}

pub(super) use {row, rows};

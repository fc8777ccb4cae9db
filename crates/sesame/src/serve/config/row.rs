//! One row of the table of keys.

use super::Config;
use super::value::Wrong;
use kinds::Node;

/// Takes a value into the configuration.
pub type Take = fn(&mut Config, &Node<'_>) -> Result<(), Wrong>;

/// A setting and everything there is to say about it.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "what is said of a key is for docs/configuration.md, which a test compares")
)]
pub struct Row {
    /// The key of the file, with those around it: `timeouts.request-timeout`; empty where the file has no such key.
    pub path: &'static str,
    /// The field of ContourConfiguration, below `spec`; empty where it has no such field.
    pub object: &'static str,
    /// What may be written, for people.
    pub form: &'static str,
    /// What holds if nothing is written, as it would be written; empty where that cannot be.
    pub default: &'static str,
    /// What it is for.
    pub says: &'static str,
    /// What becomes of it.
    pub effect: Effect,
    /// Whether a running process keeps the value that it was started with.
    pub at_start: bool,
}

/// What becomes of a key.
pub enum Effect {
    /// It takes effect.
    Works(Take),
    /// It is read for the sake of files that have it, and changes nothing, for this reason.
    Nothing(&'static str),
}

/// Where settings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In the file that `-c` names.
    File,
    /// In the `spec` of a ContourConfiguration.
    Object,
}

impl Row {
    /// Where it stands; empty where it does not.
    pub fn place(&self, form: Form) -> &'static str {
        match form {
            Form::File => self.path,
            Form::Object => self.object,
        }
    }
}

/// Rows, one a line: `works(path = object, form, default, what it is for, how it is taken)`, `at_start` the same for what is
/// read once, `nothing(path = object, what it is for, why it changes nothing)`.
/// Without `= object` there is no such field in ContourConfiguration; without a path, `""`, no such key in the file.
macro_rules! rows {
    ($($effect:ident $row:tt;)*) => { &[$($crate::serve::config::row::row!($effect $row)),*] };
}

macro_rules! row {
    (works($path:literal $(= $object:literal)?, $form:expr, $default:literal, $says:literal, |$config:ident, $node:ident| $take:expr)) => {
        $crate::serve::config::row::Row {
            path: $path,
            object: concat!("" $(, $object)?),
            form: $form,
            default: $default,
            says: $says,
            effect: $crate::serve::config::row::Effect::Works(|$config, $node| {
                $take;
                Ok(())
            }),
            at_start: false,
        }
    };
    (at_start $row:tt) => {
        $crate::serve::config::row::Row { at_start: true, ..$crate::serve::config::row::row!(works $row) }
    };
    (nothing($path:literal $(= $object:literal)?, $says:literal, $why:literal)) => {
        $crate::serve::config::row::Row {
            path: $path,
            object: concat!("" $(, $object)?),
            form: "",
            default: "",
            says: $says,
            effect: $crate::serve::config::row::Effect::Nothing($why),
            at_start: false,
        }
    };
}

pub(super) use {row, rows};

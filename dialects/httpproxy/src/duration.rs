//! Durations and timeouts: one above the limit is shortened to the limit, and reported.

use crate::Rejection;
use model::{
    Code, FieldPath, Timeout,
    timeout::{TimeoutError, parse_duration},
};
use std::time::Duration;

/// Reads a timeout; one that is not set is the default.
pub(crate) fn timeout(
    text: Option<&str>,
    code: Code,
    field: FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<Timeout, Rejection> {
    let read = Timeout::parse(text.unwrap_or_default());
    read.or_else(|error| shortened(error, code, field, notes).map(Timeout::After))
}

/// Reads a duration.
pub(crate) fn duration(
    text: &str,
    code: Code,
    field: FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<Duration, Rejection> {
    parse_duration(text).or_else(|error| shortened(error, code, field, notes))
}

/// What is used in the place of a duration that is too long; any other error stays one.
fn shortened(
    error: TimeoutError,
    code: Code,
    field: FieldPath,
    notes: &mut Vec<Rejection>,
) -> Result<Duration, Rejection> {
    match error.shortened() {
        Ok((longest, why)) => {
            notes.push(Rejection::new(Code::DurationTooLong, field, why));
            Ok(longest)
        }
        Err(error) => Err(Rejection::new(code, field, error.to_string())),
    }
}

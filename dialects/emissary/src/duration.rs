//! Durations: in milliseconds, in seconds, or with units, such as `1m30s`. One that is longer than a year is a year, and is reported.

use crate::{Problem, Problems};
use kinds::Checked;
use model::{
    Code, Timeout,
    timeout::{LONGEST, TimeoutError, parse_duration},
};
use std::time::Duration;

/// A time in milliseconds; zero is none at all.
#[allow(clippy::option_option, reason = "nothing where the field cannot be read, or nothing said")]
pub(crate) fn milliseconds(
    problems: &mut Problems<'_>,
    code: Code,
    field: &str,
    value: &Checked<Option<i64>>,
) -> Option<Option<Timeout>> {
    let Some(value) = problems.read(field, value)? else { return Some(None) };
    let found = u64::try_from(*value).ok().map(Duration::from_millis);
    let span =
        problems.parsed(found.ok_or_else(|| Problem::new(code, field, format!("must be at least 0, not {value}"))))?;
    Some(Some(timeout(at_most_a_year(problems, field, span, &format!("{value} ms")))))
}

/// The timeout of a span; zero is none at all.
pub(crate) fn timeout(span: Duration) -> Timeout {
    if span.is_zero() { Timeout::Infinite } else { Timeout::After(span) }
}

/// A text with units.
pub(crate) fn parse(problems: &mut Problems<'_>, field: &str, text: &str) -> Result<Duration, TimeoutError> {
    parse_duration(text).or_else(|error| {
        let (longest, why) = error.shortened()?;
        problems.add(Problem::new(Code::DurationTooLong, field, why));
        Ok(longest)
    })
}

/// A span, or a year where it is longer; `written` is how the message names it.
pub(crate) fn at_most_a_year(problems: &mut Problems<'_>, field: &str, span: Duration, written: &str) -> Duration {
    if span > LONGEST {
        let why = format!("{written} is longer than a year; a year is used instead");
        problems.add(Problem::new(Code::DurationTooLong, field, why));
    }
    span.min(LONGEST)
}

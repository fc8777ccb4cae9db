//! Whether Envoy can write a line of some form: one operator that it does not know, and it refuses the whole listener.

use crate::command_operators::{are_headers, for_logs, with_argument};

/// Operators that write a header; `(name)`, `(name?other)`, and a length behind that.
const HEADERS: [&str; 3] = ["REQ", "RESP", "TRAILER"];

/// Why Envoy would refuse a form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A `%` that nothing ends.
    #[error("a `%` begins an operator that nothing ends; `%%` is a plain `%`")]
    Open,
    /// Not one that may be used.
    #[error("`%{0}%` is not an operator that may be used here")]
    Unknown(Box<str>),
    /// Its argument is not right.
    #[error("`%{0}%` needs the name of a header, such as `%REQ(USER-AGENT)%`")]
    Header(Box<str>),
}

/// Whether Envoy takes this form. What reaches into filters' state is not among the operators that may be used: it could
/// be anything, secrets too.
pub fn check(format: &str) -> Result<(), FormatError> {
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('%') {
            rest = tail;
            continue;
        }
        let end = end(after).ok_or(FormatError::Open)?;
        operator(&after[..end])?;
        rest = &after[end + 1..];
    }
    Ok(())
}

/// Where an operator ends: at the next `%` that is not inside its brackets.
fn end(text: &str) -> Option<usize> {
    let mut inside = false;
    for (at, c) in text.char_indices() {
        match c {
            '(' => inside = true,
            ')' => inside = false,
            '%' if !inside => return Some(at),
            _ => {}
        }
    }
    None
}

fn operator(word: &str) -> Result<(), FormatError> {
    let unknown = || FormatError::Unknown(word.into());
    if !word.contains('(') {
        return if for_logs().any(|name| name == word) { Ok(()) } else { Err(unknown()) };
    }
    let (name, argument, length) = with_argument(word).ok_or_else(unknown)?;
    match name {
        "START_TIME" if length.is_empty() && is_time(argument) => Ok(()),
        name if HEADERS.contains(&name) => {
            if are_headers(argument) {
                Ok(())
            } else {
                Err(FormatError::Header(word.into()))
            }
        }
        _ => Err(unknown()),
    }
}

/// The words of a time that Envoy knows from `strftime`, and its own for parts of a second.
fn is_time(format: &str) -> bool {
    if format.contains(char::is_control) {
        return false;
    }
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let word = rest[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        match word.chars().next() {
            Some(c) if "aAbBdDeFhHIjmMpSsTuUwWyYzZ%f".contains(c) => rest = &word[c.len_utf8()..],
            _ => return false,
        }
    }
    true
}

/// A form with every operator that may be used: for a test that asks Envoy.
pub fn everything() -> String {
    let alone = for_logs().map(|name| format!("%{name}%"));
    let headers = HEADERS.iter().flat_map(|name| [format!("%{name}(X-A)%"), format!("%{name}(X-A?:AUTHORITY):7%")]);
    let times = ["%START_TIME(%s.%3f)%", "%START_TIME(%Y/%m/%dT%H:%M:%S%z_%s)%"].map(str::to_owned);
    alone.chain(headers).chain(times).chain(["100%%".to_owned()]).collect::<Vec<_>>().join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_envoy_knows_is_taken() {
        assert_eq!(check(&everything()), Ok(()));
        assert_eq!(check("plain"), Ok(()));
        assert_eq!(check(""), Ok(()));
    }

    #[test]
    fn what_envoy_would_refuse_is_not() {
        let unknown = |word: &str| Err(FormatError::Unknown(word.into()));
        assert_eq!(check("100%"), Err(FormatError::Open));
        assert_eq!(check("%REQ(a"), Err(FormatError::Open));
        assert_eq!(check("%NOPE%"), unknown("NOPE"));
        assert_eq!(check("%duration%"), unknown("duration"));
        assert_eq!(check("%REQ%"), unknown("REQ"));
        assert_eq!(check("%DURATION(a)%"), unknown("DURATION(a)"));
        assert_eq!(check("%DYNAMIC_METADATA(a:b)%"), unknown("DYNAMIC_METADATA(a:b)"));
        assert_eq!(check("%FILTER_STATE(a)%"), unknown("FILTER_STATE(a)"));
        assert_eq!(check("%REQ(a):x%"), unknown("REQ(a):x"));
        assert_eq!(check("%START_TIME(%Q)%"), unknown("START_TIME(%Q)"));
        for word in ["REQ()", "REQ(a b)", "REQ(a?)", "REQ(a?b?c)"] {
            assert_eq!(check(&format!("%{word}%")), Err(FormatError::Header(word.into())), "{word}");
        }
    }
}

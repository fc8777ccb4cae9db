//! Header values with Envoy's command operators (`%PROTOCOL%`), as far as they are allowed.
//!
//! Envoy reads every `%` as the beginning of an operator and rejects the whole route table if there is no such operator.
//! So a value is parsed here: operators on the list stay, variables of Sesame are replaced, and any other `%` is escaped.
//!
//! Before Envoy looks for operators it rewrites the form that some of them had in earlier versions ([`REWRITTEN`]), in escaped text too. What
//! stands in such a form as JSON comes out decoded, so `\u0025` becomes a `%` that nobody has escaped, and any operator can follow: one that
//! writes a variable of the proxy's environment, or the state of a filter. So no value has such a form.

use super::{HeaderError, HeaderValue, LONGEST, is_token};
use crate::command_operators::{are_headers, is_for_headers, with_argument};
use std::{fmt::Write, sync::Arc};

/// The beginnings of what Envoy rewrites.
const REWRITTEN: [&str; 3] = ["%DYNAMIC_METADATA(", "%PER_REQUEST_STATE(", "%UPSTREAM_METADATA("];

/// A header value in Envoy's format.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderFormat(Arc<str>);

/// The result of reading a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// The value.
    pub format: HeaderFormat,
    /// What looks like operators and is literal text, because it is not on the list.
    pub plain: Vec<Box<str>>,
}

impl HeaderFormat {
    /// Reads a value; `own` are variables and their values.
    pub fn read(text: &str, own: &[(&str, &str)]) -> Result<Formatted, HeaderError> {
        HeaderValue::parse(text)?;
        let mut out = String::with_capacity(text.len());
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            // Whoever escaped by hand meant one `%`, as everywhere in Envoy.
            if let Some(tail) = after.strip_prefix('%') {
                out.push_str("%%");
                rest = tail;
                continue;
            }
            let Some(end) = after.find('%') else {
                out.push_str("%%");
                rest = after;
                continue;
            };
            let word = &after[..end];
            if let Some((_, value)) = own.iter().find(|(name, _)| *name == word) {
                out.push_str(&value.replace('%', "%%"));
            } else if is_for_headers(word) || is_request_header(word) {
                let _infallible = write!(out, "%{word}%");
            } else {
                if looks_like_one(word) {
                    plain.push(word.into());
                }
                out.push_str("%%");
                rest = after;
                continue;
            }
            rest = &after[end + 1..];
        }
        out.push_str(rest);
        Ok(Formatted { format: Self::fitting(out)?, plain })
    }

    /// A value that is sent as it is.
    pub fn plain(value: &HeaderValue) -> Result<Self, HeaderError> {
        Self::fitting(value.as_str().replace('%', "%%"))
    }

    /// The limit is on what Envoy is told: doubled percent signs count twice.
    fn fitting(text: String) -> Result<Self, HeaderError> {
        if text.len() > LONGEST {
            return Err(HeaderError::TooLong(text.len()));
        }
        match REWRITTEN.into_iter().find(|begin| text.match_indices(begin).any(|(at, _)| is_rewritten(&text[at..]))) {
            Some(begin) => Err(HeaderError::Rewritten(begin.trim_matches(['%', '(']).into())),
            None => Ok(Self(text.into())),
        }
    }

    /// The value as Envoy reads it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The header whose value is meant, where the whole text is `%REQ(name)%`.
pub fn only_request_header(text: &str) -> Option<&str> {
    let name = text.strip_prefix("%REQ(")?.strip_suffix(")%")?;
    (!name.is_empty() && name.bytes().all(is_token)).then_some(name)
}

/// `REQ(a)`, `REQ(a?b)`, `REQ(a):n`.
fn is_request_header(word: &str) -> bool {
    with_argument(word).is_some_and(|(name, argument, _)| name == "REQ" && are_headers(argument))
}

/// Whether Envoy rewrites what begins like one of [`REWRITTEN`]: metadata where JSON follows, anything else as it is.
fn is_rewritten(text: &str) -> bool {
    let Some((name, rest)) = text.split_once('(') else { return false };
    !name.ends_with("_METADATA") || rest.trim_start().starts_with('[')
}

fn looks_like_one(word: &str) -> bool {
    let name = word.split(['(', ':']).next().unwrap_or_default();
    name.len() > 2 && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Vec<Box<str>>) {
        let own = [("CONTOUR_NAMESPACE", "shop")];
        let formatted = HeaderFormat::read(text, &own).expect("a value");
        (formatted.format.as_str().to_owned(), formatted.plain)
    }

    #[test]
    fn what_is_on_the_list_stays_and_the_rest_is_plain() {
        let nothing: Vec<Box<str>> = Vec::new();
        for (text, expected) in [
            ("plain", "plain"),
            ("100%", "100%%"),
            ("50% of 100%", "50%% of 100%%"),
            ("%%", "%%"),
            ("%HOSTNAME%", "%HOSTNAME%"),
            ("a %CONTOUR_NAMESPACE% b", "a shop b"),
            ("%REQ(x-a?:authority):12%", "%REQ(x-a?:authority):12%"),
            ("%REQ(a b)%", "%%REQ(a b)%%"),
        ] {
            assert_eq!(read(text).0, expected, "{text}");
        }
        assert_eq!(read("100%").1, nothing);
        assert_eq!(read("%START_TIME%"), ("%%START_TIME%%".into(), vec!["START_TIME".into()]));
        assert_eq!(read("%HOSTNAME(%").0, "%%HOSTNAME(%%");
        assert!(HeaderFormat::read("a\nb", &[]).is_err());
        assert!(HeaderFormat::read(&"a".repeat(LONGEST), &[]).is_ok());
        assert!(HeaderFormat::read(&"%".repeat(LONGEST), &[]).is_ok(), "two of them are one");
        assert!(HeaderFormat::read(&"%a".repeat(LONGEST / 2), &[]).is_err(), "what is doubled counts twice");
    }

    #[test]
    fn what_envoy_rewrites_before_it_reads_operators_is_refused() {
        for text in [
            r#"%UPSTREAM_METADATA(["\u0025ENVIRONMENT(HOME)\u0025"])%"#,
            "%DYNAMIC_METADATA( \t[\"a\"])%",
            "%%UPSTREAM_METADATA([",
            "100%%%DYNAMIC_METADATA([1])%",
            "%PER_REQUEST_STATE(a)%",
        ] {
            let refused = |read: Result<HeaderFormat, HeaderError>| matches!(read, Err(HeaderError::Rewritten(_)));
            assert!(refused(HeaderFormat::read(text, &[]).map(|read| read.format)), "{text}");
            assert!(refused(HeaderValue::parse(text).and_then(|value| HeaderFormat::plain(&value))), "{text}");
        }
        assert!(HeaderFormat::read("%a%", &[("a", "%PER_REQUEST_STATE(b)%")]).is_err(), "by a variable");
        for text in ["UPSTREAM_METADATA([1])", "%DYNAMIC_METADATA(x)%", "%UPSTREAM_METADATA%", "PER_REQUEST_STATE(a)%"]
        {
            assert!(HeaderFormat::read(text, &[]).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_whole_request_header() {
        assert_eq!(only_request_header("%REQ(X-Host)%"), Some("X-Host"));
        for wrong in ["%REQ()%", "a%REQ(x)%", "%REQ(x)%%REQ(y)%", "%REQ(a b)%"] {
            assert_eq!(only_request_header(wrong), None);
        }
    }
}

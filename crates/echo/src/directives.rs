//! What a request asks of its answer, read from its `x-echo-*` headers.
//!
//! In: request headers. Out: [`Directives`], or a sentence that says which header cannot be read and what would do. The
//! table of directives stands in the crate's documentation.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// The longest wait that a request may ask for, so that a typo does not hold a connection for days.
const LONGEST: Duration = Duration::from_secs(600);

/// A request's directives; the default is a plain answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directives {
    pub delay: Duration,
    pub status: Option<StatusCode>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub trailers: Vec<(HeaderName, HeaderValue)>,
    pub size: Option<u64>,
    pub chunk: Option<usize>,
    pub pause: Duration,
    pub reset: Option<Reset>,
    pub grpc_status: Option<u32>,
}

/// Where the answer is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    Before,
    Headers,
    Body,
}

/// A header with an invalid directive.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{header}: {value:?} is not {expected}")]
pub(crate) struct InvalidDirective {
    header: &'static str,
    value: String,
    expected: &'static str,
}

impl Directives {
    pub fn read(headers: &HeaderMap) -> Result<Directives, InvalidDirective> {
        let status =
            |s: &str| s.parse().ok().filter(|n| (200..600).contains(n)).and_then(|n| StatusCode::from_u16(n).ok());
        let reset = |s: &str| match s {
            "before" => Some(Reset::Before),
            "headers" => Some(Reset::Headers),
            "body" => Some(Reset::Body),
            _ => None,
        };
        const WAIT: &str = "a duration up to ten minutes, such as 250ms or 2s";
        const FIELD: &str = "a header, such as name: value";
        Ok(Directives {
            delay: one(headers, "x-echo-delay", WAIT, duration)?.unwrap_or_default(),
            status: one(headers, "x-echo-status", "a status from 200 to 599", status)?,
            headers: all(headers, "x-echo-header", FIELD, field)?,
            trailers: all(headers, "x-echo-trailer", FIELD, field)?,
            size: one(headers, "x-echo-size", "a number of bytes", |s| s.parse().ok())?,
            chunk: one(headers, "x-echo-chunk", "a number of bytes above 0", |s| s.parse().ok().filter(|n| *n > 0))?,
            pause: one(headers, "x-echo-pause", WAIT, duration)?.unwrap_or_default(),
            reset: one(headers, "x-echo-reset", "before, headers or body", reset)?,
            grpc_status: one(headers, "x-echo-grpc-status", "a gRPC status from 0 to 16", |s| {
                s.parse().ok().filter(|n| *n <= 16)
            })?,
        })
    }
}

fn all<T>(
    headers: &HeaderMap,
    header: &'static str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, InvalidDirective> {
    headers
        .get_all(header)
        .iter()
        .map(|v| {
            v.to_str().ok().and_then(|s| read(s.trim())).ok_or_else(|| InvalidDirective {
                header,
                value: String::from_utf8_lossy(v.as_bytes()).into_owned(),
                expected,
            })
        })
        .collect()
}

/// The last value wins, as a caller that appends would expect.
fn one<T>(
    headers: &HeaderMap,
    header: &'static str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, InvalidDirective> {
    Ok(all(headers, header, expected, read)?.pop())
}

fn field(s: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = s.split_once(':')?;
    Some((name.trim().parse().ok()?, value.trim().parse().ok()?))
}

fn duration(s: &str) -> Option<Duration> {
    let unit = s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    let number: u64 = s[..unit].parse().ok()?;
    let duration = match s[unit..].trim() {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    };
    Some(duration).filter(|d| *d <= LONGEST)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn read(headers: &[(&'static str, &str)]) -> Result<Directives, InvalidDirective> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Directives::read(&map)
    }

    #[test]
    fn no_headers_are_a_plain_answer() {
        assert_eq!(read(&[("accept", "*/*")]).unwrap(), Directives::default());
    }

    #[test]
    fn every_wish_is_read() {
        let directives = read(&[
            ("x-echo-delay", "250ms"),
            ("x-echo-status", "503"),
            ("x-echo-header", "a: 1"),
            ("x-echo-header", "a: 2:3"),
            ("x-echo-trailer", "t:x"),
            ("x-echo-size", "1000"),
            ("x-echo-chunk", "10"),
            ("x-echo-pause", "1m"),
            ("x-echo-reset", "headers"),
            ("x-echo-grpc-status", "14"),
        ])
        .unwrap();
        assert_eq!(directives.delay, Duration::from_millis(250));
        assert_eq!(directives.status, Some(StatusCode::SERVICE_UNAVAILABLE));
        let values: Vec<_> = directives.headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        assert_eq!(values, [("a", "1"), ("a", "2:3")]);
        assert_eq!(directives.trailers.len(), 1);
        assert_eq!(
            (directives.size, directives.chunk, directives.pause),
            (Some(1000), Some(10), Duration::from_secs(60))
        );
        assert_eq!((directives.reset, directives.grpc_status), (Some(Reset::Headers), Some(14)));
    }

    #[test]
    fn a_bad_wish_says_which_and_what_would_do() {
        let bad = |name, value| read(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(bad("x-echo-status", "99"), "x-echo-status: \"99\" is not a status from 200 to 599");
        for (name, value) in [
            ("x-echo-delay", "5"),
            ("x-echo-delay", "11m"),
            ("x-echo-delay", "s"),
            ("x-echo-header", "no colon"),
            ("x-echo-chunk", "0"),
            ("x-echo-reset", "now"),
            ("x-echo-grpc-status", "17"),
        ] {
            assert!(bad(name, value).starts_with(&format!("{name}: ")), "{name}: {value}");
        }
    }
}

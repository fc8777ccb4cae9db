//! Timeouts: the default, none, or a duration.

use std::time::Duration;

/// The longest span that is handed to Envoy; its own limit is far above, ours keeps arithmetic safe everywhere.
pub const LONGEST: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// The longest text that is read as a duration: whoever writes more means something else.
const LONGEST_TEXT: usize = 256;
/// How much of a text that is no duration is told.
const MOST_TOLD: usize = 80;

/// A timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timeout {
    /// Not set: Envoy's default, or Sesame's where that one does not fit.
    #[default]
    Default,
    /// No timeout.
    Infinite,
    /// After this long.
    After(Duration),
}

/// Why a text is not a timeout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeoutError {
    /// Not a number with a unit.
    #[error("`{0}` is not a duration; write for example `1m30s` or `250ms`")]
    NotADuration(Box<str>),
    /// The same where there may be no timeout at all.
    #[error("`{0}` is not a duration; write for example `1m30s`, `250ms` or `infinity`")]
    NotATimeout(Box<str>),
    /// Negative.
    #[error("`{0}` is negative")]
    Negative(Box<str>),
    /// Beyond a year.
    #[error("`{0}` is longer than a year")]
    TooLong(Box<str>),
    /// The same where there may be no timeout at all.
    #[error("`{0}` is longer than a year; write `infinity`")]
    TooLongTimeout(Box<str>),
}

impl TimeoutError {
    /// What is used, and what is said about it, where a duration that is too long is no error; any other error stays one.
    pub fn shortened(self) -> Result<(Duration, String), Self> {
        match self {
            TimeoutError::TooLong(text) | TimeoutError::TooLongTimeout(text) => {
                Ok((LONGEST, format!("`{text}` is longer than a year; a year is used instead")))
            }
            TimeoutError::NotADuration(_) | TimeoutError::NotATimeout(_) | TimeoutError::Negative(_) => Err(self),
        }
    }

    /// The same error where there may be no timeout at all.
    fn of_timeout(self) -> Self {
        match self {
            TimeoutError::NotADuration(text) => TimeoutError::NotATimeout(text),
            TimeoutError::TooLong(text) => TimeoutError::TooLongTimeout(text),
            TimeoutError::NotATimeout(_) | TimeoutError::TooLongTimeout(_) | TimeoutError::Negative(_) => self,
        }
    }
}

impl Timeout {
    /// Reads Contour's form: a duration, `infinity` or `infinite`; empty and zero mean "not set".
    pub fn parse(text: &str) -> Result<Self, TimeoutError> {
        match text {
            "" => Ok(Timeout::Default),
            "infinity" | "infinite" => Ok(Timeout::Infinite),
            _ => match parse_duration(text).map_err(TimeoutError::of_timeout)? {
                Duration::ZERO => Ok(Timeout::Default),
                span => Ok(Timeout::After(span)),
            },
        }
    }
}

/// Reads a duration such as `1h30m`, `1.5s`, `250ms`, `10us`; a lone `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, TimeoutError> {
    let wrong = || TimeoutError::NotADuration(text[..text.floor_char_boundary(MOST_TOLD)].into());
    if text.len() > LONGEST_TEXT {
        return Err(wrong());
    }
    let (is_negative, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(unsigned) => (text.starts_with('-'), unsigned),
        None => (false, text),
    };
    let nanos = nanoseconds(unsigned).ok_or_else(wrong)?;
    if is_negative {
        return Err(TimeoutError::Negative(text.into()));
    }
    if nanos > LONGEST.as_nanos() as f64 {
        return Err(TimeoutError::TooLong(text.into()));
    }
    Ok(Duration::from_nanos(nanos.round() as u64))
}

/// The sum of numbers with units.
fn nanoseconds(text: &str) -> Option<f64> {
    if text == "0" {
        return Some(0.0);
    }
    if text.is_empty() {
        return None;
    }
    let (mut rest, mut nanos) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let translation = match &rest[..letters] {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        nanos += number * translation;
        rest = &rest[letters..];
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_writes_them() {
        let ms = |n| Ok(Duration::from_millis(n));
        assert_eq!(parse_duration("1m30s"), ms(90_000));
        assert_eq!(parse_duration("1.5s"), ms(1_500));
        assert_eq!(parse_duration("250ms"), ms(250));
        assert_eq!(parse_duration("0"), ms(0));
        for wrong in ["", "5", "s", "1x", "1.2.3s", "é", "1 s", "-"] {
            assert!(matches!(parse_duration(wrong), Err(TimeoutError::NotADuration(_))), "{wrong:?}");
        }
        for negative in ["-5s", "-0", "-9999h"] {
            assert!(matches!(parse_duration(negative), Err(TimeoutError::Negative(_))), "{negative}");
        }
        for signs in ["--5s", "-+5s", "+-5s"] {
            assert!(matches!(parse_duration(signs), Err(TimeoutError::NotADuration(_))), "{signs}");
        }
        assert!(matches!(parse_duration("99999999h"), Err(TimeoutError::TooLong(_))));
    }

    /// An annotation may have 256 KiB.
    #[test]
    fn a_long_text_is_no_duration_and_is_told_in_part() {
        for text in ["-".repeat(1 << 20), "1s".repeat(1 << 19), "é".repeat(1 << 19)] {
            let error = parse_duration(&text).expect_err("no duration").to_string();
            assert!(error.len() < 160, "{} bytes", error.len());
        }
    }

    #[test]
    fn what_is_longer_than_a_year_may_be_shortened_and_nothing_else() {
        assert_eq!(parse_duration("8760h"), Ok(LONGEST));
        let shortened = |text| parse_duration(text).expect_err("an error").shortened();
        let (longest, why) = shortened("9999h").expect("a duration that is too long");
        assert_eq!((longest, &*why), (LONGEST, "`9999h` is longer than a year; a year is used instead"));
        for wrong in ["soon", "-9999h"] {
            assert!(shortened(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn infinity_is_recommended_where_there_may_be_no_timeout() {
        for (text, of_duration, of_timeout) in [
            (
                "soon",
                "`soon` is not a duration; write for example `1m30s` or `250ms`",
                "`soon` is not a duration; write for example `1m30s`, `250ms` or `infinity`",
            ),
            ("9999h", "`9999h` is longer than a year", "`9999h` is longer than a year; write `infinity`"),
            ("-1s", "`-1s` is negative", "`-1s` is negative"),
        ] {
            assert_eq!(parse_duration(text).map_err(|error| error.to_string()), Err(of_duration.to_owned()));
            let error = Timeout::parse(text).expect_err("an error");
            assert_eq!(error.to_string(), of_timeout);
            assert_eq!(error.clone().shortened().ok(), parse_duration(text).expect_err("an error").shortened().ok());
        }
        assert!(parse_duration("infinity").is_err());
    }

    #[test]
    fn timeouts_know_infinity_and_nothing() {
        assert_eq!(Timeout::parse("infinity"), Ok(Timeout::Infinite));
        assert_eq!(Timeout::parse(""), Ok(Timeout::Default));
        assert_eq!(Timeout::parse("0s"), Ok(Timeout::Default));
        assert_eq!(Timeout::parse("2s"), Ok(Timeout::After(Duration::from_secs(2))));
    }
}

//! What a scalar without quotes is: nothing, a boolean, a number or text.
//!
//! The words and forms are those of YAML 1.1, which kubectl reads: a file must not mean one thing here and another there.

use kinds::Value;

/// The value of a plain scalar; none if it is text.
pub(super) fn resolve(text: &str) -> Option<Value<'static>> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(Value::Bool(false));
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Some(Value::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Some(Value::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Some(Value::Float(f64::NAN)),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let plain = text.replace('_', "");
    integer(&plain).map(Value::Int).or_else(|| float(&plain).map(Value::Float))
}

fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    i64::try_from(if negative { -value } else { value }).ok()
}

fn float(text: &str) -> Option<f64> {
    // Rust reads more than YAML calls a number: `infinity`, `nan`.
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    let has_digit =
        text.trim_start_matches(['+', '-']).trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
    if is_number && has_digit { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_what_kubectl_makes_of_them() {
        for (text, value) in [
            ("80", Value::Int(80)),
            ("-1", Value::Int(-1)),
            ("+7", Value::Int(7)),
            ("010", Value::Int(8)),
            ("0", Value::Int(0)),
            ("0x1F", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("0b11", Value::Int(3)),
            ("1_000", Value::Int(1000)),
            ("1.5", Value::Float(1.5)),
            (".5", Value::Float(0.5)),
            ("1e3", Value::Float(1000.0)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("18446744073709551616", Value::Float(18_446_744_073_709_551_616.0)),
            ("yes", Value::Bool(true)),
            ("Off", Value::Bool(false)),
            ("~", Value::Null),
        ] {
            assert_eq!(resolve(text), Some(value), "{text}");
        }
        for text in [
            "a",
            "1.2.3",
            "10.0.0.1",
            "1s",
            "-",
            "+",
            ".",
            "--1",
            "0x",
            "08a",
            "e5",
            "2026-01-02",
            "1:20",
            "nan",
            "infinity",
            "é",
        ] {
            assert_eq!(resolve(text), None, "{text}");
        }
    }
}

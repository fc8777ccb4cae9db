//! How long what is said may be. For one message that is too long the API server refuses all of a status, and does so again
//! however often it is tried; so everything that goes into one is cut here, between characters, with how much was left out.

use serde_json::Value;
use std::borrow::Cow;

/// What a message or a description may have. It is a limit of the CRDs, where it is in characters.
const MESSAGE: usize = 32_768;
/// What there must be room for behind a text that was cut.
const REST: usize = "… (18446744073709551615 more characters)".len();

/// At most so many bytes of a text.
pub(crate) fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return text.into();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(REST));
    let rest = text[end..].chars().count();
    format!("{}… ({rest} more characters)", &text[..end]).into()
}

/// The status with every message and description in it no longer than it may be.
pub(crate) fn bounded(mut status: Value) -> Value {
    bound(&mut status);
    status
}

fn bound(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(bound),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if matches!(name.as_str(), "message" | "description") => {
                        if let Cow::Owned(short) = cut(text, MESSAGE) {
                            *text = short;
                        }
                    }
                    other => bound(other),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_cut_between_characters_and_says_by_how_much() {
        assert_eq!(cut("short", 5), "short");
        let text = "é".repeat(1_000);
        let short = cut(&text, 100);
        let kept = short.chars().filter(|c| *c == 'é').count();
        assert!(short.len() <= 100, "{}", short.len());
        assert!(short.ends_with(&format!("é… ({} more characters)", 1_000 - kept)), "{short}");
    }

    #[test]
    fn every_message_of_a_status_is_bounded() {
        let long = "x".repeat(40_000);
        let status = bounded(json!({ "description": long, "currentStatus": "invalid",
            "conditions": [{ "message": long, "errors": [{ "message": long, "reason": "Long" }] }] }));
        let texts = [
            &status["description"],
            &status["conditions"][0]["message"],
            &status["conditions"][0]["errors"][0]["message"],
        ];
        assert!(texts.iter().all(|text| text.as_str().is_some_and(|text| text.len() <= MESSAGE)), "{texts:?}");
        assert_eq!(status["currentStatus"], "invalid");
    }
}

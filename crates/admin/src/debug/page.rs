//! A page as JSON, or as HTML without a script for whoever looks with a browser.

use axum::{
    Json,
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Response},
};
use serde::Serialize;
use serde_json::Value;

/// The page in the form that was asked for.
pub(super) fn answer(headers: &HeaderMap, page: &impl Serialize) -> Response {
    let value = serde_json::to_value(page).unwrap_or_default();
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") { Html(html(&value)).into_response() } else { Json(value).into_response() }
}

fn html(value: &Value) -> String {
    const STYLE: &str = "body { font-family: sans-serif } table { border-collapse: collapse } \
                         th, td { text-align: left; vertical-align: top; padding: 2px 10px 2px 0; border-top: 1px solid #ddd }";
    let mut text = format!(
        "<!doctype html>\n<title>Sesame</title>\n<style>{STYLE}</style>\n<p><a href=\"/debug\">all pages</a></p>\n"
    );
    write(value, &mut text);
    text
}

/// An object is a table with a row for each field, a list a table with a row for each item; what has no fields of its own is text.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push_str("<table>\n");
            for (name, value) in fields {
                text.push_str("<tr><th>");
                escape(name, text);
                text.push_str("</th><td>");
                write(value, text);
                text.push_str("</td></tr>\n");
            }
            text.push_str("</table>\n");
        }
        Value::Array(values) if values.is_empty() => text.push_str("none"),
        Value::Array(values) => {
            text.push_str("<table>\n");
            for value in values {
                text.push_str("<tr><td>");
                write(value, text);
                text.push_str("</td></tr>\n");
            }
            text.push_str("</table>\n");
        }
        Value::String(line) => escape(line, text),
        other => escape(&other.to_string(), text),
    }
}

fn escape(from: &str, text: &mut String) {
    for character in from.chars() {
        match character {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            '"' => text.push_str("&quot;"),
            other => text.push(other),
        }
    }
}

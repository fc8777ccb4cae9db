//! What leaves a cluster in a bundle has no keys and no credentials in it.
//!
//! In: objects of Kubernetes as JSON, and text. Out: the same without values of environment variables, without what tools keep in
//! annotations, and without private keys and tokens wherever they stand in text. Secrets themselves are never read.

use serde_json::Value;

const REDACTED: &str = "[redacted]";
/// Annotations in which whole objects are kept.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes out of an object what is nobody's business.
pub fn object(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("managedFields");
            fields.remove(LAST_APPLIED);
            // `env: [{name, value}]`; where the value comes from stays.
            if let Some(Value::Array(variables)) = fields.get_mut("env") {
                let values = variables.iter_mut().filter_map(|variable| variable.get_mut("value"));
                values.for_each(|value| *value = REDACTED.into());
            }
            fields.values_mut().for_each(object);
        }
        Value::Array(values) => values.iter_mut().for_each(object),
        Value::String(line) => {
            if let Some(scrubbed) = scrubbed(line) {
                *line = scrubbed;
            }
        }
        _ => {}
    }
}

/// The text without private keys and tokens.
pub fn text(text: &str) -> String {
    scrubbed(text).unwrap_or_else(|| text.to_owned())
}

/// The text without them, if there are any.
fn scrubbed(text: &str) -> Option<String> {
    let without_keys = without_keys(text);
    let without_tokens = without_tokens(without_keys.as_deref().unwrap_or(text));
    without_tokens.or(without_keys)
}

/// Takes out everything between the lines of a private key in PEM, also one whose end is missing.
fn without_keys(text: &str) -> Option<String> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(begin) = rest.find("-----BEGIN ") {
        let label = &rest[begin..];
        let line_end = label[11..].find("-----").map_or(label.len(), |end| end + 16);
        if !label[..line_end].contains("PRIVATE KEY") {
            kept.push_str(&rest[..begin + line_end]);
            rest = &rest[begin + line_end..];
            continue;
        }
        kept.push_str(&rest[..begin]);
        kept.push_str(REDACTED);
        let body = &label[line_end..];
        rest = match body.find("-----END ").and_then(|end| Some(end + 9 + body[end + 9..].find("-----")? + 5)) {
            Some(end) => &body[end..],
            None => "",
        };
    }
    (!kept.is_empty() || rest.len() < text.len()).then(|| kept + rest)
}

/// Takes out JSON Web Tokens, and what follows `Bearer` and `Basic`.
fn without_tokens(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+/=~".contains(c);
    let mut found = None::<String>;
    let mut from = 0;
    loop {
        let now = found.as_deref().unwrap_or(text);
        let next = |word: &str, skip: usize| Some(from + now[from..].find(word)? + skip);
        let begins = [next("eyJ", 0), next("Bearer ", 7), next("bearer ", 7), next("Basic ", 6)];
        let begin = begins.into_iter().flatten().min()?;
        let length = now[begin..].find(|c| !is_part(c)).unwrap_or(now.len() - begin);
        let token = &now[begin..begin + length];
        let is_token = token.len() >= 8 && (!token.starts_with("eyJ") || token.matches('.').count() == 2);
        if is_token {
            let changed = format!("{}{REDACTED}{}", &now[..begin], &now[begin + length..]);
            from = begin + REDACTED.len();
            found = Some(changed);
        } else {
            from = begin + length.max(1);
        }
        let now = found.as_deref().unwrap_or(text);
        if from >= now.len() || ["eyJ", "Bearer ", "bearer ", "Basic "].iter().all(|word| !now[from..].contains(word)) {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_and_tokens_are_taken_out_of_text() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIsecret\n-----END RSA PRIVATE KEY-----";
        let certificate = "-----BEGIN CERTIFICATE-----\nMIIpublic\n-----END CERTIFICATE-----";
        assert_eq!(text(&format!("a {key} b\n{certificate}\n")), format!("a [redacted] b\n{certificate}\n"));
        assert_eq!(text("x -----BEGIN PRIVATE KEY-----\nMIIsec"), "x [redacted]");
        assert_eq!(text("with eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl end"), "with [redacted] end");
        assert_eq!(text("authorization: Bearer abcdefghijk"), "authorization: Bearer [redacted]");
        assert_eq!(text("Basic dXNlcjpwYXNz, Basic dXNlcjpwYXNz"), "Basic [redacted], Basic [redacted]");
        for plain in ["", "nothing here", "eyJ", "Basic ok", "Bearer of news"] {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn objects_lose_values_of_variables_and_copies_of_themselves() {
        let env = json!([{ "name": "TOKEN", "value": "hunter2" }, { "name": "POD", "valueFrom": { "fieldRef": "metadata.name" } }]);
        let mut pod = json!({
            "metadata": { "managedFields": [1], "annotations": { LAST_APPLIED: "hunter2", "kept": "yes" } },
            "spec": { "containers": [{ "env": env, "args": ["Bearer abcdefgh12"] }] },
        });
        object(&mut pod);
        let text = pod.to_string();
        assert!(!text.contains("hunter2") && !text.contains("abcdefgh12") && !text.contains("managedFields"), "{text}");
        assert!(text.contains("fieldRef") && text.contains("kept"), "{text}");
    }
}

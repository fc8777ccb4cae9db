//! JSON Web Key Sets: the keys of a document that Envoy can verify signatures with.
//!
//! In: a document of a Secret or of a server. Out: its usable keys, each written anew with the members that count and no others:
//! a document with an unusable key is no reason to refuse the others, and what is large about it (chains of certificates) is not
//! sent to proxies.

use crate::Rejection;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use kinds::Secret;
use model::{Code, jwt::Jwks};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The longest document, in bytes.
pub const LONGEST: usize = 256 * 1024;
/// The most keys that are used of a document.
pub const MOST_KEYS: usize = 64;
/// The longest `kid`, in bytes.
const LONGEST_ID: usize = 512;

/// The usable keys of a document.
///
/// # Errors
/// Why there is none, or too many.
pub fn parse(document: &[u8]) -> Result<Jwks, String> {
    if document.len() > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes"));
    }
    let document: Value = serde_json::from_slice(document).map_err(|error| {
        // What stands at the place may be part of a Secret, or of what a server tells only us.
        format!("is not valid JSON: {} at line {} column {}", word(&error), error.line(), error.column())
    })?;
    let Value::Object(document) = document else { return Err("is not a JSON object".to_owned()) };
    let Some(Value::Array(keys)) = document.get("keys") else { return Err("has no array `keys`".to_owned()) };
    let usable: Vec<Arc<str>> = keys.iter().filter_map(|key| usable(key.as_object()?)).map(Arc::from).collect();
    if usable.len() > MOST_KEYS {
        return Err(format!("has {} usable keys; the limit is {MOST_KEYS}", usable.len()));
    }
    Jwks::new(usable).ok_or_else(|| format!("has no usable key among {}", keys.len()))
}

fn word(error: &serde_json::Error) -> &'static str {
    if error.is_eof() { "unexpected end" } else { "unexpected character" }
}

/// The keys in an entry of a Secret.
pub fn read(secret: &Secret, entry: &str) -> Result<Jwks, Rejection> {
    let name = format!("Secret {}/{}", secret.meta.namespace, secret.meta.name);
    let reject = |why: String| Rejection::new(Code::ProxyLocalJwks, format!("{name}: {why}"));
    match secret.get(entry) {
        Ok(Some(content)) => parse(content).map_err(|why| reject(format!("entry `{entry}` {why}"))),
        Ok(None) => Err(reject(format!("there is no entry `{entry}`"))),
        Err(fault) => Err(reject(fault.to_string())),
    }
}

/// The key as Envoy is given it, if it can verify signatures with it.
fn usable(key: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let number = |name: &str, bytes: std::ops::RangeInclusive<usize>| {
        let decoded = BASE64_URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok()?;
        bytes.contains(&decoded.len()).then(|| (name.to_owned(), Value::from(BASE64_URL_SAFE_NO_PAD.encode(decoded))))
    };
    let kind = text("kty")?;
    let curve = text("crv");
    let (algorithms, members): (&[&str], Vec<(String, Value)>) = match (kind, curve) {
        ("RSA", _) => (
            &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
            vec![number("n", 64..=2048)?, number("e", 1..=8)?],
        ),
        ("EC", Some("P-256")) => (&["ES256"], vec![number("x", 1..=32)?, number("y", 1..=32)?]),
        ("EC", Some("P-384")) => (&["ES384"], vec![number("x", 1..=48)?, number("y", 1..=48)?]),
        ("EC", Some("P-521")) => (&["ES512"], vec![number("x", 1..=66)?, number("y", 1..=66)?]),
        ("OKP", Some("Ed25519")) => (&["EdDSA"], vec![number("x", 32..=32)?]),
        ("oct", _) => (&["HS256", "HS384", "HS512"], vec![number("k", 1..=512)?]),
        _ => return None,
    };
    let algorithm = match key.get("alg") {
        None => None,
        Some(found) => Some(*algorithms.iter().find(|known| found.as_str() == Some(known))?),
    };
    let mut made: Map<String, Value> = members.into_iter().collect();
    made.insert("kty".to_owned(), kind.into());
    made.extend(curve.filter(|_| kind != "RSA" && kind != "oct").map(|curve| ("crv".to_owned(), curve.into())));
    made.extend(algorithm.map(|algorithm| ("alg".to_owned(), algorithm.into())));
    made.extend(text("kid").filter(|id| id.len() <= LONGEST_ID).map(|id| ("kid".to_owned(), id.into())));
    // One order, whatever the document's.
    let mut members: Vec<(String, Value)> = made.into_iter().collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
    Some(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use serde_json::json;

    fn keys(document: &Value) -> Result<Vec<String>, String> {
        parse(document.to_string().as_bytes()).map(|keys| keys.keys().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_key_is_written_with_what_counts() {
        let x = BASE64_URL_SAFE_NO_PAD.encode([1_u8; 32]);
        let key = json!({
            "use": "sig", "x5c": ["large"], "kid": "a\"b", "y": x, "x": format!("{x}="), "crv": "P-256", "alg": "ES256",
            "kty": "EC",
        });
        let expected = format!(r#"{{"alg":"ES256","crv":"P-256","kid":"a\"b","kty":"EC","x":"{x}","y":"{x}"}}"#);
        assert_eq!(keys(&json!({ "keys": [key] })), Ok(vec![expected]));
    }

    #[test]
    fn one_usable_key_beside_any_rubbish_is_enough() {
        let n = BASE64_URL_SAFE_NO_PAD.encode([1_u8; 256]);
        let good = json!({ "kty": "RSA", "n": n, "e": "AQAB" });
        let rubbish = [
            json!(1),
            json!(null),
            json!({}),
            json!({ "kty": 1 }),
            json!({ "kty": "XYZ" }),
            json!({ "kty": "RSA" }),
            json!({ "kty": "RSA", "n": n, "e": "AQAB", "alg": "RSA-OAEP" }),
            json!({ "kty": "RSA", "n": n, "e": "AQAB", "alg": "none" }),
            json!({ "kty": "RSA", "n": n, "e": "AQAB", "use": "enc" }),
            json!({ "kty": "RSA", "n": "***", "e": "AQAB" }),
            json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" }),
            json!({ "kty": "EC", "crv": "P-999", "x": "AQAB", "y": "AQAB" }),
            json!({ "kty": "OKP", "crv": "Ed25519", "x": "AQAB" }),
        ];
        assert_eq!(keys(&json!({ "keys": rubbish })), Err(format!("has no usable key among {}", rubbish.len())));
        let mut all = rubbish.to_vec();
        all.push(good);
        assert_eq!(keys(&json!({ "keys": all })).unwrap().len(), 1);
    }

    #[test]
    fn what_is_no_document() {
        for (document, why) in [
            (json!([]), "is not a JSON object"),
            (json!({}), "has no array `keys`"),
            (json!({ "keys": {} }), "has no array `keys`"),
            (json!({ "keys": [] }), "has no usable key among 0"),
        ] {
            assert_eq!(keys(&document), Err(why.to_owned()));
        }
        assert_eq!(parse(b"secret"), Err("is not valid JSON: unexpected character at line 1 column 1".to_owned()));
        assert!(parse(&vec![b' '; LONGEST + 1]).unwrap_err().contains("longer"));
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        let key = json!({ "kty": "oct", "k": "AQAB" });
        assert!(keys(&json!({ "keys": vec![key; MOST_KEYS + 1] })).unwrap_err().contains("65 usable keys"));
    }
}

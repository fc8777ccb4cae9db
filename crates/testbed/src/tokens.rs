//! JSON Web Tokens: keys of the test's own, key sets for servers and Secrets, and tokens that are right or wrong in one way.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A key that signs tokens.
pub struct TokenSigner {
    id: String,
    pair: EcdsaKeyPair,
}

impl TokenSigner {
    /// A new key with this `kid`.
    pub fn new(id: &str) -> TokenSigner {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key can be made");
        TokenSigner { id: id.to_owned(), pair }
    }

    /// The public half, as an entry of a key set.
    pub fn jwk(&self) -> Value {
        // An uncompressed point: 4, then both coordinates.
        let point = self.pair.public_key().as_ref();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..65]));
        json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id, "x": x, "y": y })
    }

    /// A token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        let header = json!({ "alg": "ES256", "typ": "JWT", "kid": self.id });
        let signed = format!("{}.{}", encoded(header.to_string().as_bytes()), encoded(claims.to_string().as_bytes()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("the key signs");
        format!("{signed}.{}", encoded(signature.as_ref()))
    }
}

/// A key set of these keys.
pub fn key_set<'k>(keys: impl IntoIterator<Item = &'k TokenSigner>) -> String {
    json!({ "keys": keys.into_iter().map(TokenSigner::jwk).collect::<Vec<_>>() }).to_string()
}

/// A token with these claims that nobody signed.
pub fn unsigned(claims: &Value) -> String {
    format!("{}.{}.", encoded(br#"{"alg":"none","typ":"JWT"}"#), encoded(claims.to_string().as_bytes()))
}

/// Claims of a good token, until an hour from now.
pub fn claims(issuer: &str, audience: &str) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({ "iss": issuer, "aud": audience, "sub": "somebody", "iat": now, "nbf": now - 10, "exp": now + 3600 })
}

fn encoded(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

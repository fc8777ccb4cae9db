//! What fills a slot for JWT verification: the providers that are in it, with their keys.
//!
//! Envoy is given keys and fetches none: any change of this message would make it forget all that it has fetched, and a server that
//! is down at that moment would lock out the hosts of others. A message with a provider without a usable key is refused as a whole,
//! so each has [a key that nobody signs with](UNUSED) beside its own. One without any other refuses every token.

use crate::{listener::slots::Slot, name};
use envoy_api::{
    any,
    envoy::{
        config::core::v3::{DataSource, TypedExtensionConfig, data_source::Specifier},
        extensions::filters::http::jwt_authn::v3::{
            JwtAuthentication, JwtProvider as Provider, JwtRequirement, jwt_provider::JwksSourceSpecifier,
            jwt_requirement::RequiresType,
        },
    },
};
use model::{
    PortId,
    jwt::{Jwks, JwtProvider},
};
use std::collections::BTreeMap;

/// A point of the curve P-256 whose private key nobody has: its first coordinate is the SHA-256 of `no private key 0`.
const UNUSED: &str = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"alg\":\"ES256\",\"kid\":\"unused\",\
                      \"x\":\"zhotkln3RNu0lgUeS_koHQ05iVhMqEOQYwU-IkbiJIE\",\
                      \"y\":\"j3t6veOlQkC2_yk_Wk8jrRgw4qkHLfpjiO9tRMT4EGo\"}";

/// The slot of a port with these providers, each of which is in it once.
pub fn filled<'p>(port: &PortId, slot: Slot, all: impl IntoIterator<Item = &'p JwtProvider>) -> TypedExtensionConfig {
    let (mut providers, mut requirement_map) = (BTreeMap::new(), BTreeMap::new());
    for one in all {
        let name = name::jwt_requirement(&one.id);
        let requires_type = Some(RequiresType::ProviderName(name.clone()));
        requirement_map.insert(name.clone(), JwtRequirement { requires_type });
        providers.insert(name, provider(one));
    }
    // What is wrong with a token is nobody's business but the client's, and a missing requirement would list those of others.
    let filter = JwtAuthentication { providers, requirement_map, strip_failure_response: true, ..Default::default() };
    TypedExtensionConfig { name: name::slot(port, slot), typed_config: Some(any(&filter)) }
}

fn provider(provider: &JwtProvider) -> Provider {
    let keys = Specifier::InlineString(keys(provider.keys.as_ref()));
    Provider {
        issuer: provider.issuer.as_deref().unwrap_or_default().to_owned(),
        audiences: provider.audiences.iter().map(ToString::to_string).collect(),
        forward: provider.forward,
        jwks_source_specifier: Some(JwksSourceSpecifier::LocalJwks(DataSource {
            specifier: Some(keys),
            ..Default::default()
        })),
        ..Default::default()
    }
}

fn keys(keys: Option<&Jwks>) -> String {
    let own = keys.into_iter().flat_map(Jwks::keys);
    let all: Vec<&str> = own.map(|key| &**key).chain([UNUSED]).collect();
    format!("{{\"keys\":[{}]}}", all.join(","))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use aws_lc_rs::{agreement, digest};
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

    #[test]
    fn nobody_has_chosen_the_unused_key() {
        let key: serde_json::Value = serde_json::from_str(UNUSED).unwrap();
        let part = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
        assert_eq!(part("x"), digest::digest(&digest::SHA256, b"no private key 0").as_ref());
        let point = [vec![4], part("x"), part("y")].concat();
        let own = agreement::PrivateKey::generate(&agreement::ECDH_P256).unwrap();
        let peer = agreement::UnparsedPublicKey::new(&agreement::ECDH_P256, point);
        agreement::agree(&own, peer, "it is no point of the curve", |_| Ok(())).unwrap();
    }
}

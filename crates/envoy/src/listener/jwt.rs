//! JWT verification: one filter in each filter chain, which passes a request on to the slot that has its provider.
//!
//! Envoy reads a slot as a whole, and once for each filter chain that has it: an edit of one provider costs as much as all providers
//! of its slot, times the chains. So each chain has slots of its own, with the providers that routes of its hosts require and no
//! others, and many of them: a composite filter asks only the slot that a request is marked for, so slots that are
//! empty cost a request nothing. The mark is one of [`MARKS`], from the hash of the provider; a chain with fewer slots has several
//! marks in each. It is written before, by the filter that every request goes through ([`crate::route::mark`]).
//!
//! Envoy is given keys and fetches none: any change of a slot would make it forget all that it has fetched, and a server that
//! is down at that moment would lock out the hosts of others. A message with a provider without a usable key is refused as a whole,
//! so each has [a key that nobody signs with](UNUSED) beside its own. One without any other refuses every token.

use super::{composite, slots};
use crate::{name, route::mark};
use envoy_api::{
    Name, any,
    envoy::{
        config::core::v3::{DataSource, TypedExtensionConfig, data_source::Specifier},
        extensions::filters::{
            http::jwt_authn::v3::{
                JwtAuthentication, JwtProvider as Provider, JwtRequirement, jwt_provider::JwksSourceSpecifier,
                jwt_requirement::RequiresType,
            },
            network::http_connection_manager::v3::HttpFilter,
        },
    },
};
use model::{
    ChainId, FleetId, PortId,
    jwt::{Jwks, JwtProvider, JwtProviderId},
};
use std::collections::BTreeMap;

/// The filter, under which a route says which token it requires.
pub const FILTER: &str = "envoy.filters.http.jwt_authn";

/// How many marks there are, and how many slots a chain has that hosts of all certificates share.
pub const MARKS: u8 = 16;

/// How many slots the chain of a certificate has. There may be as many such chains as hosts.
pub(crate) const SLOTS_OF_CERTIFICATE: u8 = 4;

/// The mark of requests that require a token of a provider.
pub fn mark_of(provider: &JwtProviderId) -> u8 {
    let requirement = name::jwt_requirement(provider);
    let sum = requirement.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    u8::try_from(sum % u32::from(MARKS)).unwrap_or_default()
}

/// A filter chain whose requests are verified.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpChainId {
    /// The only one of a plaintext port.
    Plaintext(PortId),
    /// One of a TLS port.
    Tls(ChainId),
}

impl HttpChainId {
    /// Its fleet.
    pub fn fleet(&self) -> &FleetId {
        match self {
            HttpChainId::Plaintext(port) => port.fleet(),
            HttpChainId::Tls(chain) => chain.listener.fleet(),
        }
    }

    fn slots(&self) -> JwtSlots {
        match self {
            HttpChainId::Plaintext(port) => JwtSlots::of_port(port),
            HttpChainId::Tls(chain) => JwtSlots::of_chain(&name::chain(chain), chain.termination.is_on_demand()),
        }
    }

    /// Its slots, by number.
    pub fn slot_names(&self) -> Vec<String> {
        let slots = self.slots();
        (0..slots.count).map(|number| slots.name(number)).collect()
    }
}

/// The slots of a filter chain.
pub struct JwtSlots {
    of: String,
    count: u8,
}

impl JwtSlots {
    /// Those of a plaintext port.
    pub fn of_port(port: &PortId) -> Self {
        Self { of: port.to_string(), count: MARKS }
    }

    /// Those of a chain of a TLS port, by its name. Hosts with on-demand certificates share one.
    pub fn of_chain(chain: &str, is_on_demand: bool) -> Self {
        let count = if is_on_demand { MARKS } else { SLOTS_OF_CERTIFICATE };
        // No listener's name has a `:`, so no port's slot is called so.
        Self { of: format!("chain:{chain}"), count }
    }

    /// What all their names begin with.
    pub fn prefix(&self) -> String {
        format!("slot/{}/", self.of)
    }

    fn name(&self, number: u8) -> String {
        format!("{}jwt_authn-{number}", self.prefix())
    }

    /// The slot of requests with a mark.
    pub fn of_mark(&self, mark: u8) -> String {
        self.name(mark % self.count)
    }
}

/// The filter of a chain.
pub(super) fn verification(chain: &HttpChainId) -> HttpFilter {
    let slots = chain.slots();
    let by_slot = (0..slots.count).map(|number| {
        let source = slots::source(vec![JwtAuthentication::type_url()], any(&JwtAuthentication::default()));
        (mark::jwt_slot(number, slots.count), composite::slot(slots.name(number), source))
    });
    // It knows no provider, so routes that require a token answer 403.
    let closed = composite::fixed(FILTER, any(&JwtAuthentication::default()));
    composite::by_mark(FILTER, mark::any_jwt(), by_slot, &closed)
}

/// A point of the curve P-256 whose private key nobody has: its first coordinate is the SHA-256 of `no private key 0`.
const UNUSED: &str = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"alg\":\"ES256\",\"kid\":\"unused\",\
                      \"x\":\"zhotkln3RNu0lgUeS_koHQ05iVhMqEOQYwU-IkbiJIE\",\
                      \"y\":\"j3t6veOlQkC2_yk_Wk8jrRgw4qkHLfpjiO9tRMT4EGo\"}";

/// A slot with these providers, each of which is in it once. One without any refuses all requests that are marked for it.
pub fn filled<'p>(slot: &str, all: impl IntoIterator<Item = &'p JwtProvider>) -> TypedExtensionConfig {
    let (mut providers, mut requirement_map) = (BTreeMap::new(), BTreeMap::new());
    for one in all {
        let name = name::jwt_requirement(&one.id);
        let requires_type = Some(RequiresType::ProviderName(name.clone()));
        requirement_map.insert(name.clone(), JwtRequirement { requires_type });
        providers.insert(name, provider(one));
    }
    // What is wrong with a token is nobody's business but the client's, and a missing requirement would list those of others.
    let strip_failure_response = !providers.is_empty();
    let filter = JwtAuthentication { providers, requirement_map, strip_failure_response, ..Default::default() };
    TypedExtensionConfig { name: slot.to_owned(), typed_config: Some(any(&filter)) }
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

//! What a provider of JSON Web Tokens costs among many.

use super::{Bed, certificate, certificate_in, service};
use envoy_api::{
    Message,
    envoy::{config::core::v3::TypedExtensionConfig, extensions::filters::http::jwt_authn::v3::JwtAuthentication},
};
use kinds::kind;
use model::{ObjectRef, jwt::JwtProviderId};
use pipeline::settings::Packing;
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use testbed::cases::object;
use xds::Kind;

fn with_tokens(number: usize, audience: &str) -> kinds::Object {
    with_tokens_and_certificate(number, audience, "cert")
}

fn with_tokens_and_certificate(number: usize, audience: &str, secret: &str) -> kinds::Object {
    let uri = format!("https://keys.example.com/{number}");
    let provider = json!({ "name": "a", "default": true, "audiences": [audience], "remoteJWKS": { "uri": uri } });
    let fqdn = format!("web-{number}.example.com");
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": format!("web-{number}") },
        "spec": {
            "virtualhost": { "fqdn": fqdn, "tls": { "secretName": secret }, "jwtProviders": [provider] },
            "routes": [{ "services": [{ "name": "web-0", "port": 80 }] }],
        },
    }))
}

/// A thousand hosts with a provider of tokens each and one certificate: an edit of one, or a key that it rotates, is one resource with
/// a quarter of all providers, and no host.
#[test]
fn an_edit_of_one_provider_of_tokens_among_a_thousand_is_one_resource() {
    const HOSTS: usize = 1_000;
    for packing in [Packing::Plain, Packing::Scoped] {
        let objects = (0..HOSTS).map(|number| with_tokens(number, "shop")).chain([service(0), certificate()]);
        let mut bed = Bed::of(packing, objects);
        let sources: BTreeMap<String, _> =
            bed.pipeline.jwks_refs().into_iter().map(|(source, _)| (source.uri.to_string(), source)).collect();
        assert_eq!(sources.len(), HOSTS);
        let keys = |key: &str| {
            let keys = model::jwt::Jwks::new([Arc::from(key)]);
            Some(model::jwt::JwksState { keys, failure: None })
        };
        for source in sources.values() {
            bed.pipeline.set_jwks(source, keys(r#"{"k":"AQAB","kty":"oct"}"#));
        }
        let (output, _) = bed.settle();
        let mut sizes: Vec<usize> = output.xds.upserts.iter().map(|resource| resource.body.len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes.len(), 4, "the slots of the chain, and no host");
        assert!(sizes[3] < 2 * sizes[0], "the providers are spread evenly: {sizes:?}");
        let one = |output: &pipeline::Output, computed: &BTreeMap<&'static str, u64>| {
            let sent: Vec<String> = output.xds.upserts.iter().map(|it| format!("{} {}", it.kind, it.name)).collect();
            assert!(
                sent.len() == 1
                    && sent[0].starts_with("ecds slot/chain:ingress_https/")
                    && sent[0].contains("/jwt_authn-"),
                "{sent:?}"
            );
            assert!(output.xds.removes.is_empty());
            assert!(computed.values().sum::<u64>() <= 20, "{computed:?}");
        };
        let (output, computed) = bed.put(with_tokens(471, "other"));
        one(&output, &computed);
        bed.pipeline.set_jwks(&sources["https://keys.example.com/471"], keys(r#"{"k":"AQAC","kty":"oct"}"#));
        let (output, computed) = bed.settle();
        one(&output, &computed);
        // The keys that it has already are no news.
        bed.pipeline.set_jwks(&sources["https://keys.example.com/471"], keys(r#"{"k":"AQAC","kty":"oct"}"#));
        let (output, computed) = bed.settle();
        assert!(output.xds.upserts.is_empty() && computed.values().sum::<u64>() <= 1, "{computed:?}");
    }
}

/// Envoy reads a slot once for each filter chain that has it, so a chain has the providers of its own hosts and no others.
#[test]
fn an_edit_of_one_provider_among_a_thousand_on_twenty_chains_is_one_resource_of_its_chain() {
    const HOSTS: usize = 1_000;
    const CHAINS: usize = 20;
    let secret = |number: usize| format!("cert-{}", number % CHAINS);
    for packing in [Packing::Plain, Packing::Scoped] {
        let hosts = (0..HOSTS).map(|number| with_tokens_and_certificate(number, "shop", &secret(number)));
        let secrets = (0..CHAINS).map(|number| certificate_in(&secret(number)));
        let mut bed = Bed::of(packing, hosts.chain(secrets).chain([service(0)]));
        let (output, computed) = bed.put(with_tokens_and_certificate(471, "other", &secret(471)));
        let [slot] = &output.xds.upserts[..] else { panic!("{:?}", output.xds.upserts) };
        assert!(slot.kind == Kind::Extension && slot.name.contains("/cert-11/"), "{}", slot.name);
        assert!(output.xds.removes.is_empty() && computed.values().sum::<u64>() <= 20, "{computed:?}");
        let slot = TypedExtensionConfig::decode(slot.body.clone()).unwrap();
        let slot = JwtAuthentication::decode(slot.typed_config.unwrap().value).unwrap();
        let of_chain: BTreeSet<String> = (11..HOSTS)
            .step_by(CHAINS)
            .map(|number| {
                let object = ObjectRef::new(kind::CONTOUR_HTTP_PROXY, "default", format!("web-{number}"));
                envoy::name::jwt_requirement(&JwtProviderId { object, name: "a".into() })
            })
            .collect();
        let held: BTreeSet<String> = slot.providers.into_keys().collect();
        assert!(held.is_subset(&of_chain) && (1..HOSTS / CHAINS).contains(&held.len()), "{held:?}");
    }
}

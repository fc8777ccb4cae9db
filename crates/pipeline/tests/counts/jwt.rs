//! What a provider of JSON Web Tokens costs among many, and which servers are asked for keys.

use super::{Bed, certificate, certificate_in, service};
use envoy::bootstrap::DnsFamily;
use envoy_api::{
    Message,
    envoy::{config::core::v3::TypedExtensionConfig, extensions::filters::http::jwt_authn::v3::JwtAuthentication},
};
use kinds::kind;
use model::{
    ObjectRef,
    jwt::{AddressFamily, JwksTrust, JwksUri, JwtProviderId, RemoteJwks},
};
use pipeline::{FetchSpec, Pipeline, Settings, settings::Packing};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use testbed::{cases::object, certs::Ca};
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

/// An HTTPProxy with providers whose keys come from these servers.
fn with_servers(namespace: &str, name: &str, servers: &[Value]) -> kinds::Object {
    let providers =
        servers.iter().enumerate().map(|(at, server)| json!({ "name": format!("p{at}"), "remoteJWKS": server }));
    let providers: Vec<Value> = providers.collect();
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "namespace": namespace, "name": name },
        "spec": {
            "virtualhost": {
                "fqdn": format!("{name}-{namespace}.example.com"), "tls": { "secretName": "cert" }, "jwtProviders": providers,
            },
            "routes": [{ "directResponsePolicy": { "statusCode": 200 } }],
        },
    }))
}

fn secret(namespace: &str, name: &str, data: &Value) -> kinds::Object {
    object(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": { "namespace": namespace, "name": name },
        "stringData": data,
    }))
}

/// Providers that differ in the port, the CA, the subject name, the family of addresses or the namespace are fetched from separately.
/// Those that differ only in their times share a server: it has the longest timeout, and its keys the shortest cache time.
#[test]
fn providers_that_differ_in_any_setting_of_the_server_are_fetched_each() {
    const URI: &str = "https://keys.example.com/a";
    const PORT: &str = "https://keys.example.com:8443/a";
    let [ca, other_ca] = ["ca", "other-ca"].map(Ca::new);
    let leaf = ca.leaf("*.example.com").make();
    let mut settings = Settings::default();
    settings.cluster.dns_family = DnsFamily::V4;
    let mut pipeline = Pipeline::new(&settings);
    let trusting = |ca: &str, name: &str| json!({ "uri": URI, "validation": { "caSecret": ca, "subjectName": name } });
    let pair = json!({ "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() });
    let servers = [
        json!({ "uri": URI, "timeout": "500ms", "cacheDuration": "2m" }),
        json!({ "uri": URI, "timeout": "3s", "cacheDuration": "10m" }),
        json!({ "uri": PORT }),
        trusting("ca", "keys.example.com"),
        trusting("ca", "other.example.com"),
        trusting("other-ca", "keys.example.com"),
        json!({ "uri": URI, "dnsLookupFamily": "v6" }),
        json!({ "uri": URI, "dnsLookupFamily": "all" }),
    ];
    for object in [
        secret("default", "cert", &pair),
        secret("elsewhere", "cert", &pair),
        secret("default", "ca", &json!({ "ca.crt": ca.pem() })),
        secret("default", "other-ca", &json!({ "ca.crt": other_ca.pem() })),
        with_servers("default", "many", &servers),
        with_servers("default", "again", &[json!({ "uri": URI, "timeout": "2s", "cacheDuration": "1m" })]),
        with_servers("elsewhere", "one", &[json!({ "uri": URI })]),
    ] {
        pipeline.put(&object.key(), Some(object));
    }
    pipeline.settle();
    let found: Vec<(RemoteJwks, FetchSpec)> =
        pipeline.jwks_refs().into_iter().map(|(source, spec)| ((*source).clone(), (*spec.unwrap()).clone())).collect();

    let source = |namespace: &str, uri: &str, trust: Option<(&str, &str)>, family: Option<AddressFamily>| RemoteJwks {
        namespace: namespace.into(),
        uri: JwksUri::parse(uri).unwrap(),
        trust: trust
            .map(|(ca, name)| JwksTrust { ca: ObjectRef::new(kind::SECRET, "default", ca), names: vec![name.into()] }),
        family,
    };
    let usual = FetchSpec {
        ca: None,
        family: AddressFamily::V4,
        timeout: Duration::from_secs(1),
        cache: Duration::from_secs(5 * 60),
    };
    let with_ca =
        |ca: &Ca| FetchSpec { ca: Some(resolve::ca::bundle("ca", ca.pem().as_bytes()).unwrap()), ..usual.clone() };
    let with_family = |family| FetchSpec { family, ..usual.clone() };
    let shared = FetchSpec { timeout: Duration::from_secs(3), cache: Duration::from_secs(60), ..usual.clone() };
    let expected = [
        (source("default", URI, None, None), shared),
        (source("default", PORT, None, None), usual.clone()),
        (source("default", URI, Some(("ca", "keys.example.com")), None), with_ca(&ca)),
        (source("default", URI, Some(("ca", "other.example.com")), None), with_ca(&ca)),
        (source("default", URI, Some(("other-ca", "keys.example.com")), None), with_ca(&other_ca)),
        (source("default", URI, None, Some(AddressFamily::V6)), with_family(AddressFamily::V6)),
        (source("default", URI, None, Some(AddressFamily::All)), with_family(AddressFamily::All)),
        (source("elsewhere", URI, None, None), usual.clone()),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), BTreeMap::from(expected));

    // The operator's family holds for those that have none of their own, and the others are as they were.
    settings.cluster.dns_family = DnsFamily::V6;
    pipeline.set_settings(&settings);
    pipeline.settle();
    let changed = pipeline.jwks_refs();
    assert_eq!(changed.len(), 6, "{changed:?}");
    let is_v6 = |spec: Option<Arc<FetchSpec>>| spec.unwrap().family == AddressFamily::V6;
    assert!(changed.into_iter().all(|(source, spec)| source.family.is_none() && is_v6(spec)));
}

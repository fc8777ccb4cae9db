//! Who is who. What certificates say is tested with real ones in the crate's tests.

use envoy_api::envoy::config::core::v3::BuildVersion;
use envoy_api::envoy::r#type::v3::SemanticVersion;
use envoy_api::google::protobuf::{Struct, Value, value};

use super::*;

fn node(fleet: Option<Value>) -> Vec<u8> {
    node_with(FLEET_METADATA, fleet)
}

fn node_with(key: &str, value: Option<Value>) -> Vec<u8> {
    let fields = value.map(|value| (key.to_owned(), value)).into_iter().collect();
    let version = SemanticVersion { major_number: 1, minor_number: 40, patch: 0 };
    let build = BuildVersion { version: Some(version), metadata: None };
    Node {
        id: "pod-1".to_owned(),
        metadata: Some(Struct { fields }),
        user_agent_version_type: Some(UserAgentVersionType::UserAgentBuildVersion(build)),
        ..Node::default()
    }
    .encode_to_vec()
}

fn certificate(fleet: Fleet) -> Credential {
    Credential::Certificate { fleet, expires: SystemTime::now() }
}

#[test]
fn a_fleet_is_written_and_read() {
    for (text, fleet) in [("shared", Fleet::Shared), ("shop/edge", Fleet::named("shop", "edge"))] {
        assert_eq!(text.parse(), Ok(fleet.clone()));
        assert_eq!(fleet.to_string(), text);
    }
    for text in ["", "shop", "shop/", "/edge", "a/b/c"] {
        assert!(text.parse::<Fleet>().is_err(), "{text}");
    }
    assert_eq!(Fleet::named("shop", "edge").uri().as_deref(), Some("spiffe://sesame/fleet/shop/edge"));
}

#[test]
fn the_certificate_decides() {
    let shop = || Fleet::named("shop", "edge");
    let who = Identity::establish(&node(Some("shop/edge".into())), &certificate(shop()), None).expect("in");
    assert_eq!((who.fleet, &*who.node, &*who.version), (shop(), "pod-1", "1.40.0"));
    assert_eq!(Identity::establish(&node(None), &certificate(shop()), None).expect("in").fleet, shop());
    let mismatch = Identity::establish(&node(Some("shared".into())), &certificate(shop()), None);
    assert_eq!(mismatch, Err(IdentityError::Mismatch { claimed: Fleet::Shared, authenticated: shop() }));
    let number = Value { kind: Some(value::Kind::NumberValue(1.0)) };
    assert!(matches!(
        Identity::establish(&node(Some(number)), &certificate(shop()), None),
        Err(IdentityError::Unreadable(_))
    ));
    assert_eq!(Identity::establish(b"\xff", &certificate(shop()), None), Err(IdentityError::Node));
}

#[test]
fn without_certificates_the_node_is_believed() {
    let fleet = |node: &[u8]| Identity::establish(node, &Credential::Insecure, None).expect("in").fleet;
    assert_eq!(fleet(&node(None)), Fleet::Shared);
    assert_eq!(fleet(&node(Some("shop/edge".into()))), Fleet::named("shop", "edge"));
}

#[test]
fn a_proxy_with_a_token_says_when_its_cas_expire() {
    let fleet = Fleet::named("shop", "edge");
    let said = |value: Option<Value>, credential: &Credential| {
        let node = node_with(CA_EXPIRATIONS_METADATA, value);
        Identity::establish(&node, credential, None).expect("in").ca_expirations
    };
    let token = Credential::Token(VerifiedToken { fleet: fleet.clone(), expires: SystemTime::now() });
    assert_eq!(said(Some("1924992000,1956528000".into()), &token), [1_924_992_000, 1_956_528_000]);
    assert_eq!(said(Some(["7"; MAX_CAS].join(",").as_str().into()), &token), [7; MAX_CAS]);
    let number = Value { kind: Some(value::Kind::NumberValue(7.0)) };
    let too_many = ["7"; MAX_CAS + 1].join(",");
    for unread in [None, Some(number), Some("".into()), Some("7,soon".into()), Some(too_many.as_str().into())] {
        assert_eq!(said(unread.clone(), &token), [0; 0], "{unread:?}");
    }
    assert_eq!(said(Some("7".into()), &certificate(fleet)), [0; 0], "a certificate is shown, and need not be told of");
}

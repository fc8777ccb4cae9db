#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::*;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn request(fleet: Option<FleetName>) -> Request {
    Request { namespace: "gateways".to_owned(), fleet, lifetime: 365 * DAY, now: SystemTime::now() }
}

/// A set for namespace `gateways`.
pub(crate) fn certificates() -> Certificates {
    Certificates::issue(&request(None)).unwrap()
}

/// Calls `check` with the parsed certificate: it borrows from the PEM block.
fn parsed<T>(pem: &str, check: impl FnOnce(&X509Certificate) -> T) -> T {
    let (_, block) = parse_x509_pem(pem.as_bytes()).unwrap();
    check(&block.parse_x509().unwrap())
}

fn names(pem: &str) -> Vec<String> {
    parsed(pem, |certificate| {
        let sans = certificate.subject_alternative_name().unwrap().unwrap();
        sans.value
            .general_names
            .iter()
            .map(|name| match name {
                GeneralName::DNSName(name) => (*name).to_owned(),
                GeneralName::URI(uri) => (*uri).to_owned(),
                other => panic!("unexpected name {other:?}"),
            })
            .collect()
    })
}

#[test]
fn the_server_goes_by_its_own_names_and_by_contours() {
    let certificates = certificates();
    assert_eq!(
        names(&certificates.server.certificate),
        [
            "sesame",
            "sesame.gateways",
            "sesame.gateways.svc",
            "sesame.gateways.svc.cluster.local",
            "contour",
            "contour.gateways",
            "contour.gateways.svc",
            "contour.gateways.svc.cluster.local",
        ]
    );
}

#[test]
fn an_envoy_proves_its_fleet_if_it_has_one() {
    let shared = Certificates::issue(&request(None)).unwrap();
    let dns = ["envoy", "envoy.gateways", "envoy.gateways.svc", "envoy.gateways.svc.cluster.local"];
    assert_eq!(names(&shared.envoy.certificate), dns);

    let own = Certificates::issue(&request(Some(FleetName::new("team-a", "public")))).unwrap();
    assert_eq!(names(&own.envoy.certificate)[4], "spiffe://sesame/fleet/team-a/public");
}

#[test]
fn an_envoys_certificate_is_good_for_one_thing() {
    let certificates = certificates();
    let purposes = |pem: &str| {
        parsed(pem, |certificate| {
            let usage = certificate.extended_key_usage().unwrap().unwrap().value;
            (usage.server_auth, usage.client_auth, certificate.is_ca())
        })
    };
    assert_eq!(purposes(&certificates.server.certificate), (true, true, false));
    assert_eq!(purposes(&certificates.envoy.certificate), (false, true, false));
    parsed(&certificates.ca, |ca| {
        assert!(ca.is_ca());
        let signs = ca.extensions().iter().any(
            |extension| matches!(extension.parsed_extension(), ParsedExtension::KeyUsage(usage) if usage.key_cert_sign()),
        );
        assert!(signs, "the CA may sign");
    });
}

#[test]
fn they_last_as_long_as_asked_and_begin_a_little_earlier() {
    let request = Request { lifetime: 7 * DAY, ..request(None) };
    let now = i64::try_from(request.now.duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let certificates = Certificates::issue(&request).unwrap();
    for pem in [&certificates.ca, &certificates.server.certificate, &certificates.envoy.certificate] {
        parsed(pem, |certificate| {
            let validity = certificate.validity();
            assert_eq!(validity.not_after.timestamp() - now, 7 * 24 * 3600);
            assert_eq!(now - validity.not_before.timestamp(), 3600);
        });
    }
}

#[test]
fn keys_are_on_p256_and_serials_differ() {
    let certificates = certificates();
    let serials: std::collections::BTreeSet<String> =
        [&certificates.ca, &certificates.server.certificate, &certificates.envoy.certificate]
            .map(|pem| {
                parsed(pem, |certificate| {
                    let key = certificate.public_key().parsed().unwrap();
                    assert!(matches!(key, x509_parser::public_key::PublicKey::EC(point) if point.key_size() == 256));
                    certificate.raw_serial_as_string()
                })
            })
            .into();
    assert_eq!(serials.len(), 3);
    assert!(certificates.server.key.starts_with("-----BEGIN PRIVATE KEY-----"), "PKCS#8");
}

#[test]
fn a_namespace_that_cannot_be_a_name_is_refused() {
    let error = Certificates::issue(&Request { namespace: "gätes".to_owned(), ..request(None) }).unwrap_err();
    assert_eq!(error.to_string(), "the name \"sesame.gätes\" is not valid in a certificate");
}

#[test]
fn a_key_does_not_reach_a_log() {
    let certificates = certificates();
    assert!(!format!("{certificates:?}").contains("PRIVATE KEY"));
}

//! What a handshake agrees on, with clients and with backends: versions, ciphers and curves.
//!
//! In: what one host or one service has of its own, and what holds for all. Out: Envoy's parameters. Own ciphers and curves stand in the
//! place of those that hold for all; whoever names none has these, and where there are none either, Envoy has its own.

use envoy_api::envoy::extensions::transport_sockets::tls::v3::{self as tls, tls_parameters::TlsProtocol};
use model::tls::{TlsParameters, TlsVersion, TlsVersions};
use std::sync::Arc;

/// The ciphers and curves that hold where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual<'s> {
    /// The ciphers.
    pub ciphers: &'s [Arc<str>],
    /// The curves.
    pub curves: &'s [Arc<str>],
}

/// Envoy's parameters.
pub(crate) fn of(versions: TlsVersions, own: Option<&TlsParameters>, usual: Usual<'_>) -> tls::TlsParameters {
    let ciphers = own.map(|own| &*own.ciphers).filter(|own| !own.is_empty()).unwrap_or(usual.ciphers);
    let curves = own.map(|own| &*own.curves).filter(|own| !own.is_empty()).unwrap_or(usual.curves);
    let words = |words: &[Arc<str>]| words.iter().map(ToString::to_string).collect();
    tls::TlsParameters {
        tls_minimum_protocol_version: version(versions.lowest).into(),
        tls_maximum_protocol_version: version(versions.highest).into(),
        cipher_suites: words(ciphers),
        ecdh_curves: words(curves),
        ..Default::default()
    }
}

/// A version in the words of Envoy.
fn version(version: TlsVersion) -> TlsProtocol {
    match version {
        TlsVersion::V1_0 => TlsProtocol::TlSv10,
        TlsVersion::V1_1 => TlsProtocol::TlSv11,
        TlsVersion::V1_2 => TlsProtocol::TlSv12,
        TlsVersion::V1_3 => TlsProtocol::TlSv13,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ciphers_and_curves_stand_in_place_of_the_usual_ones_each_by_itself() {
        let list = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        let (ciphers, curves) = (list(&["AES128-SHA"]), list(&["X25519"]));
        let usual = Usual { ciphers: &ciphers, curves: &curves };
        let own = TlsParameters { curves: list(&["P-384"]), ..TlsParameters::default() };
        let versions = TlsVersions { lowest: TlsVersion::V1_0, highest: TlsVersion::V1_3 };
        let found = of(versions, Some(&own), usual);
        assert_eq!((found.cipher_suites, found.ecdh_curves), (vec!["AES128-SHA".into()], vec!["P-384".into()]));
        assert_eq!(found.tls_minimum_protocol_version, i32::from(TlsProtocol::TlSv10));
        assert_eq!(found.tls_maximum_protocol_version, i32::from(TlsProtocol::TlSv13));
        assert_eq!(of(versions, None, usual).ecdh_curves, ["X25519"]);
    }
}

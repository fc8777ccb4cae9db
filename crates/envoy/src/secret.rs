//! Certificates with their keys, and whom to trust, as they travel by SDS.

use crate::name;
use envoy_api::envoy::{
    config::core::v3::{DataSource, data_source::Specifier},
    extensions::transport_sockets::tls::v3::{CertificateValidationContext, Secret, TlsCertificate, secret},
};
use model::{cluster::CaBundle, tls::KeyPair};

/// The certificate under this name.
pub fn certificate(name: &str, pair: &KeyPair) -> Secret {
    Secret {
        name: name.to_owned(),
        r#type: Some(secret::Type::TlsCertificate(TlsCertificate {
            certificate_chain: Some(inline(&pair.chain)),
            private_key: Some(inline(&pair.key)),
            ..Default::default()
        })),
    }
}

/// The certificates of a CA bundle under its name.
pub fn authority(bundle: &CaBundle, pem: &str) -> Secret {
    Secret {
        name: name::ca(bundle),
        r#type: Some(secret::Type::ValidationContext(CertificateValidationContext {
            trusted_ca: Some(inline(pem)),
            ..Default::default()
        })),
    }
}

fn inline(pem: &str) -> DataSource {
    DataSource { specifier: Some(Specifier::InlineBytes(pem.as_bytes().to_vec())), ..Default::default() }
}

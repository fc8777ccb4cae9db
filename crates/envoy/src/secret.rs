//! Certificates with their keys, and whom to trust, as they travel by SDS.
//!
//! Envoy keeps a validation context that it is told is removed in force, so one whose CA is gone is replaced by a CA that signed
//! nothing and whose key nobody has: clients are refused.

use crate::name;
use envoy_api::envoy::{
    config::core::v3::{DataSource, data_source::Specifier},
    extensions::transport_sockets::tls::v3::{
        CertificateValidationContext, Secret, TlsCertificate, certificate_validation_context::TrustChainVerification,
        secret,
    },
};
use model::{
    cluster::CaBundle,
    tls::{KeyPair, client_validation::ClientTrust},
};

/// The certificate of a CA that signed nothing. Its key was thrown away when it was made.
const SIGNED_NOTHING: &str = include_str!("secret/signed_nothing.pem");

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

/// The certificates of a CA bundle and their CRLs, if it has some, under its name.
pub fn authority(bundle: &CaBundle, pem: &str, crls: Option<&str>) -> Secret {
    Secret {
        name: name::ca(bundle),
        r#type: Some(secret::Type::ValidationContext(CertificateValidationContext {
            trusted_ca: Some(inline(pem)),
            crl: crls.map(inline),
            ..Default::default()
        })),
    }
}

/// Which client certificates are accepted, under the name of this trust: its CAs and CRLs.
pub fn clients(trust: &ClientTrust, cas: Option<&str>, crls: Option<&str>) -> Secret {
    let (verification, leaf_only) = match trust {
        ClientTrust::Signed { crl, .. } => {
            (TrustChainVerification::VerifyTrustChain, crl.as_ref().is_some_and(|crl| crl.leaf_only))
        }
        ClientTrust::Unverified { .. } => (TrustChainVerification::AcceptUntrusted, false),
    };
    context(
        trust,
        CertificateValidationContext {
            trusted_ca: cas.map(inline),
            crl: crls.map(inline),
            only_verify_leaf_cert_crl: leaf_only,
            trust_chain_verification: verification.into(),
            ..Default::default()
        },
    )
}

/// The same where its CAs or CRLs are not there: every client certificate is refused.
pub fn no_clients(trust: &ClientTrust) -> Secret {
    let nobody = CertificateValidationContext { trusted_ca: Some(inline(SIGNED_NOTHING)), ..Default::default() };
    context(trust, nobody)
}

fn context(trust: &ClientTrust, context: CertificateValidationContext) -> Secret {
    Secret { name: name::client_trust(trust), r#type: Some(secret::Type::ValidationContext(context)) }
}

fn inline(pem: &str) -> DataSource {
    DataSource { specifier: Some(Specifier::InlineBytes(pem.as_bytes().to_vec())), ..Default::default() }
}

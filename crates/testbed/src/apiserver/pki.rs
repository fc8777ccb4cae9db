//! The certificates of one API server: a CA, a serving certificate, and the key of service account tokens.
//!
//! In: the names it is reached by. Out: files in its folder. Users log in with tokens, so there are no client
//! certificates.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use super::Error;
use crate::state::StateDir;

pub const CA_FILE: &str = "ca.crt";
pub const SERVING_FILE: &str = "serving.crt";
pub const SERVING_KEY_FILE: &str = "serving.key";
pub const SERVICE_ACCOUNT_KEY_FILE: &str = "service-account.key";
pub const SERVICE_ACCOUNT_PUBLIC_FILE: &str = "service-account.pub";

/// What others need to know of it.
#[derive(Debug)]
pub struct Pki {
    ca: String,
}

impl Pki {
    /// Makes all of it.
    pub fn make(names: Vec<String>, state: &StateDir) -> Result<Pki, Error> {
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "testbed");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_key = KeyPair::generate()?;
        let ca_pem = ca.self_signed(&ca_key)?.pem();

        let mut serving = CertificateParams::new(names)?;
        serving.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let serving_key = KeyPair::generate()?;
        let serving = serving.signed_by(&serving_key, &Issuer::new(ca, ca_key))?;

        state.write(CA_FILE, &ca_pem)?;
        state.write(SERVING_FILE, serving.pem())?;
        state.write(SERVING_KEY_FILE, serving_key.serialize_pem())?;
        let accounts = KeyPair::generate()?;
        state.write(SERVICE_ACCOUNT_KEY_FILE, accounts.serialize_pem())?;
        state.write(SERVICE_ACCOUNT_PUBLIC_FILE, accounts.public_key_pem())?;
        Ok(Pki { ca: ca_pem })
    }

    /// The CA's certificate.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }
}

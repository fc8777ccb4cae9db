//! Certificates made on the fly: CAs, chains, leaves, revocation lists, and everything that can be wrong with them.
//!
//! In: names, lifetimes and key types. Out: PEM for Secrets and files, DER and rustls configurations for both ends of a
//! handshake. Nothing is read from disk and nothing expires by surprise. What a test asks for here can only fail by a
//! mistake in the test, so it panics rather than burden every line with a `Result`.
//!
//! ```
//! use testbed::certs::{Ca, KeyType};
//! let ca = Ca::new("example CA");
//! let server = ca.leaf("a.example.com").dns("*.b.example.com").key(KeyType::P384).make();
//! let secret = (server.chain_pem(), server.key_pem());
//! let revoked = ca.crl([&server]);
//! ```

mod ca;
mod leaf;
mod mutated;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, RsaKeySize};

pub use ca::{Ca, Crl};
pub use leaf::{Leaf, LeafBuilder};
pub use mutated::Mutations;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The kinds of keys that people have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyType {
    /// ECDSA on P-256.
    #[default]
    P256,
    /// ECDSA on P-384.
    P384,
    /// ECDSA on P-521.
    P521,
    /// RSA with 2048 bits. Slow to make: 50 ms and more.
    Rsa2048,
    /// RSA with 3072 bits, slower to make.
    Rsa3072,
    /// RSA with 4096 bits. Slowest to make: half a second and more.
    Rsa4096,
    /// Ed25519, which Envoy does not take for servers by default.
    Ed25519,
}

impl KeyType {
    /// Every kind.
    pub const ALL: [KeyType; 7] = [
        KeyType::P256,
        KeyType::P384,
        KeyType::P521,
        KeyType::Rsa2048,
        KeyType::Rsa3072,
        KeyType::Rsa4096,
        KeyType::Ed25519,
    ];

    fn generate(self) -> KeyPair {
        match self {
            KeyType::P256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
            KeyType::P384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
            KeyType::P521 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P521_SHA512),
            KeyType::Rsa2048 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
            KeyType::Rsa3072 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_3072),
            KeyType::Rsa4096 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
            KeyType::Ed25519 => KeyPair::generate_for(&rcgen::PKCS_ED25519),
        }
        .expect("aws-lc-rs makes keys of all these kinds")
    }
}

/// Parameters for a subject, valid from a minute ago for a year, with a serial number of their own.
fn params(common_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if !common_name.is_empty() {
        params.distinguished_name.push(DnType::CommonName, common_name);
    }
    params.serial_number = Some(serial());
    let now = SystemTime::now();
    valid(&mut params, now - Duration::from_secs(60), now + 365 * DAY);
    params
}

/// A positive number of 16 random bytes: revocation lists know certificates by it.
fn serial() -> rcgen::SerialNumber {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the system has random numbers");
    bytes[0] = bytes[0] & 0x7f | 0x40;
    rcgen::SerialNumber::from_slice(&bytes)
}

fn valid(params: &mut CertificateParams, from: SystemTime, until: SystemTime) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let at = |time: SystemTime| epoch + time.duration_since(UNIX_EPOCH).unwrap_or_default();
    params.not_before = at(from);
    params.not_after = at(until);
}

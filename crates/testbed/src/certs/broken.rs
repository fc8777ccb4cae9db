//! What people put into Secrets by mistake, and the odd forms that are no mistake.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{KeyType, Leaf};

/// The curve P-256, as an object identifier in DER.
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

impl Leaf {
    /// The PEM of a key that is not this certificate's.
    pub fn wrong_key_pem(&self) -> String {
        self.kind().generate().serialize_pem()
    }

    /// A certificate whose PEM breaks off in the middle, as after a bad copy.
    pub fn truncated_pem(&self) -> String {
        let pem = self.cert_pem();
        pem[..pem.len() / 2].to_owned()
    }

    /// PEM that frames something that is no certificate.
    pub fn garbage_pem(&self) -> String {
        pem("CERTIFICATE", b"this is not a certificate")
    }

    /// The key as OpenSSL writes it: an `EC PARAMETERS` block, then the key in its own form. Valid, and tripped over by
    /// readers that take the first block for the key.
    ///
    /// # Panics
    /// When the key is not on P-256.
    pub fn openssl_key_pem(&self) -> String {
        format!("{}{}", pem("EC PARAMETERS", &P256), self.sec1_key_pem())
    }

    /// The key as an `EC PRIVATE KEY` block.
    ///
    /// # Panics
    /// When the key is not on P-256.
    pub fn sec1_key_pem(&self) -> String {
        assert_eq!(self.kind(), KeyType::P256, "only keys on P-256 are written in this form");
        // In PKCS#8 the secret number stands at a fixed place: everything before it has a fixed length.
        let pkcs8 = self.key_pair().serialized_der();
        let secret = &pkcs8[36..68];
        let point = self.key_pair().public_key_raw();
        let mut der = vec![0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
        der.extend(secret);
        der.extend([0xa0, 0x0a]);
        der.extend(P256);
        der.extend([0xa1, 0x44, 0x03, 0x42, 0x00]);
        der.extend(point);
        pem("EC PRIVATE KEY", &der)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

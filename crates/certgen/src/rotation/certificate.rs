//! What a rotation needs to know of a certificate.

use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::X509Certificate;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// A certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// In PEM.
    pub pem: String,
    /// From when on it is valid, in seconds since 1970.
    pub begins: i64,
    /// When it expires, in seconds since 1970. Proxies report the certificates that they have by this.
    pub expires: i64,
    /// The identifier of its key.
    key: Option<Vec<u8>>,
    /// The identifier of the key that signed it.
    signed_by: Option<Vec<u8>>,
}

impl Certificate {
    /// The certificates in a PEM file, in their order. None if one of them cannot be read.
    pub fn all(text: &str) -> Option<Vec<Certificate>> {
        let ends = text.match_indices(END).map(|(at, _)| at + END.len());
        let mut begun = 0;
        let read = ends.map(|end| {
            let text = &text[std::mem::replace(&mut begun, end)..end];
            let pem = format!("{}\n", &text[text.find(BEGIN)?..]);
            let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
            let certificate = block.parse_x509().ok()?;
            let (key, signed_by) = identifiers(&certificate);
            let validity = certificate.validity();
            let (begins, expires) = (validity.not_before.timestamp(), validity.not_after.timestamp());
            Some(Certificate { begins, expires, key, signed_by, pem })
        });
        read.collect()
    }

    /// The first certificate in a PEM file.
    pub fn first(text: &str) -> Option<Certificate> {
        Self::all(text)?.into_iter().next()
    }

    /// Whether that CA has signed it.
    pub fn is_signed_by(&self, ca: &Certificate) -> bool {
        self.signed_by.is_some() && self.signed_by == ca.key
    }
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hex = |id: &Option<Vec<u8>>| -> String {
            id.iter().flatten().take(4).map(|byte| format!("{byte:02x}")).collect()
        };
        write!(f, "{} by {} until {}", hex(&self.key), hex(&self.signed_by), self.expires)
    }
}

fn identifiers(certificate: &X509Certificate<'_>) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let (mut key, mut signed_by) = (None, None);
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => key = Some(id.0.to_vec()),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                signed_by = id.key_identifier.as_ref().map(|id| id.0.to_vec());
            }
            _ => {}
        }
    }
    (key, signed_by)
}

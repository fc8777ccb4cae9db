//! PEM in and out. What goes out is made anew from what was read, so that no odd line reaches Envoy's parser.

use base64::{Engine, prelude::BASE64_STANDARD};
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer,
    pem::{Error, PemObject},
};

/// The certificates in a text, in their order. Text between and after the blocks does not matter.
pub fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().map_err(|error| why(&error))
}

/// The CRLs in a text, in their order. Blocks of other kinds are passed over.
pub fn revocation_lists(text: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    CertificateRevocationListDer::pem_slice_iter(text).collect::<Result<_, _>>().map_err(|error| why(&error))
}

/// The one private key in a text. Blocks of other kinds, such as `EC PARAMETERS`, are passed over.
pub fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let keys: Result<Vec<_>, _> = PrivateKeyDer::pem_slice_iter(text).collect();
    let mut keys = keys.map_err(|error| why(&error))?.into_iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(key),
        (None, _) => Err("contains no private key".to_owned()),
        (Some(_), Some(_)) => Err("contains more than one private key".to_owned()),
    }
}

fn why(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { end_marker } => {
            format!("is not valid PEM: `END {}` is missing", String::from_utf8_lossy(end_marker))
        }
        Error::IllegalSectionStart { .. } => "is not valid PEM: a `BEGIN` line is incomplete".to_owned(),
        Error::Base64Decode(_) => "is not valid PEM: a block is not valid base64".to_owned(),
        other => format!("is not valid PEM: {other}"),
    }
}

/// A key as PEM, under the label of its form.
pub fn key_text(key: &PrivateKeyDer<'_>) -> String {
    let label = match key {
        PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
        PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
        _ => "PRIVATE KEY",
    };
    text(label, &[key.secret_der()])
}

/// Blocks of one label.
pub fn text(label: &str, blocks: &[impl AsRef<[u8]>]) -> String {
    let mut out = String::new();
    for block in blocks {
        out.push_str(&format!("-----BEGIN {label}-----\n"));
        let encoded = BASE64_STANDARD.encode(block);
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, tail) = rest.split_at(rest.len().min(64));
            out.push_str(line);
            out.push('\n');
            rest = tail;
        }
        out.push_str(&format!("-----END {label}-----\n"));
    }
    out
}

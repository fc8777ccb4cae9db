//! Whether clients would accept a server's certificate now: its time, and its names.
//!
//! In: a certificate and the names that clients look for. Out: why it cannot be used, if so. A file that has been renewed with a
//! certificate that no client accepts must not replace one that works.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::TlsError;

/// Checks the certificate of that file.
pub(crate) fn check(
    path: &Path,
    certificate: &CertificateDer<'_>,
    names: &[&str],
    now: SystemTime,
) -> Result<(), TlsError> {
    let unreadable = || TlsError::Unreadable(path.to_owned());
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| unreadable())?;
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    if now > validity.not_after.timestamp() {
        return Err(TlsError::Expired(path.to_owned(), validity.not_after.to_string()));
    }
    if now < validity.not_before.timestamp() {
        return Err(TlsError::NotYetValid(path.to_owned(), validity.not_before.to_string()));
    }
    let sans = certificate.subject_alternative_name().map_err(|_| unreadable())?;
    let mut sans = sans.iter().flat_map(|extension| &extension.value.general_names);
    if sans.any(|name| matches!(name, GeneralName::DNSName(name) if names.contains(name))) {
        Ok(())
    } else {
        Err(TlsError::Names(path.to_owned(), names.join(", ")))
    }
}

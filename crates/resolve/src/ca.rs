//! CA bundles: whom to trust.

use crate::{
    Rejection,
    certificate::{pem, x509},
};
use kinds::Secret;
use model::Code;
use std::sync::Arc;

/// The entry of a Secret or ConfigMap that holds a bundle.
pub const ENTRY: &str = "ca.crt";

/// The certificates of a bundle, clean and in their order; whatever else stands in the text is left out.
pub fn bundle(name: &str, text: &[u8]) -> Result<Arc<str>, Rejection> {
    let no = |why: String| Rejection::new(Code::CaNotValid, format!("{name}: {why}"));
    let certificates = pem::certificates(text).map_err(|why| no(format!("{ENTRY} {why}")))?;
    if certificates.is_empty() {
        return Err(no(format!("{ENTRY} contains no certificate")));
    }
    for (index, certificate) in certificates.iter().enumerate() {
        if x509::read(certificate).is_none() {
            return Err(no(format!("certificate {} in {ENTRY} is not valid X.509", index + 1)));
        }
    }
    Ok(pem::text("CERTIFICATE", &certificates).into())
}

/// The bundle in a Secret.
pub fn read(secret: &Secret) -> Result<Arc<str>, Rejection> {
    let name = format!("Secret {}/{}", secret.meta.namespace, secret.meta.name);
    match secret.get(ENTRY) {
        Ok(Some(content)) if !content.is_empty() => bundle(&name, content),
        Ok(_) => Err(Rejection::new(Code::SecretKeyMissing, format!("{name} has no {ENTRY}"))),
        Err(fault) => Err(Rejection::new(Code::SecretKeyMissing, format!("{name}: {fault}"))),
    }
}

//! CA bundles: whom to trust.

use crate::{
    Rejection,
    certificate::{Validity, pem, x509},
};
use kinds::{ConfigMap, Secret};
use model::Code;
use std::{collections::BTreeSet, sync::Arc};
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

/// The entry of a Secret or ConfigMap that holds a bundle.
pub const ENTRY: &str = "ca.crt";

/// The certificates of a bundle, clean and in their order; whatever else stands in the text is left out.
pub fn bundle(name: &str, text: &[u8]) -> Result<Arc<str>, Rejection> {
    let reject = |why: String| Rejection::new(Code::CaNotValid, format!("{name}: {why}"));
    let certificates = pem::certificates(text).map_err(|why| reject(format!("{ENTRY} {why}")))?;
    if certificates.is_empty() {
        return Err(reject(format!("{ENTRY} contains no certificate")));
    }
    for (index, certificate) in certificates.iter().enumerate() {
        if x509::read(certificate).is_none() {
            return Err(reject(format!("certificate {} in {ENTRY} is not valid X.509", index + 1)));
        }
    }
    Ok(pem::text("CERTIFICATE", &certificates).into())
}

/// A CA is reported before it expires: when a fifth of its time is left, at most so many seconds.
const LONGEST_NOTICE: i64 = 30 * 24 * 3600;

/// When the CAs of a bundle are valid: each period once, since each CA expires by itself.
pub fn validity(bundle: &str) -> Vec<Validity> {
    let certificates = pem::certificates(bundle.as_bytes()).unwrap_or_default();
    let periods = certificates.iter().filter_map(|der| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        let (begin, end) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let notice = end.saturating_sub((end.saturating_sub(begin) / 5).clamp(0, LONGEST_NOTICE));
        Some(Validity { not_before: begin, not_after: end, notice: Some(notice) })
    });
    periods.collect::<BTreeSet<_>>().into_iter().collect()
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

/// The bundle in a ConfigMap.
pub fn read_config_map(map: &ConfigMap) -> Result<Arc<str>, Rejection> {
    let name = format!("ConfigMap {}/{}", map.meta.namespace, map.meta.name);
    match map.data.get(ENTRY) {
        Ok(Some(content)) if !content.is_empty() => bundle(&name, content.as_bytes()),
        Ok(_) => Err(Rejection::new(Code::CaNotValid, format!("{name} has no {ENTRY}"))),
        Err(fault) => Err(Rejection::new(Code::CaNotValid, format!("{name}: {fault}"))),
    }
}

#[cfg(test)]
mod tests {
    //! Bundles in ConfigMaps.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::json;

    fn config_map(data: serde_json::Value) -> Result<Arc<str>, Code> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ca", "namespace": "shop" }, "data": data,
        });
        let decoded = kinds::decode_json(kinds::kind::CONFIG_MAP, object.to_string().as_bytes()).unwrap();
        read_config_map(decoded.object.get::<ConfigMap>().unwrap()).map_err(|rejection| rejection.code)
    }

    #[test]
    fn a_config_map_holds_a_bundle_as_a_secret_does() {
        let keys = KeyPair::generate().unwrap();
        let pem = CertificateParams::new(vec!["ca.example.com".into()]).unwrap().self_signed(&keys).unwrap().pem();
        let found = config_map(json!({ "ca.crt": format!("# ours\n{pem}") })).unwrap();
        assert_eq!(found.replace('\n', ""), pem.replace("\r\n", "").replace('\n', ""));
        for wrong in
            [json!({}), json!({ "ca.crt": "" }), json!({ "ca.crt": "text" }), json!({ "other": pem }), json!([])]
        {
            assert_eq!(config_map(wrong.clone()), Err(Code::CaNotValid), "{wrong}");
        }
    }
}

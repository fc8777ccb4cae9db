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
/// Those of a Secret with the certificate and key of a server.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The certificates of a bundle, clean and in their order; whatever else stands in the text is left out.
pub fn bundle(name: &str, text: &[u8]) -> Result<Arc<str>, Rejection> {
    bundle_of(name, ENTRY, text, |_| true)
}

/// The same for any entry, whose certificates have to fulfil something besides.
fn bundle_of(name: &str, entry: &str, text: &[u8], is_usable: impl Fn(&[u8]) -> bool) -> Result<Arc<str>, Rejection> {
    let reject = |why: String| Rejection::new(Code::CaNotValid, format!("{name}: {why}"));
    let certificates = pem::certificates(text).map_err(|why| reject(format!("{entry} {why}")))?;
    if certificates.is_empty() {
        return Err(reject(format!("{entry} contains no certificate")));
    }
    for (index, certificate) in certificates.iter().enumerate() {
        if x509::read(certificate).is_none() {
            return Err(reject(format!("certificate {} in {entry} is not valid X.509", index + 1)));
        }
        if !is_usable(certificate) {
            return Err(reject(format!("certificate {} in {entry} is not that of a CA", index + 1)));
        }
    }
    Ok(pem::text("CERTIFICATE", &certificates).into())
}

fn is_ca(der: &[u8]) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(_, certificate)| certificate.is_ca())
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

/// The bundle in a Secret: that of `ca.crt`, or of `tls.crt` where there is neither that nor a key, as users of Emissary write it. A
/// certificate with a key, or one that is not a CA's, belongs to a server, and `tls.crt` then has its issuers: as a bundle it would make
/// every other certificate trusted that they signed.
pub fn read(secret: &Secret) -> Result<Arc<str>, Rejection> {
    let name = format!("Secret {}/{}", secret.meta.namespace, secret.meta.name);
    let missing = |why: String| Rejection::new(Code::SecretKeyMissing, format!("{name}{why}"));
    let entry = |key: &str| match secret.get(key) {
        Ok(content) => Ok(content.filter(|content| !content.is_empty())),
        Err(fault) => Err(missing(format!(": {fault}"))),
    };
    if let Some(content) = entry(ENTRY)? {
        return bundle(&name, content);
    }
    match entry(CERTIFICATE)? {
        None => Err(missing(format!(" has no {ENTRY}"))),
        Some(_) if entry(KEY)?.is_some() => {
            Err(missing(format!(" has no {ENTRY}; {CERTIFICATE} is not used as a CA beside {KEY}")))
        }
        Some(content) => bundle_of(&name, CERTIFICATE, content, is_ca),
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
    //! Bundles in ConfigMaps and Secrets.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
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
    fn secret(data: &[(&str, &str)]) -> Result<Arc<str>, Code> {
        let data: serde_json::Map<_, _> = data.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect();
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "ca", "namespace": "shop" }, "stringData": data,
        });
        let decoded = kinds::decode_json(kinds::kind::SECRET, object.to_string().as_bytes()).unwrap();
        read(decoded.object.get::<Secret>().unwrap()).map_err(|rejection| rejection.code)
    }

    #[test]
    fn a_certificate_alone_is_a_bundle_and_one_with_a_key_is_not() {
        let of = |name: &str, is_ca: IsCa| {
            let mut params = CertificateParams::new(vec![name.into()]).unwrap();
            params.is_ca = is_ca;
            params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
        };
        let ca = of("ca.example.com", IsCa::Ca(BasicConstraints::Unconstrained));
        let other = of("other.example.com", IsCa::NoCa);
        let bundle = secret(&[("ca.crt", &ca)]).unwrap();
        assert_eq!(secret(&[("tls.crt", &ca)]), Ok(bundle.clone()));
        assert_eq!(secret(&[("ca.crt", ""), ("tls.crt", &ca), ("tls.key", "")]), Ok(bundle.clone()));
        assert_eq!(secret(&[("ca.crt", &ca), ("tls.crt", &other), ("tls.key", "key")]), Ok(bundle));
        assert_eq!(secret(&[("ca.crt", "text"), ("tls.crt", &ca)]), Err(Code::CaNotValid));
        for chain in [other.clone(), format!("{other}{ca}"), "text".to_owned()] {
            assert_eq!(secret(&[("tls.crt", &chain)]), Err(Code::CaNotValid), "{chain}");
        }
        for wrong in [&[("tls.crt", &*ca), ("tls.key", "key")][..], &[("tls.crt", "")], &[]] {
            assert_eq!(secret(wrong), Err(Code::SecretKeyMissing), "{wrong:?}");
        }
    }
}

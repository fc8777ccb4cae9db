//! TLS to the servers of JSON Web Key Sets: verified with the CA and the names that a provider lists; not verified where it lists
//! none, as Contour's proxies do.

use model::jwt::RemoteJwks;
use pipeline::FetchSpec;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::sync::Arc;
use tls::ServerVerifier;
use tokio_rustls::TlsConnector;

/// What connects, and the name that the server is asked for; nothing for plaintext.
pub(super) fn connector(
    source: &RemoteJwks,
    spec: &FetchSpec,
) -> Result<Option<(TlsConnector, ServerName<'static>)>, String> {
    if !source.uri.tls {
        return Ok(None);
    }
    let verifier = match (&source.trust, &spec.ca) {
        (Some(trust), Some(ca)) => verifier(&trust.names, ca)?,
        (None, None) => ServerVerifier::any_certificate(),
        _ => return Err("the CA bundle is missing".to_owned()),
    };
    let config = ClientConfig::builder_with_provider(tls::provider()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let mut config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(source.uri.host.to_string()).map_err(|error| error.to_string())?;
    Ok(Some((TlsConnector::from(Arc::new(config)), name)))
}

/// A certificate that chains to a CA and has one of several names.
fn verifier(names: &[Arc<str>], ca: &str) -> Result<ServerVerifier, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        let certificate = certificate.map_err(|error| format!("the CA bundle cannot be read: {error}"))?;
        roots.add(certificate).map_err(|error| format!("the CA bundle cannot be used: {error}"))?;
    }
    let names: Result<Vec<_>, _> = names.iter().map(|name| ServerName::try_from(name.to_string())).collect();
    let names = names.map_err(|_| "a subject name is not a DNS name".to_owned())?;
    ServerVerifier::any_name(names, roots).map_err(|error| format!("the CA bundle cannot be used: {error}"))
}

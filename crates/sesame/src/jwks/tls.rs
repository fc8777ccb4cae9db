//! TLS to the servers of JSON Web Key Sets: verified with the CA and the names that a provider lists; not verified where it lists
//! none, as Contour's proxies do.

use model::jwt::RemoteJwks;
use pipeline::FetchSpec;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// What connects, and the name that the server is asked for; nothing for plaintext.
pub(super) fn connector(
    source: &RemoteJwks,
    spec: &FetchSpec,
) -> Result<Option<(TlsConnector, ServerName<'static>)>, String> {
    if !source.uri.tls {
        return Ok(None);
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match (&source.trust, &spec.ca) {
        (Some(trust), Some(ca)) => Arc::new(AnyName::new(&trust.names, ca, provider.clone())?),
        (None, None) => Arc::new(Unverified(provider.clone())),
        _ => return Err("the CA bundle is missing".to_owned()),
    };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let mut config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(source.uri.host.to_string()).map_err(|error| error.to_string())?;
    Ok(Some((TlsConnector::from(Arc::new(config)), name)))
}

/// A certificate that chains to a CA and has one of several names, whatever name was asked for.
#[derive(Debug)]
struct AnyName {
    names: Vec<ServerName<'static>>,
    inner: Arc<WebPkiServerVerifier>,
}

impl AnyName {
    fn new(names: &[Arc<str>], ca: &str, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
            let certificate = certificate.map_err(|error| format!("the CA bundle cannot be read: {error}"))?;
            roots.add(certificate).map_err(|error| format!("the CA bundle cannot be used: {error}"))?;
        }
        let names: Result<Vec<_>, _> = names.iter().map(|name| ServerName::try_from(name.to_string())).collect();
        let names = names.map_err(|_| "a subject name is not a DNS name".to_owned())?;
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Self { names, inner: inner.map_err(|error| format!("the CA bundle cannot be used: {error}"))? })
    }
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _asked_for: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut failure = Error::General("no subject name is listed".to_owned());
        for name in &self.names {
            match self.inner.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
                Ok(verified) => return Ok(verified),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Any certificate whose key the server has.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

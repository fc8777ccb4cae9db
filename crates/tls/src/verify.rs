//! Servers that are verified in other ways than by the name that was asked for.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::VerifierBuilderError;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Which servers a client trusts. That a server has the key of its certificate is verified in any case.
#[derive(Debug)]
pub struct ServerVerifier {
    accepted: Accepted,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Accepted {
    AnyCertificate,
    AnyName(Vec<ServerName<'static>>, Arc<WebPkiServerVerifier>),
}

impl ServerVerifier {
    /// Any certificate.
    pub fn any_certificate() -> Self {
        Self { accepted: Accepted::AnyCertificate, provider: crate::provider() }
    }

    /// A certificate that chains to one of these roots and has one of these names, whatever name was asked for.
    pub fn any_name(names: Vec<ServerName<'static>>, roots: RootCertStore) -> Result<Self, VerifierBuilderError> {
        let provider = crate::provider();
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
        Ok(Self { accepted: Accepted::AnyName(names, chain), provider })
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _asked_for: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Accepted::AnyName(names, chain) = &self.accepted else { return Ok(ServerCertVerified::assertion()) };
        let mut failure = Error::General("no subject name is listed".to_owned());
        for name in names {
            match chain.verify_server_cert(end_entity, intermediates, name, ocsp_response, now) {
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
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

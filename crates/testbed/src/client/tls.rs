//! The client's side of a TLS handshake.
//!
//! In: the server name, whom to trust, what to present, versions, protocols. Out: a rustls configuration. Sessions are
//! never resumed: a test that looks at a certificate must see the one that is served now.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};

use super::Protocol;
use crate::certs::Leaf;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub sni: Option<String>,
    pub hide_sni: bool,
    /// Nobody to trust means that anyone is.
    pub roots: Option<Arc<RootCertStore>>,
    pub identity: Option<Leaf>,
    pub versions: (TlsVersion, TlsVersion),
    pub alpn: Option<Vec<Vec<u8>>>,
    /// The only signatures that it can verify; all if not said.
    pub signatures: Option<Signatures>,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            sni: None,
            hide_sni: false,
            roots: None,
            identity: None,
            versions: (TlsVersion::V1_2, TlsVersion::V1_3),
            alpn: None,
            signatures: None,
        }
    }
}

impl Tls {
    /// The name to ask for and to verify: as told, else the host without its port.
    pub fn server_name(&self, host: &str) -> Result<ServerName<'static>, rustls::Error> {
        let authority = host.parse::<http::uri::Authority>();
        let host = authority.as_ref().map_or(host, |a| a.host()).trim_matches(['[', ']']);
        let name = self.sni.as_deref().unwrap_or(host).to_owned();
        ServerName::try_from(name.clone()).map_err(|_| rustls::Error::General(format!("{name:?} is no server name")))
    }

    pub fn config(&self, protocol: Protocol) -> Result<Arc<ClientConfig>, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let (min, max) = self.versions;
        let known: [(TlsVersion, &'static SupportedProtocolVersion); 2] =
            [(TlsVersion::V1_2, &rustls::version::TLS12), (TlsVersion::V1_3, &rustls::version::TLS13)];
        let versions: Vec<_> = known.into_iter().filter(|(v, _)| (min..=max).contains(v)).map(|(_, v)| v).collect();
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions)?;
        let builder = match &self.roots {
            Some(roots) => builder.with_root_certificates(roots.clone()),
            None => {
                let any = AnyServer { provider, signatures: self.signatures };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(any))
            }
        };
        let mut config = match &self.identity {
            Some(leaf) => builder.with_client_auth_cert(leaf.chain().to_vec(), leaf.key())?,
            None => builder.with_no_client_auth(),
        };
        config.enable_sni = !self.hide_sni;
        config.resumption = Resumption::disabled();
        config.alpn_protocols = self.alpn.clone().unwrap_or_else(|| match protocol {
            Protocol::Http10 => Vec::new(),
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        });
        Ok(Arc::new(config))
    }
}

/// The signatures of a type of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signatures {
    /// Those of RSA keys.
    Rsa,
    /// Those of ECDSA keys.
    Ecdsa,
}

impl Signatures {
    fn includes(self, scheme: SignatureScheme) -> bool {
        let name = format!("{scheme:?}");
        match self {
            Signatures::Rsa => name.starts_with("RSA"),
            Signatures::Ecdsa => name.starts_with("ECDSA"),
        }
    }
}

/// Takes whatever certificate a server presents.
#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
    signatures: Option<Signatures>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let all = self.provider.signature_verification_algorithms.supported_schemes();
        let is_wanted = |scheme: &SignatureScheme| self.signatures.is_none_or(|wanted| wanted.includes(*scheme));
        all.into_iter().filter(is_wanted).collect()
    }
}

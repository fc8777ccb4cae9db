//! TLSContext: settings of TLS, towards clients or towards services.

use super::AmbassadorId;
use crate::{Checked, Meta, open_enum::open_enum};
use serde::Deserialize;

/// Settings of TLS, towards clients or towards services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TlsContext {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: TlsContextSpec,
}

/// The specification of a TLSContext.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TlsContextSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// The names for which it terminates TLS; none for a context towards services.
    pub hosts: Checked<Option<Box<[Box<str>]>>>,
    /// The Secret with the certificate.
    pub secret: Checked<Option<Box<str>>>,
    /// A file with the certificate.
    pub cert_chain_file: Checked<Option<Box<str>>>,
    /// A file with the private key.
    pub private_key_file: Checked<Option<Box<str>>>,
    /// The Secret with the CA of the peer's certificate.
    pub ca_secret: Checked<Option<Box<str>>>,
    /// A file with the CA of the peer's certificate.
    pub cacert_chain_file: Checked<Option<Box<str>>>,
    /// The Secret with the revoked certificates.
    pub crl_secret: Checked<Option<Box<str>>>,
    /// The protocols of ALPN, with commas between them.
    pub alpn_protocols: Checked<Option<Box<str>>>,
    /// Clients must have a certificate.
    pub cert_required: Checked<Option<bool>>,
    /// The lowest version of TLS.
    pub min_tls_version: Checked<Option<TlsVersion>>,
    /// The highest version of TLS.
    pub max_tls_version: Checked<Option<TlsVersion>>,
    /// The cipher suites.
    pub cipher_suites: Checked<Option<Box<[Box<str>]>>>,
    /// The curves.
    pub ecdh_curves: Checked<Option<Box<[Box<str>]>>>,
    /// The name of a Secret may end in its namespace, after a dot; the Module decides if absent.
    pub secret_namespacing: Checked<Option<bool>>,
    /// No effect.
    pub redirect_cleartext_from: Checked<Option<i64>>,
    /// The server name of connections to services.
    pub sni: Checked<Option<Box<str>>>,
}

open_enum! {
    /// A version of TLS.
    TlsVersion {
        /// TLS 1.0.
        V1_0 = "v1.0",
        /// TLS 1.1.
        V1_1 = "v1.1",
        /// TLS 1.2.
        V1_2 = "v1.2",
        /// TLS 1.3.
        V1_3 = "v1.3",
    }
}

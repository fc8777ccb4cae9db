//! Host: a name, its certificate, and what happens to plaintext requests.

use super::{AmbassadorId, Selector, tls_context::TlsVersion};
use crate::{Checked, Meta, Status, open_enum::open_enum};
use serde::Deserialize;

/// A name, its certificate, and what happens to plaintext requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Host {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: HostSpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
}

/// The specification of a Host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostSpec {
    /// The instances it is for.
    #[serde(rename = "ambassador_id")]
    pub ambassador_id: Checked<AmbassadorId>,
    /// The name, or a glob of names, with a port or without; `*` if absent.
    pub hostname: Checked<Option<Box<str>>>,
    /// The Mappings of this Host.
    pub mapping_selector: Checked<Option<Box<Selector>>>,
    /// The same as `mappingSelector`; deprecated.
    pub selector: Checked<Option<Box<Selector>>>,
    /// The certificate.
    pub tls_secret: Checked<Option<Box<SecretReference>>>,
    /// The TLSContext.
    pub tls_context: Checked<Option<Box<NameReference>>>,
    /// The settings of TLS, in place of a TLSContext.
    pub tls: Checked<Option<Box<HostTls>>>,
    /// What happens to plaintext requests.
    pub request_policy: Checked<Option<Box<RequestPolicy>>>,
    /// Who issues the certificate.
    pub acme_provider: Checked<Option<Box<AcmeProvider>>>,
    /// No effect.
    pub preview_url: Checked<Option<serde_json::Value>>,
}

/// A Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SecretReference {
    /// Its name.
    pub name: Option<Box<str>>,
    /// Its namespace; that of the Host if absent.
    pub namespace: Option<Box<str>>,
}

/// An object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NameReference {
    /// Its name.
    pub name: Box<str>,
}

/// Settings of TLS inside a Host. The API has them in snake case; camel case is [converted](super::convert).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HostTls {
    /// A file with the certificate.
    pub cert_chain_file: Option<Box<str>>,
    /// A file with the private key.
    pub private_key_file: Option<Box<str>>,
    /// The Secret with the CA of client certificates.
    pub ca_secret: Option<Box<str>>,
    /// A file with the CA of client certificates.
    pub cacert_chain_file: Option<Box<str>>,
    /// The Secret with the revoked client certificates.
    pub crl_secret: Option<Box<str>>,
    /// The protocols of ALPN, with commas between them.
    pub alpn_protocols: Option<Box<str>>,
    /// Clients must have a certificate.
    pub cert_required: Option<bool>,
    /// The lowest version of TLS.
    pub min_tls_version: Option<TlsVersion>,
    /// The highest version of TLS.
    pub max_tls_version: Option<TlsVersion>,
    /// The cipher suites.
    pub cipher_suites: Option<Box<[Box<str>]>>,
    /// The curves.
    pub ecdh_curves: Option<Box<[Box<str>]>>,
    /// No effect.
    pub redirect_cleartext_from: Option<i64>,
    /// The server name of connections to services.
    pub sni: Option<Box<str>>,
}

/// What happens to requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RequestPolicy {
    /// What happens to plaintext requests.
    pub insecure: Option<InsecureRequestPolicy>,
}

/// What happens to plaintext requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InsecureRequestPolicy {
    /// The action; `Redirect` if absent.
    pub action: Option<InsecureAction>,
    /// No effect.
    pub additional_port: Option<i64>,
}

open_enum! {
    /// What happens to plaintext requests.
    InsecureAction {
        /// They are redirected to HTTPS.
        Redirect = "Redirect",
        /// They are answered 404.
        Reject = "Reject",
        /// They are routed as others are.
        Route = "Route",
    }
}

/// Who issues the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AcmeProvider {
    /// The URL of the ACME server; `none` for nobody.
    pub authority: Option<Box<str>>,
    /// The address of the account.
    pub email: Option<Box<str>>,
    /// The Secret with the key of the account.
    pub private_key_secret: Option<NameReference>,
    /// The account.
    pub registration: Option<Box<str>>,
}

//! Module: settings of the whole instance.
//!
//! Only the name tells what the untyped `config` of a Module is. The [conversion](super::convert) puts it into the field of its
//! name; paths of faults still say `spec.config`, as it is written.

pub mod filters;
pub mod settings;

use super::{AmbassadorId, Map, auth_service::AuthServiceSpec};
use crate::{Checked, Meta};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

pub use settings::ModuleSettings;

/// The name of the Module with the settings of the instance.
pub const AMBASSADOR: &str = "ambassador";

/// The name of the Module with legacy settings of TLS.
pub const TLS: &str = "tls";

/// The name of the Module with a legacy AuthService.
pub const AUTHENTICATION: &str = "authentication";

/// Settings of the whole instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Module {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: ModuleSpec,
}

/// The specification of a Module: the one field that is there follows from its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ModuleSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// Of the Module `ambassador`.
    pub config: Checked<Option<Box<ModuleSettings>>>,
    /// Of the Module `tls`: `server` for clients, `client` for the CA of client certificates, and contexts towards services.
    pub tls_config: Checked<Map<LegacyTls>>,
    /// Of the Module `authentication`.
    pub authentication_config: Checked<Option<Box<AuthServiceSpec>>>,
    /// Of a Module of another name: no effect.
    pub other_config: Ignored,
}

/// An entry of the Module `tls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LegacyTls {
    /// Whether it is used; true if absent.
    pub enabled: Option<bool>,
    /// The Secret.
    pub secret: Option<Box<str>>,
    /// A file with the certificate.
    pub cert_chain_file: Option<Box<str>>,
    /// A file with the private key.
    pub private_key_file: Option<Box<str>>,
    /// A file with the CA of client certificates.
    pub cacert_chain_file: Option<Box<str>>,
    /// Clients must have a certificate.
    pub cert_required: Option<bool>,
    /// The protocols of ALPN, with commas between them.
    pub alpn_protocols: Option<Box<str>>,
    /// No effect.
    pub redirect_cleartext_from: Option<i64>,
}

/// A key without effect: only whether it is written is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored(bool);

impl Ignored {
    /// Whether the key is written.
    pub fn is_written(self) -> bool {
        self.0
    }
}

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}

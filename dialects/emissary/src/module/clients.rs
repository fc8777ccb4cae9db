//! What the Module says about TLS of clients: what services are told about a client's certificate, and how Secrets are named.

use crate::{Problem, Problems};
use kinds::emissary::module::{ModuleSettings, filters::ForwardClientCert};
use model::{Code, tls::client_validation::ForwardedDetails};

/// What holds for all Hosts and TLSContexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientDefaults {
    /// What services are told about the certificate of a client.
    pub forward: Option<ForwardedDetails>,
    /// Whether the name of a Secret may end in its namespace, after a dot.
    pub secret_namespacing: bool,
}

impl Default for ClientDefaults {
    fn default() -> Self {
        Self { forward: None, secret_namespacing: true }
    }
}

/// Reads them; what is not valid is told.
pub fn read(written: &ModuleSettings, problems: &mut Problems<'_>) -> ClientDefaults {
    let details = problems.optional("set_current_client_cert_details", &written.set_current_client_cert_details);
    let word = problems.optional("forward_client_cert_details", &written.forward_client_cert_details);
    let forward = match word {
        None | Some(ForwardClientCert::Sanitize) => {
            if details.is_some() {
                let why = "it has no effect unless forward_client_cert_details is SANITIZE_SET";
                problems.no_effect("set_current_client_cert_details", why);
            }
            None
        }
        Some(ForwardClientCert::SanitizeSet) => Some(details.map_or_else(ForwardedDetails::default, |details| {
            let is_told = |value: Option<bool>| value.unwrap_or_default();
            ForwardedDetails {
                subject: is_told(details.subject),
                certificate: is_told(details.cert),
                chain: is_told(details.chain),
                dns: is_told(details.dns),
                uri: is_told(details.uri),
            }
        })),
        Some(
            word @ (ForwardClientCert::ForwardOnly
            | ForwardClientCert::AppendForward
            | ForwardClientCert::AlwaysForwardOnly
            | ForwardClientCert::Unknown(_)),
        ) => {
            let why = format!(
                "`{}` is not served, since a client could write the header itself: SANITIZE is in effect; use SANITIZE_SET",
                word.as_str().escape_debug()
            );
            problems.tell(Problem::new(Code::ModuleValue, "forward_client_cert_details", why));
            None
        }
    };
    let defaults = problems.optional("defaults", &written.defaults);
    let namespacing = defaults.and_then(|defaults| {
        problems.optional("defaults.tls_secret_namespacing", &defaults.tls_secret_namespacing).copied()
    });
    ClientDefaults { forward, secret_namespacing: namespacing.unwrap_or(true) }
}

//! What the Module says about TLS of clients: what services are told about a client's certificate, and how Secrets are named.

use crate::{Problem, Problems};
use kinds::emissary::module::{
    ModuleSettings,
    filters::{ClientCertDetails, ForwardClientCert},
};
use model::{Code, listener::ClientCertHeader, tls::client_validation::ForwardedDetails};

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
        Some(ForwardClientCert::SanitizeSet) => Some(forwarded(details.map(|details| &**details))),
        Some(ForwardClientCert::AppendForward) => None,
        None
        | Some(
            ForwardClientCert::Sanitize
            | ForwardClientCert::ForwardOnly
            | ForwardClientCert::AlwaysForwardOnly
            | ForwardClientCert::Unknown(_),
        ) => {
            if details.is_some() {
                let why = "it has no effect unless forward_client_cert_details is SANITIZE_SET or APPEND_FORWARD";
                problems.no_effect("set_current_client_cert_details", why);
            }
            None
        }
    };
    if let Some(ForwardClientCert::Unknown(word)) = word {
        let why = format!("`{}` is not known: SANITIZE is in effect", word.escape_debug());
        problems.add(Problem::new(Code::ModuleValue, "forward_client_cert_details", why));
    }
    let defaults = problems.optional("defaults", &written.defaults);
    let namespacing = defaults.and_then(|defaults| {
        problems.optional("defaults.tls_secret_namespacing", &defaults.tls_secret_namespacing).copied()
    });
    ClientDefaults { forward, secret_namespacing: namespacing.unwrap_or(true) }
}

/// What becomes of the header that a client has written, on Listeners with ports of their own; nothing where it is removed.
pub fn header(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<ClientCertHeader> {
    let details = problems.optional("set_current_client_cert_details", &written.set_current_client_cert_details);
    match problems.optional("forward_client_cert_details", &written.forward_client_cert_details)? {
        ForwardClientCert::ForwardOnly => Some(ClientCertHeader::ForwardOnly),
        ForwardClientCert::AppendForward => {
            Some(ClientCertHeader::AppendForward(forwarded(details.map(|details| &**details))))
        }
        ForwardClientCert::AlwaysForwardOnly => Some(ClientCertHeader::AlwaysForwardOnly),
        ForwardClientCert::Sanitize | ForwardClientCert::SanitizeSet | ForwardClientCert::Unknown(_) => None,
    }
}

fn forwarded(details: Option<&ClientCertDetails>) -> ForwardedDetails {
    let is_told = |value: fn(&ClientCertDetails) -> Option<bool>| details.and_then(value).unwrap_or_default();
    ForwardedDetails {
        subject: is_told(|it| it.subject),
        certificate: is_told(|it| it.cert),
        chain: is_told(|it| it.chain),
        dns: is_told(|it| it.dns),
        uri: is_told(|it| it.uri),
    }
}

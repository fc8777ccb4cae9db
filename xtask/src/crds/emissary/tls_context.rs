//! TLSContext.

use super::{EmissaryKind, Since, ids};
use crate::crds::schema::{choice, flag, list, number, object, opt, text};

/// TLSContext.
pub fn kind() -> EmissaryKind {
    let version = |about: &str| choice(about, &["v1.0", "v1.1", "v1.2", "v1.3"]);
    let spec = object(
        "The certificate and the settings of TLS.",
        [
            opt("ambassador_id", ids()),
            opt("hosts", list("Names for which TLS is terminated; none for a context towards services.", text(""))),
            opt("secret", text("Secret with the certificate; its namespace may follow after a dot.")),
            opt("cert_chain_file", text("File with the certificate.")),
            opt("private_key_file", text("File with the private key.")),
            opt("ca_secret", text("Secret with the CA of the peer's certificate.")),
            opt("cacert_chain_file", text("File with the CA of the peer's certificate.")),
            opt("crl_secret", text("Secret with the revoked certificates.")),
            opt("alpn_protocols", text("Protocols of ALPN, such as `h2,http/1.1`.")),
            opt("cert_required", flag("Clients must have a certificate.")),
            opt("min_tls_version", version("Lowest version of TLS.")),
            opt("max_tls_version", version("Highest version of TLS.")),
            opt("cipher_suites", list("Cipher suites of TLS up to 1.2.", text(""))),
            opt("ecdh_curves", list("Curves of the key exchange.", text(""))),
            opt("secret_namespacing", flag("The namespace of a Secret may follow its name after a dot.")),
            opt("redirect_cleartext_from", number("No effect.")),
            opt("sni", text("Server name of connections to services.")),
        ],
    );
    EmissaryKind {
        kind: "TLSContext",
        plural: "tlscontexts",
        about: "TLSContext has settings of TLS, towards clients or towards services.",
        since: Since::V1,
        spec,
        status: None,
        columns: &[],
    }
}

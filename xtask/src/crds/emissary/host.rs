//! Host.

use super::{EmissaryKind, Since, ids, selector};
use crate::crds::schema::{Schema, choice, flag, list, number, object, opt, text};

/// Host.
pub fn kind() -> EmissaryKind {
    let phases =
        ["NA", "DefaultsFilled", "ACMEUserPrivateKeyCreated", "ACMEUserRegistered", "ACMECertificateChallenge"];
    EmissaryKind {
        kind: "Host",
        plural: "hosts",
        about: "Host is a name that requests are served for: its certificate, and what happens to plaintext requests.",
        since: Since::V2,
        spec: spec(),
        status: Some(object(
            "What Sesame made of the object; written by the controller.",
            [
                opt("state", choice("State of the Host.", &["Initial", "Pending", "Ready", "Error"])),
                opt("errorReason", text("Why the Host is in state Error.")),
                opt("errorTimestamp", text("When the error was found; not written.").with("format", "date-time")),
                opt("errorBackoff", text("When it is tried again; not written.")),
                opt(
                    "tlsCertificateSource",
                    choice("Where the certificate comes from.", &["Unknown", "None", "Other", "ACME"]),
                ),
                opt("phaseCompleted", choice("Phase that is completed; not written.", &phases)),
                opt("phasePending", choice("Phase that is pending; not written.", &phases)),
            ],
        )),
        columns: &[
            ("Hostname", ".spec.hostname", "string"),
            ("State", ".status.state", "string"),
            ("Phase Completed", ".status.phaseCompleted", "string"),
            ("Phase Pending", ".status.phasePending", "string"),
            ("Age", ".metadata.creationTimestamp", "date"),
        ],
    }
}

fn spec() -> Schema {
    let insecure = object(
        "What happens to plaintext requests.",
        [
            opt("action", choice("The action; Redirect if not set.", &["Redirect", "Reject", "Route"])),
            opt("additionalPort", number("No effect.")),
        ],
    );
    let acme = object(
        "Who issues the certificate; Sesame leaves that to cert-manager.",
        [
            opt("authority", text("URL of the ACME server; `none` for no ACME.")),
            opt("email", text("Email address of the account.")),
            opt("privateKeySecret", reference("Secret with the key of the account.")),
            opt("registration", text("Registration of the account.")),
        ],
    );
    let secret = object(
        "Secret with the certificate.",
        [
            opt("name", text("Name of the Secret.")),
            opt("namespace", text("Namespace of the Secret; that of the Host if not set.")),
        ],
    );
    let preview = object(
        "Preview URLs; no effect.",
        [opt("enabled", flag("No effect.")), opt("type", choice("No effect.", &["Path"]))],
    );
    object(
        "The name, its certificate, and its Mappings.",
        [
            opt("ambassador_id", ids()),
            opt("hostname", text("Name, or a glob of names such as `*.example.com`; `*` if not set.")),
            opt("mappingSelector", selector("Labels of the Mappings of the Host.")),
            opt("selector", selector("Labels of the Mappings of the Host; deprecated, use mappingSelector.")),
            opt("tlsSecret", secret.with("x-kubernetes-map-type", "atomic")),
            opt("tlsContext", reference("TLSContext with the settings of TLS.")),
            opt("tls", tls()),
            opt("requestPolicy", object("What happens to requests.", [opt("insecure", insecure)])),
            opt("acmeProvider", acme),
            opt("previewUrl", preview),
        ],
    )
}

fn reference(about: &str) -> Schema {
    object(about, [opt("name", text("Name of the object.").default(""))]).with("x-kubernetes-map-type", "atomic")
}

fn tls() -> Schema {
    object(
        "Settings of TLS, in place of a TLSContext.",
        [
            opt("cert_chain_file", text("File with the certificate.")),
            opt("private_key_file", text("File with the private key.")),
            opt("ca_secret", text("Secret with the CA of client certificates.")),
            opt("cacert_chain_file", text("File with the CA of client certificates.")),
            opt("crl_secret", text("Secret with the revoked client certificates.")),
            opt("alpn_protocols", text("Protocols of ALPN, such as `h2,http/1.1`.")),
            opt("cert_required", flag("Clients must have a certificate.")),
            opt("min_tls_version", text("Lowest version of TLS, v1.0 to v1.3.")),
            opt("max_tls_version", text("Highest version of TLS, v1.0 to v1.3.")),
            opt("cipher_suites", list("Cipher suites of TLS up to 1.2.", text(""))),
            opt("ecdh_curves", list("Curves of the key exchange.", text(""))),
            opt("redirect_cleartext_from", number("No effect.")),
            opt("sni", text("Server name of connections to services.")),
        ],
    )
}

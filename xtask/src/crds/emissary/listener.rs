//! Listener.

use super::{EmissaryKind, Since, ids, selector};
use crate::crds::schema::{choice, list, number, object, opt, req, text};

/// Listener.
pub fn kind() -> EmissaryKind {
    let protocols = ["HTTP", "HTTPS", "HTTPPROXY", "HTTPSPROXY", "TCP", "TLS", "UDP"];
    let namespace = object(
        "Namespaces of the Hosts.",
        [opt("from", choice("SELF for that of the Listener, or ALL.", &["SELF", "ALL", "SELECTOR"]))],
    );
    let binding = object(
        "Hosts that the Listener serves.",
        [opt("namespace", namespace), opt("selector", selector("Labels of the Hosts."))],
    );
    let spec = object(
        "The port, its protocols, and its Hosts.",
        [
            opt("ambassador_id", ids()),
            req("port", number("Port that clients connect to.").int32().min(1).max(65535)),
            opt("protocol", choice("Protocol of the port.", &protocols)),
            opt(
                "protocolStack",
                list(
                    "Protocols of the port from the innermost to TCP or UDP, in place of protocol.",
                    choice("", &["HTTP", "PROXY", "TLS", "TCP", "UDP"]),
                ),
            ),
            req(
                "securityModel",
                choice(
                    "Which requests are secure: those whose x-forwarded-proto is https, all, or none.",
                    &["XFP", "SECURE", "INSECURE"],
                ),
            ),
            req("hostBinding", binding),
            opt("statsPrefix", text("Prefix of the statistics of the Listener.")),
            opt("l7Depth", number("Number of trusted proxies in front, for x-forwarded-for.").int32()),
            opt(
                "http2MaxConcurrentStreams",
                number("Maximum number of streams of an HTTP/2 connection.").int32().min(1),
            ),
        ],
    );
    EmissaryKind {
        kind: "Listener",
        plural: "listeners",
        about: "Listener is a port that proxies listen on, and the Hosts that are served there.",
        since: Since::V3alpha1,
        spec,
        status: None,
        columns: &[
            ("Port", ".spec.port", "string"),
            ("Protocol", ".spec.protocol", "string"),
            ("Stack", ".spec.protocolStack", "string"),
            ("StatsPrefix", ".spec.statsPrefix", "string"),
            ("Security", ".spec.securityModel", "string"),
            ("L7Depth", ".spec.l7Depth", "string"),
        ],
    }
}

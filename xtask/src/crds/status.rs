//! What controllers write: conditions, each with its errors and warnings.

use super::schema::{Schema, choice, list, number, object, opt, req, text};

const TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// The list of conditions.
pub fn conditions() -> Schema {
    let parts = |about: &str| list(about, object("An error or a warning.", finding()));
    let mut fields = finding();
    fields.extend([
        req("lastTransitionTime", text("When status last changed.").with("format", "date-time")),
        opt(
            "observedGeneration",
            number(
                "Generation of the object that the condition is about; an older one than \
                 metadata.generation is out of date.",
            )
            .int64()
            .min(0),
        ),
        opt("errors", parts("Errors by type and reason, with code, field and message: what is not served.")),
        opt("warnings", parts("Warnings by type and reason: served, but probably not as intended.")),
    ]);
    list(
        "Conditions: Valid says whether there are errors, Programmed whether the connected proxies \
         have the object.",
        object("A condition of the object.", fields),
    )
    .map_by("type")
}

fn finding() -> Vec<super::schema::Field> {
    vec![
        req("type", text("Type of the condition or finding.").max_length(316).pattern(TYPE)),
        req("status", choice("Status of the condition: True, False or Unknown.", &["True", "False", "Unknown"])),
        req("reason", text("Reason in CamelCase, for programs.").min_length(1).max_length(1024).pattern(REASON)),
        req("message", text("Reason in words, for people.").max_length(32768)),
    ]
}

/// Where the object is served.
pub fn load_balancer() -> Schema {
    let port = object(
        "A port and whether it can be reached.",
        [
            req("port", number("Number of the port.").int32()),
            req("protocol", text("TCP, UDP or SCTP.")),
            opt("error", text("Why it cannot be reached.").max_length(316).pattern(TYPE)),
        ],
    );
    let address = object(
        "An IP address or a host name.",
        [
            opt("ip", text("IP address.")),
            opt("hostname", text("Host name.")),
            opt("ipMode", text("VIP or Proxy: how traffic to the IP is delivered.")),
            opt("ports", list("Ports of the address.", port).atomic()),
        ],
    );
    object(
        "Addresses at which the object is served: those of the Envoy Service, or the operator's \
         ingress-status-address.",
        [opt("ingress", list("The addresses.", address).atomic())],
    )
}

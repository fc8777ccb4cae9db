//! What controllers write: conditions, each with its errors and warnings.

use super::schema::{Schema, choice, list, number, object, opt, req, text};

const TYPE: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// The list of conditions.
pub fn conditions() -> Schema {
    let parts = |about: &str| list(about, object("One finding.", finding()));
    let mut fields = finding();
    fields.extend([
        req("lastTransitionTime", text("When the status last changed.").with("format", "date-time")),
        opt("observedGeneration", number("The generation that it is about.").int64().min(0)),
        opt("errors", parts("What is wrong.")),
        opt("warnings", parts("What is there, though hardly as it was meant.")),
    ]);
    list("What became of the object.", object("One thing that holds or does not.", fields)).map_by("type")
}

fn finding() -> Vec<super::schema::Field> {
    vec![
        req("type", text("What it is about.").max_length(316).pattern(TYPE)),
        req("status", choice("Whether it holds.", &["True", "False", "Unknown"])),
        req("reason", text("Why, in one word.").min_length(1).max_length(1024).pattern(REASON)),
        req("message", text("Why, in a sentence.").max_length(32768)),
    ]
}

/// Where the object is served.
pub fn load_balancer() -> Schema {
    let port = object(
        "A port and whether it can be reached.",
        [
            req("port", number("The port.").int32()),
            req("protocol", text("TCP, UDP or SCTP.")),
            opt("error", text("Why it cannot be reached.").max_length(316).pattern(TYPE)),
        ],
    );
    let address = object(
        "An address: an IP or a name.",
        [
            opt("ip", text("The IP.")),
            opt("hostname", text("The name.")),
            opt("ipMode", text("VIP or Proxy: who answers at the IP.")),
            opt("ports", list("Its ports.", port).atomic()),
        ],
    );
    object("Where the object is served.", [opt("ingress", list("The addresses.", address).atomic())])
}

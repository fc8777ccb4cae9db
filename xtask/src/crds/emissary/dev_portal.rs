//! DevPortal.

use super::{EmissaryKind, Since, ids};
use crate::crds::schema::{choice, flag, list, number, object, opt, text, texts};

/// DevPortal.
pub fn kind() -> EmissaryKind {
    let content = object(
        "Content of the portal.",
        [
            opt("url", text("URL of the content.")),
            opt("branch", text("Branch of the content.")),
            opt("dir", text("Folder of the content.")),
        ],
    );
    let documents = object(
        "Documentation of a service.",
        [
            opt("service", text("Name of the service.")),
            opt("url", text("URL of the documentation.")),
            opt("timeout_ms", number("Milliseconds that the documentation may take.")),
        ],
    );
    let selector = object(
        "Services of the portal.",
        [
            opt("matchNamespaces", list("Namespaces of the services.", text(""))),
            opt("matchLabels", texts("Labels of the services.")),
        ],
    );
    let search = object(
        "Search in the portal.",
        [
            opt("enabled", flag("There is a search.")),
            opt("type", choice("What is searched.", &["title-only", "all-content"])),
        ],
    );
    let spec = object(
        "The portal; no effect.",
        [
            opt("ambassador_id", ids()),
            opt("default", flag("It is the default portal.")),
            opt("content", content),
            opt("docs", list("Documentation of services.", documents)),
            opt("naming_scheme", choice("How services are named.", &["namespace.name", "name.prefix"])),
            opt("preserve_servers", flag("The servers in the documentation are kept.")),
            opt("search", search),
            opt("selector", selector),
        ],
    );
    EmissaryKind {
        kind: "DevPortal",
        plural: "devportals",
        about: "DevPortal has no effect: Sesame has no developer portal.",
        since: Since::V1,
        spec,
        status: None,
        columns: &[],
    }
}

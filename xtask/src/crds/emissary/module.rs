//! Module.

use super::{EmissaryKind, Since, ids};
use crate::crds::schema::{object, open, opt, req};

/// Module.
pub fn kind() -> EmissaryKind {
    let config = open("Settings by name; those of the Module `ambassador` apply to the whole instance.");
    EmissaryKind {
        kind: "Module",
        plural: "modules",
        about: "Module has settings of the whole instance.",
        since: Since::V1,
        spec: object("The settings of the Module.", [opt("ambassador_id", ids()), req("config", config)]),
        status: None,
        columns: &[],
    }
}

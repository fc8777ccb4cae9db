//! TLSCertificateDelegation.

use super::{
    Names, crd as whole,
    schema::{list, object, opt, req, root, text},
    status,
};
use serde_json::{Value, json};

/// The CRD for a group.
pub fn crd(group: &str) -> Value {
    let entry = object(
        "Permission to use one Secret.",
        [
            req("secretName", text("The Secret, in the namespace of this object.")),
            req("targetNamespaces", list("The namespaces that may use it; `*` alone for all.", text(""))),
        ],
    );
    let spec = object("What is permitted.", [req("delegations", list("The permissions.", entry))]);
    let status = object("What became of it.", [opt("conditions", status::conditions())]);
    let names = Names {
        kind: "TLSCertificateDelegation",
        version: "v1",
        singular: "tlscertificatedelegation",
        plural: "tlscertificatedelegations",
        short: &["tlscerts"],
    };
    whole(group, &names, root("Permission for other namespaces to use Secrets of this one.", spec, status), json!([]))
}

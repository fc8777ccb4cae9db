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
        "Permission for other namespaces to use one Secret of this namespace.",
        [
            req("secretName", text("Name of the Secret, in the namespace of this object.")),
            req(
                "targetNamespaces",
                list("Namespaces whose objects may use the Secret; `*` as the only entry for all.", text("")),
            ),
        ],
    );
    let spec = object("What is permitted.", [req("delegations", list("The permissions, each for one Secret.", entry))]);
    let status =
        object("What Sesame made of the object; written by the controller.", [opt("conditions", status::conditions())]);
    let names = Names {
        kind: "TLSCertificateDelegation",
        version: "v1",
        singular: "tlscertificatedelegation",
        plural: "tlscertificatedelegations",
        short: &["tlscerts"],
    };
    whole(
        group,
        &names,
        root(
            "TLSCertificateDelegation lets objects of other namespaces use Secrets of its own namespace: \
             certificates, CA bundles and CRLs.",
            spec,
            status,
        ),
        json!([]),
    )
}

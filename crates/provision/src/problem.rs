//! What is wrong with a fleet, in words, with a code of the one table.

use std::fmt;

use model::Code;

use crate::objects::ObjectKind;

/// Why a fleet is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The row of the table.
    pub code: Code,
    /// What happened, to which object.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl Problem {
    /// Another object has the name.
    pub(crate) fn taken(kind: ObjectKind, namespace: &str, name: &str) -> Self {
        let message = format!("{kind} {namespace}/{name} exists and does not belong to the Gateway; it is left alone");
        Self { code: Code::FleetNameTaken, message }
    }

    /// A request about an object failed.
    pub(crate) fn of_request(verb: &str, kind: ObjectKind, namespace: &str, name: &str, error: &kube::Error) -> Self {
        let (code, words) = classify(error);
        Self { code, message: format!("cannot {verb} {kind} {namespace}/{name}: {words}") }
    }

    /// An object is not as it was applied, in the very answer.
    pub(crate) fn rewritten(kind: ObjectKind, namespace: &str, name: &str) -> Self {
        let message =
            format!("{kind} {namespace}/{name} is changed as it is applied; an admission webhook may do that");
        Self { code: Code::FleetRejected, message }
    }

    /// The objects of a kind cannot be watched.
    pub(crate) fn of_watch(kind: ObjectKind, error: &impl fmt::Display, is_forbidden: bool) -> Self {
        let code = if is_forbidden { Code::FleetForbidden } else { Code::FleetFailed };
        Self { code, message: format!("cannot list and watch the objects of kind {kind}: {error}") }
    }

    /// The lease ended, or no answer came, before the request was done.
    pub(crate) fn late(kind: ObjectKind, namespace: &str, name: &str) -> Self {
        let message = format!("no answer about {kind} {namespace}/{name} in time");
        Self { code: Code::FleetFailed, message }
    }

    /// The CA that proxies know the xDS server by cannot be read.
    pub(crate) fn of_ca(path: &std::path::Path, error: &std::io::Error) -> Self {
        let message = format!("cannot read the CA of the xDS server, {}: {error}", path.display());
        Self { code: Code::FleetFailed, message }
    }
}

fn classify(error: &kube::Error) -> (Code, String) {
    let kube::Error::Api(status) = error else { return (Code::FleetFailed, error.to_string()) };
    let code = match status.code {
        // The API server answers an exceeded quota with 403, too.
        403 if status.message.contains("exceeded quota") => Code::FleetQuota,
        403 | 401 => Code::FleetForbidden,
        400 | 422 => Code::FleetRejected,
        _ => Code::FleetFailed,
    };
    (code, status.message.clone())
}

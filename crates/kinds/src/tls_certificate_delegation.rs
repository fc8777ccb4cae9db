//! TLSCertificateDelegation, `projectcontour.io/v1` and `projectsesame.io/v1`.

use crate::{List, Meta, Status};
use serde::Deserialize;

/// Permission for other namespaces to use Secrets of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TlsCertificateDelegation {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is asked for.
    #[serde(default)]
    pub spec: TlsCertificateDelegationSpec,
    /// What became of it.
    #[serde(default)]
    pub status: Status,
}

/// What a delegation asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TlsCertificateDelegationSpec {
    /// The permissions.
    #[serde(default)]
    pub delegations: List<Delegation>,
}

/// Permission to use one Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// The Secret in the delegation's namespace.
    pub secret_name: Box<str>,
    /// Who may use it; `*` alone means everyone.
    #[serde(default)]
    pub target_namespaces: Box<[Box<str>]>,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD];

//! IngressClass, `networking.k8s.io/v1`.

use crate::{Checked, Meta};
use serde::Deserialize;

/// The annotation that makes a class the one of Ingresses that name none.
pub const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Which controller owns the Ingresses of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IngressClass {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is asked for.
    #[serde(default)]
    pub spec: IngressClassSpec,
}

impl IngressClass {
    /// Whether Ingresses that name no class are of this one.
    pub fn is_default(&self) -> bool {
        matches!(self.meta.annotations.get(IS_DEFAULT), Ok(Some(value)) if **value == *"true")
    }
}

/// The controller of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IngressClassSpec {
    /// The controller's name.
    #[serde(default)]
    pub controller: Checked<Option<Box<str>>>,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD, ("IngressClassSpec", &["parameters"])];

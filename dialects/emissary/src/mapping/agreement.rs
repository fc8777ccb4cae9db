//! What Mappings for the same requests have to agree on, in Emissary: a newcomer that says something else is not served.

use kinds::{Checked, emissary::mapping::MappingSpec};
use model::route::Agreement;
use std::{fmt::Debug, sync::Arc};

/// How much of a value is compared and shown.
const LONGEST: usize = 400;

/// The fields that an author set, as text.
pub(super) fn of(spec: &MappingSpec) -> Agreement {
    let mut fields: Vec<(&'static str, Arc<str>)> = Vec::new();
    let mut add = |name: &'static str, text: Option<String>| {
        fields.extend(text.map(|text| (name, Arc::from(&text[..text.floor_char_boundary(LONGEST)]))));
    };
    add("bypass_auth", set(&spec.bypass_auth));
    add("circuit_breakers", set(&spec.circuit_breakers));
    add("cluster_idle_timeout_ms", set(&spec.cluster_idle_timeout_ms));
    add("cluster_max_connection_lifetime_ms", set(&spec.cluster_max_connection_lifetime_ms));
    add("connect_timeout_ms", set(&spec.connect_timeout_ms));
    add("keepalive", set(&spec.keepalive));
    let labels = spec.labels.ok().filter(|labels| !labels.is_empty());
    add("labels", labels.map(|labels| format!("{labels:?}")));
    add("load_balancer", set(&spec.load_balancer));
    fields.into()
}

fn set<T: Debug>(value: &Checked<Option<T>>) -> Option<String> {
    value.ok()?.as_ref().map(|value| format!("{value:?}"))
}

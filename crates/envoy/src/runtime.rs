//! Runtime values: the layer that every Envoy asks for by RTDS.
//!
//! In: what the operator sets, and the listeners of the fleet. Out: a layer. Values that Sesame decides about win over the
//! operator's of the same key. Without any there is no layer.

use crate::{bootstrap::RUNTIME_VALUES, name};
use envoy_api::envoy::service::runtime::v3::Runtime;
use envoy_api::google::protobuf::{Struct, Value, value::Kind};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Keys that begin so are Sesame's own.
const OWN_PREFIX: &str = "sesame.";

/// What the operator sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeSettings {
    /// Values by their keys. Envoy reads numbers and booleans from text.
    pub values: BTreeMap<Arc<str>, Arc<str>>,
    /// How many requests of one connection are processed in an I/O cycle.
    pub max_requests_per_io_cycle: Option<u32>,
    /// How many connections each listener accepts.
    pub max_connections: Option<u32>,
}

impl RuntimeSettings {
    /// The keys that the operator has a value for.
    pub fn keys(&self) -> impl Iterator<Item = Arc<str>> {
        self.values.keys().cloned().chain(self.max_requests_per_io_cycle.map(|_| IO_CYCLE.into()))
    }

    /// The same, and these values where the operator has none.
    #[must_use]
    pub fn with_defaults(mut self, values: BTreeMap<Arc<str>, Arc<str>>) -> Self {
        let own: BTreeSet<Arc<str>> = self.keys().collect();
        self.values.extend(values.into_iter().filter(|(key, _)| !own.contains(key)));
        self
    }

    /// The keys of values that have no effect, because Sesame decides about them.
    pub fn overridden(&self) -> impl Iterator<Item = &Arc<str>> {
        let own = |key: &str| {
            is_own(key)
                || key == IO_CYCLE && self.max_requests_per_io_cycle.is_some()
                || is_limit(key) && self.max_connections.is_some()
        };
        self.values.keys().filter(move |key| own(key))
    }
}

const IO_CYCLE: &str = "http.max_requests_per_io_cycle";
const LIMIT: (&str, &str) = ("envoy.resource_limits.listener.", ".connection_limit");

/// Whether Sesame alone decides about a key.
fn is_own(key: &str) -> bool {
    key.starts_with(OWN_PREFIX) || RUNTIME_VALUES.iter().any(|(own, _)| *own == key)
}

fn is_limit(key: &str) -> bool {
    key.starts_with(LIMIT.0) && key.ends_with(LIMIT.1)
}

/// The layer of a fleet whose listeners have these names; none if there is nothing in it.
pub fn layer(settings: &RuntimeSettings, listeners: impl IntoIterator<Item = String>) -> Option<Runtime> {
    let number = |number: u32| Value { kind: Some(Kind::NumberValue(number.into())) };
    let operators = settings.values.iter().filter(|(key, _)| !is_own(key));
    let text = |text: &str| Value { kind: Some(Kind::StringValue(text.to_owned())) };
    let mut fields: BTreeMap<String, Value> = operators.map(|(key, value)| (key.to_string(), text(value))).collect();
    if let Some(most) = settings.max_requests_per_io_cycle {
        fields.insert(IO_CYCLE.to_owned(), number(most));
    }
    if let Some(most) = settings.max_connections {
        let (before, after) = LIMIT;
        fields.extend(listeners.into_iter().map(|name| (format!("{before}{name}{after}"), number(most))));
    }
    (!fields.is_empty()).then(|| Runtime {
        name: name::RUNTIME.to_owned(),
        layer: Some(Struct { fields: fields.into_iter().collect() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_sesame_win_and_without_any_there_is_no_layer() {
        assert_eq!(layer(&RuntimeSettings::default(), ["a".to_owned()]), None);
        let keys = [IO_CYCLE, "re2.max_program_size.error_level", "sesame.access_log_from", "a.b"];
        let mut settings = RuntimeSettings {
            values: keys.iter().map(|key| ((*key).into(), "7".into())).collect(),
            max_requests_per_io_cycle: Some(3),
            max_connections: Some(5),
        };
        let fields = |settings: &RuntimeSettings| {
            let runtime = layer(settings, ["http".to_owned(), "https".to_owned()]);
            let fields = runtime.and_then(|runtime| runtime.layer).map(|layer| layer.fields).unwrap_or_default();
            let mut fields: Vec<String> =
                fields.into_iter().map(|(key, value)| format!("{key}={:?}", value.kind)).collect();
            fields.sort();
            fields.join(" ")
        };
        assert_eq!(
            fields(&settings),
            "a.b=Some(StringValue(\"7\")) \
             envoy.resource_limits.listener.http.connection_limit=Some(NumberValue(5.0)) \
             envoy.resource_limits.listener.https.connection_limit=Some(NumberValue(5.0)) \
             http.max_requests_per_io_cycle=Some(NumberValue(3.0))"
        );
        assert_eq!(settings.overridden().count(), 3);
        settings.max_requests_per_io_cycle = None;
        assert!(fields(&settings).contains("http.max_requests_per_io_cycle=Some(StringValue"), "{}", fields(&settings));
        assert_eq!(settings.overridden().count(), 2);
    }
}

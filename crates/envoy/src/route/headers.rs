//! What is changed about headers.

use envoy_api::envoy::config::core::v3::{HeaderValue, HeaderValueOption, header_value_option::HeaderAppendAction};
use model::route::HeaderChanges;

/// Headers that are given a value, whatever they had.
pub fn set(changes: &HeaderChanges) -> Vec<HeaderValueOption> {
    let set = changes.set.iter().map(|(name, value)| HeaderValueOption {
        header: Some(HeaderValue { key: name.to_string(), value: value.as_str().to_owned(), ..Default::default() }),
        append_action: HeaderAppendAction::OverwriteIfExistsOrAdd.into(),
        ..Default::default()
    });
    set.collect()
}

/// Headers that are taken away.
pub fn remove(changes: &HeaderChanges) -> Vec<String> {
    changes.remove.iter().map(ToString::to_string).collect()
}

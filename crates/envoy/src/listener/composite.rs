//! Filters of which a request passes the one that it is marked for: Envoy's composite filter, and what it chooses by.
//!
//! The filter chooses when it runs, after the route was found and the [mark](crate::route::mark) written; a filter that is not chosen is
//! not made, so it costs a request nothing. A route tells the chosen filter what to do under the name of the composite.

use super::{filters::filter, sni::extension};
use crate::route::mark;
use envoy_api::{
    Any, any,
    envoy::{
        config::core::v3::{ExtensionConfigSource, TypedExtensionConfig},
        extensions::{
            common::matching::v3::ExtensionWithMatcher,
            filters::{
                http::composite::v3::{Composite, DynamicConfig, ExecuteFilterAction},
                network::http_connection_manager::v3::HttpFilter,
            },
            matching::{
                common_inputs::network::v3::{
                    DynamicMetadataInput,
                    dynamic_metadata_input::{PathSegment, path_segment::Segment},
                },
                input_matchers::metadata::v3::Metadata,
            },
        },
        r#type::matcher::v3::{StringMatcher, ValueMatcher, value_matcher},
    },
    xds::r#type::matcher::v3::{
        Matcher,
        matcher::{
            MatcherList, MatcherType, OnMatch,
            matcher_list::{
                FieldMatcher, Predicate,
                predicate::{self, SinglePredicate, single_predicate},
            },
            on_match,
        },
    },
};

/// The filter of this name. Requests with such a mark pass the first of the filters whose mark is theirs, or else the last one;
/// all others pass none.
pub(super) fn by_mark(
    name: &str,
    marked: StringMatcher,
    filters: impl IntoIterator<Item = (StringMatcher, ExecuteFilterAction)>,
    otherwise: &ExecuteFilterAction,
) -> HttpFilter {
    let filters = filters.into_iter().map(|(mark, action)| field(mark, run(&action)));
    let chosen = Matcher { on_no_match: Some(Box::new(run(otherwise))), ..list(filters.collect()) };
    let chosen = OnMatch { on_match: Some(on_match::OnMatch::Matcher(Box::new(chosen))), ..Default::default() };
    let composite = TypedExtensionConfig {
        name: "envoy.filters.http.composite".to_owned(),
        typed_config: Some(any(&Composite::default())),
    };
    let composite = ExtensionWithMatcher {
        extension_config: Some(composite),
        xds_matcher: Some(list(vec![field(marked, chosen)])),
        ..Default::default()
    };
    filter(name, any(&composite))
}

/// A filter that stands in the listener.
pub(super) fn fixed(name: &str, config: Any) -> ExecuteFilterAction {
    let config = TypedExtensionConfig { name: name.to_owned(), typed_config: Some(config) };
    ExecuteFilterAction { typed_config: Some(config), ..Default::default() }
}

/// A filter that a resource of this name fills.
pub(super) fn slot(name: String, source: ExtensionConfigSource) -> ExecuteFilterAction {
    let dynamic = DynamicConfig { name, config_discovery: Some(source) };
    ExecuteFilterAction { dynamic_config: Some(dynamic), ..Default::default() }
}

fn list(matchers: Vec<FieldMatcher>) -> Matcher {
    Matcher { matcher_type: Some(MatcherType::MatcherList(MatcherList { matchers })), ..Default::default() }
}

fn field(mark: StringMatcher, on_match: OnMatch) -> FieldMatcher {
    FieldMatcher { predicate: Some(is_marked(mark)), on_match: Some(on_match) }
}

fn run(action: &ExecuteFilterAction) -> OnMatch {
    let action = extension("composite-action", any(action));
    OnMatch { on_match: Some(on_match::OnMatch::Action(action)), ..Default::default() }
}

/// Whether the mark of a request is such a one.
fn is_marked(mark: StringMatcher) -> Predicate {
    let path = mark::PATH.map(|key| PathSegment { segment: Some(Segment::Key(key.to_owned())) }).to_vec();
    let input = DynamicMetadataInput { filter: mark::METADATA.to_owned(), path };
    let value = ValueMatcher { match_pattern: Some(value_matcher::MatchPattern::StringMatch(mark)) };
    let single = SinglePredicate {
        input: Some(extension("dynamic-metadata", any(&input))),
        matcher: Some(single_predicate::Matcher::CustomMatch(extension(
            "metadata",
            any(&Metadata { value: Some(value), ..Default::default() }),
        ))),
    };
    Predicate { match_type: Some(predicate::MatchType::SinglePredicate(single)) }
}

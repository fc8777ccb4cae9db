//! What a request must fulfil besides its path.

use envoy_api::envoy::{
    config::route::v3::{
        HeaderMatcher, QueryParameterMatcher, header_matcher::HeaderMatchSpecifier,
        query_parameter_matcher::QueryParameterMatchSpecifier,
    },
    r#type::matcher::v3::{RegexMatcher, StringMatcher, string_matcher::MatchPattern},
};
use model::route::{HeaderMatch, QueryMatch, Test, TextMatch};

/// A condition about a header.
pub fn header(header: &HeaderMatch) -> HeaderMatcher {
    HeaderMatcher {
        name: header.name.to_string(),
        invert_match: header.invert,
        treat_missing_header_as_empty: header.missing_is_empty,
        header_match_specifier: Some(match &header.test {
            Test::Present => HeaderMatchSpecifier::PresentMatch(true),
            Test::Text { text: found, ignore_case } => HeaderMatchSpecifier::StringMatch(text(found, *ignore_case)),
        }),
    }
}

/// A condition about a query parameter.
pub fn query(query: &QueryMatch) -> QueryParameterMatcher {
    QueryParameterMatcher {
        name: query.name.to_string(),
        query_parameter_match_specifier: Some(match &query.test {
            Test::Present => QueryParameterMatchSpecifier::PresentMatch(true),
            Test::Text { text: found, ignore_case } => {
                QueryParameterMatchSpecifier::StringMatch(text(found, *ignore_case))
            }
        }),
    }
}

/// How a text is compared. A pattern says itself how it takes case.
fn text(text: &TextMatch, ignore_case: bool) -> StringMatcher {
    let (pattern, ignore_case) = match text {
        TextMatch::Exact(text) => (MatchPattern::Exact(text.to_string()), ignore_case),
        TextMatch::Prefix(text) => (MatchPattern::Prefix(text.to_string()), ignore_case),
        TextMatch::Suffix(text) => (MatchPattern::Suffix(text.to_string()), ignore_case),
        TextMatch::Contains(text) => (MatchPattern::Contains(text.to_string()), ignore_case),
        TextMatch::Regex(regex) => {
            (MatchPattern::SafeRegex(RegexMatcher { regex: regex.to_string(), ..Default::default() }), false)
        }
    };
    StringMatcher { match_pattern: Some(pattern), ignore_case }
}

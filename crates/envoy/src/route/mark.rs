//! Marks: what a route's requests have to go through, written where the filters that follow can read it.
//!
//! The filter of IP lists stands before them, and every request goes through it. The name of its shadow rule becomes metadata of the
//! request. It reads the route when it runs, so the mark is there however the route was found. A request has one mark, for the slot of
//! JWT verification and then for the filter of external authorization: `jwt_authn-3-1/`, `ext_authz`, `jwt_authn-3-1/ext_authz`.

use super::{filters::RBAC, jwt};
use crate::listener::{
    ext_authz::AuthorizationFilter,
    jwt::{MARKS, SLOTS_OF_CERTIFICATE},
};
use envoy_api::envoy::{
    config::rbac::v3::{Permission, Policy as Rule, Principal, Rbac as Rules, permission, principal, rbac::Action},
    r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
};
use model::route::Policy;
use std::collections::BTreeMap;

/// The metadata that has the mark.
pub(crate) const METADATA: &str = RBAC;
/// Where it stands there.
pub(crate) const PATH: [&str; 1] = ["shadow_effective_policy_id"];

/// Marks every request of a route, if a filter is to look at it.
pub(super) fn of(policy: &Policy) -> Option<Rules> {
    let verified = jwt::mark(policy).map(jwt_mark);
    let authorized = AuthorizationFilter::of(&policy.authorization).map(authorized);
    let mark = [verified.as_deref(), authorized].into_iter().flatten().collect::<String>();
    if mark.is_empty() {
        return None;
    }
    let everything = Permission { rule: Some(permission::Rule::Any(true)) };
    let everybody = Principal { identifier: Some(principal::Identifier::Any(true)) };
    let rule = Rule { permissions: vec![everything], principals: vec![everybody], ..Default::default() };
    Some(Rules { action: Action::Allow.into(), policies: BTreeMap::from([(mark, rule)]), ..Default::default() })
}

/// The slot where a chain has few, then which of those it is where a chain has one for each mark.
fn jwt_mark(mark: u8) -> String {
    format!("jwt_authn-{}-{}/", mark % SLOTS_OF_CERTIFICATE, mark / SLOTS_OF_CERTIFICATE)
}

/// Marks for a slot of JWT verification, of a chain that has so many.
pub(crate) fn jwt_slot(number: u8, of: u8) -> StringMatcher {
    let marks = if of == MARKS { jwt_mark(number) } else { format!("jwt_authn-{number}-") };
    text(MatchPattern::Prefix(marks))
}

/// Marks for JWT verification.
pub(crate) fn any_jwt() -> StringMatcher {
    text(MatchPattern::Prefix("jwt_authn-".to_owned()))
}

/// The end of marks for a filter of external authorization. None of them ends with another.
fn authorized(filter: AuthorizationFilter) -> &'static str {
    match filter {
        AuthorizationFilter::FailClosed { bytes: false } => "ext_authz",
        AuthorizationFilter::FailClosed { bytes: true } => "ext_authz-bytes",
        AuthorizationFilter::FailOpen { bytes: false } => "ext_authz-open",
        AuthorizationFilter::FailOpen { bytes: true } => "ext_authz-open-bytes",
        AuthorizationFilter::OfFleet => "ext_authz-fleet",
    }
}

/// Marks for a filter of external authorization.
pub(crate) fn authorized_by(filter: AuthorizationFilter) -> StringMatcher {
    text(MatchPattern::Suffix(authorized(filter).to_owned()))
}

/// Marks for external authorization.
pub(crate) fn any_authorized() -> StringMatcher {
    text(MatchPattern::Contains("ext_authz".to_owned()))
}

fn text(pattern: MatchPattern) -> StringMatcher {
    StringMatcher { match_pattern: Some(pattern), ignore_case: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark that leads to no slot would be refused, and one that leads to two is for the first.
    #[test]
    fn every_mark_leads_to_one_slot_of_every_chain() {
        let leads = |mark: &str, number: u8, of: u8| match jwt_slot(number, of).match_pattern {
            Some(MatchPattern::Prefix(prefix)) => mark.starts_with(&prefix),
            other => panic!("{other:?}"),
        };
        for mark in 0..MARKS {
            let text = jwt_mark(mark);
            for of in [SLOTS_OF_CERTIFICATE, MARKS] {
                let slots: Vec<u8> = (0..of).filter(|number| leads(&text, *number, of)).collect();
                assert_eq!(slots, [mark % of], "{text}");
            }
        }
    }

    #[test]
    fn no_filter_of_external_authorization_takes_the_marks_of_another() {
        use AuthorizationFilter::{FailClosed, FailOpen, OfFleet};
        let both = [false, true].into_iter().flat_map(|bytes| [FailClosed { bytes }, FailOpen { bytes }]);
        let marks: Vec<&str> = both.chain([OfFleet]).map(authorized).collect();
        for mark in &marks {
            assert_eq!(marks.iter().filter(|other| other.ends_with(*mark)).count(), 1, "{mark}");
            assert!(mark.contains("ext_authz"), "{mark}");
        }
    }
}

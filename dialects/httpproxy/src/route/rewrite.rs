//! What the backend sees for the prefix that a route matched: a text that is sent as it is written, whether it is a path or not.

use crate::{
    Rejection,
    route::{RouteDraft, optional},
};
use kinds::{Checked, http_proxy::route::PathRewritePolicy};
use model::{
    Code, FieldPath,
    route::{Action, Conditions, Path, PathMatch, PathReplacement, PathRewrite},
};
use std::collections::{BTreeMap, BTreeSet};

/// The replacement for the prefix that the route matches: that of an entry which names it, else of the one without a
/// prefix.
pub(crate) fn prefix(
    policy: &Checked<Option<Box<PathRewritePolicy>>>,
    path: &PathMatch,
    field: &FieldPath,
) -> Result<Option<PathRewrite>, Rejection> {
    let Some(policy) = optional(policy)?.filter(|policy| !policy.replace_prefix.is_empty()) else { return Ok(None) };
    let field = field.field("pathRewritePolicy").field("replacePrefix");
    let PathMatch::Prefix(matched) = path else {
        let why = "the route has an exact or regex condition instead of a prefix condition";
        return Err(Rejection::new(Code::ProxyPrefixMissing, field, why));
    };
    let mut seen = BTreeSet::new();
    let (mut named, mut default) = (None, None);
    for (index, entry) in policy.replace_prefix.iter().enumerate() {
        let field = field.index(index);
        let own = entry.prefix.as_deref().unwrap_or_default();
        if !seen.insert(own) {
            return Err(match own {
                "" => Rejection::new(Code::ProxyPrefixAmbiguous, field, "more than one entry has no prefix"),
                own => Rejection::new(
                    Code::ProxyPrefixDuplicate,
                    field,
                    format!("prefix `{own}` is replaced more than once"),
                ),
            });
        }
        let replacement = PathReplacement::parse(&entry.replacement).map_err(|error| {
            Rejection::new(Code::ProxyPrefixReplacement, field.field("replacement"), error.to_string())
        })?;
        match own {
            "" => default = Some(replacement),
            own if own == matched.as_str() => named = Some(replacement),
            _ => {}
        }
    }
    Ok(named.or(default).map(PathRewrite::Prefix))
}

/// Gives a route that rewrites `/a` its other form `/a/`, unless somebody wrote it: what follows the prefix must not begin
/// with two slashes or with none.
pub(crate) fn both_forms(made: Vec<RouteDraft>) -> Vec<RouteDraft> {
    let mut forms: BTreeMap<(&str, &Conditions), BTreeSet<&str>> = BTreeMap::new();
    for route in &made {
        if let PathMatch::Prefix(prefix) = &route.path {
            let text = prefix.as_str();
            forms.entry((text.trim_end_matches('/'), &route.conditions)).or_default().insert(text);
        }
    }
    let alone = |route: &RouteDraft| match &route.path {
        PathMatch::Prefix(prefix) => {
            let trimmed = prefix.as_str().trim_end_matches('/');
            !trimmed.is_empty() && forms.get(&(trimmed, &route.conditions)).is_some_and(|forms| forms.len() == 1)
        }
        _ => false,
    };
    let expand: Vec<bool> = made.iter().map(|route| is_rewritten(route) && alone(route)).collect();
    made.into_iter().zip(expand).flat_map(|(route, expand)| pair(route, expand)).collect()
}

fn is_rewritten(route: &RouteDraft) -> bool {
    matches!(&route.action, Action::Forward(forward) if forward.rewrite.is_some())
}

fn pair(route: RouteDraft, expand: bool) -> Vec<RouteDraft> {
    let forms = match (&route.path, &route.action) {
        (PathMatch::Prefix(prefix), Action::Forward(forward)) if expand => match &forward.rewrite {
            Some(PathRewrite::Prefix(to)) => forms(prefix, to),
            _ => None,
        },
        _ => None,
    };
    let Some(forms) = forms else { return vec![route] };
    let form = |(from, to): (Path, PathReplacement)| {
        let mut route = route.clone();
        route.path = PathMatch::Prefix(from);
        if let Action::Forward(forward) = &mut route.action {
            forward.rewrite = Some(PathRewrite::Prefix(to));
        }
        route
    };
    forms.map(form).into()
}

/// Both forms of a prefix and what replaces each; nothing where one form is enough.
fn forms(prefix: &Path, to: &PathReplacement) -> Option<[(Path, PathReplacement); 2]> {
    let from = Path::parse(prefix.as_str().trim_end_matches('/')).ok()?;
    if to.as_str().contains(['?', '#']) {
        // A final slash is part of the query: none is added, and none is taken away.
        return (from != *prefix).then(|| [(from, to.clone()), (prefix.clone(), to.clone())]);
    }
    let below = from.with_final_slash();
    let trimmed = to.as_str().trim_end_matches('/');
    let bare = PathReplacement::parse(if trimmed.is_empty() { "/" } else { trimmed }).ok()?;
    Some([(from, bare), (below, to.with_final_slash())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::route::path::LONGEST;

    fn forms_of(prefix: &str, to: &str) -> Option<[(String, String); 2]> {
        let (prefix, to) = (Path::parse(prefix).expect("a path"), PathReplacement::parse(to).expect("a text"));
        forms(&prefix, &to).map(|forms| forms.map(|(from, to)| (from.to_string(), to.to_string())))
    }

    #[test]
    fn a_prefix_and_its_replacement_have_two_forms() {
        let both = |from: [&str; 2], to: [&str; 2]| Some([0, 1].map(|at| (from[at].to_owned(), to[at].to_owned())));
        for (prefix, to, bare, below) in
            [("/a", "/b", "/b", "/b/"), ("/a/", "/b", "/b", "/b/"), ("/a", "/", "/", "/"), ("/a", "v2/", "v2", "v2/")]
        {
            assert_eq!(forms_of(prefix, to), both(["/a", "/a/"], [bare, below]), "{prefix} {to}");
        }
        assert_eq!(forms_of("/a/", "/b?q="), both(["/a", "/a/"], ["/b?q=", "/b?q="]));
        assert_eq!(forms_of("/a", "/b?q="), None, "a final slash is part of the query");
        assert_eq!(forms_of("/", "/b"), None);
    }

    #[test]
    fn the_longest_prefix_and_replacement_have_both_forms() {
        let longest = |letter: &str| format!("/{}", letter.repeat(LONGEST - 1));
        let (from, to) = (longest("a"), longest("b"));
        let both = [(from.clone(), to.clone()), (format!("{from}/"), format!("{to}/"))];
        assert_eq!(forms_of(&from, &to), Some(both));
    }
}

//! The catch-all in wildcard hosts: Envoy's wildcards reach any depth, those of most dialects one label, so a wildcard host
//! repeats the routes of the catch-all for deeper names.
//!
//! In: the routes of the catch-all. Out: what each wildcard host repeats, and a verdict where these are too many: hosts times
//! routes is a product.

use model::{
    Code, Route, Verdict,
    route::{Action, Conditions, Depth, DirectResponse, Path, PathMatch},
};
use std::{collections::BTreeSet, sync::Arc};

/// The most routes of the catch-all that are repeated in each wildcard host.
pub const MOST_REPEATED: usize = 100;

/// What every wildcard host repeats of these routes. More than [`MOST_REPEATED`] are not repeated: names deeper than one label
/// answer 503. A part of the routes would not do, since requests for the others would get a less specific one.
pub fn repeated(catch_all: &[Arc<Route>]) -> Vec<Arc<Route>> {
    let Some(first) = catch_all.first().filter(|_| catch_all.len() > MOST_REPEATED) else { return catch_all.to_vec() };
    vec![unavailable(Code::CatchAllTooLong, first)]
}

/// What stands for routes that are too many to be repeated, of which this is the first: every request answers 503 with the code.
pub(crate) fn unavailable(code: Code, first: &Route) -> Arc<Route> {
    Arc::new(Route {
        path: PathMatch::Prefix(Path::root()),
        conditions: Conditions::default(),
        depth: Depth::AnyLabels,
        action: Action::DirectResponse(DirectResponse::because(503, code)),
        policy: Default::default(),
        precedence: first.precedence.clone(),
        origin: first.origin.object.at(""),
        fraction: None,
        combined: None,
    })
}

/// A verdict for each object that has routes of the catch-all, if there are more of them than wildcard hosts repeat.
pub fn too_long(catch_all: &[Arc<Route>]) -> Vec<Verdict> {
    if catch_all.len() <= MOST_REPEATED {
        return Vec::new();
    }
    let count = catch_all.len();
    let why =
        format!("there are {count} routes without a host; wildcard hosts can repeat at most {MOST_REPEATED} of them");
    let objects: BTreeSet<_> =
        catch_all.iter().flat_map(|route| route.origins()).map(|origin| &origin.object).collect();
    objects.into_iter().map(|object| Verdict::new(Code::CatchAllTooLong, object.at(""), why.clone())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a test may panic")]

    use super::*;
    use crate::testing::route;

    #[test]
    fn a_long_catch_all_is_not_repeated_and_its_objects_are_told_once() {
        let many: Vec<_> = (0..=MOST_REPEATED).map(|at| route(["a", "b"][at % 2], 1, &format!("= /{at}"))).collect();
        let (fits, all) = (&many[1..], &many[..]);
        assert_eq!(repeated(fits), fits);
        assert!(too_long(fits).is_empty());
        let instead = repeated(all);
        let [only] = &instead[..] else { panic!("{} routes", instead.len()) };
        assert_eq!((only.path.to_string().as_str(), only.conditions.to_string().as_str()), ("/…", ""));
        assert!(matches!(&only.action, Action::DirectResponse(DirectResponse { status: 503, .. })));
        let told = too_long(all);
        assert_eq!(told.iter().map(|verdict| &*verdict.origin.object.name).collect::<Vec<_>>(), ["a", "b"]);
    }
}

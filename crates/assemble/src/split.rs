//! Routes that match the same requests and split them: each takes a part as a route of its own, with settings of its own.
//!
//! In: the routes in the order of precedence. Out: the routes that are served, each with the part of a hundred requests up to which it
//! takes them: a proxy draws one number for each request and compares it with every route that it tries, so shares of 10 and 40 and the
//! rest are 10, 50 and all. Fixed shares come first, then those that share the rest in equal parts. What is left below a hundred goes on
//! to the next route that matches: one of lower priority, of another dialect, or for other requests. One that is alone takes all,
//! whatever its share.

use crate::combine::{self, Reason};
use model::{
    Route,
    route::{Action, AgreedValue, Mirror, OnEqual, Precedence, Share, SplitMessages},
};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// All requests.
const ALL: u32 = 100;

/// How much of a value a message shows, in bytes, and how much of that stands before what differs.
const SHOWN: usize = 400;
const BEFORE: usize = 60;

/// Whether a route splits its requests with others that match the same.
pub fn is_split(precedence: &Precedence) -> bool {
    matches!(precedence.on_equal, OnEqual::Split { .. } | OnEqual::Mirror { .. })
}

/// What is served of these routes, of which the first splits its requests; `report` is that of [`combine::resolve`].
pub fn split(routes: Vec<Arc<Route>>, report: &mut dyn FnMut(&Route, &Route, Reason)) -> Vec<Arc<Route>> {
    let mut served: Vec<Arc<Route>> = Vec::new();
    let mut routes = routes.into_iter().peekable();
    while let Some(first) = routes.next_if(|route| is_split(&route.precedence)) {
        let mut peers = vec![first];
        while let Some(peer) =
            routes.next_if(|it| is_split(&it.precedence) && combine::is_peer(&it.precedence, &peers[0].precedence))
        {
            peers.push(peer);
        }
        let (level, is_complete) = one_level(peers, report);
        served.extend(level);
        if let Some(winner) = served.last().filter(|_| is_complete).cloned() {
            routes.for_each(|route| report(&winner, &route, Reason::Precedence));
            return served;
        }
    }
    served.extend(combine::resolve(routes.collect(), report));
    served
}

/// What is served of routes that only differ in age, and whether they take all requests.
fn one_level(peers: Vec<Arc<Route>>, report: &mut dyn FnMut(&Route, &Route, Reason)) -> (Vec<Arc<Route>>, bool) {
    let (mirrors, peers): (Vec<_>, Vec<_>) =
        peers.into_iter().partition(|route| matches!(route.precedence.on_equal, OnEqual::Mirror { .. }));
    let mut members: Vec<(Arc<Route>, Share)> = Vec::new();
    for route in peers {
        let OnEqual::Split { share, agreement: _, messages } = &route.precedence.on_equal else { continue };
        match members.first().and_then(|(base, _)| disagreement(base, &route, messages)) {
            Some(reason) => report(&members[0].0, &route, reason),
            None => members.push((Arc::clone(&route), *share)),
        }
    }
    let parts = parts(&members, report);
    let oldest = members.first().map(|(route, _)| Arc::clone(route));
    // Those that take requests.
    members.retain(|(route, _)| parts.iter().any(|(served, _)| Arc::ptr_eq(served, route)));
    if let Some(oldest) = oldest {
        shares_across_namespaces(&oldest, &members, report);
    }
    let copies = Copies::of(&mirrors, &members, report);
    let is_complete = parts.last().is_some_and(|(_, up_to)| *up_to >= ALL);
    let routes = parts.into_iter().map(|(route, up_to)| {
        let fraction = u8::try_from(up_to).ok().filter(|up_to| u32::from(*up_to) < ALL);
        let copy = copies.of_requests_of(&route);
        if fraction.is_none() && copy.is_none() {
            return route;
        }
        let mut route = Route::clone(&route);
        route.fraction = fraction;
        if let Action::Forward(forward) = &mut route.action {
            forward.mirrors.extend(copy);
        }
        Arc::new(route)
    });
    (routes.collect(), is_complete)
}

/// Each route that takes requests, and up to which of a hundred it takes them.
fn parts(members: &[(Arc<Route>, Share)], report: &mut dyn FnMut(&Route, &Route, Reason)) -> Vec<(Arc<Route>, u32)> {
    if let [(only, _)] = members {
        return vec![(Arc::clone(only), ALL)];
    }
    let mut parts: Vec<(Arc<Route>, u32)> = Vec::new();
    let mut taken = 0;
    let fixed = members.iter().filter_map(|(route, share)| match share {
        Share::Percent(percent) => Some((route, u32::from(*percent))),
        Share::Rest => None,
    });
    for (route, percent) in fixed {
        if taken + percent > ALL
            && let OnEqual::Split { messages, .. } = &route.precedence.on_equal
        {
            let winner = parts.first().map_or(route, |(first, _)| first);
            report(winner, route, reason(messages, messages.exceeded, winner, route, ""));
        }
        let up_to = (taken + percent).min(ALL);
        if up_to > taken {
            parts.push((Arc::clone(route), up_to));
        }
        taken = up_to;
    }
    let rest: Vec<_> = members.iter().filter(|(_, share)| *share == Share::Rest).collect();
    let (count, left) = (u32::try_from(rest.len()).unwrap_or(u32::MAX), ALL - taken);
    for (at, (route, _)) in (1..).zip(rest) {
        let up_to = ALL - left + left * at / count;
        if up_to > taken {
            parts.push((Arc::clone(route), up_to));
        }
        taken = up_to;
    }
    parts
}

/// Why a route cannot have a part beside another.
fn disagreement(base: &Route, route: &Route, messages: &SplitMessages) -> Option<Reason> {
    // Where all plaintext requests are redirected to HTTPS, all of them are the same.
    let is_redirect = |route: &Route| matches!(route.action, Action::Redirect(_));
    if (is_redirect(base) || is_redirect(route)) && base.action != route.action {
        return Some(reason(messages, messages.redirect, base, route, ""));
    }
    let (OnEqual::Split { agreement: own, .. }, OnEqual::Split { agreement: theirs, .. }) =
        (&route.precedence.on_equal, &base.precedence.on_equal)
    else {
        return None;
    };
    let differs = own.iter().filter_map(|(field, value)| {
        let other = theirs.iter().find(|(other, _)| other == field).map(|(_, value)| value);
        (other != Some(value)).then(|| difference(field, value.as_str(), other.map_or("-unset-", AgreedValue::as_str)))
    });
    let fields = differs.collect::<Vec<_>>().join(", ");
    (!fields.is_empty()).then(|| reason(messages, messages.mismatch, base, route, &fields))
}

/// What a message says of a field whose values differ.
fn difference(field: &str, own: &str, other: &str) -> String {
    let differs_at = own.bytes().zip(other.bytes()).take_while(|(own, other)| own == other).count();
    format!("{field}: {} != {}", excerpt(own, differs_at), excerpt(other, differs_at))
}

/// What a message shows of a value: all of it, or the part around the byte from which it differs from another.
fn excerpt(value: &str, differs_at: usize) -> Cow<'_, str> {
    if value.len() <= SHOWN {
        return value.into();
    }
    let start = if differs_at < SHOWN - BEFORE { 0 } else { value.floor_char_boundary(differs_at - BEFORE) };
    let end = value.floor_char_boundary(start + SHOWN);
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < value.len() { "…" } else { "" });
    format!("{before}{}{after}", &value[start..end]).into()
}

/// Tells both sides where routes take requests of the oldest one, which is of another namespace.
fn shares_across_namespaces(
    oldest: &Route,
    members: &[(Arc<Route>, Share)],
    report: &mut dyn FnMut(&Route, &Route, Reason),
) {
    for (other, _) in members.iter().filter(|(other, _)| namespace(other) != namespace(oldest)) {
        report(oldest, other, Reason::Share);
    }
}

/// Who gets copies of requests: of those of each route the first backend that may have them. They have the credentials of clients, so a
/// backend gets those of its own namespace, unless its author is trusted with others.
struct Copies<'m> {
    /// The first of each namespace, with its place among all.
    own: BTreeMap<&'m str, (usize, &'m Route)>,
    /// The first that may have copies of all requests.
    across: Option<(usize, &'m Route)>,
}

impl<'m> Copies<'m> {
    /// Those of these routes, beside which others take the requests. One that gets none is told.
    fn of(
        mirrors: &'m [Arc<Route>],
        members: &[(Arc<Route>, Share)],
        report: &mut dyn FnMut(&Route, &Route, Reason),
    ) -> Self {
        let mut copies = Self { own: BTreeMap::new(), across: None };
        for (at, mirror) in mirrors.iter().enumerate() {
            copies.own.entry(namespace(mirror)).or_insert((at, mirror));
            if is_across(mirror) {
                copies.across.get_or_insert((at, mirror));
            }
        }
        let mut owners: BTreeMap<&str, &Route> = BTreeMap::new();
        for (member, _) in members {
            owners.entry(namespace(member)).or_insert(member);
        }
        for mirror in mirrors {
            copies.report_on(mirror, &owners, report);
        }
        copies
    }

    /// Tells a route that gets no copies; and both sides, where it gets those of another namespace.
    fn report_on(
        &self,
        mirror: &Route,
        owners: &BTreeMap<&str, &Route>,
        report: &mut dyn FnMut(&Route, &Route, Reason),
    ) {
        let OnEqual::Mirror { messages, .. } = &mirror.precedence.on_equal else { return };
        let Some(some_owner) = owners.values().next() else { return };
        let may_have = owners.iter().filter(|(of, _)| is_across(mirror) || **of == namespace(mirror));
        let (mut has_some, mut before) = (false, None);
        for (of, owner) in may_have {
            match self.first(of) {
                Some(first) if std::ptr::eq(first, mirror) => {
                    has_some = true;
                    if *of != namespace(mirror) {
                        report(owner, mirror, Reason::Copies);
                    }
                }
                first => before = before.or(first),
            }
        }
        match (has_some, before) {
            (true, _) => {}
            (false, Some(first)) => report(first, mirror, reason(messages, messages.mirror, first, mirror, "")),
            (false, None) => {
                report(some_owner, mirror, reason(messages, messages.foreign_mirror, some_owner, mirror, ""));
            }
        }
    }

    /// The first that may have copies of requests of a namespace.
    fn first(&self, of: &str) -> Option<&'m Route> {
        let both = [self.own.get(of).copied(), self.across];
        both.into_iter().flatten().min_by_key(|(at, _)| *at).map(|(_, mirror)| mirror)
    }

    /// Who gets copies of the requests of a route.
    fn of_requests_of(&self, member: &Route) -> Option<Mirror> {
        let mirror = self.first(namespace(member))?;
        let (OnEqual::Mirror { percent, .. }, Action::Forward(forward)) = (&mirror.precedence.on_equal, &mirror.action)
        else {
            return None;
        };
        let cluster = forward.clusters.first()?.cluster.clone();
        let per_million = u32::from(*percent) * 10_000;
        (per_million > 0).then_some(Mirror { cluster, per_million, keeps_host: false })
    }
}

fn namespace(route: &Route) -> &str {
    &route.origin.object.namespace
}

/// Whether a backend may get copies of requests of other namespaces.
fn is_across(mirror: &Route) -> bool {
    matches!(mirror.precedence.on_equal, OnEqual::Mirror { across_namespaces: true, .. })
}

fn reason(messages: &SplitMessages, template: &str, winner: &Route, loser: &Route, fields: &str) -> Reason {
    let text = template
        .replace("{name}", &loser.origin.object.name)
        .replace("{other}", &winner.origin.object.name)
        .replace("{fields}", fields);
    Reason::Split(messages.code, text.into())
}

#[cfg(test)]
mod tests {
    //! Parts of a hundred requests, copies, and who loses.

    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

    use super::*;
    use crate::testing::{LENGTH, WEAKER, changed, route};
    use model::{
        ClusterId, Code, EndpointsId,
        route::{Agreement, Forward, Redirect, WeightedCluster},
    };

    const MESSAGES: SplitMessages = SplitMessages {
        code: Code::RouteConflict,
        mismatch: "{name}: {fields}",
        exceeded: "exceeded",
        redirect: "{name} redirects, not {other}",
        mirror: "{name} after {other}",
        foreign_mirror: "{name} beside foreign {other}",
    };

    fn with(name: &str, on_equal: OnEqual) -> Arc<Route> {
        changed(&route(name, 1, "p /"), |route| {
            route.precedence.dialect = LENGTH;
            route.precedence.on_equal = on_equal;
            let cluster = ClusterId::from(EndpointsId::tcp("ns", name, 80));
            let clusters = vec![WeightedCluster::new(cluster, 1)];
            route.action = Action::Forward(Box::new(Forward { clusters, ..Default::default() }));
        })
    }

    fn agreeing(name: &str, share: Option<u8>, agreement: Agreement) -> Arc<Route> {
        let share = share.map_or(Share::Rest, Share::Percent);
        with(name, OnEqual::Split { share, agreement, messages: &MESSAGES })
    }

    fn part(name: &str, share: Option<u8>) -> Arc<Route> {
        agreeing(name, share, Agreement::default())
    }

    fn mirror(name: &str, percent: u8) -> Arc<Route> {
        with(name, OnEqual::Mirror { percent, across_namespaces: false, messages: &MESSAGES })
    }

    /// The route, of an object of another namespace.
    fn elsewhere(route: &Arc<Route>) -> Arc<Route> {
        changed(route, |route| {
            let name = route.origin.object.name.clone();
            route.origin = model::ObjectRef::new(kinds::kind::SERVICE, "elsewhere", &*name).at("spec");
        })
    }

    /// The routes that are served with the part up to which each takes requests, and who is told what.
    fn outcome(routes: Vec<Arc<Route>>) -> (String, Vec<String>) {
        let run = |routes| {
            let mut lost = Vec::new();
            let served = combine::resolve(routes, &mut |_, loser, reason| {
                let text = match reason {
                    Reason::Split(_, text) => text.to_string(),
                    other => format!("{other:?}"),
                };
                lost.push(format!("{} {text}", loser.origin.object.name));
            });
            let shown = served.iter().map(|route| {
                let up_to = route.fraction.map_or_else(String::new, |up_to| format!(" {up_to}"));
                let copies = match &route.action {
                    Action::Forward(forward) => {
                        forward.mirrors.iter().map(|it| format!(" +{}", it.per_million)).collect()
                    }
                    _ => String::new(),
                };
                format!("{}{up_to}{copies}", route.origin.object.name)
            });
            lost.sort();
            (shown.collect::<Vec<_>>().join(", "), lost)
        };
        let mut reversed = routes.clone();
        reversed.reverse();
        let outcome = run(routes);
        assert_eq!(run(reversed), outcome, "whatever the order they come in");
        outcome
    }

    fn served(routes: Vec<Arc<Route>>) -> String {
        let (served, lost) = outcome(routes);
        assert!(lost.is_empty(), "{lost:?}");
        served
    }

    #[test]
    fn shares_add_up_and_those_without_one_take_the_rest() {
        assert_eq!(served(vec![part("a", None), part("b", Some(10)), part("c", Some(40))]), "b 10, c 50, a");
        assert_eq!(served(vec![part("a", None), part("b", None), part("c", None)]), "a 33, b 66, c");
        assert_eq!(served(vec![part("a", Some(7))]), "a", "one that is alone takes all");
        assert_eq!(served(vec![part("a", None), part("b", Some(0))]), "a", "a share of nothing");
        assert_eq!(served(vec![part("a", None), part("b", Some(100))]), "b");
    }

    #[test]
    fn what_shares_leave_goes_on_to_the_next_route() {
        let lower = changed(&part("lower", None), |route| route.precedence.priority = -1);
        let weaker = changed(&route("weaker", 1, "p /"), |route| {
            route.precedence.dialect = model::route::Dialect { rank: 9, ..WEAKER };
        });
        let parts = || vec![part("a", Some(10)), part("b", Some(20))];
        assert_eq!(served(parts()), "a 10, b 30");
        let with = |others: &[&Arc<Route>]| {
            outcome(parts().into_iter().chain(others.iter().map(|it| Arc::clone(it))).collect())
        };
        assert_eq!(with(&[&weaker]), ("a 10, b 30, weaker".to_owned(), Vec::new()));
        assert_eq!(with(&[&lower]), ("a 10, b 30, lower".to_owned(), Vec::new()));
        // A number comes before dialects.
        assert_eq!(with(&[&weaker, &lower]), ("a 10, b 30, weaker".to_owned(), vec!["lower Precedence".to_owned()]));
        let stronger = changed(&route("stronger", 1, "p /"), |route| route.precedence.dialect = crate::testing::AGE);
        let lost = vec!["a Precedence".to_owned(), "b Precedence".to_owned()];
        assert_eq!(with(&[&stronger]), ("stronger".to_owned(), lost));
    }

    #[test]
    fn more_than_a_hundred_is_cut_and_told() {
        let (served, lost) = outcome(vec![part("a", Some(60)), part("b", Some(60)), part("c", Some(1))]);
        assert_eq!((&*served, lost), ("a 60, b", vec!["b exceeded".to_owned(), "c exceeded".to_owned()]));
    }

    #[test]
    fn they_have_to_agree_where_a_newcomer_says_something() {
        let says = |value: &str| -> Agreement { [("field", AgreedValue::new(value))].into() };
        let (served, lost) = outcome(vec![agreeing("a", None, says("x")), agreeing("b", None, says("y"))]);
        assert_eq!((&*served, lost), ("a", vec!["b b: field: y != x".to_owned()]));
        let (served, lost) = outcome(vec![part("a", None), agreeing("b", None, says("y"))]);
        assert_eq!((&*served, lost), ("a", vec!["b b: field: y != -unset-".to_owned()]));
        assert_eq!(outcome(vec![agreeing("a", None, says("x")), part("b", None)]).1, Vec::<String>::new());
    }

    #[test]
    fn long_values_are_compared_whole_and_shown_where_they_differ() {
        assert_eq!(excerpt("short", 3), "short");
        let of = |end: &str| format!("{}{end}", "é".repeat(500));
        let (own, other) = (of("own"), of("other and more"));
        let says = |value: &str| -> Agreement { [("field", AgreedValue::new(value))].into() };
        let (served, lost) = outcome(vec![agreeing("a", None, says(&other)), agreeing("b", None, says(&own))]);
        let same = "é".repeat(BEFORE / 2);
        assert_eq!((&*served, lost), ("a", vec![format!("b b: field: …{same}own != …{same}other and more")]));
        assert_eq!(excerpt(&own, 10), format!("{}…", "é".repeat(SHOWN / 2)));
        // The messages of very long ones are no longer, wherever they differ.
        let says = |end: &str| says(&format!("{}{end}", "x".repeat(100_000)));
        let (served, lost) = outcome(vec![agreeing("a", None, says("one")), agreeing("b", None, says("two"))]);
        assert_eq!(served, "a");
        assert!(lost[0].len() < 2 * SHOWN && lost[0].contains("(100003 bytes, hash "), "{lost:?}");
        assert_eq!(outcome(vec![agreeing("a", None, says("one")), part("b", None)]).1, Vec::<String>::new());
        let (_, lost) = outcome(vec![agreeing("a", None, says("one")), agreeing("b", None, says("one"))]);
        assert_eq!(lost, Vec::<String>::new());
    }

    #[test]
    fn a_redirect_shares_with_nobody() {
        let redirect = changed(&part("b", None), |route| route.action = Action::Redirect(Redirect::to_https(None)));
        let (served, lost) = outcome(vec![part("a", None), redirect]);
        assert_eq!((&*served, lost), ("a", vec!["b b redirects, not a".to_owned()]));
        let to_https = |name: &str, share: Option<u8>| {
            changed(&part(name, share), |route| route.action = Action::Redirect(Redirect::to_https(None)))
        };
        let (served, lost) = outcome(vec![to_https("a", None), to_https("b", Some(20))]);
        assert_eq!((&*served, lost), ("b 20, a", Vec::new()), "the same redirect");
    }

    #[test]
    fn copies_go_to_one_backend_and_are_no_route_of_their_own() {
        assert_eq!(served(vec![part("a", None), part("b", Some(10)), mirror("m", 20)]), "b 10 +200000, a +200000");
        assert_eq!(served(vec![mirror("m", 20)]), "");
        let (served, lost) = outcome(vec![part("a", None), mirror("m", 100), mirror("n", 1)]);
        assert_eq!((&*served, lost), ("a +1000000", vec!["n n after m".to_owned()]));
    }

    #[test]
    fn copies_and_shares_of_another_namespace_s_requests() {
        let beside = |mirror: &Arc<Route>| outcome(vec![part("a", None), Arc::clone(mirror)]);
        let (served, lost) = beside(&elsewhere(&mirror("m", 100)));
        assert_eq!((&*served, lost), ("a", vec!["m m beside foreign a".to_owned()]), "no copies without consent");
        let allowed = changed(&elsewhere(&mirror("m", 100)), |route| {
            route.precedence.on_equal = OnEqual::Mirror { percent: 100, across_namespaces: true, messages: &MESSAGES };
        });
        assert_eq!(beside(&allowed), ("a +1000000".to_owned(), vec!["m Copies".to_owned()]));
        // A share of nothing has no requests to copy.
        let nothing = elsewhere(&part("b", Some(0)));
        let (served, lost) = outcome(vec![part("a", None), nothing, elsewhere(&mirror("m", 100))]);
        assert_eq!((&*served, lost), ("a", vec!["m m beside foreign a".to_owned()]));
        // One of another namespace keeps nobody's own from its copies.
        let (served, lost) = outcome(vec![part("a", None), elsewhere(&mirror("m", 100)), mirror("n", 50)]);
        assert_eq!((&*served, lost), ("a +500000", vec!["m m beside foreign a".to_owned()]));
        let (served, lost) = outcome(vec![part("a", None), elsewhere(&part("b", Some(10)))]);
        assert_eq!((&*served, lost), ("b 10, a", vec!["b Share".to_owned()]));
        let (_, lost) = outcome(vec![part("a", None), elsewhere(&part("b", Some(0)))]);
        assert_eq!(lost, Vec::<String>::new(), "a share of nothing");
        let (served, lost) = outcome(vec![part("a", None), elsewhere(&part("b", Some(100)))]);
        assert_eq!((&*served, lost), ("b", vec!["b Share".to_owned()]), "all of them");
        let (served, lost) = outcome(vec![part("a", Some(100)), elsewhere(&part("b", Some(50)))]);
        assert_eq!(served, "a");
        assert!(lost.len() == 1 && !lost[0].ends_with("Share"), "nothing is left to share: {lost:?}");
        // The only one takes all requests, whatever its share.
        let all = outcome(vec![part("a", Some(0)), allowed]);
        assert_eq!(all, ("a +1000000".to_owned(), vec!["m Copies".to_owned()]));
    }
}

//! One virtual host: every dialect's routes for one host of one listener, in the order in which a proxy tries them.
//!
//! In: what objects contribute to this host. Out: a [`VirtualHost`], and a verdict for each contribution that lost. Routes
//! that match different requests merge, whoever wrote them; those that match the same requests are [combined or lose](combine).

use crate::{
    between_dialects, combine, order, priority,
    wider_hosts::{self, WiderRoutes},
};
use model::{Code, Host, Route, Verdict, VirtualHost};
use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

/// A virtual host, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The virtual host.
    pub host: VirtualHost,
    /// A verdict for each route that lost, on the object that wrote it; sorted.
    pub lost: Vec<Verdict>,
}

impl Assembled {
    /// The same for another host that has the same routes: who lost is told of that host. Every message about routes begins with the
    /// name of the host, so the verdicts are still sorted.
    #[must_use]
    pub fn for_host(&self, host: &Host) -> Self {
        let (before, after) = (format!("host {}", self.host.host), format!("host {host}"));
        let renamed = |verdict: &Verdict| {
            let rest = verdict.message.strip_prefix(&*before);
            let message = rest.map_or_else(|| verdict.message.to_string(), |rest| format!("{after}{rest}"));
            let related = verdict.related.as_deref().cloned();
            Verdict::new(verdict.code, verdict.origin.clone(), message).related_to(related)
        };
        let lost = self.lost.iter().map(renamed).collect();
        Self { host: VirtualHost { host: host.clone(), ..self.host.clone() }, lost }
    }
}

/// What is contributed to a host, as it is gathered.
pub struct Contributions<'a> {
    host: &'a Host,
    routes: Vec<Arc<Route>>,
    shared: HashSet<*const Route>,
    catch_all: &'a [Arc<Route>],
    wider: Vec<Arc<Route>>,
    lost: Vec<Verdict>,
}

impl<'a> Contributions<'a> {
    /// None yet.
    pub fn new(host: &'a Host) -> Self {
        let (routes, wider, lost) = Default::default();
        Self { host, routes, shared: HashSet::new(), catch_all: &[], wider, lost }
    }

    /// Routes for the host.
    pub fn routes(&mut self, routes: impl IntoIterator<Item = Arc<Route>>) -> &mut Self {
        self.routes.extend(routes);
        self
    }

    /// Routes that the host shares with others. It may take one by several selectors.
    pub fn shared(&mut self, routes: &[Arc<Route>]) -> &mut Self {
        let Self { routes: all, shared, .. } = self;
        all.extend(routes.iter().filter(|route| shared.insert(Arc::as_ptr(route))).cloned());
        self
    }

    /// Each route that was gathered as it is served here, or not at all.
    pub fn narrow(&mut self, narrow: impl Fn(&Arc<Route>) -> Option<Arc<Route>>) -> &mut Self {
        self.routes = self.routes.iter().filter_map(narrow).collect();
        self
    }

    /// An object whose routes are not served here, and why.
    pub fn refuse(&mut self, verdict: Verdict) -> &mut Self {
        self.lost.push(verdict);
        self
    }

    /// The routes for names that lie deeper than one label below a wildcard: see [`crate::catch_all`].
    pub fn catch_all(&mut self, routes: &'a [Arc<Route>]) -> &mut Self {
        self.catch_all = routes;
        self
    }

    /// Whether requests are left to the routes of wider hosts, by whatever has been gathered so far.
    pub fn falls_through(&self) -> bool {
        let is_complete = |routes| wider_hosts::match_all(self.host, routes);
        self.routes.iter().any(|route| wider_hosts::falls_through(route))
            && !is_complete(&self.routes)
            && !is_complete(&self.wider)
    }

    /// Those of the routes of a wider host that may be used here; the narrowest host comes first. Where they are too many,
    /// whoever leaves requests to them is told.
    pub fn wider(
        &mut self,
        wider: &Host,
        repeated: &WiderRoutes,
        mut is_usable: impl FnMut(&Route) -> bool,
    ) -> &mut Self {
        self.wider.extend(repeated.routes.iter().filter(|route| is_usable(route)).cloned());
        if let Some(count) = repeated.too_many {
            let host = self.host;
            let why = format!(
                "host {host}: {count} routes of host {wider} are more than hosts below it can repeat, {}",
                wider_hosts::MOST_REPEATED
            );
            let own = self.routes.iter().filter(|route| wider_hosts::falls_through(route));
            let objects: BTreeSet<_> = own.map(|route| &route.origin.object).collect();
            let verdicts =
                objects.into_iter().map(|object| Verdict::new(Code::WiderRoutesTooMany, object.at(""), why.clone()));
            self.lost.extend(verdicts);
        }
        self
    }

    /// The virtual host.
    pub fn assemble(self) -> Assembled {
        let Self { host, routes, catch_all, wider, mut lost, .. } = self;
        let mut kept = Vec::with_capacity(routes.len());
        for equal in groups(routes, |a, b| order::by_match(host, a, b)) {
            kept.extend(combine::resolve(equal, &mut |winner, loser, reason| {
                lost.extend(verdicts(host, winner, loser, &reason));
            }));
        }
        let kept = between_dialects::decided(host, kept, &mut |winner, loser| {
            lost.extend(verdicts(host, winner, loser, &combine::Reason::Precedence));
        });
        let mut kept = order::sorted(kept);
        lost.extend(priority::taken(host, &kept));
        lost.sort();
        kept.extend(wider);
        // At most one object owns a host as a whole, so all routes that have the limit of the host have the same one.
        let limit = kept.iter().find_map(|route| route.policy.host_rate_limit.clone());
        let catch_all = if matches!(host, Host::Wildcard(_)) { catch_all.to_vec() } else { Vec::new() };
        let (routes, catch_all) = (kept.into(), catch_all.into());
        Assembled { host: VirtualHost { host: host.clone(), routes, catch_all, local_rate_limit: limit }, lost }
    }
}

/// What is told about a route that lost, and by whom it was taken, or with whom it shares.
fn verdicts(host: &Host, winner: &Route, loser: &Route, reason: &combine::Reason) -> Vec<Verdict> {
    let shared = |what: &str| shared(host, winner, loser, what).into();
    match reason {
        combine::Reason::Share => return shared("a share"),
        combine::Reason::Copies => return shared("copies"),
        _ => {}
    }
    let mut verdicts: Vec<_> = verdict(host, winner, loser, reason).into_iter().collect();
    if priority::takes(winner, loser) {
        verdicts.extend(priority::pair(host, winner, loser));
    }
    verdicts
}

/// What both sides are told where an object has a part of the requests of another namespace.
fn shared(host: &Host, owner: &Route, other: &Route, what: &str) -> [Verdict; 2] {
    let path = &owner.path;
    let code = Code::RouteSharedAcrossNamespaces;
    let by = format!("host {host}, path {path}: {} gets {what} of its requests", other.origin.object);
    let from = format!("host {host}, path {path}: it gets {what} of the requests of {}", owner.origin.object);
    [
        Verdict::new(code, owner.origin.clone(), by).related_to(other.origin.clone()),
        Verdict::new(code, other.origin.clone(), from).related_to(owner.origin.clone()),
    ]
}

/// The routes in groups that compare equal.
pub(crate) fn groups(
    mut routes: Vec<Arc<Route>>,
    compare: impl Fn(&Route, &Route) -> Ordering,
) -> impl Iterator<Item = Vec<Arc<Route>>> {
    routes.sort_by(|a, b| compare(a, b));
    let mut routes = routes.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut group = vec![routes.next()?];
        while let Some(next) = routes.next_if(|next| compare(&group[0], next).is_eq()) {
            group.push(next);
        }
        Some(group)
    })
}

/// Nobody wrote what is only implied, so nobody is told when it is not served. Where both were written in one object, or in
/// what it includes, nobody else is affected: that is worth knowing, and no error.
fn verdict(host: &Host, winner: &Route, loser: &Route, reason: &combine::Reason) -> Option<Verdict> {
    if loser.precedence.implied {
        return None;
    }
    if let combine::Reason::Split(code, message) = reason {
        let related = Some(winner.origin.clone()).filter(|origin| *origin != loser.origin);
        let why = format!("host {host}: {message}");
        return Some(Verdict::new(*code, loser.origin.clone(), why).related_to(related));
    }
    let is_same_object = winner.precedence.is_same_object(&loser.precedence);
    let code = if is_same_object { Code::RouteShadowed } else { Code::RouteConflict };
    let Route { path, conditions, origin, .. } = loser;
    let why = format!("host {host}, path {path}{conditions} is already served by {}{}", winner.origin, reason.text());
    Some(Verdict::new(code, origin.clone(), why).related_to(winner.origin.clone()))
}

#[cfg(test)]
mod tests {
    //! Who wins and who is told.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::testing::{AGE, changed, route, with_header};
    use model::{
        ObjectRef,
        route::{OnEqual, Share},
    };

    fn host() -> Host {
        Host::parse("a.example.com").unwrap()
    }

    fn assemble(host: &Host, routes: Vec<Arc<Route>>) -> Assembled {
        let mut contributions = Contributions::new(host);
        contributions.routes(routes);
        contributions.assemble()
    }

    fn reported(lost: &[Verdict]) -> Vec<(&str, Code)> {
        lost.iter().map(|verdict| (&*verdict.origin.object.name, verdict.code)).collect()
    }

    #[test]
    fn the_older_wins_and_the_loser_is_told() {
        let routes = vec![route("young", 2, "= /a"), route("old", 1, "= /a"), route("b", 2, "= /a")];
        let assembled = assemble(&host(), routes.clone());
        assert_eq!(assembled.host.routes[0].origin.object.name.as_ref(), "old");
        assert_eq!(reported(&assembled.lost), [("b", Code::RouteConflict), ("young", Code::RouteConflict)]);
        let mut other_order = routes;
        other_order.reverse();
        assert_eq!(assemble(&host(), other_order), assembled);
    }

    #[test]
    fn the_stronger_dialect_wins_be_it_younger() {
        let strong = changed(&route("strong", 9, "= /a"), |route| route.precedence.dialect = AGE);
        let assembled = assemble(&host(), vec![route("old", 1, "= /a"), route("other", 2, "= /b"), strong]);
        let served: Vec<_> = assembled.host.routes.iter().map(|route| &*route.origin.object.name).collect();
        assert_eq!(served, ["other", "strong"], "what matches other requests is merged");
        assert_eq!(reported(&assembled.lost), [("old", Code::RouteConflict)]);
    }

    #[test]
    fn a_higher_priority_wins_over_age_and_dialect() {
        let strong = changed(&route("strong", 1, "= /a"), |route| route.precedence.dialect = AGE);
        let high = changed(&route("high", 9, "= /a"), |route| route.precedence.priority = 1);
        let assembled = assemble(&host(), vec![strong, high]);
        assert_eq!(assembled.host.routes[0].origin.object.name.as_ref(), "high");
        assert_eq!(reported(&assembled.lost), [("strong", Code::RouteConflict)]);
    }

    #[test]
    fn equal_matches_are_found_though_age_comes_first() {
        // In the order of this dialect the two equal ones are not next to each other.
        let routes = [("a", 1, "x-a"), ("b", 2, "x-b"), ("c", 3, "x-a")]
            .map(|(name, created, header)| with_header(&route(name, created, "/ /"), header));
        let routes = routes.map(|route| changed(&route, |route| route.precedence.dialect = AGE));
        let assembled = assemble(&host(), routes.to_vec());
        assert_eq!(reported(&assembled.lost), [("c", Code::RouteConflict)]);
        assert_eq!(assembled.host.routes.len(), 2);
    }

    #[test]
    fn who_lost_is_told_by_object() {
        let paths = ["= /a", "= /b", "/ /c"];
        let routes = paths.iter().flat_map(|path| ["x", "y", "z"].map(|name| route(name, 1, path)));
        let lost = assemble(&host(), routes.collect()).lost;
        assert!(lost.len() == 6 && lost.is_sorted());
        let object = ObjectRef::new(kinds::kind::SERVICE, "ns", "y");
        let own = Verdict::about(&object, &lost);
        assert!(own.len() == 3 && own.iter().all(|verdict| verdict.origin.object == object));
        assert_eq!(Verdict::about(&ObjectRef::new(kinds::kind::SERVICE, "ns", "x"), &lost), []);
    }

    #[test]
    fn what_one_object_says_twice_is_a_warning() {
        let routes = vec![route("a", 1, "= /a"), route("a", 1, "= /a"), route("b", 2, "= /a")];
        let lost = assemble(&host(), routes).lost;
        assert_eq!(reported(&lost), [("a", Code::RouteShadowed), ("b", Code::RouteConflict)]);
    }

    #[test]
    fn hosts_with_the_same_routes_tell_the_same_by_their_own_names() {
        let elsewhere = |name: &str| ObjectRef::new(kinds::kind::SERVICE, "elsewhere", name).at("spec");
        let strong = changed(&route("strong", 3, "p /"), |route| {
            route.precedence.priority = 1;
            route.origin = elsewhere("strong");
        });
        let share = |name: &str, share| {
            changed(&route(name, 1, "= /share"), |route| {
                route.precedence.on_equal = OnEqual::Combine { share, across_namespaces: false };
            })
        };
        let foreign = changed(&share("foreign", Share::Percent(10)), |route| route.origin = elsewhere("foreign"));
        let long = format!("= /{}", "long".repeat(300));
        let routes = vec![
            route("old", 1, "= /a"),
            route("young", 2, "= /a"),
            route("old", 1, "= /a"),
            route("old", 1, &long),
            route("young", 2, &long),
            share("main", Share::Rest),
            foreign,
            strong,
        ];
        let every = assemble(&Host::Any, routes.clone());
        let codes: BTreeSet<_> = every.lost.iter().map(|verdict| verdict.code).collect();
        assert!(codes.len() >= 3, "{codes:?}");
        for name in ["a.example.com", "b", "a.very-much-longer-name.example.com"] {
            let host = Host::parse(name).unwrap();
            assert_eq!(every.for_host(&host), assemble(&host, routes.clone()), "{name}");
        }
    }

    #[test]
    fn what_is_implied_is_replaced_without_a_verdict() {
        let assembled = assemble(&host(), vec![route("implied", 1, "p /"), route("written", 2, "p /")]);
        assert_eq!(assembled.host.routes[0].origin.object.name.as_ref(), "written");
        assert!(assembled.lost.is_empty());
    }

    fn falling(name: &str, path: &str) -> Arc<Route> {
        changed(&route(name, 1, path), |route| route.precedence.dialect.falls_through = true)
    }

    #[test]
    fn what_no_route_matches_falls_through_to_wider_hosts() {
        let (exact, wildcard) = (host(), Host::parse("*.example.com").unwrap());
        let wide = WiderRoutes::of(&[falling("wide", "/ /long"), falling("wide", "/ /b")]);
        let any = WiderRoutes::of(&[falling("any", "/ /any")]);
        let served = |own: Arc<Route>, wide: &WiderRoutes| {
            let mut contributions = Contributions::new(&exact);
            contributions.routes([own]);
            for (host, wider) in [(&wildcard, wide), (&Host::Any, &any)] {
                if contributions.falls_through() {
                    contributions.wider(host, wider, |_| true);
                }
            }
            let assembled = contributions.assemble();
            let names = assembled.host.routes.iter().map(|route| route.origin.object.name.to_string());
            (names.collect::<Vec<_>>().join(" "), assembled.lost.iter().map(|verdict| verdict.code).collect::<Vec<_>>())
        };
        assert_eq!(served(falling("own", "/ /a"), &wide).0, "own wide wide any");
        assert_eq!(served(route("own", 1, "/ /a"), &wide).0, "own", "not in every dialect");
        assert_eq!(served(falling("own", "p /"), &wide).0, "own", "nothing is left");
        assert_eq!(served(falling("own", "/ /a"), &WiderRoutes::of(&[falling("all", "p /")])).0, "own all");
        let many: Vec<_> = (0..=wider_hosts::MOST_REPEATED).map(|at| falling("many", &format!("= /{at}"))).collect();
        let told = vec![Code::WiderRoutesTooMany];
        assert_eq!(served(falling("own", "/ /a"), &WiderRoutes::of(&many)), ("own many".to_owned(), told));
    }

    #[test]
    fn names_deeper_than_a_wildcard_get_the_catch_all() {
        let catch_all = [route("catch_all", 1, "p /")];
        let wildcard = Host::parse("*.example.com").unwrap();
        let assemble = |host| {
            let mut contributions = Contributions::new(host);
            contributions.catch_all(&catch_all);
            contributions.assemble().host.catch_all
        };
        assert_eq!(*assemble(&wildcard), catch_all);
        assert!(assemble(&host()).is_empty());
    }
}

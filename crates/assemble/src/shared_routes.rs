//! Routes that many hosts share: which hosts take which, and how many.
//!
//! In: the selectors of hosts and the shared routes of their pool. Out: for each *selection*, the routes that are selected. A
//! selection is what many hosts have in common, such as "labels `app=x`, routes for every name": the routes of a thousand hosts are
//! gathered once, and a route that comes or goes reaches the hosts of its selections and no others. Names match where they overlap:
//! a route for `*.example.com` is taken by `a.example.com`, and one for `a.example.com` by a host `*.example.com`; the author of
//! such a route adds the condition that tells the names apart. What a host does with requests that did not come over HTTPS is a part of
//! its selection, so a redirect is made once for all hosts that have it in common.
//!
//! Hosts times routes is a product, so it is bounded: the routes that come first by precedence are served, the others are told. Where
//! hosts share one list of routes, the list is sent once, and all that each host costs is the references in its own list.

use model::{
    Code, HeaderName, Host, Route, Verdict,
    route::{
        Action, Conditions, Depth, DirectResponse, HeaderMatch, Path, PathMatch, Precedence, Redirect, StringMatch,
        ValueMatch,
    },
    shared_routes::{Exposure, InsecureAction, Label, Labels, RoutePool, RouteSelector, SharedRoutes},
};
use std::{collections::BTreeSet, sync::Arc};

/// The most routes that a selection gives to a host.
pub const MOST_IN_HOST: usize = 10_000;

/// The most routes that a selection gives to all its hosts together that each have a list of their own.
pub const MOST_TOGETHER: usize = 1_000_000;

/// The most references to routes that a selection gives to all its hosts together.
pub const MOST_REFERENCES: usize = 10_000_000;

/// The host names of shared routes, as a host looks for them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Names {
    /// Those that name no host.
    Unnamed,
    /// Those for this very host, wildcard, or every host.
    At(Host),
    /// Those for names below this wildcard, or for some name.
    Below(Host),
}

/// Shared routes as they are found: by pool and names, and by one of their labels or none.
pub type SharedKey = (RoutePool, Names, Option<Label>);

/// What hosts select, and have in common with others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selection {
    /// The pool.
    pub pool: RoutePool,
    /// Which names.
    pub names: Names,
    /// Which labels, if that matters.
    pub labels: Option<Labels>,
    /// What becomes of their requests.
    pub exposure: Exposure,
}

impl Selection {
    /// What a selector selects.
    pub fn of(selector: &RouteSelector) -> impl Iterator<Item = Self> {
        let RouteSelector { listener, host, pool, labels, exposure } = selector;
        let pool = RoutePool { fleet: listener.fleet().clone(), name: pool };
        let unnamed = labels.is_some().then_some(Names::Unnamed);
        let above = std::iter::once(host.clone()).chain(host.wildcards_above()).map(Names::At);
        let every = (*host != Host::Any).then_some(Names::At(Host::Any));
        let below = (!matches!(host, Host::Exact(_))).then(|| Names::Below(host.clone()));
        let names = unnamed.into_iter().chain(above).chain(every).chain(below);
        names.map(move |names| Self { pool: pool.clone(), names, labels: labels.clone(), exposure: *exposure })
    }

    /// Where the routes are found that it may select.
    pub fn key(&self) -> SharedKey {
        let label = self.labels.as_ref().and_then(|labels| labels.iter().next());
        (self.pool.clone(), self.names.clone(), label.cloned())
    }

    /// What it is, in words: no other selection has the same. Names of resources are made from them, so they are the same in every
    /// version of Sesame, whatever becomes of these types.
    pub fn identity(&self) -> Vec<String> {
        let Self { pool: RoutePool { fleet, name: pool }, names, labels, exposure } = self;
        let names = match names {
            Names::Unnamed => "unnamed".to_owned(),
            Names::At(host) => format!("at {host}"),
            Names::Below(host) => format!("below {host}"),
        };
        let exposure = match exposure {
            Exposure::All => "all".to_owned(),
            Exposure::Insecure(action) => format!("insecure {}", action_identity(*action)),
            Exposure::Forwarded(action) => format!("forwarded {}", action_identity(*action)),
        };
        let mut identity = vec![fleet.to_string(), (*pool).to_owned(), names, exposure];
        if let Some(labels) = labels {
            identity.push("labels".to_owned());
            identity.extend(labels.iter().flat_map(|(name, value)| [name.to_string(), value.to_string()]));
        }
        identity
    }
}

fn action_identity(action: InsecureAction) -> String {
    match action {
        InsecureAction::Redirect(None) => "redirect".to_owned(),
        InsecureAction::Redirect(Some(port)) => format!("redirect {port}"),
        InsecureAction::Reject => "reject".to_owned(),
    }
}

/// Where shared routes are found.
pub fn keys(shared: &SharedRoutes) -> Vec<SharedKey> {
    let names = match &shared.hosts {
        None => vec![Names::Unnamed],
        Some(host) => {
            let every = (*host != Host::Any).then_some(Host::Any);
            let below = host.wildcards_above().into_iter().chain(every).map(Names::Below);
            std::iter::once(Names::At(host.clone())).chain(below).collect()
        }
    };
    let labels = || std::iter::once(None).chain(shared.labels.iter().cloned().map(Some));
    names.iter().flat_map(|names| labels().map(|label| (shared.pool.clone(), names.clone(), label))).collect()
}

/// The hosts that have a selection in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// How many there are, on all listeners.
    pub count: usize,
    /// How many of these share a list of routes with others.
    pub sharing: usize,
}

impl Hosts {
    /// How many routes each of them may have.
    fn limit(self) -> usize {
        let own = self.count.saturating_sub(self.sharing);
        MOST_IN_HOST.min(MOST_TOGETHER / own.max(1)).min(MOST_REFERENCES / self.count.max(1))
    }
}

/// What is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The routes, in the order of precedence.
    pub routes: Vec<Arc<Route>>,
    /// A verdict for each object that has routes past the limit; sorted.
    pub lost: Vec<Verdict>,
}

/// What a selection, which these hosts have in common, gets of the shared routes that were found for its key.
pub fn select<'s>(
    selection: &Selection,
    hosts: Hosts,
    found: impl IntoIterator<Item = &'s SharedRoutes>,
) -> Option<Selected> {
    let is_selected =
        |shared: &&SharedRoutes| selection.labels.as_ref().is_none_or(|labels| shared.labels.contains(labels));
    let routes = found.into_iter().filter(is_selected).flat_map(|shared| shared.routes.iter().cloned());
    let mut routes: Vec<_> = routes.collect();
    routes.sort_by(|a, b| (&a.precedence, &a.origin).cmp(&(&b.precedence, &b.origin)));
    let limit = hosts.limit();
    let mut lost = Vec::new();
    if routes.len() > limit {
        let count = routes.len();
        let left_out = routes.split_off(limit);
        let objects: BTreeSet<_> = left_out.iter().map(|route| &route.origin.object).collect();
        let why = format!(
            "{count} routes are shared by {} hosts, and {limit} are served: at most {MOST_IN_HOST} for a host, {MOST_TOGETHER} together \
             for hosts that cannot share one list (with routes of their own, or a certificate on demand), and {MOST_REFERENCES} together for all",
            hosts.count
        );
        let verdict = |object: &model::ObjectRef| Verdict::new(Code::SharedRoutesLimit, object.at(""), why.clone());
        lost.extend(objects.into_iter().map(verdict));
        routes.push(unavailable(&left_out[0]));
    }
    let routes: Vec<_> = routes.into_iter().flat_map(|route| exposed(route, selection.exposure)).collect();
    (!routes.is_empty()).then_some(Selected { routes, lost })
}

/// A route as hosts have it that do so with requests that did not come over HTTPS: as it is, or for those that came over HTTPS, and
/// what is done with the others.
fn exposed(route: Arc<Route>, exposure: Exposure) -> Vec<Arc<Route>> {
    let (secure, action) = match exposure {
        Exposure::All => return vec![route],
        // The proof must be found over plaintext, whatever the rest does.
        Exposure::Insecure(_) | Exposure::Forwarded(_) if route.path.is_acme() => return vec![route],
        Exposure::Insecure(action) => (None, action),
        Exposure::Forwarded(action) => (Some(forwarded_as_https(&route)), action),
    };
    let insecure = match action {
        InsecureAction::Redirect(port) => {
            let redirect = Action::Redirect(Redirect::to_https(port));
            Some(Route { action: redirect, policy: Default::default(), ..Route::clone(&route) })
        }
        InsecureAction::Reject => None,
    };
    secure.into_iter().chain(insecure).map(Arc::new).collect()
}

/// The same route, for requests that a proxy in front forwards as those of HTTPS.
fn forwarded_as_https(route: &Route) -> Route {
    let mut route = route.clone();
    route.conditions.headers.push(HeaderMatch {
        name: HeaderName::forwarded_proto(),
        invert: false,
        value: ValueMatch::Text { text: StringMatch::Exact("https".into()), ignore_case: true },
        missing_is_empty: false,
    });
    Route { conditions: route.conditions.sorted(), ..route }
}

/// What requests get that no other route takes, where routes are left out.
fn unavailable(left_out: &Route) -> Arc<Route> {
    Arc::new(Route {
        path: PathMatch::Prefix(Path::root()),
        conditions: Conditions::default(),
        depth: Depth::AnyLabels,
        action: Action::DirectResponse(DirectResponse::unavailable()),
        policy: Default::default(),
        precedence: Precedence {
            implied: true,
            priority: i32::MIN,
            lengths: Default::default(),
            ..left_out.precedence.clone()
        },
        origin: left_out.origin.object.at(""),
        fraction: None,
        combined: None,
    })
}

#[cfg(test)]
mod tests {
    //! Which hosts take which routes, and how many.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::testing::route;
    use model::{FleetId, ListenerId};
    use std::collections::BTreeMap;

    const ONE: Hosts = Hosts { count: 1, sharing: 0 };

    fn labels(text: &str) -> Labels {
        Labels::new(text.split(',').filter(|label| !label.is_empty()).map(|label| {
            let (name, value) = label.split_once('=').unwrap();
            (name.into(), value.into())
        }))
    }

    fn listener() -> ListenerId {
        ListenerId::http()
    }

    fn pool() -> RoutePool {
        RoutePool { fleet: FleetId::Shared, name: "test" }
    }

    fn shared(hosts: Option<&str>, text: &str) -> SharedRoutes {
        let hosts = hosts.map(|host| Host::parse(host).unwrap());
        SharedRoutes { pool: pool(), hosts, labels: labels(text), routes: vec![route("shared", 1, "/ /")] }
    }

    /// Whether a host that selects by these labels takes routes for these names with those labels: by the keys, as tables do it.
    fn takes(host: &str, selects: Option<&str>, shared: &SharedRoutes) -> bool {
        let selector = RouteSelector {
            listener: listener(),
            host: Host::parse(host).unwrap(),
            pool: "test",
            labels: selects.map(labels),
            exposure: Exposure::All,
        };
        let found: BTreeMap<SharedKey, &SharedRoutes> = keys(shared).into_iter().map(|key| (key, shared)).collect();
        let selected = Selection::of(&selector)
            .filter_map(|selection| select(&selection, ONE, found.get(&selection.key()).copied()))
            .count();
        assert!(selected <= 1, "{host} takes {shared:?} {selected} times");
        selected == 1
    }

    #[test]
    fn names_match_where_they_overlap() {
        let overlap = [
            ("a.example.com", "a.example.com", true),
            ("a.example.com", "b.example.com", false),
            ("a.example.com", "*.example.com", true),
            ("a.b.example.com", "*.example.com", true),
            ("example.com", "*.example.com", false),
            ("a.example.com", "*", true),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "*.b.example.com", true),
            ("*.b.example.com", "*.example.com", true),
            ("*.example.com", "*.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "*", true),
            ("*", "a.example.com", true),
            ("*", "*.example.com", true),
            ("*", "*", true),
        ];
        for (host, names, expected) in overlap {
            assert_eq!(takes(host, None, &shared(Some(names), "")), expected, "{host} and {names}");
        }
    }

    #[test]
    fn names_and_labels_both_have_to_agree_and_one_has_to_be_there() {
        let named = |labels| shared(Some("a.example.com"), labels);
        let unnamed = |labels| shared(None, labels);
        let host = "a.example.com";
        assert!(!takes(host, None, &unnamed("app=x")), "nobody chose");
        assert!(takes(host, Some("app=x"), &unnamed("app=x,tier=y")));
        assert!(takes(host, Some("app=x,tier=y"), &unnamed("app=x,tier=y")));
        assert!(!takes(host, Some("app=x,tier=y"), &unnamed("app=x")), "all labels have to be there");
        assert!(!takes(host, Some("app=x"), &unnamed("app=y")));
        assert!(takes(host, Some(""), &unnamed("app=x")), "a selector without labels selects all");
        assert!(takes(host, Some("app=x"), &named("app=x")));
        assert!(!takes(host, Some("app=x"), &named("app=y")));
        assert!(!takes("b.example.com", Some("app=x"), &named("app=x")));
        assert!(takes(host, None, &named("app=x")));
    }

    #[test]
    fn selections_that_differ_are_told_apart_in_words() {
        let one = Selection { pool: pool(), names: Names::At(Host::Any), labels: None, exposure: Exposure::All };
        let (redirect, reject) = (InsecureAction::Redirect(None), InsecureAction::Reject);
        let wildcard = || Host::parse("*.example.com").unwrap();
        let labelled = |text| Selection { labels: Some(labels(text)), ..one.clone() };
        let named = |names| Selection { names, ..one.clone() };
        let exposed = |exposure| Selection { exposure, ..one.clone() };
        let selections = [
            one.clone(),
            Selection { pool: RoutePool { name: "other", ..pool() }, ..one.clone() },
            Selection { pool: RoutePool { fleet: FleetId::named("a", "b"), ..pool() }, ..one.clone() },
            named(Names::Unnamed),
            named(Names::Below(Host::Any)),
            named(Names::At(wildcard())),
            named(Names::Below(wildcard())),
            labelled(""),
            labelled("app=x"),
            labelled("app=x,tier=y"),
            exposed(Exposure::Insecure(redirect)),
            exposed(Exposure::Insecure(reject)),
            exposed(Exposure::Insecure(InsecureAction::Redirect(Some(8443)))),
            exposed(Exposure::Forwarded(redirect)),
        ];
        let identities: BTreeSet<_> = selections.iter().map(Selection::identity).collect();
        assert_eq!(identities.len(), selections.len(), "{identities:?}");
        assert_eq!(labelled("app=x").identity(), ["shared", "test", "at *", "all", "labels", "app", "x"]);
    }

    #[test]
    fn another_pool_shares_nothing() {
        let pools = [RoutePool { name: "other", ..pool() }, RoutePool { fleet: FleetId::named("a", "b"), ..pool() }];
        for pool in pools {
            assert!(!takes("a.example.com", None, &SharedRoutes { pool, ..shared(Some("*"), "") }));
        }
    }

    #[test]
    fn what_did_not_come_over_https_is_redirected_or_rejected_but_challenges_are_served() {
        let mut all = shared(Some("*"), "");
        all.routes = vec![route("a", 1, "p /a"), route("acme", 1, "p /.well-known/acme-challenge/")];
        let selected = |exposure| {
            let selection = Selection { pool: pool(), names: Names::At(Host::Any), labels: None, exposure };
            let routes = select(&selection, ONE, [&all]).map(|it| it.routes).unwrap_or_default();
            let shown = routes.iter().map(|route| {
                let action = match &route.action {
                    Action::Redirect(redirect) if redirect.is_to_https() => "redirected",
                    _ => "served",
                };
                format!("{}{} {action}", route.origin.object.name, route.conditions)
            });
            shown.collect::<Vec<_>>().join(", ")
        };
        let (redirect, reject) = (InsecureAction::Redirect(None), InsecureAction::Reject);
        assert_eq!(selected(Exposure::All), "a served, acme served");
        assert_eq!(selected(Exposure::Insecure(redirect)), "a redirected, acme served");
        assert_eq!(selected(Exposure::Insecure(reject)), "acme served");
        let forwarded = "a and header x-forwarded-proto served";
        assert_eq!(selected(Exposure::Forwarded(redirect)), format!("{forwarded}, a redirected, acme served"));
        assert_eq!(selected(Exposure::Forwarded(reject)), format!("{forwarded}, acme served"));
    }

    #[test]
    fn the_product_of_hosts_and_routes_is_bounded_and_the_youngest_is_told() {
        let name = |at: usize| format!("{at:05}");
        let many: Vec<_> = (0..=MOST_IN_HOST).map(|at| route(&name(at), at as i64, &format!("= /{at}"))).collect();
        let all = SharedRoutes { routes: many, ..shared(Some("*"), "") };
        let (names, exposure) = (Names::At(Host::Any), Exposure::All);
        let selection = Selection { pool: pool(), names, labels: None, exposure };
        let served = |count, sharing| {
            let selected = select(&selection, Hosts { count, sharing }, [&all]).unwrap();
            let written = selected.routes.iter().filter(|route| !route.precedence.implied).count();
            assert_eq!(selected.routes.len(), written + 1, "and 503 for what is left out");
            (written, selected.lost)
        };
        let (written, lost) = served(1, 0);
        assert_eq!(written, MOST_IN_HOST);
        let told: Vec<_> = lost.iter().map(|verdict| (&*verdict.origin.object.name, verdict.code)).collect();
        assert_eq!(told, [(&*name(MOST_IN_HOST), Code::SharedRoutesLimit)]);
        let (written, lost) = served(10_000, 0);
        assert_eq!((written, lost.len()), (100, MOST_IN_HOST + 1 - 100));
        assert_eq!(served(1_000, 1_000).0, MOST_IN_HOST, "a list that all of them share");
        assert_eq!(served(1_200, 1_000).0, 5_000, "and 200 lists of their own");
        assert_eq!(served(2_000, 2_000).0, 5_000, "references are not for nothing");
        let fits = SharedRoutes { routes: all.routes[1..].to_vec(), ..all.clone() };
        let hosts = Hosts { count: MOST_TOGETHER / MOST_IN_HOST, sharing: 0 };
        assert!(select(&selection, hosts, [&fits]).unwrap().lost.is_empty());
    }
}

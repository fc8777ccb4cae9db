//! How much one root may unfold into.
//!
//! Includes multiply what stands in objects: 700 includes of one child with 700 routes are 490,000 routes out of 90 kB of
//! YAML. So every include, route and condition, and every byte of text that comes of them, is counted for the root as it is
//! made, and nothing is made past a limit: a root costs what is served of it, not what it asked for.
//!
//! The limits lie far above what people have. The largest documented installations of Contour have some 10,000 HTTPProxies
//! in all, an object holds at most 1.5 MB in a cluster, and a proxy that has more than 10,000 routes for a host spends
//! longer on finding one than on the request. At every limit together a root takes about as long as the largest single
//! object that a cluster can hold.
//!
//! A root within its limits is translated as it is written. In one that is not, the root's own routes come first, and each
//! of its includes gets an equal share of the rest: whoever owns one child cannot take the routes of the others away.

use crate::{HttpProxyView, route::RouteDraft};
use kinds::{HttpProxy, Kind, ObjectRef};
use model::route::{Action, PathMatch};
use std::{fmt, sync::Arc};

/// The most includes that are looked at for one root.
pub const INCLUDES: usize = 10_000;
/// The most routes. One that replaces a prefix counts twice, because it has two forms.
pub const ROUTES: usize = 10_000;
/// The most conditions about headers and query parameters, those that includes hand down counted for each child and route.
pub const CONDITIONS: usize = 50_000;
/// The most bytes of text in routes, with what they inherit from includes and from the host: 800 for each of so many routes. They
/// are in memory up to ten times while they are translated, encoded and sent.
pub const BYTES: usize = 8 << 20;
/// The most bytes of objects that are read again, because several includes name them; as they are printed for debugging,
/// which is about 1 kB for a plain route.
pub const READ_AGAIN: usize = 32 << 20;

/// What something takes, or what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub includes: usize,
    pub routes: usize,
    pub conditions: usize,
    pub bytes: usize,
    pub read_again: usize,
}

impl Cost {
    /// What a route takes.
    pub fn of(made: &RouteDraft) -> Self {
        let RouteDraft { path, conditions, action, policy, .. } = made;
        let rewritten = matches!(action, Action::Forward(forward) if forward.rewrite.is_some());
        let routes = if rewritten && matches!(path, PathMatch::Prefix(_)) { 2 } else { 1 };
        let bytes = path.text().len() + conditions.bytes() + policy.bytes() + action.bytes();
        Self { routes, conditions: conditions.count() * routes, bytes: bytes * routes, ..Self::default() }
    }

    /// Which part of it is more than there is.
    fn over(self, left: Self) -> Option<Limit> {
        [
            (self.includes > left.includes, Limit::Includes),
            (self.routes > left.routes, Limit::Routes),
            (self.conditions > left.conditions, Limit::Conditions),
            (self.bytes > left.bytes, Limit::Bytes),
            (self.read_again > left.read_again, Limit::ReadAgain),
        ]
        .into_iter()
        .find_map(|(over, limit)| over.then_some(limit))
    }

    fn take(&mut self, cost: Self) {
        self.includes -= cost.includes;
        self.routes -= cost.routes;
        self.conditions -= cost.conditions;
        self.bytes -= cost.bytes;
        self.read_again -= cost.read_again;
    }

    /// One of equal parts, at least one of each.
    fn part(self, parts: usize) -> Self {
        let part = |whole: usize| (whole / parts.max(1)).max(1);
        Self {
            includes: part(self.includes),
            routes: part(self.routes),
            conditions: part(self.conditions),
            bytes: part(self.bytes),
            read_again: part(self.read_again),
        }
    }
}

/// A limit that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Includes,
    Routes,
    Conditions,
    Bytes,
    ReadAgain,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Includes => write!(f, "{INCLUDES} includes"),
            Limit::Routes => write!(f, "{ROUTES} routes"),
            Limit::Conditions => write!(f, "{CONDITIONS} conditions"),
            Limit::Bytes => write!(f, "{BYTES} bytes of text"),
            Limit::ReadAgain => write!(f, "{READ_AGAIN} bytes of objects that are included more than once"),
        }
    }
}

/// What is left for a root.
pub(crate) struct Budget {
    /// For all of it.
    left: Cost,
    /// For the include of the root that is being followed, and what lies below it.
    branch: Cost,
    /// The limit that was passed there.
    passed: Option<Limit>,
    /// How many of the root's includes share what its own routes leave; nothing if whoever comes first takes it.
    sharers: Option<usize>,
    share: Cost,
}

impl Budget {
    /// Everything, for whoever comes first.
    pub fn whole() -> Self {
        let left =
            Cost { includes: INCLUDES, routes: ROUTES, conditions: CONDITIONS, bytes: BYTES, read_again: READ_AGAIN };
        Self { left, branch: left, passed: None, sharers: None, share: left }
    }

    /// Everything, with equal shares for the root's includes.
    pub fn shared(includes: usize) -> Self {
        Self { sharers: Some(includes.min(INCLUDES)), ..Self::whole() }
    }

    /// Whether includes have shares.
    pub fn is_shared(&self) -> bool {
        self.sharers.is_some()
    }

    /// Takes a cost, or says which limit it passes; from then on nothing can be taken in this branch.
    pub fn spend(&mut self, cost: Cost) -> Result<(), Limit> {
        if let Some(limit) = self.passed.or_else(|| cost.over(self.branch)).or_else(|| cost.over(self.left)) {
            self.passed = Some(limit);
            return Err(limit);
        }
        self.left.take(cost);
        self.branch.take(cost);
        Ok(())
    }

    /// The root's own routes have been made: what is left is for its includes.
    pub fn share_out(&mut self) {
        if let Some(sharers) = self.sharers {
            self.share = self.left.part(sharers);
        }
    }

    /// The next of the root's includes begins.
    pub fn begin_branch(&mut self) {
        if self.is_shared() {
            (self.branch, self.passed) = (self.share, None);
        }
    }
}

/// Whether a root and what it includes have more than so many routes, conditions and includes. Looks at no more than that.
pub fn exceeds(kind: Kind, root: &HttpProxy, view: &mut impl HttpProxyView, limit: usize) -> bool {
    let mut count = 0;
    let mut stack: Vec<Arc<HttpProxy>> = Vec::new();
    let mut next = Some(root);
    let mut current;
    while let Some(object) = next {
        for (_, route) in object.spec.routes.good() {
            count += 1 + route.conditions.len();
            if count > limit {
                return true;
            }
        }
        for (_, include) in object.spec.includes.good() {
            count += 1;
            if count > limit {
                return true;
            }
            let namespace = include.namespace.as_deref().filter(|namespace| !namespace.is_empty());
            let namespace = namespace.unwrap_or(&object.meta.namespace);
            stack.extend(view.proxy(&ObjectRef::new(kind, namespace, &*include.name)));
        }
        current = stack.pop();
        next = current.as_deref();
    }
    false
}

/// How long the entries of an object are: what it takes to read each once more.
pub(crate) struct Sizes {
    pub routes: Vec<usize>,
    pub includes: Vec<usize>,
}

impl Sizes {
    /// Measures an object by what its entries are as text.
    pub fn of(object: &HttpProxy) -> Self {
        let routes = object.spec.routes.iter().map(length).collect();
        let includes = object.spec.includes.iter().map(length).collect();
        Self { routes, includes }
    }
}

fn length(value: &impl fmt::Debug) -> usize {
    struct Count(usize);

    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }

    let mut count = Count(0);
    let _infallible = fmt::Write::write_fmt(&mut count, format_args!("{value:?}"));
    count.0
}

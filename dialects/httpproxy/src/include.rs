//! The tree of children: every object that a root reaches, and the routes of all of them.
//!
//! The walk keeps its own stack, so that no depth of includes can exhaust the program's. What it makes is counted
//! ([`budget`]): where a limit is passed, what an object still has to give is left out, and the requests that
//! it would have taken, by the conditions of its include, are answered 503 rather than by a wider route.
//!
//! [`budget`]: crate::budget

use crate::{
    HttpProxyView, Rejection, Work,
    budget::{Budget, Cost, Limit, Sizes},
    class,
    condition::{self, Scope},
    route::{self, RouteDraft},
    subject,
};
use kinds::{HttpProxy, http_proxy::Include};
use model::{
    Code, FieldPath, ObjectRef,
    route::{Action, DirectResponse},
    translation::Inclusion,
};
use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

/// The deepest that includes may lie in each other.
pub const DEEPEST: usize = 1024;

/// An object of the tree, and how it was reached.
struct Visit {
    object: Arc<HttpProxy>,
    subject: ObjectRef,
    scope: Rc<Scope>,
    depth: usize,
    facts: Rc<Facts>,
    /// Whether it was reached before, on another way.
    again: bool,
    /// The object that includes it, and which of its includes that is.
    parent: Option<(Rc<Visit>, usize)>,
}

/// What is the same for an object on every way to it.
struct Facts {
    /// The includes whose conditions an earlier one has.
    repeated: BTreeSet<usize>,
    /// Whether its routes answer 503, because what would protect them is not there.
    refused: bool,
    sizes: OnceCell<Sizes>,
}

impl Visit {
    /// What it takes to read an entry; nothing for the first time, which every object has.
    fn reading(&self, entry: impl FnOnce(&Sizes) -> &[usize], index: usize) -> usize {
        if !self.again {
            return 0;
        }
        entry(self.facts.sizes.get_or_init(|| Sizes::of(&self.object))).get(index).copied().unwrap_or_default()
    }
}

/// What waits on the stack.
enum Step {
    /// The includes of an object, from this one on.
    Includes(Rc<Visit>, usize),
    /// The object's own routes, after those of its children.
    Routes(Vec<RouteDraft>),
}

/// All routes, those of children before those of their parents.
pub(crate) fn routes(work: &mut Work<'_, impl HttpProxyView>, root: &HttpProxy) -> Vec<RouteDraft> {
    let root = Arc::new(root.clone());
    let before = (work.verdicts.clone(), work.includes.clone(), work.inclusions.clone(), work.pending.clone());
    let made = Walk::new(Budget::whole()).made(work, root.clone()).unwrap_or_else(|| {
        (work.verdicts, work.includes, work.inclusions, work.pending) = before;
        let shared = Budget::shared(root.spec.includes.len());
        Walk::new(shared).made(work, root).unwrap_or_default()
    });
    route::rewrite::both_forms(made)
}

/// A walk over the tree of a root.
struct Walk {
    budget: Budget,
    facts: BTreeMap<ObjectRef, Rc<Facts>>,
    made: Vec<RouteDraft>,
    /// The objects of which something is left out.
    cut: BTreeSet<ObjectRef>,
    /// The first limit that was passed.
    passed: Option<Limit>,
}

impl Walk {
    fn new(budget: Budget) -> Self {
        let (facts, made, cut, passed) = Default::default();
        Self { budget, facts, made, cut, passed }
    }

    /// The routes; nothing where they pass a limit for which nobody has a share yet.
    fn made(mut self, work: &mut Work<'_, impl HttpProxyView>, root: Arc<HttpProxy>) -> Option<Vec<RouteDraft>> {
        let name = subject(work.kind, &root);
        let root = self.visit(work, root, name, Scope::default(), None);
        let own = self.own(work, &root);
        self.budget.share_out();
        let mut stack = vec![Step::Routes(own), Step::Includes(root.clone(), 0)];
        while let Some(step) = stack.pop() {
            if self.passed.is_some() && !self.budget.is_shared() {
                return None;
            }
            match step {
                Step::Routes(own) => self.made.extend(own),
                Step::Includes(visit, index) => self.include(work, visit, index, &mut stack),
            }
        }
        if let Some(limit) = self.passed {
            if !self.budget.is_shared() {
                return None;
            }
            let others = self.cut.iter().filter(|object| **object != root.subject).count();
            let why = format!(
                "it expands into more than {limit}: {others} of the HTTPProxies that it includes are served in part, each \
                 include with an equal share"
            );
            work.report(&root.subject, Rejection::new(code(limit), "spec".into(), why));
        }
        Some(self.made)
    }

    /// One include of an object.
    fn include(
        &mut self,
        work: &mut Work<'_, impl HttpProxyView>,
        visit: Rc<Visit>,
        index: usize,
        stack: &mut Vec<Step>,
    ) {
        let Some(entry) = visit.object.spec.includes.get(index) else { return };
        if visit.depth == 0 {
            self.budget.begin_branch();
        }
        let read_again = visit.reading(|sizes| &sizes.includes, index);
        if let Err(limit) = self.budget.spend(Cost { includes: 1, read_again, ..Cost::default() }) {
            let stand_in = self.cut(work, &visit, &visit.scope, field(index), limit);
            self.made.extend(stand_in);
            return;
        }
        stack.push(Step::Includes(visit.clone(), index + 1));
        let Ok(include) = entry.get() else { return };
        if visit.facts.repeated.contains(&index) {
            let why = "an earlier include has the same conditions";
            work.report(&visit.subject, Rejection::new(Code::ProxyIncludeDuplicate, field(index), why));
            return;
        }
        let Some(scope) = narrowed(work, &visit, include, index) else {
            let part = visit.scope.readable(&include.conditions).filter(|_| !include.conditions.is_empty());
            self.made.extend(part.map(|part| RouteDraft::stand_in(part, true, visit.subject.at(field(index)))));
            return;
        };
        let cost = Cost { conditions: scope.conditions.count(), bytes: scope.bytes(), ..Cost::default() };
        if let Err(limit) = self.budget.spend(cost) {
            let stand_in = self.cut(work, &visit, &scope, field(index), limit);
            self.made.extend(stand_in);
            return;
        }
        match child(work, &visit, include, index) {
            Ok((object, subject)) => {
                work.includes.push(subject.clone());
                let conditions = scope.conditions.clone().sorted();
                let inclusion = scope.path().map(|path| Inclusion { object: subject.clone(), path, conditions });
                work.inclusions.extend(inclusion);
                let visit = self.visit(work, object, subject, scope, Some((visit, index)));
                stack.push(Step::Routes(self.own(work, &visit)));
                stack.push(Step::Includes(visit, 0));
            }
            Err((subject, rejection)) => {
                self.made.extend(bad_gateway(&visit, include, scope, index));
                work.report(&subject, rejection);
            }
        }
    }

    /// An object is reached. What is wrong with it as a whole is told the first time.
    fn visit<V>(
        &mut self,
        work: &mut Work<'_, V>,
        object: Arc<HttpProxy>,
        subject: ObjectRef,
        scope: Scope,
        parent: Option<(Rc<Visit>, usize)>,
    ) -> Rc<Visit> {
        let depth = parent.as_ref().map_or(0, |(parent, _)| parent.depth + 1);
        let known = self.facts.get(&subject).cloned();
        let again = known.is_some();
        let facts = known.unwrap_or_else(|| {
            look_at_whole(work, &object, &subject, depth == 0);
            // What the root itself says holds for the whole host, and was looked at there.
            let refused = depth > 0 && work.look_at_foreign(&object, &subject);
            let facts = Rc::new(Facts { repeated: repeated(&object), refused, sizes: OnceCell::new() });
            self.facts.insert(subject.clone(), facts.clone());
            facts
        });
        Rc::new(Visit { object, subject, scope: Rc::new(scope), depth, facts, again, parent })
    }

    /// The routes of an object. They are made before those of its children, so that these cannot take their room, and
    /// stand behind them.
    fn own(&mut self, work: &mut Work<'_, impl HttpProxyView>, visit: &Visit) -> Vec<RouteDraft> {
        let mut own = Vec::new();
        for (index, entry) in visit.object.spec.routes.iter().enumerate() {
            // Also what cannot be read has to be passed over.
            let read_again = visit.reading(|sizes| &sizes.routes, index);
            let found = self.budget.spend(Cost { read_again, ..Cost::default() }).and_then(|()| {
                let Ok(entry) = entry.get() else { return Ok(None) };
                let made = route::route(work, &visit.object, &visit.subject, &visit.scope, entry, index);
                self.budget.spend(made.as_ref().map(Cost::of).unwrap_or_default()).map(|()| made)
            });
            match found {
                Ok(made) if visit.facts.refused => own.extend(made.map(RouteDraft::refused)),
                Ok(made) => own.extend(made),
                Err(limit) => {
                    let field = FieldPath::from("spec.routes").index(index);
                    own.extend(self.cut(work, visit, &visit.scope, field, limit));
                    break;
                }
            }
        }
        own
    }

    /// From a field on, an object is left out. It is told once, however many ways lead to it. What answers 503 in its place
    /// takes all that lies in `scope`.
    fn cut<V>(
        &mut self,
        work: &mut Work<'_, V>,
        visit: &Visit,
        scope: &Scope,
        from: FieldPath,
        limit: Limit,
    ) -> Option<RouteDraft> {
        self.passed.get_or_insert(limit);
        if !self.budget.is_shared() {
            return None;
        }
        let stand_in = scope.path().map(|path| {
            let part = (path, scope.conditions.clone().sorted());
            RouteDraft::stand_in(part, true, visit.subject.at(from.clone()))
        });
        if self.cut.insert(visit.subject.clone()) {
            let root = std::iter::successors(Some(visit), |visit| Some(&*visit.parent.as_ref()?.0)).last();
            let root = root.map_or_else(String::new, |root| root.subject.to_string());
            let why =
                format!("this and everything after it is omitted: {root} with its includes has more than {limit}");
            work.report(&visit.subject, Rejection::new(code(limit), from, why));
        }
        stand_in
    }
}

fn code(limit: Limit) -> Code {
    match limit {
        Limit::Includes => Code::ProxyIncludeLimit,
        Limit::Routes | Limit::Conditions | Limit::Bytes | Limit::ReadAgain => Code::ProxyExpansionLimit,
    }
}

fn field(index: usize) -> FieldPath {
    FieldPath::from("spec.includes").index(index)
}

/// What is wrong with an object before anything in it is looked at.
fn look_at_whole<V>(work: &mut Work<'_, V>, object: &HttpProxy, subject: &ObjectRef, is_root: bool) {
    let spec = &object.spec;
    for fault in spec.includes.faults().chain(spec.routes.faults()) {
        work.report(subject, fault.into());
    }
    match spec.tcp_proxy.get() {
        Ok(None) if spec.routes.is_empty() && spec.includes.is_empty() => {
            // A root without anything has no use for its host; a child may be filled later.
            let code = if is_root { Code::ProxyEmpty } else { Code::ProxyChildEmpty };
            work.report(subject, Rejection::new(code, "spec".into(), "neither routes nor includes are set"));
        }
        Ok(_) => {}
        Err(fault) => work.report(subject, fault.into()),
    }
}

/// The includes whose conditions an earlier one has. Those that take everything may be repeated: their children have
/// conditions of their own.
fn repeated(object: &HttpProxy) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let keys =
        object.spec.includes.good().filter_map(|(index, include)| Some((index, condition::key(&include.conditions)?)));
    keys.filter(|(_, key)| !seen.insert(key.clone())).map(|(index, _)| index).collect()
}

/// The scope of the child; nothing, and a verdict, where the conditions cannot be used.
fn narrowed<V>(work: &mut Work<'_, V>, visit: &Visit, include: &Include, index: usize) -> Option<Scope> {
    let mut notes = Vec::new();
    let narrowed = visit.scope.narrowed(&include.conditions, &field(index), &mut notes);
    notes.into_iter().for_each(|note| work.report(&visit.subject, note));
    narrowed.map_err(|rejection| work.report(&visit.subject, rejection)).ok()
}

/// The child, if it is there and may be included; else what is in the way, and whose object is told.
fn child(
    work: &mut Work<'_, impl HttpProxyView>,
    visit: &Rc<Visit>,
    include: &Include,
    index: usize,
) -> Result<(Arc<HttpProxy>, ObjectRef), (ObjectRef, Rejection)> {
    let reject = |code, why: String| (visit.subject.clone(), Rejection::new(code, field(index), why));
    let namespace = include.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or(&visit.object.meta.namespace);
    let subject = ObjectRef::new(work.kind, namespace, &*include.name);
    if visit.depth >= DEEPEST {
        let why = format!("{subject} is not included: includes may be nested at most {DEEPEST} levels deep");
        return Err(reject(Code::ProxyIncludeLimit, why));
    }
    let found = work.view.proxy(&subject);
    let Some(object) = found.filter(|object| class::is_ours(object, work.settings)) else {
        let why = format!("{subject} does not exist");
        let rejection = Rejection::new(Code::ProxyIncludeNotFound, field(index).field("name"), why);
        return Err((visit.subject.clone(), rejection.related_to(subject.at(""))));
    };
    if !matches!(object.spec.virtual_host.get(), Ok(None)) {
        let (at, rejection) = reject(Code::ProxyIncludesRoot, format!("{subject} is a root"));
        return Err((at, rejection.related_to(subject.at("spec.virtualhost"))));
    }
    match cycle(visit, index, &subject) {
        Some(rejection) => Err((subject, rejection)),
        None => Ok((object, subject)),
    }
}

/// What is said where an include leads back to an object on the way to it. As in Contour, the one that is met again is told,
/// on its own include that begins the way back to it.
fn cycle(visit: &Rc<Visit>, index: usize, subject: &ObjectRef) -> Option<Rejection> {
    let mut way_back = vec![subject];
    let (mut at, mut index) = (visit, index);
    loop {
        way_back.push(&at.subject);
        if at.subject == *subject {
            way_back.reverse();
            return Some(Rejection::new(Code::ProxyIncludeCycle, field(index), chain(&way_back)));
        }
        let (parent, entered) = at.parent.as_ref()?;
        (at, index) = (parent, *entered);
    }
}

/// A chain of includes that leads back to its beginning, in its order; the middle of a long one is left out.
pub(crate) fn chain(objects: &[&ObjectRef]) -> String {
    let name = |object: &&ObjectRef| format!("{}/{}", object.namespace, object.name);
    let names: Vec<String> = match objects {
        [first @ .., last] if first.len() > NAMED => {
            let left_out = [format!("… {} more …", first.len() - NAMED)];
            first[..NAMED].iter().map(name).chain(left_out).chain([name(last)]).collect()
        }
        all => all.iter().map(name).collect(),
    };
    format!("the includes lead back to it: {}", names.join(" → "))
}

/// How many objects of a cycle a message names.
const NAMED: usize = 8;

/// An include that leads nowhere answers 502 on its conditions; one without conditions leaves the requests to others.
fn bad_gateway(visit: &Visit, include: &Include, scope: Scope, index: usize) -> Option<RouteDraft> {
    if include.conditions.is_empty() {
        return None;
    }
    Some(RouteDraft {
        path: scope.path()?,
        conditions: scope.conditions.sorted(),
        action: Action::DirectResponse(DirectResponse::because(502, Code::RouteNotServed)),
        policy: Default::default(),
        insecure: true,
        implied: false,
        origin: visit.subject.at(field(index)),
    })
}

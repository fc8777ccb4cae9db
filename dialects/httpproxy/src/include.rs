//! The tree of children: every object that a root reaches, and the routes of all of them.
//!
//! The walk keeps its own stack, so that no depth of includes can exhaust the program's; it follows at most [`MOST`]
//! includes, because children that include children twice double with each level.

use crate::{
    HttpProxyView, No, Work, class,
    condition::{self, Scope},
    reference,
    route::{self, Made},
    subject,
};
use kinds::{HttpProxy, http_proxy::Include};
use model::{
    Code, FieldPath, ObjectRef,
    route::{Action, Respond},
};
use std::{collections::BTreeSet, rc::Rc, sync::Arc};

/// The most includes that are followed for one root.
pub const MOST: usize = 10_000;
/// The deepest that includes may lie in each other.
pub const DEEPEST: usize = 1024;

/// An object of the tree, and how it was reached.
struct Visit {
    object: Arc<HttpProxy>,
    subject: ObjectRef,
    scope: Rc<Scope>,
    depth: usize,
    /// The includes whose conditions an earlier one has.
    repeated: BTreeSet<usize>,
    /// The object that includes it, and which of its includes that is.
    parent: Option<(Rc<Visit>, usize)>,
}

/// What waits on the stack.
enum Step {
    /// The includes of an object, from this one on.
    Includes(Rc<Visit>, usize),
    /// The object's own routes, after those of its children.
    Routes(Rc<Visit>),
}

/// All routes, those of children before those of their parents.
pub(crate) fn routes(work: &mut Work<'_, impl HttpProxyView>, root: &HttpProxy) -> Vec<Made> {
    let mut made = Vec::new();
    let mut followed = 0;
    let root = Rc::new(Visit {
        repeated: repeated(root),
        object: Arc::new(root.clone()),
        subject: subject(work.vendor, root),
        scope: Rc::new(Scope::default()),
        depth: 0,
        parent: None,
    });
    let mut stack = vec![Step::Routes(root.clone()), Step::Includes(root, 0)];
    while let Some(step) = stack.pop() {
        let (visit, index) = match step {
            Step::Routes(visit) => {
                own(work, &visit, &mut made);
                continue;
            }
            Step::Includes(visit, index) => (visit, index),
        };
        if index == 0 {
            look_at_whole(work, &visit);
        }
        let Some(entry) = visit.object.spec.includes.get(index) else { continue };
        stack.push(Step::Includes(visit.clone(), index + 1));
        let Ok(include) = entry.get() else { continue };
        if visit.repeated.contains(&index) {
            let why = "an include before this one has the same conditions";
            work.tell(&visit.subject, No::new(Code::ProxyIncludeDuplicate, field(index), why));
            continue;
        }
        let Some(scope) = narrowed(work, &visit, include, index) else {
            let part = visit.scope.readable(&include.conditions).filter(|_| !include.conditions.is_empty());
            made.extend(part.map(|part| Made::stand_in(part, true, visit.subject.at(field(index)))));
            continue;
        };
        followed += 1;
        match child(work, &visit, include, index, followed) {
            Ok((object, subject)) => {
                work.members.push(subject.clone());
                let depth = visit.depth + 1;
                let (repeated, scope) = (repeated(&object), Rc::new(scope));
                let parent = Some((visit, index));
                let visit = Rc::new(Visit { object, subject, scope, depth, repeated, parent });
                stack.push(Step::Routes(visit.clone()));
                stack.push(Step::Includes(visit, 0));
            }
            Err((subject, no)) => {
                made.extend(bad_gateway(&visit, include, scope, index));
                work.tell(&subject, no);
            }
        }
    }
    route::rewrite::both_forms(made)
}

fn field(index: usize) -> FieldPath {
    FieldPath::from("spec.includes").index(index)
}

/// What is wrong with an object before anything in it is looked at.
fn look_at_whole<V>(work: &mut Work<'_, V>, visit: &Visit) {
    let spec = &visit.object.spec;
    for fault in spec.includes.faults().chain(spec.routes.faults()) {
        work.tell(&visit.subject, fault.into());
    }
    match spec.tcp_proxy.get() {
        Ok(None) if spec.routes.is_empty() && spec.includes.is_empty() => {
            // A root without anything has no use for its host; a child may be filled later.
            let code = if visit.parent.is_none() { Code::ProxyEmpty } else { Code::ProxyChildEmpty };
            work.tell(&visit.subject, No::new(code, "spec".into(), "there are neither routes nor includes"));
        }
        Ok(_) => {}
        Err(fault) => work.tell(&visit.subject, fault.into()),
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
    notes.into_iter().for_each(|note| work.tell(&visit.subject, note));
    narrowed.map_err(|no| work.tell(&visit.subject, no)).ok()
}

/// The child, if it is there and may be included; else what is in the way, and whose object is told.
fn child(
    work: &mut Work<'_, impl HttpProxyView>,
    visit: &Rc<Visit>,
    include: &Include,
    index: usize,
    followed: usize,
) -> Result<(Arc<HttpProxy>, ObjectRef), (ObjectRef, No)> {
    let no = |code, why: String| (visit.subject.clone(), No::new(code, field(index), why));
    let namespace = include.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or(&visit.object.meta.namespace);
    let subject = reference(work.vendor, namespace, &include.name);
    if followed > MOST || visit.depth >= DEEPEST {
        let why = format!("{subject} is not followed: at most {MOST} includes, at most {DEEPEST} deep");
        return Err(no(Code::ProxyIncludeLimit, why));
    }
    let found = work.view.proxy(work.vendor, namespace, &include.name);
    let Some(object) = found.filter(|object| class::is_ours(object, work.settings)) else {
        return Err(no(Code::ProxyIncludeNotFound, format!("there is no {subject}")));
    };
    if !matches!(object.spec.virtual_host.get(), Ok(None)) {
        return Err(no(Code::ProxyIncludesRoot, format!("{subject} is a root")));
    }
    match cycle(visit, index, &subject) {
        Some(no) => Err((subject, no)),
        None => Ok((object, subject)),
    }
}

/// What is said where an include leads back to an object on the way to it. As in Contour, the one that is met again is told,
/// on its own include that begins the way back to it.
fn cycle(visit: &Rc<Visit>, index: usize, subject: &ObjectRef) -> Option<No> {
    let mut names = BTreeSet::new();
    let (mut at, mut index) = (visit, index);
    loop {
        if names.len() < 8 {
            names.insert(at.subject.to_string());
        }
        if at.subject == *subject {
            let names: Vec<String> = names.into_iter().collect();
            let why = format!("{subject} includes itself by way of {}", names.join(", "));
            return Some(No::new(Code::ProxyIncludeCycle, field(index), why));
        }
        let (parent, entered) = at.parent.as_ref()?;
        (at, index) = (parent, *entered);
    }
}

/// An include that leads nowhere answers 502 on its conditions; one without conditions leaves the requests to others.
fn bad_gateway(visit: &Visit, include: &Include, scope: Scope, index: usize) -> Option<Made> {
    if include.conditions.is_empty() {
        return None;
    }
    Some(Made {
        path: scope.path(),
        conditions: scope.conditions.sorted(),
        action: Action::Respond(Respond { status: 502, body: "".into() }),
        policy: Default::default(),
        insecure: true,
        implied: false,
        origin: visit.subject.at(field(index)),
    })
}

fn own(work: &mut Work<'_, impl HttpProxyView>, visit: &Visit, made: &mut Vec<Made>) {
    for (index, entry) in visit.object.spec.routes.good() {
        made.extend(route::route(work, &visit.object, &visit.subject, &visit.scope, entry, index));
    }
}

//! Which requests: the conditions of includes and of a route, one after another from the root to the route.
//!
//! A [`Scope`] is what all includes on the way have said. It only ever narrows: prefixes are joined, headers and
//! parameters are added, and a child's pattern is put behind its parents' prefixes as one group, so that nothing in it can
//! reach around them. A prefix or an exact path that no request can have, such as one with a query, is told, and takes nothing.

pub(crate) mod headers;
mod query;

use crate::Rejection;
use kinds::{List, http_proxy::Condition};
use model::{
    Code, FieldPath, Regex,
    route::{Conditions, Path, PathError, PathMatch},
};

/// What a route's requests must fulfil besides the route's own conditions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The prefixes, joined; empty or a path.
    prefix: String,
    /// Whether no request has such a path.
    is_empty: bool,
    pub conditions: Conditions,
}

/// The path condition of a block, and the field that has it.
type Placed<'a> = (PathPart<'a>, FieldPath);

/// The path condition of a block.
enum PathPart<'a> {
    All,
    Prefix(&'a str),
    Exact(&'a str),
    Regex(&'a str),
}

impl Scope {
    /// The scope of what is included under conditions.
    pub fn narrowed(
        &self,
        block: &List<Condition>,
        field: &FieldPath,
        notes: &mut Vec<Rejection>,
    ) -> Result<Self, Rejection> {
        let field = field.field("conditions");
        let (part, at) = path_part(block, &field, Code::ProxyIncludePath)?;
        let prefix = match part {
            PathPart::All => (!self.is_empty).then(|| self.prefix.clone()),
            PathPart::Prefix(prefix) => {
                self.path_behind(prefix, Code::ProxyIncludePath, &at, notes)?.map(|path| path.to_string())
            }
            PathPart::Exact(_) | PathPart::Regex(_) => {
                let why = "an include supports only prefix conditions, not exact or regex";
                return Err(Rejection::new(Code::ProxyIncludePath, at, why));
            }
        };
        let conditions = self.with(block, &field, notes)?;
        Ok(Self { is_empty: prefix.is_none(), prefix: prefix.unwrap_or_default(), conditions })
    }

    /// The match of a route with conditions of its own; nothing where no request has its path.
    pub fn route(
        &self,
        block: &List<Condition>,
        field: &FieldPath,
        notes: &mut Vec<Rejection>,
    ) -> Result<Option<(PathMatch, Conditions)>, Rejection> {
        let field = field.field("conditions");
        let path = self.matched(path_part(block, &field, Code::ProxyRoutePath)?, notes)?;
        let conditions = self.with(block, &field, notes)?;
        Ok(path.map(|path| (path, conditions.sorted())))
    }

    /// What can be read of conditions of which something cannot: all that they mean lies in it. Nothing where the path cannot
    /// be read, or where no request can fulfil what can.
    pub fn readable(&self, block: &List<Condition>) -> Option<(PathMatch, Conditions)> {
        let field = FieldPath::root();
        let part = good_path_part(block, &field, Code::ProxyRoutePath).ok()?;
        if matches!(part.0, PathPart::All) && block.faults().next().is_some() {
            // What could not be read may have been the path.
            return None;
        }
        let (mut conditions, mut notes) = (self.conditions.clone(), Vec::new());
        let path = self.matched(part, &mut notes).ok()??;
        for (_, condition) in block.good() {
            let header = condition.header.as_ref();
            conditions.headers.extend(header.and_then(|it| headers::condition(it, &field, &mut notes).ok()));
            let query = condition.query_parameter.as_ref();
            conditions.query.extend(query.and_then(|it| query::condition(it, &field, &mut notes).ok()));
        }
        headers::agree(&conditions.headers).ok()?;
        query::agree(&conditions.query).ok()?;
        Some((path, conditions.sorted()))
    }

    fn matched(&self, (part, field): Placed<'_>, notes: &mut Vec<Rejection>) -> Result<Option<PathMatch>, Rejection> {
        let code = Code::ProxyRoutePath;
        Ok(match part {
            PathPart::All => self.path(),
            PathPart::Prefix(prefix) => self.path_behind(prefix, code, &field, notes)?.map(PathMatch::Prefix),
            PathPart::Exact(exact) => self.path_behind(exact, code, &field, notes)?.map(PathMatch::Exact),
            PathPart::Regex(pattern) => {
                let pattern = self.pattern(pattern);
                let pattern = pattern.map_err(|why| Rejection::new(Code::ProxyRouteRegex, field, why))?;
                (!self.is_empty).then_some(PathMatch::Regex(pattern))
            }
        })
    }

    /// A path behind the prefixes; nothing where no request has it, which is told unless a prefix is the reason.
    fn path_behind(
        &self,
        text: &str,
        code: Code,
        field: &FieldPath,
        notes: &mut Vec<Rejection>,
    ) -> Result<Option<Path>, Rejection> {
        match Path::parse(&joined(&self.prefix, text)) {
            Ok(path) => Ok((!self.is_empty).then_some(path)),
            Err(PathError::Character(_)) => {
                if !self.is_empty {
                    let why = "no effect: no request has this path, because a path contains no space, control character, `?` or `#`";
                    notes.push(Rejection::new(Code::ProxyIgnored, field.clone(), why));
                }
                Ok(None)
            }
            Err(error) => Err(Rejection::new(code, field.clone(), error.to_string())),
        }
    }

    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        self.prefix.len() + self.conditions.bytes()
    }

    /// Everything in the scope; nothing where no request is in it.
    pub fn path(&self) -> Option<PathMatch> {
        let path = if self.prefix.is_empty() { None } else { Path::parse(&self.prefix).ok() };
        (!self.is_empty).then(|| PathMatch::Prefix(path.unwrap_or_else(Path::root)))
    }

    fn pattern(&self, pattern: &str) -> Result<Regex, String> {
        let own = Regex::parse(pattern).map_err(|error| error.to_string())?;
        match self.prefix.trim_end_matches('/') {
            "" => Ok(own),
            prefix => Regex::parse(&format!("{}(?:{own})", Regex::literal(prefix))).map_err(|error| error.to_string()),
        }
    }

    fn with(
        &self,
        block: &List<Condition>,
        field: &FieldPath,
        notes: &mut Vec<Rejection>,
    ) -> Result<Conditions, Rejection> {
        let mut conditions = self.conditions.clone();
        for (index, condition) in block.good() {
            let field = field.index(index);
            if let Some(header) = &condition.header {
                conditions.headers.push(headers::condition(header, &field.field("header"), notes)?);
            }
            if let Some(query) = &condition.query_parameter {
                conditions.query.push(query::condition(query, &field.field("queryParameter"), notes)?);
            }
        }
        headers::agree(&conditions.headers)
            .map_err(|why| Rejection::new(Code::ProxyRouteHeader, field.clone(), why))?;
        query::agree(&conditions.query).map_err(|why| Rejection::new(Code::ProxyRouteQuery, field.clone(), why))?;
        Ok(conditions)
    }
}

/// The one path condition of a block, wherever it stands in the list.
fn path_part<'a>(block: &'a List<Condition>, field: &FieldPath, code: Code) -> Result<Placed<'a>, Rejection> {
    match block.faults().next() {
        Some(fault) => Err(fault.into()),
        None => good_path_part(block, field, code),
    }
}

/// The same of those conditions that could be read.
fn good_path_part<'a>(block: &'a List<Condition>, field: &FieldPath, code: Code) -> Result<Placed<'a>, Rejection> {
    let mut found = (PathPart::All, field.clone());
    for (index, condition) in block.good() {
        let field = field.index(index);
        let optional = |text: &'a Option<Box<str>>| text.as_deref().filter(|text| !text.is_empty());
        let parts = [
            ("prefix", optional(&condition.prefix).map(PathPart::Prefix)),
            ("exact", optional(&condition.exact).map(PathPart::Exact)),
            ("regex", optional(&condition.regex).map(PathPart::Regex)),
        ];
        for (name, part) in parts {
            let Some(part) = part else { continue };
            let (PathPart::Prefix(text) | PathPart::Exact(text) | PathPart::Regex(text)) = part else { continue };
            if !text.starts_with('/') {
                let why = format!("a {name} condition must begin with `/`");
                return Err(Rejection::new(code, field.field(name), why));
            }
            if !matches!(found.0, PathPart::All) {
                let why = "more than one path condition is set";
                return Err(Rejection::new(code, field.field(name), why));
            }
            found = (part, field.field(name));
        }
    }
    Ok(found)
}

/// One path behind another; several slashes are one.
fn joined(first: &str, second: &str) -> String {
    let mut out = String::with_capacity(first.len() + second.len());
    for c in first.chars().chain(second.chars()) {
        if !(c == '/' && out.ends_with('/')) {
            out.push(c);
        }
    }
    out
}

/// What is equal for two blocks that ask for the same; nothing for one that takes everything.
pub(crate) fn key(block: &List<Condition>) -> Option<String> {
    let mut parts: Vec<String> = block
        .good()
        .flat_map(|(_, condition)| {
            let path = condition.prefix.as_deref().filter(|prefix| !matches!(*prefix, "" | "/"));
            let header = condition.header.as_ref().map(|header| format!("{header:?}"));
            let query = condition.query_parameter.as_ref().map(|query| format!("{query:?}"));
            [path.map(|path| joined("", path)), header, query].into_iter().flatten()
        })
        .collect();
    parts.sort();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

//! Which requests: the conditions of includes and of a route, one after another from the root to the route.
//!
//! A [`Scope`] is what all includes on the way have said. It only ever narrows: prefixes are joined, headers and
//! parameters are added, and a child's pattern is put behind its parents' prefixes as one group, so that nothing in it can
//! reach around them.

pub(crate) mod headers;
mod query;

use crate::Rejection;
use kinds::{List, http_proxy::Condition};
use model::{
    Code, FieldPath, Regex,
    route::{Conditions, Path, PathMatch},
};

/// What a route's requests must fulfil besides the route's own conditions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The prefixes, joined; empty or a path.
    prefix: String,
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
        let reject = |why: &str| Rejection::new(Code::ProxyIncludePath, at.clone(), why);
        let prefix = match part {
            PathPart::All => self.prefix.clone(),
            PathPart::Prefix(prefix) => joined(&self.prefix, prefix),
            PathPart::Exact(_) | PathPart::Regex(_) => {
                return Err(reject("an include supports only prefix conditions, not exact or regex"));
            }
        };
        if !prefix.is_empty() {
            Path::parse(&prefix).map_err(|error| reject(&error.to_string()))?;
        }
        let conditions = self.with(block, &field, notes)?;
        Ok(Self { prefix, conditions })
    }

    /// The match of a route with conditions of its own.
    pub fn route(
        &self,
        block: &List<Condition>,
        field: &FieldPath,
        notes: &mut Vec<Rejection>,
    ) -> Result<(PathMatch, Conditions), Rejection> {
        let field = field.field("conditions");
        let path = self.matched(path_part(block, &field, Code::ProxyRoutePath)?)?;
        let conditions = self.with(block, &field, notes)?;
        Ok((path, conditions.sorted()))
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
        let path = self.matched(part).ok()?;
        let (mut conditions, mut notes) = (self.conditions.clone(), Vec::new());
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

    fn matched(&self, (part, field): Placed<'_>) -> Result<PathMatch, Rejection> {
        let reject = |why: String| Rejection::new(Code::ProxyRoutePath, field.clone(), why);
        let plain = |text: String| Path::parse(&text).map_err(|error| reject(error.to_string()));
        Ok(match part {
            PathPart::All => self.path(),
            PathPart::Prefix(prefix) => PathMatch::Prefix(plain(joined(&self.prefix, prefix))?),
            PathPart::Exact(exact) => PathMatch::Exact(plain(joined(&self.prefix, exact))?),
            PathPart::Regex(pattern) => {
                PathMatch::Regex(self.pattern(pattern).map_err(|why| reject(why).coded(Code::ProxyRouteRegex))?)
            }
        })
    }

    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        self.prefix.len() + self.conditions.bytes()
    }

    /// Everything in the scope.
    pub fn path(&self) -> PathMatch {
        let path = if self.prefix.is_empty() { None } else { Path::parse(&self.prefix).ok() };
        PathMatch::Prefix(path.unwrap_or_else(Path::root))
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

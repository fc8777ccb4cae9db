//! Where in a file an object and its fields stand.
//!
//! An object keeps its [`ObjectLocation`]: the file, the hash of its content, the document. The line and column of a field are
//! found when somebody asks, by reading the file again: errors are few and objects are many. If the file has changed
//! since, only the object's first line is named, which is as much as is still known.
//!
//! Who asks for many fields asks for all of them at once ([`ObjectLocations::locations`]): each file is read once, and each document parsed
//! once, however much is wrong with it.

use crate::{
    Batch, ChangeSource,
    yaml::{self, Limits},
};
use kinds::{Node, ObjectRef, Position, Value};
use model::Code;
use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};
use xxhash_rust::xxh3::xxh3_64;

/// A line longer than this is not shown.
const LONGEST_LINE: usize = 4096;

/// A place in a file, with the line to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, by the path that people know it by.
    pub file: Arc<Path>,
    /// The line and column; the line alone if the column is zero, neither if both are.
    pub position: Position,
    /// The line, unless it is too long or part of a Secret.
    pub excerpt: Option<Excerpt>,
}

/// A line of a file, and the part of it that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line.
    pub line: Box<str>,
    /// Where the part begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        match (line, column) {
            (0, _) => write!(f, "{}", self.file.display()),
            (_, 0) => write!(f, "{}:{line}", self.file.display()),
            _ => write!(f, "{}:{line}:{column}", self.file.display()),
        }
    }
}

impl SourceLocation {
    /// A file as a whole.
    pub fn file(file: Arc<Path>) -> Self {
        Self { file, position: Position::default(), excerpt: None }
    }

    /// A point in a text that is no secret.
    pub fn at(file: Arc<Path>, text: &str, position: Position) -> Self {
        Self::in_text(file, text, position, Part::Point, Redaction::Nothing)
    }

    /// A field of a text that is no secret (`a.b[0]`), or the nearest thing around it that is there.
    pub fn of_value(file: Arc<Path>, text: &str, root: &Node<'_>, field: &str) -> Self {
        let (position, part) = locate(root, field);
        Self::in_text(file, text, position, part, Redaction::Nothing)
    }

    /// The key of such a field: for fields that should not be there.
    pub fn of_key(file: Arc<Path>, text: &str, root: &Node<'_>, field: &str) -> Self {
        let (position, part) = locate_key(root, field);
        Self::in_text(file, text, position, part, Redaction::Nothing)
    }

    /// A place in a text that is at hand.
    pub(crate) fn in_text(file: Arc<Path>, text: &str, position: Position, part: Part, redaction: Redaction) -> Self {
        let line = line_number(position).and_then(|number| text.split('\n').nth(number));
        Self::in_line(file, line, position, part, redaction)
    }

    /// A place in a line that is at hand.
    fn in_line(file: Arc<Path>, line: Option<&str>, position: Position, part: Part, redaction: Redaction) -> Self {
        let excerpt =
            line.filter(|_| redaction != Redaction::Everything).and_then(|line| excerpt(line, position, part));
        let excerpt = excerpt.filter(|excerpt| redaction == Redaction::Nothing || !excerpt.line.contains('{'));
        Self { file, position, excerpt }
    }
}

/// The lines that a position leaves behind it; none for a position that has no line.
fn line_number(position: Position) -> Option<usize> {
    usize::try_from(position.line).ok()?.checked_sub(1)
}

/// Which part of a field is pointed at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldPart {
    /// Its value.
    #[default]
    Value,
    /// Its key: for fields that should not be there.
    Key,
}

impl FieldPart {
    /// The part that a problem is about.
    pub fn of(code: Code) -> Self {
        if code.is_about_key() { FieldPart::Key } else { FieldPart::Value }
    }

    fn locate(self, object: &Node<'_>, field: &str) -> (Position, Part) {
        match self {
            FieldPart::Value => locate(object, field),
            FieldPart::Key => locate_key(object, field),
        }
    }
}

/// Which lines are not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redaction {
    /// Each may be shown.
    Nothing,
    /// Those that may hold more than the object in question: there is a Secret in the same document.
    FlowLines,
    /// None may be shown: it is a Secret.
    Everything,
}

/// Which part of a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A key, up to its colon.
    Key,
    /// A value, as far as it goes on this line.
    Value,
    /// One character.
    Point,
}

fn excerpt(line: &str, position: Position, part: Part) -> Option<Excerpt> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.len() > LONGEST_LINE {
        return None;
    }
    let column = usize::try_from(position.column).ok()?.saturating_sub(1);
    let start = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let end = start + extent(&line[..start], &line[start..], part);
    Some(Excerpt { line: line.into(), start, end })
}

/// How many bytes of `rest` belong to the part that begins it.
fn extent(before: &str, rest: &str, part: Part) -> usize {
    let first = rest.chars().next().map_or(0, char::len_utf8);
    if part == Part::Point || rest.starts_with(['{', '[']) {
        return first;
    }
    if let Some(quote @ ('"' | '\'')) = rest.chars().next() {
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' if quote == '"' => escaped = true,
                c if c == quote => return at + 1,
                _ => {}
            }
        }
        return rest.trim_end().len();
    }
    let in_flow = before.contains(['{', '[']);
    let ends = |at: usize, c: char| match part {
        Part::Key => c == ':',
        _ => (c == '#' && rest[..at].ends_with(' ')) || (in_flow && matches!(c, ',' | '}' | ']')),
    };
    let end = rest.char_indices().find(|&(at, c)| at > 0 && ends(at, c)).map_or(rest.len(), |(at, _)| at);
    rest[..end].trim_end().len().max(first)
}

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    /// Where it is read again.
    pub(crate) path: PathBuf,
    /// What people call it.
    pub(crate) shown: Arc<Path>,
    /// The hash of its content.
    pub(crate) hash: u64,
    /// Its content, where it cannot be read again.
    pub(crate) text: Option<Box<str>>,
}

impl FileVersion {
    /// The text as it was read; nothing if it has changed since.
    fn text(&self) -> Option<Cow<'_, str>> {
        if let Some(text) = &self.text {
            return Some(Cow::Borrowed(text));
        }
        let bytes = std::fs::read(&self.path).ok().filter(|bytes| xxh3_64(bytes) == self.hash)?;
        String::from_utf8(bytes).ok().map(Cow::Owned)
    }
}

/// A text that is known to have its first character: a byte order mark is none.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Where in a file an object stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLocation {
    pub(crate) file: Arc<FileVersion>,
    /// The document in the file.
    pub(crate) document: u32,
    /// The item, if the document is a list.
    pub(crate) item: Option<u32>,
    /// Where the object begins.
    pub(crate) start: Position,
    /// Which of its lines are not shown.
    pub(crate) redaction: Redaction,
}

impl ObjectLocation {
    /// The file, by the path that people know it by.
    pub fn file(&self) -> &Arc<Path> {
        &self.file.shown
    }

    /// Where the object begins.
    pub fn start(&self) -> Position {
        self.start
    }

    /// Where a field stands (`spec.rules[0].host`), or the nearest thing around it that is there. Reads the file.
    pub fn location(&self, field: &str) -> SourceLocation {
        let mut found = locations(vec![(0, self, field, FieldPart::Value)]);
        found.pop().map_or_else(|| self.start_location(), |(_, location)| location)
    }

    /// The line on which the object begins, without looking at it.
    pub(crate) fn start_location(&self) -> SourceLocation {
        SourceLocation {
            position: Position { column: 0, ..self.start },
            ..SourceLocation::file(self.file.shown.clone())
        }
    }

    /// The object in its document.
    fn object<'n, 't>(&self, root: &'n Node<'t>) -> Option<&'n Node<'t>> {
        match (self.item, root.get("items").map(|items| &items.value)) {
            (None, _) => Some(root),
            (Some(item), Some(Value::List(items))) => items.get(usize::try_from(item).ok()?),
            (Some(_), _) => None,
        }
    }
}

/// A field that is looked for: who asks, the object, the field and its part.
type LocationQuery<'w> = (usize, &'w ObjectLocation, &'w str, FieldPart);

/// Where fields stand. Each file is read once and each document parsed once.
fn locations(mut wanted: Vec<LocationQuery<'_>>) -> Vec<(usize, SourceLocation)> {
    let order = |(_, place, ..): &LocationQuery<'_>| (Arc::as_ptr(&place.file), place.document);
    wanted.sort_by_key(order);
    let mut found = Vec::with_capacity(wanted.len());
    for of_file in wanted.chunk_by(|a, b| Arc::ptr_eq(&a.1.file, &b.1.file)) {
        let text = of_file.first().and_then(|(_, place, ..)| place.file.text());
        let text = text.as_deref().map(without_mark).unwrap_or_default();
        let (documents, lines) = (yaml::documents(text), text.split('\n').collect::<Vec<_>>());
        for of_document in of_file.chunk_by(|a, b| a.1.document == b.1.document) {
            let document = of_document.first().and_then(|(_, place, ..)| documents.get(place.document as usize));
            let limits = Limits::default();
            let root = document.and_then(|document| document.parse(&limits, &mut { limits.nodes }).ok()?);
            for &(who, place, field, part) in of_document {
                let location = root.as_ref().and_then(|root| place.object(root)).map(|object| {
                    let (position, part) = part.locate(object, field);
                    let line = line_number(position).and_then(|number| lines.get(number).copied());
                    SourceLocation::in_line(place.file.shown.clone(), line, position, part, place.redaction)
                });
                found.push((who, location.unwrap_or_else(|| place.start_location())));
            }
        }
    }
    found
}

/// Where the field of an object stands, or the nearest thing around it that is there: a value, or the key of a list, a
/// map or nothing at all.
pub(crate) fn locate(object: &Node<'_>, field: &str) -> (Position, Part) {
    match yaml::field::find(object, field) {
        (Some(key), Node { value: Value::Map(_) | Value::List(_) | Value::Null, .. }) => (key, Part::Key),
        (_, Node { value: Value::Map(_), position }) => (*position, Part::Key),
        (_, node) => (node.position, Part::Value),
    }
}

/// Where the key of a field stands: for fields that should not be there.
pub(crate) fn locate_key(object: &Node<'_>, field: &str) -> (Position, Part) {
    match yaml::field::find(object, field) {
        (Some(key), _) => (key, Part::Key),
        (None, node) => (node.position, Part::Value),
    }
}

/// Where all objects stand that came from files: for those who show verdicts to people.
#[derive(Debug, Default)]
pub struct ObjectLocations {
    objects: HashMap<ObjectRef, ObjectLocation>,
}

impl ObjectLocations {
    /// Takes in what a batch says.
    pub fn apply(&mut self, batch: &Batch) {
        for change in &batch.changes {
            match (&change.object, &change.source) {
                (Some(_), ChangeSource::File(place)) => {
                    self.objects.insert(change.key.clone(), place.clone());
                }
                _ => {
                    self.objects.remove(&change.key);
                }
            }
        }
    }

    /// Where something stands that a verdict is about, if it came from a file. Reads the file.
    pub fn location(&self, origin: &model::Origin) -> Option<SourceLocation> {
        Some(self.objects.get(&origin.object)?.location(origin.field.as_str()))
    }

    /// Where fields stand, each as far as its object came from a file. Reads each file once.
    pub fn locations(&self, fields: &[(&model::Origin, FieldPart)]) -> Vec<Option<SourceLocation>> {
        let wanted = fields.iter().enumerate().filter_map(|(who, (origin, part))| {
            Some((who, self.objects.get(&origin.object)?, origin.field.as_str(), *part))
        });
        let mut all = vec![None; fields.len()];
        for (who, location) in locations(wanted.collect()) {
            all[who] = Some(location);
        }
        all
    }

    /// The objects that came from files, in no order.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.objects.keys()
    }
}

#[cfg(test)]
mod tests;

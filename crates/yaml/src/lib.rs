//! YAML (and with it JSON) into trees of values with positions.
//!
//! In: the text of a file. Out: its documents, each parsed by itself, so that a broken one does not take the others with
//! it: a line that begins with `---` ends a document whatever stood before it, so documents can be told apart before
//! anything is parsed.
//!
//! Scalars without quotes become what kubectl makes of them (`yes` is a boolean, `010` is eight), so that a file that works
//! here works there. Untrusted text is bounded in depth and number of values, copies by alias included.

pub mod field;
mod scalar;

use kinds::{Node, Position, Value, node::Key};
use serde_saphyr::granit_parser::{self, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

/// How much one file may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Values in all documents together, those repeated by aliases included.
    pub nodes: usize,
    /// Lists and maps inside each other.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes: 4_000_000, depth: 128 }
    }
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// It is not YAML.
    #[error("{why}")]
    Syntax {
        /// Where.
        position: Position,
        /// What is wrong.
        why: Box<str>,
    },
    /// It passes a limit.
    #[error("{why}")]
    Limit {
        /// Where.
        position: Position,
        /// Which one.
        why: Box<str>,
    },
}

impl YamlError {
    /// Where it went wrong.
    pub fn position(&self) -> Position {
        match self {
            YamlError::Syntax { position, .. } | YamlError::Limit { position, .. } => *position,
        }
    }
}

/// A document: a part of a text that is parsed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'t> {
    /// Its text, with the marker in front.
    pub text: &'t str,
    /// The line of the file on which it begins.
    pub first_line: u32,
}

/// The documents of a text that hold anything, in order.
pub fn documents(text: &str) -> Vec<Document<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut documents = Vec::new();
    let (mut start, mut first_line) = (0, 1);
    let mut end = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let at = end;
        end += line.len();
        if is_marker(line, "---") {
            documents.push(Document { text: &text[start..at], first_line });
            (start, first_line) = (at, number);
        } else if is_marker(line, "...") {
            documents.push(Document { text: &text[start..end], first_line });
            (start, first_line) = (end, number + 1);
        }
    }
    documents.push(Document { text: &text[start..], first_line });
    documents.retain(|document| document.text.lines().any(|line| !is_filler(line)));
    documents
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Whether a line alone makes no document.
fn is_filler(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with(['#', '%']) || line == "---" || line == "..."
}

impl<'t> Document<'t> {
    /// Its value; none if there is nothing but comments. What it holds is taken off `nodes`.
    pub fn parse(&self, limits: &Limits, nodes: &mut usize) -> Result<Option<Node<'t>>, YamlError> {
        let options = granit_parser::options! {
            emit_comments: false,
            // The composer's own limit comes first; this is for what it never gets to see.
            flow_nesting_limit: limits.depth + 8,
            block_nesting_limit: limits.depth + 8,
        };
        let mut composer = Composer {
            parser: Parser::new_from_str_with_options(self.text, options),
            lines_before: self.first_line - 1,
            depth: limits.depth,
            nodes,
            anchors: HashMap::new(),
        };
        composer.document().map_err(|error| self.explained(error))
    }

    /// The two mistakes that people make most, at their place and in words that help: a tab in the indentation, and a `*` without
    /// quotes. The parser notices both, but names the scalar before the tab and an anchor that nobody wrote.
    fn explained(&self, error: YamlError) -> YamlError {
        let YamlError::Syntax { position, why } = &error else { return error };
        let lines: Vec<&str> = self.text.lines().collect();
        let Some(at) = position.line.checked_sub(self.first_line).and_then(|at| usize::try_from(at).ok()) else {
            return error;
        };
        let column = usize::try_from(position.column).unwrap_or(usize::MAX).saturating_sub(1);
        let here: String = lines.get(at).into_iter().flat_map(|line| line.chars().skip(column)).collect();
        if here.starts_with('*') && why.contains("anchor") {
            let why = "`*` begins an alias in YAML, and nothing has that name: put the value in quotes";
            return YamlError::Syntax { position: *position, why: why.into() };
        }
        if self.text.trim_start().starts_with(['{', '[']) {
            return error;
        }
        let tab = |line: &&str| {
            let indentation = &line[..line.len() - line.trim_start().len()];
            indentation.chars().position(|c| c == '\t')
        };
        let near = [Some(at), at.checked_add(1), at.checked_sub(1)];
        let found = near.into_iter().flatten().find_map(|at| Some((at, tab(lines.get(at)?)?)));
        let Some((line, column)) = found else { return error };
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let position = Position { line: self.first_line.saturating_add(number(line)), column: number(column + 1) };
        YamlError::Syntax { position, why: "tab in the indentation, where YAML allows only spaces".into() }
    }
}

/// Whether a map has a key already. Most maps are small enough to look through; a large one is remembered in `seen`.
fn is_repeated<'t>(entries: &[(Key<'t>, Node<'t>)], seen: &mut HashSet<Cow<'t, str>>, key: &Key<'t>) -> bool {
    if entries.len() < 16 {
        return entries.iter().any(|(known, _)| known.text == key.text);
    }
    if seen.is_empty() {
        seen.extend(entries.iter().map(|(known, _)| known.text.clone()));
    }
    !seen.insert(key.text.clone())
}

struct Composer<'t, 'n> {
    parser: Parser<'t, StrInput<'t>>,
    lines_before: u32,
    depth: usize,
    nodes: &'n mut usize,
    /// What anchors stand for; none while it is being read.
    anchors: HashMap<usize, Option<Anchored<'t>>>,
}

/// What an anchor stands for.
struct Anchored<'t> {
    node: Node<'t>,
    /// How much a copy of it costs.
    size: usize,
    /// How many lists and maps are nested in it.
    height: usize,
}

/// How many bytes of text cost as much as a value: each copy of a text by an alias takes memory.
const BYTES_OF_VALUE: usize = 64;

impl<'t> Composer<'t, '_> {
    fn document(&mut self) -> Result<Option<Node<'t>>, YamlError> {
        let mut root = None;
        loop {
            let Some((event, span)) = self.next()? else { return Ok(root) };
            match event {
                Event::StreamEnd => return Ok(root.filter(|node: &Node<'_>| node.value != Value::Null)),
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                _ if root.is_some() => return Err(self.syntax(&span, "a second document begins here without `---`")),
                event => root = Some(self.node(event, span, 0)?.0),
            }
        }
    }

    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, YamlError> {
        self.parser.next_event().transpose().map_err(|error| self.scan_error(&error))
    }

    /// A value, and how many lists and maps are nested in it.
    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<(Node<'t>, usize), YamlError> {
        let position = self.position(&span);
        let before = *self.nodes;
        self.spend(1, &span)?;
        if depth > self.depth {
            return Err(self.too_deep(position));
        }
        let ((value, height), anchor) = match event {
            Event::Alias(id) => return self.alias(id, depth, &span),
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(text.len() / BYTES_OF_VALUE, &span)?;
                ((self.scalar(text, style, tag.as_deref(), &span)?, 0), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.expect_tag(tag.as_deref(), "seq", &span)?;
                self.anchors.insert(anchor, None);
                (self.list(depth)?, anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.expect_tag(tag.as_deref(), "map", &span)?;
                self.anchors.insert(anchor, None);
                (self.map(depth)?, anchor)
            }
            _ => return Err(self.syntax(&span, "expected a value")),
        };
        let node = Node { value, position };
        if anchor != 0 {
            let size = before - *self.nodes;
            self.spend(size, &span)?;
            self.anchors.insert(anchor, Some(Anchored { node: node.clone(), size, height }));
        }
        Ok((node, height))
    }

    fn list(&mut self, depth: usize) -> Result<(Value<'t>, usize), YamlError> {
        let (mut items, mut height) = (Vec::new(), 1);
        while let Some((event, span)) = self.next()? {
            match event {
                Event::SequenceEnd => break,
                event => {
                    let (item, below) = self.node(event, span, depth + 1)?;
                    items.push(item);
                    height = height.max(below + 1);
                }
            }
        }
        Ok((Value::List(items), height))
    }

    fn map(&mut self, depth: usize) -> Result<(Value<'t>, usize), YamlError> {
        let mut height = 1;
        let mut entries: Vec<(Key<'t>, Node<'t>)> = Vec::new();
        let mut merged = Vec::new();
        let mut seen = HashSet::new();
        while let Some((event, span)) = self.next()? {
            let position = self.position(&span);
            let (text, is_merge) = match event {
                Event::MappingEnd => break,
                Event::Scalar(text, style, anchor, _) => {
                    if anchor != 0 {
                        let size = 1 + text.len() / BYTES_OF_VALUE;
                        self.spend(size, &span)?;
                        let node = Node { value: Value::Text(text.clone()), position };
                        self.anchors.insert(anchor, Some(Anchored { node, size, height: 0 }));
                    }
                    let is_merge = style == ScalarStyle::Plain && text == "<<";
                    (text, is_merge)
                }
                Event::Alias(id) => match self.alias(id, depth, &span)?.0.value {
                    Value::Text(text) => (text, false),
                    _ => return Err(self.syntax(&span, "a key must be text")),
                },
                _ => return Err(self.syntax(&span, "a key must be text")),
            };
            let Some((event, value_span)) = self.next()? else { break };
            let (node, below) = self.node(event, value_span, depth + 1)?;
            height = height.max(below + 1);
            if is_merge {
                self.merge(node, &mut merged, &span)?;
                continue;
            }
            let key = Key { position, ..Key::from(text) };
            if is_repeated(&entries, &mut seen, &key) {
                return Err(self.syntax(&span, &format!("duplicate key `{}`", key.text)));
            }
            entries.push((key, node));
        }
        // What is written out wins over what is merged in, and what is merged first over what is merged later.
        for (key, node) in merged {
            if !is_repeated(&entries, &mut seen, &key) {
                entries.push((key, node));
            }
        }
        Ok((Value::Map(entries), height))
    }

    fn merge(&self, node: Node<'t>, merged: &mut Vec<(Key<'t>, Node<'t>)>, span: &Span) -> Result<(), YamlError> {
        let maps = match node.value {
            Value::List(maps) => maps,
            value => vec![value.into()],
        };
        for map in maps {
            match map.value {
                Value::Map(entries) => merged.extend(entries),
                _ => return Err(self.syntax(span, "only maps can be merged by `<<`")),
            }
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, depth: usize, span: &Span) -> Result<(Node<'t>, usize), YamlError> {
        let (size, height) = match self.anchors.get(&id) {
            Some(Some(anchored)) => (anchored.size, anchored.height),
            _ => return Err(self.syntax(span, "the alias is nested in the value that it refers to")),
        };
        self.spend(size, span)?;
        let position = self.position(span);
        if depth + height > self.depth {
            return Err(self.too_deep(position));
        }
        match self.anchors.get(&id) {
            Some(Some(anchored)) => Ok((Node { position, ..anchored.node.clone() }, height)),
            _ => Err(self.syntax(span, "the alias names nothing")),
        }
    }

    fn scalar(
        &self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<Value<'t>, YamlError> {
        let resolved = |text: Cow<'t, str>| scalar::resolve(&text).unwrap_or(Value::Text(text));
        let Some(tag) = tag else {
            return Ok(if style == ScalarStyle::Plain { resolved(text) } else { Value::Text(text) });
        };
        let is_kind = |kind: &str, value: &Value<'_>| {
            matches!(
                (kind, value),
                ("int", Value::Int(_))
                    | ("float", Value::Int(_) | Value::Float(_))
                    | ("bool", Value::Bool(_))
                    | ("null", Value::Null)
            )
        };
        match tag.core_suffix() {
            Some("str") => Ok(Value::Text(text)),
            Some(kind) => match resolved(text) {
                value if is_kind(kind, &value) => Ok(value),
                _ => Err(self.syntax(span, &format!("the value is not what its tag `!!{kind}` says"))),
            },
            None => Err(self.syntax(span, "tags of this sort have no meaning here")),
        }
    }

    fn expect_tag(&self, tag: Option<&Tag>, kind: &str, span: &Span) -> Result<(), YamlError> {
        match tag {
            Some(tag) if tag.core_suffix() != Some(kind) => {
                Err(self.syntax(span, "tags of this sort have no meaning here"))
            }
            _ => Ok(()),
        }
    }

    fn spend(&mut self, nodes: usize, span: &Span) -> Result<(), YamlError> {
        match self.nodes.checked_sub(nodes) {
            Some(left) => {
                *self.nodes = left;
                Ok(())
            }
            None => {
                // Nothing more is read from this file: what is left might just fit, and half a file is none.
                *self.nodes = 0;
                let why = "the file holds too many values, those repeated by aliases included";
                Err(YamlError::Limit { position: self.position(span), why: why.into() })
            }
        }
    }

    fn position(&self, span: &Span) -> Position {
        self.at(span.start.line(), span.start.col())
    }

    fn at(&self, line: usize, column: usize) -> Position {
        let line = u32::try_from(line).unwrap_or(u32::MAX).saturating_add(self.lines_before);
        Position { line, column: u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1) }
    }

    fn syntax(&self, span: &Span, why: &str) -> YamlError {
        YamlError::Syntax { position: self.position(span), why: why.into() }
    }

    fn too_deep(&self, position: Position) -> YamlError {
        let why = format!("lists and maps are nested more than {} deep", self.depth);
        YamlError::Limit { position, why: why.into() }
    }

    fn scan_error(&self, error: &ScanError) -> YamlError {
        let position = self.at(error.marker().line(), error.marker().col());
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            return self.too_deep(position);
        }
        YamlError::Syntax { position, why: error.info().into() }
    }
}

#[cfg(test)]
mod tests;

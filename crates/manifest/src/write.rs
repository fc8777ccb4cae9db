//! The walk over the tree, for YAML and for the templates of a chart.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::scalar::{below, scalar, value as block_of};
use crate::tree::{Document, Each, Field, FieldContent, Item, ItemContent, Node, Piece, When};

/// What settings are, for plain YAML.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    /// The settings, as a tree.
    pub settings: &'a Value,
    /// The namespace that is installed into.
    pub namespace: &'a str,
}

impl Values<'_> {
    /// The value of a setting; null if there is none.
    pub fn get(&self, path: &str) -> &Value {
        path.split('.').fold(self.settings, |value, key| &value[key])
    }
}

/// The defaults of settings, for a template: the type of each decides how it is written.
#[derive(Clone, Copy, Debug)]
pub struct Defaults<'a>(pub &'a Value);

#[derive(Clone)]
enum Output<'a> {
    Yaml(Values<'a>, BTreeMap<&'static str, Value>),
    Template(Values<'a>),
}

/// The documents with the settings filled in.
pub fn yaml(documents: &[Document], values: Values<'_>) -> String {
    let mut out = String::new();
    for document in documents {
        let mut output = Output::Yaml(values, BTreeMap::new());
        if !output.holds(document.when.as_ref()) {
            continue;
        }
        for variables in repeated(document.each.as_ref(), &values) {
            output = Output::Yaml(values, variables);
            output.document(document, &mut out);
        }
    }
    out
}

/// The documents as the text of a template.
pub fn template(documents: &[Document], defaults: Defaults<'_>) -> String {
    let output = Output::Template(Values { settings: defaults.0, namespace: "" });
    let mut out = String::new();
    for document in documents {
        let mut ends = 0;
        if let Some(when) = &document.when {
            let _infallible = writeln!(out, "{{{{- if {} }}}}", condition(when));
            ends += 1;
        }
        let range = match &document.each {
            Some(Each::Item { list, variable }) => Some(format!("${variable} := $.Values.{list}")),
            Some(Each::Entry { map, key, value }) => Some(format!("${key}, ${value} := $.Values.{map}")),
            None => None,
        };
        if let Some(range) = range {
            let _infallible = writeln!(out, "{{{{- range {range} }}}}");
            ends += 1;
        }
        output.document(document, &mut out);
        out.push_str(&"{{- end }}\n".repeat(ends));
    }
    out
}

/// The variables of each repetition.
fn repeated(each: Option<&Each>, values: &Values<'_>) -> Vec<BTreeMap<&'static str, Value>> {
    match each {
        None => vec![BTreeMap::new()],
        Some(Each::Item { list, variable }) => {
            let items = values.get(list).as_array().into_iter().flatten();
            items.map(|item| BTreeMap::from([(*variable, item.clone())])).collect()
        }
        Some(Each::Entry { map, key, value }) => {
            let entries = values.get(map).as_object().into_iter().flatten();
            entries.map(|(name, held)| BTreeMap::from([(*key, name.as_str().into()), (*value, held.clone())])).collect()
        }
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn condition(when: &When) -> String {
    match when {
        When::Set(path) => format!("$.Values.{path}"),
        When::Equals(path, text) => format!("(eq $.Values.{path} {text:?})"),
        When::Differs(path, text) => format!("(ne $.Values.{path} {text:?})"),
        When::All(all) => {
            let all: Vec<String> = all.iter().map(condition).collect();
            format!("(and {})", all.join(" "))
        }
        When::Not(when) => format!("(not {})", condition(when)),
    }
}

fn evaluate(when: &When, values: &Values<'_>) -> bool {
    match when {
        When::Set(path) => is_set(values.get(path)),
        When::Equals(path, text) => values.get(path) == text,
        When::Differs(path, text) => values.get(path) != text,
        When::All(all) => all.iter().all(|when| evaluate(when, values)),
        When::Not(when) => !evaluate(when, values),
    }
}

fn comment(text: &str, depth: usize, out: &mut String) {
    for line in text.lines() {
        let _infallible = writeln!(out, "{}# {line}", "  ".repeat(depth));
    }
}

impl Output<'_> {
    /// Whether something is written: in a template everything is, and the condition with it.
    fn holds(&self, when: Option<&When>) -> bool {
        match (self, when) {
            (Output::Yaml(values, _), Some(when)) => evaluate(when, values),
            _ => true,
        }
    }

    fn document(&self, document: &Document, out: &mut String) {
        out.push_str("---\n");
        comment(&document.comment, 0, out);
        self.fields(&document.fields, 0, out);
    }

    /// Writes something that may depend on a condition.
    fn conditional(&self, when: Option<&When>, depth: usize, out: &mut String, write: impl FnOnce(&mut String)) {
        match (self, when) {
            (Output::Template(_), Some(when)) => {
                let indent = "  ".repeat(depth);
                let _infallible = writeln!(out, "{indent}{{{{- if {} }}}}", condition(when));
                write(out);
                let _infallible = writeln!(out, "{indent}{{{{- end }}}}");
            }
            _ if self.holds(when) => write(out),
            _ => {}
        }
    }

    fn fields(&self, fields: &[Field], depth: usize, out: &mut String) {
        for field in fields {
            self.conditional(field.when.as_ref(), depth, out, |out| {
                comment(&field.comment, depth, out);
                match &field.content {
                    FieldContent::One(key, node) => {
                        let key = scalar(&Value::from(key.as_str()));
                        let _infallible = write!(out, "{}{key}:", "  ".repeat(depth));
                        self.after_key(node, depth, out);
                    }
                    FieldContent::Entries(path) => self.spliced(path, depth, out),
                }
            });
        }
    }

    fn items(&self, items: &[Item], depth: usize, out: &mut String) {
        for item in items {
            self.conditional(item.when.as_ref(), depth, out, |out| {
                comment(&item.comment, depth, out);
                match &item.content {
                    ItemContent::One(Node::Map(fields)) => {
                        let mut text = String::new();
                        self.fields(fields, depth + 1, &mut text);
                        let _infallible = write!(out, "{}- {}", "  ".repeat(depth), text.trim_start());
                    }
                    ItemContent::One(node) => {
                        let _infallible = write!(out, "{}-", "  ".repeat(depth));
                        self.after_key(node, depth, out);
                    }
                    ItemContent::Items(path) => self.spliced(path, depth, out),
                }
            });
        }
    }

    fn after_key(&self, node: &Node, depth: usize, out: &mut String) {
        match node {
            Node::Literal(value) => {
                let mut text = String::new();
                below(value, depth, &mut text);
                match self {
                    Output::Yaml(..) => out.push_str(&text),
                    // Braces of others, such as those of alerts, are not Helm's.
                    Output::Template(_) => out.push_str(&text.replace("{{", "{{ \"{{\" }}")),
                }
            }
            Node::Map(fields) => {
                out.push('\n');
                self.fields(fields, depth + 1, out);
            }
            Node::List(items) => {
                out.push('\n');
                self.items(items, depth, out);
            }
            Node::Text(pieces) => {
                let _infallible = writeln!(out, " {}", self.text(pieces));
            }
            Node::Setting(path) => self.setting(path, depth, out),
            Node::Variable(name) => match self {
                Output::Yaml(_, variables) => below(variables.get(name).unwrap_or(&Value::Null), depth, out),
                Output::Template(_) => {
                    let _infallible =
                        writeln!(out, "\n{}{{{{- toYaml ${name} | nindent {} }}}}", "  ".repeat(depth), 2 * depth);
                }
            },
            Node::Block(path) => match self {
                Output::Yaml(values, _) => {
                    out.push_str(" |\n");
                    block_of(values.get(path), depth + 1, out);
                }
                Output::Template(_) => {
                    let indent = 2 * (depth + 1);
                    let _infallible =
                        writeln!(out, " |\n{}{{{{- toYaml $.Values.{path} | nindent {indent} }}}}", "  ".repeat(depth));
                }
            },
        }
    }

    fn setting(&self, path: &str, depth: usize, out: &mut String) {
        let values = match self {
            Output::Yaml(values, _) => return below(values.get(path), depth, out),
            Output::Template(values) => values,
        };
        let _infallible = match values.get(path) {
            Value::Object(_) => {
                let (indent, deeper) = ("  ".repeat(depth), 2 * (depth + 1));
                writeln!(out, "\n{indent}{{{{- toYaml $.Values.{path} | nindent {deeper} }}}}")
            }
            Value::Array(_) => {
                writeln!(out, "\n{}{{{{- toYaml $.Values.{path} | nindent {} }}}}", "  ".repeat(depth), 2 * depth)
            }
            Value::Number(_) => writeln!(out, " {{{{ int $.Values.{path} }}}}"),
            Value::String(_) => writeln!(out, " {{{{ $.Values.{path} | quote }}}}"),
            _ => writeln!(out, " {{{{ $.Values.{path} }}}}"),
        };
    }

    /// The entries or items of a setting among others.
    fn spliced(&self, path: &str, depth: usize, out: &mut String) {
        match self {
            Output::Yaml(values, _) if is_set(values.get(path)) => block_of(values.get(path), depth, out),
            Output::Yaml(..) => {}
            Output::Template(_) => {
                let (indent, spaces) = ("  ".repeat(depth), 2 * depth);
                let _infallible = writeln!(
                    out,
                    "{indent}{{{{- with $.Values.{path} }}}}\n{indent}{{{{- toYaml . | nindent {spaces} }}}}\n{indent}{{{{- end }}}}"
                );
            }
        }
    }

    fn text(&self, pieces: &[Piece]) -> String {
        match self {
            Output::Yaml(values, variables) => {
                let piece = |piece: &Piece| match piece {
                    Piece::Word(word) => word.clone(),
                    Piece::Setting(path) => bare(values.get(path)),
                    Piece::Joined(path) => {
                        let items = values.get(path).as_array().into_iter().flatten();
                        items.map(bare).collect::<Vec<_>>().join(",")
                    }
                    Piece::Namespace => values.namespace.to_owned(),
                    Piece::Variable(name) => variables.get(name).map(bare).unwrap_or_default(),
                    Piece::Helper(_, plain) => plain(values),
                };
                scalar(&Value::String(pieces.iter().map(piece).collect()))
            }
            Output::Template(values) => {
                let (mut format, mut arguments) = (String::new(), String::new());
                for piece in pieces {
                    let argument = match piece {
                        Piece::Word(word) => {
                            format.push_str(&word.replace('%', "%%"));
                            continue;
                        }
                        Piece::Setting(path) if values.get(path).is_number() => format!("(int $.Values.{path})"),
                        Piece::Setting(path) => format!("$.Values.{path}"),
                        Piece::Joined(path) => format!("(join \",\" $.Values.{path})"),
                        Piece::Namespace => "$.Release.Namespace".to_owned(),
                        Piece::Variable(name) => format!("${name}"),
                        Piece::Helper(name, _) => format!("(include {name:?} $)"),
                    };
                    format.push_str("%v");
                    let _infallible = write!(arguments, " {argument}");
                }
                format!("{{{{ printf {format:?}{arguments} | quote }}}}")
            }
        }
    }
}

/// A value inside a string.
fn bare(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

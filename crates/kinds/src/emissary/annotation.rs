//! Objects in the annotation `getambassador.io/config` of a Service or Ingress.
//!
//! In: a document of the annotation, in one of its forms. Out: the tree of an object as an API server would hand it out. In the
//! flat form `name`, `namespace`, `generation` and `metadata_labels` stand for metadata, and every other field for one of `spec`.

use super::GROUP;
use crate::{Kind, Meta, Node, Value, kind, node::Key};
use jiff::Timestamp;
use std::{borrow::Cow, collections::HashSet};

/// The annotation.
pub const ANNOTATION: &str = "getambassador.io/config";

/// The group that annotations had before `getambassador.io`.
const FORMER_GROUP: &str = "ambassador";

/// By how many seconds an object in an annotation is younger than the annotated object: a thousand years.
const YOUNGER: i64 = 1000 * 365 * 24 * 60 * 60;

/// The kind of a document; none if it is no kind of this group, or not in a version that is read.
pub fn kind_of(document: &Node<'_>) -> Option<Kind> {
    let name = document.get("kind").and_then(Node::text)?;
    kind::of(&api_version(document)?, name).filter(|kind| kind.group() == GROUP)
}

fn api_version<'n>(document: &'n Node<'_>) -> Option<Cow<'n, str>> {
    let written = document.get("apiVersion").and_then(Node::text)?;
    Some(match written.split_once('/') {
        Some((FORMER_GROUP, version)) => format!("{GROUP}/{version}").into(),
        _ => written.into(),
    })
}

/// The document as an object. Where the document is silent, namespace and labels are those of the annotated object. Whatever the document
/// says, it is younger than every object of its own: the older of two that conflict wins.
pub fn unfold<'a>(document: &Node<'a>, annotated: &Meta) -> Node<'a> {
    let Value::Map(fields) = &document.value else { return document.clone() };
    let text = |text: &str| Node::from(Value::Text(text.to_owned().into()));
    let (mut header, mut metadata, mut spec) = (Vec::new(), Vec::new(), Vec::new());
    let mut broken_spec = None;
    for (key, node) in fields {
        match (&*key.text, &node.value) {
            ("apiVersion", _) => {
                let version = api_version(document).map(Cow::into_owned).unwrap_or_default();
                header.push((key.clone(), text(&version)));
            }
            ("kind" | "status", _) => header.push((key.clone(), node.clone())),
            ("metadata", Value::Map(fields)) => metadata.extend(fields.iter().cloned()),
            ("spec", Value::Map(fields)) => spec.extend(fields.iter().cloned()),
            ("metadata" | "spec", Value::Null) => {}
            ("spec", _) => broken_spec = Some(node.clone()),
            _ => {}
        }
    }
    let overridden: HashSet<(Part, &str)> = fields.iter().filter_map(|(key, _)| flat(&key.text)).collect();
    metadata.retain(|(key, _): &(Key<'a>, Node<'a>)| !overridden.contains(&(Part::Metadata, &*key.text)));
    spec.retain(|(key, _): &(Key<'a>, Node<'a>)| !overridden.contains(&(Part::Spec, &*key.text)));
    for (key, node) in fields {
        let Some((part, name)) = flat(&key.text) else { continue };
        let into = if part == Part::Metadata { &mut metadata } else { &mut spec };
        into.push((Key { text: name.to_owned().into(), ..key.clone() }, node.clone()));
    }
    let is_given = |metadata: &[(Key<'a>, Node<'a>)], name: &str| {
        metadata.iter().any(|(key, node)| key.text == name && node.value != Value::Null && node.text() != Some(""))
    };
    metadata.retain(|(key, _)| ["name", "namespace", "labels", "annotations", "generation"].contains(&&*key.text));
    if !is_given(&metadata, "namespace") {
        metadata.retain(|(key, _)| key.text != "namespace");
        metadata.push((Key::from("namespace"), text(&annotated.namespace)));
    }
    if !is_given(&metadata, "labels") {
        let labels = annotated.labels.iter().filter_map(|(name, value)| Some((name.to_owned(), value.ok()?)));
        let labels = labels.map(|(name, value)| (Key::from(Cow::Owned(name)), text(value))).collect();
        metadata.retain(|(key, _)| key.text != "labels");
        metadata.push((Key::from("labels"), Value::Map(labels).into()));
    }
    metadata.push((Key::from("creationTimestamp"), text(&younger(annotated.created).to_string())));
    header.push((Key::from("metadata"), Value::Map(metadata).into()));
    header.push((Key::from("spec"), broken_spec.unwrap_or_else(|| Value::Map(spec).into())));
    Node { value: Value::Map(header), position: document.position }
}

/// A part of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Metadata,
    Spec,
}

/// Which field of an object a field of the flat form is.
fn flat(name: &str) -> Option<(Part, &str)> {
    match name {
        "apiVersion" | "kind" | "metadata" | "spec" | "status" => None,
        "name" | "namespace" | "generation" => Some((Part::Metadata, name)),
        "metadata_labels" => Some((Part::Metadata, "labels")),
        _ => Some((Part::Spec, name)),
    }
}

/// When an object in an annotation counts as created, so that nobody who may only edit an old Service takes the place of an object of the
/// API server. Of two in annotations, that of the older annotated object is older.
fn younger(annotated: Option<Timestamp>) -> Timestamp {
    let created = annotated.map_or(0, |time| time.as_second());
    Timestamp::from_second(created.saturating_add(YOUNGER)).unwrap_or(Timestamp::MAX)
}

//! The annotation `getambassador.io/config` of Services and Ingresses: the objects in it, and what is wrong with them.
//!
//! The annotation is text that anybody who may edit a Service can write: its size, its documents and the values in them are
//! bounded, and an object in it stays in the namespace of the annotated object, where the one who wrote it has rights. Kinds of which
//! one object holds for the whole instance are taken from Sesame's namespace alone.

use super::is_ours;
use crate::{objects::Objects, settings::ForEmissary};
use dialect_emissary::Settings;
use engine::{Derived, Index, Reads, Table};
use kinds::{
    Decoded, Ingress, Kind, Meta, Node, Object, Position, Service, Value,
    emissary::annotation::{ANNOTATION, kind_of, unfold},
    kind,
};
use model::{Code, FieldPath, ObjectRef, Verdict, VerdictList};
use yaml::{Document, Limits, YamlError, field};

/// The most bytes of an annotation that are read: what all annotations of an object may have in an API server.
const MOST_BYTES: usize = 256 * 1024;

/// The most objects of one annotation.
pub const MOST_OBJECTS: usize = 500;

/// The most bad values that are told about one object.
const MOST_FAULTS: usize = 10;

/// How much an annotation may hold.
const LIMITS: Limits = Limits { nodes: 100_000, depth: 64 };

/// The kinds of which one object holds for the requests of all namespaces. Listener is not among them: one more takes nothing from
/// the others, which are older than those in annotations.
const INSTANCE_WIDE: [Kind; 5] =
    [kind::MODULE, kind::AUTH_SERVICE, kind::RATE_LIMIT_SERVICE, kind::TRACING_SERVICE, kind::LOG_SERVICE];

/// Services with the annotation.
pub struct AnnotatedServices;

impl Index for AnnotatedServices {
    type Of = Objects<Service>;
    type Key = ObjectRef;
    const NAME: &'static str = "with objects in an annotation";

    fn keys(key: &ObjectRef, service: &Service) -> impl IntoIterator<Item = ObjectRef> {
        is_annotated(&service.meta).then(|| key.clone())
    }
}

/// Ingresses with the annotation.
pub struct AnnotatedIngresses;

impl Index for AnnotatedIngresses {
    type Of = Objects<Ingress>;
    type Key = ObjectRef;
    const NAME: &'static str = "with objects in an annotation";

    fn keys(key: &ObjectRef, ingress: &Ingress) -> impl IntoIterator<Item = ObjectRef> {
        is_annotated(&ingress.meta).then(|| key.clone())
    }
}

fn is_annotated(meta: &Meta) -> bool {
    !matches!(meta.annotations.get(ANNOTATION), Ok(None))
}

/// An object in an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationObject {
    /// The object.
    pub object: Object,
    /// Which document of the annotation it is.
    pub document: usize,
}

/// The objects in one annotation, by key, and the verdicts about documents that are no objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotationContent {
    /// The objects; sorted by key, each once.
    objects: Vec<(ObjectRef, AnnotationObject)>,
    /// What is reported on the annotated object.
    pub verdicts: Vec<Verdict>,
}

impl AnnotationContent {
    /// An object by its key.
    pub fn find(&self, key: &ObjectRef) -> Option<&AnnotationObject> {
        let found = self.objects.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
        self.objects.get(found).map(|(_, object)| object)
    }

    /// Its objects.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectRef, &AnnotationObject)> {
        self.objects.iter().map(|(key, object)| (key, object))
    }
}

/// The objects in the annotation of each Service or Ingress that has it.
pub struct AnnotationObjects;

impl Table for AnnotationObjects {
    type Key = ObjectRef;
    type Value = AnnotationContent;
    const NAME: &'static str = "objects in annotations";
}

impl Derived for AnnotationObjects {
    fn compute(&self, annotated: &ObjectRef, reads: &mut Reads<'_>) -> Option<AnnotationContent> {
        let settings = reads.get::<ForEmissary>(&())?;
        Some(read(annotated, meta(annotated, reads)?, settings))
    }
}

/// Objects in annotations by their key.
pub struct AnnotationObjectsByKey;

impl Index for AnnotationObjectsByKey {
    type Of = AnnotationObjects;
    type Key = ObjectRef;
    const NAME: &'static str = "by object";

    fn keys(_: &ObjectRef, content: &AnnotationContent) -> impl IntoIterator<Item = ObjectRef> {
        content.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>()
    }
}

/// The metadata of an annotated object.
pub fn meta<'r>(annotated: &ObjectRef, reads: &mut Reads<'r>) -> Option<&'r Meta> {
    match annotated.kind == kind::SERVICE {
        true => reads.get::<Objects<Service>>(annotated).map(|service| &service.meta),
        false => reads.get::<Objects<Ingress>>(annotated).map(|ingress| &ingress.meta),
    }
}

/// An annotation that has been read, for the lines of its fields. Its documents share the limit of values that held when it was read:
/// each can be parsed once more.
pub struct AnnotationLines<'m> {
    documents: Vec<Document<'m>>,
    nodes: usize,
}

impl<'m> AnnotationLines<'m> {
    /// The annotation of an object.
    pub fn of(meta: &'m Meta) -> Self {
        let text = meta.annotations.get(ANNOTATION).ok().flatten().map_or("", |text| &**text);
        Self { documents: yaml::documents(bounded(text)), nodes: LIMITS.nodes }
    }

    /// One of its documents, parsed.
    pub fn document(&mut self, index: usize) -> DocumentLines<'m> {
        let parsed = self.documents.get(index).map(|document| document.parse(&LIMITS, &mut self.nodes));
        DocumentLines(parsed.and_then(|parsed| parsed.ok().flatten()))
    }
}

/// A document of an annotation, for the lines of its fields.
pub struct DocumentLines<'m>(Option<Node<'m>>);

impl DocumentLines<'_> {
    /// The line of a field, or of the last one on the way to it.
    pub fn line_of(&self, field: &str) -> u32 {
        self.0.as_ref().map_or(0, |node| position(node, field).line)
    }
}

/// The position of a field of an object; in the flat form the fields of `spec` and `metadata` stand at the top.
fn position(document: &Node<'_>, field: &str) -> Position {
    let flat = ["spec.", "metadata."].into_iter().find_map(|prefix| field.strip_prefix(prefix)).unwrap_or(field);
    let field = if field::exists(document, field) { field } else { flat };
    let (key, node) = field::find(document, field);
    key.unwrap_or(node.position)
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_BYTES)]
}

/// Reads the objects in an annotation.
fn read(annotated: &ObjectRef, meta: &Meta, settings: &Settings) -> AnnotationContent {
    let text = match meta.annotations.get(ANNOTATION) {
        Ok(Some(text)) => text,
        Ok(None) => return AnnotationContent::default(),
        Err(fault) => {
            let verdict = Verdict::new(Code::EmissaryAnnotation, origin(annotated), &*fault.why);
            return AnnotationContent { objects: Vec::new(), verdicts: vec![verdict] };
        }
    };
    let mut reader = Reader { annotated, meta, settings, objects: Vec::new(), verdicts: VerdictList::default() };
    if text.len() > MOST_BYTES {
        reader.report(Code::EmissaryAnnotationLimit, None, format!("it has more than {} KiB", MOST_BYTES / 1024));
    }
    let documents = yaml::documents(bounded(text));
    if documents.len() > MOST_OBJECTS {
        reader.report(Code::EmissaryAnnotationLimit, None, format!("it has more than {MOST_OBJECTS} objects"));
    }
    let mut nodes = LIMITS.nodes;
    for (index, document) in documents.iter().take(MOST_OBJECTS).enumerate() {
        match document.parse(&LIMITS, &mut nodes) {
            Ok(None) => {}
            Ok(Some(node)) => reader.document(index, &node),
            Err(error) => {
                let code = match error {
                    YamlError::Syntax { .. } => Code::EmissaryAnnotation,
                    YamlError::Limit { .. } => Code::EmissaryAnnotationLimit,
                };
                reader.report(code, Some(error.position()), error.to_string());
            }
        }
    }
    let Reader { mut objects, verdicts, .. } = reader;
    objects.sort_by(|(a, _), (b, _)| a.cmp(b));
    AnnotationContent { objects, verdicts: verdicts.into_sorted() }
}

/// Where everything about an annotation is told.
pub fn origin(annotated: &ObjectRef) -> model::Origin {
    annotated.at(FieldPath::annotation(ANNOTATION))
}

struct Reader<'a> {
    annotated: &'a ObjectRef,
    meta: &'a Meta,
    settings: &'a Settings,
    objects: Vec<(ObjectRef, AnnotationObject)>,
    verdicts: VerdictList,
}

impl Reader<'_> {
    fn report(&mut self, code: Code, position: Option<Position>, why: impl Into<String>) {
        let why = why.into();
        let why = position.map_or_else(|| why.clone(), |position| format!("line {}: {why}", position.line));
        self.verdicts.push(Verdict::new(code, origin(self.annotated), why));
    }

    fn document(&mut self, index: usize, node: &Node<'_>) {
        if !matches!(node.value, Value::Map(_)) {
            let why = format!("expected an object with apiVersion and kind, found {}", node.describe());
            return self.report(Code::EmissaryAnnotation, Some(node.position), why);
        }
        let Some(kind) = kind_of(node) else {
            let word = |name: &str| node.get(name).and_then(Node::text).filter(|text| !text.is_empty()).map(shortened);
            let (version, kind) = (word("apiVersion"), word("kind"));
            let why = format!(
                "{} of {} is not read",
                kind.as_deref().unwrap_or("an object without `kind`"),
                version.as_deref().unwrap_or("no `apiVersion`")
            );
            return self.report(Code::EmissaryAnnotationKind, Some(node.position), why);
        };
        let Decoded { object, faults, unknown } = match kinds::decode(kind, &unfold(node, self.meta)) {
            Ok(decoded) => decoded,
            Err(error) => {
                let why = format!("{kind}: {error}");
                return self.report(Code::EmissaryAnnotationValue, Some(position(node, error.path())), why);
            }
        };
        let key = object.key();
        for fault in faults.iter().take(MOST_FAULTS) {
            let why = format!("{kind} {} {}: {}", key.name, fault.path, fault.why);
            self.report(Code::EmissaryAnnotationValue, Some(position(node, &fault.path)), why);
        }
        for unknown in unknown.iter().take(MOST_FAULTS) {
            let why = format!("{kind} {}: {unknown}", key.name);
            self.report(Code::EmissaryAnnotationField, Some(position(node, &unknown.path)), why);
        }
        if key.namespace != self.annotated.namespace && !self.settings.cross_namespace {
            let why = format!("{kind} {} is for namespace {}", key.name, key.namespace);
            return self.report(Code::EmissaryAnnotationNamespace, Some(position(node, "metadata.namespace")), why);
        }
        let is_untrusted = INSTANCE_WIDE.contains(&kind) && !self.settings.trusts(self.annotated);
        if is_untrusted && is_ours(&object, self.settings) {
            let own = &self.settings.namespace;
            let why = format!(
                "{kind} {} would hold for the requests of all namespaces; it is read from annotations in namespace {own} alone",
                key.name
            );
            return self.report(Code::EmissaryAnnotationScope, Some(position(node, "kind")), why);
        }
        if self.objects.iter().any(|(other, _)| *other == key) {
            let why = format!("{key} is already defined in this annotation");
            return self.report(Code::EmissaryDuplicate, Some(position(node, "metadata.name")), why);
        }
        self.objects.push((key, AnnotationObject { object, document: index }));
    }
}

/// A word that somebody wrote, as long as a word is.
fn shortened(word: &str) -> String {
    word.chars().take(100).filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_is_parsed_once_however_many_lines_are_looked_up() {
        let annotation = "a: 1\n---\nkind: Mapping\nname: web\nspec:\n  prefix: /\n";
        let service = json!({ "metadata": { "name": "web", "annotations": { ANNOTATION: annotation } } });
        let decoded = kinds::decode_json(kind::SERVICE, service.to_string().as_bytes()).unwrap();
        let mut lines = AnnotationLines::of(decoded.object.meta());
        let document = lines.document(1);
        for _ in 0..1000 {
            assert_eq!((document.line_of("metadata.name"), document.line_of("spec.prefix")), (4, 6));
        }
        assert_eq!(LIMITS.nodes - lines.nodes, 5, "the values of the second document");
    }
}

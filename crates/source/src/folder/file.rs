//! One file: its objects, and what is wrong with it.
//!
//! In: a path. Out: a [`Reading`]: the objects by key, the problems with their places, which of the file's former
//! objects stay in force because what should have replaced them cannot be read, and which other files have a part in it.

use super::{
    Limits,
    pem::{self, PEM_FILES},
};
use crate::{
    ObjectLocation, Problem, SourceLocation,
    location::{FileVersion, Part, Redaction, locate, locate_key, without_mark},
    yaml::{self, YamlError},
};
use kinds::{
    DecodeError, Decoded, Kind, Node, Object, ObjectRef, Position, Secret, Value, decode, kind, name, suggest,
};
use model::Code;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};
use xxhash_rust::xxh3::xxh3_64;

/// So many problems of one file are kept.
pub(super) const MOST_PROBLEMS: usize = 100;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The file as it was read; none if it could not be.
    pub(super) version: Option<Arc<FileVersion>>,
    /// What the system says about the file, to tell without reading whether it is still the same.
    pub(super) signature: Option<Signature>,
    /// The objects.
    pub(super) items: BTreeMap<ObjectRef, Item>,
    /// What is wrong.
    pub(super) problems: Vec<Problem>,
    /// What of the file's former objects stays.
    pub(super) keep: Keep,
    /// Other files that have a part in it.
    pub(super) needs: Vec<PathBuf>,
    /// The foreign kinds that were met.
    foreign: BTreeSet<(String, String)>,
    /// Problems beyond the number that is kept.
    left_out: usize,
}

/// An object and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) object: Object,
    pub(super) place: ObjectLocation,
}

/// Which of a file's former objects stay in force though it does not hold them now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Keep {
    /// These are there, but cannot be read.
    these: BTreeSet<ObjectRef>,
    /// Something is there of which not even the name can be read.
    all: bool,
    /// The first problem that is the reason.
    because: Option<usize>,
}

impl Keep {
    /// Whether an object stays in force.
    pub(super) fn keeps(&self, key: &ObjectRef) -> bool {
        self.all || self.these.contains(key)
    }

    /// The index of the problem that is the reason.
    pub(super) fn because(&self) -> Option<usize> {
        self.because
    }
}

/// What tells one content of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    size: u64,
    file: (u64, u64),
    changed: (i64, i64),
}

impl Signature {
    /// What the system says now.
    #[cfg(unix)]
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let file = (metadata.dev(), metadata.ino());
        Some(Self { size: metadata.len(), file, changed: (metadata.ctime(), metadata.ctime_nsec()) })
    }

    /// Nothing here tells a change for sure.
    #[cfg(not(unix))]
    pub(super) fn of(_: &Metadata) -> Option<Self> {
        None
    }
}

/// The content of a regular file of at most so many bytes.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<(Vec<u8>, Metadata)> {
    // Asked before it is opened: opening a pipe waits for somebody to write to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok((bytes, metadata))
}

/// Reads a file that people call `shown` and that lies below `root`.
pub(super) fn read(path: &Path, shown: &Arc<Path>, root: &Path, limits: &Limits) -> Reading {
    let mut reading = Reading::default();
    if let Ok(connection) = path.read_link() {
        let named = path.parent().unwrap_or(root).join(connection);
        reading.needs.push(named.canonicalize().unwrap_or(named));
    }
    let (bytes, metadata) = match read_bounded(path, limits.file_bytes) {
        Ok(read) => read,
        Err(error) => {
            let code = match error.kind() {
                io::ErrorKind::FileTooLarge => Code::FileTooLarge,
                _ => Code::FileNotReadable,
            };
            let problem = Problem::new(code, format!("cannot read the file: {error}"));
            reading.broken(problem.at(SourceLocation::file(shown.clone())), None);
            return reading;
        }
    };
    reading.signature = Signature::of(&metadata);
    let source = if lies_below(path, root) { ContentSource::OnDisk } else { ContentSource::Elsewhere };
    reading.content(path, shown, &bytes, source, root, limits);
    reading
}

/// Whether a file lies below the root, links followed.
fn lies_below(path: &Path, root: &Path) -> bool {
    let is_below = |file: &Path| file.starts_with(root) || root.canonicalize().is_ok_and(|root| file.starts_with(root));
    path.canonicalize().is_ok_and(|file| is_below(&file))
}

/// Reads what came in another way than from a file, such as from standard input; people call it `shown`.
pub(super) fn read_in_memory(bytes: &[u8], path: &Path, shown: &Arc<Path>, root: &Path, limits: &Limits) -> Reading {
    let mut reading = Reading::default();
    reading.content(path, shown, bytes, ContentSource::InMemory, root, limits);
    reading
}

/// Where a content is found when somebody asks for a line of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContentSource {
    /// It is read again.
    OnDisk,
    /// It is read again, and a link leads there: it may be any file of the machine, such as the environment of this process, and whoever may
    /// write objects into the folder may not thereby read it. No line of it is shown.
    Elsewhere,
    /// It is kept.
    InMemory,
}

impl Reading {
    /// Reads the documents of a content.
    fn content(
        &mut self,
        path: &Path,
        shown: &Arc<Path>,
        bytes: &[u8],
        source: ContentSource,
        root: &Path,
        limits: &Limits,
    ) {
        let text = std::str::from_utf8(bytes);
        let kept = (source == ContentSource::InMemory).then(|| text.unwrap_or_default().into());
        let version = FileVersion { path: path.into(), shown: shown.clone(), hash: xxh3_64(bytes), text: kept };
        let version = Arc::new(version);
        self.version = Some(version.clone());
        let text = match text {
            Ok(text) => without_mark(text),
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let line = 1 + u32::try_from(good.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX);
                let location =
                    SourceLocation { position: Position { line, column: 0 }, ..SourceLocation::file(shown.clone()) };
                return self.broken(Problem::new(Code::NotYaml, "the file is not UTF-8").at(location), None);
            }
        };
        let mut nodes = limits.yaml.nodes;
        for (index, document) in (0..).zip(yaml::documents(text)) {
            let mut reader = DocumentReader {
                reading: self,
                version: &version,
                text,
                index,
                root,
                limits,
                source,
                mentions_secret: mentions_secret(document.text),
                redaction: match source == ContentSource::Elsewhere || mentions_secret(document.text) {
                    true => Redaction::Everything,
                    false => Redaction::Nothing,
                },
            };
            match document.parse(&limits.yaml, &mut nodes) {
                Ok(None) => {}
                Ok(Some(node)) => reader.document(&node),
                Err(error) => reader.not_yaml(&error),
            }
        }
        if self.left_out > 0 {
            let why = format!("{} more problems of this file are not listed", self.left_out);
            self.problems.push(Problem::new(Code::NotDecodable, why).at(SourceLocation::file(shown.clone())));
        }
    }
}

/// Whether a text may hold a Secret, whose lines must not be shown.
fn mentions_secret(text: &str) -> bool {
    ["Secret", "stringData", "PRIVATE KEY"].iter().any(|word| text.contains(word))
}

impl Reading {
    fn note(&mut self, problem: Problem) {
        match self.problems.len() < MOST_PROBLEMS {
            true => self.problems.push(problem),
            false => self.left_out += 1,
        }
    }

    /// Notes that an object cannot be read, or something of which not even the name can.
    fn broken(&mut self, problem: Problem, key: Option<ObjectRef>) {
        self.keep.because.get_or_insert(self.problems.len());
        match key {
            Some(key) => {
                self.keep.these.insert(key);
            }
            None => self.keep.all = true,
        }
        self.note(problem);
    }
}

struct DocumentReader<'r> {
    reading: &'r mut Reading,
    version: &'r Arc<FileVersion>,
    text: &'r str,
    index: u32,
    root: &'r Path,
    limits: &'r Limits,
    source: ContentSource,
    mentions_secret: bool,
    redaction: Redaction,
}

impl DocumentReader<'_> {
    fn not_yaml(&mut self, error: &YamlError) {
        let code = match error {
            YamlError::Syntax { .. } => Code::NotYaml,
            YamlError::Limit { .. } => Code::FileTooLarge,
        };
        let location = self.location(|| (error.position(), Part::Point));
        self.reading.broken(Problem::new(code, error.to_string()).at(location), None);
    }

    fn document(&mut self, node: &Node<'_>) {
        let kind = node.get("kind").and_then(Node::text).unwrap_or_default();
        let items = node.get("items").map(|items| &items.value);
        match (kind.strip_suffix("List"), items) {
            (Some(of), Some(Value::List(items))) => {
                let api_version = node.get("apiVersion").and_then(Node::text).unwrap_or_default();
                for (index, item) in (0..).zip(items) {
                    self.object(item, Some(index), (api_version, of));
                }
            }
            _ => self.object(node, None, ("", "")),
        }
    }

    /// Reads an object; in a list of one kind the items need not say what they are.
    fn object(&mut self, node: &Node<'_>, item: Option<u32>, (list_version, list_kind): (&str, &str)) {
        if !matches!(node.value, Value::Map(_)) {
            let why = format!("expected an object with apiVersion, kind and metadata, found {}", node.describe());
            let location = self.location(|| (node.position, Part::Value));
            return self.reading.broken(Problem::new(Code::NotDecodable, why).at(location), None);
        }
        let field = |name: &str, of_list: &str| match node.get(name).and_then(Node::text) {
            None | Some("") if list_kind.is_empty() || of_list.is_empty() => None,
            None | Some("") => Some(of_list.to_owned()),
            Some(text) => Some(text.to_owned()),
        };
        let (Some(api_version), Some(name)) = (field("apiVersion", list_version), field("kind", list_kind)) else {
            let missing = if field("kind", list_kind).is_none() { "kind" } else { "apiVersion" };
            let location = self.location(|| (node.position, Part::Key));
            return self
                .reading
                .broken(Problem::new(Code::NoName, format!("`{missing}` is missing")).at(location), None);
        };
        let Some(kind) = kind::of(&api_version, &name) else {
            return self.not_ours(node, &api_version, &name);
        };
        self.redaction = match self.mentions_secret {
            _ if kind == kind::SECRET || self.source == ContentSource::Elsewhere => Redaction::Everything,
            true => Redaction::FlowLines,
            false => Redaction::Nothing,
        };
        let place = ObjectLocation {
            file: self.version.clone(),
            document: self.index,
            item,
            start: node.position,
            redaction: self.redaction,
        };
        match kinds::decode_as(kind, &api_version, node) {
            Ok(decoded) => self.decoded(node, decoded, place),
            Err(error) => {
                let key = decode::identity(kind, node);
                let code = match error {
                    DecodeError::NoName => Code::NoName,
                    DecodeError::LongName { .. } => Code::NameNotValid,
                    DecodeError::Json(_) | DecodeError::Shape(_) => Code::NotDecodable,
                };
                let location = self.location(|| locate(node, error.path()));
                let problem = Problem::new(code, error.to_string()).field(error.path()).at(location);
                self.reading.broken(Problem { object: key.clone(), ..problem }, key);
            }
        }
    }

    fn not_ours(&mut self, node: &Node<'_>, api_version: &str, name: &str) {
        // A list of a thousand Pods deserves one note.
        if !self.reading.foreign.insert((api_version.to_owned(), name.to_owned())) {
            return;
        }
        let (group, _) = api_version.rsplit_once('/').unwrap_or_default();
        // A kind of the same name in another group is another kind; these are the groups of our kinds, now or formerly, or misspelt.
        let is_near = |kind: &Kind| {
            [kind.group(), "extensions", ""].contains(&group)
                || suggest::nearest(group, std::iter::once(kind.group())).is_some()
        };
        let versions: Vec<String> = kind::named(name).filter(is_near).map(Kind::api_version).collect();
        let meant = kind::meant_by(name).filter(|meant| *meant != name);
        let is_misspelt = meant.is_some_and(|meant| kind::named(meant).any(|kind| kind.group() == group));
        let (code, field, why) = match (versions.is_empty(), meant) {
            (false, _) => {
                let why = format!("{name} is read as {}, not as {api_version}", versions.join(" and "));
                (Code::OtherVersion, "apiVersion", why)
            }
            (true, Some(meant)) if is_misspelt => {
                (Code::KindMisspelt, "kind", format!("{api_version} has no kind {name}; did you mean {meant}?"))
            }
            (true, Some(meant)) => {
                (Code::UnknownKind, "kind", format!("{name} of {api_version} is not read; did you mean {meant}?"))
            }
            (true, None) => (Code::UnknownKind, "kind", format!("{name} of {api_version} is not read")),
        };
        let location = self.location(|| locate(node, field));
        self.reading.note(Problem::new(code, why).at(location));
    }

    fn decoded(&mut self, node: &Node<'_>, decoded: Decoded, place: ObjectLocation) {
        let Decoded { mut object, faults, unknown } = decoded;
        let key = object.key();
        // What is told about it names no object: a name with a line break would be two lines.
        if let Some((field, must)) = name::refusal(&key) {
            let text = if field == "metadata.name" { &key.name } else { &key.namespace };
            let location = self.location(|| locate(node, field));
            let problem = Problem::new(Code::NameNotValid, format!("{text:?} must have {must}"));
            return self.reading.broken(problem.field(field).at(location), Some(key));
        }
        for fault in faults {
            let location = self.location(|| locate(node, &fault.path));
            let problem = Problem::new(Code::NotDecodable, fault.why).on(key.clone()).field(fault.path).at(location);
            self.reading.note(problem);
        }
        for field in unknown {
            let location = self.location(|| locate_key(node, &field.path));
            let problem = Problem { meant: field.meant, ..Problem::new(Code::UnknownField, field.to_string()) };
            self.reading.note(problem.on(key.clone()).field(field.path).at(location));
        }
        if let Some(secret) = object.get::<Secret>() {
            match self.with_pem_files(secret) {
                Ok(Some(secret)) => object = Object::new(key.kind, secret),
                Ok(None) => {}
                Err(why) => {
                    let field = format!("metadata.annotations[\"{PEM_FILES}\"]");
                    let location = self.location(|| locate(node, &field));
                    let problem = Problem::new(Code::PemFileNotReadable, why).on(key.clone()).field(field).at(location);
                    return self.reading.broken(problem, Some(key));
                }
            }
        }
        if let Some(first) = self.reading.items.get(&key) {
            let why = format!("already defined in this file, at line {}", first.place.start.line);
            let location = self.location(|| locate(node, "metadata.name"));
            let problem = Problem::new(Code::DuplicateObject, why).on(key).field("metadata.name").at(location);
            return self.reading.note(problem);
        }
        self.reading.items.insert(key, Item { object, place });
    }

    fn with_pem_files(&mut self, secret: &Secret) -> Result<Option<Secret>, String> {
        // A value that is not even text is among the faults already, and the Secret must not pass for whole.
        let Some(files) = secret.meta.annotations.get(PEM_FILES).map_err(|fault| fault.why.to_string())? else {
            return Ok(None);
        };
        let folder = self.version.path.parent().unwrap_or(self.root);
        let pem::Entries { needs, entries } = pem::entries(files, folder, self.root, self.limits);
        self.reading.needs.extend(needs);
        Ok(Some(secret.clone().with(entries?)))
    }

    /// Where a problem is. Nobody sees it of one that is not kept: to find it is to walk through the object and the text, which a
    /// file with a hundred thousand problems would pay for each of them.
    fn location(&self, find: impl FnOnce() -> (Position, Part)) -> SourceLocation {
        let shown = self.version.shown.clone();
        if self.reading.problems.len() >= MOST_PROBLEMS {
            return SourceLocation::file(shown);
        }
        let (position, part) = find();
        SourceLocation::in_text(shown, self.text, position, part, self.redaction)
    }
}

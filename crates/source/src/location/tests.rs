//! From the path of a field to the line and column in a file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use kinds::kind;

const TEXT: &str = r#"---
kind: List
items:
- kind: Service
- kind: Ingress
  metadata:
    annotations:
      a.io/b: "x\"y" # quoted
  spec:
    rules:
    - host: é.example  # here
      http:
        paths: [{path: /, backend: }, {"path": 7, pathType: Prefix}]
    - host: b
    tls:
"#;

fn place(file: &Path) -> ObjectLocation {
    let shown = Path::new("conf/a.yaml").into();
    let version = FileVersion { path: file.into(), shown, hash: xxh3_64(TEXT.as_bytes()), text: None };
    let start = Position { line: 5, column: 3 };
    ObjectLocation { file: Arc::new(version), document: 0, item: Some(1), start, redaction: Redaction::Nothing }
}

/// The place of a field and the part of the line that is meant.
fn location(field: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, TEXT).unwrap();
    let location = place(&file).location(field);
    let Excerpt { line, start, end } = location.excerpt.clone().unwrap();
    (location.to_string(), line[start..end].to_owned())
}

#[test]
fn fields_are_found() {
    for (field, at, part) in [
        ("spec.rules[0].host", "11:13", "é.example"),
        ("spec.rules[0].http.paths[1]", "13:39", "{"),
        ("spec.rules[0].http.paths[1].path", "13:48", "7"),
        ("spec.rules[0].http.paths[1].pathType", "13:61", "Prefix"),
        ("spec.rules[0].http.paths[0].backend", "13:27", "backend"),
        ("spec.rules[0].http.paths[0].backend.service.name", "13:27", "backend"),
        ("spec.rules", "10:5", "rules"),
        ("spec.tls", "15:5", "tls"),
        ("spec.rules[1]", "14:7", "host"),
        ("spec.rules[7].host", "10:5", "rules"),
        ("metadata.annotations[\"a.io/b\"]", "8:15", "\"x\\\"y\""),
        ("metadata.annotations[\"a.io/c\"]", "7:5", "annotations"),
        ("", "5:3", "kind"),
        ("[[.]\"x", "5:3", "kind"),
    ] {
        assert_eq!(location(field), (format!("conf/a.yaml:{at}"), part.to_owned()), "{field}");
    }
}

#[test]
fn a_file_that_has_changed_since_gives_the_line_of_the_object() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    let place = place(&file);
    assert_eq!(place.location("spec.rules").to_string(), "conf/a.yaml:5");
    std::fs::write(&file, format!("# new\n{TEXT}")).unwrap();
    assert_eq!(place.location("spec.rules").to_string(), "conf/a.yaml:5");
    std::fs::write(&file, TEXT).unwrap();
    assert_eq!(place.location("spec.rules").to_string(), "conf/a.yaml:10:5");
}

#[test]
fn lines_of_secrets_and_endless_lines_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, TEXT).unwrap();
    let secret = ObjectLocation { redaction: Redaction::Everything, ..place(&file) };
    assert_eq!(
        (secret.location("spec").to_string(), secret.location("spec").excerpt),
        ("conf/a.yaml:9:3".into(), None)
    );
    assert_eq!(excerpt(&"x".repeat(5000), Position { line: 1, column: 3 }, Part::Value), None);
}

#[test]
fn verdicts_find_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, TEXT).unwrap();
    let object = kinds::decode_json(kind::INGRESS, br#"{"metadata": {"name": "web"}}"#).unwrap().object;
    let change = |object: Option<kinds::Object>| crate::Change {
        key: ObjectRef::new(kind::INGRESS, "default", "web"),
        object,
        source: ChangeSource::File(place(&file)),
    };
    let mut locations = ObjectLocations::default();
    locations.apply(&Batch { changes: vec![change(Some(object))], ..Batch::default() });
    let origin = model::ObjectRef::new(kind::INGRESS, "default", "web").at("spec.rules[1].host");
    assert_eq!(locations.location(&origin).unwrap().to_string(), "conf/a.yaml:14:13");
    locations.apply(&Batch { changes: vec![change(None)], ..Batch::default() });
    assert_eq!(locations.location(&origin), None);
}

#[test]
fn many_fields_are_found_at_once_each_in_its_part() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    std::fs::write(&file, TEXT).unwrap();
    let key = ObjectRef::new(kind::INGRESS, "default", "web");
    let locations = ObjectLocations { objects: [(key.clone(), place(&file))].into() };
    let unknown = ObjectRef::new(kind::INGRESS, "default", "elsewhere").at("spec");
    let annotation = key.at("metadata.annotations[\"a.io/b\"]");
    let wanted = [
        (&key.at("spec.rules[1].host"), FieldPart::Value),
        (&unknown, FieldPart::Value),
        (&annotation, FieldPart::Key),
        (&annotation, FieldPart::Value),
    ];
    let found = locations.locations(&wanted).into_iter().map(|found| found.map(|found| found.to_string()));
    let expected = [Some("14:13"), None, Some("8:7"), Some("8:15")];
    let expected = expected.map(|at| at.map(|at| format!("conf/a.yaml:{at}")));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

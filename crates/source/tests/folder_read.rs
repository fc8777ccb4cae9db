//! What a folder says when it is read once: objects, places, problems.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kinds::{Secret, kind};
use model::Code;
use source::{
    Batch, Folder, Problem,
    folder::{Limits, OpenError},
    snippet::{self, Style},
};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn read(folder: &Path) -> Batch {
    let batch = Folder::read(folder, Limits::default()).unwrap();
    assert!(batch.synced);
    batch
}

fn keys(batch: &Batch) -> Vec<String> {
    batch.changes.iter().map(|change| change.key.to_string()).collect()
}

fn problems(batch: &Batch) -> Vec<&Problem> {
    batch.problems.values().flatten().collect()
}

/// Code, place below the folder, message.
fn reported(batch: &Batch, folder: &Path) -> Vec<String> {
    let prefix = format!("{}/", folder.display());
    let text = |problem: &&Problem| problem.to_string().replace(&prefix, "").replace(&*folder.to_string_lossy(), ".");
    problems(batch).iter().map(text).collect()
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";

fn service(name: &str) -> String {
    SERVICE.replace("web", name)
}

#[test]
fn files_of_every_sort_are_read() {
    let folder = folder(&[
        ("a.yaml", &format!("# two\n{}---\n{}", service("a1"), service("a2"))),
        ("deep/er/b.yml", &service("b")),
        ("c.json", r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c", "namespace": "other"}}"#),
        (
            "list.yaml",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata: {name: l1}\n- apiVersion: v1\n  kind: Namespace\n  metadata: {name: l2}\n",
        ),
        ("typed.json", r#"{"apiVersion": "v1", "kind": "ServiceList", "items": [{"metadata": {"name": "t"}}]}"#),
        ("empty.yaml", "# nothing\n---\n---\n"),
        ("README.md", "not: [read"),
        (".hidden.yaml", "not: [read"),
        (".git/x.yaml", "not: [read"),
    ]);
    let batch = read(folder.path());
    let expected = [
        "Namespace l2",
        "Service default/a1",
        "Service default/a2",
        "Service default/b",
        "Service default/l1",
        "Service default/t",
        "Service other/c",
    ];
    assert_eq!(keys(&batch), expected);
    assert_eq!(batch.problems, Default::default());
}

#[test]
fn a_kind_may_be_written_in_any_version_and_faults_are_found_where_they_are_written() {
    let of = |version: &str, name: &str, spec: &str| {
        format!(
            "apiVersion: getambassador.io/{version}\nkind: Mapping\nmetadata: {{name: {name}}}\nspec:\n  prefix: /\n  service: a\n{spec}"
        )
    };
    let folder = folder(&[
        ("v1.yaml", &of("v1", "one", "")),
        ("v2.yaml", &of("v2", "two", "  host: 7\n")),
        ("v3.yaml", &of("v3alpha1", "three", "")),
        ("v9.yaml", &of("v9", "nine", "")),
        (
            "list.yaml",
            "apiVersion: getambassador.io/v2\nkind: MappingList\nitems:\n- {metadata: {name: listed}, spec: {prefix: /, service: a}}\n",
        ),
    ]);
    let batch = read(folder.path());
    let hosts: Vec<_> = batch
        .changes
        .iter()
        .map(|change| {
            let mapping = change.object.as_ref().unwrap().get::<kinds::emissary::Mapping>().unwrap();
            let host = mapping.spec.hostname.get().map(|host| host.as_deref().unwrap_or("none").to_owned());
            format!("{}: {}", change.key.name, host.unwrap_or_else(|fault| fault.to_string()))
        })
        .collect();
    let expected =
        ["listed: *", "one: *", "three: none", "two: spec.host: expected text, found the number 7: put it in quotes"];
    assert_eq!(hosts, expected);
    let told = reported(&batch, folder.path());
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().any(|line| line.contains("v2.yaml:7:9")), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("Mapping is read as getambassador.io/v3alpha1")), "{told:#?}");
}

#[test]
fn a_broken_document_does_not_take_the_others_with_it() {
    let text = format!("{}---\nkind: Service\n  bad: [\n---\n{}", service("a"), service("b"));
    let folder = folder(&[("x.yaml", &text), ("y.yaml", &service("c"))]);
    let batch = read(folder.path());
    assert_eq!(keys(&batch), ["Service default/a", "Service default/b", "Service default/c"]);
    let [problem] = problems(&batch)[..] else { panic!("{:?}", batch.problems) };
    assert_eq!((problem.code, problem.location.as_ref().unwrap().position.line), (Code::NotYaml, 6));
}

#[test]
fn each_problem_names_its_place() {
    let folder = folder(&[
        (
            "a.yaml",
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\nspec:\n  rules:\n  - host: a\n    http:\n      paths:\n      - path: 7\n      - pth: /x\n",
        ),
        ("b.yaml", "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: old}\n"),
        (
            "c.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: e}\n---\napiVersion: networking.k8s.io/v1\nkind: Ingres\nmetadata: {name: e}\n---\napiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: e}\n",
        ),
        ("d.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  labels: {}\n"),
        ("e.yaml", "metadata: {name: x}\n"),
        ("f.yaml", "- a\n- b\n"),
        ("g.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: g}\nspec: [1]\n"),
    ]);
    let batch = read(folder.path());
    assert_eq!(
        reported(&batch, folder.path()),
        [
            "SES2002: a.yaml:10:15: Ingress default/web: expected text, found the number 7: put it in quotes",
            "SES2004: a.yaml:11:9: Ingress default/web: there is no field `spec.rules[0].http.paths[1].pth`; did you mean `path`?",
            "SES2009: b.yaml:1:13: Ingress is read as networking.k8s.io/v1, not as extensions/v1beta1",
            "SES2003: c.yaml:2:7: Deployment of apps/v1 is not read",
            "SES2012: c.yaml:10:7: networking.k8s.io/v1 has no kind Ingres; did you mean Ingress?",
            "SES2003: c.yaml:14:7: Service of serving.knative.dev/v1 is not read",
            "SES2007: d.yaml:3:1: metadata.name is missing",
            "SES2007: e.yaml:1:1: `kind` is missing",
            "SES2002: f.yaml:1:1: expected an object with apiVersion, kind and metadata, found a list",
            "SES2002: g.yaml:4:1: Service default/g: spec: expected a map, found a list",
        ]
    );
    assert_eq!(keys(&batch), ["Ingress default/web"]);
    let shown = snippet::problem(problems(&batch)[0], Style::Plain);
    let expected = "
error[SES2002]: Ingress default/web: expected text, found the number 7: put it in quotes
  --> a.yaml:10:15
   |
10 |       - path: 7
   |               ^ spec.rules[0].http.paths[0].path
   |
   = help: correct the named field";
    assert_eq!(shown.replace(&format!("{}/", folder.path().display()), ""), expected.trim_start());
}

/// An API server would refuse them. A name with a line break would be two lines of a log.
#[test]
fn names_that_no_object_can_have_are_refused_with_their_place() {
    let ingress = |metadata: &str| format!("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {metadata}\n");
    let long = "a".repeat(254);
    let folder = folder(&[
        ("a.yaml", &ingress("{name: \"a\\nb\"}")),
        ("b.yaml", &ingress("{name: b, namespace: \"x\\u001b[2J\"}")),
        ("c.yaml", &format!("{}---\n{}", ingress("{name: My_Shop}"), ingress("{name: shop.1}"))),
        ("d.yaml", &ingress(&format!("{{name: {long}}}"))),
        ("e.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a.b}\n"),
    ]);
    let batch = read(folder.path());
    assert_eq!(keys(&batch), ["Ingress default/shop.1"]);
    let told = reported(&batch, folder.path());
    let begins: Vec<_> = told.iter().map(|line| line.split(" must").next().unwrap().to_owned()).collect();
    let d = format!("SES2015: d.yaml:3:18: Ingress default/{long}: metadata.name is longer than 253 characters");
    let expected = [
        r#"SES2015: a.yaml:3:18: "a\nb""#,
        r#"SES2015: b.yaml:3:32: "x\u{1b}[2J""#,
        r#"SES2015: c.yaml:3:18: "My_Shop""#,
        d.as_str(),
        r#"SES2015: e.yaml:3:18: "a.b""#,
    ];
    assert_eq!(begins, expected);
    assert!(told[4].ends_with("at most 63 lower-case letters, digits and `-`, with a letter or digit first and last"));
}

#[test]
fn the_first_of_two_files_holds_the_object() {
    let text = |line: &str| format!("{SERVICE}spec: {{externalName: {line}}}\n");
    let folder =
        folder(&[("b.yaml", &text("b")), ("a/z.yaml", &text("a")), ("c.yaml", &format!("{SERVICE}---\n{SERVICE}"))]);
    let batch = read(folder.path());
    let [change] = &batch.changes[..] else { panic!("{:?}", batch.changes) };
    let service = change.object.as_ref().unwrap().get::<kinds::Service>().unwrap();
    assert_eq!(service.spec.external_name.ok().unwrap().as_deref(), Some("a"));
    assert_eq!(
        reported(&batch, folder.path()),
        [
            "SES2005: b.yaml:3:18: Service default/web: already defined in a/z.yaml, at line 1, which takes effect",
            "SES2005: c.yaml:7:18: Service default/web: already defined in this file, at line 1",
            "SES2005: c.yaml:3:18: Service default/web: already defined in a/z.yaml, at line 1, which takes effect",
        ]
    );
}

#[test]
fn secrets_take_pem_files_from_below_the_folder_alone() {
    let secret = |name: &str, files: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\n  annotations: {{projectsesame.io/pem-files: \"{files}\"}}\nstringData: {{other: x}}\n"
        )
    };
    let outside = folder(&[("key.pem", "private")]);
    let folder = folder(&[
        ("s/good.yaml", &secret("good", "tls.crt=../certs/a.crt, tls.key=a.key")),
        ("certs/a.crt", "CERT"),
        ("s/a.key", "KEY"),
        ("s/absolute.yaml", &secret("absolute", "a=/etc/hostname")),
        ("s/climb.yaml", &secret("climb", "a=../../../../../../etc/hostname")),
        ("s/link.yaml", &secret("link", "a=link.pem")),
        ("s/missing.yaml", &secret("missing", "a=missing.pem")),
        ("s/form.yaml", &secret("form", "missing.pem")),
        ("s/large.yaml", &secret("large", "a=large.pem")),
        ("s/large.pem", &"x".repeat(2 << 20)),
    ]);
    std::os::unix::fs::symlink(outside.path().join("key.pem"), folder.path().join("s/link.pem")).unwrap();
    let batch = read(folder.path());
    assert_eq!(keys(&batch), ["Secret default/good"]);
    let secret = batch.changes[0].object.as_ref().unwrap().get::<Secret>().unwrap();
    let entry = |key| secret.get(key).unwrap().map(|bytes| String::from_utf8(bytes.into()).unwrap());
    assert_eq!(
        [entry("tls.crt"), entry("tls.key"), entry("other")],
        ["CERT", "KEY", "x"].map(|text| Some(text.to_owned()))
    );
    assert!(problems(&batch).iter().all(|problem| problem.code == Code::PemFileNotReadable));
    let why: Vec<_> = problems(&batch).iter().map(|problem| &*problem.message).collect();
    assert_eq!(
        why,
        [
            "`/etc/hostname` does not lie below the folder",
            "`../../../../../../etc/hostname` does not lie below the folder",
            "`missing.pem` is not of the form entry=path",
            "cannot read `large.pem`: it has more than 1048576 bytes",
            "`link.pem` leads out of the folder",
            "cannot read `missing.pem`: No such file or directory (os error 2)",
        ]
    );
}

#[test]
fn no_line_of_a_secret_is_ever_shown() {
    let folder = folder(&[
        (
            "a.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {key: hunter2!, typo: [hunter2]}\nstringdata: {x: hunter2}\n",
        ),
        ("b.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  key: hunter2\n bad: [\n"),
        ("c.json", "{\"kind\": \"Secret\", \"data\": {\"a\": \"hunter2\"}"),
        (
            "d.json",
            r#"{"kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "stringData": {"a": "hunter2"}},
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": 7}}, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}, "stringData": {"a": "hunter2"}}]}"#,
        ),
    ]);
    let batch = read(folder.path());
    assert!(problems(&batch).len() >= 6);
    for problem in problems(&batch) {
        let shown = format!("{problem:?} {}", snippet::problem(problem, Style::Plain));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn strange_things_in_the_folder_are_reported_and_do_no_harm() {
    let mut bomb = format!("{SERVICE}x0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        bomb += &format!("x{level}: &x{level} [{}]\n", vec![format!("*x{}", level - 1); 10].join(", "));
    }
    let folder = folder(&[
        ("bomb.yaml", &bomb),
        ("deep.yaml", &"[".repeat(1 << 20)),
        ("dir.yaml/in.yaml", &service("in")),
        ("ok.yaml", &service("ok")),
    ]);
    let path = folder.path();
    fs::write(path.join("binary.yaml"), b"a: 1\n\xff\xfe").unwrap();
    fs::write(path.join("nul.yaml"), b"a: \0\n").unwrap();
    let huge = fs::File::create(path.join("huge.yaml")).unwrap();
    huge.set_len(1 << 40).unwrap();
    std::os::unix::fs::symlink(path, path.join("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", path.join("dangling.yaml")).unwrap();
    std::os::unix::fs::symlink("self.yaml", path.join("self.yaml")).unwrap();
    std::os::unix::net::UnixListener::bind(path.join("socket.yaml")).unwrap();
    let batch = read(path);
    assert_eq!(keys(&batch), ["Service default/in", "Service default/ok"]);
    let codes: Vec<_> = batch
        .problems
        .values()
        .flatten()
        .map(|problem| {
            let file = problem.location.as_ref().unwrap().file.strip_prefix(path).unwrap().to_owned();
            (file.to_str().unwrap().to_owned(), problem.code)
        })
        .collect();
    let expected = [
        ("binary.yaml", Code::NotYaml),
        ("bomb.yaml", Code::FileTooLarge),
        ("dangling.yaml", Code::FileNotReadable),
        ("deep.yaml", Code::FileTooLarge),
        ("huge.yaml", Code::FileTooLarge),
        ("loop", Code::DirectoryReadOnce),
        ("nul.yaml", Code::NotYaml),
        ("self.yaml", Code::FileNotReadable),
    ];
    assert_eq!(codes, expected.map(|(file, code)| (file.to_owned(), code)));
}

#[test]
fn limits_of_number_and_depth_hold() {
    let folder = folder(&[("a.yaml", &service("a")), ("b.yaml", &service("b")), ("x/y/z/c.yaml", &service("c"))]);
    let limits = Limits { folders_deep: 2, ..Limits::default() };
    let batch = Folder::read(folder.path(), limits).unwrap();
    assert_eq!(keys(&batch), ["Service default/a", "Service default/b"]);
    assert_eq!(reported(&batch, folder.path()), ["SES2006: x/y/z: it lies more than 2 folders deep and is not read"]);
    let batch = Folder::read(folder.path(), Limits { files: 1, ..Limits::default() }).unwrap();
    assert_eq!(keys(&batch), ["Service default/a"]);
    assert_eq!(reported(&batch, folder.path()), ["SES2006: .: there are more than 1 files; the rest is not read"]);
}

#[test]
fn a_thousand_problems_of_one_file_are_not_all_kept() {
    let text: String = (0..1000).map(|_| format!("{SERVICE}wrong: 1\n---\n")).collect();
    let folder = folder(&[("a.yaml", &text)]);
    let batch = read(folder.path());
    assert_eq!(problems(&batch).len(), 101);
    assert_eq!(&*problems(&batch)[100].message, "1899 more problems of this file are not listed");
}

/// A problem that is not kept is not looked for in the text, nor in an object of very many fields.
#[test]
fn a_file_with_very_many_problems_is_read_in_time() {
    let lines = "x\n---\n".repeat(40_000);
    let fields: String = (0..40_000).map(|field| format!("field{field}: 1\n")).collect();
    let folder = folder(&[("fields.yaml", &format!("{SERVICE}{fields}")), ("lines.yaml", &lines)]);
    let begun = cpu_time();
    assert_eq!(problems(&read(folder.path())).len(), 2 * 101);
    let spent = cpu_time() - begun;
    assert!(spent < Duration::from_secs(10), "{spent:?}");
}

/// The CPU time of this thread: what the bound is about, however busy the machine is.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn a_problem_is_one_line() {
    let folder = folder(&[("a.yaml", &format!("{SERVICE}\"a\\nSES1001: b\": 1\n"))]);
    assert_eq!(
        reported(&read(folder.path()), folder.path()),
        ["SES2004: a.yaml:4:1: Service default/web: there is no field `a\u{fffd}SES1001: b`"]
    );
}

/// Whoever may write into the folder may not thereby read the machine's other files.
#[test]
fn no_line_of_a_file_that_lies_elsewhere_is_ever_shown() {
    let outside = folder(&[("env", "TOKEN=abc\n"), ("a.yaml", &format!("{SERVICE}nothing: TOKEN=abc\n"))]);
    let folder = folder(&[("near/b.yaml", "TOKEN=abc\n")]);
    for (to, link) in [("env", "env.yaml"), ("a.yaml", "a.yaml"), ("", "all")] {
        std::os::unix::fs::symlink(outside.path().join(to), folder.path().join(link)).unwrap();
    }
    std::os::unix::fs::symlink("near/b.yaml", folder.path().join("c.yaml")).unwrap();
    let batch = read(folder.path());
    let shown: Vec<_> = problems(&batch)
        .iter()
        .filter_map(|problem| problem.location.as_ref().filter(|location| location.excerpt.is_some()))
        .map(|location| location.file.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(shown, ["c.yaml", "b.yaml"], "{:?}", reported(&batch, folder.path()));
    let mut locations = source::ObjectLocations::default();
    locations.apply(&batch);
    let object = batch.changes[0].key.at("nothing");
    assert_eq!(locations.location(&object).unwrap().excerpt, None);
}

#[test]
fn what_is_no_folder_cannot_be_opened() {
    let folder = folder(&[("a.yaml", "")]);
    let open = |path: &Path| Folder::open(path, Limits::default()).map(|_| ());
    assert!(matches!(open(&folder.path().join("a.yaml")), Err(OpenError::NotAFolder(_))));
    assert!(matches!(open(&folder.path().join("none")), Err(OpenError::Read { .. })));
}

#[test]
fn every_kind_is_read_from_a_file() {
    for &kind in kind::ALL {
        let text = format!("apiVersion: {}\nkind: {}\nmetadata: {{name: x}}\n", kind.api_version(), kind.name());
        let folder = folder(&[("a.yaml", &text)]);
        assert_eq!(read(folder.path()).changes[0].key.kind, kind);
    }
}

mod any_bytes {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Pieces of good YAML with anything between them.
        #[test]
        fn never_panic(parts in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..12),
            prop::sample::select(vec![
                "apiVersion: v1\n", "kind: Service\n", "kind: Secret\n", "metadata: {name: a}\n", "---\n", "spec:\n  ports:\n", "  - port: 1\n",
                "data: {a: x}\n", "&a ", "*a ", "[", "}", "items:\n- ", "kind: List\n", "<<: ", "metadata:\n  annotations:\n    projectsesame.io/pem-files: a=b\n",
            ]).prop_map(|text| text.as_bytes().to_vec()),
        ], 0..20)) {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("a.yaml"), parts.concat()).unwrap();
            let batch = read(folder.path());
            for problem in problems(&batch) {
                snippet::problem(problem, Style::Colour);
            }
        }
    }
}

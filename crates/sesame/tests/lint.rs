//! `sesame lint` as people and CI use it: the real binary, on manifests with one mistake each.
//!
//! Every file or folder in `tests/lint` at the root of the repository is checked; what is printed stands beside it, with the exit
//! code (`UPDATE_CASES=1` rewrites it). [`MISTAKES`] says of each where its mistake is: one finding, at this line and column.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "lint/sarif.rs"]
mod sarif;
#[path = "lint/schema.rs"]
mod schema;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The mistakes that people make: the file, the code, and where it is.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("field.yaml", "SES2004", "field.yaml:13:5"),
    ("required-field.yaml", "SES2004", "required-field.yaml:10:5"),
    ("weight.yaml", "SES2002", "weight.yaml:13:15"),
    ("service.yaml", "SES3001", "service.yaml:15:19"),
    ("port-name.yaml", "SES3002", "port-name.yaml:17:21"),
    ("port-number.yaml", "SES2002", "port-number.yaml:12:13"),
    ("regex.yaml", "SES5048", "regex.yaml:14:14"),
    ("secret.yaml", "SES3101", "secret.yaml:9:17"),
    ("duplicate-host", "SES5002", "duplicate-host/b.yaml:7:11"),
    ("duration.yaml", "SES5036", "duration.yaml:14:17"),
    ("tab.yaml", "SES2001", "tab.yaml:12:1"),
    ("api-version.yaml", "SES2009", "api-version.yaml:2:13"),
    ("namespace.yaml", "SES3001", "namespace.yaml:15:19"),
    ("annotation.yaml", "SES4007", "annotation.yaml:7:5"),
    ("wildcard-unquoted.yaml", "SES2001", "wildcard-unquoted.yaml:8:11"),
    ("wildcard-alone.yaml", "SES5001", "wildcard-alone.yaml:8:11"),
    ("include-cycle.yaml", "SES5024", "include-cycle.yaml:18:5"),
    ("cidr.yaml", "SES5014", "cidr.yaml:15:13"),
    ("kind.yaml", "SES2012", "kind.yaml:3:7"),
    ("api-group.yaml", "SES2009", "api-group.yaml:2:13"),
    ("secret-missing.yaml", "SES3101", "secret-missing.yaml:10:19"),
    ("list.yaml", "SES3002", "list.yaml:21:15"),
    ("duplicate-key.yaml", "SES2001", "duplicate-key.yaml:13:3"),
    ("windows.yaml", "SES3001", "windows.yaml:15:19"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lint")
}

fn lint(arguments: &[&str]) -> Output {
    with_input(arguments, "")
}

fn with_input(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
    command.arg("lint").args(arguments).current_dir(folder()).env("NO_COLOR", "1");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may have failed before it read anything.
    let _closed = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = lint(&[arguments, &["-o", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().unwrap()
}

fn place(location: &Value) -> String {
    format!("{}:{}:{}", location["file"].as_str().unwrap(), location["line"], location["column"])
}

/// The inputs: each file, and each folder.
fn inputs() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|name| !name.ends_with(".txt") && !name.starts_with('.')).collect();
    names.sort();
    names
}

#[test]
fn each_mistake_is_shown_as_the_text_beside_it_says() {
    let mut different = Vec::new();
    for name in inputs() {
        let output = lint(&["-f", &name]);
        assert_eq!(stderr(&output), "", "{name}: findings go to standard output, and nothing is logged");
        let said = format!("{}exit code {}\n", stdout(&output), output.status.code().unwrap());
        let expected = folder().join(format!("{}.txt", name.trim_end_matches(".yaml")));
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&expected, &said).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != said {
            different.push(said);
        }
    }
    assert!(different.is_empty(), "not as expected:\n{}", different.join("\n"));
}

#[test]
fn each_mistake_is_one_finding_at_its_line_and_column() {
    let mut wrong = Vec::new();
    for (input, code, at) in MISTAKES {
        let report = json(&["-f", input]);
        let found: Vec<_> = findings(&report)
            .iter()
            .map(|found| (found["code"].as_str().unwrap(), place(&found["location"])))
            .collect();
        if found != [(*code, (*at).to_owned())] {
            wrong.push(format!("{input}: expected {code} at {at}, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_was_probably_meant_is_said() {
    for (input, said) in [
        ("field.yaml", "did you mean `timeoutPolicy`?"),
        ("required-field.yaml", "did you mean `services`?"),
        ("service.yaml", "did you mean `web`?"),
        ("port-name.yaml", "did you mean `http`?"),
        ("secret.yaml", "did you mean `shop-tls`?"),
        ("namespace.yaml", "`web` exists in namespace team-a"),
        ("annotation.yaml", "did you mean `response-timeout`?"),
        ("class.yaml", "did you mean `contour`?"),
        ("kind.yaml", "did you mean Ingress?"),
        ("gateway-class.yaml", "did you mean `sesame`?"),
        ("gateway-parent.yaml", "did you mean `public`?"),
        ("include-cycle.yaml", "default/catalog → default/articles → default/catalog"),
        ("duplicate-host", "which comes first by namespace and name"),
    ] {
        let report = json(&["-f", input]);
        let messages: Vec<_> = findings(&report).iter().map(|found| found["message"].as_str().unwrap()).collect();
        assert!(messages.iter().any(|message| message.contains(said)), "{input}: {said} is missing in {messages:?}");
    }
    let number = json(&["-f", "port-number.yaml"]);
    assert!(!number.to_string().contains("quotes"), "`port: http` has no quotes to remove: {number}");
}

#[test]
fn a_conflict_names_the_file_and_line_of_the_other_object() {
    let report = json(&["-f", "duplicate-host"]);
    let related = &findings(&report)[0]["related"];
    assert_eq!(related["object"]["name"], "first");
    assert_eq!(place(&related["location"]), "duplicate-host/a.yaml:8:11");
    assert!(stdout(&lint(&["-f", "duplicate-host"])).contains("duplicate-host/a.yaml:8:11"));
}

#[test]
fn everything_that_is_wrong_with_an_object_is_said_at_once() {
    let report = json(&["-f", "all-fields.yaml"]);
    let found: Vec<_> = findings(&report).iter().map(|found| found["location"]["line"].as_u64().unwrap()).collect();
    let text = fs::read_to_string(folder().join("all-fields.yaml")).unwrap();
    let line = |part: &str| text.lines().position(|line| line.contains(part)).unwrap() as u64 + 1;
    let wrong = ["prefix: api", "soon", "later", "-2", "never", "/33", "Nobody", "wbe", "81", "weight: -1"];
    assert_eq!(found, wrong.map(line));
}

#[test]
fn everything_that_is_wrong_with_a_route_is_said_at_once() {
    let report = json(&["-f", "gateway-fields.yaml"]);
    let found: Vec<_> = findings(&report).iter().map(|found| place(&found["location"])).collect();
    let text = fs::read_to_string(folder().join("gateway-fields.yaml")).unwrap();
    let at = |part: &str, value: &str| {
        let line = text.lines().position(|line| line.contains(part)).unwrap();
        format!("gateway-fields.yaml:{}:{}", line + 1, text.lines().nth(line).unwrap().find(value).unwrap() + 1)
    };
    let wrong = [
        ("value: items", "items"),
        ("x team", "x team"),
        ("\"(\"", "\"("),
        ("G T", "\"G T"),
        ("transfer-encoding", "transfer"),
        ("x header", "\"x header"),
        ("Shop_1", "Shop_1"),
        ("nowhere", "nowhere"),
        ("soon", "soon"),
        ("later", "later"),
        ("1000", "1000"),
        ("- 200", "200"),
        ("never", "never"),
        ("wbe", "wbe"),
        ("81", "81"),
        ("weight: -1", "-1"),
        ("sessionPersistence", "sessionPersistence"),
        ("ftp", "ftp"),
        ("70000", "70000"),
        ("statusCode", "200"),
    ];
    assert_eq!(found, wrong.map(|(part, value)| at(part, value)));
}

#[test]
fn what_is_not_served_is_never_fine() {
    for (input, warnings) in [("class.yaml", 1), ("other-kinds.yaml", 0), ("gateway-class.yaml", 2)] {
        let report = json(&["-f", input]);
        let last = findings(&report).last().unwrap();
        assert_eq!(
            (last["code"].as_str(), &report["summary"]["warnings"]),
            (Some("SES2013"), &warnings.into()),
            "{input}"
        );
        assert_eq!(report["summary"]["claimed"], 0, "{input}");
        assert_eq!(lint(&["-f", input]).status.code(), Some(1), "{input}");
    }
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(lint(&["-f", empty.path().to_str().unwrap()]).status.code(), Some(1));
    // Beside something that is served, a class of somebody else's is a warning.
    assert_eq!(lint(&["-f", "class-beside.yaml"]).status.code(), Some(0));
    let renamed = lint(&["-f", "class.yaml", "--ingress-class-name", "contuor"]);
    assert_eq!(renamed.status.code(), Some(0), "{}", stdout(&renamed));
}

#[test]
fn exit_codes_and_strictness() {
    let code = |arguments: &[&str]| lint(arguments).status.code().unwrap();
    assert_eq!(code(&["-f", "anchors.yaml"]), 0);
    assert_eq!(code(&["-f", "service.yaml"]), 1);
    assert_eq!((code(&["-f", "annotation.yaml"]), code(&["-f", "annotation.yaml", "--strict"])), (0, 1));
    assert_eq!((code(&["-f", "secret-missing.yaml"]), code(&["-f", "secret-missing.yaml", "--self-signed"])), (1, 0));
    assert_eq!((code(&["-f", "not-there.yaml"]), code(&[]), code(&["-f", "service.yaml", "-o", "xml"])), (2, 2, 2));
}

#[test]
fn quiet_prints_what_fails_and_nothing_else() {
    let said = |arguments: &[&str]| stdout(&lint(arguments));
    assert_eq!(said(&["-q", "-f", "annotation.yaml"]), "");
    assert!(said(&["-q", "--strict", "-f", "annotation.yaml"]).starts_with("warning[SES4007]"));
    let error = said(&["-q", "-f", "service.yaml"]);
    assert!(error.starts_with("error[SES3001]") && !error.contains("objects"), "{error}");
    assert!(said(&["-f", "anchors.yaml"]).ends_with("2 objects, 1 of them for Sesame: no findings\n"));
}

#[test]
fn several_paths_and_standard_input_are_one_set_of_objects() {
    let text = fs::read_to_string(folder().join("duplicate-host/b.yaml")).unwrap();
    let output = with_input(&["-f", "duplicate-host/a.yaml", "-f", "-", "-o", "json"], &text);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = &findings(&report)[0];
    assert_eq!((found["code"].as_str(), place(&found["location"])), (Some("SES5002"), "<stdin>:7:11".to_owned()));
    assert_eq!(place(&found["related"]["location"]), "duplicate-host/a.yaml:8:11");
    // The same twice is not a duplicate.
    assert_eq!(lint(&["-f", "anchors.yaml", "-f", "./anchors.yaml"]).status.code(), Some(0));
}

#[test]
fn what_goes_wrong_is_logged_as_json_where_that_is_asked_for() {
    let output = lint(&["-f", "not-there.yaml", "--log-format", "json"]);
    assert_eq!(stdout(&output), "");
    let line: Value = serde_json::from_str(stderr(&output).trim()).unwrap();
    assert_eq!((line["level"].as_str(), line["code"].as_str()), (Some("ERROR"), Some("SES1002")));
}

#[test]
fn odd_files_are_findings_and_no_harm() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs::write(path("binary.yaml"), [0_u8, 159, 146, 150]).unwrap();
    fs::write(path("nul.yaml"), "a: \0b\n").unwrap();
    std::os::unix::fs::symlink(root.path(), path("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", path("broken.yaml")).unwrap();
    fs::copy(folder().join("anchors.yaml"), path("good.yaml")).unwrap();
    let output = lint(&["-f", root.path().to_str().unwrap(), "-o", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut codes: Vec<_> = findings(&report).iter().map(|found| found["code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    // A link that leads nowhere cannot be read; a folder in itself is read once.
    assert_eq!(codes, ["SES1002", "SES2001", "SES2001", "SES2010"]);
    assert_eq!((output.status.code(), &report["summary"]["claimed"]), (Some(2), &1.into()));
}

#[test]
fn the_json_report_is_as_its_schema_says() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    for name in inputs() {
        let report = json(&["-f", &name]);
        let wrong = schema::violations(&schema, &report);
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        let counted: u64 =
            ["errors", "warnings", "notes"].iter().map(|key| report["summary"][key].as_u64().unwrap()).sum();
        assert_eq!(counted, findings(&report).len() as u64, "{name}");
    }
    // What it must not say is noticed.
    let mut report = json(&["-f", "service.yaml"]);
    report["findings"][0]["severity"] = "fatal".into();
    report["findings"][0]["more"] = 1.into();
    report["summary"].as_object_mut().unwrap().remove("errors");
    assert_eq!(schema::violations(&schema, &report).len(), 3);
}

fn sarif(arguments: &[&str]) -> (Value, Option<i32>) {
    let output = lint(&[arguments, &["-o", "sarif"]].concat());
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

#[test]
fn sarif_is_by_the_rules_of_its_schema_and_of_scanning_services() {
    let mut notified = Vec::new();
    for name in inputs() {
        let (log, _) = sarif(&["-f", &name]);
        let wrong = sarif::violations(&log);
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        let all = json(&["-f", &name]);
        let run = &log["runs"][0];
        let count = |list: &Value| list.as_array().map_or(0, Vec::len);
        let notifications = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(
            count(&run["results"]) + count(notifications),
            findings(&all).len(),
            "{name}: each finding is said once"
        );
        notified.extend((count(notifications) > 0).then_some(name));
    }
    assert_eq!(
        notified,
        ["class.yaml", "gateway-class.yaml", "other-kinds.yaml"],
        "inputs with a finding about no file"
    );
    let (log, _) = sarif(&["-f", "duplicate-host"]);
    let related = &log["runs"][0]["results"][0]["relatedLocations"][0]["physicalLocation"];
    assert_eq!(related["artifactLocation"]["uri"], "duplicate-host/a.yaml");
    // What the rules do not allow is noticed.
    let (mut log, _) = sarif(&["-f", "service.yaml"]);
    let result = &mut log["runs"][0]["results"][0];
    result["locations"] = serde_json::json!([]);
    result["ruleIndex"] = 7.into();
    result["place"] = 1.into();
    assert_eq!(sarif::violations(&log).len(), 3, "{:?}", sarif::violations(&log));
}

#[test]
fn what_is_about_no_file_is_a_notification_of_the_run() {
    let (log, code) = sarif(&["-f", "other-kinds.yaml"]);
    let run = &log["runs"][0];
    assert_eq!(code, Some(1), "the exit code is that of any error");
    let results: Vec<_> = run["results"].as_array().unwrap().iter().map(|result| &result["ruleId"]).collect();
    assert_eq!(results, ["SES2003"]);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    let notification = &invocation["toolExecutionNotifications"][0];
    assert_eq!(
        (notification["descriptor"]["id"].as_str(), notification["level"].as_str()),
        (Some("SES2013"), Some("error"))
    );
    assert_eq!(run["tool"]["driver"]["notifications"][0]["id"], "SES2013");
    let empty = tempfile::tempdir().unwrap();
    let (log, code) = sarif(&["-f", empty.path().to_str().unwrap()]);
    assert_eq!((code, sarif::violations(&log).len()), (Some(1), 0), "{log}");
}

#[test]
fn annotations_of_github_are_one_line_each() {
    let said = stdout(&lint(&["-f", "service.yaml", "-o", "github"]));
    let expected = "::error file=service.yaml,line=15,col=19,endColumn=22,title=SES3001 the Service does not exist::\
                    Ingress default/shop: Service default/wbe does not exist; did you mean `web`?%0Ahelp: ";
    assert!(said.starts_with(expected) && said.lines().count() == 1, "{said}");
    assert!(
        stdout(&lint(&["-f", "annotation.yaml", "-o", "github"])).starts_with("::warning file=annotation.yaml,line=7")
    );
}

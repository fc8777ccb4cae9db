//! What is said about files that cannot be used. That keys take effect is shown on the plan.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use kinds::Position;
use source::snippet::{self, Style};

/// A file with one key: `a.b` is `b` inside `a`.
pub(crate) fn file_with(path: &str, value: &str) -> String {
    let keys: Vec<&str> = path.split('.').collect();
    let mut text = String::new();
    for (depth, key) in keys.iter().enumerate() {
        let end = if depth + 1 == keys.len() { format!(" {value}") } else { "\n".to_owned() };
        text += &format!("{}{key}:{end}", "  ".repeat(depth));
    }
    text
}

fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    Config::parse(Path::new("sesame.yaml"), text)
}

/// The rows that are keys of the file.
fn keys() -> impl Iterator<Item = &'static Row> {
    rows().filter(|row| !row.path.is_empty())
}

fn only_problem(text: &str) -> Problem {
    let mut problems = parse(text).unwrap_err();
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    problems.remove(0)
}

fn place(problem: &Problem) -> (u32, u32) {
    let Position { line, column } = problem.location.as_ref().unwrap().position;
    (line, column)
}

#[test]
fn every_key_stands_once_and_is_no_section() {
    for form in [Form::File, Form::Object] {
        let mut paths: Vec<&str> = rows().map(|row| row.place(form)).filter(|path| !path.is_empty()).collect();
        for path in &paths {
            assert!(!is_section(form, path), "{path}");
        }
        let count = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), count);
    }
}

#[test]
fn a_default_that_is_written_changes_nothing() {
    let written: Vec<&Row> = keys().filter(|row| !row.default.is_empty()).collect();
    assert!(written.len() > 40, "{}", written.len());
    for row in written {
        let text = file_with(row.path, row.default);
        let config = parse(&text).map(|config| Config { at_start: BTreeMap::new(), ..config });
        assert_eq!(config.as_ref(), Ok(&Config::default()), "{text}");
    }
}

#[test]
fn nothing_is_as_good_as_no_file() {
    let texts = ["", "# only a comment\n", "---\n", "tls:\n  # all of it is commented out\ntimeouts:\n", "debug: ~"];
    for text in texts {
        assert_eq!(parse(text).as_ref(), Ok(&Config::default()), "{text:?}");
    }
    for row in keys() {
        let text = file_with(row.path, "");
        assert_eq!(parse(&text).as_ref(), Ok(&Config::default()), "{text:?}");
    }
}

#[test]
fn what_has_no_effect_is_a_warning() {
    for row in keys().filter(|row| matches!(row.effect, Effect::Nothing(_))) {
        let config = parse(&file_with(row.path, "false")).unwrap();
        let [(code, text)] = &config.warnings[..] else { panic!("{:?}", config.warnings) };
        assert_eq!(*code, Code::SettingNoEffect);
        assert!(text.starts_with(row.path), "{text}");
    }
}

#[test]
fn a_key_that_does_not_exist_is_an_error_at_its_place() {
    for (text, at, why) in [
        ("debugg: true", (1, 1), "unknown key debugg; did you mean debug?"),
        ("tls:\n  minimum-version: '1.2'", (2, 3), "unknown key tls.minimum-version"),
        ("tls:\n  cipher-suite: []", (2, 3), "unknown key tls.cipher-suite; did you mean cipher-suites?"),
        ("debug: false\nmetrics:\n  sesame:\n    prt: 1", (4, 5), "unknown key metrics.sesame.prt; did you mean port?"),
        ("a.b: 1", (1, 1), "unknown key [\"a.b\"]"),
        ("leaderelection: {}", (1, 1), "leaderelection has been removed: use the flags --leader-election-…"),
    ] {
        let problem = only_problem(text);
        assert_eq!((problem.code, place(&problem), &*problem.message), (Code::ConfigUnknown, at, why));
    }
}

#[test]
fn a_value_that_cannot_be_used_is_an_error_at_its_place() {
    for (text, at, why) in [
        ("debug: 1", (1, 8), "expected true or false, found the number 1"),
        ("tls: 1", (1, 6), "expected a map, found the number 1"),
        ("- debug", (1, 1), "expected a map, found a list"),
        (
            "timeouts:\n  request-timeout: 5",
            (2, 20),
            "`5` is not a duration; write for example `1m30s`, `250ms` or `infinity`",
        ),
        ("timeouts:\n  connect-timeout: 0s", (2, 20), "`0s` must be greater than zero"),
        (
            "timeouts:\n  connect-timeout: infinity",
            (2, 20),
            "`infinity` is not a duration; write for example `1m30s` or `250ms`",
        ),
        ("accesslog-format: text", (1, 19), "`text` is not one of `envoy`, `json`"),
        ("accesslog-format-string: '%NOPE%'", (1, 26), "`%NOPE%` is not an operator that may be used here"),
        (
            "json-fields:\n- '@timestamp'\n- nope",
            (3, 3),
            "`nope` is not a field that is known; `nope=%OPERATOR%` says what it is",
        ),
        ("json-fields: ['a=%REQ%']", (1, 15), "`%REQ%` is not an operator that may be used here"),
        ("json-fields: [=%DURATION%]", (1, 15), "`=%DURATION%` has no name before the `=`"),
        ("tls:\n  minimum-protocol-version: 1.1", (2, 29), "`1.1` is not one of `1.2`, `1.3`"),
        ("tls:\n  cipher-suites:\n  - RC4", (3, 5), "`RC4` is not a cipher suite of TLS 1.2"),
        (
            "tls:\n  ecdh-curves: [P-1]",
            (2, 17),
            "`P-1` is not one of `X25519`, `P-256`, `P-384`, `P-521`, `X25519MLKEM768`",
        ),
        (
            "tls:\n  minimum-protocol-version: 1.3\n  maximum-protocol-version: 1.2",
            (2, 29),
            "the minimum version 1.3 is above the maximum version 1.2",
        ),
        ("tls:\n  fallback-certificate:\n    name: a", (2, 3), "both namespace and name are required"),
        ("tls:\n  envoy-client-certificate:\n    name: a", (2, 3), "both namespace and name are required"),
        ("policy: {request-headers: {set: {host: a}}}", (1, 40), "the header Host cannot be changed for all"),
        (
            "policy: {request-headers: {remove: [a b]}}",
            (1, 37),
            "`a b` contains a character that is not allowed in a header",
        ),
        (
            "policy: {response-headers: {set: {Content-Length: 1}}}",
            (1, 51),
            "the header content-length is managed by the proxy; it cannot be set or removed",
        ),
        (
            "policy: {response-headers: {remove: [transfer-encoding]}}",
            (1, 38),
            "the header transfer-encoding is managed by the proxy; it cannot be set or removed",
        ),
        (
            "policy: {request-headers: {set: {X-Sesame-Host: a}}}",
            (1, 49),
            "the header x-sesame-host is reserved for Sesame; it cannot be set or removed",
        ),
        (
            "policy: {request-headers: {remove: [':path']}}",
            (1, 37),
            "the pseudo-header `:path` cannot be set or removed",
        ),
        (
            "policy: {response-headers: {set: {a: '%NOPE%'}}}",
            (1, 38),
            "dynamic value `%NOPE%` is not supported; `%%` is a plain `%`",
        ),
        ("policy: {response-headers: {set: {a: b, A: c}}}", (1, 29), "the header a is set more than once"),
        ("network:\n  num-trusted-hops: -1", (2, 21), "expected a number from 0 to 255, found the number -1"),
        ("network:\n  admin-port: 65536", (2, 15), "expected a number from 0 to 65535, found the number 65536"),
        ("default-http-versions: [HTTP/3]", (1, 25), "`HTTP/3` is not one of `HTTP/1.1`, `HTTP/2`"),
        ("kubernetesClientBurst: 0", (1, 24), "expected a number from 1 to 4294967295, found the number 0"),
        ("kubernetesClientQPS: many", (1, 22), "expected a number, found text"),
        ("ingress-status-address: a_b", (1, 25), "`a_b` is neither an IP address nor a lower-case DNS name"),
        ("metrics: {sesame: {address: here}}", (1, 29), "`here` is not an IP address"),
        ("featureFlags: [warp]", (1, 16), "there is no feature `warp`"),
        ("kubeconfig: ''", (1, 13), "expected a name, found an empty string"),
        ("kubeconfig: true", (1, 13), "expected text, found the boolean true: put it in quotes"),
        ("envoy-service-name: [a]", (1, 1), "expected text, found a list"),
    ] {
        let problem = only_problem(text);
        assert_eq!((problem.code, place(&problem), &*problem.message), (Code::ConfigValue, at, why), "{text}");
    }
}

#[test]
fn what_is_not_yaml_is_an_error_at_its_place() {
    assert_eq!(only_problem("debug: true\ntls: [").code, Code::ConfigNotYaml);
    let problem = only_problem("debug: true\n---\ndebug: false\n");
    assert_eq!((problem.code, place(&problem).0), (Code::ConfigNotYaml, 2));
    let missing = Config::read(Path::new("no-such-file.yaml")).unwrap_err();
    assert_eq!(missing[0].code, Code::FileNotReadable);
}

#[test]
fn all_problems_are_told_each_with_its_line() {
    let text = "debug: maybe\ntracing:\n  serviceNam: shop\n";
    let problems = parse(text).unwrap_err();
    let shown: Vec<String> = problems.iter().map(|problem| snippet::problem(problem, Style::Plain)).collect();
    let expected = "\
error[SES1022]: expected true or false, found text
 --> sesame.yaml:1:8
  |
1 | debug: maybe
  |        ^^^^^ debug
  |
  = help: use one of the values allowed by the message; docs/configuration.md lists the values of every key
error[SES1021]: unknown key tracing.serviceNam; did you mean serviceName?
 --> sesame.yaml:3:3
  |
3 |   serviceNam: shop
  |   ^^^^^^^^^^ tracing.serviceNam
  |
  = help: correct or remove it; docs/configuration.md lists every key";
    assert_eq!(shown.join("\n"), expected);
}

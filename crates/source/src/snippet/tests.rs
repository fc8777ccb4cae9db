//! What people see.

use super::*;
use crate::place::Excerpt;
use kinds::{Kind, ObjectKey, Position};
use std::path::Path;

fn spot(excerpt: Option<Excerpt>) -> Spot {
    Spot { file: Path::new("conf/a.yaml").into(), position: Position { line: 12, column: 11 }, excerpt }
}

fn at_port() -> Excerpt {
    Excerpt { line: "    port: \"80\"".into(), start: 10, end: 14 }
}

#[test]
fn a_problem_with_its_line() {
    let shown = problem(
        &Problem::new(Code::NotDecodable, "expected a number, found text: remove the quotes")
            .on(ObjectKey::new(Kind::Service, "shop", "web"))
            .field("spec.ports[0].port")
            .at(spot(Some(at_port()))),
        Style::Plain,
    );
    let expected = r#"
error[SES2002]: Service shop/web: expected a number, found text: remove the quotes
  --> conf/a.yaml:12:11
   |
12 |     port: "80"
   |           ^^^^ spec.ports[0].port
   |
   = help: correct the field that is named"#;
    assert_eq!(shown, expected.trim_start());
}

#[test]
fn a_verdict_without_a_line() {
    let origin = model::ObjectRef::new("Ingress", "shop", "web").at("spec.rules[0]");
    let found = Verdict::new(Code::ServiceNotFound, origin, "Service shop/cart does not exist");
    let shown = verdict(&found, Some(&spot(None)), Style::Plain);
    assert!(shown.starts_with("error[SES3001]: Ingress shop/web: Service shop/cart does not exist\n"), "{shown}");
    assert!(shown.contains("--> conf/a.yaml:12:11\n"), "{shown}");
    assert!(!verdict(&found, None, Style::Plain).contains("-->"));
}

#[test]
fn nothing_is_shown_that_a_terminal_would_obey() {
    let excerpt = Excerpt { line: "a: \u{1b}[2J".into(), start: 3, end: 7 };
    let found = Problem::new(Code::NotYaml, "bad \u{1b}[31mred").field("a\u{7}").at(spot(Some(excerpt)));
    let shown = problem(&found, Style::Plain);
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    assert!(problem(&found, Style::Colour).contains("\u{1b}[1m"));
}

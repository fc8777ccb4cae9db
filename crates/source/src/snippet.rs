//! Problems and verdicts as a good compiler shows them: what, where, the line itself, what to do.

use crate::{Problem, SourceLocation};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use model::{Code, Severity};

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With colours, for a terminal.
    Colour,
}

/// Something that is shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The row of the table of codes.
    pub code: Code,
    /// How serious it is here.
    pub severity: Severity,
    /// What is wrong, with the name of the object.
    pub title: &'a str,
    /// The field; empty for the whole object.
    pub field: &'a str,
    /// Where it stands.
    pub location: Option<&'a SourceLocation>,
    /// What else is to be looked at, with what it is, and where it stands.
    pub related: Option<(&'a str, &'a SourceLocation)>,
}

/// Shows a problem of a source.
pub fn problem(problem: &Problem, style: Style) -> String {
    let title = match &problem.object {
        Some(object) => format!("{object}: {}", problem.message),
        None => problem.message.to_string(),
    };
    let (code, severity, location) = (problem.code, problem.severity(), problem.location.as_ref());
    show(&Shown { code, severity, title: &title, field: &problem.field, location, related: None }, style)
}

/// Shows anything that has a code.
pub fn show(shown: &Shown<'_>, style: Style) -> String {
    let level = match shown.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let (title, field) = (printable(shown.title), printable(shown.field));
    let group = Group::with_title(level.primary_title(&title).id(shown.code.to_string()));
    let path = shown.location.map(shown_path);
    let label = (!field.is_empty()).then_some(&*field);
    let group = with_location(group, shown.location.zip(path.as_deref()), AnnotationKind::Primary, label);
    let mut groups = vec![group.element(Level::HELP.message(shown.code.help()))];
    let other = shown.related.map(|(what, location)| (printable(what), location, shown_path(location)));
    if let Some((what, location, path)) = &other {
        let group = Group::with_title(Level::NOTE.secondary_title(what));
        groups.push(with_location(group, Some((location, path)), AnnotationKind::Context, None));
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    };
    renderer.render(&groups)
}

fn shown_path(location: &SourceLocation) -> String {
    printable(&location.file.to_string_lossy())
}

/// Adds the line, or as much of the place as is known.
fn with_location<'a>(
    group: Group<'a>,
    location: Option<(&'a SourceLocation, &'a str)>,
    kind: AnnotationKind,
    label: Option<&'a str>,
) -> Group<'a> {
    let Some((location, path)) = location else { return group };
    let line = location.position.line as usize;
    match &location.excerpt {
        Some(excerpt) => {
            let part = kind.span(excerpt.start..excerpt.end).label(label);
            group.element(Snippet::source(&*excerpt.line).line_start(line).path(path).annotation(part))
        }
        None => group.element(match location.position.column {
            _ if line == 0 => Origin::path(path),
            0 => Origin::path(path).line(line),
            column => Origin::path(path).line(line).char_column(column as usize),
        }),
    }
}

/// Text without anything that a terminal would obey: names and keys come from untrusted input.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    //! What people see.

    use super::*;
    use crate::location::Excerpt;
    use kinds::{ObjectRef, Position, kind};
    use std::path::Path;

    fn location(excerpt: Option<Excerpt>) -> SourceLocation {
        SourceLocation { file: Path::new("conf/a.yaml").into(), position: Position { line: 12, column: 11 }, excerpt }
    }

    fn at_port() -> Excerpt {
        Excerpt { line: "    port: \"80\"".into(), start: 10, end: 14 }
    }

    #[test]
    fn a_problem_with_its_line() {
        let shown = problem(
            &Problem::new(Code::NotDecodable, "expected a number, found text: remove the quotes")
                .on(ObjectRef::new(kind::SERVICE, "shop", "web"))
                .field("spec.ports[0].port")
                .at(location(Some(at_port()))),
            Style::Plain,
        );
        let expected = r#"
error[SES2002]: Service shop/web: expected a number, found text: remove the quotes
  --> conf/a.yaml:12:11
   |
12 |     port: "80"
   |           ^^^^ spec.ports[0].port
   |
   = help: correct the named field"#;
        assert_eq!(shown, expected.trim_start());
    }

    #[test]
    fn what_has_no_line_and_what_else_is_to_be_looked_at() {
        let found = |location, related| {
            let (code, title, field) = (Code::ProxyDuplicateFqdn, "HTTPProxy b/web: in use", "spec.virtualhost.fqdn");
            show(&Shown { code, severity: code.severity(), title, field, location, related }, Style::Plain)
        };
        let here = location(None);
        let shown = found(Some(&here), None);
        assert!(shown.starts_with("error[SES5002]: HTTPProxy b/web: in use\n"), "{shown}");
        assert!(shown.contains("--> conf/a.yaml:12:11\n"), "{shown}");
        assert!(!found(None, None).contains("-->"));

        let line = Excerpt { line: "    fqdn: a.example".into(), start: 10, end: 19 };
        let there = SourceLocation { file: Path::new("b.yaml").into(), ..location(Some(line)) };
        let expected = r"
error[SES5002]: HTTPProxy b/web: in use
  --> conf/a.yaml:12:11
   = help: choose another fqdn, or include this HTTPProxy from the other; the root that the message names is served
note: HTTPProxy a/web is here
  --> b.yaml:12:11
   |
12 |     fqdn: a.example
   |           ---------";
        assert_eq!(found(Some(&here), Some(("HTTPProxy a/web is here", &there))), expected.trim_start());
    }

    #[test]
    fn nothing_is_shown_that_a_terminal_would_obey() {
        let excerpt = Excerpt { line: "a: \u{1b}[2J".into(), start: 3, end: 7 };
        let found = Problem::new(Code::NotYaml, "bad \u{1b}[31mred").field("a\u{7}").at(location(Some(excerpt)));
        let shown = problem(&found, Style::Plain);
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        assert!(problem(&found, Style::Colour).contains("\u{1b}[1m"));
    }
}

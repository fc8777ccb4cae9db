//! Problems and verdicts as a good compiler shows them: what, where, the line itself, what to do.

use crate::{Problem, Spot};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use model::{Code, Severity, Verdict};

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// With colours, for a terminal.
    Colour,
}

/// Shows a problem of a source.
pub fn problem(problem: &Problem, style: Style) -> String {
    let title = match &problem.object {
        Some(object) => format!("{object}: {}", problem.message),
        None => problem.message.to_string(),
    };
    show(problem.code, &title, problem.spot.as_ref(), &problem.field, style)
}

/// Shows a verdict about an object; `spot` is its place, if it came from a file.
pub fn verdict(verdict: &Verdict, spot: Option<&Spot>, style: Style) -> String {
    let title = format!("{}: {}", verdict.origin.object, verdict.message);
    show(verdict.code, &title, spot, verdict.origin.field.as_str(), style)
}

fn show(code: Code, title: &str, spot: Option<&Spot>, field: &str, style: Style) -> String {
    let level = match code.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let (title, field) = (printable(title), printable(field));
    let mut group = Group::with_title(level.primary_title(&title).id(code.to_string()));
    let path = spot.map(|spot| printable(&spot.file.to_string_lossy()));
    if let (Some(spot), Some(path)) = (spot, &path) {
        let line = spot.position.line as usize;
        group = match &spot.excerpt {
            Some(excerpt) => {
                let label = (!field.is_empty()).then_some(&*field);
                let part = AnnotationKind::Primary.span(excerpt.start..excerpt.end).label(label);
                group.element(Snippet::source(&*excerpt.line).line_start(line).path(path).annotation(part))
            }
            None => {
                let origin = match spot.position.column {
                    _ if line == 0 => Origin::path(path),
                    0 => Origin::path(path).line(line),
                    column => Origin::path(path).line(line).char_column(column as usize),
                };
                group.element(origin)
            }
        };
    }
    let group = group.element(Level::HELP.message(code.help()));
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    };
    renderer.render(&[group])
}

/// Text without anything that a terminal would obey: names and keys come from strangers.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests;

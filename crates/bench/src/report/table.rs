//! A report as tables: for each world one of all rows, implementations side by side, and one of what they used.

use super::{Report, Run, Step, hostile};
use crate::row::{ROWS, Unit};
use crate::world::{Wording, World};

/// All tables of a report, with what a reader must know of them.
pub fn tables(report: &Report, markdown: bool) -> String {
    let mut text = format!("Measured {} on {}.\n", report.at, report.machine);
    text.push_str(&format!("Arguments: `{}`\n", report.arguments.join(" ")));
    let world = |run: &Run| World { size: run.size, wording: run.wording };
    let mut worlds: Vec<World> = report.runs.iter().map(world).collect();
    worlds.dedup();
    for of in worlds {
        let runs: Vec<&Run> = report.runs.iter().filter(|run| world(run) == of).collect();
        text.push_str(&title(&of.to_string(), markdown));
        text.push_str(&render(&figures(&runs), markdown));
        text.push_str(&render(&usage(&runs), markdown));
        for run in runs {
            let failed = run.failed.iter().map(|why| format!("stopped: {}", why.lines().next().unwrap_or_default()));
            for note in run.notes.iter().cloned().chain(failed) {
                text.push_str(&format!("- {}: {note}\n", run.implementation));
            }
        }
    }
    for run in &report.runs {
        let (what, kind) = match run.wording {
            Wording::Routes => (format!("{} hosts: HTTPRoutes beside Ingresses", run.size), "HTTPRoutes"),
            Wording::Mappings(_) => (format!("{} Mappings beside Ingresses", run.size), "Mappings"),
            _ => continue,
        };
        let is_beside = |other: &&Run| {
            other.wording == Wording::Ingresses
                && (other.size, &other.implementation) == (run.size, &run.implementation)
        };
        if let Some(ingresses) = report.runs.iter().find(is_beside) {
            text.push_str(&title(&what, markdown));
            text.push_str(&render(&compared(ingresses, run, kind), markdown));
        }
    }
    text.push_str(&hostile::tables(&report.hostile, report.fleet.as_ref(), markdown));
    text
}

pub(super) fn title(text: &str, markdown: bool) -> String {
    if markdown { format!("\n### {text}\n\n") } else { format!("\n{text}\n") }
}

/// One line a row, one column an implementation, and how much more than the first the others take.
fn figures(runs: &[&Run]) -> Vec<Vec<String>> {
    let mut head = vec![String::new()];
    for (number, run) in runs.iter().enumerate() {
        head.push(format!("{} {}", run.implementation, run.version));
        if number > 0 {
            head.push("ratio".to_owned());
        }
    }
    let mut lines = vec![head];
    for row in ROWS.iter().filter(|row| runs.iter().any(|run| run.rows.contains_key(row.key))) {
        let first = runs.first().and_then(|run| run.rows.get(row.key));
        let mut line = vec![row.label.to_owned()];
        for (number, run) in runs.iter().enumerate() {
            let value = run.rows.get(row.key);
            line.push(value.map_or("–".to_owned(), |value| row.unit.show(*value)));
            if number > 0 {
                line.push(ratio(value, first));
            }
        }
        lines.push(line);
    }
    lines
}

/// What the same change costs, and the memory of the controller, written as Ingresses and as another kind. The write itself is the API
/// server's share, which differs by kind.
fn compared(ingresses: &Run, other: &Run, kind: &str) -> Vec<Vec<String>> {
    let mut lines = vec![["", "Ingresses", kind, "ratio"].map(str::to_owned).to_vec()];
    let mut add = |label: &str, unit: Unit, of: &dyn Fn(&Run) -> Option<f64>| {
        let (one, other) = (of(ingresses), of(other));
        let show = |value: Option<f64>| value.map_or("–".to_owned(), |value| unit.show(value));
        let ratio = one.zip(other).filter(|(one, _)| *one > 0.0);
        let ratio = ratio.map_or("–".to_owned(), |(one, other)| format!("{:.2}×", other / one));
        lines.push(vec![label.to_owned(), show(one), show(other), ratio]);
    };
    let keys = ["new-host", "route-edit", "endpoints"]
        .map(|step| ["write", "xds.p50", "served.p50", "served.p99", "cpu"].map(|row| format!("{step}.{row}")));
    for key in keys.as_flattened() {
        for row in ROWS.iter().filter(|row| row.key == key) {
            add(row.label, row.unit, &|run| run.rows.get(row.key).copied());
        }
    }
    let memory = |run: &Run, step| run.usage.iter().find(|used| used.step == step).map(|used| used.controller.rss);
    add("controller memory after the cold start, MiB", Unit::Count, &|run| memory(run, Step::Cold));
    add("controller memory after all changes, MiB", Unit::Count, &|run| memory(run, Step::Storm));
    lines
}

pub(super) fn ratio(value: Option<&f64>, first: Option<&f64>) -> String {
    match (value, first) {
        (Some(value), Some(first)) if *first > 0.0 => match value / first {
            ratio if ratio >= 10.0 => format!("{ratio:.0}×"),
            ratio => format!("{ratio:.1}×"),
        },
        _ => "–".to_owned(),
    }
}

/// One line a step and implementation: memory, its peak, and CPU time since the start of the process.
fn usage(runs: &[&Run]) -> Vec<Vec<String>> {
    let head = ["after", "", "controller RSS", "peak", "CPU", "Envoy RSS", "peak", "CPU"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for run in runs {
        for used in &run.usage {
            let mut line = vec![used.step.label().to_owned(), run.implementation.clone()];
            for usage in [used.controller, used.envoy] {
                line.push(format!("{:.0} MiB", usage.rss));
                line.push(format!("{:.0} MiB", usage.peak));
                line.push(format!("{:.1} s", usage.cpu));
            }
            lines.push(line);
        }
    }
    lines
}

/// Lines of cells, the first line being the head: as Markdown, or with columns that stand under each other.
pub(super) fn render(lines: &[Vec<String>], markdown: bool) -> String {
    if markdown {
        return markdown_of(lines);
    }
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let padding = " ".repeat(widths[column] - cell.chars().count());
            let cell = if column == 0 { format!("  {cell}{padding}") } else { format!("  {padding}{cell}") };
            text.push_str(&cell);
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

fn markdown_of(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let cells: Vec<&str> = line.iter().map(|cell| cell.trim()).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
        if number == 0 {
            text.push_str(&format!("|---|{}\n", "---:|".repeat(line.len() - 1)));
        }
    }
    text.push('\n');
    text
}

//! A report as tables: for each world one of all rows, implementations side by side, and one of what they used.

use super::{Report, Run, hostile};
use crate::row::ROWS;
use crate::world::World;

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

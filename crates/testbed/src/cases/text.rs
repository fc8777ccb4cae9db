//! Texts for people who read goldens: JSON values as YAML, maps and lists in blocks as deep as the caller wants and
//! the rest on one line; and what differs between two texts, line by line, with the lines around it.

use serde_json::Value;

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", word(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => word(text),
        other => other.to_string(),
    }
}

/// A value in blocks to its leaves, each line this far in.
pub(super) fn block(value: &Value, indent: usize) -> String {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().map(|(key, value)| format!("{pad}{}:{}", word(key), below(value, indent))).collect()
        }
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .map(|item| {
                let text = block(item, indent + 2);
                format!("{pad}- {}", text.trim_start())
            })
            .collect(),
        leaf => format!("{pad}{}\n", flow(leaf)),
    }
}

/// What stands behind a key that is this far in.
pub(super) fn below(value: &Value, indent: usize) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => format!("\n{}", block(value, indent + 2)),
        Value::Array(items) if !items.is_empty() => format!("\n{}", block(value, indent)),
        leaf => format!(" {}\n", flow(leaf)),
    }
}

/// A text as a scalar: as it is where no reader of YAML could take it for anything else, else in quotes.
pub(super) fn word(text: &str) -> String {
    let first = text.chars().next();
    let plain = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '/' || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./-@".contains(c))
        && !matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n");
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// A text as a key in a block: spaces and brackets inside do not matter there.
pub(super) fn key(text: &str) -> String {
    let words = text.split([' ', '[', ']']).filter(|part| !part.is_empty());
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '/');
    let plain = first
        && !text.ends_with(' ')
        && words.into_iter().all(|part| part.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c)));
    if plain { text.to_owned() } else { Value::from(text).to_string() }
}

/// How many equal lines are shown before and after a difference.
const AROUND: usize = 3;

/// The difference: `-` stands before what was expected, `+` before what there is.
pub(super) fn differences(expected: &str, found: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let steps = steps(&old, &new);
    let changed: Vec<usize> =
        steps.iter().enumerate().filter(|(_, (mark, _))| *mark != ' ').map(|(at, _)| at).collect();
    let near = |at: usize| changed.iter().any(|change| change.abs_diff(at) <= AROUND);
    let mut out = String::from("the golden part differs (- expected, + found; UPDATE_CASES=1 takes what is found):\n");
    let mut gap = false;
    for (at, (mark, line)) in steps.iter().enumerate() {
        if near(at) {
            if std::mem::take(&mut gap) {
                out.push_str("  …\n");
            }
            out.push_str(&format!("{mark} {line}\n"));
        } else {
            gap = true;
        }
    }
    out
}

/// A shortest way from one text to the other, by the longest common subsequence.
fn steps<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut steps = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            steps.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            steps.push(('-', old[i]));
            i += 1;
        } else {
            steps.push(('+', new[j]));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown_with_its_neighbours() {
        let text = differences("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\ne\nf\nG\nh\n");
        let shown: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(shown, ["  …", "  d", "  e", "  f", "- g", "+ G", "  h"]);
    }
}

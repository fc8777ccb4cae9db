//! Whether a path still begins with `/` when a pattern has rewritten it.
//!
//! In: a pattern and its substitution. Out: whether every path, each of which begins with `/`, begins with one afterwards too. In a redirect
//! the path is appended to the host: without the `/` it would become part of it. What the beginning of a match may be follows from
//! the tree of the pattern; where that is not known, the answer is no.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// What a part of a match may begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Beginning {
    /// Whether it may be empty.
    empty: bool,
    /// Whether it may begin with `/`.
    slash: bool,
    /// Whether it may begin with anything else.
    other: bool,
}

impl Beginning {
    const EMPTY: Self = Self { empty: true, slash: false, other: false };

    /// That of something that is one or the other.
    fn or(self, other: Self) -> Self {
        Self { empty: self.empty || other.empty, slash: self.slash || other.slash, other: self.other || other.other }
    }

    /// That of something and what follows it.
    fn then(self, next: Self) -> Self {
        if self.empty { Self { empty: next.empty, ..self.or(next) } } else { self }
    }
}

/// Whether every path still begins with `/`.
pub(super) fn is_kept(pattern: &str, substitution: &str) -> bool {
    let Ok(tree) = regex_syntax::parse(pattern) else { return substitution.starts_with('/') };
    let whole = of(&tree, true);
    if !whole.empty && !whole.slash {
        return true;
    }
    let mut bytes = substitution.bytes();
    while let Some(byte) = bytes.next() {
        let digit = if byte == b'\\' { bytes.next().filter(u8::is_ascii_digit) } else { None };
        let part = match (byte, digit) {
            (b'/', _) => return true,
            // A match at the beginning of a path begins as the path does.
            (_, Some(b'0')) => Beginning { other: false, ..whole },
            (_, Some(digit)) => of_group(&tree, u32::from(digit - b'0'), true).unwrap_or(Beginning::EMPTY),
            (_, None) => return false,
        };
        if part.other || !part.empty {
            return !part.other;
        }
    }
    // The match is removed: what follows it may begin with anything, unless the match is empty or nothing follows it.
    !whole.slash || is_at_end(&tree)
}

/// Whether a match ends where the path does.
fn is_at_end(node: &Hir) -> bool {
    match node.kind() {
        HirKind::Look(Look::End) => true,
        HirKind::Capture(capture) => is_at_end(&capture.sub),
        HirKind::Concat(parts) => parts.last().is_some_and(is_at_end),
        HirKind::Alternation(parts) => parts.iter().all(is_at_end),
        _ => false,
    }
}

/// What a match may begin with, at the beginning of a path or anywhere.
fn of(node: &Hir, at_start: bool) -> Beginning {
    match node.kind() {
        // A path is not empty: its end is not where it begins.
        HirKind::Look(Look::End | Look::EndLF | Look::EndCRLF) if at_start => Beginning::default(),
        HirKind::Empty | HirKind::Look(_) => Beginning::EMPTY,
        HirKind::Literal(literal) => {
            let slash = literal.0.first() == Some(&b'/');
            Beginning { empty: false, slash, other: !slash }
        }
        HirKind::Class(class) => of_class(class),
        HirKind::Repetition(repetition) => {
            let once = of(&repetition.sub, at_start);
            Beginning { empty: once.empty || repetition.min == 0, ..once }
        }
        HirKind::Capture(capture) => of(&capture.sub, at_start),
        HirKind::Concat(parts) => parts.iter().fold(Beginning::EMPTY, |before, part| before.then(of(part, at_start))),
        HirKind::Alternation(parts) => {
            parts.iter().map(|part| of(part, at_start)).fold(Beginning::default(), Beginning::or)
        }
    }
}

fn of_class(class: &Class) -> Beginning {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
    };
    let slash = u32::from(b'/');
    Beginning {
        empty: false,
        slash: ranges.iter().any(|(start, end)| (*start..=*end).contains(&slash)),
        other: ranges.iter().any(|range| *range != (slash, slash)),
    }
}

/// What a group may begin with; nothing if the pattern has no such group. One that takes no part in a match is empty. `at_start` is whether
/// the match is at the beginning of a path and nothing of it precedes the node.
fn of_group(node: &Hir, number: u32, at_start: bool) -> Option<Beginning> {
    match node.kind() {
        HirKind::Capture(capture) if capture.index == number => {
            let found = of(&capture.sub, at_start);
            Some(Beginning { other: found.other && !at_start, ..found })
        }
        HirKind::Capture(capture) => of_group(&capture.sub, number, at_start),
        HirKind::Repetition(repetition) => {
            let found = of_group(&repetition.sub, number, at_start && repetition.max == Some(1))?;
            Some(Beginning { empty: found.empty || repetition.min == 0, ..found })
        }
        HirKind::Concat(parts) => {
            let mut at_start = at_start;
            parts.iter().find_map(|part| {
                let found = of_group(part, number, at_start);
                at_start &= part.properties().maximum_len() == Some(0);
                found
            })
        }
        HirKind::Alternation(parts) => {
            let found = parts.iter().find_map(|part| of_group(part, number, at_start))?;
            Some(Beginning { empty: true, ..found })
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_a_slash_after_these_substitutions_and_not_after_those() {
        for (pattern, substitution, expected) in [
            ("/old", "/new", true),
            ("^/old", "new", false),
            ("^/old/(.*)$", r"\1", false),
            ("^/old/(.*)$", r"/\1", true),
            ("/old", "", false),
            ("/old", r"\\x", false),
            ("/old", r"\0/new", true),
            (".*", r"\0x", false),
            ("^/v1(/.*)$", r"\1", true),
            ("^/v1(/.*)?$", r"\1", true),
            ("^/v1(/.*)?", r"\1", false),
            (r"^(.*)\.html$", r"\1", true),
            ("^(.*)/$", r"\1", true),
            ("^/old/(.*)$", "", true),
            ("^/v1(/.*)?$", r"\1/new", true),
            ("^/v1(/a|b)$", r"\1", false),
            ("^/v1(?:(/a)|/b)$", r"\1", true),
            ("^/v1(?:(/a)|/b)", r"\1", false),
            ("^(.*)/old$", r"\1/new", true),
            ("^(/[a-z]+)/old(.*)$", r"\1\2", true),
            ("(a)?/", r"\1", false),
            ("(?i)^/OLD", "new", false),
            // These match nowhere at the beginning of a path.
            ("old", "new", true),
            (r"\.html$", "", true),
            ("[^/]+$", "index.html", true),
            ("$", "index.html", true),
            // An empty match at the beginning: the substitution comes before the path.
            ("x*", "y", false),
            ("x*", "", true),
        ] {
            assert_eq!(is_kept(pattern, substitution), expected, "{pattern} {substitution}");
        }
    }
}

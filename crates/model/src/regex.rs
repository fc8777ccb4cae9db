//! Regular expressions that Envoy's engine, RE2, compiles.
//!
//! A regex that RE2 refuses makes Envoy refuse every route sent with it, so a pattern is parsed here first. RE2 and the
//! `regex` crate agree on most of the language; where they differ the pattern is refused rather than guessed at:
//! set operations inside classes, verbose mode and `\u{…}` are the crate's alone. The size of the compiled program is
//! bounded, too: `(((a{100}){100}){100})` is a short text and a very long program.

use regex_syntax::{
    ParserBuilder,
    ast::{self, Ast, ClassSetItem},
    hir::{Hir, HirKind},
};
use std::{fmt, sync::Arc};

/// The longest pattern.
pub const LONGEST: usize = 4096;
/// The largest program, in instructions as we estimate them; RE2's own limit is several times this.
pub const LARGEST: u64 = 10_000;
/// RE2 refuses to repeat anything more often than this.
const MOST_REPEATS: u32 = 1000;

/// A pattern in RE2's syntax.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regex(Arc<str>);

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegexError {
    /// It does not parse; the text says where.
    #[error("`{pattern}` is not a regular expression: {why} (at character {at})")]
    Syntax {
        /// The pattern.
        pattern: Box<str>,
        /// What is wrong.
        why: Box<str>,
        /// Where, counted from 1.
        at: usize,
    },
    /// Something that the two engines read differently or RE2 does not know.
    #[error("`{pattern}` uses {what}, which RE2 does not have")]
    Unsupported {
        /// The pattern.
        pattern: Box<str>,
        /// The construct.
        what: &'static str,
    },
    /// The compiled form passes the limit.
    #[error("the regular expression is too large: {0}")]
    TooLarge(&'static str),
}

impl Regex {
    /// Reads a pattern.
    pub fn parse(pattern: &str) -> Result<Self, RegexError> {
        if pattern.len() > LONGEST {
            return Err(RegexError::TooLarge("more than 4096 bytes"));
        }
        let syntax = |why: String, at: usize| RegexError::Syntax { pattern: pattern.into(), why: why.into(), at };
        let tree = ast::parse::ParserBuilder::new()
            .nest_limit(100)
            .build()
            .parse(pattern)
            .map_err(|e| syntax(e.kind().to_string(), e.span().start.column))?;
        let unsupported = |what| RegexError::Unsupported { pattern: pattern.into(), what };
        ast::visit(&tree, Re2).map_err(unsupported)?;
        let hir = ParserBuilder::new().nest_limit(100).utf8(true).build().parse(pattern).map_err(|e| match e {
            regex_syntax::Error::Translate(e) => syntax(e.kind().to_string(), e.span().start.column),
            other => syntax(other.to_string(), 1),
        })?;
        if size(&hir) > LARGEST {
            return Err(RegexError::TooLarge("its repetitions multiply to a program of more than 10000 steps"));
        }
        Ok(Self(pattern.into()))
    }

    /// A pattern that matches exactly this text.
    pub fn literal(text: &str) -> Self {
        Self(regex_syntax::escape(text).into())
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Walks the parsed pattern and names the first construct that RE2 lacks.
struct Re2;

impl ast::Visitor for Re2 {
    type Output = ();
    type Err = &'static str;

    fn finish(self) -> Result<(), &'static str> {
        Ok(())
    }

    fn visit_pre(&mut self, node: &Ast) -> Result<(), &'static str> {
        match node {
            Ast::Flags(set) => flags(&set.flags),
            Ast::Group(group) => match &group.kind {
                ast::GroupKind::NonCapturing(set) => flags(set),
                _ => Ok(()),
            },
            Ast::Literal(literal) => literal_form(literal),
            Ast::Assertion(assertion) => match assertion.kind {
                ast::AssertionKind::StartLine
                | ast::AssertionKind::EndLine
                | ast::AssertionKind::StartText
                | ast::AssertionKind::EndText
                | ast::AssertionKind::WordBoundary
                | ast::AssertionKind::NotWordBoundary => Ok(()),
                _ => Err("a word-start or word-end assertion"),
            },
            Ast::Repetition(repetition) => match &repetition.op.kind {
                ast::RepetitionKind::Range(range) => repeats(range),
                _ => Ok(()),
            },
            Ast::ClassUnicode(class) => property(class),
            _ => Ok(()),
        }
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ast::ClassSetBinaryOp) -> Result<(), &'static str> {
        Err("a set operation inside a class")
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), &'static str> {
        match item {
            ClassSetItem::Literal(literal) => literal_form(literal),
            ClassSetItem::Range(range) => literal_form(&range.start).and_then(|()| literal_form(&range.end)),
            ClassSetItem::Unicode(class) => property(class),
            ClassSetItem::Bracketed(_) => Err("a class inside a class"),
            _ => Ok(()),
        }
    }
}

fn flags(flags: &ast::Flags) -> Result<(), &'static str> {
    let known = |item: &ast::FlagsItem| {
        matches!(
            item.kind,
            ast::FlagsItemKind::Negation
                | ast::FlagsItemKind::Flag(
                    ast::Flag::CaseInsensitive
                        | ast::Flag::MultiLine
                        | ast::Flag::DotMatchesNewLine
                        | ast::Flag::SwapGreed
                )
        )
    };
    if flags.items.iter().all(known) { Ok(()) } else { Err("a flag other than i, m, s and U") }
}

fn literal_form(literal: &ast::Literal) -> Result<(), &'static str> {
    match literal.kind {
        ast::LiteralKind::HexFixed(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong)
        | ast::LiteralKind::HexBrace(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong) => {
            Err("a \\u escape (write \\x{…})")
        }
        _ => Ok(()),
    }
}

fn property(class: &ast::ClassUnicode) -> Result<(), &'static str> {
    match &class.kind {
        ast::ClassUnicodeKind::OneLetter(_) => Ok(()),
        ast::ClassUnicodeKind::Named(name) if name.len() <= 2 => Ok(()),
        _ => Err("a named Unicode property other than a general category"),
    }
}

fn repeats(range: &ast::RepetitionRange) -> Result<(), &'static str> {
    let most = match *range {
        ast::RepetitionRange::Exactly(n) | ast::RepetitionRange::AtLeast(n) => n,
        ast::RepetitionRange::Bounded(low, high) => low.max(high),
    };
    if most > MOST_REPEATS { Err("a repetition of more than 1000") } else { Ok(()) }
}

/// An estimate of the compiled size: every repetition counts its body as often as it may be unrolled.
fn size(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty => 1,
        HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => 2 * class.ranges().len() as u64 + 1,
        HirKind::Class(regex_syntax::hir::Class::Bytes(class)) => class.ranges().len() as u64 + 1,
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min + 1).max(1));
            times.saturating_mul(size(&repetition.sub) + 1)
        }
        HirKind::Capture(capture) => size(&capture.sub) + 2,
        HirKind::Concat(parts) => parts.iter().map(size).fold(0, u64::saturating_add),
        HirKind::Alternation(parts) => parts.iter().map(|p| size(p) + 1).fold(0, u64::saturating_add),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_re2_takes() {
        for right in ["/a.*", "^/v[0-9]+/x$", "(?i)/abc", r"/\d+(/|$)", "/(?P<id>[a-z]+)", r"\pL+", "/a{2,5}", ""] {
            assert!(Regex::parse(right).is_ok(), "{right:?}: {:?}", Regex::parse(right));
        }
    }

    #[test]
    fn patterns_that_it_does_not() {
        for wrong in
            ["(", "[a", "a**b(", "(?=x)", r"\1", "a{2000}", "[a&&b]", "(?x)a b", r"\u{61}", "[[a]b]", r"\p{Greek}"]
        {
            assert!(Regex::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_bomb_is_refused_quickly() {
        assert!(matches!(Regex::parse("((a{100}){100}){100}"), Err(RegexError::TooLarge(_))));
        assert!(matches!(Regex::parse(&"a".repeat(5000)), Err(RegexError::TooLarge(_))));
        assert!(Regex::parse(&"(".repeat(3000)).is_err());
    }

    #[test]
    fn an_error_says_where() {
        let Err(RegexError::Syntax { at, .. }) = Regex::parse("/ab[c") else { panic!("it parsed") };
        assert_eq!(at, 4);
    }

    #[test]
    fn a_literal_is_quoted() {
        assert_eq!(Regex::literal("/a.b").as_str(), r"/a\.b");
    }
}

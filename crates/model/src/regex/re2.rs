//! RE2's language, where it is less than that of the parser we use, and the size of what RE2 makes of a pattern.
//!
//! Envoy has RE2 compare bytes, not characters. A character outside ASCII is therefore a sequence: it may stand by itself,
//! but not in a class or before `*`, and no code above `\\xFF` can be named.

use regex_syntax::ast::{self, Ast, ClassSet, ClassSetItem, GroupKind, LiteralKind, RepetitionKind, RepetitionRange};

/// RE2 refuses to repeat anything more often than this, repetitions inside repetitions included.
pub(super) const MOST_REPEATS: u64 = 1000;

/// The general categories that RE2 knows, in its spelling.
const CATEGORIES: [&str; 35] = [
    "C", "Cc", "Cf", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// Walks the parsed pattern and names the first construct that RE2 lacks.
pub(super) struct Check;

/// How many groups a pattern captures.
pub(super) fn groups(tree: &Ast) -> usize {
    struct Groups(usize);
    impl ast::Visitor for Groups {
        type Output = usize;
        type Err = ();

        fn finish(self) -> Result<usize, ()> {
            Ok(self.0)
        }

        fn visit_pre(&mut self, node: &Ast) -> Result<(), ()> {
            if let Ast::Group(group) = node {
                self.0 += usize::from(group.is_capturing());
            }
            Ok(())
        }
    }
    ast::visit(tree, Groups(0)).unwrap_or_default()
}

type Found = Result<(), &'static str>;

impl ast::Visitor for Check {
    type Output = ();
    type Err = &'static str;

    fn finish(self) -> Found {
        Ok(())
    }

    fn visit_pre(&mut self, node: &Ast) -> Found {
        match node {
            Ast::Flags(set) => flags(&set.flags),
            Ast::Group(group) => match &group.kind {
                GroupKind::NonCapturing(set) => flags(set),
                GroupKind::CaptureName { name, .. } => group_name(&name.name),
                GroupKind::CaptureIndex(_) => Ok(()),
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
            Ast::Repetition(repetition) => repetition_form(repetition),
            Ast::ClassUnicode(class) => property(class),
            _ => Ok(()),
        }
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ast::ClassSetBinaryOp) -> Found {
        Err("a set operation inside a class")
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Found {
        match item {
            ClassSetItem::Literal(literal) => class_literal(literal),
            ClassSetItem::Range(range) => class_literal(&range.start).and_then(|()| class_literal(&range.end)),
            ClassSetItem::Unicode(class) => property(class),
            ClassSetItem::Bracketed(_) => Err("a class inside a class"),
            _ => Ok(()),
        }
    }
}

fn flags(flags: &ast::Flags) -> Found {
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

fn group_name(name: &str) -> Found {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { Ok(()) } else { Err("a group name of other characters than letters, digits and `_`") }
}

fn repetition_form(repetition: &ast::Repetition) -> Found {
    match (&*repetition.ast, &repetition.op.kind) {
        (Ast::Repetition(_), _) => Err("a repetition of a repetition without parentheses"),
        (Ast::Literal(literal), _) if is_sequence(literal) => {
            Err("a repetition of a character outside ASCII without parentheses")
        }
        (_, RepetitionKind::Range(range)) if times(range) > MOST_REPEATS => Err("a repetition of more than 1000"),
        _ => Ok(()),
    }
}

/// Whether a literal is several bytes: written as itself, and not as the number of one byte.
fn is_sequence(literal: &ast::Literal) -> bool {
    !literal.c.is_ascii() && matches!(literal.kind, LiteralKind::Verbatim)
}

fn class_literal(literal: &ast::Literal) -> Found {
    if is_sequence(literal) { Err("a character outside ASCII in a class") } else { literal_form(literal) }
}

fn literal_form(literal: &ast::Literal) -> Found {
    match literal.kind {
        LiteralKind::HexFixed(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong)
        | LiteralKind::HexBrace(ast::HexLiteralKind::UnicodeShort | ast::HexLiteralKind::UnicodeLong) => {
            Err("a \\u escape (write \\x{…})")
        }
        LiteralKind::HexBrace(_) if u32::from(literal.c) > 0xff => Err("a code above \\xFF"),
        LiteralKind::Superfluous if literal.c == '_' => Err("the escape \\_"),
        _ => Ok(()),
    }
}

fn property(class: &ast::ClassUnicode) -> Found {
    let known = match &class.kind {
        ast::ClassUnicodeKind::OneLetter(letter) => CATEGORIES.contains(&&*letter.to_string()),
        ast::ClassUnicodeKind::Named(name) => CATEGORIES.contains(&name.as_str()),
        ast::ClassUnicodeKind::NamedValue { .. } => false,
    };
    if known { Ok(()) } else { Err("a Unicode property other than a general category such as Lu") }
}

fn times(range: &RepetitionRange) -> u64 {
    u64::from(match *range {
        RepetitionRange::Exactly(n) | RepetitionRange::AtLeast(n) => n,
        RepetitionRange::Bounded(low, high) => low.max(high),
    })
}

/// What a pattern comes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// The instructions of its program.
    pub steps: u64,
    /// How often its most repeated part is written out.
    pub repeats: u64,
}

/// An estimate: every repetition counts its body as often as it is written out.
pub(super) fn size(node: &Ast) -> Size {
    let leaf = |steps| Size { steps, repeats: 1 };
    match node {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => leaf(1),
        Ast::Literal(literal) => leaf(letter(literal)),
        Ast::Dot(_) => leaf(UTF8),
        Ast::ClassPerl(class) => leaf(perl(class)),
        Ast::ClassUnicode(_) => leaf(UNICODE),
        Ast::ClassBracketed(class) => leaf(class_size(&class.kind) + if class.negated { UTF8 } else { 0 }),
        Ast::Repetition(repetition) => {
            let Size { steps, repeats } = size(&repetition.ast);
            let times = match &repetition.op.kind {
                RepetitionKind::Range(range) => times(range).max(1),
                _ => 1,
            };
            Size { steps: steps.saturating_add(1).saturating_mul(times), repeats: repeats.saturating_mul(times) }
        }
        Ast::Group(group) => {
            let inner = size(&group.ast);
            Size { steps: inner.steps.saturating_add(2), ..inner }
        }
        Ast::Concat(concat) => all(&concat.asts),
        Ast::Alternation(alternation) => all(&alternation.asts),
    }
}

fn all(nodes: &[Ast]) -> Size {
    nodes.iter().map(size).fold(Size { steps: 0, repeats: 1 }, |a, b| Size {
        steps: a.steps.saturating_add(b.steps).saturating_add(1),
        repeats: a.repeats.max(b.repeats),
    })
}

/// What any character of UTF-8 takes.
const UTF8: u64 = 10;
/// What the largest category takes.
const UNICODE: u64 = 800;

fn letter(literal: &ast::Literal) -> u64 {
    literal.c.len_utf8() as u64
}

fn perl(class: &ast::ClassPerl) -> u64 {
    if class.negated { UTF8 + 4 } else { 4 }
}

fn class_size(set: &ClassSet) -> u64 {
    fn item(of: &ClassSetItem) -> u64 {
        match of {
            ClassSetItem::Empty(_) => 1,
            ClassSetItem::Literal(literal) => letter(literal),
            ClassSetItem::Range(range) if range.end.c.is_ascii() => 1,
            ClassSetItem::Range(_) => 2 * UTF8,
            ClassSetItem::Ascii(class) => {
                if class.negated {
                    UTF8 + 4
                } else {
                    4
                }
            }
            ClassSetItem::Unicode(_) => UNICODE,
            ClassSetItem::Perl(class) => perl(class),
            ClassSetItem::Bracketed(class) => class_size(&class.kind) + UTF8,
            ClassSetItem::Union(union) => union.items.iter().map(item).sum(),
        }
    }
    match set {
        ClassSet::Item(of) => item(of),
        ClassSet::BinaryOp(op) => class_size(&op.lhs) + class_size(&op.rhs),
    }
}

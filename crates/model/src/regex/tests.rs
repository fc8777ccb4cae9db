//! What is taken and what is not.

use super::*;

#[test]
fn patterns_that_re2_takes() {
    for right in [
        "/a.*",
        "^/v[0-9]+/x$",
        "(?i)/abc",
        r"/\d+(/|$)",
        "/(?P<id>[a-z]+)",
        r"\pL+",
        "/a{2,5}",
        r"/\w{63}(\.\w{63})*",
        "/.{1000}",
        "/é",
        "/(é)*",
        r"/\xE9*",
    ] {
        assert!(Regex::parse(right).is_ok(), "{right:?}: {:?}", Regex::parse(right));
    }
}

#[test]
fn patterns_that_it_does_not() {
    for wrong in [
        "",
        "(",
        "[a",
        "a**b(",
        "(?=x)",
        r"\1",
        "a{2000}",
        "[a&&b]",
        "(?x)a b",
        r"\u{61}",
        "[[a]b]",
        r"\p{Greek}",
        "a**",
        "a{2}{3}",
        "(a{50}){50}",
        r"\p{LC}",
        r"\p{lu}",
        r"\_",
        "(?P<a.b>x)",
        r"\b{start}",
        r"\x{10FFFF}",
        "[é]",
        "é*",
    ] {
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

//! How texts fall into documents, what values become, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Vec<Result<Node<'_>, YamlError>> {
    let limits = Limits { nodes: 1000, depth: 20 };
    let mut nodes = limits.nodes;
    documents(text).iter().filter_map(|document| document.parse(&limits, &mut nodes).transpose()).collect()
}

/// The value as JSON would write it.
fn json(node: &Node<'_>) -> String {
    let list = |items: Vec<String>| items.join(",");
    match &node.value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::List(items) => format!("[{}]", list(items.iter().map(json).collect())),
        Value::Map(entries) => {
            format!("{{{}}}", list(entries.iter().map(|(key, node)| format!("{}:{}", key.text, json(node))).collect()))
        }
    }
}

fn one(text: &str) -> String {
    match parse(text).as_slice() {
        [Ok(node)] => json(node),
        [Err(error)] => format!("{}:{} {error}", error.position().line, error.position().column),
        other => panic!("{} documents", other.len()),
    }
}

#[test]
fn values_in_every_notation() {
    assert_eq!(
        one("a: 1\nb: [x, 'y', \"z\"]\nc: {d: yes, e: \"yes\"}\n"),
        r#"{a:1,b:["x","y","z"],c:{d:true,e:"yes"}}"#
    );
    assert_eq!(
        one("text: |\n  one\n  two\nfolded: >-\n  one\n  two\nnone:\n"),
        r#"{text:"one\ntwo\n",folded:"one two",none:null}"#
    );
    assert_eq!(
        one("{\"a\":\t[1, 2.5, null, true],\n\t\"b\": \"\\u00e9\\ud83d\\ude00\\/\"}"),
        "{a:[1,2.5,null,true],b:\"é😀/\"}"
    );
    assert_eq!(one("a: !!str 5\nb: '6'\nc: !!int 7\n80: x\ntrue: z\n"), r#"{a:"5",b:"6",c:7,80:"x",true:"z"}"#);
    assert_eq!(one("\u{feff}a: 1"), "{a:1}");
    assert_eq!(one("a: 1\r\nb: 2\r\n"), "{a:1,b:2}");
}

#[test]
fn aliases_and_merges() {
    assert_eq!(one("a: &x {p: 1, q: 2}\nb: *x\n"), "{a:{p:1,q:2},b:{p:1,q:2}}");
    assert_eq!(one("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n"), "{a:{p:1,q:2},b:{q:3,p:1}}");
    assert_eq!(one("- &x {p: 1}\n- &y {p: 2, q: 2}\n- <<: [*x, *y]\n"), "[{p:1},{p:2,q:2},{p:1,q:2}]");
    assert_eq!(one("&k key: *k"), "{key:\"key\"}");
    assert_eq!(one("a: &x [*x]"), "1:8 the alias is nested in the value that it refers to");
    assert!(one("a: *x").contains("1:4"));
    assert_eq!(one("a: {<<: 5}"), "1:5 only maps can be merged by `<<`");
}

#[test]
fn documents_are_told_apart_before_they_are_parsed() {
    let text = "# head\n%YAML 1.2\n---\na: 1\n---\n# nothing\n--- # more\nb: [\n---\nc: 3\n...\n\nd: 4\n---\n";
    let documents = documents(text);
    assert_eq!(documents.iter().map(|document| document.first_line).collect::<Vec<_>>(), [3, 7, 9, 12]);
    let values: Vec<_> = parse(text).iter().map(|document| document.as_ref().map(json).map_err(|_| ())).collect();
    assert_eq!(values, [Ok("{a:1}".into()), Err(()), Ok("{c:3}".into()), Ok("{d:4}".into())]);
}

#[test]
fn what_looks_like_a_marker_inside_a_value_is_none() {
    assert_eq!(one("a: |\n  ---\n  -----BEGIN-----\nb: ---x\n"), "{a:\"---\\n-----BEGIN-----\\n\",b:\"---x\"}");
}

#[test]
fn errors_name_the_line_of_the_file() {
    let text = "a: 1\n---\nb: 2\nc: [1, 2\nd: 3\n";
    let errors: Vec<_> = parse(text).into_iter().filter_map(Result::err).collect();
    assert_eq!(errors.len(), 1);
    assert!((4..=6).contains(&errors[0].position().line), "{errors:?}");
    assert_eq!(one("a: 1\nb: 2\na: 3\n"), "3:1 duplicate key `a`");
    let large: String = (0..40).map(|key| format!("k{key}: 1\n")).collect();
    assert_eq!(one(&format!("{large}k3: 2\n")), "41:1 duplicate key `k3`");
    assert_eq!(one(&format!("{large}k39: 2\n")), "41:1 duplicate key `k39`");
    assert_eq!(one("? [a, b]\n: c\n"), "1:3 a key must be text");
    assert_eq!(one("a: !thing 5"), "1:11 tags of this sort have no meaning here");
    assert_eq!(one("a: !!int five"), "1:10 the value is not what its tag `!!int` says");
}

#[test]
fn tabs_and_stars_are_named_where_they_stand() {
    let tab = "tab in the indentation, where YAML allows only spaces";
    assert_eq!(one("a:\n  b: c\n\td: e\n"), format!("3:1 {tab}"));
    assert_eq!(one("a:\n- b: c\n  \td: e\n"), format!("3:3 {tab}"));
    let alias = "`*` begins an alias in YAML, and nothing has that name: put the value in quotes";
    assert_eq!(one("hosts: [a, *.b.example]"), format!("1:12 {alias}"));
    assert_eq!(one("host: *.b.example # all\n"), format!("1:7 {alias}"));
    assert!(!one("{\n\t\"a\": 1,\n\t\"a\": 2\n}").contains("tab"));
}

#[test]
fn values_know_where_they_stand() {
    let documents = parse("# x\n---\na:\n  - b: é é\n    c: 7\n");
    let root = documents[0].as_ref().unwrap();
    let Value::List(items) = &root.get("a").unwrap().value else { panic!("a list") };
    let at = |line, column| Position { line, column };
    assert_eq!((root.position, items[0].position), (at(3, 1), at(4, 5)));
    assert_eq!(items[0].get("c").unwrap().position, at(5, 8));
}

#[test]
fn bombs_are_bounded() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    assert!(one(&bomb).contains("too many values"), "{}", one(&bomb));
    // Nothing is left for the documents after it.
    assert!(parse(&format!("{bomb}---\na: 1\n")).iter().all(Result::is_err));

    let too_deep = "lists and maps are nested more than 20 deep";
    assert!(one(&"[".repeat(100_000)).contains(too_deep));
    assert!(one(&("[".repeat(25) + &"]".repeat(25))).contains(too_deep));
    let deep: String = (0..300).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(one(&deep).contains(too_deep), "{}", one(&deep));
    assert!(one(&format!("a: [{}]", "x, ".repeat(2000))).contains("too many values"));

    // Copies of a text cost what they take, those of a key, too.
    let (text, copies) = ("x".repeat(1_000), vec!["*a"; 70].join(", "));
    for bomb in [format!("a: &a {text}\nb: [{copies}]\n"), format!("&a {text}: 1\nb: [{copies}]\n")] {
        assert!(one(&bomb).contains("too many values"), "{}", one(&bomb));
    }
    // What an alias stands for is nested where the alias is.
    let nested = |level: usize, inner: &str| format!("a{level}: &a{level} {}{inner}{}\n", "[".repeat(9), "]".repeat(9));
    let deep = nested(0, "x") + &nested(1, "*a0") + &nested(2, "*a1");
    assert!(one(&deep).contains(too_deep), "{}", one(&deep));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(?s).{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_text_of_yaml_letters_makes_the_parser_panic(text in "[-a: \\n\\t\\[\\]{},&*!|>'\"%#?.<~]{0,120}") {
        let _ = parse(&text);
    }
}

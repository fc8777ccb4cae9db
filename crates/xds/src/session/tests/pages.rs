//! Responses that need not be whole come in pages.

use super::*;

/// Room for two small resources.
fn bench(style: Style) -> Bench {
    Bench::with(style, Limits { response_bytes: 400, ..Limits::default() }, None)
}

fn secrets(names: &[&str], body: &str) -> Vec<Resource> {
    names.iter().map(|name| resource(Kind::Secret, name, body)).collect()
}

#[test]
fn what_is_asked_for_by_name_comes_in_pages() {
    for style in [Style::Delta, Style::Sotw] {
        let mut bench = bench(style);
        bench.publish(secrets(&["a", "b", "c", "d", "e"], "1"), &[]);
        bench.subscribe(Kind::Secret, &["a", "b", "c", "d", "e"]);
        let mut pages = Vec::new();
        while let [response] = bench.responses().as_slice() {
            pages.push(summary(response));
            let names = ["a", "b", "c", "d", "e"].map(Name::from).to_vec();
            let ask = match style {
                Style::Delta => Ask::Delta { subscribe: vec![], unsubscribe: vec![], held: Held::default() },
                Style::Sotw => Ask::Sotw { names, version: None },
            };
            bench.request(Request { kind: Kind::Secret, nonce: Some(response.nonce), error: None, ask });
        }
        assert_eq!(pages, ["sds a b", "sds c d", "sds e"], "{style:?}");
        assert_eq!(bench.session.pending(Kind::Secret), 0);
    }
}

#[test]
fn changes_come_in_pages_and_the_first_answer_to_who_wants_everything_is_whole() {
    let mut bench = bench(Style::Delta);
    let names = ["a", "b", "c", "d"];
    let clusters = |body: &str| names.map(|name| resource(Kind::Cluster, name, body)).to_vec();
    bench.publish(clusters("1"), &[]);
    bench.subscribe(Kind::Cluster, &[]);
    assert_eq!(bench.settle(), ["cds a b c d"], "half of it would be taken for all of it");
    bench.publish(clusters("2"), &[]);
    assert_eq!(bench.settle(), ["cds a b", "cds c d"]);
    assert_eq!(bench.session.pending(Kind::Cluster), 0);
}

#[test]
fn one_that_is_larger_than_a_page_goes_alone() {
    let mut bench = bench(Style::Delta);
    bench.publish(secrets(&["a", "c"], "1"), &[]);
    bench.publish(secrets(&["b"], &"x".repeat(1000)), &[]);
    bench.subscribe(Kind::Secret, &["a", "b", "c"]);
    assert_eq!(bench.settle(), ["sds a c", "sds b"]);
}

//! Responses that need not be whole come in pages.

use super::*;

/// Room for two small resources.
fn desk(style: Style) -> Desk {
    Desk::with(style, Limits { response_bytes: 400, ..Limits::default() }, None)
}

fn secrets(names: &[&str], body: &str) -> Vec<Resource> {
    names.iter().map(|name| resource(Kind::Secret, name, body)).collect()
}

#[test]
fn what_is_asked_for_by_name_comes_in_pages() {
    for style in [Style::Delta, Style::Sotw] {
        let mut desk = desk(style);
        desk.publish(secrets(&["a", "b", "c", "d", "e"], "1"), &[]);
        desk.subscribe(Kind::Secret, &["a", "b", "c", "d", "e"]);
        let mut pages = Vec::new();
        while let [response] = desk.responses().as_slice() {
            pages.push(summary(response));
            let names = ["a", "b", "c", "d", "e"].map(Name::from).to_vec();
            let ask = match style {
                Style::Delta => Ask::Delta { subscribe: vec![], unsubscribe: vec![], held: Held::default() },
                Style::Sotw => Ask::Sotw { names, version: None },
            };
            desk.request(Request { kind: Kind::Secret, nonce: Some(response.nonce), error: None, ask });
        }
        assert_eq!(pages, ["sds a b", "sds c d", "sds e"], "{style:?}");
        assert_eq!(desk.session.pending(Kind::Secret), 0);
    }
}

#[test]
fn changes_come_in_pages_and_the_first_answer_to_who_wants_everything_is_whole() {
    let mut desk = desk(Style::Delta);
    let names = ["a", "b", "c", "d"];
    let clusters = |body: &str| names.map(|name| resource(Kind::Cluster, name, body)).to_vec();
    desk.publish(clusters("1"), &[]);
    desk.subscribe(Kind::Cluster, &[]);
    assert_eq!(desk.settle(), ["cds a b c d"], "half of it would be taken for all of it");
    desk.publish(clusters("2"), &[]);
    assert_eq!(desk.settle(), ["cds a b", "cds c d"]);
    assert_eq!(desk.session.pending(Kind::Cluster), 0);
}

#[test]
fn one_that_is_larger_than_a_page_goes_alone() {
    let mut desk = desk(Style::Delta);
    desk.publish(secrets(&["a", "c"], "1"), &[]);
    desk.publish(secrets(&["b"], &"x".repeat(1000)), &[]);
    desk.subscribe(Kind::Secret, &["a", "b", "c"]);
    assert_eq!(desk.settle(), ["sds a c", "sds b"]);
}

//! Responses that need not be whole come in pages.

use super::*;

/// Room for two small resources.
fn bench(style: Style) -> Bench {
    Bench::with(style, Limits { response_bytes: 400, ..Limits::default() }, None)
}

fn routes(names: &[&str], body: &str) -> Vec<Resource> {
    names.iter().map(|name| resource(Kind::Route, name, body)).collect()
}

#[test]
fn what_is_asked_for_by_name_comes_in_pages() {
    for style in [Style::Delta, Style::Sotw] {
        let mut bench = bench(style);
        bench.publish(routes(&["a", "b", "c", "d", "e"], "1"), &[]);
        bench.subscribe(Kind::Route, &["a", "b", "c", "d", "e"]);
        let mut pages = Vec::new();
        while let [response] = bench.responses().as_slice() {
            pages.push(summary(response));
            let names = ["a", "b", "c", "d", "e"].map(Name::from).to_vec();
            let subscription = match style {
                Style::Delta => Subscription::Delta {
                    subscribe: vec![],
                    unsubscribe: vec![],
                    initial_versions: InitialVersions::default(),
                },
                Style::Sotw => Subscription::Sotw { names, version: None },
            };
            bench.request(Request { kind: Kind::Route, nonce: Some(response.nonce), error: None, subscription });
        }
        assert_eq!(pages, ["rds a b", "rds c d", "rds e"], "{style:?}");
        assert_eq!(bench.session.pending(Kind::Route), 0);
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
    bench.publish(routes(&["a", "c"], "1"), &[]);
    bench.publish(routes(&["b"], &"x".repeat(1000)), &[]);
    bench.subscribe(Kind::Route, &["a", "b", "c"]);
    assert_eq!(bench.settle(), ["rds a c", "rds b"]);
}

/// Envoy refuses a whole response for one secret that it cannot load, and does not say which.
#[test]
fn each_secret_has_a_response_of_its_own() {
    let mut bench = Bench::with(Style::Delta, Limits { secret_flights: 2, ..Limits::default() }, None);
    let secret = |name: &str| resource(Kind::Secret, name, "1");
    bench.publish(["a", "b", "c"].map(secret).to_vec(), &[]);
    bench.subscribe(Kind::Secret, &["a", "b", "c", "d"]);
    let first = bench.responses();
    assert_eq!(summaries(&first), ["sds a", "sds b"], "as many as may be in flight");
    bench.ack(&first[0]);
    assert_eq!(summaries(&bench.responses()), ["sds c"]);
    assert_eq!(bench.answer(&first[1], Some("no")).rejected.len(), 1);
    assert_eq!(bench.settle(), ["sds -b", "sds -d"], "what is refused is taken back first");
}

/// Envoy refuses a cluster, too, whose secret it has just refused.
#[test]
fn a_cluster_waits_for_answers_about_its_secrets() {
    let mut bench = Bench::new(Style::Delta);
    let holder = |body: &str| resource(Kind::Cluster, "holder", body).refers_to(Kind::Secret, "a");
    bench.publish(vec![holder("1"), resource(Kind::Secret, "a", "1")], &[]);
    bench.subscribe(Kind::Cluster, &[]);
    bench.subscribe(Kind::Secret, &["a"]);
    assert_eq!(bench.settle(), ["cds holder", "sds a"]);
    bench.publish(vec![resource(Kind::Secret, "a", "bad")], &[]);
    let bad = bench.response();
    bench.publish(vec![holder("2")], &[]);
    assert!(bench.responses().is_empty(), "it may be refused");
    bench.answer(&bad, Some("no"));
    let back = bench.response();
    assert_eq!((summary(&back).as_str(), &*back.upserts[0].body), ("sds a", &b"1"[..]));
    bench.ack(&back);
    assert_eq!(bench.settle(), ["cds holder"]);
}

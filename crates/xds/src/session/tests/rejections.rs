//! Rejections: who is found, how often others are sent, and that nothing loops.

use std::collections::{HashMap, VecDeque};

use envoy_api::envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration};
use prost::Message;

use super::*;
use crate::resource::content_version;

/// Plays a client that refuses some names; says how often each name was sent. `words` makes the text.
fn refuse(total: usize, bad: &[usize], kind: Kind, words: fn(&[&str]) -> String) -> (Vec<usize>, Vec<String>, usize) {
    let name = |at: usize| format!("ns/resource-{at:04}");
    let mut bench = Bench::new(Style::Delta);
    bench.publish((0..total).map(|at| resource(kind, &name(at), "1")).collect(), &[]);
    bench.subscribe(kind, &["*"]);
    let (mut sent, mut found, mut responses) = (vec![0; total], Vec::new(), 0);
    let mut waiting = VecDeque::from(bench.responses());
    while let Some(response) = waiting.pop_front() {
        responses += 1;
        let mut culprits = Vec::new();
        for entry in &response.upserts {
            let at: usize = entry.name[12..].parse().expect("a number");
            sent[at] += 1;
            if bad.contains(&at) {
                culprits.push(&*entry.name);
            }
        }
        let error = (!culprits.is_empty()).then(|| words(&culprits));
        let answer = bench.answer(&response, error.as_deref());
        found.extend(answer.rejected.iter().map(|rejected| rejected.entry.name.to_string()));
        waiting.extend(bench.responses());
        assert!(responses < 10 * total, "in a loop");
    }
    found.sort();
    (sent, found, responses)
}

#[test]
fn the_one_that_is_named_is_withheld_and_the_others_are_sent_once_more() {
    let (sent, found, responses) =
        refuse(1000, &[700], Kind::ScopedRoute, |bad| format!("Error adding/updating {}: no", bad[0]));
    assert_eq!(found, ["ns/resource-0700"]);
    assert_eq!(responses, 2);
    assert_eq!(sent[700], 1);
    assert!(sent.iter().enumerate().all(|(at, count)| at == 700 || *count == 2));
}

#[test]
fn one_that_nobody_names_is_found_by_halves() {
    let (sent, found, responses) = refuse(1000, &[700], Kind::ScopedRoute, |_| "something is wrong".into());
    assert_eq!(found, ["ns/resource-0700"]);
    let bound = 1 + 1000f64.log2().ceil() as usize + 1;
    assert!(sent.iter().all(|count| *count <= bound), "{} sends at most, saw {:?}", bound, sent.iter().max());
    assert!(responses <= 2 * bound, "{responses} responses");
}

#[test]
fn several_that_nobody_names_are_all_found() {
    let bad = [3, 4, 500, 999];
    let (sent, found, _) = refuse(1000, &bad, Kind::ScopedRoute, |_| String::new());
    assert_eq!(found.len(), bad.len());
    assert!(sent.iter().all(|count| *count <= 12));
}

#[test]
fn many_that_are_named_one_by_one_do_not_make_the_good_ones_come_over_and_over() {
    let bad: Vec<usize> = (0..1000).step_by(10).collect();
    let (sent, found, _) = refuse(1000, &bad, Kind::Cluster, |bad| format!("bad: {}", bad[0]));
    assert_eq!(found.len(), bad.len());
    assert!(sent.iter().all(|count| *count <= 15), "saw {:?}", sent.iter().max());
}

#[test]
fn a_refused_version_is_sent_again_only_when_it_changes() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    bench.subscribe(Kind::Listener, &[]);
    let first = bench.response();
    let answer = bench.answer(&first, Some("no"));
    assert_eq!(answer.rejected.len(), 1);
    assert_eq!(&*answer.rejected[0].text, "no");
    bench.publish(vec![resource(Kind::Listener, "b", "1")], &[]);
    assert_eq!(bench.settle(), ["lds b"]);
    bench.publish(vec![resource(Kind::Listener, "a", "2")], &[]);
    assert_eq!(bench.settle(), ["lds a"]);
    bench.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    assert_eq!(bench.settle(), ["lds a"], "it had gone, so it counts as new");
}

#[test]
fn going_back_to_what_the_client_has_needs_nothing() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    bench.subscribe(Kind::Listener, &[]);
    bench.settle();
    bench.publish(vec![resource(Kind::Listener, "a", "2")], &[]);
    let bad = bench.response();
    bench.answer(&bad, Some("no"));
    bench.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    assert!(bench.settle().is_empty());
    assert_eq!(bench.session.pending(Kind::Listener), 0);
}

/// Envoy may have taken the good resources of a response that it rejected. That is not forgotten while they are withheld.
#[test]
fn what_a_client_may_have_of_a_rejected_response_is_replaced_once_it_is_no_longer_withheld() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![resource(Kind::Cluster, "old", "1")], &[]);
    bench.subscribe(Kind::Cluster, &[]);
    bench.settle();
    let clusters = [("bad", "1"), ("old", "2"), ("new", "1")];
    bench.publish(clusters.map(|(name, body)| resource(Kind::Cluster, name, body)).to_vec(), &[]);
    let rejected = bench.response();
    bench.answer(&rejected, Some("bad: no"));
    bench.publish(["old", "new"].map(|name| Resource::withheld(Kind::Cluster, name)).to_vec(), &[]);
    assert!(bench.settle().is_empty());
    assert_eq!(bench.session.pending(Kind::Cluster), 0);
    bench.publish(vec![resource(Kind::Cluster, "old", "1")], &[(Kind::Cluster, "new")]);
    assert_eq!(bench.settle(), ["cds old -new"], "it may have the second version of one, and the first of the other");
    assert_eq!(bench.session.pending(Kind::Cluster), 0);
}

/// A scope with routes of its own.
fn scope(name: &str, body: &str) -> Resource {
    let routes = RouteConfiguration { name: body.to_owned(), ..RouteConfiguration::default() };
    let scope = ScopedRouteConfiguration {
        name: name.to_owned(),
        route_configuration: Some(routes),
        ..ScopedRouteConfiguration::default()
    };
    Resource::new(Kind::ScopedRoute, name, scope.encode_to_vec())
}

/// What Envoy does with scopes: it skips a message that it has stored, and does not use those that precede a bad one.
#[derive(Default)]
struct Scopes {
    stored: HashMap<Name, ScopedRouteConfiguration>,
    used: HashMap<Name, String>,
    /// Of what it has accepted: what it lists on a new stream.
    versions: HashMap<Name, u64>,
    /// The version of the last response that it accepted: what it says on a new stream, in the state of the world.
    accepted: Option<u64>,
}

impl Scopes {
    fn take(&mut self, response: &Response) -> Option<&'static str> {
        let mut new = Vec::new();
        for entry in &response.upserts {
            let scope = ScopedRouteConfiguration::decode(entry.body.clone()).expect("a scope");
            let routes = scope.route_configuration.clone().expect("routes of its own").name;
            if self.stored.get(&entry.name) == Some(&scope) {
                continue;
            }
            if routes == "bad" {
                return Some("no");
            }
            self.stored.insert(entry.name.clone(), scope);
            new.push((entry.name.clone(), routes));
        }
        self.used.extend(new);
        self.accepted = Some(response.version);
        self.versions.extend(response.upserts.iter().map(|entry| (entry.name.clone(), entry.version)));
        None
    }

    fn settle(&mut self, bench: &mut Bench) {
        let mut waiting = VecDeque::from(bench.responses());
        while let Some(response) = waiting.pop_front() {
            let error = self.take(&response);
            bench.answer(&response, error);
            waiting.extend(bench.responses());
        }
    }

    /// Subscribes on a new stream, with a listener and the scopes that it has.
    fn resume(&self, bench: &mut Bench) {
        let listeners = bench.session.table(Kind::Listener);
        let (listener, all) = (listeners.get("l").expect("published").version, listeners.version());
        match bench.style {
            Style::Delta => {
                bench.resume(Kind::Listener, &[], &[("l", listener)]);
                let held: Vec<_> = self.versions.iter().map(|(name, version)| (&**name, *version)).collect();
                bench.resume(Kind::ScopedRoute, &[], &held);
            }
            Style::Sotw => {
                for (kind, version) in [(Kind::Listener, Some(all)), (Kind::ScopedRoute, self.accepted)] {
                    let subscription = Subscription::Sotw { names: vec![], version };
                    bench.request(Request { kind, nonce: None, error: None, subscription });
                }
            }
        }
    }

    fn count_used(&self, wanted: &str) -> usize {
        self.used.values().filter(|used| *used == wanted).count()
    }
}

fn scope_name(at: usize) -> String {
    format!("scope-{at:02}")
}

/// Twenty scopes, some of which are bad.
fn scopes(body: &str, bad: &[usize]) -> Vec<Resource> {
    let body_of = |at: usize| if bad.contains(&at) { "bad" } else { body };
    (0..20).map(|at| scope(&scope_name(at), body_of(at))).collect()
}

#[test]
fn scopes_that_came_with_a_refused_one_are_used() {
    for style in [Style::Delta, Style::Sotw] {
        for mut bad in [vec![0], vec![9], vec![19], vec![3, 9, 10, 19]] {
            let mut bench = Bench::new(style);
            let mut client = Scopes::default();
            bench.publish(scopes("1", &bad), &[]);
            bench.subscribe(Kind::ScopedRoute, &[]);
            client.settle(&mut bench);
            assert_eq!(client.count_used("1"), 20 - bad.len(), "{style:?}: {bad:?} are bad");
            // And when they change, with one more that is bad.
            bad.push(12);
            bench.publish(scopes("2", &bad), &[]);
            client.settle(&mut bench);
            assert_eq!(client.count_used("2"), 20 - bad.len(), "{style:?}: {bad:?} are bad");
        }
    }
}

/// The stream is cut after any number of answers, with the last rejection heard by the server or not, again and again.
#[test]
fn scopes_that_came_with_a_refused_one_are_used_although_the_stream_was_cut() {
    let cuts = (0..8).flat_map(|answers| [(answers, false), (answers, true)]);
    for (style, (answers, heard)) in cuts.flat_map(|cut| [(Style::Delta, cut), (Style::Sotw, cut)]) {
        for bad in [vec![9], vec![19], vec![3, 9, 10, 19]] {
            let mut bench = Bench::new(style);
            let mut client = Scopes::default();
            bench.publish(vec![resource(Kind::Listener, "l", "1")], &[]);
            for body in ["1", "2"] {
                bench.publish(scopes(body, &bad), &[]);
                for _ in 0..3 {
                    client.resume(&mut bench);
                    for _ in 0..answers {
                        for response in bench.responses() {
                            let error = client.take(&response);
                            bench.answer(&response, error);
                        }
                    }
                    for response in bench.responses() {
                        let error = client.take(&response);
                        if heard {
                            bench.answer(&response, error);
                        }
                    }
                    bench.reconnect();
                }
                client.resume(&mut bench);
                client.settle(&mut bench);
                let used = client.count_used(body);
                let cut = format!("cut after {answers} answers, heard: {heard}");
                assert_eq!(used, 20 - bad.len(), "{style:?}: {bad:?} are bad, {cut}");
                bench.reconnect();
            }
        }
    }
}

/// The bad one is mended before the client is back, so that nothing is rejected any more: what came with it must be used all the
/// same.
#[test]
fn scopes_that_came_with_one_that_was_mended_while_the_stream_was_cut_are_used() {
    let cuts = [Style::Delta, Style::Sotw].into_iter().flat_map(|style| [(style, false), (style, true)]);
    for ((style, heard), from_nothing) in cuts.flat_map(|cut| [(cut, false), (cut, true)]) {
        let mut bench = Bench::new(style);
        let mut client = Scopes::default();
        bench.publish(vec![resource(Kind::Listener, "l", "1")], &[]);
        if !from_nothing {
            bench.publish(scopes("1", &[]), &[]);
        }
        client.resume(&mut bench);
        client.settle(&mut bench);
        bench.publish(scopes("2", &[9]), &[]);
        let rejected = bench.response();
        let error = client.take(&rejected);
        assert!(error.is_some());
        if heard {
            bench.answer(&rejected, error);
        }
        bench.reconnect();
        bench.publish(scopes("2", &[]), &[]);
        client.resume(&mut bench);
        client.settle(&mut bench);
        assert_eq!(client.count_used("2"), 20, "{style:?}, heard: {heard}, from nothing: {from_nothing}");
    }
}

#[test]
fn a_removal_in_a_refused_response_is_sent_again() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![resource(Kind::Listener, "a", "1"), resource(Kind::Listener, "b", "1")], &[]);
    bench.subscribe(Kind::Listener, &[]);
    bench.settle();
    bench.publish(vec![resource(Kind::Listener, "a", "2")], &[(Kind::Listener, "b")]);
    let response = bench.response();
    assert_eq!(summary(&response), "lds a -b");
    bench.answer(&response, Some("no"));
    assert_eq!(bench.settle(), ["lds -b"]);
}

fn stand_in(name: &str, body: &str) -> Resource {
    resource(Kind::Route, name, body).standing_in()
}

#[test]
fn a_stand_in_is_for_those_who_have_nothing() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![route("a", "1", &[])], &[]);
    bench.subscribe(Kind::Route, &["a", "b"]);
    bench.settle();
    bench.publish(vec![stand_in("a", "sorry"), stand_in("b", "sorry")], &[]);
    assert_eq!(bench.settle(), ["rds b"], "who has something keeps it");
    assert_eq!(bench.session.pending(Kind::Route), 0, "and is in step");
    bench.publish(vec![stand_in("b", "very sorry")], &[]);
    assert_eq!(bench.settle(), ["rds b"], "a stand-in follows another");
    bench.publish(vec![route("a", "2", &[]), route("b", "2", &[])], &[]);
    assert_eq!(bench.settle(), ["rds a b"], "what is mended is for everybody");
}

#[test]
fn who_comes_back_with_something_keeps_it() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![stand_in("a", "sorry"), stand_in("b", "sorry")], &[]);
    bench.resume(Kind::Route, &["a", "b"], &[("a", content_version(b"1"))]);
    assert_eq!(bench.settle(), ["rds b"]);
    assert_eq!(bench.session.pending(Kind::Route), 0);
}

/// A stand-in tells why a host is not served: a client that has an older one, from whichever replica, is not left with that.
#[test]
fn who_comes_back_with_an_older_stand_in_gets_the_current_one() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![stand_in("a", "sorry"), route("b", "1", &[])], &[]);
    bench.subscribe(Kind::Route, &["a", "b"]);
    let held: Vec<_> = bench.response().upserts.iter().map(|entry| (entry.name.clone(), entry.version)).collect();
    let held: Vec<_> = held.iter().map(|(name, version)| (&**name, *version)).collect();
    bench.publish(vec![stand_in("a", "very sorry"), stand_in("b", "sorry, too")], &[]);
    bench.reconnect();
    bench.resume(Kind::Route, &["a", "b"], &held);
    assert_eq!(bench.settle(), ["rds a"], "and what is its own it keeps");
    assert_eq!(bench.session.pending(Kind::Route), 0);
}

#[test]
fn nothing_waits_for_a_cluster_that_is_withheld() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![Resource::withheld(Kind::Cluster, "bad"), cluster("good", "1"), endpoints("good", "e")], &[]);
    bench.publish(vec![route("a", "1", &["bad"]), Resource::withheld(Kind::Endpoints, "bad")], &[]);
    bench.subscribe(Kind::Cluster, &[]);
    assert_eq!(bench.settle(), ["cds good"]);
    bench.subscribe(Kind::Endpoints, &["good", "bad"]);
    assert_eq!(bench.settle(), ["eds good", "eds -bad"], "who asks by name is told that there is nothing");
    bench.subscribe(Kind::Route, &["a"]);
    assert_eq!(bench.settle(), ["rds a"]);
    Kind::ALL.into_iter().for_each(|kind| assert_eq!(bench.session.pending(kind), 0, "{kind}"));
}

#[test]
fn what_a_client_refused_before_it_left_is_not_sent_when_it_is_back() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![resource(Kind::Listener, "a", "2"), resource(Kind::Listener, "b", "1")], &[]);
    let version = |bench: &Bench, name: &str| bench.session.table(Kind::Listener).get(name).expect("published").version;
    let mut options = options(Style::Delta, &bench.limits, None);
    options.rejected.insert((Kind::Listener, "a".into(), version(&bench, "a")));
    bench.session = Session::new(options, bench.session.view.clone(), bench.now);
    let b = version(&bench, "b");
    bench.resume(Kind::Listener, &[], &[("a", 1), ("b", b)]);
    assert!(bench.settle().is_empty());
    bench.publish(vec![resource(Kind::Listener, "a", "3")], &[]);
    assert_eq!(bench.settle(), ["lds a"]);
}

fn secret(name: &str, body: &str) -> Resource {
    resource(Kind::Secret, name, body)
}

#[test]
fn a_secret_that_is_refused_is_followed_by_what_was_there() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![secret("a", "1")], &[]);
    bench.subscribe(Kind::Secret, &["a", "b"]);
    bench.settle();
    bench.publish(vec![secret("a", "2"), secret("b", "1")], &[]);
    let both = bench.responses();
    assert_eq!(summaries(&both), ["sds a", "sds b"]);
    assert_eq!(bench.answer(&both[0], Some("cannot be loaded")).rejected.len(), 1);
    let back = bench.response();
    assert_eq!((summary(&back).as_str(), &*back.upserts[0].body), ("sds a", &b"1"[..]));
    bench.ack(&both[1]);
    bench.ack(&back);
    assert!(bench.settle().is_empty(), "the other one is there");
    assert_eq!(bench.session.pending(Kind::Secret), 0);
    bench.publish(vec![secret("a", "3")], &[]);
    assert_eq!(bench.settle(), ["sds a"], "what is mended is sent");
}

/// State of the world has several in one response.
#[test]
fn of_several_secrets_that_are_refused_together_all_are_taken_back() {
    let mut bench = Bench::new(Style::Sotw);
    let answer = |bench: &mut Bench, response: &Response, error: Option<&str>| {
        let subscription = Subscription::Sotw { names: vec!["a".into(), "b".into()], version: Some(response.version) };
        let error = error.map(str::to_owned);
        bench.request(Request { kind: Kind::Secret, nonce: Some(response.nonce), error, subscription })
    };
    bench.publish(vec![secret("a", "1"), secret("b", "1")], &[]);
    bench.subscribe(Kind::Secret, &["a", "b"]);
    let first = bench.response();
    answer(&mut bench, &first, None);
    bench.publish(vec![secret("a", "2"), secret("b", "2")], &[]);
    let both = bench.response();
    assert_eq!(summary(&both), "sds a b");
    assert!(answer(&mut bench, &both, Some("cannot be loaded")).rejected.is_empty(), "it may be either");
    let back = bench.response();
    assert_eq!(summary(&back), "sds a b");
    assert!(back.upserts.iter().all(|entry| &*entry.body == b"1"), "both are taken back");
    answer(&mut bench, &back, None);
    let half = bench.response();
    assert_eq!(summary(&half), "sds a");
    assert_eq!(answer(&mut bench, &half, Some("cannot be loaded")).rejected.len(), 1);
}

#[test]
fn a_secret_that_is_refused_from_the_start_is_gone_until_it_changes() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![secret("a", "bad")], &[]);
    bench.subscribe(Kind::Secret, &["a"]);
    let first = bench.response();
    bench.answer(&first, Some("no"));
    assert_eq!(bench.settle(), ["sds -a"]);
    bench.subscribe(Kind::Secret, &["a"]);
    assert_eq!(bench.settle(), ["sds -a"], "who asks again is not sent the same again");
    let unsubscribe = Subscription::Delta {
        subscribe: vec![],
        unsubscribe: vec!["a".into()],
        initial_versions: InitialVersions::default(),
    };
    bench.request(Request { kind: Kind::Secret, nonce: None, error: None, subscription: unsubscribe });
    bench.subscribe(Kind::Secret, &["a"]);
    assert_eq!(bench.settle(), ["sds -a"], "nor is who lets go of it and asks again");
    assert_eq!(bench.session.pending(Kind::Secret), 0);
    bench.publish(vec![secret("a", "good")], &[]);
    assert_eq!(bench.settle(), ["sds a"]);
}

#[test]
fn a_secret_that_cannot_be_taken_back_goes() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![secret("a", "1")], &[]);
    bench.subscribe(Kind::Secret, &["a"]);
    bench.settle();
    bench.publish(vec![secret("a", "2")], &[]);
    for expected in ["sds a", "sds a"] {
        let response = bench.response();
        assert_eq!(summary(&response), expected);
        bench.answer(&response, Some("no"));
    }
    assert_eq!(bench.settle(), ["sds -a"]);
    assert_eq!(bench.session.pending(Kind::Secret), 0);
}

#[test]
fn who_watches_is_told_that_a_secret_goes() {
    let mut bench = Bench::new(Style::Delta);
    let touched = |bench: &mut Bench| !bench.session.touched()[Kind::Secret.index()].is_empty();
    bench.publish(vec![secret("a", "1")], &[]);
    bench.subscribe(Kind::Secret, &["a"]);
    bench.settle();
    bench.publish(vec![secret("a", "2")], &[]);
    let second = bench.response();
    bench.answer(&second, Some("no"));
    let back = bench.response();
    touched(&mut bench);
    bench.answer(&back, Some("no"));
    assert!(touched(&mut bench), "the client no longer has the first version");
    assert_eq!(summary(&bench.response()), "sds -a");
    assert!(touched(&mut bench), "nor will it have any other");
}

#[test]
fn the_version_of_all_that_was_sent_is_without_a_secret_that_goes() {
    let mut bench = Bench::new(Style::Sotw);
    let answer = |bench: &mut Bench, response: &Response, error: Option<&str>| {
        let subscription = Subscription::Sotw { names: vec!["a".into(), "b".into()], version: Some(response.version) };
        let error = error.map(str::to_owned);
        bench.request(Request { kind: Kind::Secret, nonce: Some(response.nonce), error, subscription });
    };
    bench.publish(vec![secret("a", "1")], &[]);
    bench.subscribe(Kind::Secret, &["a", "b"]);
    let first = bench.response();
    answer(&mut bench, &first, None);
    bench.publish(vec![secret("a", "2")], &[]);
    for expected in ["2", "1"] {
        let response = bench.response();
        assert_eq!(&*response.upserts[0].body, expected.as_bytes());
        answer(&mut bench, &response, Some("no"));
    }
    bench.publish(vec![secret("b", "1")], &[]);
    let only = bench.response();
    assert_eq!((summary(&only).as_str(), only.version), ("sds b", only.upserts[0].weight()));
}

#[test]
fn a_secret_that_was_refused_on_an_earlier_stream_is_not_sent_on_the_next() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![secret("a", "bad"), secret("b", "bad"), secret("c", "good")], &[]);
    let mut options = options(Style::Delta, &bench.limits, None);
    for name in ["a", "b"] {
        let version = bench.session.table(Kind::Secret).get(name).expect("published").version;
        options.rejected.insert((Kind::Secret, name.into(), version));
    }
    bench.session = Session::new(options, bench.session.view.clone(), bench.now);
    bench.subscribe(Kind::Secret, &["a", "c"]);
    assert_eq!(bench.settle(), ["sds c", "sds -a"]);
    bench.subscribe(Kind::Secret, &["b"]);
    assert_eq!(bench.settle(), ["sds -b"]);
    assert_eq!(bench.session.pending(Kind::Secret), 0);
}

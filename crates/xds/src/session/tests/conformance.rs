//! Every case of a subscription, in both wordings of the protocol, as a script.
//!
//! `publish a=1 -b` changes the tables. `> …` is a request: in delta `+a` subscribes, `-a` unsubscribes and `~a=1` lists
//! what the client has; in state of the world names are listed as they are and `@a=1,b=2` is the version of what the
//! client has. `ack`, `nack:words` and `stale` answer the last response. `< a=1 -b` is the one response sent next, in
//! full; `<` alone is an empty one. `.` is silence. Each script ends in silence.

use super::*;
use crate::resource::{content_version, weight};

struct Case(&'static str, Kind, Style, &'static str);

use Kind::{Cluster, Endpoints, Listener, Route, ScopedRoute, Secret};
use Style::{Delta, Sotw};

const CASES: &[Case] = &[
    Case("no names at first means every name", Listener, Delta, "publish a=1 b=2; >; < a=1 b=2; > ack"),
    Case("a star means every name", Listener, Delta, "publish a=1 b=2; > +*; < a=1 b=2; > ack"),
    Case("also for types that are usually named", Secret, Delta, "publish a=1 b=2; >; < a=1 b=2; > ack"),
    Case(
        "an empty table is answered to who wants all of it",
        Listener,
        Delta,
        "> ; <; > ack; publish a=1; < a=1; > ack",
    ),
    Case("an empty table is answered to a star", Cluster, Delta, "> +*; <; > ack"),
    Case("names get what they name", Route, Delta, "publish a=1 b=2; > +a; < a=1; > ack; publish b=3"),
    Case("what does not exist is answered as removed", Route, Delta, "publish a=1; > +a +x; < a=1 -x; > ack"),
    Case("and is sent when it comes", Route, Delta, "> +x; < -x; > ack; publish x=1; < x=1; > ack"),
    Case("more names later", Route, Delta, "publish a=1 b=2; > +a; < a=1; > ack; > +b; < b=2; > ack"),
    Case("more names with the answer", Route, Delta, "publish a=1 b=2; > +a; < a=1; > +b ack; < b=2; > ack"),
    Case(
        "more names before the answer wait for it",
        Route,
        Delta,
        "publish a=1 b=2; > +a; < a=1; > +b; .; > ack; < b=2; > ack",
    ),
    Case("a name asked for again is sent again", Route, Delta, "publish a=1; > +a; < a=1; > ack; > +a; < a=1; > ack"),
    Case("a missing name asked for again is answered again", Route, Delta, "> +x; < -x; > ack; > +x; < -x; > ack"),
    Case("a dropped name is silent", Route, Delta, "publish a=1 b=2; > +a +b; < a=1 b=2; > ack; > -a; publish a=3; ."),
    Case("dropped while on its way", Route, Delta, "publish a=1; > +a; < a=1; > -a; > ack; publish a=2; ."),
    Case(
        "dropped and asked for again while on its way",
        Route,
        Delta,
        "publish a=1; > +a; < a=1; > -a; > +a; > ack; < a=1; > ack",
    ),
    Case(
        "a dropped name that a star covers is sent again",
        Cluster,
        Delta,
        "publish a=1 b=2; > +* +a; < a=1 b=2; > ack; > -a; < a=1; > ack",
    ),
    Case(
        "a dropped name that does not exist is answered",
        Cluster,
        Delta,
        "publish a=1; > +* +x; < a=1 -x; > ack; > -x; < -x; > ack",
    ),
    Case(
        "a dropped star leaves the names",
        Listener,
        Delta,
        "publish a=1 b=2; > +* +a; < a=1 b=2; > ack; > -*; publish a=3 b=3; < a=3; > ack",
    ),
    Case(
        "no names at first, then a star dropped, leaves nothing",
        Listener,
        Delta,
        "publish a=1; >; < a=1; > ack; > -*; publish a=2; .",
    ),
    Case("a star later brings the rest", Listener, Delta, "publish a=1 b=2; > +a; < a=1; > ack; > +*; < b=2; > ack"),
    Case(
        "a star later on a complete client is answered",
        Listener,
        Delta,
        "publish a=1; > +a; < a=1; > ack; > +*; <; > ack",
    ),
    Case("a star twice is one star", Listener, Delta, "publish a=1; > +*; < a=1; > ack; > +*; ."),
    Case(
        "a name beside the unspoken star is answered",
        Cluster,
        Delta,
        "publish a=1; >; < a=1; > ack; > +a; < a=1; > ack",
    ),
    Case(
        "what the client has is not sent again",
        Listener,
        Delta,
        "publish a=1 b=2; > ~a=1 ~b=2; .; publish a=3; < a=3; > ack",
    ),
    Case("what it has in another version is", Listener, Delta, "publish a=1 b=2; > ~a=0 ~b=2; < a=1; > ack"),
    Case("what it does not have is", Listener, Delta, "publish a=1 b=2; > ~a=1; < b=2; > ack"),
    Case("what it has and we lack is removed", Listener, Delta, "publish a=1; > ~a=1 ~x=9; < -x; > ack"),
    Case("what it has of an empty table is removed", Listener, Delta, "> ~x=9; < -x; > ack"),
    Case(
        "named, and what it has is not sent",
        Route,
        Delta,
        "publish a=1 b=2; > +a +b ~a=1 ~b=2; .; publish b=3; < b=3; > ack",
    ),
    Case("named, what it has and we lack is removed", Endpoints, Delta, "publish a=1; > +a +x ~a=1 ~x=1; < -x; > ack"),
    Case("named, what nobody has is answered", Endpoints, Delta, "publish a=1; > +a +x ~a=1; < -x; > ack"),
    Case("what it has but does not want is not mentioned", Route, Delta, "publish a=1 b=2; > +a ~a=1 ~b=1 ~x=1; ."),
    Case(
        "one response at a time",
        Route,
        Delta,
        "publish a=1 b=1; > +a +b; < a=1 b=1; publish a=2; .; publish b=2; .; > ack; < a=2 b=2; > ack",
    ),
    Case(
        "changes that cancel out are not sent",
        Route,
        Delta,
        "publish a=1 b=1; > +a +b; < a=1 b=1; publish a=2; publish a=1; > ack",
    ),
    Case(
        "clusters may overtake their answers",
        Cluster,
        Delta,
        "publish a=1; >; < a=1; publish a=2; < a=2; publish b=1; < b=1; > ack",
    ),
    Case("a removal", Listener, Delta, "publish a=1 b=2; >; < a=1 b=2; > ack; publish -a; < -a; > ack"),
    Case(
        "gone and back before the answer",
        Listener,
        Delta,
        "publish a=1; >; < a=1; > ack; publish -a; < -a; publish a=1; .; > ack; < a=1; > ack",
    ),
    Case(
        "gone and back while something else is on its way",
        Listener,
        Delta,
        "publish a=1 b=1; >; < a=1 b=1; publish -a; publish a=1; > ack",
    ),
    Case(
        "a stale answer says nothing",
        Route,
        Delta,
        "publish a=1; > +a; < a=1; > stale; publish a=2; .; > ack; < a=2; > ack",
    ),
    Case(
        "a stale answer may still subscribe",
        Route,
        Delta,
        "publish a=1 b=1; > +a; < a=1; > ack; > +b stale; < b=1; > ack",
    ),
    Case("an answer twice is one", Route, Delta, "publish a=1; > +a; < a=1; > ack; > ack; publish a=2; < a=2; > ack"),
    Case("an answer to another stream", Listener, Delta, "publish a=1; > stale; < a=1; > ack"),
    Case(
        "a rejection is not repeated",
        Route,
        Delta,
        "publish a=1 b=1; > +a +b; < a=1 b=1; > nack:'a'; < b=1; > ack; publish b=2; < b=2; > ack; publish a=2; < a=2; > ack",
    ),
    Case("a first request that only drops", Route, Delta, "publish a=1; > -b; .; > +a; < a=1; > ack"),
    Case("no names at first means every name", Listener, Sotw, "publish a=1 b=2; >; < a=1 b=2; > ack"),
    Case("a star means every name", Cluster, Sotw, "publish a=1 b=2; > *; < a=1 b=2; > * ack"),
    Case("an empty table is answered", Cluster, Sotw, "> ; <; > ack; publish a=1; < a=1; > ack"),
    Case(
        "a change brings all of a type that is complete",
        Cluster,
        Sotw,
        "publish a=1 b=2; >; < a=1 b=2; > ack; publish a=3; < a=3 b=2; > ack",
    ),
    Case("scopes are such a type", ScopedRoute, Sotw, "publish a=1 b=2; >; < a=1 b=2; > ack; publish -a; < b=2; > ack"),
    Case(
        "a change brings only itself of other types",
        Route,
        Sotw,
        "publish a=1 b=2; > a b; < a=1 b=2; > a b ack; publish a=3; < a=3; > a b ack",
    ),
    Case("the last of a complete type goes", Listener, Sotw, "publish a=1; >; < a=1; > ack; publish -a; <; > ack"),
    Case(
        "absence of a partial type cannot be said",
        Route,
        Sotw,
        "publish a=1; > a; < a=1; > a ack; publish -a; .; publish a=1; .; publish -a; publish a=2; < a=2; > a ack",
    ),
    Case(
        "a longer list brings what is new",
        Route,
        Sotw,
        "publish a=1 b=2; > a; < a=1; > a ack; > a b; < b=2; > a b ack",
    ),
    Case(
        "a longer list brings all of a complete type",
        Cluster,
        Sotw,
        "publish a=1 b=2; > a; < a=1; > a ack; > a b; < a=1 b=2; > a b ack",
    ),
    Case(
        "a shorter list is silent",
        Route,
        Sotw,
        "publish a=1 b=2; > a b; < a=1 b=2; > a b ack; > a ack; publish b=3; .",
    ),
    Case(
        "a list that changes with the answer",
        Route,
        Sotw,
        "publish a=1 b=2; > a; < a=1; > b ack; < b=2; > b ack; publish a=3",
    ),
    Case("no names after names means none", Route, Sotw, "publish a=1; > a; < a=1; > a ack; > ack; publish a=2; ."),
    Case(
        "names after no names",
        Listener,
        Sotw,
        "publish a=1 b=2; >; < a=1 b=2; > ack; > a; publish b=3; .; publish a=3; < a=3; > a ack",
    ),
    Case("a star beside names", Listener, Sotw, "publish a=1 b=2; > a; < a=1; > a ack; > a *; < a=1 b=2; > a * ack"),
    Case("what does not exist yet", Route, Sotw, "> x; .; publish x=1; < x=1; > x ack"),
    Case("what does not exist of a complete type", Cluster, Sotw, "> x; <; > x ack; publish x=1; < x=1; > x ack"),
    Case(
        "endpoints that do not exist are empty",
        Endpoints,
        Sotw,
        "> x; < x=none; > x ack; publish x=1; < x=1; > x ack",
    ),
    Case(
        "what the client has is not sent again",
        Listener,
        Sotw,
        "publish a=1 b=2; > @a=1,b=2; .; publish a=3; < a=3 b=2; > ack",
    ),
    Case(
        "named, what it has is not sent again",
        Route,
        Sotw,
        "publish a=1 b=2 c=3; > a b @a=1,b=2; .; publish a=3; < a=3; > a b ack",
    ),
    Case("another version brings everything", Listener, Sotw, "publish a=1 b=2; > @a=1,b=1; < a=1 b=2; > ack"),
    Case(
        "a stale answer says nothing",
        Route,
        Sotw,
        "publish a=1; > a; < a=1; > a stale; publish a=2; .; > a ack; < a=2; > a ack",
    ),
    Case(
        "a rejection keeps the last good of a complete type",
        Listener,
        Sotw,
        "publish a=1 b=1; >; < a=1 b=1; > ack; publish a=2 b=2; < a=2 b=2; > nack:'a'; < a=1 b=2; > ack; publish a=3; < a=3 b=2; > ack",
    ),
    Case(
        "a rejection is not repeated",
        Route,
        Sotw,
        "publish a=1 b=1; > a b; < a=1 b=1; > a b nack:'a'; < b=1; > a b ack; publish b=2; < b=2; > a b ack; publish a=2; < a=2; > a b ack",
    ),
    Case(
        "clusters may overtake their answers",
        Cluster,
        Sotw,
        "publish a=1; >; < a=1; publish a=2; < a=2; publish b=1; < a=2 b=1; > ack",
    ),
];

#[test]
fn every_subscription_case() {
    let mut failed = Vec::new();
    for case in CASES {
        let run = std::panic::AssertUnwindSafe(|| play(case));
        if let Err(panic) = std::panic::catch_unwind(run) {
            let words = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            failed.push(format!("{:?} {}: {}\n    {words}", case.2, case.0, case.3));
        }
    }
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), CASES.len(), failed.join("\n"));
}

fn play(Case(_, kind, style, script): &Case) {
    let mut bench = Bench::new(*style);
    let mut last = None;
    for step in script.split(';').map(str::trim).chain(["."]) {
        let (verb, words) = step.split_once(' ').unwrap_or((step, ""));
        let words: Vec<&str> = words.split_whitespace().collect();
        match verb {
            "publish" => {
                let (removes, upserts): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
                let upserts = upserts.iter().map(|word| {
                    let (name, body) = word.split_once('=').expect("name=body");
                    resource(*kind, name, body)
                });
                let removes: Vec<_> = removes.iter().map(|word| (*kind, &word[1..])).collect();
                bench.publish(upserts.collect(), &removes);
            }
            ">" => {
                let request = request(*kind, *style, &words, last);
                bench.request(request);
            }
            "<" => {
                let response = bench.response();
                last = Some(response.nonce);
                assert_eq!(spell(&response), words.join(" "), "at {step}");
            }
            "." => assert_eq!(summaries(&bench.responses()), Vec::<String>::new(), "at the silence"),
            _ => panic!("not a step: {step}"),
        }
    }
    assert_eq!(bench.session.pending(*kind), 0, "left behind");
}

fn request(kind: Kind, style: Style, words: &[&str], last: Option<u64>) -> Request {
    let (mut nonce, mut error) = (None, None);
    let (mut plus, mut minus, mut held, mut names, mut version) = (vec![], vec![], vec![], vec![], None);
    for word in words {
        if *word == "ack" {
            nonce = last;
        } else if *word == "stale" {
            nonce = Some(9999);
        } else if let Some(text) = word.strip_prefix("nack:") {
            (nonce, error) = (last, Some(text.to_owned()));
        } else if let Some(has) = word.strip_prefix('@') {
            let sum = has.split(',').filter_map(|has| has.split_once('='));
            version = Some(
                sum.fold(0u64, |sum, (name, body)| sum.wrapping_add(weight(name, content_version(body.as_bytes())))),
            );
        } else if style == Sotw {
            names.push(Name::from(*word));
        } else if let Some(name) = word.strip_prefix('+') {
            plus.push(name.into());
        } else if let Some(name) = word.strip_prefix('-') {
            minus.push(name.into());
        } else if let Some((name, body)) = word.strip_prefix('~').and_then(|has| has.split_once('=')) {
            held.push((name.into(), content_version(body.as_bytes())));
        } else {
            panic!("not a word of a request: {word}");
        }
    }
    let subscription = match style {
        Delta => {
            Subscription::Delta { subscribe: plus, unsubscribe: minus, initial_versions: held.into_iter().collect() }
        }
        Sotw => Subscription::Sotw { names, version },
    };
    Request { kind, nonce, error, subscription }
}

/// A response in the words of a script.
fn spell(response: &Response) -> String {
    let upserts = response.upserts.iter().map(|entry| match entry.version {
        0 => format!("{}=none", entry.name),
        _ => format!("{}={}", entry.name, String::from_utf8_lossy(&entry.body)),
    });
    let removed = response.removed.iter().map(|name| format!("-{name}"));
    let mut words: Vec<String> = upserts.collect();
    words.sort();
    let mut removed: Vec<String> = removed.collect();
    removed.sort();
    words.extend(removed);
    words.join(" ")
}

/// What a client that connects costs: all of its scopes ask whether their clusters are there, and scopes are not in the order of
/// clusters, so each look would be at another place in memory.
#[test]
fn scopes_of_a_client_that_has_its_clusters_cost_no_lookups() {
    const HOSTS: usize = 1000;
    let mut bench = Bench::new(Style::Delta);
    let names: Vec<String> = (0..HOSTS).map(|number| format!("c{number}")).collect();
    let clusters = names.iter().map(|name| cluster(name, "1"));
    let scopes = names
        .iter()
        .map(|name| resource(Kind::ScopedRoute, &format!("g|{name}"), "1").refers_to(Kind::Cluster, name.as_str()));
    let all = clusters.chain(names.iter().map(|name| endpoints(name, "1"))).chain(scopes);
    bench.publish(all.collect(), &[]);
    bench.subscribe(Kind::Cluster, &[]);
    bench.settle();
    bench.subscribe(Kind::Endpoints, &names.iter().map(String::as_str).collect::<Vec<_>>());
    bench.settle();
    bench.subscribe(Kind::ScopedRoute, &[]);
    let before = crate::table::LOOKUPS.get();
    let response = bench.response();
    assert_eq!(response.upserts.len(), HOSTS);
    assert_eq!(crate::table::LOOKUPS.get() - before, 0);
}

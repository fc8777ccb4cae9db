//! Names that tables do not list: certificates by the SNI that a visitor sent.

use super::*;

/// `A.Wild.com` → `a.wild.com` → `*.wild.com`.
struct ByHost;

impl Resolver for ByHost {
    fn resolves(&self, kind: Kind) -> bool {
        kind == Kind::Secret
    }

    fn resolve(&self, _: Kind, asked: &str, listed: &dyn Fn(&str) -> bool) -> Option<Name> {
        let host = asked.to_ascii_lowercase();
        if listed(&host) {
            return Some(host.into());
        }
        let wildcard = format!("*.{}", host.split_once('.')?.1);
        listed(&wildcard).then(|| wildcard.into())
    }
}

fn bench(aliases: usize) -> Bench {
    let limits = Limits { aliases, aliases_per_resource: aliases / 2, ..Limits::default() };
    let mut bench = Bench::with(Style::Delta, limits, Some(Arc::new(ByHost)));
    bench.publish(vec![resource(Kind::Secret, "*.wild.com", "\x0a\x01*"), resource(Kind::Secret, "a.com", "1")], &[]);
    bench
}

#[test]
fn a_name_is_led_to_the_resource_that_answers_for_it() {
    let mut bench = bench(100);
    bench.subscribe(Kind::Secret, &["A.com", "X.wild.com", "unknown.org"]);
    let responses = bench.responses();
    assert_eq!(summaries(&responses), ["sds A.com", "sds X.wild.com", "sds -unknown.org"]);
    let renamed = responses[1].upserts[0].body.clone();
    assert!(renamed.ends_with(b"\x0a\x0aX.wild.com"), "the message is renamed, too: {renamed:?}");
    responses.iter().for_each(|response| _ = bench.ack(response));
    bench.publish(vec![resource(Kind::Secret, "*.wild.com", "2")], &[]);
    assert_eq!(bench.settle(), ["sds X.wild.com"], "rotation reaches it");
    bench.publish(vec![resource(Kind::Secret, "x.wild.com", "own"), resource(Kind::Secret, "*.org", "o")], &[]);
    assert_eq!(bench.settle(), ["sds X.wild.com", "sds unknown.org"], "a better match, and one that waited");
    bench.publish(vec![], &[(Kind::Secret, "x.wild.com"), (Kind::Secret, "a.com")]);
    assert_eq!(bench.settle(), ["sds X.wild.com -A.com"], "and back");
    assert_eq!(bench.session.pending(Kind::Secret), 0);
}

#[test]
fn what_a_returning_client_has_of_such_names_is_not_sent_again() {
    let mut bench = bench(100);
    bench.subscribe(Kind::Secret, &["X.wild.com"]);
    let version = bench.response().upserts[0].version;
    bench.reconnect();
    bench.resume(Kind::Secret, &["X.wild.com"], &[("X.wild.com", version)]);
    assert!(bench.settle().is_empty());
}

#[test]
fn visitors_cannot_fill_a_client_with_names() {
    let mut bench = bench(8);
    for at in 0..1000 {
        let name = format!("h{at}.wild.com");
        bench.subscribe(Kind::Secret, &[&name]);
        let sent = bench.settle();
        let evicted = if at < 4 { String::new() } else { format!(" -h{}.wild.com", at - 4) };
        assert_eq!(sent, [format!("sds {name}{evicted}")]);
    }
    assert_eq!(bench.session.flow(Kind::Secret).expect("subscribed").names.len(), 4);
    bench.subscribe(Kind::Secret, &["h0.wild.com"]);
    assert_eq!(
        bench.settle(),
        ["sds h0.wild.com -h996.wild.com"],
        "one that made room comes back when it is asked for"
    );
}

#[test]
fn of_names_that_lead_nowhere_the_latest_are_remembered() {
    let limits = Limits { absent: 4, ..Limits::default() };
    let mut bench = Bench::with(Style::Delta, limits, Some(Arc::new(ByHost)));
    for at in 0..1000 {
        let name = format!("h{at}.org");
        bench.subscribe(Kind::Secret, &[&name]);
        assert_eq!(bench.settle(), [format!("sds -{name}")]);
    }
    assert_eq!(bench.session.flow(Kind::Secret).expect("subscribed").names.len(), 4);
    let many: Vec<String> = (0..10).map(|at| format!("m{at}.org")).collect();
    bench.subscribe(Kind::Secret, &many.iter().map(String::as_str).collect::<Vec<_>>());
    let removed: usize = bench.settle().iter().map(|sent| sent.matches(" -").count()).sum();
    assert_eq!(removed, many.len(), "also those that are forgotten before they are answered");
    bench.subscribe(Kind::Secret, &["h999.org"]);
    bench.settle();
    bench.publish(vec![resource(Kind::Secret, "h0.org", "1"), resource(Kind::Secret, "h999.org", "1")], &[]);
    assert_eq!(bench.settle(), ["sds h999.org"], "one that is remembered is sent when it comes");
    bench.subscribe(Kind::Secret, &["h0.org"]);
    assert_eq!(bench.settle(), ["sds h0.org"], "one that is forgotten is sent when it is asked for");
}

#[test]
fn names_whose_wildcard_goes_lead_nowhere_like_any_other() {
    let limits = Limits { absent: 4, ..Limits::default() };
    let mut bench = Bench::with(Style::Delta, limits, Some(Arc::new(ByHost)));
    bench.publish(vec![resource(Kind::Secret, "*.wild.com", "1")], &[]);
    let names: Vec<String> = (0..20).map(|at| format!("h{at:02}.wild.com")).collect();
    bench.subscribe(Kind::Secret, &names.iter().map(String::as_str).collect::<Vec<_>>());
    bench.settle();
    bench.publish(vec![], &[(Kind::Secret, "*.wild.com")]);
    let sent = bench.settle();
    assert!(names.iter().all(|name| sent.iter().any(|sent| sent.contains(&format!(" -{name}")))), "{sent:?}");
    assert_eq!(bench.session.flow(Kind::Secret).expect("subscribed").names.len(), 4);
    bench.publish(vec![resource(Kind::Secret, "*.wild.com", "2")], &[]);
    let latest = ["sds h16.wild.com", "sds h17.wild.com", "sds h18.wild.com", "sds h19.wild.com"];
    assert_eq!(bench.settle(), latest, "the latest are remembered");
}

#[test]
fn more_names_than_a_stream_may_have_are_answered_and_not_kept() {
    let limits = Limits { names: 10, ..Limits::default() };
    let mut bench = Bench::with(Style::Delta, limits, Some(Arc::new(ByHost)));
    for at in 0..100 {
        let name = format!("h{at}.org");
        bench.subscribe(Kind::Secret, &[&name]);
        assert_eq!(bench.settle(), [format!("sds -{name}")]);
    }
    assert_eq!(bench.session.flow(Kind::Secret).expect("subscribed").names.len(), 10);
}

/// A client that was on its own may come back with any number of names that its visitors made up. One that it is told nothing of
/// would wait for ever, and never ask again.
#[test]
fn whoever_comes_back_with_many_names_is_told_about_each() {
    let limits = Limits { names: 10, absent: 4, ..Limits::default() };
    let mut bench = Bench::with(Style::Delta, limits, Some(Arc::new(ByHost)));
    bench.publish(vec![resource(Kind::Secret, "a.com", "1")], &[]);
    let names: Vec<String> = (0..20).map(|at| format!("h{at:02}.org")).chain(["a.com".to_owned()]).collect();
    bench.subscribe(Kind::Secret, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let sent = bench.settle().join(" ");
    for name in &names[..20] {
        assert!(sent.contains(&format!(" -{name}")), "{name} in {sent}");
    }
    assert!(sent.contains(" a.com"), "{sent}");
    assert_eq!(bench.session.flow(Kind::Secret).expect("subscribed").names.len(), 5);
    bench.subscribe(Kind::Secret, &["h00.org"]);
    bench.settle();
    bench.publish(vec![resource(Kind::Secret, "h00.org", "1")], &[]);
    assert_eq!(bench.settle(), ["sds h00.org"], "one that was forgotten and asked for again is sent when it comes");
}

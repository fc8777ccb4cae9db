//! Make before break, case by case. The property test covers what nobody thought of.

use super::*;

const TIMEOUT: Duration = Duration::from_secs(3);
const ABSENCE: Duration = Duration::from_secs(20);

/// An Envoy that has one cluster with endpoints and one route to it.
fn warm() -> Bench {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![cluster("a", "1"), endpoints("a", "1"), route("r", "1", &["a"])], &[]);
    bench.subscribe(Kind::Cluster, &[]);
    bench.subscribe(Kind::Endpoints, &["a"]);
    bench.subscribe(Kind::Route, &["r"]);
    assert_eq!(bench.settle(), ["cds a", "eds a", "rds r"]);
    bench
}

#[test]
fn a_route_waits_for_its_new_cluster_and_the_cluster_for_its_endpoints() {
    let mut bench = warm();
    bench.publish(vec![cluster("b", "1"), endpoints("b", "1"), route("r", "2", &["b"])], &[]);
    let clusters = bench.response();
    assert_eq!(summary(&clusters), "cds b");
    bench.subscribe(Kind::Endpoints, &["b"]);
    let given = bench.response();
    assert_eq!(summary(&given), "eds b", "endpoints wait for nothing");
    assert!(bench.responses().is_empty(), "the route waits for the endpoints to be taken");
    bench.ack(&given);
    assert_eq!(summary(&bench.response()), "rds r", "the answer about clusters is not waited for");
    bench.ack(&clusters);
    assert!(bench.responses().is_empty());
}

#[test]
fn a_route_waits_for_a_health_checked_cluster_until_it_is_taken() {
    let mut bench = warm();
    bench.publish(vec![cluster("b", "1").warming(), endpoints("b", "1"), route("r", "2", &["b"])], &[]);
    let clusters = bench.response();
    bench.subscribe(Kind::Endpoints, &["b"]);
    let given = bench.response();
    bench.ack(&given);
    assert!(bench.responses().is_empty());
    bench.ack(&clusters);
    assert_eq!(summary(&bench.response()), "rds r");
}

#[test]
fn but_not_for_ever() {
    let mut bench = warm();
    bench.publish(vec![cluster("b", "1").warming(), endpoints("b", "1"), route("r", "2", &["b"])], &[]);
    bench.response();
    bench.subscribe(Kind::Endpoints, &["b"]);
    let given = bench.response();
    bench.ack(&given);
    let Step::Idle(Some(wake)) = bench.session.poll(bench.now) else { panic!("a deadline is set") };
    assert_eq!(wake, bench.now + TIMEOUT);
    bench.wait(TIMEOUT);
    assert_eq!(summary(&bench.response()), "rds r");
}

#[test]
fn one_tenants_slow_cluster_does_not_hold_up_another() {
    let mut bench = warm();
    bench.publish(vec![cluster("slow", "1").warming(), route("r", "2", &["slow"])], &[]);
    assert_eq!(summaries(&bench.responses()), ["cds slow"]);
    bench.publish(vec![cluster("b", "1"), endpoints("b", "1"), route("q", "1", &["b"])], &[]);
    assert_eq!(summaries(&bench.responses()), ["cds b"], "although the answer about the slow one is still out");
    bench.subscribe(Kind::Endpoints, &["b"]);
    bench.subscribe(Kind::Route, &["q"]);
    let given = bench.response();
    bench.ack(&given);
    assert_eq!(summaries(&bench.responses()), ["rds q"]);
}

#[test]
fn a_cluster_goes_after_the_route_that_used_it() {
    let mut bench = warm();
    bench.publish(vec![route("r", "2", &[])], &[(Kind::Cluster, "a"), (Kind::Endpoints, "a")]);
    let routes = bench.response();
    assert_eq!(summary(&routes), "rds r");
    bench.ack(&routes);
    let clusters = bench.response();
    assert_eq!(summary(&clusters), "cds -a");
    bench.ack(&clusters);
    assert_eq!(summary(&bench.response()), "eds -a");
}

#[test]
fn a_cluster_stays_while_its_route_is_refused() {
    let mut bench = warm();
    bench.publish(vec![cluster("b", "1"), route("r", "2", &["b"])], &[(Kind::Cluster, "a"), (Kind::Endpoints, "a")]);
    let clusters = bench.response();
    bench.ack(&clusters);
    let routes = bench.response();
    assert_eq!(summary(&routes), "rds r");
    bench.answer(&routes, Some("no"));
    assert!(bench.responses().is_empty(), "the old route still uses it");
    bench.wait(ABSENCE);
    assert!(bench.responses().is_empty());
    bench.publish(vec![route("r", "3", &["b"])], &[]);
    assert_eq!(bench.settle(), ["rds r", "cds -a", "eds -a"]);
}

#[test]
fn a_changed_cluster_gets_its_endpoints_again() {
    let mut bench = warm();
    bench.publish(vec![cluster("a", "2")], &[]);
    assert_eq!(summaries(&bench.responses()), ["cds a", "eds a"]);
}

#[test]
fn endpoints_sent_before_their_cluster_are_sent_again_after_it() {
    let mut bench = warm();
    let limits = Limits { cluster_flights: 1, ..Limits::default() };
    let mut slow = Bench::with(Style::Delta, limits, None);
    std::mem::swap(&mut bench.writer, &mut slow.writer);
    slow.reconnect();
    slow.subscribe(Kind::Cluster, &[]);
    slow.subscribe(Kind::Endpoints, &["a"]);
    let sent = slow.responses();
    assert_eq!(summaries(&sent), ["cds a", "eds a"]);
    slow.ack(&sent[1]);
    slow.publish(vec![cluster("a", "2")], &[]);
    let again = slow.response();
    assert_eq!(summary(&again), "eds a", "the cluster has to wait for the answer to the one before");
    slow.ack(&again);
    slow.ack(&sent[0]);
    assert_eq!(summaries(&slow.responses()), ["cds a", "eds a"]);
}

#[test]
fn a_cut_while_a_changed_cluster_warms_heals_by_versions_alone() {
    let mut bench = warm();
    let before = bench.session.table(Kind::Endpoints).get("a").expect("published").version;
    bench.publish(vec![cluster("a", "2")], &[]);
    let sent = bench.responses();
    assert_eq!(summaries(&sent), ["cds a", "eds a"]);
    bench.reconnect();
    bench.resume(Kind::Endpoints, &["a"], &[("a", before)]);
    assert_eq!(summaries(&bench.responses()), ["eds a"], "though no request about clusters has come");
}

#[test]
fn a_cold_envoy_gets_listeners_before_the_routes_it_then_asks_for() {
    let mut bench = Bench::new(Style::Delta);
    let listener = resource(Kind::Listener, "l", "1").refers_to(Kind::Route, "r").refers_under(Kind::ScopedRoute, "g|");
    bench.publish(vec![cluster("a", "1"), route("r", "1", &["a"]), listener], &[]);
    bench.subscribe(Kind::Cluster, &[]);
    bench.subscribe(Kind::Listener, &[]);
    assert_eq!(bench.settle(), ["cds a", "lds l"]);
    bench.subscribe(Kind::Route, &["r"]);
    assert_eq!(bench.settle(), ["rds r"]);
}

#[test]
fn a_listener_waits_for_its_scopes_once_there_are_scopes() {
    let mut bench = Bench::new(Style::Delta);
    let scope = |name: &str| resource(Kind::ScopedRoute, name, "1").refers_to(Kind::Cluster, "a");
    let listener = |name: &str, group: &str| resource(Kind::Listener, name, "1").refers_under(Kind::ScopedRoute, group);
    bench.publish(vec![cluster("a", "1"), scope("g|x"), listener("l", "g|")], &[]);
    bench.subscribe(Kind::Cluster, &[]);
    bench.subscribe(Kind::Listener, &[]);
    bench.settle();
    bench.subscribe(Kind::ScopedRoute, &["*"]);
    bench.settle();
    bench.publish(vec![scope("h|x"), listener("m", "h|")], &[]);
    let scopes = bench.response();
    assert_eq!(summary(&scopes), "srds h|x");
    bench.ack(&scopes);
    assert_eq!(bench.settle(), ["lds m"]);
    bench.publish(vec![], &[(Kind::ScopedRoute, "h|x"), (Kind::Listener, "m")]);
    assert_eq!(bench.settle(), ["lds -m", "srds -h|x"], "and goes before them");
}

#[test]
fn a_returning_client_keeps_its_clusters_until_it_has_told_of_its_routes() {
    let mut bench = warm();
    let old = bench.session.table(Kind::Route).get("r").expect("published").version;
    let held = bench.session.table(Kind::Cluster).get("a").expect("published").version;
    bench.publish(vec![cluster("b", "1"), route("r", "2", &["b"])], &[(Kind::Cluster, "a"), (Kind::Endpoints, "a")]);
    bench.reconnect();
    bench.resume(Kind::Cluster, &[], &[("a", held)]);
    let clusters = bench.response();
    assert_eq!(summary(&clusters), "cds b", "what it lacks is sent, what we lack is not removed");
    bench.ack(&clusters);
    bench.resume(Kind::Route, &["r"], &[("r", old)]);
    let routes = bench.response();
    assert_eq!(summary(&routes), "rds r");
    bench.wait(2 * ABSENCE);
    assert!(bench.responses().is_empty());
    bench.ack(&routes);
    assert_eq!(bench.settle(), ["cds -a"]);
}

#[test]
fn a_returning_clients_route_waits_for_it_to_ask_for_clusters_but_not_for_ever() {
    let mut bench = warm();
    let old = bench.session.table(Kind::Route).get("r").expect("published").version;
    bench.publish(vec![cluster("b", "1"), route("r", "2", &["b"])], &[]);
    bench.reconnect();
    bench.resume(Kind::Route, &["r"], &[("r", old)]);
    assert!(bench.responses().is_empty());
    bench.wait(ABSENCE);
    assert_eq!(bench.settle(), ["rds r"]);
}

#[test]
fn what_does_not_exist_or_is_not_wanted_holds_nothing_up() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![cluster("b", "1"), route("r", "1", &["nowhere", "b"])], &[]);
    bench.subscribe(Kind::Cluster, &["other"]);
    bench.settle();
    bench.subscribe(Kind::Route, &["r"]);
    assert_eq!(bench.settle(), ["rds r"]);
}

#[test]
fn a_stream_of_one_type_waits_for_nothing() {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![cluster("a", "1"), route("r", "1", &["a"])], &[]);
    let mut options = options(Style::Delta, &bench.limits, None);
    options.only = Some(Kind::Route);
    bench.session = Session::new(options, bench.session.view.clone(), bench.now);
    bench.resume(Kind::Route, &["r"], &[("r", 1)]);
    assert_eq!(bench.settle(), ["rds r"]);
}

#[test]
fn half_a_world_is_not_sent_to_a_client_that_has_none() {
    let mut bench = Bench::new(Style::Delta);
    let scope = |name: &str, to: &str| resource(Kind::ScopedRoute, name, "1").refers_to(Kind::Cluster, to);
    bench.publish(vec![cluster("a", "1").warming(), cluster("b", "1"), scope("x", "a"), scope("y", "b")], &[]);
    bench.subscribe(Kind::Cluster, &[]);
    bench.subscribe(Kind::ScopedRoute, &["*"]);
    let clusters = bench.response();
    assert_eq!(summary(&clusters), "cds a b");
    bench.ack(&clusters);
    assert_eq!(bench.settle(), ["srds x y"]);
}

/// An Envoy that has a scope with routes of its own, and one of a scope that is to name routes that it does not have yet.
fn to_share() -> Bench {
    let mut bench = Bench::new(Style::Delta);
    bench.publish(vec![resource(Kind::ScopedRoute, "x", "own")], &[]);
    bench.subscribe(Kind::ScopedRoute, &["*"]);
    assert_eq!(bench.settle(), ["srds x"]);
    let sharing = |name: &str| resource(Kind::ScopedRoute, name, "shared").refers_to(Kind::Route, "s");
    bench.publish(vec![resource(Kind::Route, "s", "1"), sharing("new"), sharing("x")], &[]);
    bench
}

#[test]
fn a_scope_keeps_its_routes_until_those_are_there_that_it_is_to_name() {
    let mut bench = to_share();
    let scopes = bench.response();
    assert_eq!(summary(&scopes), "srds new", "a new scope has nothing to keep");
    bench.ack(&scopes);
    assert!(bench.responses().is_empty(), "nobody asked for the routes yet");
    bench.subscribe(Kind::Route, &["s"]);
    let routes = bench.response();
    assert_eq!(summary(&routes), "rds s");
    assert!(bench.responses().is_empty(), "the routes are on their way");
    bench.ack(&routes);
    assert_eq!(bench.settle(), ["srds x"]);
}

#[test]
fn a_scope_does_not_wait_for_ever_for_routes() {
    let mut bench = to_share();
    let scopes = bench.response();
    bench.ack(&scopes);
    assert!(bench.responses().is_empty());
    bench.wait(TIMEOUT);
    assert_eq!(bench.settle(), ["srds x"]);
}

fn filter(version: &str) -> Resource {
    Resource::new(Kind::Extension, "f", version.to_owned())
}

fn filtered(version: &str) -> Resource {
    route("r", version, &["a"]).refers_to(Kind::Extension, "f")
}

/// An Envoy that has a filter that does nothing, and one route.
fn with_filter() -> Bench {
    let mut bench = warm();
    bench.publish(vec![filter("1").idling()], &[]);
    bench.subscribe(Kind::Extension, &["f"]);
    assert_eq!(bench.settle(), ["ecds f"]);
    bench
}

#[test]
fn a_route_is_sent_after_the_filter_that_it_names() {
    let mut bench = with_filter();
    bench.publish(vec![filter("2")], &[]);
    let first = bench.response();
    assert_eq!(summary(&first), "ecds f");
    bench.publish(vec![filter("3"), filtered("2")], &[]);
    assert!(
        bench.responses().is_empty(),
        "the filter waits for an answer about its last version, and the route for it"
    );
    bench.ack(&first);
    assert_eq!(summaries(&bench.responses()), ["ecds f", "rds r"], "responses are taken in their order");
}

#[test]
fn a_filter_that_is_refused_holds_up_no_route() {
    let mut bench = with_filter();
    bench.publish(vec![filter("2"), filtered("2")], &[]);
    let sent = bench.responses();
    assert_eq!(summaries(&sent), ["ecds f", "rds r"]);
    bench.answer(&sent[0], Some("no"));
    bench.ack(&sent[1]);
    bench.publish(vec![filtered("3")], &[]);
    assert!(bench.settle().contains(&"rds r".to_owned()));
}

#[test]
fn a_filter_is_emptied_after_the_routes_that_named_it() {
    let mut bench = with_filter();
    bench.publish(vec![filter("2"), filtered("2")], &[]);
    assert_eq!(bench.settle(), ["ecds f", "rds r"]);
    bench.publish(vec![filter("1").idling(), route("r", "3", &["a"])], &[]);
    let routes = bench.response();
    assert_eq!(summary(&routes), "rds r");
    assert!(bench.responses().is_empty(), "the route that names it may still be in use");
    bench.ack(&routes);
    assert_eq!(summary(&bench.response()), "ecds f");
}

#[test]
fn a_cluster_is_removed_after_the_calls_of_a_filter_that_names_another_now() {
    let mut bench = with_filter();
    let calling = |version: &str, name: &str| filter(version).refers_to(Kind::Cluster, name);
    bench.publish(vec![resource(Kind::Cluster, "x", "1"), calling("2", "x")], &[]);
    bench.settle();
    bench.publish(vec![resource(Kind::Cluster, "y", "1"), calling("3", "y")], &[(Kind::Cluster, "x")]);
    let sent = bench.settle();
    assert!(sent.contains(&"ecds f".to_owned()) && !sent.contains(&"cds -x".to_owned()), "{sent:?}");
    bench.wait(Duration::from_millis(1999));
    assert_eq!(bench.settle(), Vec::<String>::new(), "calls may be under way");
    bench.wait(Duration::from_millis(1));
    assert_eq!(bench.settle(), ["cds -x"]);
}

/// The certificate of a host, and the listener that lists its name.
fn listed_host(version: &str) -> Vec<Resource> {
    let certificate = resource(Kind::Secret, "late.com", "1").refers_to(Kind::Listener, "tls");
    let certificate = certificate.refers_to(Kind::Secret, "trust").refers_under(Kind::Extension, "slot/late/");
    vec![
        certificate,
        resource(Kind::Secret, "trust", "1"),
        resource(Kind::Extension, "slot/late/0", "1"),
        resource(Kind::Listener, "tls", version),
        resource(Kind::Cluster, "holder", version).refers_to(Kind::Secret, "late.com"),
    ]
}

/// An Envoy with a listener whose unlisted names lead to one chain.
fn with_listener() -> Bench {
    let mut bench = Bench::new(Style::Delta);
    let others = resource(Kind::Secret, "first.com", "1");
    bench.publish(
        vec![
            resource(Kind::Listener, "tls", "1"),
            others,
            resource(Kind::Extension, "slot/first/0", "1"),
            resource(Kind::Cluster, "holder", "1"),
        ],
        &[],
    );
    for kind in [Kind::Cluster, Kind::Listener] {
        bench.subscribe(kind, &[]);
    }
    bench.subscribe(Kind::Extension, &["slot/first/0"]);
    bench.subscribe(Kind::Secret, &["first.com", "late.com"]);
    bench.settle();
    bench
}

#[test]
fn the_certificate_of_a_listed_name_comes_after_the_listener_and_its_chain() {
    let mut bench = with_listener();
    bench.publish(listed_host("2"), &[]);
    let listener = bench.response();
    assert_eq!(summary(&listener), "lds tls");
    bench.subscribe(Kind::Secret, &["late.com"]);
    assert_eq!(bench.settle(), ["sds -late.com"], "whoever asks took another chain: the handshake is to end");
    bench.ack(&listener);
    assert!(bench.settle().is_empty(), "the chain warms");
    bench.subscribe(Kind::Extension, &["slot/late/0"]);
    assert_eq!(bench.settle(), ["ecds slot/late/0"]);
    bench.subscribe(Kind::Secret, &["trust"]);
    assert_eq!(bench.settle(), ["sds trust"]);
    bench.subscribe(Kind::Secret, &["late.com"]);
    assert_eq!(bench.settle(), ["sds -late.com"], "a question that was on its way");
    bench.wait(Duration::from_millis(200));
    assert_eq!(bench.settle(), ["cds holder", "sds late.com"]);
    bench.publish(vec![resource(Kind::Listener, "tls", "3")], &[]);
    bench.publish(vec![resource(Kind::Secret, "late.com", "2").refers_to(Kind::Listener, "tls")], &[]);
    assert_eq!(
        summaries(&bench.responses()),
        ["sds late.com", "lds tls"],
        "one that the client has is renewed at once"
    );
}

#[test]
fn the_certificate_of_a_listed_name_that_nobody_asked_for_comes_with_the_listener() {
    let mut bench = with_listener();
    let unsubscribe = vec![Name::from("late.com")];
    let subscription =
        Subscription::Delta { subscribe: vec![], unsubscribe, initial_versions: InitialVersions::default() };
    bench.request(Request { kind: Kind::Secret, nonce: None, error: None, subscription });
    bench.subscribe(Kind::Extension, &["slot/late/0"]);
    bench.subscribe(Kind::Secret, &["trust"]);
    bench.settle();
    bench.publish(listed_host("2"), &[]);
    assert_eq!(bench.settle(), ["sds trust", "ecds slot/late/0", "lds tls", "cds holder"]);
    bench.wait(Duration::from_millis(1));
    bench.subscribe(Kind::Secret, &["late.com"]);
    assert_eq!(bench.settle(), ["sds late.com"]);
}

#[test]
fn a_listener_that_is_refused_or_never_warm_holds_up_a_certificate_no_longer_than_others() {
    let mut bench = with_listener();
    bench.publish(listed_host("2"), &[]);
    assert_eq!(bench.settle(), ["lds tls"]);
    bench.wait(Limits::default().warming_timeout);
    assert_eq!(bench.settle(), ["cds holder", "sds late.com"]);
    bench.publish(vec![], &[(Kind::Listener, "tls"), (Kind::Secret, "late.com")]);
    let sent = bench.settle();
    assert!(sent.contains(&"lds -tls".to_owned()), "{sent:?}");
}

//! Make before break, case by case. The property test covers what nobody thought of.

use super::*;

const PATIENCE: Duration = Duration::from_secs(3);
const ABSENCE: Duration = Duration::from_secs(20);

/// An Envoy that has one cluster with endpoints and one route to it.
fn warm() -> Desk {
    let mut desk = Desk::new(Style::Delta);
    desk.publish(vec![cluster("a", "1"), endpoints("a", "1"), route("r", "1", &["a"])], &[]);
    desk.subscribe(Kind::Cluster, &[]);
    desk.subscribe(Kind::Endpoints, &["a"]);
    desk.subscribe(Kind::Route, &["r"]);
    assert_eq!(desk.settle(), ["cds a", "eds a", "rds r"]);
    desk
}

#[test]
fn a_route_waits_for_its_new_cluster_and_the_cluster_for_its_endpoints() {
    let mut desk = warm();
    desk.publish(vec![cluster("b", "1"), endpoints("b", "1"), route("r", "2", &["b"])], &[]);
    let clusters = desk.response();
    assert_eq!(summary(&clusters), "cds b");
    desk.subscribe(Kind::Endpoints, &["b"]);
    let given = desk.response();
    assert_eq!(summary(&given), "eds b", "endpoints wait for nothing");
    assert!(desk.responses().is_empty(), "the route waits for the endpoints to be taken");
    desk.ack(&given);
    assert_eq!(summary(&desk.response()), "rds r", "the answer about clusters is not waited for");
    desk.ack(&clusters);
    assert!(desk.responses().is_empty());
}

#[test]
fn a_route_waits_for_a_health_checked_cluster_until_it_is_taken() {
    let mut desk = warm();
    desk.publish(vec![cluster("b", "1").warming(), endpoints("b", "1"), route("r", "2", &["b"])], &[]);
    let clusters = desk.response();
    desk.subscribe(Kind::Endpoints, &["b"]);
    let given = desk.response();
    desk.ack(&given);
    assert!(desk.responses().is_empty());
    desk.ack(&clusters);
    assert_eq!(summary(&desk.response()), "rds r");
}

#[test]
fn but_not_for_ever() {
    let mut desk = warm();
    desk.publish(vec![cluster("b", "1").warming(), endpoints("b", "1"), route("r", "2", &["b"])], &[]);
    desk.response();
    desk.subscribe(Kind::Endpoints, &["b"]);
    let given = desk.response();
    desk.ack(&given);
    let Step::Idle(Some(wake)) = desk.session.poll(desk.now) else { panic!("a deadline is set") };
    assert_eq!(wake, desk.now + PATIENCE);
    desk.wait(PATIENCE);
    assert_eq!(summary(&desk.response()), "rds r");
}

#[test]
fn one_tenants_slow_cluster_does_not_hold_up_another() {
    let mut desk = warm();
    desk.publish(vec![cluster("slow", "1").warming(), route("r", "2", &["slow"])], &[]);
    assert_eq!(summaries(&desk.responses()), ["cds slow"]);
    desk.publish(vec![cluster("b", "1"), endpoints("b", "1"), route("q", "1", &["b"])], &[]);
    assert_eq!(summaries(&desk.responses()), ["cds b"], "although the answer about the slow one is still out");
    desk.subscribe(Kind::Endpoints, &["b"]);
    desk.subscribe(Kind::Route, &["q"]);
    let given = desk.response();
    desk.ack(&given);
    assert_eq!(summaries(&desk.responses()), ["rds q"]);
}

#[test]
fn a_cluster_goes_after_the_route_that_used_it() {
    let mut desk = warm();
    desk.publish(vec![route("r", "2", &[])], &[(Kind::Cluster, "a"), (Kind::Endpoints, "a")]);
    let routes = desk.response();
    assert_eq!(summary(&routes), "rds r");
    desk.ack(&routes);
    let clusters = desk.response();
    assert_eq!(summary(&clusters), "cds -a");
    desk.ack(&clusters);
    assert_eq!(summary(&desk.response()), "eds -a");
}

#[test]
fn a_cluster_stays_while_its_route_is_refused() {
    let mut desk = warm();
    desk.publish(vec![cluster("b", "1"), route("r", "2", &["b"])], &[(Kind::Cluster, "a"), (Kind::Endpoints, "a")]);
    let clusters = desk.response();
    desk.ack(&clusters);
    let routes = desk.response();
    assert_eq!(summary(&routes), "rds r");
    desk.answer(&routes, Some("no"));
    assert!(desk.responses().is_empty(), "the old route still uses it");
    desk.wait(ABSENCE);
    assert!(desk.responses().is_empty());
    desk.publish(vec![route("r", "3", &["b"])], &[]);
    assert_eq!(desk.settle(), ["rds r", "cds -a", "eds -a"]);
}

#[test]
fn a_changed_cluster_gets_its_endpoints_again() {
    let mut desk = warm();
    desk.publish(vec![cluster("a", "2")], &[]);
    assert_eq!(summaries(&desk.responses()), ["cds a", "eds a"]);
}

#[test]
fn endpoints_sent_before_their_cluster_are_sent_again_after_it() {
    let mut desk = warm();
    let limits = Limits { cluster_flights: 1, ..Limits::default() };
    let mut slow = Desk::with(Style::Delta, limits, None);
    std::mem::swap(&mut desk.writer, &mut slow.writer);
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
    let mut desk = warm();
    let before = desk.session.table(Kind::Endpoints).get("a").expect("published").version;
    desk.publish(vec![cluster("a", "2")], &[]);
    let sent = desk.responses();
    assert_eq!(summaries(&sent), ["cds a", "eds a"]);
    desk.reconnect();
    desk.resume(Kind::Endpoints, &["a"], &[("a", before)]);
    assert_eq!(summaries(&desk.responses()), ["eds a"], "though no request about clusters has come");
}

#[test]
fn a_cold_envoy_gets_listeners_before_the_routes_it_then_asks_for() {
    let mut desk = Desk::new(Style::Delta);
    let listener = resource(Kind::Listener, "l", "1").refers_to(Kind::Route, "r").refers_under(Kind::ScopedRoute, "g|");
    desk.publish(vec![cluster("a", "1"), route("r", "1", &["a"]), listener], &[]);
    desk.subscribe(Kind::Cluster, &[]);
    desk.subscribe(Kind::Listener, &[]);
    assert_eq!(desk.settle(), ["cds a", "lds l"]);
    desk.subscribe(Kind::Route, &["r"]);
    assert_eq!(desk.settle(), ["rds r"]);
}

#[test]
fn a_listener_waits_for_its_scopes_once_there_are_scopes() {
    let mut desk = Desk::new(Style::Delta);
    let scope = |name: &str| resource(Kind::ScopedRoute, name, "1").refers_to(Kind::Cluster, "a");
    let listener = |name: &str, group: &str| resource(Kind::Listener, name, "1").refers_under(Kind::ScopedRoute, group);
    desk.publish(vec![cluster("a", "1"), scope("g|x"), listener("l", "g|")], &[]);
    desk.subscribe(Kind::Cluster, &[]);
    desk.subscribe(Kind::Listener, &[]);
    desk.settle();
    desk.subscribe(Kind::ScopedRoute, &["*"]);
    desk.settle();
    desk.publish(vec![scope("h|x"), listener("m", "h|")], &[]);
    let scopes = desk.response();
    assert_eq!(summary(&scopes), "srds h|x");
    desk.ack(&scopes);
    assert_eq!(desk.settle(), ["lds m"]);
    desk.publish(vec![], &[(Kind::ScopedRoute, "h|x"), (Kind::Listener, "m")]);
    assert_eq!(desk.settle(), ["lds -m", "srds -h|x"], "and goes before them");
}

#[test]
fn a_returning_client_keeps_its_clusters_until_it_has_told_of_its_routes() {
    let mut desk = warm();
    let old = desk.session.table(Kind::Route).get("r").expect("published").version;
    let held = desk.session.table(Kind::Cluster).get("a").expect("published").version;
    desk.publish(vec![cluster("b", "1"), route("r", "2", &["b"])], &[(Kind::Cluster, "a"), (Kind::Endpoints, "a")]);
    desk.reconnect();
    desk.resume(Kind::Cluster, &[], &[("a", held)]);
    let clusters = desk.response();
    assert_eq!(summary(&clusters), "cds b", "what it lacks is sent, what we lack is not removed");
    desk.ack(&clusters);
    desk.resume(Kind::Route, &["r"], &[("r", old)]);
    let routes = desk.response();
    assert_eq!(summary(&routes), "rds r");
    desk.wait(2 * ABSENCE);
    assert!(desk.responses().is_empty());
    desk.ack(&routes);
    assert_eq!(desk.settle(), ["cds -a"]);
}

#[test]
fn a_returning_clients_route_waits_for_it_to_ask_for_clusters_but_not_for_ever() {
    let mut desk = warm();
    let old = desk.session.table(Kind::Route).get("r").expect("published").version;
    desk.publish(vec![cluster("b", "1"), route("r", "2", &["b"])], &[]);
    desk.reconnect();
    desk.resume(Kind::Route, &["r"], &[("r", old)]);
    assert!(desk.responses().is_empty());
    desk.wait(ABSENCE);
    assert_eq!(desk.settle(), ["rds r"]);
}

#[test]
fn what_does_not_exist_or_is_not_wanted_holds_nothing_up() {
    let mut desk = Desk::new(Style::Delta);
    desk.publish(vec![cluster("b", "1"), route("r", "1", &["nowhere", "b"])], &[]);
    desk.subscribe(Kind::Cluster, &["other"]);
    desk.settle();
    desk.subscribe(Kind::Route, &["r"]);
    assert_eq!(desk.settle(), ["rds r"]);
}

#[test]
fn a_stream_of_one_type_waits_for_nothing() {
    let mut desk = Desk::new(Style::Delta);
    desk.publish(vec![cluster("a", "1"), route("r", "1", &["a"])], &[]);
    let mut options = options(Style::Delta, &desk.limits, None);
    options.only = Some(Kind::Route);
    desk.session = Session::new(options, desk.session.view.clone(), desk.now);
    desk.resume(Kind::Route, &["r"], &[("r", 1)]);
    assert_eq!(desk.settle(), ["rds r"]);
}

#[test]
fn half_a_world_is_not_sent_to_a_client_that_has_none() {
    let mut desk = Desk::new(Style::Delta);
    let scope = |name: &str, to: &str| resource(Kind::ScopedRoute, name, "1").refers_to(Kind::Cluster, to);
    desk.publish(vec![cluster("a", "1").warming(), cluster("b", "1"), scope("x", "a"), scope("y", "b")], &[]);
    desk.subscribe(Kind::Cluster, &[]);
    desk.subscribe(Kind::ScopedRoute, &["*"]);
    let clusters = desk.response();
    assert_eq!(summary(&clusters), "cds a b");
    desk.ack(&clusters);
    assert_eq!(desk.settle(), ["srds x y"]);
}

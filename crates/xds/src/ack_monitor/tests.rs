//! Outcomes of clients that are driven by hand, and what they cost.

use futures::FutureExt;

use super::*;
use crate::acks::tests::{Bed, scope};

const SCOPE: Kind = Kind::ScopedRoute;

fn monitor(bed: &Bed) -> AckMonitor {
    AckMonitor::of(bed.runtime.clone(), bed.events.subscribe())
}

/// The outcomes that can be told now: name, and whether it was accepted.
async fn outcomes(monitor: &mut AckMonitor) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    while let Some(outcome) = next(monitor).await {
        all.push((outcome.name.to_string(), matches!(outcome.outcome, Outcome::Accepted)));
    }
    all.sort();
    all
}

/// The outcome that can be told now.
async fn next(monitor: &mut AckMonitor) -> Option<ResourceOutcome> {
    // A task that never yields is told by tokio that nothing is ready.
    tokio::task::yield_now().await;
    monitor.next().now_or_never()
}

/// A client that is subscribed to every scope, and has them.
fn client(bed: &mut Bed) -> usize {
    let at = bed.join();
    bed.ask(at, SCOPE, &[], &[]);
    bed.send(at);
    bed.answer(at, None);
    at
}

#[tokio::test]
async fn a_rejection_by_all_of_one_version_of_envoy_is_told_once() {
    let mut bed = Bed::new();
    bed.publish(vec![scope("a", "1"), scope("b", "1")]);
    let mut monitor = monitor(&bed);
    // Odd clients are of one version of Envoy, even ones of another.
    let clients: Vec<usize> = (0..6).map(|_| client(&mut bed)).collect();
    bed.publish(vec![scope("a", "2")]);
    clients.iter().for_each(|at| bed.send(*at));
    for at in [0, 2] {
        bed.answer(at, Some("'a' is bad".to_owned()));
        assert_eq!(outcomes(&mut monitor).await, [], "others of the same version have yet to answer");
    }
    bed.answer(4, Some("'a' is bad".to_owned()));
    let outcome = next(&mut monitor).await.expect("all of one version of Envoy rejected it");
    assert!(
        matches!(&outcome.outcome, Outcome::Rejected { text, held: Some(held) }
        if &**text == "'a' is bad" && &*held.body == b"1"),
        "{outcome:?}"
    );
    assert_eq!(outcomes(&mut monitor).await, [], "the events of the others have counted");

    // Somebody of that version who comes later is a reason to decide again.
    let at = client(&mut bed);
    assert_eq!(bed.clients[at].unanswered.len(), 0);
    assert_eq!(outcomes(&mut monitor).await, []);
    bed.publish(vec![scope("a", "3")]);
    assert_eq!(outcomes(&mut monitor).await, [], "the next version is another case");
}

#[tokio::test]
async fn an_outcome_that_was_asked_for_is_told_when_everybody_has_answered() {
    let mut bed = Bed::new();
    bed.publish(vec![scope("a", "1"), scope("b", "1")]);
    let mut monitor = monitor(&bed);
    let clients = [client(&mut bed), client(&mut bed), client(&mut bed)];
    bed.publish(vec![scope("a", "2"), scope("b", "2")]);
    monitor.expect([(SCOPE, "a".into()), (SCOPE, "b".into()), (SCOPE, "none".into())]);
    for at in clients {
        assert_eq!(outcomes(&mut monitor).await, []);
        bed.send(at);
        bed.answer(at, None);
    }
    assert_eq!(outcomes(&mut monitor).await, [("a".to_owned(), true), ("b".to_owned(), true)]);

    // What changes before everybody has answered is dropped.
    bed.publish(vec![scope("a", "3")]);
    monitor.expect([(SCOPE, "a".into())]);
    bed.publish(vec![scope("a", "4")]);
    for at in clients {
        bed.send(at);
        bed.answer(at, None);
    }
    assert_eq!(outcomes(&mut monitor).await, []);
    assert!(monitor.pending.is_empty());
}

/// 300 outcomes pending with 20 clients: an answer costs the names in it, not outcomes times clients.
#[tokio::test]
async fn an_answer_costs_the_names_in_it() {
    const PENDING: usize = 300;
    const CLIENTS: usize = 20;
    let mut bed = Bed::new();
    let all = |body: &str| (0..PENDING).map(|at| scope(&at.to_string(), body)).collect::<Vec<_>>();
    bed.publish(all("1"));
    let mut monitor = monitor(&bed);
    let clients: Vec<usize> = (0..CLIENTS).map(|_| client(&mut bed)).collect();
    bed.publish(all("2"));
    monitor.expect((0..PENDING).map(|at| (SCOPE, at.to_string().into())));
    clients.iter().for_each(|at| bed.send(*at));
    assert_eq!(outcomes(&mut monitor).await, []);

    let before = monitor.looks();
    bed.answer(0, None);
    assert_eq!(outcomes(&mut monitor).await, []);
    assert_eq!(monitor.looks() - before, PENDING as u64, "one look for each name that was answered");

    // An edit beside them, which only one client answers.
    let before = monitor.looks();
    bed.publish(vec![scope("7", "3")]);
    bed.send(0);
    bed.answer(0, Some("'7' is bad".to_owned()));
    assert_eq!(outcomes(&mut monitor).await, []);
    assert!(monitor.looks() - before <= 2 * CLIENTS as u64, "{} looks", monitor.looks() - before);

    // An answer about something else costs nothing but a look at what that client rejected and may be sent again.
    bed.publish(vec![scope("other", "1")]);
    let before = monitor.looks();
    bed.send(0);
    bed.answer(0, None);
    assert_eq!(outcomes(&mut monitor).await, []);
    assert!(monitor.looks() - before <= 1, "{} looks", monitor.looks() - before);
}

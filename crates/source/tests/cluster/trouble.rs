//! Everything that can go wrong between us and an API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kinds::kind;
use model::Code;
use source::cluster::{Options, Timing};

use crate::fake::{Answer, Fake, Watches, event, page, service, status};
use crate::mirror::{Mirror, TIMEOUT, hasty, options};

#[tokio::test]
async fn refusals_are_outlasted() {
    let count = AtomicUsize::new(0);
    let watches = Watches::default();
    let fake = Fake::start(move |url| match (url.contains("watch="), count.fetch_add(1, Ordering::SeqCst)) {
        (_, 0) => status(401, "Unauthorized"),
        (_, 1) => status(500, "etcd leader changed"),
        (_, 2) => status(429, "too many requests"),
        (_, 3) => Answer::Text(200, "<html>not JSON".to_owned()),
        (_, 4) => Answer::Cut,
        (false, _) => page(7, "", &[service("a", 5)]),
        (true, _) => watches.open(),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
    mirror.until("the first complaint", |mirror| mirror.complaints().contains("401")).await;
    assert!(!mirror.is_synced);
    mirror.synced().await;
    assert_eq!(mirror.names(), ["Service n/a"]);
    mirror.until("all complaints to be over", |mirror| mirror.problems.is_empty()).await;
}

/// What the API server cannot do at the moment is no matter of rights, and is not reported as one.
#[tokio::test]
async fn advice_about_rights_is_given_where_rights_are_missing() {
    let codes = [
        (401, Code::ApiServerFailed),
        (403, Code::ApiServerFailed),
        (400, Code::ApiServerError),
        (429, Code::ApiServerError),
        (500, Code::ApiServerError),
        (503, Code::ApiServerError),
    ];
    for (answer, code) in codes {
        let fake = Fake::start(move |url| match url.contains("readyz") {
            true => Answer::Text(200, "ok".to_owned()),
            false => status(answer, "not now"),
        })
        .await;
        let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
        mirror.until("a complaint", |mirror| mirror.complaints().contains("not now")).await;
        let told: Vec<Code> = mirror.problems.values().flatten().map(|problem| problem.code).collect();
        assert_eq!(told, [code], "{answer}: {}", mirror.complaints());
        assert_eq!(code.help().contains("RBAC"), code == Code::ApiServerFailed);
    }
}

#[tokio::test]
async fn a_list_that_outlives_its_history_is_asked_for_in_one_piece() {
    let watches = Watches::default();
    let fake = Fake::start(move |url| match url {
        url if url.contains("watch=") => watches.open(),
        url if url.contains("continue=") => status(410, "the provided continue parameter is too old"),
        url if url.contains("limit=") => page(7, "next", &[service("a", 5)]),
        _ => page(9, "", &[service("a", 5), service("b", 6)]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
    mirror.synced().await;
    assert_eq!(mirror.names(), ["Service n/a", "Service n/b"]);
    assert_eq!(mirror.told.len(), 2);
    mirror.listen(Duration::from_millis(100)).await;
    assert!(fake.asked("watch=")[0].contains("resourceVersion=9"));
}

/// A list of which no page but the first is looked at, because something in it is no object: what was requested before it was decoded is seen.
#[tokio::test]
async fn the_next_page_of_a_list_is_on_its_way_while_one_is_decoded_and_no_other() {
    let fake = Fake::start(move |url| match url {
        url if url.contains("continue=second") => page(7, "third", &[service("b", 6)]),
        url if url.contains("continue=") => page(7, "", &[service("c", 6)]),
        _ => page(7, "second", &["7".to_owned()]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
    mirror.until("the complaint", |mirror| mirror.complaints().contains("an object has no metadata")).await;
    let asked = async || (!fake.asked("continue=second").is_empty()).then_some(()).ok_or("not yet");
    testbed::eventually("the second page to be asked for", TIMEOUT, asked).await.unwrap();
    assert!(fake.asked("continue=third").is_empty(), "one page ahead, and no more");
    assert!(mirror.objects.is_empty() && !mirror.is_synced);
}

#[tokio::test]
async fn a_list_that_breaks_off_changes_nothing_and_the_next_tells_what_is_gone() {
    let lists = AtomicUsize::new(0);
    let watches = Watches::default();
    let open = watches.clone();
    let fake = Fake::start(move |url| match url {
        url if url.contains("watch=") => open.open(),
        url if url.contains("continue=") => Answer::Cut,
        _ => match lists.fetch_add(1, Ordering::SeqCst) {
            0 => page(7, "", &[service("a", 1), service("b", 2), service("c", 3)]),
            1..4 => page(20, "next", &[service("a", 11)]),
            _ => page(21, "", &[service("a", 11), service("c", 3)]),
        },
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
    mirror.synced().await;
    mirror.told.clear();
    watches.opened(1).await;
    watches.say(event("ERROR", r#"{"kind": "Status", "code": 410, "message": "too old resource version"}"#));
    mirror.until("b to be gone", |mirror| mirror.names() == ["Service n/a", "Service n/c"]).await;
    let told: Vec<_> = mirror.told.iter().map(|key| &*key.name).collect();
    assert_eq!(told, ["a", "b"], "c did not change");
    assert_eq!(fake.asked("continue=").len(), 3);
}

#[tokio::test]
async fn a_watch_goes_on_from_where_it_ended() {
    let watches = Watches::default();
    let open = watches.clone();
    let fake = Fake::start(move |url| match url.contains("watch=") {
        true => open.open(),
        false => page(7, "", &[service("a", 1)]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
    mirror.synced().await;
    watches.opened(1).await;
    watches.say(event("ADDED", &service("b", 8)));
    watches.say(event("BOOKMARK", r#"{"metadata": {"resourceVersion": "40"}}"#));
    mirror.until("b", |mirror| mirror.objects.len() == 2).await;
    watches.end();
    watches.opened(1).await;
    assert!(fake.asked("watch=")[1].contains("resourceVersion=40"), "{:?}", fake.asked("watch="));
    // What is told twice is heard once; what cannot be read does not end the source.
    watches.say(event("MODIFIED", &service("b", 8)));
    watches.say(event("DELETED", &service("a", 41)));
    watches.say("{ half an eve".to_owned());
    mirror.until("a to be gone", |mirror| mirror.names() == ["Service n/b"]).await;
    assert_eq!(mirror.told.len(), 3);
    watches.opened(2).await;
    assert!(fake.asked("watch=")[2].contains("resourceVersion=41"), "{:?}", fake.asked("watch="));
    assert_eq!(fake.asked("limit=").len(), 1, "nothing was listed again");
}

/// Whatever the code, and whether the watch brings something before: a version that cannot be watched from is given up.
#[tokio::test]
async fn a_watch_that_fails_again_and_again_in_its_stream_is_listed_again() {
    let bookmark = event("BOOKMARK", r#"{"metadata": {"resourceVersion": "8"}}"#);
    for (code, before) in [(500, None), (500, Some(bookmark)), (400, None), (403, None)] {
        let (watches, open) = (Watches::default(), AtomicUsize::new(0));
        let said = watches.clone();
        let fake = Fake::start(move |url| match url {
            "/readyz" => Answer::Text(200, "ok".to_owned()),
            url if url.contains("watch=") => {
                let answer = said.open();
                if open.fetch_add(1, Ordering::SeqCst) < 8 {
                    before.iter().for_each(|line| said.say(line.clone()));
                    said.say(event("ERROR", &format!(r#"{{"kind": "Status", "code": {code}, "message": "odd"}}"#)));
                }
                answer
            }
            _ if said.count() == 0 => page(7, "", &[service("a", 1)]),
            _ => page(9, "", &[service("a", 1), service("b", 9)]),
        })
        .await;
        let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE]));
        mirror.synced().await;
        mirror.until("what only a list tells", |mirror| mirror.objects.len() == 2).await;
        watches.opened(9).await;
        watches.say(event("DELETED", &service("a", 10)));
        mirror.until("the watch to go on", |mirror| mirror.names() == ["Service n/b"]).await;
        let lists = fake.asked("limit=").len();
        assert!(lists <= 9, "{code}: listed {lists} times");
        if code == 500 {
            assert_eq!(lists, 3, "everything is listed for every fourth watch that fails");
        }
        mirror.until("the complaint to be over", |mirror| mirror.problems.is_empty()).await;
    }
}

#[tokio::test]
async fn a_silent_watch_is_given_up() {
    let watches = Watches::default();
    let fake = Fake::start(move |url| match url.contains("watch=") {
        true => watches.open(),
        false => page(7, "", &[service("a", 1)]),
    })
    .await;
    let timing = Timing { silence: Duration::from_millis(50), ..hasty() };
    let mut mirror = Mirror::start(fake.client(), Options { timing, ..options(&[kind::SERVICE]) });
    mirror.synced().await;
    let look = async || (fake.asked("watch=").len() > 3).then_some(()).ok_or("not yet");
    testbed::eventually("several watches", TIMEOUT, look).await.unwrap();
    assert!(fake.asked("limit=").len() > 2, "everything is listed each time");
    assert_eq!(mirror.listen(Duration::from_millis(50)).await, 0);
    assert!(mirror.problems.is_empty(), "{}", mirror.complaints());
}

#[tokio::test]
async fn a_watch_that_misses_changes_is_told_until_it_brings_something() {
    let (watches, version, step) = (Watches::default(), AtomicUsize::new(1), Arc::new(AtomicUsize::new(0)));
    let (open, by) = (watches.clone(), step.clone());
    let fake = Fake::start(move |url| match url.contains("watch=") {
        true => open.open(),
        false => page(7, "", &[service("a", version.fetch_add(by.load(Ordering::SeqCst), Ordering::SeqCst) as u64)]),
    })
    .await;
    let timing = Timing { silence: Duration::from_secs(1), ..hasty() };
    let options = Options { timing, ..options(&[kind::SERVICE]) };
    let connection = options.connection.clone();
    let mut mirror = Mirror::start(fake.client(), options);
    mirror.synced().await;
    assert_eq!(connection.stalled_watches(), None);
    // It changes from one list to the next, and no watch says so.
    step.store(1, Ordering::SeqCst);
    mirror.until("the stalled watch to be told", |mirror| mirror.complaints().contains("is stalled")).await;
    assert_eq!(connection.stalled_watches().as_deref(), Some("services"));
    let opened = fake.asked("watch=").len();
    watches.opened(opened + 1).await;
    step.store(0, Ordering::SeqCst);
    watches.say(event("MODIFIED", &service("a", 900)));
    mirror.until("it to be over", |mirror| mirror.problems.is_empty()).await;
    assert_eq!(connection.stalled_watches(), None);
}

#[tokio::test]
async fn without_the_right_to_what_matters_nothing_is_synced_and_without_other_rights_it_is() {
    let granted = Arc::new(AtomicUsize::new(0));
    let watches = Watches::default();
    let now = granted.clone();
    let fake = Fake::start(move |url| match url {
        "/readyz" => Answer::Text(200, "ok".to_owned()),
        url if url.contains("ingressclasses") => status(403, "ingressclasses is forbidden"),
        url if now.load(Ordering::SeqCst) == 0 => status(403, &format!("{} is forbidden", url.len())),
        url if url.contains("watch=") => watches.open(),
        _ => page(7, "", &[service("a", 1)]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::SERVICE, kind::INGRESS_CLASS]));
    mirror.until("both complaints", |mirror| mirror.problems.len() == 2).await;
    assert!(mirror.complaints().contains("services cannot be read, and nothing is served without"));
    assert!(mirror.complaints().contains("ingressclasses.networking.k8s.io may not be read"));
    mirror.listen(Duration::from_millis(200)).await;
    assert!(!mirror.is_synced);
    granted.store(1, Ordering::SeqCst);
    mirror.synced().await;
    mirror.until("one complaint", |mirror| mirror.problems.len() == 1).await;
}

#[tokio::test]
async fn a_kind_that_is_forbidden_is_not_one_that_is_missing() {
    let stage = Arc::new(AtomicUsize::new(0));
    let now = stage.clone();
    let fake = Fake::start(move |url| match (url, now.load(Ordering::SeqCst)) {
        ("/readyz", _) => Answer::Text(200, "ok".to_owned()),
        ("/apis/projectcontour.io/v1", 0) => {
            Answer::Text(200, r#"{"resources": [{"name": "tlscertificatedelegations"}]}"#.to_owned())
        }
        ("/apis/projectcontour.io/v1", _) => {
            Answer::Text(200, r#"{"resources": [{"name": "httpproxies"}]}"#.to_owned())
        }
        _ => status(403, "forbidden"),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::CONTOUR_TLS_CERTIFICATE_DELEGATION]));
    mirror.until("the complaint", |mirror| mirror.complaints().contains("nothing is served without")).await;
    mirror.listen(Duration::from_millis(300)).await;
    assert!(!mirror.is_synced, "a right that is missing took hosts away");
    stage.store(1, Ordering::SeqCst);
    mirror.synced().await;
}

#[tokio::test]
async fn the_first_that_gets_through_wakes_all() {
    let watches = Watches::default();
    let open = watches.clone();
    let fake = Fake::start(move |url| match url {
        url if url.contains("watch=") => open.open(),
        url if url.contains("/secrets/s") => status(404, "not found"),
        _ => page(7, "", &[]),
    })
    .await;
    let hour = Duration::from_secs(3600);
    let timing = Timing { shortest_pause: hour, longest_pause: hour, ..hasty() };
    let kinds = [kind::SERVICE, kind::INGRESS, kind::NAMESPACE];
    let mut mirror = Mirror::start(fake.client(), Options { timing, ..options(&kinds) });
    mirror.synced().await;
    let watching = async |count: usize| {
        let look = async || (fake.asked("watch=").len() >= count).then_some(()).ok_or("not yet");
        testbed::eventually("watches", TIMEOUT, look).await.unwrap();
    };
    watching(3).await;
    fake.down(true);
    watches.say_in_all(&event("BOOKMARK", r#"{"metadata": {"resourceVersion": "8"}}"#));
    watches.end();
    mirror.until("the outage to be noticed", |mirror| mirror.complaints().contains("cannot be reached")).await;
    watching(6).await;
    fake.down(false);
    mirror.wants.want(kinds::ObjectRef::new(kind::SECRET, "n", "s"));
    watching(9).await;
    mirror.until("the outage to be over", |mirror| mirror.problems.is_empty()).await;
}

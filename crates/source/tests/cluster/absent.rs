//! Kinds that an API server does not serve, or seems not to: CRDs come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kinds::{Kind, kind};
use model::Code;
use source::cluster::{Options, Timing};

use crate::fake::{Answer, Fake, Watches, page, service, status};
use crate::mirror::{Mirror, hasty, options};

const DELEGATION: Kind = kind::CONTOUR_TLS_CERTIFICATE_DELEGATION;

#[tokio::test]
async fn a_kind_is_missing_only_if_a_server_that_is_ready_says_so() {
    let stage = Arc::new(AtomicUsize::new(0));
    let watches = Watches::default();
    let (now, open) = (stage.clone(), watches.clone());
    let fake = Fake::start(move |url| match (url, now.load(Ordering::SeqCst)) {
        ("/readyz", 0) => status(503, "crd-informer-synced failed"),
        ("/readyz", _) => Answer::Text(200, "ok".to_owned()),
        (_, 0 | 1 | 3) => status(404, "the server could not find the requested resource"),
        (url, _) if url.contains("watch=") => open.open(),
        _ => page(7, "", &[service("a", 1)]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[DELEGATION]));
    mirror.listen(Duration::from_millis(300)).await;
    assert!(!mirror.is_synced, "a server that is starting was believed");
    stage.store(1, Ordering::SeqCst);
    mirror.synced().await;
    assert!(mirror.objects.is_empty());
    // The CRD is made.
    stage.store(2, Ordering::SeqCst);
    mirror.until("what there is of it", |mirror| mirror.objects.len() == 1).await;
    // And taken away, or so it seems for a while.
    stage.store(3, Ordering::SeqCst);
    watches.end();
    assert_eq!(mirror.listen(Duration::from_millis(200)).await, 0, "the first word was believed");
    mirror.until("it to be gone", |mirror| mirror.objects.is_empty()).await;
}

/// At a start many kinds may be missing: a server that is ready, and lists their group without them, is not asked again before the rest
/// is served.
#[tokio::test]
async fn a_kind_that_a_ready_server_does_not_list_in_its_group_is_taken_for_empty_at_once() {
    let fake = Fake::start(move |url| match url {
        "/readyz" => Answer::Text(200, "ok".to_owned()),
        // The group is there, with another kind.
        "/apis/gateway.networking.k8s.io/v1" => {
            Answer::Text(200, r#"{"resources": [{"name": "gateways"}, {"name": "gateways/status"}]}"#.to_owned())
        }
        _ => status(404, "the server could not find the requested resource"),
    })
    .await;
    let hour = Duration::from_secs(3600);
    let timing = Timing { shortest_pause: hour, longest_pause: hour, absent_pause: hour, ..hasty() };
    let mut mirror = Mirror::start(fake.client(), Options { timing, ..options(&[kind::TCP_ROUTE]) });
    mirror.synced().await;
    assert!(mirror.problems.is_empty(), "{}", mirror.complaints());
    assert_eq!(fake.asked("/tcproutes").len(), 2, "once in each version");
}

/// Behind one address there may be several API servers: one that is ready, and one that has just started and knows no CRDs.
#[tokio::test]
async fn a_kind_whose_group_is_not_listed_either_is_asked_for_again() {
    let lists = Arc::new(AtomicUsize::new(0));
    let (watches, asked) = (Watches::default(), lists.clone());
    let fake = Fake::start(move |url| match url {
        "/readyz" => Answer::Text(200, "ok".to_owned()),
        url if url.contains("watch=") => watches.open(),
        url if url.contains("/tlscertificatedelegations") && asked.fetch_add(1, Ordering::SeqCst) > 0 => {
            page(7, "", &[service("a", 1)])
        }
        _ => status(404, "the server could not find the requested resource"),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[DELEGATION]));
    mirror.synced().await;
    assert_eq!(mirror.objects.len(), 1, "one answer was believed");
}

/// As above, and the other server lists the kind: what it says is believed, however often the first one does not find it.
#[tokio::test]
async fn a_kind_that_is_listed_is_not_missing() {
    let lists = Arc::new(AtomicUsize::new(0));
    let (watches, asked) = (Watches::default(), lists.clone());
    let fake = Fake::start(move |url| match url {
        "/readyz" => Answer::Text(200, "ok".to_owned()),
        url if url.contains("watch=") => watches.open(),
        url if url.contains("/tlscertificatedelegations") && asked.fetch_add(1, Ordering::SeqCst) > 5 => {
            page(7, "", &[service("a", 1)])
        }
        "/apis/projectcontour.io/v1" => {
            Answer::Text(200, r#"{"resources": [{"name": "tlscertificatedelegations"}]}"#.to_owned())
        }
        _ => status(404, "the server could not find the requested resource"),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[DELEGATION]));
    mirror.synced().await;
    assert_eq!(mirror.objects.len(), 1, "it was taken for missing");
}

/// As above, and no server finds it, as where the list of kinds is stale: that is reported until it is found, or no longer listed.
#[tokio::test]
async fn a_kind_that_is_listed_and_never_found_is_reported() {
    const LISTED: &str = "tlscertificatedelegations";
    for (stage, objects) in [(1, 1), (2, 0)] {
        let (watches, now) = (Watches::default(), Arc::new(AtomicUsize::new(0)));
        let of = now.clone();
        let fake = Fake::start(move |url| match (url, of.load(Ordering::SeqCst)) {
            ("/readyz", _) => Answer::Text(200, "ok".to_owned()),
            ("/apis/projectcontour.io/v1", stage) => {
                let name = if stage == 2 { "httpproxies" } else { LISTED };
                Answer::Text(200, format!(r#"{{"resources": [{{"name": "{name}"}}]}}"#))
            }
            (url, _) if url.contains("watch=") => watches.open(),
            (_, 1) => page(7, "", &[service("a", 1)]),
            _ => status(404, "the server could not find the requested resource"),
        })
        .await;
        let doubt = Duration::from_millis(300);
        let options = Options { timing: Timing { doubt, ..hasty() }, ..options(&[DELEGATION]) };
        let begun = Instant::now();
        let mut mirror = Mirror::start(fake.client(), options);
        mirror.until("the complaint", |mirror| mirror.complaints().contains("lists the kind")).await;
        assert!(begun.elapsed() > doubt, "the first answers were reported");
        assert!(!mirror.is_synced && mirror.complaints().contains("could not find"), "{}", mirror.complaints());
        let told: Vec<Code> = mirror.problems.values().flatten().map(|problem| problem.code).collect();
        assert_eq!(told, [Code::ApiServerError]);
        now.store(stage, Ordering::SeqCst);
        mirror.synced().await;
        mirror.until("the complaint to be over", |mirror| mirror.problems.is_empty()).await;
        assert_eq!(mirror.objects.len(), objects);
    }
}

/// A right that is granted later takes effect, whatever the API server lists.
#[tokio::test]
async fn a_kind_that_was_forbidden_is_asked_for_again() {
    let is_granted = Arc::new(AtomicUsize::new(0));
    let (watches, granted) = (Watches::default(), is_granted.clone());
    let fake = Fake::start(move |url| match (url, granted.load(Ordering::SeqCst)) {
        ("/readyz", _) => Answer::Text(200, "ok".to_owned()),
        ("/apis", _) => Answer::Text(200, r#"{"groups": [{"versions": [{"groupVersion": "apps/v1"}]}]}"#.to_owned()),
        (_, 0) => status(403, "namespaces is forbidden"),
        (url, _) if url.contains("watch=") => watches.open(),
        _ => page(7, "", &[service("a", 1)]),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&[kind::NAMESPACE]));
    mirror.until("the complaint", |mirror| mirror.complaints().contains("may not be read")).await;
    is_granted.store(1, Ordering::SeqCst);
    mirror.until("what there is of it", |mirror| mirror.objects.len() == 1 && mirror.problems.is_empty()).await;
}

/// Kinds that are not installed may be many: what is asked from time to time is whether their groups have come, once for all of them.
#[tokio::test]
async fn kinds_whose_groups_are_not_served_share_one_question() {
    const ABSENT: [Kind; 3] = [DELEGATION, kind::GATEWAY, kind::HTTP_ROUTE];
    let is_installed = Arc::new(AtomicUsize::new(0));
    let (watches, installed) = (Watches::default(), is_installed.clone());
    let fake = Fake::start(move |url| match (url, installed.load(Ordering::SeqCst)) {
        ("/readyz", _) => Answer::Text(200, "ok".to_owned()),
        ("/apis", installed) => {
            let name = if installed == 0 { "apps" } else { "projectcontour.io" };
            Answer::Text(200, format!(r#"{{"groups": [{{"versions": [{{"groupVersion": "{name}/v1"}}]}}]}}"#))
        }
        (url, _) if url.contains("watch=") => watches.open(),
        (url, 1) if url.contains("/tlscertificatedelegations") => page(7, "", &[service("a", 1)]),
        _ => status(404, "the server could not find the requested resource"),
    })
    .await;
    let mut mirror = Mirror::start(fake.client(), options(&ABSENT));
    mirror.synced().await;
    let lists = || ["/tlscertificatedelegations", "/gateways", "/httproutes"].map(|kind| fake.asked(kind).len());
    let (before, begun) = (lists(), Instant::now());
    mirror.listen(Duration::from_secs(1)).await;
    assert_eq!(lists(), before, "a kind was asked for");
    // Each kind looks after 300 ms at most, and an answer holds for 40 ms.
    let questions = fake.asked("/apis").iter().filter(|url| *url == "/apis").count();
    let most = begun.elapsed().as_millis() / 40 + 1;
    assert!((1..=most).contains(&(questions as u128)), "{questions} questions, at most {most}");
    is_installed.store(1, Ordering::SeqCst);
    mirror.until("what there is of it", |mirror| mirror.objects.len() == 1).await;
    assert_eq!(lists()[1..], before[1..], "kinds of groups that have not come were asked for");
}

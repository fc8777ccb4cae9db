//! Claiming, renewing, handing over, losing; and never two at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use status::Leadership;
use status::lease::{Election, Holder, Settings, SettingsError};
use testbed::ApiServer;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bed::LIMIT;

/// Short, and apart from each other as the usual ones are.
fn settings(namespace: &str, replica: &str) -> Settings {
    Settings {
        lease_duration: Duration::from_secs(2),
        renew_deadline: Duration::from_millis(1_300),
        retry_period: Duration::from_millis(200),
        ..Settings::new(namespace, replica)
    }
}

struct Candidate {
    leadership: Leadership,
    holder: watch::Receiver<Holder>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Candidate {
    fn start(client: Client, settings: Settings) -> Candidate {
        let election = Election::new(client, settings).unwrap();
        let (leadership, holder) = (election.leadership(), election.holder());
        let stop = CancellationToken::new();
        let task = tokio::spawn(election.run(stop.clone().cancelled_owned()));
        Candidate { leadership, holder, stop, task }
    }

    async fn until(&self, leader: bool) {
        let mut watch = self.leadership.watch();
        let changed = watch.wait_for(|is| *is == leader);
        testbed::within(format!("leader: {leader}"), LIMIT, changed).await.unwrap().unwrap();
    }

    /// Waits until it knows who holds the lease.
    async fn knows(&self, holder: Holder) {
        let mut watch = self.holder.clone();
        let known = watch.wait_for(|known| *known == holder);
        testbed::within(format!("the holder to be known: {holder:?}"), LIMIT, known).await.unwrap().unwrap();
    }

    async fn hand_back(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[tokio::test]
async fn everybody_knows_where_the_holder_is() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("lease").await.unwrap();
    let at =
        |replica: &str, address: &str| Settings { address: Some(address.to_owned()), ..settings(&namespace, replica) };
    let first = Candidate::start(api.client().unwrap(), at("first", "192.0.2.1:8001"));
    first.knows(Holder::Ourselves).await;
    let second = Candidate::start(api.client().unwrap(), at("second", "192.0.2.2:8001"));
    second.knows(Holder::Another(Some("192.0.2.1:8001".to_owned()))).await;
    first.hand_back().await;
    second.knows(Holder::Ourselves).await;
    let third = Candidate::start(api.client().unwrap(), settings(&namespace, "third"));
    third.knows(Holder::Another(Some("192.0.2.2:8001".to_owned()))).await;
}

async fn lease(client: Client, namespace: &str) -> Lease {
    Api::<Lease>::namespaced(client, namespace).get("leader-elect").await.unwrap()
}

#[tokio::test]
async fn the_lease_is_claimed_renewed_and_handed_over() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("lease").await.unwrap();
    let client = api.client().unwrap();
    let first = Candidate::start(client.clone(), settings(&namespace, "first"));
    first.until(true).await;
    let claimed = lease(client.clone(), &namespace).await.spec.unwrap();
    assert!(claimed.holder_identity.as_deref().unwrap().starts_with("first_"));
    assert_eq!((claimed.lease_duration_seconds, claimed.lease_transitions), (Some(2), Some(0)));

    let second = Candidate::start(client.clone(), settings(&namespace, "second"));
    let renewed = async || match lease(client.clone(), &namespace).await.spec.unwrap() {
        now if now.renew_time > claimed.renew_time => Ok(now),
        now => Err(format!("{now:?}")),
    };
    for _ in 0..2 {
        let now = testbed::eventually("a renewal", LIMIT, renewed).await.unwrap();
        assert_eq!(now.acquire_time, claimed.acquire_time);
        assert!(first.leadership.is_leader() && !second.leadership.is_leader());
    }

    // A permit that is out holds up the hand-over, for as long as it may be out.
    let permit = first.leadership.permit().unwrap();
    let begun = Instant::now();
    first.stop.cancel();
    first.until(false).await;
    assert!(first.leadership.permit().is_none());
    let held = lease(client.clone(), &namespace).await.spec.unwrap();
    assert!(held.holder_identity.unwrap().starts_with("first_"));
    drop(permit);
    second.until(true).await;
    let took = begun.elapsed();
    println!("handed over in {took:?}");
    assert!(took < Duration::from_secs(2), "without waiting for the lease to end: {took:?}");
    assert_eq!(lease(client.clone(), &namespace).await.spec.unwrap().lease_transitions, Some(1));
    second.hand_back().await;
    assert_eq!(lease(client, &namespace).await.spec.unwrap().holder_identity.as_deref(), Some(""));
}

#[tokio::test]
async fn a_holder_that_dies_is_followed_when_its_lease_is_over() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("lease").await.unwrap();
    let first = Candidate::start(api.client().unwrap(), settings(&namespace, "first"));
    first.until(true).await;
    let second = Candidate::start(api.client().unwrap(), settings(&namespace, "second"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    first.task.abort();
    let died = Instant::now();
    // Nobody tells it that it has lost; it knows.
    let fell = async {
        while first.leadership.is_leader() {
            assert!(!second.leadership.is_leader());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        died.elapsed()
    };
    let fell = testbed::within("the first to stop", LIMIT, fell).await.unwrap();
    assert!(first.leadership.permit().is_none());
    second.until(true).await;
    println!("the first stopped after {fell:?}, the second began after {:?}", died.elapsed());
    assert!(fell <= Duration::from_millis(1_300) && died.elapsed() >= Duration::from_millis(1_700));
    second.hand_back().await;
}

#[tokio::test]
async fn a_lease_that_another_took_is_lost_and_won_back() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("lease").await.unwrap();
    let client = api.client().unwrap();
    let ours = Candidate::start(client.clone(), settings(&namespace, "ours"));
    ours.until(true).await;
    let taken = json!({ "spec": { "holderIdentity": "another", "leaseDurationSeconds": 1 } });
    let leases = Api::<Lease>::namespaced(client.clone(), &namespace);
    leases.patch("leader-elect", &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    ours.until(false).await;
    assert!(ours.leadership.permit().is_none());
    ours.until(true).await;
    leases.delete("leader-elect", &Default::default()).await.unwrap();
    let back = async || leases.get("leader-elect").await;
    testbed::eventually("the lease to be made again", LIMIT, back).await.unwrap();
    assert!(ours.leadership.is_leader());
    ours.hand_back().await;
}

#[tokio::test]
async fn never_two_writers_while_the_api_server_comes_and_goes() {
    let api = ApiServer::start().await.unwrap();
    let namespace = api.namespace("lease").await.unwrap();
    let names = ["first", "second", "third"];
    let candidates = names.map(|name| Candidate::start(api.client().unwrap(), settings(&namespace, name)));
    let writing = Arc::new(AtomicUsize::new(0));
    let writes = Arc::new(AtomicUsize::new(0));
    let writers = candidates.each_ref().map(|candidate| {
        let (leadership, client) = (candidate.leadership.clone(), api.client().unwrap());
        let (writing, writes, namespace) = (writing.clone(), writes.clone(), namespace.clone());
        tokio::spawn(async move {
            let leases = Api::<Lease>::namespaced(client, &namespace);
            loop {
                if let Some(permit) = leadership.permit() {
                    assert_eq!(writing.fetch_add(1, Ordering::SeqCst), 0, "two writers");
                    // A request that hangs is given up in time.
                    _ = tokio::time::timeout_at(permit.until().into(), leases.get("leader-elect")).await;
                    writing.fetch_sub(1, Ordering::SeqCst);
                    writes.fetch_add(1, Ordering::SeqCst);
                    drop(permit);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    });
    let one = async || match candidates.iter().filter(|candidate| candidate.leadership.is_leader()).count() {
        1 => Ok(()),
        count => Err(format!("{count} leaders")),
    };
    let none = async || match candidates.iter().filter(|candidate| candidate.leadership.is_leader()).count() {
        0 => Ok(()),
        count => Err(format!("{count} leaders")),
    };
    testbed::eventually("a leader", LIMIT, one).await.unwrap();
    for round in 0..3 {
        if round % 2 == 0 {
            api.kill().await.unwrap()
        } else {
            api.stop().await.unwrap()
        }
        testbed::eventually("no leader", LIMIT, none).await.unwrap();
        api.restart().await.unwrap();
        testbed::eventually("a leader", LIMIT, one).await.unwrap();
    }
    for writer in writers {
        assert!(!writer.is_finished(), "a writer met another");
        writer.abort();
    }
    println!("{} requests by one writer at a time", writes.load(Ordering::SeqCst));
    for candidate in candidates {
        candidate.hand_back().await;
    }
}

#[tokio::test]
async fn times_that_allow_two_writers_are_refused() {
    let api = ApiServer::shared().await.unwrap();
    let usual = Settings::new("default", "a");
    assert!(Election::new(api.client().unwrap(), usual.clone()).is_ok());
    let refused = |settings: Settings| Election::new(api.client().unwrap(), settings).map(drop).unwrap_err();
    let short = Settings { lease_duration: usual.renew_deadline, ..usual.clone() };
    assert!(matches!(refused(short), SettingsError::Duration { .. }));
    let slow = Settings { retry_period: usual.renew_deadline, ..usual.clone() };
    assert!(matches!(refused(slow), SettingsError::Deadline { .. }));
    assert_eq!(refused(Settings { retry_period: Duration::ZERO, ..usual }), SettingsError::NoRetry);
}

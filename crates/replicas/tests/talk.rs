//! Replicas over real sockets and certificates, with clients that take or refuse at will.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use certgen::{Certificates, Request};
use replicas::{AckReport, AckReports, CertificateHolders, Replicas, Role};
use tempfile::TempDir;
use testbed::{
    Client, Net, XdsClient,
    certs::{Ca, Leaf},
    eventually, within,
    xds_client::{Kind as Ask, Reply},
};
use tokio::net::TcpListener;
use xds::{
    AckCounts, Batch, Changes, Fleet, Kind, Outcome, PeerError, QuarantineTarget, Quarantined, Resource, Security,
    Server, Tls, TlsFiles, Version,
};

const TIMEOUT: Duration = Duration::from_secs(20);
const PERMISSION_DENIED: u32 = 7;

/// A replica that serves and talks until the test ends.
struct Replica {
    server: Server,
    replicas: Replicas,
    address: SocketAddr,
    _folder: TempDir,
}

fn files(folder: &TempDir, ca: &str, certificate: &str, key: &str) -> TlsFiles {
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    TlsFiles { ca: write("ca.crt", ca), certificate: write("tls.crt", certificate), key: write("tls.key", key) }
}

/// A server that serves until the test ends.
async fn serving(ca: &Ca, name: &str) -> (Server, SocketAddr, TlsFiles, TempDir) {
    let (folder, leaf) = (tempfile::tempdir().unwrap(), ca.leaf(name).make());
    let files = files(&folder, ca.pem(), leaf.chain_pem(), leaf.key_pem());
    let server = Server::new(xds::Config::default());
    let listener = TcpListener::bind(Net::here().unwrap().socket(8001)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = Security::Tls(Arc::new(Tls::load(files.clone()).unwrap()));
    let serving = server.clone();
    tokio::spawn(async move { serving.serve(listener, tls, std::future::pending()).await });
    (server, address, files, folder)
}

impl Replica {
    async fn start(ca: &Ca, name: &str) -> Replica {
        let (server, address, files, folder) = serving(ca, name).await;
        let replicas = Replicas::new(server.clone(), Some(files));
        tokio::spawn(replicas.clone().run(std::future::pending()));
        Replica { server, replicas, address, _folder: folder }
    }

    fn follow(&self, holder: &Replica) {
        self.replicas.take(Role::Follower(holder.address.to_string().into()));
    }

    fn publish(&self, body: &str) {
        let upserts = vec![Resource::new(Kind::Route, "r", body.as_bytes().to_vec())];
        let changes = Changes { upserts, removes: vec![] };
        self.server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();
    }

    /// A client that answers so.
    async fn client(&self, ca: &Ca, id: &str, reply: Reply) -> XdsClient {
        let client = Client::new(self.address).host("sesame").trust(ca).identity(&ca.leaf("envoy").make());
        let client = XdsClient::to(client).id(id).ask_all(Ask::Route).replies(move |_| reply.clone());
        client.connect().await.unwrap()
    }

    async fn withholds(&self, what: &str, wanted: &[Quarantined]) {
        let mut others = self.replicas.others();
        let same = others.wait_for(|others| others.of(&Fleet::Shared) == wanted);
        within(format!("a replica to learn of {what}"), TIMEOUT, same).await.unwrap().unwrap();
    }
}

/// Waits until proxies have a version, or no longer do.
async fn becomes(ack_reports: &mut AckReports, version: &Version, what: &str, wanted: bool) {
    let is_so = |(of, report): &(Version, AckReport)| of == version && report.is_programmed == wanted;
    let waiting = async { while !ack_reports.next().await.iter().any(is_so) {} };
    let late = within(what, TIMEOUT, waiting).await;
    late.unwrap_or_else(|late| panic!("{late}: {:?}", ack_reports.counts(version)));
}

/// Waits for a count over all replicas.
async fn counts(ack_reports: &mut AckReports, version: &Version, what: &str, wanted: impl Fn(AckCounts) -> bool) {
    let all = |ack_reports: &AckReports| {
        ack_reports.counts(version).into_values().fold(AckCounts::default(), AckCounts::plus)
    };
    let counting = async {
        while !wanted(all(ack_reports)) {
            // What is told is whether proxies have it; counts change more often.
            let _no_news = tokio::time::timeout(Duration::from_millis(20), ack_reports.next()).await;
        }
    };
    let late = within(format!("the count of {what}"), TIMEOUT, counting).await;
    late.unwrap_or_else(|late| panic!("{late}: {:?}", ack_reports.counts(version)));
}

fn hold(name: &str) -> Quarantined {
    Quarantined { target: QuarantineTarget::resource(Kind::Route, name.into()), hash: 7, text: "no".into() }
}

fn version(body: &str) -> Version {
    Version { kind: Kind::Route, name: "r".into(), version: xds::content_version(body.as_bytes()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_withholds_all_do_until_it_no_longer_does() {
    let ca = Ca::new("ca");
    let (a, b, c) = (
        Replica::start(&ca, "sesame").await,
        Replica::start(&ca, "contour").await,
        Replica::start(&ca, "sesame").await,
    );
    a.replicas.take(Role::Leader);
    b.follow(&a);
    c.follow(&a);
    b.replicas.report(&Fleet::Shared, vec![hold("one")]);
    a.withholds("one", &[hold("one")]).await;
    c.withholds("one", &[hold("one")]).await;
    a.replicas.report(&Fleet::Shared, vec![hold("two")]);
    c.withholds("both", &[hold("one"), hold("two")]).await;
    b.withholds("the other's only", &[hold("two")]).await;

    // Without the stream each goes on by itself, and is told again when it is back.
    c.replicas.take(Role::Alone);
    c.withholds("nothing", &[]).await;
    c.follow(&a);
    c.withholds("both again", &[hold("one"), hold("two")]).await;

    // Another takes the lease.
    b.replicas.take(Role::Leader);
    a.follow(&b);
    c.follow(&b);
    a.withholds("one by the new holder", &[hold("one")]).await;
    b.withholds("two by a follower", &[hold("two")]).await;
    b.replicas.report(&Fleet::Shared, vec![]);
    a.withholds("nothing more", &[]).await;
    c.withholds("what is left", &[hold("two")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_of_all_replicas_are_added_up() {
    let ca = Ca::new("ca");
    let (a, b) = (Replica::start(&ca, "sesame").await, Replica::start(&ca, "sesame").await);
    a.replicas.take(Role::Leader);
    b.follow(&a);
    a.publish("1");
    b.publish("1");
    let mut ack_reports = a.replicas.ack_reports(Fleet::Shared);
    ack_reports.ask(version("1"));
    ack_reports.ask(version("2"));
    let _one = a.client(&ca, "one", Reply::Ack).await;
    let two = b.client(&ca, "two", Reply::Ack).await;
    counts(&mut ack_reports, &version("1"), "two that have it", |counts| counts.have == 2).await;

    two.reply_with(|_| Reply::Hold);
    a.publish("2");
    b.publish("2");
    let behind = |counts: AckCounts| counts.have == 1 && counts.behind == 1;
    counts(&mut ack_reports, &version("2"), "one that is behind", behind).await;
    // Behind is also who has not been reached yet.
    two.until("the next to arrive", |state| state.counts(Ask::Route).responses >= 2).await.unwrap();
    two.answer(Ask::Route, Reply::Ack);
    becomes(&mut ack_reports, &version("2"), "both to have it", true).await;
    counts(&mut ack_reports, &version("2"), "two that have the next", |counts| counts.have == 2).await;
    drop(two);
    counts(&mut ack_reports, &version("2"), "one that is left", |counts| counts.clients() == 1).await;
}

/// Far more is asked than one message may have, while the follower has as much to answer; and again of another follower that
/// comes later.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_and_answered_may_be_more_than_a_message() {
    const COUNT: usize = 60_000;
    let ca = Ca::new("ca");
    let (a, b) = (Replica::start(&ca, "sesame").await, Replica::start(&ca, "sesame").await);
    let name = |at: usize| format!("host-{at}.{}.example.com", "long".repeat(60));
    let whole: usize = (0..COUNT).map(|at| name(at).len() + 60).sum();
    assert!(whole > xds::peer::LARGEST, "{whole} bytes of questions are more than a message");
    for replica in [&a, &b] {
        let upserts = (0..COUNT).map(|at| Resource::new(Kind::Route, name(at), b"1".to_vec())).collect();
        let changes = Changes { upserts, removes: vec![] };
        replica.server.publish(Batch { fleet: Fleet::Shared, changes }).unwrap();
    }
    a.replicas.take(Role::Leader);
    let mut ack_reports = a.replicas.ack_reports(Fleet::Shared);
    for at in 0..COUNT {
        let version = xds::content_version(b"1");
        ack_reports.ask(Version { kind: Kind::Route, name: name(at).into(), version });
    }
    b.follow(&a);
    // What is withheld comes with it, and is as large.
    let holds: Vec<Quarantined> =
        (0..5_000).map(|at| Quarantined { text: "x".repeat(4_096).into(), ..hold(&name(at)) }).collect();
    b.replicas.report(&Fleet::Shared, holds);
    let _two = b.client(&ca, "two", Reply::Ack).await;
    let mut programmed = HashSet::new();
    let waiting = async {
        while programmed.len() < COUNT {
            for (version, report) in ack_reports.next().await {
                if report.is_programmed {
                    programmed.insert(version);
                } else {
                    programmed.remove(&version);
                }
            }
        }
    };
    within("all to be programmed", Duration::from_secs(120), waiting).await.unwrap();
    let mut others = a.replicas.others();
    let all = others.wait_for(|others| others.of(&Fleet::Shared).len() == 5_000);
    within("all that is withheld", TIMEOUT, all).await.unwrap().unwrap();
}

/// A holder that lets everybody in and says nothing is not worth hurrying back to.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_let_in_and_cut_off_comes_back_less_and_less_often() {
    let ca = Ca::new("ca");
    let (server, address, _files, _folder) = serving(&ca, "sesame").await;
    let mut peers = server.peers();
    let follower = Replica::start(&ca, "sesame").await;
    follower.replicas.take(Role::Follower(address.to_string().into()));
    let mut last = None;
    let mut waits = Vec::new();
    for _ in 0..5 {
        drop(within("a stream", TIMEOUT, peers.recv()).await.unwrap().unwrap());
        let now = std::time::Instant::now();
        waits.extend(last.replace(now).map(|last| now.duration_since(last)));
    }
    // 100 ms, 200 ms, 400 ms, 800 ms at least; a busy machine only makes it longer.
    assert!(waits.iter().zip([100, 200, 400, 800]).all(|(wait, least)| wait.as_millis() >= least), "{waits:?}");

    // A leader that sent its whole state resets the backoff; without that the next wait would be 3.2 s at least.
    let leader = within("a stream", TIMEOUT, peers.recv()).await.unwrap().unwrap();
    let whole = serde_json::json!({ "quarantine_changes": [(Fleet::Shared, hold("one"), true)], "synced": true });
    assert!(leader.sender.send(whole.to_string().as_bytes()).await);
    follower.withholds("one", &[hold("one")]).await;
    let cut = std::time::Instant::now();
    drop(leader);
    drop(within("a stream", TIMEOUT, peers.recv()).await.unwrap().unwrap());
    assert!(cut.elapsed() < Duration::from_secs(3), "{:?}", cut.elapsed());
}

/// A leader, and a replica that follows it, once the stream is there: until then each would decide alone.
async fn leader_and_follower(ca: &Ca) -> (Replica, Replica) {
    let (a, b) = (Replica::start(ca, "sesame").await, Replica::start(ca, "sesame").await);
    a.replicas.take(Role::Leader);
    b.follow(&a);
    b.replicas.report(&Fleet::Shared, vec![hold("sign of life")]);
    a.withholds("b", &[hold("sign of life")]).await;
    (a, b)
}

/// A Gateway that was deleted and created again has another fleet of the same name, on every replica.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_that_comes_back_is_counted_anew() {
    let ca = Ca::new("ca");
    let (a, b) = leader_and_follower(&ca).await;
    let fleet = Fleet::named("shop", "edge");
    let publish = || {
        let changes = Changes { upserts: vec![Resource::new(Kind::Route, "r", b"1".to_vec())], removes: vec![] };
        b.server.publish(Batch { fleet: fleet.clone(), changes }).unwrap();
    };
    let identity = ca.leaf("envoy").uri(&fleet.uri().unwrap()).make();
    let connect = async || {
        let client = Client::new(b.address).host("sesame").trust(&ca).identity(&identity);
        XdsClient::to(client).id("one").ask_all(Ask::Route).replies(|_| Reply::Ack).connect().await.unwrap()
    };
    let mut ack_reports = a.replicas.ack_reports(fleet.clone());
    ack_reports.ask(version("1"));
    publish();
    let before = connect().await;
    counts(&mut ack_reports, &version("1"), "one that has it", |counts| counts.have == 1).await;
    b.server.remove_fleet(&fleet);
    drop(before);
    counts(&mut ack_reports, &version("1"), "nobody", |counts| counts.clients() == 0).await;
    publish();
    let _after = connect().await;
    counts(&mut ack_reports, &version("1"), "one that has it again", |counts| counts.have == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_knows_which_certificates_all_have() {
    let ca = Ca::new("c");
    let (leader, follower) = leader_and_follower(&ca).await;
    let holders = |name: &str, leaf| CertificateHolders {
        names: vec![name.to_owned()],
        count: 1,
        cas: vec![1],
        leaf: Some(leaf),
        ..CertificateHolders::default()
    };
    let knows = async |wanted: &[CertificateHolders]| {
        let known = async || match leader.replicas.certificates() {
            known if known == wanted => Ok(()),
            known => Err(format!("{known:?}")),
        };
        eventually("the leader to know", TIMEOUT, known).await.unwrap();
    };
    // A replica that has not said anything yet is not taken for one that has nothing.
    assert_eq!(leader.replicas.certificates().iter().map(|it| (it.count, it.cas.len())).collect::<Vec<_>>(), [(1, 0)]);
    leader.replicas.report_certificates(vec![holders("leader", 5)]);
    follower.replicas.report_certificates(vec![holders("follower", 6)]);
    knows(&[holders("leader", 5), holders("follower", 6)]).await;
    follower.replicas.report_certificates(vec![holders("follower", 7), holders("proxy", 8)]);
    knows(&[holders("leader", 5), holders("follower", 7), holders("proxy", 8)]).await;
    follower.replicas.take(Role::Alone);
    knows(&[holders("leader", 5)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_that_refuses_makes_no_verdict() {
    let ca = Ca::new("ca");
    let (a, b) = leader_and_follower(&ca).await;
    let one = a.client(&ca, "one", Reply::Ack).await;
    let two = b.client(&ca, "two", Reply::Nack("no".into())).await;
    let (mut of_a, mut of_b) = (a.replicas.outcomes(Fleet::Shared), b.replicas.outcomes(Fleet::Shared));
    // Two on the same replica ask the same question at the same time.
    let mut also_of_b = b.replicas.outcomes(Fleet::Shared);
    a.publish("1");
    one.until("the first", |state| state.counts(Ask::Route).acked >= 1).await.unwrap();
    b.publish("1");
    for outcomes in [&mut of_b, &mut also_of_b] {
        let outcome = within("an outcome of the follower", TIMEOUT, outcomes.next()).await.unwrap();
        assert!(matches!(outcome.outcome, Outcome::Accepted), "{outcome:?}");
    }

    // The other way round: the holder's own client is the one.
    one.reply_with(|_| Reply::Nack("no".into()));
    two.reply_with(|_| Reply::Ack);
    b.publish("2");
    two.until("the second", |state| state.counts(Ask::Route).acked >= 1).await.unwrap();
    a.publish("2");
    let outcome = within("an outcome of the holder", TIMEOUT, of_a.next()).await.unwrap();
    assert!(matches!(outcome.outcome, Outcome::Accepted), "{outcome:?}");

    // All refuse.
    two.reply_with(|_| Reply::Nack("no".into()));
    a.publish("3");
    b.publish("3");
    for outcomes in [&mut of_a, &mut of_b] {
        let outcome = within("an outcome of all", TIMEOUT, outcomes.next()).await.unwrap();
        assert!(matches!(&outcome.outcome, Outcome::Rejected { text, .. } if &**text == "no"), "{outcome:?}");
    }
}

/// What whoever reads the status is told: which proxy refuses, for as long as it does, the same one whichever replica it is on.
#[tokio::test(flavor = "multi_thread")]
async fn of_those_that_refuse_the_first_by_name_is_told_while_it_does() {
    let ca = Ca::new("ca");
    let (a, b) = leader_and_follower(&ca).await;
    a.publish("1");
    b.publish("1");
    let _one = a.client(&ca, "envoy-1", Reply::Ack).await;
    let three = a.client(&ca, "envoy-3", Reply::Nack("not on this machine".into())).await;
    let two = b.client(&ca, "envoy-2", Reply::Nack("not here".into())).await;
    let mut ack_reports = a.replicas.ack_reports(Fleet::Shared);
    ack_reports.ask(version("1"));
    let mut refused_by = async |what: &str, wanted: Option<(&str, &str)>| {
        let is_so = |(_, report): &(Version, AckReport)| {
            let refusal = report.refusal.as_ref().map(|refusal| (&*refusal.node, &*refusal.text));
            report.is_programmed && report.is_subscribed && refusal == wanted
        };
        let waiting = async { while !ack_reports.next().await.iter().any(is_so) {} };
        within(what, TIMEOUT, waiting).await.unwrap();
    };
    refused_by("one of the follower's", Some(("envoy-2", "not here"))).await;
    drop(two);
    refused_by("one of the leader's", Some(("envoy-3", "not on this machine"))).await;
    drop(three);
    refused_by("none", None).await;
}

/// The same version is refused twice, by one proxy after the other: each time the holder is asked.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_again_is_asked_again() {
    let ca = Ca::new("ca");
    let (a, b) = leader_and_follower(&ca).await;
    let one = a.client(&ca, "one", Reply::Ack).await;
    let mut of_b = b.replicas.outcomes(Fleet::Shared);
    a.publish("1");
    one.until("the first", |state| state.counts(Ask::Route).acked >= 1).await.unwrap();
    b.publish("1");
    for id in ["two", "three"] {
        let _refuses = b.client(&ca, id, Reply::Nack("no".into())).await;
        let outcome = within(format!("an outcome on what {id} refused"), TIMEOUT, of_b.next()).await.unwrap();
        assert!(matches!(outcome.outcome, Outcome::Accepted), "{id}: {outcome:?}");
    }
}

/// Of the proxies that could decide, one has it and one refused it; a third has been silent for hours.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_makes_no_refusal_stand() {
    let ca = Ca::new("ca");
    let (a, b) = leader_and_follower(&ca).await;
    let one = a.client(&ca, "one", Reply::Ack).await;
    let silent = a.client(&ca, "silent", Reply::Hold).await;
    a.publish("1");
    one.until("the first", |state| state.counts(Ask::Route).acked >= 1).await.unwrap();
    silent.until("the first to arrive", |state| state.counts(Ask::Route).responses >= 1).await.unwrap();
    let mut of_b = b.replicas.outcomes(Fleet::Shared);
    let _two = b.client(&ca, "two", Reply::Nack("no".into())).await;
    b.publish("1");
    let outcome = within("an outcome of the follower", TIMEOUT, of_b.next()).await.unwrap();
    assert!(matches!(outcome.outcome, Outcome::Accepted), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_servers_certificate_opens_the_stream_of_replicas() {
    let request = Request {
        namespace: "test".to_owned(),
        fleet: None,
        lifetime: Duration::from_secs(3600),
        now: SystemTime::now(),
    };
    let certificates = Certificates::issue(&request).unwrap();
    let (folder, of_envoy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (server, envoy) = (&certificates.server, &certificates.envoy);
    let server_files = files(&folder, &certificates.ca, &server.certificate, &server.key);
    let envoy_files = files(&of_envoy, &certificates.ca, &envoy.certificate, &envoy.key);
    let serving = Server::new(xds::Config::default());
    let _peers = serving.peers();
    let listener = TcpListener::bind(Net::here().unwrap().socket(8001)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let tls = Security::Tls(Arc::new(Tls::load(server_files.clone()).unwrap()));
    tokio::spawn(async move { serving.serve(listener, tls, std::future::pending()).await });

    xds::peer::connect(&address, Some(&server_files)).await.unwrap();
    let refused = xds::peer::connect(&address, Some(&envoy_files)).await.unwrap_err();
    assert!(matches!(&refused, PeerError::Refused(why) if why.contains("not a server's")), "{refused:?}");
    let unknown = tempfile::tempdir().unwrap();
    let stranger: Leaf = Ca::new("other").leaf("sesame").make();
    let stranger = files(&unknown, &certificates.ca, stranger.chain_pem(), stranger.key_pem());
    xds::peer::connect(&address, Some(&stranger)).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_certificate_opens_no_fleet() {
    let ca = Ca::new("ca");
    let replica = Replica::start(&ca, "sesame").await;
    replica.publish("1");
    let client = Client::new(replica.address).host("sesame").trust(&ca).identity(&ca.leaf("sesame").make());
    let refused = XdsClient::to(client).fetch(Ask::Route, [""; 0]).await.unwrap();
    assert_eq!((refused.status, refused.replies.len()), (Some(PERMISSION_DENIED), 0), "{}", refused.message);
}

//! Replicas over real sockets and certificates, with clients that take or refuse at will.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use certgen::{Certificates, Request};
use replicas::{Place, Question, Replicas};
use tempfile::TempDir;
use testbed::{
    Client, Net, XdsClient,
    certs::{Ca, Leaf},
    within,
    xds_client::{Kind as Ask, Reply},
};
use tokio::net::TcpListener;
use xds::{Batch, Changes, Fleet, Hold, Kind, Outcome, PeerError, Resource, Security, Server, Target, Tls, TlsFiles};

const PATIENCE: Duration = Duration::from_secs(20);
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

impl Replica {
    async fn start(ca: &Ca, name: &str) -> Replica {
        let (folder, leaf) = (tempfile::tempdir().unwrap(), ca.leaf(name).make());
        let files = files(&folder, ca.pem(), leaf.chain_pem(), leaf.key_pem());
        let server = Server::new(xds::Config::default());
        let listener = TcpListener::bind(Net::here().unwrap().socket(8001)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let tls = Security::Tls(Arc::new(Tls::load(files.clone()).unwrap()));
        let serving = server.clone();
        tokio::spawn(async move { serving.serve(listener, tls, std::future::pending()).await });
        let replicas = Replicas::new(server.clone(), Some(files));
        tokio::spawn(replicas.clone().run(std::future::pending()));
        Replica { server, replicas, address, _folder: folder }
    }

    fn follow(&self, holder: &Replica) {
        self.replicas.take(Place::Follower(holder.address.to_string().into()));
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

    async fn withholds(&self, what: &str, wanted: &[Hold]) {
        let mut others = self.replicas.others();
        let same = others.wait_for(|others| others.of(&Fleet::Shared) == wanted);
        within(format!("a replica to hear of {what}"), PATIENCE, same).await.unwrap().unwrap();
    }

    /// Waits for a count over all replicas.
    async fn counts(&self, question: &Question, what: &str, wanted: impl Fn(xds::Tally) -> bool) {
        let mut news = self.replicas.news();
        let counting = async {
            loop {
                news.borrow_and_update();
                if wanted(self.replicas.standing(question)) {
                    return;
                }
                news.changed().await.unwrap();
            }
        };
        let late = within(format!("the count of {what}"), PATIENCE, counting).await;
        late.unwrap_or_else(|late| panic!("{late}: {:?}", self.replicas.standings(question)));
    }
}

fn hold(name: &str) -> Hold {
    Hold { target: Target::resource(Kind::Route, name.into()), hash: 7, text: "no".into() }
}

fn question(body: &str) -> Question {
    let version = xds::content_version(body.as_bytes());
    Question { fleet: Fleet::Shared, kind: Kind::Route, name: "r".into(), version }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_withholds_all_do_until_it_no_longer_does() {
    let ca = Ca::new("ca");
    let (a, b, c) = (
        Replica::start(&ca, "sesame").await,
        Replica::start(&ca, "contour").await,
        Replica::start(&ca, "sesame").await,
    );
    a.replicas.take(Place::Holder);
    b.follow(&a);
    c.follow(&a);
    b.replicas.report(&Fleet::Shared, vec![hold("one")]);
    a.withholds("one", &[hold("one")]).await;
    c.withholds("one", &[hold("one")]).await;
    a.replicas.report(&Fleet::Shared, vec![hold("two")]);
    c.withholds("both", &[hold("one"), hold("two")]).await;
    b.withholds("the other's only", &[hold("two")]).await;

    // Without the stream each goes on by itself, and is told again when it is back.
    c.replicas.take(Place::Alone);
    c.withholds("nothing", &[]).await;
    c.follow(&a);
    c.withholds("both again", &[hold("one"), hold("two")]).await;

    // Another takes the lease.
    b.replicas.take(Place::Holder);
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
    a.replicas.take(Place::Holder);
    b.follow(&a);
    a.publish("1");
    b.publish("1");
    a.replicas.ask([question("1"), question("2")]);
    assert!(!a.replicas.programmed([&question("1")]), "nobody serves it");
    let _one = a.client(&ca, "one", Reply::Ack).await;
    let two = b.client(&ca, "two", Reply::Ack).await;
    a.counts(&question("1"), "two that have it", |tally| tally.have == 2).await;
    assert!(a.replicas.programmed([&question("1")]));

    two.reply_with(|_| Reply::Hold);
    a.publish("2");
    b.publish("2");
    a.counts(&question("2"), "one that is behind", |tally| tally.have == 1 && tally.behind == 1).await;
    assert!(!a.replicas.programmed([&question("2")]));
    // Behind is also who has not been reached yet.
    two.until("the next to arrive", |state| state.counts(Ask::Route).responses >= 2).await.unwrap();
    two.answer(Ask::Route, Reply::Ack);
    a.counts(&question("2"), "two that have the next", |tally| tally.have == 2).await;
    assert!(a.replicas.programmed([&question("2")]));
    drop(two);
    a.counts(&question("2"), "one that is left", |tally| tally.clients() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_that_refuses_makes_no_verdict() {
    let ca = Ca::new("ca");
    let (a, b) = (Replica::start(&ca, "sesame").await, Replica::start(&ca, "sesame").await);
    a.replicas.take(Place::Holder);
    b.follow(&a);
    // Until the stream is there, each would decide alone.
    b.replicas.report(&Fleet::Shared, vec![hold("sign of life")]);
    a.withholds("b", &[hold("sign of life")]).await;
    let one = a.client(&ca, "one", Reply::Ack).await;
    let two = b.client(&ca, "two", Reply::Nack("no".into())).await;
    let (mut of_a, mut of_b) = (a.replicas.rulings(Fleet::Shared), b.replicas.rulings(Fleet::Shared));
    a.publish("1");
    one.until("the first", |state| state.counts(Ask::Route).acked >= 1).await.unwrap();
    b.publish("1");
    let ruling = within("a ruling of the follower", PATIENCE, of_b.next()).await.unwrap();
    assert!(matches!(ruling.outcome, Outcome::Taken), "{ruling:?}");

    // The other way round: the holder's own client is the one.
    one.reply_with(|_| Reply::Nack("no".into()));
    two.reply_with(|_| Reply::Ack);
    b.publish("2");
    two.until("the second", |state| state.counts(Ask::Route).acked >= 1).await.unwrap();
    a.publish("2");
    let ruling = within("a ruling of the holder", PATIENCE, of_a.next()).await.unwrap();
    assert!(matches!(ruling.outcome, Outcome::Taken), "{ruling:?}");

    // All refuse.
    two.reply_with(|_| Reply::Nack("no".into()));
    a.publish("3");
    b.publish("3");
    for rulings in [&mut of_a, &mut of_b] {
        let ruling = within("a ruling of all", PATIENCE, rulings.next()).await.unwrap();
        assert!(matches!(&ruling.outcome, Outcome::Refused { text, .. } if &**text == "no"), "{ruling:?}");
    }
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

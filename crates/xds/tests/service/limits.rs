//! Clients that are slow, greedy or mad, and those beside them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bytes::Bytes;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use tokio::net::TcpStream;
use tokio::sync::broadcast;
use tonic::Code;
use xds::{Batch, Changes, Config, Event, Fleet, Kind, Limits, PublishError, Security};

use crate::client::{DELTA_ADS, Delta, Running, bodies, fetch, names, node, resource, soon};
use crate::handshakes::metrics;

const FETCH_LISTENERS: &str = "/envoy.service.listener.v3.ListenerDiscoveryService/FetchListeners";

async fn limited(limits: Limits) -> Running {
    let running = Running::start(Config { limits, ..Config::default() }, Security::Insecure).await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    running
}

/// A well-behaved client is served all the while.
async fn assert_served(running: &Running) {
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("good", "shared")), Kind::Listener, &[]).await;
    assert_eq!(names(&stream.next().await), ["a"]);
}

async fn assert_cut(running: &Running, request: DeltaDiscoveryRequest, code: Code) {
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.send(request).await;
    assert_eq!(stream.end().await.code(), code);
    assert_served(running).await;
}

#[tokio::test]
async fn a_huge_node() {
    let running = limited(Limits::default()).await;
    let node = Some(Node { id: "x".repeat(100_000), ..Node::default() });
    assert_cut(&running, DeltaDiscoveryRequest { node, ..Default::default() }, Code::InvalidArgument).await;
}

#[tokio::test]
async fn no_node() {
    let running = limited(Limits::default()).await;
    let request = DeltaDiscoveryRequest { type_url: Kind::Listener.type_url().to_owned(), ..Default::default() };
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.send(request).await;
    assert_eq!(names(&stream.next().await), ["a"], "in the shared fleet of an insecure server nobody need say more");
}

#[tokio::test]
async fn too_many_names() {
    let running = limited(Limits { names: 1000, ..Limits::default() }).await;
    let request = DeltaDiscoveryRequest {
        node: Some(node("greedy", "shared")),
        type_url: Kind::Route.type_url().to_owned(),
        resource_names_subscribe: (0..1001).map(|at| at.to_string()).collect(),
        ..Default::default()
    };
    assert_cut(&running, request, Code::InvalidArgument).await;
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("patient", "shared")), Kind::Route, &["0"]).await;
    for at in 1..=1000 {
        stream.subscribe(None, Kind::Route, &[&at.to_string()]).await;
    }
    assert_eq!(stream.end().await.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn a_name_that_is_too_long() {
    let running = limited(Limits { name_length: 100, ..Limits::default() }).await;
    let request = DeltaDiscoveryRequest {
        node: Some(node("odd", "shared")),
        type_url: Kind::Route.type_url().to_owned(),
        resource_names_subscribe: vec!["x".repeat(101)],
        ..Default::default()
    };
    assert_cut(&running, request, Code::ResourceExhausted).await;
}

#[tokio::test]
async fn a_type_url_that_is_too_long() {
    let running = limited(Limits::default()).await;
    let node = Some(node("odd", "shared"));
    let request = DeltaDiscoveryRequest { node, type_url: "x".repeat(10 << 20), ..Default::default() };
    assert_cut(&running, request, Code::InvalidArgument).await;
}

#[tokio::test]
async fn a_request_that_is_too_large() {
    let running = limited(Limits { request_bytes: 10_000, ..Limits::default() }).await;
    let request = DeltaDiscoveryRequest { type_url: "x".repeat(20_000), ..Default::default() };
    assert_cut(&running, request, Code::ResourceExhausted).await;
}

#[tokio::test]
async fn a_flood() {
    let running = limited(Limits { request_burst: 100, requests_per_second: 1, ..Limits::default() }).await;
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    for _ in 0..200 {
        stream.subscribe(Some(node("mad", "shared")), Kind::Route, &["x"]).await;
    }
    assert_eq!(stream.end().await.code(), Code::ResourceExhausted);
    assert_served(&running).await;
}

/// Knows every name and finds nothing: what a proxy asks that has certificates on demand and visitors who ask for anything.
struct Nobody;

impl xds::Resolver for Nobody {
    fn resolves(&self, kind: Kind) -> bool {
        kind == Kind::Secret
    }

    fn resolve(&self, _: Kind, _: &str, _: &dyn Fn(&str) -> bool) -> Option<xds::Name> {
        None
    }
}

/// More than any budget for requests, each asked for and let go, while the answers are taken and others are served.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_visitors_make_up_do_not_end_a_stream() {
    const NAMES: usize = 30_000;
    let config = Config { resolver: Some(std::sync::Arc::new(Nobody)), ..Config::default() };
    let most = config.limits.names;
    let running = Running::start(config, Security::Insecure).await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("visited", "shared")), Kind::Listener, &[]).await;
    let first = stream.next().await;
    stream.ack(&first).await;
    let requests = stream.sender();
    let asking = tokio::spawn(async move {
        for at in 0..NAMES {
            let request = DeltaDiscoveryRequest {
                type_url: Kind::Secret.type_url().to_owned(),
                resource_names_subscribe: vec![format!("n{at}.example.com")],
                ..Default::default()
            };
            requests.send(request).await.unwrap();
        }
    });
    let (mut answered, mut edited) = (0, false);
    while answered < NAMES || !edited {
        let response = stream.next().await;
        stream.ack(&response).await;
        if response.type_url == Kind::Listener.type_url() {
            edited = true;
            continue;
        }
        answered += response.removed_resources.len();
        if answered * 2 > NAMES && !edited {
            running.publish(vec![resource(Kind::Listener, "a", "2")], &[]);
        }
    }
    asking.await.unwrap();
    assert_eq!(answered, NAMES, "each name is answered once");
    let clients = running.server.acks(&Fleet::Shared).unwrap().clients();
    let held = clients[0].types.iter().find(|of| of.kind == "sds").unwrap().names;
    assert!(held < NAMES / 10 && held < most, "{held} names are held");
}

#[tokio::test]
async fn too_many_streams() {
    let running = Running::start(Config { streams: 2, ..Config::default() }, Security::Insecure).await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    let channel = running.channel().await;
    let first = Delta::open(channel.clone(), DELTA_ADS).await.unwrap();
    let _second = Delta::open(channel.clone(), DELTA_ADS).await.unwrap();
    let third = Delta::open(channel.clone(), DELTA_ADS).await;
    assert_eq!(third.err().unwrap().code(), Code::ResourceExhausted);
    drop(first);
    soon("room for a stream", async {
        while Delta::open(channel.clone(), DELTA_ADS).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_fetch_counts_as_a_stream() {
    let running = Running::start(Config { streams: 1, ..Config::default() }, Security::Insecure).await;
    running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
    let channel = running.channel().await;
    for _ in 0..2 {
        let answer = fetch(channel.clone(), FETCH_LISTENERS, DiscoveryRequest::default()).await.unwrap();
        assert_eq!(bodies(&answer), ["1"]);
    }
    let _stream = Delta::open(channel.clone(), DELTA_ADS).await.unwrap();
    let refused = fetch(channel, FETCH_LISTENERS, DiscoveryRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn a_fetch_that_waits_takes_room_as_a_first_request_does() {
    let running = Running::start(Config { waiting_bytes: 1500, ..Config::default() }, Security::Insecure).await;
    let channel = running.channel().await;
    let ask = |bytes: usize| {
        let request = DiscoveryRequest { resource_names: vec!["a".repeat(bytes)], ..Default::default() };
        fetch(channel.clone(), FETCH_LISTENERS, request)
    };
    assert_eq!(ask(2000).await.unwrap_err().code(), Code::Unavailable, "there is no room, whoever else waits");
    let answered = Cell::new(0);
    let one = async || {
        let answer = ask(1000).await;
        answered.set(answered.get() + 1);
        if answered.get() == 1 {
            // The other one waits for this.
            running.publish(vec![resource(Kind::Listener, "a", "1")], &[]);
        }
        answer.map_err(|status| status.code())
    };
    let answers = tokio::join!(one(), one());
    assert!(matches!(answers, (Ok(_), Err(Code::Unavailable)) | (Err(Code::Unavailable), Ok(_))), "{answers:?}");
    assert!(ask(2000).await.is_ok(), "nothing waits any more");
}

#[tokio::test]
async fn a_client_that_says_nothing() {
    let running = limited(Limits { client_timeout: Duration::from_millis(100), ..Limits::default() }).await;
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    assert_eq!(stream.end().await.code(), Code::DeadlineExceeded);
}

/// A stream of HTTP/2 by hand: what is sent of a request, and what is read, is up to the test.
async fn by_hand(running: &Running) -> (h2::client::ResponseFuture, h2::SendStream<Bytes>) {
    let tcp = TcpStream::connect(running.address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(tcp).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post(format!("http://sesame{DELTA_ADS}"))
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    client.send_request(request, false).unwrap()
}

/// A first request as it is sent.
fn first_request(id: &str) -> Bytes {
    frame(&DeltaDiscoveryRequest {
        node: Some(node(id, "shared")),
        type_url: Kind::Listener.type_url().to_owned(),
        ..Default::default()
    })
}

#[tokio::test]
async fn a_first_request_that_never_ends_is_not_waited_for() {
    let first_request_timeout = Duration::from_millis(1500);
    let limits = Limits { client_timeout: Duration::from_secs(3), first_request_timeout, ..Limits::default() };
    let running = limited(limits).await;
    // The server counts from when the call arrives.
    let begun = Instant::now();
    let (response, mut requests) = by_hand(&running).await;
    let mut body = soon("response headers", response).await.unwrap().into_body();
    let drip = async {
        for byte in first_request("dripping") {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if requests.send_data(Bytes::copy_from_slice(&[byte]), false).is_err() {
                break;
            }
        }
        std::future::pending().await
    };
    let ended = tokio::select! {
        () = drip => unreachable!("it goes on for ever"),
        ended = soon("the end of the stream", body.trailers()) => ended.unwrap().expect("a status"),
    };
    assert!(begun.elapsed() >= first_request_timeout, "{:?}", begun.elapsed());
    assert_eq!(ended["grpc-status"], "4", "deadline exceeded");
    let text = metrics(&running);
    assert!(text.contains("sesame_xds_streams_ended_total{reason=\"stalled\"} 1\n"), "{text}");
    assert_served(&running).await;
}

/// Speaks HTTP/2 by hand, so as not to read what it is sent.
async fn that_does_not_read(running: &Running) -> (h2::SendStream<Bytes>, h2::RecvStream) {
    let (response, mut requests) = by_hand(running).await;
    let subscribe = |node, name: &str| DeltaDiscoveryRequest {
        node,
        type_url: Kind::Route.type_url().to_owned(),
        resource_names_subscribe: vec![name.to_owned()],
        ..Default::default()
    };
    requests.send_data(frame(&subscribe(Some(node("stuck", "shared")), "big0")), false).unwrap();
    let body = soon("response headers", response).await.unwrap().into_body();
    let big = |at: usize| resource(Kind::Route, &format!("big{at}"), &"x".repeat(1 << 20));
    running.publish((0..8).map(big).collect(), &[]);
    // Each answer is asked for and taken without its predecessor having been read.
    for at in 1..8u64 {
        let mut ask = subscribe(None, &format!("big{at}"));
        ask.response_nonce = format!("{at:x}");
        requests.send_data(frame(&ask), false).unwrap();
    }
    (requests, body)
}

/// Waits until the stream of a client that does not read has ended; says why it did.
async fn stuck_left(events: &mut broadcast::Receiver<Event>) -> &'static str {
    soon("the stream to end", async {
        loop {
            if let Event::Left { client, reason } = events.recv().await.unwrap() {
                assert_eq!(&*client.node, "stuck");
                return reason;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let running = limited(Limits { client_timeout: Duration::from_millis(300), ..Limits::default() }).await;
    let mut events = running.server.events();
    let client = that_does_not_read(&running).await;
    assert_eq!(stuck_left(&mut events).await, "stalled");
    assert!(running.server.acks(&Fleet::Shared).unwrap().clients().is_empty());
    drop(client);
    assert_served(&running).await;
}

/// What it has not been sent yet may be for the clients of another owner.
#[tokio::test]
async fn a_client_that_does_not_read_must_authenticate_again_like_the_others() {
    let running = limited(Limits::default()).await;
    let mut events = running.server.events();
    let _client = that_does_not_read(&running).await;
    // The first response is being sent, the second waits, and there is room for no third.
    let responses = || {
        let text = metrics(&running);
        let row = text.lines().find_map(|line| line.strip_prefix("sesame_xds_responses_total{type=\"rds\"} "));
        row.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    soon("two responses", async {
        while responses() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    running.server.disconnect(&Fleet::Shared);
    assert_eq!(stuck_left(&mut events).await, "expired");
}

fn frame(request: &DeltaDiscoveryRequest) -> Bytes {
    use envoy_api::Message;
    let body = request.encode_to_vec();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[0][..], &length[..], &body[..]].concat().into()
}

/// What is too large is not lost, and nobody is told half of it.
#[tokio::test]
async fn a_type_that_is_too_large_is_kept_back_until_it_fits() {
    let config = Config { table_bytes: 2_000, ..Config::default() };
    let running = Running::start(config, Security::Insecure).await;
    let publish = |upserts: Vec<xds::Resource>| {
        running.server.publish(Batch { fleet: Fleet::Shared, changes: Changes { upserts, removes: vec![] } })
    };
    let large = |name: &str, bytes: usize| resource(Kind::Listener, name, &"x".repeat(bytes));
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("n", "shared")), Kind::Listener, &[]).await;

    // Too large from the start: clients wait, with nothing.
    let refused = publish(vec![large("a", 100), large("big", 3_000), resource(Kind::Cluster, "c", "1")]).unwrap_err();
    let PublishError::TooLarge { kind, bytes, limit } = refused;
    assert_eq!((kind, limit), (Kind::Listener, 2_000));
    assert!(bytes > 3_100, "{bytes}");
    assert!(running.server.acks(&Fleet::Shared).unwrap().snapshot().is_none());
    // The largest is withheld: all the rest is there, of that batch, too.
    publish(vec![xds::Resource::withheld(Kind::Listener, "big")]).unwrap();
    let first = stream.next().await;
    assert_eq!(names(&first), ["a"]);
    stream.ack(&first).await;

    // The sum counts, not only the one.
    publish(vec![large("b", 900), large("d", 900)]).unwrap_err();
    // It stays too large when what was never there goes.
    let removes = vec![(Kind::Cluster, "nobody's".into())];
    let batch = Batch { fleet: Fleet::Shared, changes: Changes { upserts: vec![], removes } };
    running.server.publish(batch).unwrap_err();
    let acks = running.server.acks(&Fleet::Shared).unwrap();
    assert!(acks.snapshot().unwrap().get(Kind::Cluster, "c").is_some());
    assert!(acks.snapshot().unwrap().get(Kind::Listener, "b").is_none(), "all of a batch or nothing");
    publish(vec![large("d", 100)]).unwrap();
    let second = stream.next().await;
    assert_eq!(names(&second), ["b", "d"]);
    stream.ack(&second).await;

    // Who comes later has all of it.
    let mut other = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    other.subscribe(Some(node("other", "shared")), Kind::Listener, &[]).await;
    assert_eq!(names(&other.next().await), ["a", "b", "d"]);
    assert_eq!(
        running.server.room(&Fleet::Shared, Kind::Cluster),
        2_000 - acks.snapshot().unwrap().table(Kind::Cluster).bytes()
    );
}

//! Where plain TCP and UDP listeners lead.

use super::*;

/// The oldest object has a TCP listener, and the others are told.
#[test]
fn one_object_has_a_stream() {
    let mut pipeline = pipeline();
    Claims::new("gateway", FleetId::Shared).listener("tcp", 9000, Tcp, "*").put(&mut pipeline);
    Claims::new("young", FleetId::Shared).created(2).stream("tcp", &[("other", 1)]).put(&mut pipeline);
    Claims::new("old", FleetId::Shared).created(1).stream("tcp", &[("web", 1)]).put(&mut pipeline);
    let output = pipeline.settle();
    assert_eq!(verdicts(&output, "old"), [""; 0]);
    assert_eq!(verdicts(&output, "young"), ["SES7008 listener tcp: ConfigMap default/old spec.backends is served"]);
}

/// What a UDP listener cannot enforce is not served, and the shares of one backend are added.
#[test]
fn a_udp_listener_fails_closed_and_adds_the_shares_of_a_backend() {
    let mut pipeline = pipeline();
    let claims = |clients| {
        let claims = Claims::new("gateway", FleetId::Shared).listener("udp", 9000, Udp, "*");
        claims.stream_for("udp", &[("web", 3), ("other", 1), ("web", 4)], clients)
    };
    let streams = |pipeline: &Pipeline| {
        let id = ListenerId::new(FleetId::Shared, "udp");
        pipeline.engine().get::<pipeline::ports::Streams>(&id).unwrap().target.clusters.clone()
    };
    let peers = (model::route::AddressOf::Peer, model::route::Cidr::parse("10.0.0.0/8").unwrap());
    claims(Some(model::route::IpFilter { allow: true, ranges: vec![peers] })).put(&mut pipeline);
    let output = pipeline.settle();
    assert_eq!(streams(&pipeline), []);
    assert_eq!(
        verdicts(&output, "gateway"),
        ["SES7011 listener udp: UDP clients cannot be filtered by address, so all datagrams are dropped"]
    );
    claims(None).put(&mut pipeline);
    let output = pipeline.settle();
    assert_eq!(streams(&pipeline), [(cluster("web"), 7), (cluster("other"), 1)]);
    assert_eq!(verdicts(&output, "gateway"), [""; 0]);
}

/// Endpoints of a UDP listener are as urgent as any: they do not wait for the end of a long batch. Where the listener leads is
/// told once, under one name, whatever the backends are.
#[test]
fn endpoints_of_a_udp_listener_come_out_in_the_middle_of_a_batch() {
    const ENDPOINTS: &str = "eds udp:datagrams";
    let mut pipeline = pipeline();
    let claims = Claims::new("udp", FleetId::Shared).listener("datagrams", 5300, Udp, "*");
    claims.clone().stream("datagrams", &[("web", 1)]).put(&mut pipeline);
    let (set, _) = reported(&mut pipeline.settle(), &FleetId::Shared);
    assert!(set.contains(ENDPOINTS), "{set:?}");
    let moved = service("web", Ipv4Addr::new(198, 18, 0, 1));
    pipeline.put(&moved.key(), Some(moved));
    for number in 0..5_000 {
        let object = ingress(&format!("i{number}"), &format!("h{number}.example.com"), "/", "web");
        pipeline.put(&object.key(), Some(object));
    }
    let mut output = Output::default();
    assert_eq!(pipeline.step(&mut output), engine::Progress::More, "the batch is longer than a slice");
    let (set, gone) = reported(&mut output, &FleetId::Shared);
    assert!(set.contains(ENDPOINTS) && gone.is_empty(), "{gone:?}");
    pipeline.settle();
    // Another backend is another row, but no other resource.
    claims.clone().stream("datagrams", &[("other", 1)]).put(&mut pipeline);
    let (set, gone) = reported(&mut pipeline.settle(), &FleetId::Shared);
    assert!(set.contains(ENDPOINTS) && !gone.contains(ENDPOINTS), "{set:?} {gone:?}");
    claims.remove(&mut pipeline);
    let (set, gone) = reported(&mut pipeline.settle(), &FleetId::Shared);
    assert!(!set.contains(ENDPOINTS) && gone.contains(ENDPOINTS), "{set:?} {gone:?}");
}

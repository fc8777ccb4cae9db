//! A client without a certificate authenticates with a token, on every service, stream and fetch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tonic::Code;
use xds::{Authenticating, Authenticator, Config, Fleet, Kind, Security, Tls, TokenError, VerifiedToken};

use crate::certificates::Authority;
use crate::client::{DELTA_ADS, Delta, Running, SERVICES, TOKEN, names, node};
use crate::fleets::{ask_everywhere, everything};

/// Knows some tokens, and until when they are valid.
#[derive(Debug, Default)]
struct Known(Mutex<BTreeMap<&'static str, (Fleet, SystemTime)>>);

impl Authenticator for Known {
    fn authenticate<'a>(&'a self, token: &'a str) -> Authenticating<'a> {
        let verified = match (token, self.0.lock().get(token).cloned()) {
            ("unknown-yet", _) => Err(TokenError::Unavailable("ask later".to_owned())),
            (_, Some((fleet, expires))) => Ok(VerifiedToken { fleet, expires }),
            _ => Err(TokenError::Refused("nobody knows it".to_owned())),
        };
        Box::pin(std::future::ready(verified))
    }
}

async fn server(authority: &Authority, folder: &tempfile::TempDir) -> (Running, Arc<Known>) {
    let known = Arc::new(Known::default());
    let later = SystemTime::now() + Duration::from_secs(3600);
    known.0.lock().insert("of-shop", (Fleet::named("shop", "edge"), later));
    known.0.lock().insert("of-bank", (Fleet::named("bank", "edge"), later));
    let tls = Tls::accepting_tokens(authority.write(folder.path())).unwrap();
    let config = Config { authenticator: Some(known.clone()), ..Config::default() };
    let running = Running::start(config, Security::Tls(Arc::new(tls))).await;
    running.publish(everything("shared"), &[]);
    running.publish_to(&Fleet::named("shop", "edge"), everything("shop"), &[]);
    running.publish_to(&Fleet::named("bank", "edge"), everything("bank"), &[]);
    (running, known)
}

async fn with<F: Future>(token: &str, future: F) -> F::Output {
    TOKEN.scope(token.to_owned(), future).await
}

#[tokio::test]
async fn a_token_shows_its_own_fleet_and_no_other_whichever_way_it_is_asked() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (running, _) = server(&authority, &folder).await;
    let channel = running.secure_channel(authority.trust()).await.unwrap();
    for (token, own) in [("of-shop", "shop"), ("of-bank", "bank")] {
        let (refused, seen) = with(token, ask_everywhere(&channel, &node("a", &format!("{own}/edge")), "shared")).await;
        assert_eq!(refused, []);
        assert_eq!(seen.iter().filter(|name| *name == own).count(), 5 * SERVICES.len(), "{seen:?}");
        assert!(!seen.iter().any(|text| text != own && !text.starts_with("\n\u{6}shared")), "{seen:?}");
    }
    for said in ["bank/edge", "shared"] {
        let (refused, seen) = with("of-shop", ask_everywhere(&channel, &node("a", said), "bank")).await;
        assert_eq!(seen, Vec::<String>::new(), "{said}");
        assert_eq!(refused, vec![Code::PermissionDenied; 5 * SERVICES.len()], "{said}");
    }
}

#[tokio::test]
async fn without_a_token_that_proves_something_there_is_nothing() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (running, _) = server(&authority, &folder).await;
    let channel = running.secure_channel(authority.trust()).await.unwrap();
    let node = node("a", "shop/edge");
    for (token, code) in [("made-up", Code::Unauthenticated), ("unknown-yet", Code::Unavailable)] {
        let (refused, seen) = with(token, ask_everywhere(&channel, &node, "shop")).await;
        assert_eq!((refused, seen), (vec![code; 5 * SERVICES.len()], Vec::new()), "{token}");
    }
    let (refused, seen) = ask_everywhere(&channel, &node, "shop").await;
    assert_eq!((refused, seen), (vec![Code::Unauthenticated; 5 * SERVICES.len()], Vec::new()));
    // The stream of replicas is for replicas.
    let _peers = running.server.peers();
    let replicas = with("of-shop", Delta::open(channel, "/sesame.replicas.v1.Replicas/Stream")).await;
    assert_eq!(replicas.err().map(|status| status.code()), Some(Code::PermissionDenied));
}

/// The token of a fleet adds nothing to a certificate: whoever has one is what it says.
#[tokio::test]
async fn a_certificate_stands_above_a_token() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (running, _) = server(&authority, &folder).await;
    let channel = running.secure_channel(authority.client(&["spiffe://sesame/fleet/bank/edge"])).await.unwrap();
    let (refused, seen) = with("of-shop", ask_everywhere(&channel, &node("a", "shop/edge"), "shop")).await;
    assert_eq!((refused, seen), (vec![Code::PermissionDenied; 5 * SERVICES.len()], Vec::new()));
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_when_the_fleet_is_somebody_elses() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (running, known) = server(&authority, &folder).await;
    let soon = SystemTime::now() + Duration::from_secs(2);
    known.0.lock().insert("short", (Fleet::named("shop", "edge"), soon));
    let channel = running.secure_channel(authority.trust()).await.unwrap();
    let open = async |token: &str| {
        let mut stream = with(token, Delta::open(channel.clone(), DELTA_ADS)).await.unwrap();
        stream.subscribe(Some(node("a", "shop/edge")), Kind::Listener, &[]).await;
        assert_eq!(names(&stream.next().await), ["shop"]);
        stream
    };
    let (mut short, mut long, mut other) = (open("short").await, open("of-shop").await, open("of-shop").await);
    assert_eq!(short.end().await.code(), Code::Unauthenticated);
    running.server.disconnect(&Fleet::named("shop", "edge"));
    for stream in [&mut long, &mut other] {
        assert_eq!(stream.end().await.code(), Code::Unauthenticated);
    }
    open("of-shop").await;
}

/// Whoever does not authenticate has a place among the handshakes only, and loses it.
#[tokio::test]
async fn a_connection_that_proves_nothing_takes_no_place_of_a_client() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let known = Arc::new(Known::default());
    let later = SystemTime::now() + Duration::from_secs(3600);
    known.0.lock().insert("of-shop", (Fleet::named("shop", "edge"), later));
    let tls = Tls::accepting_tokens(authority.write(folder.path())).unwrap();
    let config = Config { authenticator: Some(known), connections: 1, handshakes_per_address: 4, ..Config::default() };
    let running = Running::start(config, Security::Tls(Arc::new(tls))).await;
    running.publish_to(&Fleet::named("shop", "edge"), everything("shop"), &[]);
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(running.secure_channel(authority.trust()).await.unwrap());
    }
    let channel = running.secure_channel(authority.trust()).await.unwrap();
    let mut stream = with("of-shop", Delta::open(channel, DELTA_ADS)).await.unwrap();
    stream.subscribe(Some(node("a", "shop/edge")), Kind::Listener, &[]).await;
    assert_eq!(names(&stream.next().await), ["shop"]);
}

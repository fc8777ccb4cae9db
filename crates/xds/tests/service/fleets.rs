//! A client sees its own fleet, whichever way it asks.

use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_api::envoy::service::discovery::v3::DiscoveryRequest;
use tonic::Code;
use tonic::transport::Channel;
use xds::{Config, Fleet, Kind, RequiredEnvoy, Resource, Security};

use crate::certificates::{Authority, secure};
use crate::client::{DELTA_ADS, Delta, Running, SERVICES, SOTW_ADS, Sotw, bodies, fetch, names, node, resource};

const SHOP: &str = "spiffe://sesame/fleet/shop/edge";

pub fn everything(text: &str) -> Vec<Resource> {
    Kind::ALL.into_iter().map(|kind| resource(kind, text, text)).collect()
}

async fn server(authority: &Authority, folder: &tempfile::TempDir) -> Running {
    let running = secure(authority, folder.path()).await;
    running.publish(everything("shared"), &[]);
    running.publish_to(&Fleet::named("shop", "edge"), everything("shop"), &[]);
    running.publish_to(&Fleet::named("bank", "edge"), everything("bank"), &[]);
    running
}

/// Asks in every way there is for all, and for another fleet's resource by name; gives back the codes of the rejections
/// and what was seen.
pub async fn ask_everywhere(channel: &Channel, node: &Node, name: &str) -> (Vec<Code>, Vec<String>) {
    let (mut refused, mut seen) = (Vec::new(), Vec::new());
    for (kind, service, noun) in SERVICES {
        let path = |verb: &str| format!("/envoy.service.{service}/{verb}{noun}");
        for path in [path("Delta"), DELTA_ADS.to_owned()] {
            let opened = Delta::open(channel.clone(), &path).await;
            let Ok(mut stream) = opened.map_err(|status| refused.push(status.code())) else { continue };
            stream.subscribe(Some(node.clone()), kind, &["*", name]).await;
            match stream.try_next().await {
                Ok(response) => seen.extend(names(&response).iter().map(ToString::to_string)),
                Err(status) => refused.push(status.code()),
            }
        }
        for path in [path("Stream"), SOTW_ADS.to_owned()] {
            let opened = Sotw::open(channel.clone(), &path).await;
            let Ok(mut stream) = opened.map_err(|status| refused.push(status.code())) else { continue };
            stream.subscribe(Some(node.clone()), kind, &["*", name]).await;
            match stream.try_next().await {
                Ok(response) => seen.extend(bodies(&response)),
                Err(status) => refused.push(status.code()),
            }
        }
        let request = DiscoveryRequest { node: Some(node.clone()), ..Default::default() };
        match fetch(channel.clone(), &path("Fetch"), request).await {
            Ok(response) => seen.extend(bodies(&response)),
            Err(status) => refused.push(status.code()),
        }
    }
    (refused, seen)
}

#[tokio::test]
async fn a_client_sees_its_own_fleet_only() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let running = server(&authority, &folder).await;
    for (certificate, said, own) in
        [(SHOP, "shop/edge", "shop"), ("envoy", "shared", "shared"), (SHOP, "", "shop"), ("envoy", "", "shared")]
    {
        let channel = running.secure_channel(authority.client(&[certificate])).await.unwrap();
        let node = if said.is_empty() { Node { id: "a".to_owned(), ..Node::default() } } else { node("a", said) };
        let (refused, seen) = ask_everywhere(&channel, &node, "bank").await;
        assert_eq!(refused, []);
        assert_eq!(
            seen.iter().filter(|name| *name == own).count(),
            5 * SERVICES.len(),
            "{certificate} {said}: {seen:?}"
        );
        assert!(!seen.iter().any(|text| text != own && !text.starts_with("\n\u{4}bank")), "{seen:?}");
    }
}

#[tokio::test]
async fn a_node_that_says_another_fleet_is_refused_everywhere() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let running = server(&authority, &folder).await;
    for (certificate, said) in [(SHOP, "bank/edge"), (SHOP, "shared"), ("envoy", "shop/edge"), ("envoy", "a/b/c")] {
        let channel = running.secure_channel(authority.client(&[certificate])).await.unwrap();
        let (refused, seen) = ask_everywhere(&channel, &node("a", said), "bank").await;
        assert_eq!(seen, Vec::<String>::new(), "{certificate} {said}");
        assert_eq!(refused, vec![Code::PermissionDenied; 5 * SERVICES.len()], "{certificate} {said}");
    }
}

#[tokio::test]
async fn a_certificate_must_prove_one_fleet() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let running = server(&authority, &folder).await;
    let refused_names: [&[&str]; 5] = [
        &["somebody"],
        &["spiffe://sesame/fleet/shop"],
        &["spiffe://sesame/fleet/shared", "envoy"],
        &[SHOP, "spiffe://sesame/fleet/bank/edge"],
        &["spiffe://other/fleet/shop/edge"],
    ];
    for names in refused_names {
        let refused = match running.secure_channel(authority.client(names)).await {
            Err(_) => true,
            Ok(channel) => Delta::open(channel, DELTA_ADS).await.is_err(),
        };
        assert!(refused, "{names:?}");
    }
    let nobody = match running.secure_channel(authority.trust()).await {
        Err(_) => true,
        Ok(channel) => Delta::open(channel, DELTA_ADS).await.is_err(),
    };
    assert!(nobody, "without a certificate");
}

#[tokio::test]
async fn streams_end_with_their_fleet() {
    let running = Running::insecure().await;
    let fleet = Fleet::named("shop", "edge");
    running.publish_to(&fleet, everything("shop"), &[]);
    let mut stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    stream.subscribe(Some(node("a", "shop/edge")), Kind::Listener, &[]).await;
    stream.next().await;
    running.server.remove_fleet(&fleet);
    assert_eq!(stream.end().await.code(), Code::Unavailable);
    let mut waiting = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
    waiting.subscribe(Some(node("a", "shop/edge")), Kind::Listener, &[]).await;
    assert!(waiting.is_silent().await, "a fleet that is not there yet");
    running.publish_to(&fleet, everything("new"), &[]);
    assert_eq!(names(&waiting.next().await), ["new"]);
}

/// What is published then may be for the clients of another owner.
#[tokio::test]
async fn clients_that_must_authenticate_again_are_sent_nothing_that_is_published_later() {
    let running = Running::insecure().await;
    let fleet = Fleet::named("shop", "edge");
    let open = async || {
        let stream = Delta::open(running.channel().await, DELTA_ADS).await.unwrap();
        stream.subscribe(Some(node("a", "shop/edge")), Kind::Listener, &[]).await;
        stream
    };
    let publish_to_others = |text: &str| {
        running.server.disconnect(&fleet);
        running.publish_to(&fleet, everything(text), &[]);
    };
    let mut waiting = open().await;
    assert!(waiting.is_silent().await, "nothing is published yet");
    publish_to_others("new");
    assert_eq!(waiting.try_next().await.unwrap_err().code(), Code::Unauthenticated);
    // A stream learns of both at the same time.
    for at in 0..20 {
        let mut stream = open().await;
        stream.next().await;
        publish_to_others(&at.to_string());
        assert_eq!(stream.try_next().await.unwrap_err().code(), Code::Unauthenticated);
    }
}

#[tokio::test]
async fn an_envoy_that_is_too_old_is_told_why() {
    let required_envoy = Some(RequiredEnvoy { version: (1, 38), why: "upgrade it" });
    let running = Running::start(Config { required_envoy, ..Config::default() }, Security::Insecure).await;
    running.publish(everything("shared"), &[]);
    let channel = running.channel().await;
    for (version, is_served) in [("1.37.9", false), ("0.99.0", false), ("1.38.0", true), ("2.0.0", true), ("", true)] {
        let version_type = Some(UserAgentVersionType::UserAgentVersion(version.to_owned()));
        let node = Node { user_agent_version_type: version_type, ..node("a", "shared") };
        let mut stream = Delta::open(channel.clone(), DELTA_ADS).await.unwrap();
        stream.subscribe(Some(node), Kind::Listener, &["*"]).await;
        match stream.try_next().await {
            Ok(_) => assert!(is_served, "{version}"),
            Err(status) => {
                assert!(!is_served, "{version}: {status}");
                assert_eq!(status.code(), Code::FailedPrecondition);
                let text = format!("node a is Envoy {version}, which is older than 1.38: upgrade it");
                assert_eq!(status.message(), text);
            }
        }
    }
}

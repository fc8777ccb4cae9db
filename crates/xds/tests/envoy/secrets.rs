//! Secrets that Envoy refuses: it goes on with what it had, and lives when a second listener comes to use them.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_api::envoy::config::core::v3::{TransportSocket, TypedExtensionConfig, transport_socket};
use envoy_api::envoy::config::listener::v3::Listener;
use envoy_api::envoy::extensions::transport_sockets::tls::cert_mappers::sni::v3::Sni;
use envoy_api::envoy::extensions::transport_sockets::tls::cert_selectors::on_demand_secret::v3::Config as OnDemand;
use envoy_api::envoy::extensions::transport_sockets::tls::v3 as tls;
use envoy_api::{Message, any};
use model::tls::KeyPair;
use testbed::certs::{Ca, Leaf};
use testbed::{Client, Net};
use tokio::sync::broadcast::Receiver;
use xds::{Event, Kind, Resource};

use crate::bed::{Replica, TIMEOUT, address, launch};
use crate::world::{listener, on_this_stream, routes};

/// A listener that asks for certificates by the server name of each client.
pub fn on_demand(at: SocketAddr) -> Resource {
    let plain = listener(at);
    let mut message = Listener::decode(&*plain.body).unwrap();
    let mapper = TypedExtensionConfig {
        name: "sni".to_owned(),
        typed_config: Some(any(&Sni { default_value: "_".to_owned() })),
    };
    let selector =
        OnDemand { config_source: Some(on_this_stream()), certificate_mapper: Some(mapper), ..Default::default() };
    let context = tls::DownstreamTlsContext {
        common_tls_context: Some(tls::CommonTlsContext {
            custom_tls_certificate_selector: Some(TypedExtensionConfig {
                name: "envoy.tls.certificate_selectors.on_demand_secret".to_owned(),
                typed_config: Some(any(&selector)),
            }),
            ..Default::default()
        }),
        disable_stateful_session_resumption: true,
        session_ticket_keys_type: Some(
            tls::downstream_tls_context::SessionTicketKeysType::DisableStatelessSessionResumption(true),
        ),
        ..Default::default()
    };
    message.filter_chains[0].transport_socket = Some(TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(transport_socket::ConfigType::TypedConfig(any(&context))),
    });
    Resource { body: message.encode_to_vec().into(), ..plain }
}

/// A certificate with a key, its own or another one's.
pub fn secret(name: &str, leaf: &Leaf, key: &Leaf) -> Resource {
    let pair = KeyPair { chain: leaf.chain_pem().into(), key: key.key_pem().into() };
    Resource::new(Kind::Secret, name, envoy::secret::certificate(name, &pair).encode_to_vec())
}

/// The serial number of the certificate that is shown for a name; `None` if there is none.
pub async fn shown(at: SocketAddr, name: &str, ca: &Ca) -> Option<String> {
    let client = Client::new(at).host(name).https().sni(name).trust(ca).timeout(Duration::from_secs(10));
    let connection = client.connect().await.ok()?;
    Some(connection.tls()?.peer[0].serial.clone())
}

pub async fn refused(events: &mut Receiver<Event>, name: &str) {
    let rejection = async {
        loop {
            if let Event::Rejected(rejection) = events.recv().await.unwrap() {
                return rejection;
            }
        }
    };
    let rejection = testbed::within("the rejection", TIMEOUT, rejection).await.unwrap();
    assert_eq!((rejection.kind, &*rejection.name), (Kind::Secret, name), "{}", rejection.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn envoy_outlives_a_secret_that_it_refused_and_goes_on_with_the_last_good_one() {
    let ca = Ca::new("refused");
    let [good, bad, turns] = ["good", "bad", "turns"].map(|name| format!("{name}.example.com"));
    let (first, second) = (Net::here().unwrap().socket(443), Net::here().unwrap().socket(443));
    let replica = Replica::start(address(), None);
    let [of_good, of_bad, of_turns] = [&good, &bad, &turns].map(|name| ca.leaf(name).make());
    replica.publish(vec![
        routes([]),
        on_demand(first),
        on_demand(second),
        secret(&good, &of_good, &of_good),
        secret(&bad, &of_bad, &of_good),
        secret(&turns, &of_turns, &of_turns),
    ]);
    let envoy = launch(replica.address, None, None).await;
    envoy.ready().await.unwrap();
    let mut events = replica.server.events();
    assert!(shown(first, &good, &ca).await.is_some());

    // Bad from the start: refused on one listener, then asked for on another, and again on the first.
    assert_eq!(shown(first, &bad, &ca).await, None);
    refused(&mut events, &bad).await;
    replica.in_step().await;
    for at in [second, first, second] {
        assert_eq!(shown(at, &bad, &ca).await, None);
    }
    envoy.ready().await.unwrap();

    // Good, then bad: the last good one is shown, also where nobody had asked for it before.
    let before = shown(first, &turns, &ca).await;
    assert!(before.is_some());
    let renewed = ca.leaf(&turns).make();
    replica.publish(vec![secret(&turns, &renewed, &of_good)]);
    refused(&mut events, &turns).await;
    replica.in_step().await;
    for at in [first, second] {
        assert_eq!(shown(at, &turns, &ca).await, before);
    }

    // Mended, both are shown.
    replica.publish(vec![secret(&turns, &renewed, &renewed), secret(&bad, &of_bad, &of_bad)]);
    replica.taken(Kind::Secret, &turns).await;
    for (at, name) in [(first, &turns), (second, &turns), (first, &bad), (second, &bad), (second, &good)] {
        let seen = shown(at, name, &ca).await;
        assert!(seen.is_some() && seen != before, "{name} at {at}: {seen:?}");
    }
    envoy.ready().await.unwrap();
}

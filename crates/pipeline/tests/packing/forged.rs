//! Headers of ours that a client writes: nothing of them is left, also where we have nothing to write in their place.
//!
//! A connection without a server name leads to no chain that has a use for one, so it is made here: a listener in the clear
//! with the connection manager of such a chain.

use super::requests::TURN;
use super::world::{World, ingress, service, slots_of_chain};
use envoy::listener::{self, connection::connection_manager, jwt::HttpChainId};
use envoy_api::{
    Message, any,
    envoy::{
        config::{
            listener::v3::{Filter, filter::ConfigType},
            route::v3::{
                Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost, route::Action,
                route_action::ClusterSpecifier, route_match::PathSpecifier,
            },
        },
        extensions::filters::network::http_connection_manager::v3::http_connection_manager::RouteSpecifier,
    },
};
use model::{
    CertificateRef, ChainId, FleetId, ListenerId, ObjectRef, Port, PortId, PortProtocol,
    listener::{ConnectionSettings, HttpSettings},
    tls::Termination,
};
use pipeline::settings::Packing;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use testbed::{Backend, Client};

const PORT: u16 = 8090;

/// Everything goes to one cluster, as it is.
fn routes() -> RouteConfiguration {
    let cluster = ClusterSpecifier::Cluster("default/web/80".to_owned());
    let route = Route {
        r#match: Some(RouteMatch { path_specifier: Some(PathSpecifier::Prefix("/".to_owned())), ..Default::default() }),
        action: Some(Action::Route(RouteAction { cluster_specifier: Some(cluster), ..Default::default() })),
        ..Default::default()
    };
    let catch_all = VirtualHost {
        name: "catch_all".to_owned(),
        domains: vec!["*".to_owned()],
        routes: vec![route],
        ..Default::default()
    };
    RouteConfiguration { name: "open".to_owned(), virtual_hosts: vec![catch_all], ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_name_the_one_that_a_client_wrote_is_not_left() {
    let _turn = TURN.lock().await;
    let backend = Backend::start("web").await.unwrap();
    let objects = [service("web", backend.ip()), ingress("web", "a.example.com", "/", "web")];
    let mut world = World::start(Packing::Plain, objects).await;
    let port = Port {
        id: PortId::new(FleetId::Shared, "open"),
        address: Ipv4Addr::LOCALHOST.into(),
        port: PORT,
        protocol: PortProtocol::Http,
        connections: ConnectionSettings::default(),
        http: HttpSettings::default(),
        tracer: None,
    };
    let certificate = CertificateRef::Secret(ObjectRef::new(kinds::kind::SECRET, "default", "any"));
    let termination = Termination::new(certificate, Default::default());
    let termination = Arc::new(termination.on_demand());
    let chain = ChainId { listener: ListenerId::new(FleetId::Shared, "open"), termination, is_fallback: false };
    let mut manager = connection_manager(&port, Some(&chain), Packing::Plain);
    manager.route_specifier = Some(RouteSpecifier::RouteConfig(routes()));
    let mut message = listener::plain(&port, Packing::Plain);
    message.filter_chains[0].filters = vec![Filter {
        name: "envoy.filters.network.http_connection_manager".to_owned(),
        config_type: Some(ConfigType::TypedConfig(any(&manager))),
    }];
    let resource = xds::Resource::new(xds::Kind::Listener, "open", message.encode_to_vec());
    let slots = slots_of_chain(&port.id, &HttpChainId::Tls(chain));
    let upserts = slots.into_iter().chain([resource]).collect();
    let changes = xds::Changes { upserts, removes: Vec::new() };
    world.proxy.publish(changes).await.unwrap();
    let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))).host("a.example.com");
    let forged = client.header("x-sesame-server-name", "b.example.com").header("x-sesame-host", "ingress_http|b");
    let forged = forged.header("x-sesame-chain", "ingress_https/default/any/tls1.2-1.3");
    for client in [forged.clone().http1(), forged.http2()] {
        let seen = client.get("/").await.unwrap().echo();
        // The chain of this listener has no name.
        assert_eq!(seen.header("x-sesame-server-name").unwrap_or_default(), "|");
        assert_eq!(seen.header("x-sesame-chain").unwrap_or_default(), "");
        assert_eq!(seen.header("x-sesame-host"), None);
    }
}

//! A client of HTTP/3: an Envoy that takes requests over TCP and makes them again over QUIC.
//!
//! In: the address of a server, and the server names to ask for. Out: an [`Http3`] with a [`Client`] for each name. All requests of one name
//! go over one connection, as long as that is open; where none can be made, or the server ends it, the answer is 503.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::certs::{Ca, Leaf};
use crate::client::Client;
use crate::envoy::{Config, Envoy, Error};
use crate::net::Net;

/// A running client.
#[derive(Debug)]
pub struct Http3 {
    envoy: Envoy,
    names: Vec<(String, SocketAddr)>,
}

impl Http3 {
    /// Starts one that trusts a CA and asks for these names, with this certificate of its own, if any.
    pub async fn start(server: SocketAddr, ca: &Ca, names: &[&str], own: Option<&Leaf>) -> Result<Http3, Error> {
        let net = Net::here()?;
        let names: Vec<_> = names.iter().map(|name| ((*name).to_owned(), net.socket(80))).collect();
        let bootstrap = json!({
            "static_resources": {
                "listeners": names.iter().map(|(name, at)| listener(name, *at)).collect::<Vec<_>>(),
                "clusters": names.iter().map(|(name, _)| cluster(name, server, ca, own)).collect::<Vec<_>>(),
            },
        });
        let envoy = Config::new().name("http3-client").log_level("warning").start(bootstrap).await?;
        Ok(Http3 { envoy, names })
    }

    /// The client whose connections ask for a name, and whose requests are for the host of that name unless they say otherwise.
    ///
    /// # Panics
    ///
    /// If it is none of those that it was started with.
    pub fn client(&self, name: &str) -> Client {
        let found = self.names.iter().find(|(known, _)| known == name);
        let (_, at) = found.unwrap_or_else(|| panic!("{name} is none of the server names"));
        Client::new(*at).host(name)
    }

    /// How many connections it has tried to make for a name, and how many of those have failed or ended.
    pub async fn connections(&self, name: &str) -> Result<(u64, u64), Error> {
        let stat = async |word: &str| {
            let name = format!("cluster.{}.{word}", label(name));
            Ok::<u64, Error>(self.envoy.stat(&name).await?.unwrap_or_default())
        };
        Ok((stat("upstream_cx_http3_total").await?, stat("upstream_cx_destroy").await?))
    }
}

/// A name in those of statistics.
fn label(name: &str) -> String {
    name.replace('.', "_")
}

fn typed(name: &str, url: &str, mut config: Value) -> Value {
    config["@type"] = format!("type.googleapis.com/envoy.{url}").into();
    json!({ "name": name, "typed_config": config })
}

fn listener(name: &str, at: SocketAddr) -> Value {
    let router = typed("router", "extensions.filters.http.router.v3.Router", json!({}));
    let route = json!({ "match": { "prefix": "/" }, "route": { "cluster": label(name) } });
    let manager = json!({
        "stat_prefix": label(name),
        "route_config": { "virtual_hosts": [{ "name": "all", "domains": ["*"], "routes": [route] }] },
        "http_filters": [router],
    });
    let manager = typed(
        "http_connection_manager",
        "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        manager,
    );
    json!({
        "name": label(name),
        "address": { "socket_address": { "address": at.ip().to_string(), "port_value": at.port() } },
        "filter_chains": [{ "filters": [manager] }],
    })
}

fn cluster(name: &str, server: SocketAddr, ca: &Ca, own: Option<&Leaf>) -> Value {
    let text = |text: &str| json!({ "inline_string": text });
    let own: Vec<Value> = own
        .map(|leaf| json!({ "certificate_chain": text(leaf.chain_pem()), "private_key": text(leaf.key_pem()) }))
        .into_iter()
        .collect();
    let tls = json!({
        "sni": name,
        "common_tls_context": { "validation_context": { "trusted_ca": text(ca.pem()) }, "tls_certificates": own },
    });
    let socket = typed(
        "envoy.transport_sockets.quic",
        "extensions.transport_sockets.quic.v3.QuicUpstreamTransport",
        json!({ "upstream_tls_context": tls }),
    );
    let options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    let http3 = json!({
        "@type": format!("type.googleapis.com/{options}"),
        "explicit_http_config": { "http3_protocol_options": {} },
    });
    let address = json!({ "address": server.ip().to_string(), "port_value": server.port() });
    let endpoint = json!({ "endpoint": { "address": { "socket_address": address } } });
    json!({
        "name": label(name),
        "connect_timeout": "5s",
        "load_assignment": { "cluster_name": label(name), "endpoints": [{ "lb_endpoints": [endpoint] }] },
        "typed_extension_protocol_options": { options: http3 },
        "transport_socket": socket,
    })
}

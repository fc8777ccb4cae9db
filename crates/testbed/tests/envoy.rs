//! Envoys of the bed: static answers, what the admin interface tells, several at once, drained and killed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::{Envoy, Net, http};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(20);

/// A bootstrap whose one listener answers everything with `text`.
fn says(text: &str, at: SocketAddr) -> Value {
    let hcm = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "front",
        "http_filters": [{
            "name": "envoy.filters.http.router",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        }],
        "route_config": { "virtual_hosts": [{
            "name": "all",
            "domains": ["*"],
            "routes": [{
                "match": { "prefix": "/" },
                "direct_response": { "status": 200, "body": { "inline_string": text } },
            }],
        }]},
    });
    json!({ "static_resources": { "listeners": [{
        "name": "front",
        "address": { "socket_address": { "address": at.ip(), "port_value": at.port() } },
        "filter_chains": [{ "filters": [{ "name": "hcm", "typed_config": hcm }] }],
    }]}})
}

async fn get(at: SocketAddr) -> Result<http::Answer, http::Error> {
    http::ask(TcpStream::connect(at).await?, ::http::Method::GET, "example.com", "/").await
}

#[tokio::test]
async fn an_envoy_answers_and_tells_about_itself() {
    let at = Net::here().unwrap().socket(80);
    let began = Instant::now();
    let envoy = Envoy::start(says("hello", at)).await.unwrap();
    println!("Envoy ready after {:?}", began.elapsed());

    let answer = get(at).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, "hello"));

    assert_eq!(envoy.server_info().await.unwrap()["state"], "LIVE");
    assert_eq!(envoy.resources("static_listeners").await.unwrap()[0]["listener"]["name"], "front");
    assert!(envoy.config_dump().await.unwrap()["configs"].as_array().unwrap().len() > 2);
    let bound = envoy.listeners().await.unwrap();
    assert_eq!(bound["listener_statuses"][0]["local_address"]["socket_address"]["port_value"], 80);
    assert!(envoy.clusters().await.unwrap().is_object());
    assert_eq!(envoy.expect_stat("http.front.downstream_rq_2xx", LIMIT, |n| n > 0).await.unwrap(), 1);
    assert_eq!(envoy.stat("no.such.stat").await.unwrap(), None);
}

#[tokio::test]
async fn two_envoys_at_once_keep_out_of_each_others_way() {
    let net = Net::here().unwrap();
    let (one, two) = (net.socket(80), net.socket(80));
    let config = Envoy::config();
    let (first, second) = tokio::join!(config.start(says("one", one)), config.start(says("two", two)));
    let (first, _second) = (first.unwrap(), second.unwrap());
    assert_eq!(get(one).await.unwrap().body, "one");
    assert_eq!(get(two).await.unwrap().body, "two");

    first.kill().await.unwrap();
    assert!(get(one).await.is_err());
    assert_eq!(get(two).await.unwrap().body, "two");
}

#[tokio::test]
async fn draining_lets_clients_finish_and_then_closes() {
    let at = Net::here().unwrap().socket(80);
    let envoy = Envoy::config().drain_time(Duration::from_secs(1)).start(says("bye", at)).await.unwrap();
    let mut client = TcpStream::connect(at).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    client.write_all(request).await.unwrap();
    let mut buffer = [0; 4096];
    let read = client.read(&mut buffer).await.unwrap();
    assert!(!String::from_utf8_lossy(&buffer[..read]).contains("connection: close"));
    assert_eq!(envoy.connections().await.unwrap(), 1);

    let ending = envoy.shut_down(LIMIT);
    let finishing = async {
        testbed::eventually("the server to say that it closes", LIMIT, async || {
            client.write_all(request).await.map_err(|error| error.to_string())?;
            match client.read(&mut buffer).await {
                Ok(0) | Err(_) => Ok(()),
                Ok(read) => match String::from_utf8_lossy(&buffer[..read]).contains("connection: close") {
                    true => Ok(()),
                    false => Err("still open".to_owned()),
                },
            }
        })
        .await
        .unwrap();
        drop(client);
    };
    let (status, ()) = tokio::join!(ending, finishing);
    assert!(status.unwrap().success());
}

#[tokio::test]
async fn the_admin_interface_may_be_a_unix_socket_or_any_port() {
    let net = Net::here().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for admin in [
        json!({ "pipe": { "path": folder.path().join("admin.sock") } }),
        json!({ "socket_address": { "address": "127.0.0.1", "port_value": 0 } }),
    ] {
        let mut bootstrap = says("x", net.socket(80));
        bootstrap["admin"] = json!({ "address": admin });
        let envoy = Envoy::start(bootstrap.to_string()).await.unwrap();
        assert_eq!(envoy.get("/ready").await.unwrap(), "LIVE\n");
    }
}

#[tokio::test]
async fn a_bootstrap_that_envoy_refuses_is_told_with_its_words() {
    let mut bootstrap = says("x", Net::here().unwrap().socket(80));
    Envoy::validate(&bootstrap).await.unwrap();
    bootstrap["static_resources"]["listeners"][0]["no_such_field"] = json!(1);
    let error = Envoy::validate(&bootstrap).await.unwrap_err().to_string();
    assert!(error.contains("no_such_field"), "{error}");
    let error = Envoy::start(&bootstrap).await.unwrap_err().to_string();
    assert!(error.starts_with("envoy exited with 1 while"), "{error}");
    assert!(error.contains("no_such_field"), "{error}");
}

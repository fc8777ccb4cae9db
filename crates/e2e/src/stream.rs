//! Connections that stay open: each is used again and again until its client closes it.
//!
//! In: where Envoys are reached. Out: a [`Stream`] of each protocol that has long connections, to the hosts of [`objects`]. One that
//! ends before its client closes it was reset: Envoys that go wait for their clients until the drain limit, which no scenario reaches.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use echo::grpc::{Reply, Request};
use serde_json::{Value, json};
use testbed::certs::Ca;
use testbed::client::{GrpcStream, WebSocket, Wire};
use testbed::{Client, eventually};

use crate::installation::{HOST, LIMIT};

const GRPC: &str = "grpc.example.com";
const PASSTHROUGH: &str = "passthrough.example.com";
const TCP: &str = "tcp.example.com";
/// The port of the load balancer for TLS.
const HTTPS: u16 = 443;

/// What is spoken on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Messages both ways, over HTTP/1.1.
    WebSocket,
    /// A call that stays open both ways, over HTTP/2.
    Grpc,
    /// TLS that the backend terminates.
    Passthrough,
    /// Bytes, in TLS that Envoy terminates.
    Tcp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Protocol; 4] = [Protocol::WebSocket, Protocol::Grpc, Protocol::Passthrough, Protocol::Tcp];

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::WebSocket => "WebSocket",
            Protocol::Grpc => "gRPC stream",
            Protocol::Passthrough => "TLS passthrough connection",
            Protocol::Tcp => "TCP connection",
        }
    }

    /// Opens a stream and uses it once. The host may be new to some proxies.
    pub async fn open(self, at: SocketAddr) -> Result<Stream> {
        let open = async || {
            let mut stream = self.try_open(at).await.map_err(|error| format!("{error:#}"))?;
            stream.ask("first").await.map_err(|error| format!("{error:#}"))?;
            Ok::<_, String>(stream)
        };
        Ok(eventually(format!("a {}", self.name()), LIMIT, open).await?)
    }

    async fn try_open(self, at: SocketAddr) -> Result<Stream> {
        let client = |at: SocketAddr, host: &str| Client::new(at).host(host).timeout(Duration::from_secs(10));
        let tls = |host: &str| client(SocketAddr::new(at.ip(), HTTPS), host).https().accept_any();
        Ok(match self {
            Protocol::WebSocket => Stream::WebSocket(Box::new(client(at, HOST).websocket("/").await?)),
            Protocol::Grpc => Stream::Grpc(client(at, GRPC).http2().grpc_stream("/sesame.echo.v1.Echo/Say").await?),
            Protocol::Passthrough => Stream::Bytes(tls(PASSTHROUGH).open().await?),
            Protocol::Tcp => Stream::Bytes(tls(TCP).open().await?),
        })
    }
}

/// A connection that stays open.
#[derive(Debug)]
pub enum Stream {
    /// Frames.
    WebSocket(Box<WebSocket>),
    /// Messages of a call.
    Grpc(GrpcStream),
    /// Bytes.
    Bytes(Wire),
}

impl Stream {
    /// Sends a text and expects it back.
    pub async fn ask(&mut self, text: &str) -> Result<()> {
        let answer = match self {
            Stream::WebSocket(socket) => socket.ask(text).await?,
            Stream::Grpc(stream) => stream.ask::<Reply>(&Request { message: text.to_owned(), count: 1 }).await?.message,
            Stream::Bytes(wire) => {
                wire.write(text).await?;
                String::from_utf8(wire.read_exact(text.len()).await?)?
            }
        };
        ensure!(answer == text, "{text} was answered with {answer}");
        Ok(())
    }

    /// Closes it as a client does.
    pub async fn close(self) -> Result<()> {
        match self {
            Stream::WebSocket(socket) => socket.close().await.context("closing a WebSocket"),
            Stream::Grpc(_) => Ok(()),
            Stream::Bytes(mut wire) => wire.finish().await.context("closing a connection"),
        }
    }
}

/// The objects of the hosts, for the Service `web` of a namespace.
pub fn objects(namespace: &str) -> Vec<Value> {
    let proxy = |name: &str, mut spec: Value, host: &str, tls: Value| {
        spec["virtualhost"] = json!({ "fqdn": host });
        if !tls.is_null() {
            spec["virtualhost"]["tls"] = tls;
        }
        json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
            "metadata": { "name": name, "namespace": namespace }, "spec": spec })
    };
    let grpc = json!({ "routes": [{ "services": [{ "name": "web", "port": 80, "protocol": "h2c" }],
        "timeoutPolicy": { "response": "infinity", "idle": "infinity" } }] });
    let tcp = |port: u16| json!({ "tcpproxy": { "services": [{ "name": "web", "port": port }] } });
    let leaf = Ca::new("e2e").leaf(TCP).make();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": "tcp", "namespace": namespace },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } });
    vec![
        secret,
        proxy("grpc", grpc, GRPC, Value::Null),
        proxy("passthrough", tcp(8443), PASSTHROUGH, json!({ "passthrough": true })),
        proxy("tcp", tcp(9000), TCP, json!({ "secretName": "tcp" })),
    ]
}

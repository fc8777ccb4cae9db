//! Hosts that are protected: by tokens, by client certificates, by an authorization server.
//!
//! In: the number of a host. Out: what its HTTPProxy says of it, the objects of a namespace that it refers to, and the servers
//! behind them, which run as long as the benchmark at addresses that stand in etcds that are kept.

use std::net::Ipv4Addr;
use std::sync::LazyLock;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use testbed::auth_server::AuthServer;
use testbed::certs::Ca;
use testbed::key_server::{KeyAnswer, KeyServer};
use testbed::tokens::{self, TokenSigner};

use super::Object;

/// Where the server of keys listens.
const KEYS: Ipv4Addr = Ipv4Addr::new(198, 18, 127, 3);
/// Where the authorization server listens.
const AUTHORIZATION: Ipv4Addr = Ipv4Addr::new(198, 18, 127, 4);
/// The name of the ExtensionService, its Service and its endpoints in every namespace.
const EXTENSION: &str = "authorization";
/// The Secret with the CA of clients in every namespace.
const CLIENTS: &str = "clients";
/// The audience of tokens at first.
pub const FIRST_AUDIENCE: &str = "first";
/// The audience once a provider has been edited.
pub const SECOND_AUDIENCE: &str = "second";
const ISSUER: &str = "https://bench.example.com";

static SIGNER: LazyLock<TokenSigner> = LazyLock::new(|| TokenSigner::new("bench"));

/// What protects a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// A JSON Web Token.
    Tokens,
    /// The certificate of the client, which it need not have: what is measured is not the client.
    ClientCertificates,
    /// An authorization server that allows everything.
    Authorization,
}

impl Protection {
    /// In turn.
    pub fn of(number: usize) -> Protection {
        match number % 3 {
            0 => Protection::Tokens,
            1 => Protection::ClientCertificates,
            _ => Protection::Authorization,
        }
    }

    /// Adds it to a `virtualhost` with TLS.
    pub fn add_to(self, host: &mut Value) {
        match self {
            Protection::Tokens => host["jwtProviders"] = providers(FIRST_AUDIENCE),
            Protection::ClientCertificates => {
                host["tls"]["clientValidation"] = json!({ "caSecret": CLIENTS, "optionalClientCertificate": true });
            }
            Protection::Authorization => host["authorization"] = json!({ "extensionRef": { "name": EXTENSION } }),
        }
    }
}

/// The providers of a host, whose one asks all its routes for tokens of this audience.
pub fn providers(audience: &str) -> Value {
    let keys = json!({ "uri": format!("http://{KEYS}/keys") });
    json!([{ "name": "bench", "default": true, "issuer": ISSUER, "audiences": [audience], "remoteJWKS": keys }])
}

/// A token that a host's provider takes, as the value of a header.
pub fn bearer(audience: &str) -> String {
    format!("Bearer {}", SIGNER.token(&tokens::claims(ISSUER, audience)))
}

/// What the hosts of a namespace refer to.
pub fn shared(namespace: &str, ca: &Ca) -> Vec<Object> {
    let metadata = json!({ "name": EXTENSION });
    let ports = json!([{ "name": "grpc", "port": 80 }]);
    let object =
        |group: &str, kind: &str, body| Object { folder: format!("{group}/namespaces/{namespace}/{kind}"), body };
    let secret = json!({ "metadata": { "name": CLIENTS }, "data": { "ca.crt": BASE64.encode(ca.pem()) } });
    let service = json!({ "metadata": metadata, "spec": { "clusterIP": "None", "ports": ports } });
    let slice = json!({
        "metadata": { "name": EXTENSION, "labels": { "kubernetes.io/service-name": EXTENSION } },
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{ "addresses": [AUTHORIZATION], "conditions": { "ready": true } }],
    });
    let extension = json!({
        "apiVersion": "projectcontour.io/v1alpha1",
        "kind": "ExtensionService",
        "metadata": metadata,
        "spec": { "protocol": "h2c", "services": [{ "name": EXTENSION, "port": 80 }] },
    });
    vec![
        object("/api/v1", "secrets", secret),
        object("/api/v1", "services", service),
        object("/apis/discovery.k8s.io/v1", "endpointslices", slice),
        object("/apis/projectcontour.io/v1alpha1", "extensionservices", extension),
    ]
}

/// The servers behind all of it.
pub struct Servers {
    _keys: KeyServer,
    _authorization: AuthServer,
}

impl Servers {
    /// Starts them.
    pub async fn start() -> Result<Servers> {
        let keys = KeyServer::at(KEYS, None).await?;
        keys.set(KeyAnswer::Document(tokens::key_set([&*SIGNER])));
        let tls = Ca::new("bench").leaf("authorization").make().server_config();
        Ok(Servers { _keys: keys, _authorization: AuthServer::at(AUTHORIZATION, "bench", tls).await? })
    }
}

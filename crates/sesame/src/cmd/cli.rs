//! `sesame cli`: what the xDS server sends, seen as an Envoy would.

mod connect;
mod kind;
mod stream;

use std::path::{Path, PathBuf};

use anyhow::Result;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::google::protobuf::Struct;
use envoy_api::{Name, json};
use model::{Code, FleetName};
use serde_json::Value;
use tracing::warn;

use crate::{flags, output};
use kind::Kind;

/// Print the responses of the xDS server as JSON
///
/// Acts as an xDS client: every response is acknowledged, or rejected with --nack.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Resource type
    #[arg(value_enum)]
    kind: Kind,
    /// Resource names; all resources of the type if none are given
    names: Vec<String>,
    /// Address of the xDS server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8001")]
    sesame: String,
    /// Use delta xDS instead of state of the world
    #[arg(long)]
    delta: bool,
    /// NACK every response
    #[arg(long)]
    nack: bool,
    /// Node ID
    #[arg(long, value_name = "NAME", default_value = "SesameCLI")]
    node_id: String,
    /// Fleet to subscribe to
    #[arg(long, env = "SESAME_FLEET", value_name = "NAMESPACE/NAME", value_parser = flags::fleet)]
    fleet: Option<FleetName>,
    /// Print private keys instead of redacting them
    #[arg(long)]
    show_keys: bool,
    /// CA bundle (PEM) that the xDS server's certificate must chain to
    #[arg(long, env = "CLI_CAFILE", value_name = "FILE", requires_all = ["cert_file", "key_file"])]
    cafile: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, env = "CLI_CERT_FILE", value_name = "FILE", requires_all = ["cafile", "key_file"])]
    cert_file: Option<PathBuf>,
    /// Private key (PEM) of the client certificate
    #[arg(long, env = "CLI_KEY_FILE", value_name = "FILE", requires_all = ["cafile", "cert_file"])]
    key_file: Option<PathBuf>,
}

/// Prints until the server or the reader ends it.
pub async fn run(args: Args) -> Result<()> {
    let files = match (&args.cafile, &args.cert_file, &args.key_file) {
        (Some(ca), Some(certificate), Some(key)) => Some(connect::Files { ca, certificate, key }),
        _ => None,
    };
    let channel = connect::connect(&args.sesame, files).await?;
    let subscription = stream::Subscription {
        kind: args.kind,
        names: args.names,
        node: node(args.node_id, args.fleet),
        nack: args.nack,
    };
    let printer = Printer { show_keys: args.show_keys };
    if args.delta {
        stream::delta(channel, subscription, |response| printer.print(&response)).await
    } else {
        stream::state_of_the_world(channel, subscription, |response| printer.print(&response)).await
    }
}

fn node(id: String, fleet: Option<FleetName>) -> Node {
    let key = envoy::bootstrap::FLEET_KEY.to_owned();
    let metadata = fleet.map(|fleet| Struct { fields: [(key, fleet.to_string().as_str().into())].into() });
    Node { id, metadata, user_agent_name: "sesame-cli".to_owned(), ..Default::default() }
}

struct Printer {
    show_keys: bool,
}

impl Printer {
    /// One response as one JSON document.
    fn print<M: Name>(&self, response: &M) -> Result<()> {
        let mut value = match json::to_json(response) {
            Ok(value) => value,
            Err(error) => {
                let error = anyhow::Error::new(error);
                warn!("{}: a response cannot be shown: {error:#}", Code::StreamEnded);
                return Ok(());
            }
        };
        if !self.show_keys {
            hide_keys(&mut value);
        }
        output::write(Path::new("-"), &format!("{value:#}\n"))
    }
}

/// Redacts private keys.
fn hide_keys(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    // A set of keys may have symmetric ones in it.
                    "private_key" | "password" | "pkcs12" | "session_ticket_keys" | "generic_secret" | "local_jwks" => {
                        *value = Value::from("[hidden]");
                    }
                    _ => hide_keys(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_keys),
        _ => {}
    }
}

//! Envoy's admin interface: config dump, statistics, clusters, listeners.
//!
//! In: where it listens, a TCP or a Unix socket. Out: answers as JSON or numbers. Each question opens a connection of its
//! own, so an [`Admin`] may be used from any runtime and after any pause.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method;
use serde_json::Value;
use tokio::net::{TcpStream, UnixStream};

use super::Error;
use crate::deadline::eventually;

/// The admin interface of one Envoy.
#[derive(Clone, Debug)]
pub enum Admin {
    /// On a TCP port.
    Tcp(SocketAddr),
    /// On a Unix socket.
    Unix(PathBuf),
}

impl Admin {
    /// Reads the file in which Envoy says where it listens.
    pub(super) fn read(file: &Path) -> Result<Admin, String> {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        if text.starts_with('/') {
            return Ok(Admin::Unix(text.into()));
        }
        text.parse().map(Admin::Tcp).map_err(|_| format!("{text:?} is no address"))
    }

    /// Asks; anything but 200 is an error.
    pub async fn get(&self, path: &str) -> Result<String, Error> {
        self.ask(Method::GET, path).await
    }

    /// Tells it to do something; anything but 200 is an error.
    pub async fn post(&self, path: &str) -> Result<String, Error> {
        self.ask(Method::POST, path).await
    }

    /// Asks for JSON.
    pub async fn json(&self, path: &str) -> Result<Value, Error> {
        let text = self.get(path).await?;
        serde_json::from_str(&text).map_err(|error| Error::Answer { path: path.to_owned(), reason: error.to_string() })
    }

    /// All of its configuration, endpoints included.
    pub async fn config_dump(&self) -> Result<Value, Error> {
        self.json("/config_dump?include_eds").await
    }

    /// One list of its configuration, item by item: `dynamic_listeners`, `static_clusters`, `dynamic_route_configs`, …
    pub async fn resources(&self, list: &str) -> Result<Vec<Value>, Error> {
        let mut dump = self.json(&format!("/config_dump?resource={list}")).await?;
        Ok(match dump["configs"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        })
    }

    /// Its clusters with their endpoints and health.
    pub async fn clusters(&self) -> Result<Value, Error> {
        self.json("/clusters?format=json").await
    }

    /// Its listeners with the addresses they are bound to.
    pub async fn listeners(&self) -> Result<Value, Error> {
        self.json("/listeners?format=json").await
    }

    /// Version, state, command line.
    pub async fn server_info(&self) -> Result<Value, Error> {
        self.json("/server_info").await
    }

    /// All counters and gauges whose names match a regular expression.
    pub async fn stats(&self, pattern: &str) -> Result<BTreeMap<String, u64>, Error> {
        let text = self.get(&format!("/stats?filter={}", escape(pattern))).await?;
        // Histograms and text values are not numbers, and are left out.
        let number = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Ok(text.lines().filter_map(number).collect())
    }

    /// One counter or gauge, if it exists.
    pub async fn stat(&self, name: &str) -> Result<Option<u64>, Error> {
        let pattern = format!("^{}$", name.replace('.', "\\."));
        Ok(self.stats(&pattern).await?.remove(name))
    }

    /// Waits until a counter or gauge is as wished; one that does not exist yet counts as 0.
    pub async fn expect_stat(&self, name: &str, limit: Duration, wish: impl Fn(u64) -> bool) -> Result<u64, Error> {
        let probe = async || match self.stat(name).await {
            Ok(value) if wish(value.unwrap_or(0)) => Ok(value.unwrap_or(0)),
            Ok(value) => Err(format!("{value:?}")),
            Err(error) => Err(error.to_string()),
        };
        Ok(eventually(format!("the wished value of {name}"), limit, probe).await?)
    }

    async fn ask(&self, method: Method, path: &str) -> Result<String, Error> {
        let host = "admin";
        let answer = async {
            match self {
                Admin::Tcp(address) => crate::http::ask(TcpStream::connect(address).await?, method, host, path).await,
                Admin::Unix(file) => crate::http::ask(UnixStream::connect(file).await?, method, host, path).await,
            }
        };
        let answer = answer.await.map_err(|source| Error::Admin { path: path.to_owned(), source })?;
        if answer.status != http::StatusCode::OK {
            return Err(Error::Status { path: path.to_owned(), status: answer.status, body: answer.body });
        }
        Ok(answer.body)
    }
}

/// Percent-encodes what a regular expression may hold and a query may not.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

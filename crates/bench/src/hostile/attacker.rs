//! What an attacker has: a namespace, the API server, and the ports that everybody reaches.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testbed::Client;

use super::Options;
use super::fixture::Fixture;
use crate::world::Object;
use crate::writer::Writer;

/// The attacker's namespace.
pub const NAMESPACE: &str = "hostile";
/// The attacker's Service, at its port 80.
pub const SERVICE: &str = "web";
/// Writes under way at once where there are many.
const AT_ONCE: usize = 32;

/// Clones are the same attacker's.
#[derive(Clone)]
pub struct Attacker {
    /// Writes as the attacker.
    pub writer: Writer,
    /// How anybody reaches the xDS port.
    pub xds: Client,
    /// Where Envoy takes HTTPS.
    pub https: SocketAddr,
    scale: f64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    in_place: Mutex<Option<Instant>>,
    notes: Mutex<BTreeMap<&'static str, String>>,
}

impl Attacker {
    /// An attacker of this fixture.
    pub fn new(fixture: &Fixture<'_>, options: &Options) -> Attacker {
        let xds = Client::new(fixture.instance.xds);
        let writer = fixture.writer.clone();
        Attacker { writer, xds, https: fixture.instance.https, scale: options.scale, shared: Arc::default() }
    }

    /// So many, at the scale of this run.
    pub fn count(&self, full: usize) -> usize {
        scaled(full, self.scale)
    }

    /// One side of something that multiplies, at the scale of this run.
    pub fn side(&self, full: usize) -> usize {
        scaled(full, self.scale.sqrt())
    }

    /// Says that the attack is under way as it is meant to be.
    pub fn in_place(&self) {
        self.shared.in_place.lock().get_or_insert_with(Instant::now);
    }

    /// Since when it is.
    pub fn since(&self) -> Option<Instant> {
        *self.shared.in_place.lock()
    }

    /// Tells the reader something; the last that is told about a matter counts.
    pub fn note(&self, about: &'static str, text: String) {
        self.shared.notes.lock().insert(about, text);
    }

    /// What was told.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.notes.lock()).into_values().collect()
    }

    /// Makes many objects, several at a time.
    pub async fn create_all(&self, objects: impl Iterator<Item = Object>) -> Result<()> {
        let create = |object: Object| async move { self.writer.create(&object).await };
        stream::iter(objects).map(create).buffer_unordered(AT_ONCE).try_collect().await
    }
}

/// A number at a scale; never none.
pub fn scaled(full: usize, scale: f64) -> usize {
    ((full as f64 * scale) as usize).max(1)
}

fn folder(group: &str, plural: &str) -> String {
    format!("{group}/namespaces/{NAMESPACE}/{plural}")
}

/// The path of an object in the API.
pub fn api_path(group: &str, plural: &str, name: &str) -> String {
    format!("{}/{name}", folder(group, plural))
}

/// An object of the attacker's.
pub fn object(group: &str, plural: &str, mut body: Value, name: &str) -> Object {
    body["metadata"]["name"] = json!(name);
    Object { folder: folder(group, plural), body }
}

/// The API group of HTTPProxies.
pub const PROXIES: &str = "/apis/projectcontour.io/v1";

/// An HTTPProxy of the attacker's.
pub fn proxy(name: &str, spec: Value) -> Object {
    let body = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "spec": spec });
    object(PROXIES, "httpproxies", body, name)
}

/// What changes the spec of one.
pub fn proxy_edit(name: &str, spec: Value) -> (String, Value) {
    (api_path(PROXIES, "httpproxies", name), json!({ "spec": spec }))
}

/// The host number `n` of the attacker's.
pub fn host(n: usize) -> String {
    format!("a{n}.hostile.example.net")
}

/// A route to the attacker's Service.
pub fn route(prefix: &str) -> Value {
    json!({ "conditions": [{ "prefix": prefix }], "services": [{ "name": SERVICE, "port": 80 }] })
}

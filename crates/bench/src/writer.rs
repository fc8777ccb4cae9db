//! Writes to the API server, as bare as they come: what is measured is not the client.

use anyhow::{Context, Result};
use http::Request;
use kube::Client;
use serde_json::Value;

use crate::world::Object;

/// A client of the API server.
#[derive(Clone)]
pub struct Writer(Client);

impl Writer {
    /// Writes as this client.
    pub fn new(client: Client) -> Writer {
        Writer(client)
    }

    /// Makes an object.
    pub async fn create(&self, object: &Object) -> Result<()> {
        let request = Request::post(&object.folder).header("content-type", "application/json");
        self.send(request.body(object.body.to_string().into_bytes())?).await
    }

    /// Changes the fields of an object that `body` has.
    pub async fn edit(&self, (path, body): &(String, Value)) -> Result<()> {
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        self.send(request.body(body.to_string().into_bytes())?).await
    }

    /// An object, or all objects of a folder of the API.
    pub async fn get(&self, path: &str) -> Result<Value> {
        Ok(self.0.request(Request::get(path).body(Vec::new())?).await?)
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<()> {
        let request_line = format!("{} {}", request.method(), request.uri());
        self.0.request_text(request).await.map(drop).with_context(|| format!("the API server rejected {request_line}"))
    }

    /// How many objects are in a folder of the API.
    pub async fn count(&self, folder: &str) -> Result<u64> {
        let request = Request::get(format!("{folder}?limit=1")).body(Vec::new())?;
        let list: Value = self.0.request(request).await?;
        let listed = list["items"].as_array().map_or(0, |items| items.len() as u64);
        Ok(listed + list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0))
    }
}

//! A proxy in front of an API server that answers some requests itself: for faults that a real one does not have on demand.
//!
//! In: an API server, and a rule that is asked for each request. Out: a kubeconfig for programs that are to go through it.
//! What the rule lets pass goes to the API server as it is, watches included.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::Body;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::{ApiServer, Error};
use crate::net::Net;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The API server answers it.
    Pass,
    /// Nobody ever answers it.
    Hang,
    /// It is refused with this status.
    Refuse(u16),
}

type Rule = dyn Fn(&Method, &str) -> Fate + Send + Sync;

/// A running proxy; it ends when dropped.
#[derive(Debug)]
pub struct Front {
    kubeconfig: PathBuf,
    faults: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl Front {
    /// Starts one. The rule is given the method and the path with its query.
    pub async fn start(
        api: &ApiServer,
        rule: impl Fn(&Method, &str) -> Fate + Send + Sync + 'static,
    ) -> Result<Front, Error> {
        let address = Net::here()?.socket(8080);
        let listener = TcpListener::bind(address).await.map_err(|source| Error::Front { address, source })?;
        let (client, rule, faults): (_, Arc<Rule>, _) = (api.client()?, Arc::new(rule), Arc::<AtomicU64>::default());
        let task = tokio::spawn(accept(listener, client, rule, faults.clone()));
        // Whoever comes is the administrator to the API server.
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "front", "cluster": { "server": format!("http://{address}") } }],
            "users": [{ "name": "anyone", "user": {} }],
            "contexts": [{ "name": "front", "context": { "cluster": "front", "user": "anyone" } }],
            "current-context": "front",
        });
        let kubeconfig = api.state().write("front.kubeconfig", format!("{config:#}\n"))?;
        Ok(Front { kubeconfig, faults, _task: AbortOnDropHandle::new(task) })
    }

    /// The file of a kubeconfig that leads through it, with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    /// How many requests did not pass so far.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, client: kube::Client, rule: Arc<Rule>, faults: Arc<AtomicU64>) {
    // With the proxy all of its connections end.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (client, rule, faults) = (client.clone(), rule.clone(), faults.clone());
        let service = service_fn(move |request| answer(client.clone(), rule.clone(), faults.clone(), request));
        connections.spawn(async move {
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            // A connection that breaks is its client's business.
            let _ended = server.serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    client: kube::Client,
    rule: Arc<Rule>,
    faults: Arc<AtomicU64>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, kube::Error>>, kube::Error> {
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let fate = rule(request.method(), &path);
    if fate != Fate::Pass {
        faults.fetch_add(1, Ordering::Relaxed);
    }
    match fate {
        Fate::Hang => std::future::pending().await,
        Fate::Refuse(code) => {
            let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": reason(code), "message": "refused by the test" });
            let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync();
            let builder = Response::builder().status(code).header("content-type", "application/json");
            builder.body(body).map_err(kube::Error::HttpError)
        }
        Fate::Pass => {
            let (mut parts, body) = request.into_parts();
            parts.uri = path.parse().map_err(|error: http::uri::InvalidUri| kube::Error::HttpError(error.into()))?;
            parts.headers.remove(http::header::HOST);
            let body = body.collect().await.map_err(kube::Error::HyperError)?.to_bytes();
            let answer = client.send(Request::from_parts(parts, Body::from(body.to_vec()))).await?;
            Ok(answer.map(BodyExt::boxed_unsync))
        }
    }
}

/// What Kubernetes calls a status.
fn reason(code: u16) -> &'static str {
    match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        _ => "",
    }
}

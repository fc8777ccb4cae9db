//! The questions that are asked of the API server, and what can come of each.
//!
//! In: a [`Target`] or a key. Out: bytes, or a [`Failure`] that says what to do about it. Nothing is decoded here, and
//! nothing is tried again: who asks knows how long to go on.

use crate::cluster::{
    Connection, ServedVersions, Timing,
    backoff::{ApiConnection, jittered},
    target::{Target, object_url},
    wire::{Groups, Kinds, Lines, Status},
};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use kinds::ObjectRef;
use kube::client::Body;
use model::Code;
use std::{
    collections::BTreeSet,
    error::Error,
    time::{Duration, Instant},
};
use tokio::{sync::Mutex, time::timeout};

/// Why there is no answer, or not the one that was asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// Nobody answers.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// The history from which to go on is gone.
    #[error("the version is too old: {0}")]
    Expired(String),
    /// There is no such kind, or no such object.
    #[error("not found: {0}")]
    Missing(String),
    /// It does not know who we are; it may again, with the next token.
    #[error("{0}")]
    Unauthorized(String),
    /// We have not the right.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// It has too much to do, or is about to start or stop.
    #[error("busy: {why}")]
    Busy {
        /// Its words.
        why: String,
        /// How long it asks us to wait.
        pause: Option<Duration>,
    },
    /// It will not do what it was asked.
    #[error("refused: {0}")]
    Refused(String),
    /// A watch that brought nothing.
    #[error("the watch ended at once")]
    Ended,
    /// A watch that stayed open and brought nothing, not even a bookmark.
    #[error("the watch is silent")]
    Silent,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// What a status says.
    pub fn of(code: StatusCode, message: String, pause: Option<Duration>) -> Failure {
        match code.as_u16() {
            410 => Failure::Expired(message),
            404 => Failure::Missing(message),
            401 => Failure::Unauthorized(format!("{code}: {message}")),
            403 => Failure::Forbidden(message),
            // Without a code of its own: the request is wrong for good.
            400 | 402 | 405..=409 | 411..=428 | 430..=499 => Failure::Refused(format!("{code}: {message}")),
            429 | 502..=504 => Failure::Busy { why: format!("{code}: {message}"), pause },
            _ => Failure::Other(format!("{code}: {message}")),
        }
    }

    /// Under which code it is reported: only what the server denies has to do with rights.
    pub fn code(&self) -> Code {
        match self {
            Failure::Unreachable(_) | Failure::Missing(_) | Failure::Unauthorized(_) | Failure::Forbidden(_) => {
                Code::ApiServerFailed
            }
            Failure::Expired(_)
            | Failure::Busy { .. }
            | Failure::Refused(_)
            | Failure::Ended
            | Failure::Silent
            | Failure::Other(_) => Code::ApiServerError,
        }
    }

    /// How long the server asks us to wait.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Failure::Busy { pause, .. } => *pause,
            _ => None,
        }
    }
}

/// What an API server's lists of kinds say about a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovered {
    /// It is listed.
    Listed,
    /// A list cannot be read.
    Unknown,
    /// Its group is there, without it.
    NotInGroup,
    /// Its group is in no version there. An API server that has just started says this of all groups of CRDs.
    NoGroup,
}

/// The API server.
pub struct Api {
    client: kube::Client,
    pub timing: Timing,
    pub connection: ApiConnection,
    pub versions: ServedVersions,
    /// The paths of the groups that it served when it was asked last, by version; none if they could not be read.
    groups: Mutex<Option<(Instant, Option<BTreeSet<String>>)>>,
}

impl Api {
    pub fn new(client: kube::Client, timing: Timing, connection: Connection, versions: ServedVersions) -> Self {
        Self { client, timing, connection: ApiConnection::new(connection), versions, groups: Mutex::default() }
    }

    /// One page of a list, or all of it.
    pub async fn list(&self, target: &Target, paged: bool, page: Option<&str>) -> Result<Bytes, Failure> {
        self.bytes(&target.list_url(paged, page), target.list_form()).await
    }

    /// One object.
    pub async fn object(&self, key: &ObjectRef) -> Result<Bytes, Failure> {
        self.bytes(&object_url(key.kind, &key.namespace, &key.name), "application/json").await
    }

    /// A watch from a version on.
    pub async fn watch(&self, target: &Target, version: &str) -> Result<Lines, Failure> {
        let url = target.watch_url(version, jittered(self.timing.watch));
        let answer = timeout(self.timing.answer, self.ask(&url, target.watch_form())).await;
        Ok(Lines::new(answer.map_err(|_| late(&url))??))
    }

    /// Whether the API server has all its parts together. One that has just started knows neither CRDs nor rights, and
    /// says "not found" and "forbidden" of what is there.
    pub async fn is_ready(&self) -> bool {
        self.bytes("/readyz", "*/*").await.is_ok()
    }

    /// Whether the API server has the kind in any version; it tells this even those who may not read it.
    pub async fn discover(&self, target: &Target) -> Discovered {
        let mut discovered = Discovered::NoGroup;
        for path in target.discovery() {
            match self.bytes(&path, "application/json").await {
                Ok(body) => match serde_json::from_slice::<Kinds<'_>>(&body) {
                    Ok(Kinds { resources }) if resources.iter().all(|kind| kind.name != target.kind.plural()) => {
                        discovered = Discovered::NotInGroup;
                    }
                    Ok(_) => return Discovered::Listed,
                    Err(_) => return Discovered::Unknown,
                },
                Err(Failure::Missing(_)) => {}
                Err(_) => return Discovered::Unknown,
            }
        }
        discovered
    }

    /// Whether the API server may have come to serve a kind that it did not serve: whether it has the kind's group in any version. Many kinds
    /// share one answer for a while, so that what is not installed costs neither side much. What no CRD makes is always served, if not to us.
    pub async fn may_serve(&self, target: &Target) -> bool {
        if !target.is_custom() {
            return true;
        }
        let mut last = self.groups.lock().await;
        let is_fresh = |(asked, _): &&mut (Instant, _)| asked.elapsed() < self.timing.absent_pause / 5;
        let groups = match last.as_mut().filter(is_fresh) {
            Some((_, groups)) => &*groups,
            None => {
                let groups = self.groups().await;
                &last.insert((Instant::now(), groups)).1
            }
        };
        // Where the groups cannot be read, the kind itself is asked for.
        groups.as_ref().is_none_or(|groups| target.discovery().any(|path| groups.contains(&path)))
    }

    async fn groups(&self) -> Option<BTreeSet<String>> {
        let body = self.bytes("/apis", "application/json").await.ok()?;
        let Groups { groups } = serde_json::from_slice(&body).ok()?;
        let versions = groups.iter().flat_map(|group| &group.versions);
        let paths: BTreeSet<String> = versions.map(|version| format!("/apis/{}", version.group_version)).collect();
        // Every API server has some.
        (!paths.is_empty()).then_some(paths)
    }

    async fn bytes(&self, url: &str, form: &'static str) -> Result<Bytes, Failure> {
        let whole = async {
            let body = self.ask(url, form).await?.collect().await;
            Ok(body.map_err(|error| Failure::Unreachable(with_causes(&error)))?.to_bytes())
        };
        let begun = Instant::now();
        let answer = timeout(self.timing.answer, whole).await.map_err(|_| late(url))?;
        self.connection.connection.took(url, begun.elapsed());
        answer
    }

    async fn ask(&self, url: &str, form: &'static str) -> Result<Body, Failure> {
        // Without compression: a watch must not wait in anybody's buffer.
        let request = Request::get(url).header(header::ACCEPT, form).header(header::ACCEPT_ENCODING, "identity");
        let request = request.body(Body::empty()).map_err(|error| Failure::Other(with_causes(&error)))?;
        let answer = self.client.send(request).await.map_err(|error| Failure::Unreachable(with_causes(&error)))?;
        let code = answer.status();
        if code.is_success() {
            return Ok(answer.into_body());
        }
        let seconds = answer.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = answer.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let status: Status = serde_json::from_slice(&body).unwrap_or_default();
        Err(Failure::of(code, status.message, seconds.map(Duration::from_secs)))
    }
}

fn late(url: &str) -> Failure {
    let path = url.split('?').next().unwrap_or(url);
    Failure::Unreachable(format!("{path} took too long"))
}

/// An error with all that is behind it: the first line alone often says only that something failed.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

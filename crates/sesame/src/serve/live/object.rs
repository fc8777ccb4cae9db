//! A ContourConfiguration as it changes.
//!
//! In: its namespace and name. Out: the object, each time that it is another. It may be in Contour's group or in Sesame's; where it is
//! in both, Sesame's counts.

use std::pin::Pin;

use anyhow::{Result, anyhow};
use futures::{Stream, StreamExt, stream};
use kinds::{ContourConfiguration, Kind, Object, Typed};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use model::{Code, ObjectRef};
use serde_json::Value;
use tracing::{debug, error};

use crate::problem::Coded;
use crate::serve::config::Config;

/// The object as it was read.
#[derive(Clone, Debug)]
pub struct Current {
    /// What it says.
    pub spec: Value,
    /// All of it.
    pub object: Object,
}

impl Current {
    fn read(kind: Kind, object: &DynamicObject) -> Option<Self> {
        let text = serde_json::to_vec(object).ok()?;
        let object = kinds::decode_json(kind, &text).ok()?.object;
        let spec = object.get::<ContourConfiguration>()?.spec.clone();
        Some(Self { spec, object })
    }
}

/// The kinds, the one that counts first.
fn kinds() -> impl Iterator<Item = Kind> {
    ContourConfiguration::KINDS.iter().rev().copied()
}

fn api(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    let version = kind.versions().first().copied().unwrap_or_default();
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(kind.group(), version, kind.name()), kind.plural());
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// Reads the configuration once, at the start, and says which object it is of; logs every problem that it has.
///
/// # Errors
/// That there is no such object, that the API server does not say, or that it cannot be used.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Result<(Config, Current)> {
    let current = get(client, namespace, name).await?;
    let problems = match Config::of_object(&current.spec) {
        Ok(config) => return Ok((config, current)),
        Err(problems) => problems,
    };
    for problem in &problems {
        error!(code = %problem.code, "ContourConfiguration {namespace}/{name}: {problem} ({})", problem.code.help());
    }
    let why = format!("ContourConfiguration {namespace}/{name} has errors: {}", problems.len());
    Err(crate::problem::Problem::of(Code::ConfigValue, why))
}

async fn get(client: &Client, namespace: &str, name: &str) -> Result<Current> {
    for kind in kinds() {
        let found = api(client, kind, namespace).get_opt(name).await;
        let found = found.coded(Code::ApiServerFailed, || format!("cannot read {kind} {namespace}/{name}"))?;
        if let Some(current) = found.and_then(|object| Current::read(kind, &object)) {
            return Ok(current);
        }
    }
    Err(anyhow!("there is no ContourConfiguration {namespace}/{name}"))
        .coded(Code::ConfigMissing, || "the configuration cannot be read (--sesame-config-name)".to_owned())
}

/// What a watch says of the object: there, or gone.
type Seen = (Kind, Option<DynamicObject>);

/// An object that is followed.
pub struct FollowedObject {
    namespace: String,
    name: String,
    events: Pin<Box<dyn Stream<Item = Seen> + Send>>,
    /// The object of each kind, where there is one.
    known: Vec<(Kind, Option<Current>)>,
}

impl FollowedObject {
    /// Begins with what was read at the start: which of both groups is answered first decides nothing.
    pub fn new(client: Client, namespace: &str, name: &str, at_start: &Current) -> Self {
        let watches = kinds().map(|kind| watch(api(&client, kind, namespace), kind, name));
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            events: Box::pin(stream::select_all(watches)),
            known: kinds()
                .map(|kind| (kind, Some(at_start.clone()).filter(|_| at_start.object.kind() == kind)))
                .collect(),
        }
    }

    /// The object that counts, once it is another; nothing when it is gone.
    pub async fn next(&mut self) -> (ObjectRef, Option<Current>) {
        loop {
            let Some((kind, object)) = self.events.next().await else {
                // Watches never end.
                return std::future::pending().await;
            };
            let before = self.counting();
            if let Some((_, known)) = self.known.iter_mut().find(|(known, _)| *known == kind) {
                *known = object.and_then(|object| Current::read(kind, &object));
            }
            match (before, self.counting()) {
                // The one that counted before is gone, and no other is there.
                (Some(before), None) => return (self.key(before), None),
                // Another that does not count has changed.
                (Some(before), Some(now)) if before == now && now != kind => {}
                (_, Some(now)) => {
                    let known = self.known.iter().find(|(known, _)| *known == now);
                    return (self.key(now), known.and_then(|(_, current)| current.clone()));
                }
                (None, None) => {}
            }
        }
    }

    fn counting(&self) -> Option<Kind> {
        self.known.iter().find(|(_, current)| current.is_some()).map(|(kind, _)| *kind)
    }

    fn key(&self, kind: Kind) -> ObjectRef {
        ObjectRef::new(kind, self.namespace.as_str(), self.name.as_str())
    }
}

fn watch(api: Api<DynamicObject>, kind: Kind, name: &str) -> Pin<Box<dyn Stream<Item = Seen> + Send>> {
    let events = watcher(api, watcher::Config::default().fields(&format!("metadata.name={name}"))).default_backoff();
    // A list without the object says that it is gone, where a watch was interrupted.
    let seen = stream::unfold((Box::pin(events), false), move |(mut events, mut is_listed)| async move {
        loop {
            match events.next().await? {
                Ok(watcher::Event::Apply(object)) => return Some(((kind, Some(object)), (events, is_listed))),
                Ok(watcher::Event::InitApply(object)) => return Some(((kind, Some(object)), (events, true))),
                Ok(watcher::Event::Delete(_)) => return Some(((kind, None), (events, is_listed))),
                Ok(watcher::Event::Init) => is_listed = false,
                Ok(watcher::Event::InitDone) if is_listed => {}
                Ok(watcher::Event::InitDone) => return Some(((kind, None), (events, is_listed))),
                Err(error) => debug!("the watch of {kind} was interrupted: {error}"),
            }
        }
    });
    Box::pin(seen)
}

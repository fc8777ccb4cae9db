//! What the tests share: a replica that watches Ingresses as Sesame does, with a translator of three lines.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::networking::v1::Ingress;
use kinds::{Kind, kind};
use kube::api::{Api, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use model::{Code, ObjectRef, Verdict, status::StatusKind};
use prometheus_client::registry::Registry;
use serde_json::json;
use status::{Leadership, Report, Reporter, Settings};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const LIMIT: Duration = Duration::from_secs(60);
pub const ADDRESS: &str = "192.0.2.1";

/// A replica: a writer, and the watch that feeds it.
pub struct Replica {
    pub reporter: Reporter,
    registry: Registry,
    stop: CancellationToken,
    writing: JoinHandle<()>,
    watching: Option<JoinHandle<()>>,
}

impl Replica {
    /// One that is fed by hand.
    pub fn idle(client: Client, leadership: Leadership) -> Replica {
        let settings = Settings::new("replica-0", ADDRESS.parse().unwrap(), kinds);
        Self::with(client, settings, leadership)
    }

    pub fn with(client: Client, settings: Settings, leadership: Leadership) -> Replica {
        let (reporter, writer) = status::channel(client, settings, leadership);
        let mut registry = Registry::default();
        writer.register(&mut registry);
        let stop = CancellationToken::new();
        let writing = tokio::spawn(writer.run(stop.clone().cancelled_owned()));
        Replica { reporter, registry, stop, writing, watching: None }
    }

    /// One that follows the Ingresses of a namespace.
    pub fn watching(client: Client, namespace: &str, leadership: Leadership) -> Replica {
        let mut replica = Self::idle(client.clone(), leadership);
        replica.watch(client, namespace);
        replica
    }

    pub fn watch(&mut self, client: Client, namespace: &str) {
        let api = Api::<Ingress>::namespaced(client, namespace);
        self.watching = Some(tokio::spawn(follow(api, self.reporter.clone())));
    }

    /// Ends it in good order; what it began is done.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Some(watching) = self.watching {
            watching.abort();
        }
        self.writing.await.unwrap();
    }

    /// A figure from the metrics.
    pub fn count(&self, metric: &str, result: &str) -> u64 {
        let text = self.text();
        let line = |line: &&str| line.starts_with(metric) && line.contains(&format!("result=\"{result}\""));
        let values = text.lines().filter(line).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        values.sum()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }

    pub fn written(&self) -> u64 {
        self.count("sesame_status_writes_total", "written")
    }

    /// The same once every answer of the API server has come: an object shows what was written a little before.
    pub async fn settled(&self) -> u64 {
        self.until("all answers", |replica| replica.text().contains("sesame_status_behind 0\n")).await;
        self.written()
    }

    pub async fn until(&self, what: &str, is: impl Fn(&Replica) -> bool) {
        let probe = async || if is(self) { Ok(()) } else { Err(format!("{} written", self.written())) };
        testbed::eventually(what, LIMIT, probe).await.unwrap();
    }
}

/// The statuses of two dialects.
pub fn kinds(kind: Kind) -> Option<&'static StatusKind> {
    match kind.name() {
        "Ingress" => Some(&dialect_ingress::status::STATUS),
        "HTTPProxy" => Some(&dialect_httpproxy::status::STATUS),
        _ => None,
    }
}

/// Reports every change of an Ingress and what we think of it.
async fn follow(api: Api<Ingress>, reporter: Reporter) {
    let mut events = watcher(api, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => reporter.report(report(&object)),
            Ok(Event::Delete(object)) => {
                let key = key(&object);
                let verdicts = vec![(subject(&object), None)];
                reporter.report(Report { objects: vec![(key, None)], verdicts, ..Report::default() });
            }
            Ok(Event::InitDone) => reporter.report(Report { synced: true, ..Report::default() }),
            Ok(Event::Init) | Err(_) => {}
        }
    }
}

/// What is said about an Ingress: it is ours if it has our class, and wrong if an annotation says so.
pub fn report(object: &Ingress) -> Report {
    let json = serde_json::to_vec(object).unwrap();
    let decoded = kinds::decode_json(kind::INGRESS, &json).unwrap().object;
    let ours = object.spec.as_ref().is_some_and(|spec| spec.ingress_class_name.as_deref() == Some("sesame"));
    let wrong = object.annotations().get("wrong").map(|message| verdict(object, message));
    let said = ours.then(|| Arc::new(wrong.into_iter().collect()));
    Report { objects: vec![(key(object), Some(decoded))], verdicts: vec![(subject(object), said)], ..Report::default() }
}

fn verdict(object: &Ingress, message: &str) -> Verdict {
    Verdict::new(Code::ServiceNotFound, subject(object).at("spec.defaultBackend.service"), message)
}

fn key(object: &Ingress) -> ObjectRef {
    ObjectRef::new(kind::INGRESS, object.namespace().unwrap(), object.name_any())
}

fn subject(object: &Ingress) -> ObjectRef {
    ObjectRef::new(kinds::kind::INGRESS, object.namespace().unwrap(), object.name_any())
}

/// An Ingress with our class.
pub fn ingress(name: &str) -> Ingress {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "ingressClassName": "sesame",
            "defaultBackend": { "service": { "name": "web", "port": { "number": 80 } } },
        },
    }))
    .unwrap()
}

pub async fn create(api: &Api<Ingress>, object: &Ingress) -> Ingress {
    api.create(&PostParams::default(), object).await.unwrap()
}

/// The addresses that an Ingress says.
pub fn says(object: &Ingress) -> Vec<String> {
    let balancer = object.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let all = balancer.and_then(|balancer| balancer.ingress.clone()).unwrap_or_default();
    all.into_iter().filter_map(|address| address.ip.or(address.hostname)).collect()
}

/// Waits until an Ingress says that.
pub async fn until_says(api: &Api<Ingress>, name: &str, addresses: &[&str]) -> Ingress {
    let probe = async || match api.get(name).await {
        Ok(object) if says(&object) == addresses => Ok(object),
        other => Err(format!("{other:?}")),
    };
    testbed::eventually(format!("{name} to say {addresses:?}"), LIMIT, probe).await.unwrap()
}

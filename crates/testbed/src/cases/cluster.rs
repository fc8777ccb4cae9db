//! Cases in a cluster: the objects of a case are put into a real API server, and whoever serves it must answer every row
//! of the case's table, and say on the objects what the golden part says of them.
//!
//! In: a folder of cases, an API server, and a way to start what serves it. Out: nothing, or a report. A case that cannot
//! stand in an API server is left out with its reason: the API server refuses an object itself, or the case is about
//! folders. The age of an object is the API server's to tell, so objects of different ages are made a second apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kinds::{HttpProxy, Kind, Typed, kind};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, Status};
use kube::{Client, ResourceExt};
use model::{Code, Severity};
use serde_json::{Value, json};

use super::settings::Serve;
use super::{Backends, Case, files, objects, request};
use crate::certs::Ca;
use crate::deadline::eventually;
use crate::{ApiServer, Envoy};

/// How long a case may take to be served, and to be told about.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How many findings of one object have events.
const EVENTS: usize = 10;
/// The times of the API server have seconds only.
const TICK: Duration = Duration::from_millis(1100);

/// What serves an API server, with an Envoy that listens on loopback.
pub trait Serving {
    /// Its Envoy.
    fn envoy(&self) -> &Envoy;
    /// The address that objects which are served say.
    fn address(&self) -> &str;
}

/// Runs every case of a folder; `start` starts what serves it, with these settings.
///
/// # Panics
/// When anything differs from what a case says; the message tells all of it.
pub async fn run_in_cluster<S: Serving>(folder: &Path, api: &ApiServer, mut start: impl AsyncFnMut(&Serve) -> S) {
    let only = std::env::var("CASES").unwrap_or_default();
    let client = api.client().expect("a client of the API server");
    let (mut backends, ca) = (Backends::new(), Ca::new("cases"));
    // One after the other with the same settings, so that each of them is started once.
    let mut cases: BTreeMap<Serve, Vec<(String, Case)>> = BTreeMap::new();
    let (mut left_out, mut failed, mut count) = (Vec::new(), Vec::new(), 0);
    for path in files(folder).into_iter().filter(|path| path.to_string_lossy().contains(&only)) {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        let case = Case::read(&path).unwrap_or_else(|why| panic!("{name}: {why}"));
        match case.settings.serve() {
            Ok(settings) => cases.entry(settings).or_default().push((name, case)),
            Err(why) => left_out.push(format!("{name}: {why}")),
        }
    }
    for (settings, cases) in cases {
        let serving = start(&settings).await;
        for (name, case) in cases {
            let mut bench = Bench { client: client.clone(), serving: &serving, backends: &mut backends, ca: &ca };
            match bench.case(&case).await {
                Ok(wrong) if wrong.is_empty() => count += 1,
                Ok(wrong) => failed.push(format!("{name}:\n{}", wrong.join("\n"))),
                Err(why) => left_out.push(format!("{name}: {why}")),
            }
        }
    }
    println!("{count} cases are served from an API server; left out:\n  {}", left_out.join("\n  "));
    assert!(failed.is_empty(), "{} cases failed\n\n{}", failed.len(), failed.join("\n\n"));
    assert!(count > left_out.len(), "more cases are left out than served");
}

struct Bench<'a, S> {
    client: Client,
    serving: &'a S,
    backends: &'a mut Backends,
    ca: &'a Ca,
}

impl<S: Serving> Bench<'_, S> {
    /// Runs one case; gives what is wrong, or why it cannot be run here.
    async fn case(&mut self, case: &Case) -> Result<Vec<String>, String> {
        let settings = case.settings.pipeline();
        let mut values = objects::values(case, &settings, self.ca, self.backends).await?;
        let age = |value: &Value| value["metadata"]["creationTimestamp"].as_str().unwrap_or("").to_owned();
        // Secrets and Services come before what refers to them: nothing is reported that is missing for a moment only.
        values.sort_by_key(|value| (age(value), value["apiVersion"] != "v1"));
        let mut made: Vec<(Kind, DynamicObject)> = Vec::new();
        let mut last = values.first().map(age);
        let mut refused = None;
        for value in values {
            let Some(kind) = kind_of(&value) else { continue };
            if last.replace(age(&value)) != Some(age(&value)) {
                tokio::time::sleep(TICK).await;
            }
            match self.make(kind, &value).await {
                // A namespace stays: nobody empties one that is deleted.
                Ok(_) if kind == kind::NAMESPACE => {}
                Ok(object) => made.push((kind, object)),
                Err(why) => {
                    refused =
                        Some(format!("the API server refuses {} {}: {why}", value["kind"], value["metadata"]["name"]));
                    break;
                }
            }
        }
        let wrong = match &refused {
            None => self.check(case, &settings, &made).await,
            Some(_) => Vec::new(),
        };
        for (kind, object) in &made {
            let api = self.api(*kind, object.namespace().as_deref());
            let gone = api.delete(&object.name_any(), &DeleteParams::default()).await;
            gone.map_err(|error| error.to_string())?;
        }
        refused.map_or(Ok(wrong), Err)
    }

    async fn check(&self, case: &Case, settings: &pipeline::Settings, made: &[(Kind, DynamicObject)]) -> Vec<String> {
        let ports = request::Ports { http: settings.http.port, https: settings.https.port };
        let mut wrong = Vec::new();
        for row in &case.requests {
            let look = async || request::check(row, ports, self.serving.envoy(), self.backends, self.ca).await;
            if let Err(late) = eventually(&row.line, TIMEOUT, look).await {
                wrong.push(format!("  {}", late.to_string().replace('\n', "\n    ")));
            }
        }
        for (object, findings) in expected_findings(&case.golden) {
            let Some((kind, there)) = made.iter().find(|(kind, made)| name(*kind, made) == object) else { continue };
            let codes: BTreeSet<Code> = findings.iter().map(|(code, _)| *code).collect();
            let look = async || match *kind {
                kind if kind == kind::INGRESS => self.ingress_told(there, &codes).await,
                kind if HttpProxy::KINDS.contains(&kind) => self.proxy_told(kind, there, &codes).await,
                kind if kind.group() == kind::MAPPING.group() => {
                    self.emissary_told(kind, there, &findings, &codes).await
                }
                kind if kind.group() == kind::GATEWAY.group() => self.gateway_told(there, &codes).await,
                _ => Ok(()),
            };
            if let Err(late) = eventually(&object, TIMEOUT, look).await {
                wrong.push(format!("  {late}"));
            }
        }
        for (object, lines) in statuses(&case.golden) {
            let Some((kind, there)) = made.iter().find(|(kind, made)| name(*kind, made) == object) else { continue };
            let look = async || self.status_told(*kind, there, &lines).await;
            if let Err(late) = eventually(format!("the status of {object}"), TIMEOUT, look).await {
                wrong.push(format!("  {late}"));
            }
        }
        wrong
    }

    /// Whether an Ingress says where it is served, and has an event for each finding.
    async fn ingress_told(&self, ingress: &DynamicObject, codes: &BTreeSet<Code>) -> Result<(), String> {
        let namespace = ingress.namespace();
        let now = self.api(kind::INGRESS, namespace.as_deref()).get(&ingress.name_any()).await;
        let now = now.map_err(|error| error.to_string())?;
        let points = &now.data["status"]["loadBalancer"]["ingress"];
        if *points != json!([{ "ip": self.serving.address() }]) {
            return Err(format!("its status says {points}"));
        }
        self.events_told(ingress, codes).await
    }

    /// Whether a Mapping or Host says that it is in order, or one of its errors in the words of the golden part, and an object of any of
    /// Emissary's kinds has an event for each finding.
    async fn emissary_told(
        &self,
        kind: Kind,
        object: &DynamicObject,
        findings: &[(Code, String)],
        codes: &BTreeSet<Code>,
    ) -> Result<(), String> {
        let states = match kind {
            kind if kind == kind::MAPPING => Some(("Running", "Inactive", "reason")),
            kind if kind == kind::HOST => Some(("Ready", "Error", "errorReason")),
            _ => None,
        };
        if let Some((good, bad, reason)) = states {
            let now = self.api(kind, object.namespace().as_deref()).get(&object.name_any()).await;
            let status = now.map_err(|error| error.to_string())?.data["status"].take();
            let errors = findings.iter().filter(|(code, _)| code.severity() == Severity::Error);
            let errors: Vec<&String> = errors.map(|(_, line)| line).collect();
            let words = status[reason].as_str();
            let is_reason = |line: &&String| words.is_some_and(|words| words.starts_with(line.as_str()));
            let is_told = if errors.is_empty() { words.is_none() } else { errors.iter().any(is_reason) };
            if status["state"] != if errors.is_empty() { good } else { bad } || !is_told {
                return Err(format!("its status says {status}, not {errors:?}"));
            }
        }
        self.events_told(object, codes).await
    }

    /// Whether an object has an event for each finding, or, if it has more of them than there are events for one object, so many events
    /// of findings, which say how many more there are.
    async fn events_told(&self, object: &DynamicObject, codes: &BTreeSet<Code>) -> Result<(), String> {
        let words = self.events_of(object).await?;
        let is_of = |words: &String, code: &Code| words.starts_with(&code.to_string());
        if let Some(more) = words.iter().find_map(|words| more_of(words)) {
            let stray = words.iter().find(|words| !codes.iter().any(|code| is_of(words, code)));
            let untold = codes.iter().filter(|code| !words.iter().any(|words| is_of(words, code))).count();
            return match stray {
                Some(words) => Err(format!("no finding: {words}")),
                None if words.len() != EVENTS => Err(format!("{} events, not {EVENTS}: {words:?}", words.len())),
                None if more < untold => Err(format!("{untold} codes have no event, not {more}: {words:?}")),
                None => Ok(()),
            };
        }
        match codes.iter().find(|code| !words.iter().any(|words| is_of(words, code))) {
            Some(code) => Err(format!("no event says {code}: {words:?}")),
            None => Ok(()),
        }
    }

    /// Whether an object of Gateway API has an event for each finding, as far as there are events for so many. What it refers to may be
    /// made after it: there may be events about that, too. What its conditions say is in the golden part.
    async fn gateway_told(&self, object: &DynamicObject, codes: &BTreeSet<Code>) -> Result<(), String> {
        let words = self.events_of(object).await?;
        let is_told = |code: &&Code| words.iter().any(|words| words.starts_with(&code.to_string()));
        let untold: Vec<_> = codes.iter().filter(|code| !is_told(code)).collect();
        let more = words.iter().filter_map(|words| more_of(words)).max().unwrap_or_default();
        if untold.len() <= more { Ok(()) } else { Err(format!("no event says {untold:?}: {words:?}")) }
    }

    /// What the events of an object say.
    async fn events_of(&self, object: &DynamicObject) -> Result<Vec<String>, String> {
        let uid = object.uid().unwrap_or_default();
        let namespace = object.namespace();
        let events = Api::<Event>::namespaced(self.client.clone(), namespace.as_deref().unwrap_or("default"));
        let events = events.list(&ListParams::default().fields(&format!("involvedObject.uid={uid}"))).await;
        let events = events.map_err(|error| error.to_string())?;
        Ok(events.items.into_iter().filter_map(|event| event.message).collect())
    }

    /// Whether an HTTPProxy says that it is valid, or each finding in its conditions.
    async fn proxy_told(&self, kind: Kind, proxy: &DynamicObject, codes: &BTreeSet<Code>) -> Result<(), String> {
        let now = self.api(kind, proxy.namespace().as_deref()).get(&proxy.name_any()).await;
        let status = now.map_err(|error| error.to_string())?.data["status"].take();
        let is_valid = !codes.iter().any(|code| code.severity() == Severity::Error);
        let words = status.to_string();
        let told = codes.iter().filter(|code| code.severity() != Severity::Note);
        match told.map(ToString::to_string).find(|code| !words.contains(code)) {
            Some(code) => Err(format!("{code} is not said: {status:#}")),
            None if (status["currentStatus"] == "valid") != is_valid => Err(format!("it says {status:#}")),
            None => Ok(()),
        }
    }

    /// Whether the status of an object has every condition and count of the golden part.
    async fn status_told(&self, kind: Kind, object: &DynamicObject, lines: &[String]) -> Result<(), String> {
        let now = self.api(kind, object.namespace().as_deref()).get(&object.name_any()).await;
        let status = now.map_err(|error| error.to_string())?.data["status"].take();
        for line in lines {
            let (entry, words) = line.split_once(": ").unwrap_or(("", line));
            let scopes: Vec<&Value> = match entry.split_once(' ') {
                Some(("listeners", name)) => of(&status["listeners"], |listener| listener["name"] == name),
                Some((list, _)) => of(&status[list], |_| true),
                None => vec![&status],
            };
            if !scopes.iter().any(|scope| words.split(' ').all(|word| has(scope, word))) {
                return Err(format!("{line} is not said: {status:#}"));
            }
        }
        Ok(())
    }

    /// Puts an object into the API server, and its namespace.
    async fn make(&self, kind: Kind, value: &Value) -> Result<DynamicObject, String> {
        let mut object: DynamicObject = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        object.metadata.creation_timestamp = None;
        object.metadata.uid = None;
        object.metadata.resource_version = None;
        if let Some(namespace) = object.namespace() {
            let there = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            let there = serde_json::from_value(there).map_err(|error| error.to_string())?;
            match self.api(kind::NAMESPACE, None).create(&PostParams::default(), &there).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                other => drop(other.map_err(|error| error.to_string())?),
            }
        }
        let api = self.api(kind, object.namespace().as_deref());
        if kind == kind::NAMESPACE {
            let apply = PatchParams::apply("cases").force();
            let applied = api.patch(&object.name_any(), &apply, &Patch::Apply(value)).await;
            return applied.map_err(|error| error.to_string());
        }
        api.create(&PostParams::default(), &object).await.map_err(|error| match error {
            kube::Error::Api(status) => words(&status),
            other => other.to_string(),
        })
    }

    fn api(&self, kind: Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: kind.group().to_owned(),
            version: kind.version().to_owned(),
            api_version: kind.api_version(),
            kind: kind.name().to_owned(),
            plural: kind.plural().to_owned(),
        };
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }
}

fn words(status: &Status) -> String {
    status.message.lines().next().unwrap_or_default().to_owned()
}

/// How many findings of an object have no event, as one that has says at its end: `(and 3 more)`.
fn more_of(words: &str) -> Option<usize> {
    words.strip_suffix(" more)")?.rsplit_once("(and ")?.1.parse().ok()
}

fn kind_of(value: &Value) -> Option<Kind> {
    kind::of(value["apiVersion"].as_str()?, value["kind"].as_str()?)
}

/// What the golden part says of objects: `Kind namespace/name`, and the code of each finding with what a status says about it.
fn expected_findings(golden: &str) -> Vec<(String, Vec<(Code, String)>)> {
    let golden: Value = serde_saphyr::from_str(golden).unwrap_or_default();
    let verdicts = golden["verdicts"].as_object().cloned().unwrap_or_default();
    let findings =
        |list: Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).filter_map(finding).collect();
    verdicts.into_iter().map(|(object, list)| (object, findings(list))).collect()
}

/// A line of the golden part. What is about an object as a whole names no field in a status.
fn finding(line: &str) -> Option<(Code, String)> {
    let (word, rest) = line.split_once(' ')?;
    let code = Code::ALL.iter().copied().find(|code| code.to_string() == word)?;
    let line = rest.strip_prefix(": ").map_or_else(|| line.to_owned(), |message| format!("{word}: {message}"));
    Some((code, line))
}

/// What the golden part says about the status of objects: a line for each, and for each entry of a list in it.
fn statuses(golden: &str) -> Vec<(String, Vec<String>)> {
    let golden: Value = serde_saphyr::from_str(golden).unwrap_or_default();
    let statuses = golden["status"].as_object().cloned().unwrap_or_default();
    let lines = |list: Value| list.as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect();
    statuses.into_iter().map(|(object, list)| (object, lines(list))).collect()
}

fn of(list: &Value, is_it: impl Fn(&Value) -> bool) -> Vec<&Value> {
    list.as_array().into_iter().flatten().filter(|entry| is_it(entry)).collect()
}

/// Whether a status, or an entry of a list in it, has a condition `Type=Status/Reason` or a count `field=number`. The message of a condition
/// that says that something is wrong begins with its code.
fn has(scope: &Value, word: &str) -> bool {
    let Some((name, value)) = word.split_once('=') else { return false };
    match value.split_once('/') {
        Some((status, reason)) => {
            let is_wrong = status == if name == "Conflicted" { "True" } else { "False" };
            let is_coded = |one: &Value| one["message"].as_str().is_some_and(|words| words.starts_with("SES"));
            let is_it = |one: &Value| {
                one["type"] == name
                    && one["status"] == status
                    && one["reason"] == reason
                    && (!is_wrong || is_coded(one))
            };
            of(&scope["conditions"], is_it).len() == 1
        }
        None => value.parse::<i64>().is_ok_and(|number| scope[name] == number),
    }
}

/// The name of an object as verdicts have it.
fn name(kind: Kind, made: &DynamicObject) -> String {
    match made.namespace() {
        Some(namespace) => format!("{kind} {namespace}/{}", made.name_any()),
        None => format!("{kind} {}", made.name_any()),
    }
}

//! What others get from controllers and Envoys: another pod that asks them, and a tenant that aims routes at them.
//!
//! In: the addresses of all pods and nodes. Out: an error for the first answer that says more than it should. Requests are sent from
//! the network of a pod of the backend, as that pod would send them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use super::{settle, traffic};
use crate::TrafficReport;
use crate::installation::{Installation, NAMESPACE, metric_of, pod_address, served};

/// A question and the status that answers it.
type Question = (u16, &'static str, &'static str, &'static str);

/// Nobody answers.
const NOTHING: &str = "nothing";

const CONTROLLER: &[Question] = &[
    (8000, "GET", "/healthz", "200"),
    (8000, "GET", "/debug/fleets", "404"),
    (6060, "GET", "/debug/fleets", NOTHING),
    (8001, "GET", "/", NOTHING),
];

const ENVOY: &[Question] = &[
    (8002, "GET", "/ready", "200"),
    (8002, "GET", "/stats", "200"),
    (8002, "GET", "/config_dump", "404"),
    (8002, "GET", "/certs", "404"),
    (8002, "GET", "/stats/../config_dump", "404"),
    (8002, "POST", "/quitquitquit", "404"),
    (8002, "POST", "/healthcheck/fail", "404"),
    (8002, "POST", "/stats", "404"),
    (8090, "GET", "/healthz", "200"),
    (8090, "POST", "/shutdown", "405"),
    (9001, "GET", "/config_dump", NOTHING),
    (19000, "GET", "/config_dump", NOTHING),
    (15000, "GET", "/config_dump", NOTHING),
];

pub(super) async fn isolation(installation: &Installation) -> Result<TrafficReport> {
    for (app, questions) in [("sesame", CONTROLLER), ("envoy", ENVOY)] {
        for pod in installation.pods(NAMESPACE, app).await?.values() {
            let ip = pod_address(pod)?;
            installation.from_pod(async move { ask(app, ip, questions).await }).await?;
        }
    }
    let (traffic, at) = traffic(installation).await?;
    let aims = aims(installation).await?;
    let namespace = installation.cluster.namespace("tenant").await?;
    for (number, aim) in aims.iter().enumerate() {
        for object in aim.objects(&namespace, number) {
            installation.cluster.apply_yaml(&object.to_string()).await?;
        }
    }
    all_judged(installation, &namespace, &aims).await?;
    // A host of the same namespace that aims at nothing of the kind is the last to be served.
    installation.cluster.apply_yaml(&plain(&namespace, "tenant").to_string()).await?;
    known_to_all(at, "tenant.example.com").await?;
    for (number, aim) in aims.iter().enumerate() {
        for path in ["/debug/fleets", "/config_dump", "/stats", "/metrics", "/pods", "/"] {
            let client = testbed::Client::new(at).host(host(number)).timeout(Duration::from_secs(10));
            let status = client.get(path).await?.status.as_u16();
            // What is used gets the error of whoever answers there, or that nobody does.
            let is_kept_out = if aim.refused().is_some() { status == 503 } else { status >= 400 };
            let is_kept_out = is_kept_out || aim.is_documented(path);
            ensure!(is_kept_out, "a tenant's {} gets {status} for {path}", aim.about);
        }
    }
    served(at, crate::installation::HOST).await?;
    installation.kubectl(&["delete", "namespace", &namespace, "--wait=false"]).await?;
    Ok(settle(traffic).await)
}

async fn ask(app: &str, ip: IpAddr, questions: &[Question]) -> Result<()> {
    for (port, method, path, wanted) in questions {
        let client = testbed::Client::new(SocketAddr::new(ip, *port)).timeout(Duration::from_secs(5));
        let request = if *method == "POST" { client.post(path, "") } else { client.get(path) };
        let found = request.await.map_or_else(|_| NOTHING.to_owned(), |answer| answer.status.as_u16().to_string());
        ensure!(found == *wanted, "port {port} of a pod of {app} answers {method} {path} with {found}");
    }
    Ok(())
}

/// A Service of a tenant that leads where it should not.
struct Aim {
    about: &'static str,
    /// The name that an ExternalName has.
    external: Option<&'static str>,
    /// The type and the address of an EndpointSlice.
    endpoint: Option<(&'static str, String)>,
    port: u16,
}

/// What a tenant gets of the metrics of controllers and Envoys by an EndpointSlice, as docs/security-model.md says: port and path.
const METRICS: [(u16, &str); 2] = [(8000, "/metrics"), (8002, "/stats")];

/// Controllers' debug pages, Envoy's admin interface and its neighbours on loopback, and what listens on nodes in plain text.
async fn aims(installation: &Installation) -> Result<Vec<Aim>> {
    let external = |about, name, port| Aim { about, external: Some(name), endpoint: None, port };
    let slice = |about, kind, address: &str, port| Aim {
        about,
        external: None,
        endpoint: Some((kind, address.to_owned())),
        port,
    };
    let mut aims = vec![
        external("ExternalName for Envoy's loopback", "localhost", 9001),
        external("ExternalName for the controllers", "sesame.projectsesame.svc.cluster.local", 8000),
        slice("EndpointSlice for Envoy's loopback", "FQDN", "127.0.0.1", 9001),
        slice("EndpointSlice for the stats of its own Envoy", "FQDN", "127.0.0.1", 8002),
        slice("EndpointSlice for the metadata of a cloud", "FQDN", "169.254.169.254", 80),
        slice("EndpointSlice for Envoy's loopback by name", "FQDN", "localhost.localdomain", 8002),
    ];
    for pod in installation.pods(NAMESPACE, "sesame").await?.values() {
        let ip = pod_address(pod)?.to_string();
        aims.push(slice("EndpointSlice for a controller's debug pages", "IPv4", &ip, 6060));
        aims.push(slice("EndpointSlice for a controller's xDS port", "IPv4", &ip, 8001));
        aims.push(slice("EndpointSlice for a controller's health and metrics", "IPv4", &ip, 8000));
    }
    for pod in installation.pods(NAMESPACE, "envoy").await?.values() {
        let ip = pod_address(pod)?.to_string();
        aims.push(slice("EndpointSlice for an Envoy's admin interface", "IPv4", &ip, 9001));
        aims.push(slice("EndpointSlice for an Envoy's readiness and metrics", "IPv4", &ip, 8002));
    }
    for node in Api::<Node>::all(installation.cluster.client()?).list(&ListParams::default()).await? {
        let addresses = node.status.and_then(|status| status.addresses).unwrap_or_default();
        for address in addresses.iter().filter(|address| address.type_ == "InternalIP") {
            // The kubelet and the health of kube-proxy: of TLS, and on loopback.
            aims.push(slice("EndpointSlice for a kubelet", "IPv4", &address.address, 10250));
            aims.push(slice("EndpointSlice for the metrics of kube-proxy", "IPv4", &address.address, 10249));
        }
    }
    Ok(aims)
}

fn name(number: usize) -> String {
    format!("aim-{number}")
}

fn host(number: usize) -> String {
    format!("{}.example.com", name(number))
}

impl Aim {
    /// The kind and the code of what is reported where its address is not used.
    fn refused(&self) -> Option<(&'static str, &'static str)> {
        match (self.external, &self.endpoint) {
            (Some(_), _) => Some(EXTERNAL_NAME),
            (None, Some(("FQDN", _))) => Some(SLICE),
            (None, _) => None,
        }
    }

    /// Whether the path leads to metrics, and the address to who has them: an address does not say whose it is.
    fn is_documented(&self, path: &str) -> bool {
        self.refused().is_none() && METRICS.contains(&(self.port, path))
    }

    fn objects(&self, namespace: &str, number: usize) -> Vec<Value> {
        let name = name(number);
        let mut service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": namespace },
            "spec": { "ports": [{ "name": "http", "port": self.port }] } });
        if let Some(external) = self.external {
            service["spec"]["type"] = "ExternalName".into();
            service["spec"]["externalName"] = external.into();
        }
        let slice = self.endpoint.as_ref().map(|(kind, address)| {
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": kind,
                "metadata": { "name": name, "namespace": namespace, "labels": { "kubernetes.io/service-name": name } },
                "ports": [{ "name": "http", "port": self.port }],
                "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }] })
        });
        let proxy = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "virtualhost": { "fqdn": host(number) },
                "routes": [{ "services": [{ "name": name, "port": self.port }] }] } });
        [service].into_iter().chain(slice).chain([proxy]).collect()
    }
}

/// The verdict on an HTTPProxy whose Service is of type ExternalName, on an EndpointSlice of names, and on an HTTPProxy without endpoints.
const EXTERNAL_NAME: (&str, &str) = ("HTTPProxy", "SES3004");
const SLICE: (&str, &str) = ("EndpointSlice", "SES3011");
const NO_ENDPOINTS: (&str, &str) = ("HTTPProxy", "SES3007");

/// Waits until every controller has all of the objects: it reports each that is refused, and that only the Services of refused slices have
/// no endpoint.
async fn all_judged(installation: &Installation, namespace: &str, aims: &[Aim]) -> Result<()> {
    let count = |verdict| aims.iter().filter(|aim| aim.refused() == Some(verdict)).count();
    let wanted = [(EXTERNAL_NAME, count(EXTERNAL_NAME)), (SLICE, count(SLICE)), (NO_ENDPOINTS, count(SLICE))];
    let look = async || {
        let pods = installation.pods(NAMESPACE, "sesame").await.map_err(|error| error.to_string())?;
        for (name, pod) in pods {
            for ((kind, code), wanted) in wanted {
                let labels = format!("namespace=\"{namespace}\",kind=\"{kind}\",code=\"{code}\"");
                let found = metric_of(&pod, "sesame_object_verdicts", |line| line.contains(&labels)).await;
                let found = found.map_err(|error| error.to_string())?;
                if found != wanted as f64 {
                    return Err(format!("{name} has {found} times {code} on a {kind}, and not {wanted}"));
                }
            }
        }
        Ok(())
    };
    Ok(testbed::eventually("verdicts on all that a tenant aims", crate::installation::LIMIT, look).await?)
}

/// A host that answers with a status of its own.
fn plain(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name, "namespace": namespace },
        "spec": { "virtualhost": { "fqdn": format!("{name}.example.com") },
            "routes": [{ "directResponsePolicy": { "statusCode": 418 } }] } })
}

/// Waits until all proxies know the host of [`plain`].
async fn known_to_all(at: SocketAddr, host: &str) -> Result<()> {
    let look = async || {
        for _ in 0..20 {
            match testbed::Client::new(at).host(host).get("/").await {
                Ok(answer) if answer.status == 418 => {}
                Ok(answer) => return Err(answer.status.to_string()),
                Err(failure) => return Err(failure.to_string()),
            }
        }
        Ok(())
    };
    Ok(testbed::eventually(format!("{host} to be served"), crate::installation::LIMIT, look).await?)
}

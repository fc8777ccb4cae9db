//! Fleets on a real API server: what is created, changed in place, refused in words, and deleted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, Service, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use model::{Code, FleetName};
use provision::{FleetSpec, FleetStatus, Fleets, Owner, Port, Settings, Statuses, Transport, XdsAddress, name};
use serde_json::json;
use status::Leadership;
use testbed::ApiServer;
use tokio_util::task::AbortOnDropHandle;

const LIMIT: Duration = Duration::from_secs(60);

/// A provisioner that runs.
struct Running {
    fleets: Fleets,
    statuses: Statuses,
    known: BTreeMap<FleetName, Option<FleetStatus>>,
    _task: AbortOnDropHandle<()>,
}

impl Running {
    /// One whose objects are told from those of other tests by the namespace of the installation.
    fn start(client: Client, namespaces: &[&str], installation: &str) -> Running {
        let settings = Settings {
            envoy_image: "envoy:1".to_owned(),
            sesame_image: "sesame:1".to_owned(),
            xds: XdsAddress { host: "sesame.projectsesame.svc".to_owned(), port: 8001, ca: None },
            namespace: installation.to_owned(),
            namespaces: namespaces.iter().map(|it| (*it).to_owned()).collect(),
            manager: "sesame".to_owned(),
            replicas: 1,
        };
        let (fleets, statuses, task) = provision::channel(client, settings, Leadership::always());
        let _task = AbortOnDropHandle::new(tokio::spawn(task.run()));
        Running { fleets, statuses, known: BTreeMap::new(), _task }
    }

    /// Waits until a fleet is doing so.
    async fn until(&mut self, name: &FleetName, what: &str, is: impl Fn(Option<&FleetStatus>) -> bool) {
        let waiting = async {
            while !self.known.get(name).is_some_and(|status| is(status.as_ref())) {
                let (name, status) = self.statuses.recv().await.unwrap();
                self.known.insert(name, status);
            }
        };
        let late = tokio::time::timeout(LIMIT, waiting).await.is_err();
        assert!(!late, "waited in vain for {what}: {:?}", self.known);
    }

    async fn problem(&mut self, name: &FleetName, code: Code) -> String {
        let has =
            |status: Option<&FleetStatus>| status.and_then(|it| it.problem.clone()).is_some_and(|it| it.code == code);
        self.until(name, &code.to_string(), has).await;
        self.known[name].clone().unwrap().problem.unwrap().message
    }
}

fn spec(namespace: &str, gateway: &str, ports: &[(u16, Transport)]) -> FleetSpec {
    let owner = Owner {
        api_version: "gateway.networking.k8s.io/v1".to_owned(),
        kind: "Gateway".to_owned(),
        uid: "9f3c5b0e-0000-4000-8000-000000000001".to_owned(),
    };
    FleetSpec {
        name: FleetName::new(namespace, gateway),
        owner,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        ports: ports.iter().map(|(port, transport)| Port { port: *port, transport: *transport }).collect(),
        address: None,
    }
}

fn object_name(spec: &FleetSpec) -> String {
    name::of(&spec.name, &spec.owner.uid)
}

async fn until<T>(what: &str, probe: impl AsyncFn() -> Option<T>) -> T {
    testbed::eventually(what, LIMIT, async || probe().await.ok_or("not yet")).await.unwrap()
}

async fn service_with_ports(api: &Api<Service>, name: &str, ports: &[(i32, &str)]) -> Service {
    let has = |service: &Service| {
        let all = service.spec.clone().unwrap_or_default().ports.unwrap_or_default();
        let mut all: Vec<_> = all.into_iter().map(|port| (port.port, port.protocol.unwrap())).collect();
        all.sort();
        all.iter().map(|(port, protocol)| (*port, protocol.as_str())).eq(ports.iter().copied())
    };
    until(&format!("ports {ports:?}"), async || api.get_opt(name).await.unwrap().filter(|it| has(it))).await
}

#[tokio::test]
async fn a_fleet_is_created_changed_in_place_and_deleted() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("fleet").await.unwrap();
    let client = api.client().unwrap();
    let mut running = Running::start(client.clone(), &[], &namespace);
    let (services, deployments, accounts) = (
        Api::<Service>::namespaced(client.clone(), &namespace),
        Api::<Deployment>::namespaced(client.clone(), &namespace),
        Api::<ServiceAccount>::namespaced(client.clone(), &namespace),
    );
    let edge = spec(&namespace, "edge", &[(80, Transport::Tcp), (53, Transport::Udp), (53, Transport::Tcp)]);
    let name = object_name(&edge);
    running.fleets.put(edge.clone());
    running.fleets.synced();
    service_with_ports(&services, &name, &[(53, "TCP"), (53, "UDP"), (80, "TCP")]).await;
    let deployment = deployments.get(&name).await.unwrap();
    let account = accounts.get(&name).await.unwrap();
    for (labels, owners) in
        [(deployment.labels(), deployment.owner_references()), (account.labels(), account.owner_references())]
    {
        assert_eq!(labels["gateway.networking.k8s.io/gateway-name"], "edge");
        assert_eq!(owners[0].uid, edge.owner.uid);
    }
    let manager = |it: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| it.manager.clone().unwrap();
    assert!(deployment.managed_fields().iter().all(|it| manager(it) == "sesame"));

    // Other ports are the Service's alone: the pods are not restarted, and what is not there any more is gone.
    let mut moved = spec(&namespace, "edge", &[(8080, Transport::Tcp), (53, Transport::Udp)]);
    running.fleets.put(moved.clone());
    service_with_ports(&services, &name, &[(53, "UDP"), (8080, "TCP")]).await;
    let same = deployments.get(&name).await.unwrap();
    assert_eq!(same.resource_version(), deployment.resource_version());

    // Labels of the infrastructure are on pods, too.
    moved.labels.insert("team".to_owned(), "shop".to_owned());
    running.fleets.put(moved.clone());
    let labelled = until("the label", async || {
        let it = deployments.get(&name).await.unwrap();
        it.labels().contains_key("team").then_some(it)
    });
    let labelled = labelled.await;
    let template = labelled.spec.unwrap().template;
    assert_eq!(template.metadata.unwrap().labels.unwrap()["team"], "shop");

    // What somebody deletes or changes comes back.
    deployments.delete(&name, &DeleteParams::default()).await.unwrap();
    let uid = labelled.metadata.uid;
    until("another Deployment", async || deployments.get_opt(&name).await.unwrap().filter(|it| it.metadata.uid != uid))
        .await;
    let patch = Patch::Merge(json!({ "spec": { "externalTrafficPolicy": "Cluster" } }));
    services.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    let local = |it: &Service| it.spec.as_ref().unwrap().external_traffic_policy.as_deref() == Some("Local");
    until("the policy", async || services.get_opt(&name).await.unwrap().filter(|it| local(it))).await;

    // Its address and its proxies make it ready.
    let ingress = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7", "ipMode": "VIP" }] } } });
    services.patch_status(&name, &PatchParams::default(), &Patch::Merge(ingress)).await.unwrap();
    let ready = json!({ "status": { "replicas": 1, "readyReplicas": 1 } });
    deployments.patch_status(&name, &PatchParams::default(), &Patch::Merge(ready)).await.unwrap();
    running.until(&edge.name, "ready", |status| status.is_some_and(FleetStatus::is_ready)).await;

    running.fleets.remove(&edge.name);
    until("the end", async || {
        let gone = services.get_opt(&name).await.unwrap().is_none()
            && deployments.get_opt(&name).await.unwrap().is_none()
            && accounts.get_opt(&name).await.unwrap().is_none();
        gone.then_some(())
    })
    .await;
    running.until(&edge.name, "nothing to say", |status| status.is_none()).await;
}

#[tokio::test]
async fn names_of_253_characters_are_served() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("long").await.unwrap();
    let running = Running::start(api.client().unwrap(), &[], &namespace);
    let long = format!("0.{}", "a".repeat(251));
    let specs =
        [long.clone(), format!("{}b", &long[..252])].map(|name| spec(&namespace, &name, &[(80, Transport::Tcp)]));
    for spec in &specs {
        running.fleets.put(spec.clone());
    }
    let services = Api::<Service>::namespaced(api.client().unwrap(), &namespace);
    let deployments = Api::<Deployment>::namespaced(api.client().unwrap(), &namespace);
    for spec in &specs {
        let name = object_name(spec);
        service_with_ports(&services, &name, &[(80, "TCP")]).await;
        let template = deployments.get(&name).await.unwrap().spec.unwrap().template;
        let command = template.spec.unwrap().init_containers.unwrap()[0].command.clone().unwrap();
        assert!(command.contains(&format!("--fleet={}", spec.name)));
    }
}

#[tokio::test]
async fn an_object_of_somebody_else_is_left_alone() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("foreign").await.unwrap();
    let client = api.client().unwrap();
    let edge = spec(&namespace, "edge", &[(80, Transport::Tcp)]);
    let name = object_name(&edge);
    let services = Api::<Service>::namespaced(client.clone(), &namespace);
    let foreign = json!({ "metadata": { "name": name }, "spec": { "ports": [{ "port": 1 }] } });
    let foreign = services.create(&PostParams::default(), &serde_json::from_value(foreign).unwrap()).await.unwrap();
    let mut running = Running::start(client.clone(), &[], &namespace);
    running.fleets.put(edge.clone());
    running.fleets.synced();
    let message = running.problem(&edge.name, Code::FleetNameTaken).await;
    assert_eq!(
        message,
        format!("Service {namespace}/{name} exists and does not belong to the Gateway; it is left alone")
    );
    assert_eq!(services.get(&name).await.unwrap().resource_version(), foreign.resource_version());
    // It is not deleted either; once it is gone, ours is made.
    services.delete(&name, &DeleteParams::default()).await.unwrap();
    service_with_ports(&services, &name, &[(80, "TCP")]).await;
    running.until(&edge.name, "no problem", |status| status.is_some_and(|it| it.problem.is_none())).await;
}

/// The rights of a namespace, each by group and resource.
async fn grant(api: &ApiServer, namespace: &str, user: &str, rules: serde_json::Value) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "provisioner", "namespace": namespace }, "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": "provisioner", "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "provisioner" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    api.apply(&format!("{role}\n---\n{binding}")).await.unwrap();
}

#[tokio::test]
async fn a_missing_right_is_told_in_words_and_costs_nobody_else() {
    let api = ApiServer::shared().await.unwrap();
    let (poor, rich) = (api.namespace("poor").await.unwrap(), api.namespace("rich").await.unwrap());
    let verbs = json!(["get", "list", "watch", "create", "patch", "delete"]);
    let all = |services: &serde_json::Value| {
        json!([
            { "apiGroups": [""], "resources": ["serviceaccounts"], "verbs": verbs },
            { "apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs },
            { "apiGroups": [""], "resources": ["services"], "verbs": services },
        ])
    };
    let user = format!("provisioner-of-{poor}");
    grant(api, &poor, &user, all(&json!(["get", "list", "watch"]))).await;
    grant(api, &rich, &user, all(&verbs)).await;
    let mut running = Running::start(api.client_as(&user, &[]).unwrap(), &[&poor, &rich], &poor);
    let (of_poor, of_rich) =
        (spec(&poor, "edge", &[(80, Transport::Tcp)]), spec(&rich, "edge", &[(80, Transport::Tcp)]));
    running.fleets.put(of_poor.clone());
    running.fleets.put(of_rich.clone());
    running.fleets.synced();
    let services = |namespace: &str| Api::<Service>::namespaced(api.client().unwrap(), namespace);
    service_with_ports(&services(&rich), &object_name(&of_rich), &[(80, "TCP")]).await;
    let message = running.problem(&of_poor.name, Code::FleetForbidden).await;
    let expected = format!("cannot apply Service {poor}/{}: ", object_name(&of_poor));
    assert!(message.starts_with(&expected) && message.contains("cannot patch resource"), "{message}");
    running.until(&of_rich.name, "no problem", |status| status.is_some_and(|it| it.problem.is_none())).await;
    // To create by applying needs both rights.
    grant(api, &poor, &user, all(&json!(["get", "list", "watch", "patch", "delete"]))).await;
    let lacks = |status: Option<&FleetStatus>| {
        let problem = status.and_then(|status| status.problem.as_ref());
        problem.is_some_and(|problem| problem.message.contains("cannot create resource"))
    };
    running.until(&of_poor.name, "the other right to be missing", lacks).await;
    grant(api, &poor, &user, all(&verbs)).await;
    service_with_ports(&services(&poor), &object_name(&of_poor), &[(80, "TCP")]).await;
    running.until(&of_poor.name, "no problem", |status| status.is_some_and(|it| it.problem.is_none())).await;
}

#[tokio::test]
async fn without_the_right_to_watch_every_fleet_says_so() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("blind").await.unwrap();
    let mut running = Running::start(api.client_as("nobody-at-all", &[]).unwrap(), &[], &namespace);
    let edge = spec(&namespace, "edge", &[(80, Transport::Tcp)]);
    running.fleets.put(edge.clone());
    let message = running.problem(&edge.name, Code::FleetForbidden).await;
    assert!(message.starts_with("cannot list and watch the objects of kind "), "{message}");
}

#[tokio::test]
async fn a_quota_is_told_in_words_and_other_gateways_have_their_proxies() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("quota").await.unwrap();
    let elsewhere = api.namespace("no-quota").await.unwrap();
    let client = api.client().unwrap();
    let quotas = Api::<ResourceQuota>::namespaced(client.clone(), &namespace);
    let hard = json!({ "services": "0" });
    let quota = json!({ "metadata": { "name": "none" }, "spec": { "hard": hard } });
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    // What the controller of quotas would write.
    let status = json!({ "status": { "hard": hard, "used": { "services": "0" } } });
    quotas.patch_status("none", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let mut running = Running::start(client.clone(), &[], &namespace);
    let edge = spec(&namespace, "edge", &[(80, Transport::Tcp)]);
    running.fleets.put(edge.clone());
    let message = running.problem(&edge.name, Code::FleetQuota).await;
    assert!(message.contains("exceeded quota: none"), "{message}");

    // One of another namespace has all that it needs, and nothing is said about it.
    let other = spec(&elsewhere, "edge", &[(80, Transport::Tcp)]);
    running.fleets.put(other.clone());
    let services = Api::<Service>::namespaced(client.clone(), &elsewhere);
    service_with_ports(&services, &object_name(&other), &[(80, "TCP")]).await;
    let deployments = Api::<Deployment>::namespaced(client, &elsewhere);
    until("the Deployment", async || deployments.get_opt(&object_name(&other)).await.unwrap()).await;
    running.until(&other.name, "no problem", |status| status.is_some_and(|it| it.problem.is_none())).await;
    let of_edge = running.known[&edge.name].clone().and_then(|status| status.problem);
    assert_eq!(of_edge.map(|problem| problem.code), Some(Code::FleetQuota));
}

/// What an earlier leader made for Gateways that are gone meanwhile; the objects of another installation are not ours.
#[tokio::test]
async fn what_belongs_to_no_gateway_is_deleted_and_nothing_else() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("stale").await.unwrap();
    let client = api.client().unwrap();
    let services = Api::<Service>::namespaced(client.clone(), &namespace);
    let mut specs = ["ours", "theirs"].map(|name| spec(&namespace, name, &[(80, Transport::Tcp)]));
    for (spec, installation) in specs.iter().zip([namespace.clone(), format!("{namespace}-other")]) {
        let earlier = Running::start(client.clone(), &[], &installation);
        earlier.fleets.put(spec.clone());
        service_with_ports(&services, &object_name(spec), &[(80, "TCP")]).await;
    }
    let running = Running::start(client.clone(), &[], &namespace);
    let [ours, theirs] = &mut specs;
    let new = spec(&namespace, "new", &[(80, Transport::Tcp)]);
    running.fleets.put(new.clone());
    service_with_ports(&services, &object_name(&new), &[(80, "TCP")]).await;
    assert!(services.get_opt(&object_name(ours)).await.unwrap().is_some(), "not before all fleets are known");
    running.fleets.synced();
    until("the old one to go", async || services.get_opt(&object_name(ours)).await.unwrap().is_none().then_some(()))
        .await;
    assert!(services.get_opt(&object_name(theirs)).await.unwrap().is_some());
}

/// The API server itself says that the pods keep to the strictest standard, low ports included.
#[tokio::test]
async fn pods_are_allowed_under_the_restricted_standard() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("restricted").await.unwrap();
    let client = api.client().unwrap();
    let enforce = json!({ "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "restricted" } } });
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
    namespaces.patch(&namespace, &PatchParams::default(), &Patch::Merge(enforce)).await.unwrap();
    let running = Running::start(client.clone(), &[], &namespace);
    let edge = spec(&namespace, "edge", &[(80, Transport::Tcp)]);
    running.fleets.put(edge.clone());
    let deployments = Api::<Deployment>::namespaced(client.clone(), &namespace);
    let deployment = until("the Deployment", async || deployments.get_opt(&object_name(&edge)).await.unwrap()).await;
    let template = deployment.spec.unwrap().template;
    let mut pod = Pod { metadata: template.metadata.unwrap(), spec: template.spec, ..Pod::default() };
    pod.metadata.name = Some("probe".to_owned());
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let rehearsal = PostParams { dry_run: true, ..PostParams::default() };
    pods.create(&rehearsal, &pod).await.unwrap();
    let mut root = pod.clone();
    root.spec.as_mut().unwrap().security_context = None;
    assert!(pods.create(&rehearsal, &root).await.is_err(), "the standard is enforced");
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}

//! A Gateway with proxies of its own: created by the leader, bootstrapped as their Deployment says, known by their tokens, told of
//! in the Gateway's status, and gone with it.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{PodSpec, Service, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testbed::{Client, Envoy, Net, eventually};

use crate::bed::{ADDRESS, Bed, Replica, TIMEOUT, sesame};

pub const CLASS: &str = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: sesame}\n\
                     spec: {controllerName: projectsesame.io/gateway-controller}\n";

/// A Gateway of that class with a listener for HTTP, as YAML.
pub fn gateway(namespace: &str, name: &str, port: u16) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec:\n  gatewayClassName: sesame\n  infrastructure: {{labels: {{team: shop}}}}\n  \
         listeners: [{{name: http, port: {port}, protocol: HTTP}}]\n"
    )
}

/// How long what was created for a Gateway may outlive it.
const GONE: Duration = Duration::from_secs(30);

/// The objects of one Gateway.
pub struct Fleet {
    gateways: Api<DynamicObject>,
    deployments: Api<Deployment>,
    services: Api<Service>,
    accounts: Api<ServiceAccount>,
    gateway: String,
}

impl Fleet {
    pub fn new(bed: &Bed, namespace: &str, gateway: &str) -> Fleet {
        let client = bed.api.client().unwrap();
        let kind = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "Gateway");
        let resource = ApiResource::from_gvk_with_plural(&kind, "gateways");
        Fleet {
            gateways: Api::namespaced_with(client.clone(), namespace, &resource),
            deployments: Api::namespaced(client.clone(), namespace),
            services: Api::namespaced(client.clone(), namespace),
            accounts: Api::namespaced(client, namespace),
            gateway: gateway.to_owned(),
        }
    }

    fn of_gateway(&self) -> ListParams {
        ListParams::default().labels(&format!("gateway.networking.k8s.io/gateway-name={}", self.gateway))
    }

    /// Its Service, once it has this port. It is written after the Deployment.
    pub async fn service(&self, port: i32) -> Service {
        let found = async || {
            let all = self.services.list(&self.of_gateway()).await.unwrap().items;
            let has = |it: &Service| it.spec.as_ref().unwrap().ports.as_ref().unwrap().iter().any(|it| it.port == port);
            all.into_iter().find(has).ok_or("no such Service")
        };
        eventually(format!("a Service with port {port}"), TIMEOUT, found).await.unwrap()
    }

    /// Gives the Service the address that a cloud would.
    async fn balance(&self, service: &Service, ip: &str) {
        let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ip, "ipMode": "VIP" }] } } });
        let name = service.metadata.name.as_ref().unwrap();
        self.services.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Says what the controller of Deployments would once the readiness probe of a proxy succeeds.
    async fn is_ready(&self) {
        let deployment = self.deployments.list(&self.of_gateway()).await.unwrap().items.remove(0);
        let status = json!({ "status": { "replicas": 1, "readyReplicas": 1 } });
        let name = deployment.metadata.name.unwrap();
        self.deployments.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// The pods of its Deployment.
    async fn pod(&self) -> PodSpec {
        let deployment = self.deployments.list(&self.of_gateway()).await.unwrap().items.remove(0);
        deployment.spec.unwrap().template.spec.unwrap()
    }

    /// The CAs (PEM) that its pods are given to know the xDS server by.
    pub async fn cas(&self) -> String {
        let init = self.pod().await.init_containers.unwrap().remove(0);
        init.env.unwrap().into_iter().find(|variable| variable.name == "ENVOY_CA").unwrap().value.unwrap()
    }

    /// Runs Envoy here, from its [bootstrap](Self::bootstrap).
    pub async fn envoy(&self, bed: &Bed) -> Envoy {
        Envoy::config().launch(self.bootstrap(bed).await).await.unwrap()
    }

    /// Runs the init container of the Deployment here, with a token as the kubelet would project it.
    pub async fn bootstrap(&self, bed: &Bed) -> String {
        let pod = self.pod().await;
        let volumes = serde_json::to_value(&pod.volumes).unwrap();
        let token = volumes.as_array().unwrap().iter().find(|volume| volume["name"] == "token").unwrap();
        let audience = &token["projected"]["sources"][0]["serviceAccountToken"]["audience"];
        let spec = TokenRequestSpec { audiences: vec![audience.as_str().unwrap().to_owned()], ..Default::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let account = pod.service_account_name.unwrap();
        let token = self.accounts.create_token_request(&account, &PostParams::default(), &request).await.unwrap();
        let folder = tempfile::tempdir().unwrap().keep();
        std::fs::create_dir(folder.join("token")).unwrap();
        std::fs::write(folder.join("token/token"), token.status.unwrap().token).unwrap();
        let here = |word: &str| {
            word.replace("/var/run/secrets/projectsesame.io", &folder.join("token").display().to_string())
                .replace("/bootstrap", &folder.display().to_string())
                .replace("/admin/", &format!("{}/", folder.display()))
        };
        let init = pod.init_containers.unwrap().remove(0);
        // What the Deployment gives Envoy on its command line.
        let command = sesame().env("SESAME_NODE_ID", "edge-0").env("SESAME_NODE_CLUSTER", "shop");
        let variables = init.env.unwrap().into_iter();
        let command = variables.fold(command, |command, variable| command.env(&variable.name, variable.value.unwrap()));
        let words = init.command.unwrap();
        assert_eq!(words[0], "sesame");
        let command = words[1..].iter().fold(command, |command, word| command.arg(here(word)));
        let written = command.start_in(bed.state()).unwrap();
        assert!(written.exited().await.unwrap().success(), "{}", written.log().text());
        std::fs::read_to_string(folder.join("envoy.json")).unwrap()
    }

    async fn expect_status(&self, what: &str, replica: &Replica, is: impl Fn(&Value) -> bool) -> Value {
        let look = async || match self.gateways.get(&self.gateway).await.unwrap().data["status"].take() {
            status if is(&status) => Ok(status),
            status => Err(format!("{status:#}")),
        };
        replica.process.expect_ok(what, TIMEOUT, look).await.unwrap()
    }
}

/// Whether a condition of a status holds, and why.
fn condition<'s>(status: &'s Value, name: &str) -> (&'s str, &'s str) {
    let all = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = all.iter().find(|it| it["type"] == name);
    found.map_or(("", ""), |it| (it["status"].as_str().unwrap(), it["reason"].as_str().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_has_proxies_of_its_own_for_as_long_as_it_exists() {
    let bed = Bed::start().await;
    bed.api.install([parts::folder("gateway-api-crds").unwrap().join("standard")]).await.unwrap();
    let namespace = bed.api.namespace("shop").await.unwrap();
    bed.api.apply(&format!("{CLASS}---\n{}", gateway(&namespace, "edge", 7080))).await.unwrap();
    let address = Net::here().unwrap().address();
    let flags = [("fleet-xds-address", &*address.to_string()), ("fleet-replicas", "1")];
    let replica = bed.replica_at("sesame-0", address, &flags).await.ready().await;

    let fleet = Fleet::new(&bed, &namespace, "edge");
    let service = fleet.service(7080).await;
    assert_eq!(service.metadata.labels.as_ref().unwrap()["team"], "shop");
    let waiting = |status: &Value| condition(status, "Programmed") == ("False", "AddressNotAssigned");
    fleet.expect_status("the word that there is no address", &replica, waiting).await;
    fleet.balance(&service, "192.0.2.99").await;
    let pending = |status: &Value| condition(status, "Programmed") == ("False", "Pending");
    let status = fleet.expect_status("the word that there is no proxy", &replica, pending).await;
    assert_eq!(condition(&status, "Accepted"), ("True", "Accepted"));
    assert_eq!(status["addresses"], json!([{ "type": "IPAddress", "value": "192.0.2.99" }]));

    // The proxies of this fleet alone program it: it is known by its token, and has nothing of the shared fleet's.
    let envoy = fleet.envoy(&bed).await;
    fleet.is_ready().await;
    let programmed = |status: &Value| condition(status, "Programmed") == ("True", "Programmed");
    fleet.expect_status("the word that it is programmed", &replica, programmed).await;
    let answer = Client::new(([127, 0, 0, 1], 7080).into()).host("any.example.com").get("/").await.unwrap();
    assert_eq!(answer.status.as_u16(), 404, "it listens where the Gateway says");
    let ready = Client::new(([127, 0, 0, 1], 19001).into()).get("/ready").await.unwrap();
    assert_eq!(ready.status.as_u16(), 200, "the page of the readiness probe");
    let listeners = envoy.admin().listeners().await.unwrap().to_string();
    assert!(!listeners.contains("ingress_http"), "{listeners}");

    // Another port is another listener and another port of the Service; the pods stay.
    let before = fleet.deployments.list(&fleet.of_gateway()).await.unwrap().items.remove(0);
    bed.api.apply(&gateway(&namespace, "edge", 7081)).await.unwrap();
    let moved = fleet.service(7081).await;
    assert_eq!(moved.metadata.uid, service.metadata.uid);
    let after = fleet.deployments.list(&fleet.of_gateway()).await.unwrap().items.remove(0);
    assert_eq!(after.metadata.generation, before.metadata.generation);
    let moved = async || {
        let answer = Client::new(([127, 0, 0, 1], 7081).into()).host("any.example.com").get("/").await;
        answer.map(|_| ()).map_err(|failure| failure.to_string())
    };
    eventually("the other port", TIMEOUT, moved).await.unwrap();

    fleet.gateways.delete("edge", &DeleteParams::default()).await.unwrap();
    let gone = async || {
        let left = fleet.deployments.list(&fleet.of_gateway()).await.unwrap().items.len()
            + fleet.services.list(&fleet.of_gateway()).await.unwrap().items.len()
            + fleet.accounts.list(&fleet.of_gateway()).await.unwrap().items.len();
        if left == 0 { Ok(()) } else { Err(left) }
    };
    eventually("everything to go", GONE, gone).await.unwrap();
    let cut = async || {
        let answer = Client::new((replica.address, 6060).into()).get("/debug/fleets").await.unwrap();
        let fleets = String::from_utf8_lossy(&answer.body).into_owned();
        if fleets.contains(&format!("{namespace}/edge")) { Err(fleets) } else { Ok(()) }
    };
    eventually("the fleet to be removed", TIMEOUT, cut).await.unwrap();
}

/// A replica that does not lead serves the proxies of a Gateway from the Gateway: it neither creates them nor reads what was created.
/// What they have acknowledged there, the leader tells.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_does_not_lead_serves_the_proxies_of_a_gateway() {
    let bed = Bed::start().await;
    bed.api.install([parts::folder("gateway-api-crds").unwrap().join("standard")]).await.unwrap();
    let namespace = bed.api.namespace("shop").await.unwrap();
    bed.api.apply(&format!("{CLASS}---\n{}", gateway(&namespace, "edge", 7080))).await.unwrap();
    let (one, two) = (Net::here().unwrap().address(), Net::here().unwrap().address());
    let flags = [("fleet-xds-address", &*two.to_string()), ("fleet-replicas", "1")];
    let leader = bed.replica_at("sesame-0", one, &flags).await.ready().await;
    leader.expect_metric("sesame_leader", "", |leads| leads == 1.0).await;
    let second = bed.replica_at("sesame-1", two, &flags).await.ready().await;
    second.expect_metric("sesame_leader", "", |leads| leads == 0.0).await;

    let fleet = Fleet::new(&bed, &namespace, "edge");
    let service = fleet.service(7080).await;
    fleet.balance(&service, "192.0.2.99").await;
    let _envoy = fleet.envoy(&bed).await;
    let answers = async |port: u16| {
        let answer = Client::new(([127, 0, 0, 1], port).into()).host("any.example.com").get("/").await;
        answer.map(|_| ()).map_err(|failure| failure.to_string())
    };
    eventually("its listener", TIMEOUT, async || answers(7080).await).await.unwrap();
    fleet.is_ready().await;
    let programmed = |status: &Value| condition(status, "Programmed") == ("True", "Programmed");
    fleet.expect_status("the word that it is programmed", &leader, programmed).await;
    bed.api.apply(&gateway(&namespace, "edge", 7081)).await.unwrap();
    eventually("its other listener", TIMEOUT, async || answers(7081).await).await.unwrap();
    second.expect_metric("sesame_leader", "", |leads| leads == 0.0).await;
}

/// The Gateway that the configuration names is on the shared fleet, whatever its class, with its ports moved as Contour does; one of
/// the class beside it has proxies of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_bound_to_the_shared_fleet_beside_one_with_proxies_of_its_own() {
    let bed = Bed::start().await;
    bed.api.install([parts::folder("gateway-api-crds").unwrap().join("standard")]).await.unwrap();
    let namespace = bed.api.namespace("shop").await.unwrap();
    let bound = gateway(&namespace, "bound", 9080).replace("gatewayClassName: sesame", "gatewayClassName: none");
    bed.api.apply(&format!("{CLASS}---\n{bound}---\n{}", gateway(&namespace, "edge", 7080))).await.unwrap();
    let config = bed.state().path().join("sesame.yaml");
    std::fs::write(&config, format!("gateway: {{gatewayRef: {{namespace: {namespace}, name: bound}}}}\n")).unwrap();
    let address = Net::here().unwrap().address();
    let flags = [("fleet-xds-address", &*address.to_string()), ("config-path", config.to_str().unwrap())];
    let replica = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    let _envoy = bed.envoy(replica.xds()).await;

    let (shared, own) = (Fleet::new(&bed, &namespace, "bound"), Fleet::new(&bed, &namespace, "edge"));
    let programmed = |status: &Value| condition(status, "Programmed") == ("True", "Programmed");
    let status = shared.expect_status("the word that it is programmed", &replica, programmed).await;
    assert_eq!(status["addresses"][0]["value"], ADDRESS, "the address of the shared fleet");
    let answer = Client::new((bed.http().ip(), 17080).into()).host("any.example.com").get("/").await.unwrap();
    assert_eq!(answer.status.as_u16(), 404, "port 9080 is 17080 there");
    own.service(7080).await;
    assert!(shared.services.list(&shared.of_gateway()).await.unwrap().items.is_empty(), "nothing is created for it");
}

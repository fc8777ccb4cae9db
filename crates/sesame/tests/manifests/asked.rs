//! What an API server is asked by the programs of the manifests, as their accounts: recorded in its audit log and compared
//! with the rules, both ways.
//!
//! The requests that are rare are brought about: an event for something that was wrong before, objects that cannot be read because
//! somebody else's CRD let them pass, and a status of an object that is gone or has changed meanwhile: what the program sends then
//! takes longer than the objects take to change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, Service, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, ObjectMeta};
use serde_json::{Value, json};
use testbed::apiserver::AuditEntry;
use testbed::{ApiServer, Client, Net, Process, StateDir, Wire, eventually};

use super::{CERTGEN, DEPLOYMENT, GROUPS, NAMESPACE, Right, account, certgen, deploy, documents, granted};

pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// The command of the Deployment, where its files and its account are on this machine.
fn words(folder: &Path, kubeconfig: &Path) -> Vec<String> {
    let documents = documents();
    let named =
        |kind: &str| documents.iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == "sesame").unwrap();
    let config = folder.join("sesame.yaml");
    std::fs::write(&config, named("ConfigMap")["data"]["sesame.yaml"].as_str().unwrap()).unwrap();
    let words = named("Deployment")["spec"]["template"]["spec"]["containers"][0]["command"].as_array().unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let here = |word: &Value| match word.as_str().unwrap() {
        "--incluster" => format!("--kubeconfig={}", kubeconfig.display()),
        word => word.replace("/config/sesame.yaml", &config.display().to_string()).replace("/certs", &file("certs")),
    };
    words.iter().skip(1).map(here).collect()
}

const OBJECTS: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec: {rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: none, port: {number: 80}}}}]}}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: web, namespace: default}
spec: {virtualhost: {fqdn: proxy.example.com, tls: {secretName: none}}, routes: [{services: [{name: none, port: 80}]}]}
---
apiVersion: projectsesame.io/v1
kind: HTTPProxy
metadata: {name: web, namespace: default}
spec: {virtualhost: {fqdn: own.example.com}, routes: [{services: [{name: none, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec: {gatewayClassName: sesame, listeners: [{name: http, protocol: HTTP, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: web, namespace: default}
spec: {parentRef: {name: web}, listeners: [{name: more, protocol: HTTP, port: 81}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: default}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: none, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: limits, namespace: default, annotations: {projectsesame.io/max-connections: many}}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: loopback, namespace: default, labels: {kubernetes.io/service-name: limits}}
addressType: FQDN
ports: [{port: 80}]
endpoints: [{addresses: [127.0.0.1]}]
---
{apiVersion: getambassador.io/v3alpha1, kind: Listener, metadata: {name: web, namespace: default}, spec: {port: 8090, protocol: TCP, securityModel: SECURE, l7Depth: -1, hostBinding: {namespace: {from: ALL}}}}
---
{apiVersion: getambassador.io/v3alpha1, kind: Host, metadata: {name: web, namespace: default}, spec: {hostname: emissary.example.com, tlsSecret: {name: none}}}
---
{apiVersion: getambassador.io/v3alpha1, kind: Mapping, metadata: {name: web, namespace: default}, spec: {hostname: emissary.example.com, prefix: /, service: none}}
---
{apiVersion: getambassador.io/v3alpha1, kind: TCPMapping, metadata: {name: web, namespace: default}, spec: {port: 8091, service: none}}
---
{apiVersion: getambassador.io/v3alpha1, kind: TLSContext, metadata: {name: web, namespace: default}, spec: {hosts: [emissary.example.com], secret: none, min_tls_version: v1.0}}
---
{apiVersion: getambassador.io/v3alpha1, kind: Module, metadata: {name: ambassador, namespace: default}, spec: {config: {server_name: web, use_proxy_proto: true}}}
---
{apiVersion: getambassador.io/v3alpha1, kind: AuthService, metadata: {name: web, namespace: default}, spec: {auth_service: none, proto: grpc}}
---
{apiVersion: getambassador.io/v3alpha1, kind: RateLimitService, metadata: {name: web, namespace: default}, spec: {service: none}}
---
{apiVersion: getambassador.io/v3alpha1, kind: LogService, metadata: {name: web, namespace: default}, spec: {service: none, driver: http, grpc: true}}
---
{apiVersion: getambassador.io/v3alpha1, kind: TracingService, metadata: {name: web, namespace: default}, spec: {service: none, driver: zipkin}}
---
{apiVersion: getambassador.io/v3alpha1, kind: ConsulResolver, metadata: {name: web, namespace: default}, spec: {address: 'consul.example.org:8500', datacenter: dc1}}
---
{apiVersion: getambassador.io/v3alpha1, kind: DevPortal, metadata: {name: web, namespace: default}, spec: {default: true}}
";

/// The Deployment's command, as its account, which reaches the API server over a wire.
async fn serve(api: &ApiServer, wire: &Wire, state: &StateDir) -> Process {
    let sesame = || testbed::Command::new(PathBuf::from(env!("CARGO_BIN_EXE_sesame"))).name("sesame");
    let kubeconfig = api.kubeconfig_as(&account("sesame"), &GROUPS).unwrap();
    let mut over: Value = serde_json::from_slice(&std::fs::read(&kubeconfig).unwrap()).unwrap();
    let cluster = &mut over["clusters"][0]["cluster"];
    cluster["server"] = format!("https://{}", wire.address()).into();
    cluster["tls-server-name"] = "kubernetes".into();
    std::fs::write(&kubeconfig, over.to_string()).unwrap();
    let command = sesame().env("POD_NAME", "sesame-0").env("SESAME_NAMESPACE", NAMESPACE);
    let words = words(state.path(), &kubeconfig);
    let serve = words.iter().fold(command, |command, word| command.arg(word)).start_in(state).unwrap();
    serve.expect_http(([127, 0, 0, 1], 8000).into(), "/readyz", TIMEOUT).await.unwrap();
    serve
}

/// What an account has asked for so far, and what of it was refused.
pub(super) fn asked(api: &ApiServer, name: &str) -> (BTreeSet<Right>, BTreeSet<Right>) {
    let right = |entry: &AuditEntry| (entry.verb.clone(), entry.group.clone(), entry.resource.clone());
    let all: Vec<_> = api.audit().unwrap().into_iter().filter(|entry| entry.user == account(name)).collect();
    let refused = all.iter().filter(|entry| !entry.allowed).map(right).collect();
    let mut rights: BTreeSet<Right> = all.iter().filter(|entry| !entry.resource.is_empty()).map(right).collect();
    let created = all.iter().filter(|entry| entry.created).map(right);
    rights.extend(created.map(|(_, group, resource)| ("create".to_owned(), group, resource)));
    (rights, refused)
}

/// Tries `more` until an account has asked for every right that it has; then it has asked for no other, and none was
/// refused.
async fn compare(api: &ApiServer, name: &str, granted: &BTreeSet<Right>, mut more: impl AsyncFnMut()) {
    let all = async || {
        more().await;
        let (asked, refused) = asked(api, name);
        match granted.difference(&asked).collect::<Vec<_>>() {
            unused if unused.is_empty() => Ok(()),
            unused => Err(format!("never asked for: {unused:?}; refused: {refused:?}")),
        }
    };
    eventually(format!("{name} to use all its rights"), TIMEOUT, all).await.unwrap();
    let (asked, refused) = asked(api, name);
    assert_eq!((&asked, refused), (granted, BTreeSet::new()), "{name}");
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
}

fn custom(client: &kube::Client, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &resource(group, kind, plural))
}

/// Waits until something that was wrong, right and wrong again is counted on the event that was there.
async fn an_event_that_returns(client: &kube::Client, serve: &Process) {
    let proxies = custom(client, "projectsesame.io", "HTTPProxy", "httpproxies");
    let services = Api::<Service>::namespaced(client.clone(), "default");
    let events = Api::<Event>::namespaced(client.clone(), "default");
    let about = async || {
        let all = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        let one = |event: &Event| {
            event.regarding.as_ref().is_some_and(|it| it.kind.as_deref() == Some("Ingress"))
                && event.reason.as_deref() == Some("ServiceNotFound")
        };
        all.filter(one).map(|event| event.series.map_or(1, |series| series.count)).max()
    };
    let reported = async |count: i32| match about().await {
        Some(found) if found == count => Ok(()),
        other => Err(format!("{other:?}\n{}", serve.log().text())),
    };
    eventually("an event about the Ingress", TIMEOUT, async || reported(1).await).await.unwrap();
    let none: Service =
        serde_json::from_value(json!({ "metadata": { "name": "none" }, "spec": { "ports": [{ "port": 80 }] } }))
            .unwrap();
    services.create(&PostParams::default(), &none).await.unwrap();
    // Verdicts of one batch are reported together: what the HTTPProxy says holds for the Ingress, too.
    let mended = async || match &proxies.get("web").await.unwrap().data["status"] {
        status if status["currentStatus"] == "valid" => Ok(()),
        status => Err(status.to_string()),
    };
    eventually("the Service to be found", TIMEOUT, mended).await.unwrap();
    services.delete("none", &DeleteParams::default()).await.unwrap();
    eventually("the event to be counted", TIMEOUT, async || reported(2).await).await.unwrap();
}

/// Objects that change and go while their first status is being written, so that it comes too late.
async fn too_late(client: &kube::Client) {
    let route =
        json!({ "parentRefs": [{ "name": "web" }], "rules": [{ "backendRefs": [{ "name": "none", "port": 80 }] }] });
    let mut tls_route = route.clone();
    tls_route["hostnames"] = json!(["brief.example.com"]);
    // For its ConfigMap, too.
    let policy = json!({
        "targetRefs": [{ "group": "", "kind": "Service", "name": "none" }],
        "validation": {
            "hostname": "brief.example.com",
            "caCertificateRefs": [{ "group": "", "kind": "ConfigMap", "name": "none" }],
        },
    });
    let listeners = json!([{ "name": "brief", "protocol": "HTTP", "port": 82 }]);
    let class = json!({ "controllerName": "projectsesame.io/gateway-controller" });
    let backend = json!({ "defaultBackend": { "service": { "name": "none", "port": { "number": 80 } } } });
    let mut kinds = vec![
        ("networking.k8s.io/v1", "Ingress", "ingresses", backend),
        (GATEWAY_API, "GatewayClass", "gatewayclasses", class),
        (GATEWAY_API, "Gateway", "gateways", json!({ "gatewayClassName": "sesame", "listeners": listeners })),
        (GATEWAY_API, "ListenerSet", "listenersets", json!({ "parentRef": { "name": "web" }, "listeners": listeners })),
        (GATEWAY_API, "HTTPRoute", "httproutes", route.clone()),
        (GATEWAY_API, "GRPCRoute", "grpcroutes", route.clone()),
        (GATEWAY_API, "TLSRoute", "tlsroutes", tls_route),
        (GATEWAY_API, "TCPRoute", "tcproutes", route.clone()),
        (GATEWAY_API, "UDPRoute", "udproutes", route),
        (GATEWAY_API, "BackendTLSPolicy", "backendtlspolicies", policy),
        (EMISSARY, "Host", "hosts", json!({ "hostname": "brief.example.com" })),
        (EMISSARY, "Mapping", "mappings", json!({ "hostname": "brief.example.com", "prefix": "/", "service": "none" })),
    ];
    for (stable, alpha) in
        [("projectcontour.io/v1", "projectcontour.io/v1alpha1"), ("projectsesame.io/v1", "projectsesame.io/v1alpha1")]
    {
        let proxy = json!({ "virtualhost": { "fqdn": "brief.example.com" } });
        let delegation = json!({ "delegations": [{ "secretName": "none", "targetNamespaces": ["*"] }] });
        let extension = json!({ "services": [{ "name": "none", "port": 80 }] });
        kinds.push((stable, "HTTPProxy", "httpproxies", proxy));
        kinds.push((stable, "TLSCertificateDelegation", "tlscertificatedelegations", delegation));
        kinds.push((alpha, "ExtensionService", "extensionservices", extension));
    }
    let brief = kinds.into_iter().map(|(api_version, kind, plural, spec)| {
        let (group, version) = api_version.split_once('/').unwrap();
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api = match kind {
            "GatewayClass" => Api::<DynamicObject>::all_with(client.clone(), &resource),
            _ => Api::namespaced_with(client.clone(), "default", &resource),
        };
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "brief" }, "spec": spec });
        brief_one(api, serde_json::from_value(object).unwrap())
    });
    futures::future::join_all(brief).await;
}

const EMISSARY: &str = "getambassador.io/v3alpha1";

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

/// How long what the program sends is on its way: longer than from one change of an object to the next.
const DELAY: Duration = Duration::from_millis(500);

const BETWEEN_CHANGES: Duration = Duration::from_millis(100);

/// How often an object changes: for longer than the status of a route waits for proxies and is on its way.
const CHANGES: usize = 40;

/// Creates an object, changes it again and again, and deletes it.
async fn brief_one(api: Api<DynamicObject>, object: DynamicObject) {
    api.create(&PostParams::default(), &object).await.unwrap();
    let mut next = tokio::time::interval(BETWEEN_CHANGES);
    for number in 0..CHANGES {
        next.tick().await;
        let edit = Patch::Merge(json!({ "metadata": { "labels": { "edited": number.to_string() } } }));
        api.patch("brief", &PatchParams::default(), &edit).await.unwrap();
    }
    api.delete("brief", &DeleteParams::default()).await.unwrap();
}

/// A proxy of a Gateway shows its token.
async fn a_token(client: &kube::Client) {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
    let labels = ListParams::default().labels("gateway.networking.k8s.io/gateway-name=web");
    let Some(account) = accounts.list(&labels).await.unwrap().items.pop() else { return };
    let spec = TokenRequestSpec { audiences: vec!["xds.projectsesame.io".to_owned()], ..Default::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let name = account.metadata.name.unwrap();
    let token = accounts.create_token_request(&name, &PostParams::default(), &request).await.unwrap();
    let token = format!("Bearer {}", token.status.unwrap().token);
    let proxy = Client::new(([127, 0, 0, 1], 8001).into()).https().sni("sesame").accept_any().http2();
    let proxy = proxy.header("content-type", "application/grpc").header("authorization", &token);
    proxy.post("/envoy.service.cluster.v3.ClusterDiscoveryService/FetchClusters", "").await.unwrap();
}

/// A CRD that says nothing about its fields, and an object that cannot be read under it.
async fn unreadable(client: &kube::Client, group: &str) {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let lax = json!({ "spec": { "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }] } });
    let name = format!("tlscertificatedelegations.{group}");
    definitions.patch(&name, &PatchParams::default(), &Patch::Merge(lax)).await.unwrap();
    let delegations = custom(client, group, "TLSCertificateDelegation", "tlscertificatedelegations");
    let odd = DynamicObject {
        types: Some(kube::core::TypeMeta {
            api_version: format!("{group}/v1"),
            kind: "TLSCertificateDelegation".to_owned(),
        }),
        metadata: ObjectMeta { name: Some("odd".to_owned()), ..ObjectMeta::default() },
        data: json!({ "spec": { "delegations": 5 } }),
    };
    let accepted = async || delegations.create(&PostParams::default(), &odd).await;
    eventually(format!("{name} to be lax"), TIMEOUT, accepted).await.unwrap();
}

/// The Deployment's command, with the rights of its account and nothing else: it reads everything, becomes the leader,
/// and tells people what became of their objects. It asks for every right that it has.
#[tokio::test]
async fn the_programs_ask_for_the_rights_of_their_accounts_and_for_no_others() {
    let api = ApiServer::config().audit().start().await.unwrap();
    let gateway_api = parts::folder("gateway-api-crds").unwrap().join("standard");
    api.install([deploy("crds"), gateway_api, deploy(DEPLOYMENT), deploy("gateway-api")]).await.unwrap();
    let client = api.client().unwrap();
    let services = Api::<Service>::namespaced(client.clone(), NAMESPACE);
    let balancer = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.9" }] } } });
    services.patch_status("envoy", &PatchParams::default(), &Patch::Merge(balancer)).await.unwrap();
    api.apply(OBJECTS).await.unwrap();

    let state = StateDir::new("manifests").unwrap();
    let wire = Wire::new(Net::here().unwrap().socket(6443), api.address()).await.unwrap();
    let serve = serve(&api, &wire, &state).await;
    let ingresses = Api::<Ingress>::namespaced(client.clone(), "default");
    let proxies = custom(&client, "projectcontour.io", "HTTPProxy", "httpproxies");
    let reported = async || {
        let ingress = serde_json::to_value(ingresses.get("web").await.unwrap()).unwrap();
        let proxy = proxies.get("web").await.unwrap().data;
        let address = &ingress["status"]["loadBalancer"]["ingress"][0]["ip"];
        match *address == "192.0.2.9" && proxy["status"]["currentStatus"] == "invalid" {
            true => Ok(()),
            false => Err(format!("{}, {}\n{}", ingress["status"], proxy["status"], serve.log().text())),
        }
    };
    eventually("every object to be told", TIMEOUT, reported).await.unwrap();
    let classes = resource("gateway.networking.k8s.io", "GatewayClass", "gatewayclasses");
    let classes = Api::<DynamicObject>::all_with(client.clone(), &classes);
    let is_supported = async || {
        let status = classes.get("sesame").await.unwrap().data["status"].clone();
        let conditions = status["conditions"].as_array().into_iter().flatten();
        match conditions.into_iter().any(|it| it["type"] == "SupportedVersion" && it["status"] == "True") {
            true => Ok(()),
            false => Err(status.to_string()),
        }
    };
    eventually("the release of the CRDs to be read", TIMEOUT, is_supported).await.unwrap();

    an_event_that_returns(&client, &serve).await;
    for group in ["projectcontour.io", "projectsesame.io"] {
        unreadable(&client, group).await;
    }
    let roles = [("ClusterRole", "sesame"), ("Role", "sesame-leader-election"), ("Role", "sesame-certificates")];
    let rights = roles.into_iter().flat_map(|(kind, name)| granted(kind, name)).collect();
    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
    let rotate = json!({ "metadata": { "annotations": { "projectsesame.io/rotate-ca": "now" } } });
    secrets.patch("sesame-ca", &PatchParams::default(), &Patch::Merge(rotate)).await.unwrap();
    wire.delay(DELAY);
    let more = async || {
        too_late(&client).await;
        a_token(&client).await;
    };
    compare(&api, "sesame", &rights, more).await;
    wire.delay(Duration::ZERO);
    serve.stop(TIMEOUT).await.unwrap();

    api.install([deploy(CERTGEN)]).await.unwrap();
    let kubeconfig = api.kubeconfig_as(&account("sesame-certgen"), &GROUPS).unwrap();
    for more in [&[][..], &["--overwrite"]] {
        let output = certgen(&kubeconfig, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    compare(&api, "sesame-certgen", &granted("Role", "sesame-certgen"), async || ()).await;
    assert_eq!(asked(&api, "envoy"), Default::default());
}

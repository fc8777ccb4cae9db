//! The configuration while the server runs: changed, broken and mended, in a file and in a ContourConfiguration.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use testbed::certs::Ca;
use testbed::{Backend, Client, Envoy, Net, eventually};

use crate::bed::{Bed, Replica, TIMEOUT, app};

/// Waits until a host answers with this header.
pub async fn expect_header(bed: &Bed, host: &str, name: &str, value: &str) {
    let probe = async || match Client::new(bed.http()).host(host).get("/").await {
        Ok(answer) => match answer.headers.get(name).and_then(|found| found.to_str().ok()) {
            Some(found) if found == value => Ok(()),
            found => Err(format!("{name} is {found:?}")),
        },
        Err(failure) => Err(failure.to_string()),
    };
    eventually(format!("{host} to answer with {name}: {value}"), TIMEOUT, probe).await.unwrap();
}

/// Puts another text into a file as an editor does: beside it, then in its place.
pub fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, path).unwrap();
}

/// A replica that follows a file of this text, and an Envoy that has a host of it.
pub async fn with_file(bed: &Bed, text: &str) -> (Replica, Envoy, std::path::PathBuf) {
    let backend = Box::leak(Box::new(Backend::start("a").await.unwrap()));
    let namespace = bed.api.namespace("live").await.unwrap();
    bed.api.apply(&app(&namespace, "web", backend)).await.unwrap();
    let file = bed.file("sesame.yaml", text);
    let address = Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &[("config-path", file.to_str().unwrap())]).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    (replica, envoy, file)
}

fn config(number: usize) -> String {
    format!(
        "timeouts: {{request-timeout: {}s}}\n\
         policy: {{applyToIngress: true, response-headers: {{set: {{x-config: '{number}'}}}}}}\n",
        20 + number
    )
}

/// Puts the next configuration into a file as the kubelet does with that of a mounted ConfigMap: the file is a link to one below `..data`,
/// and that becomes a link to another folder.
fn swap(path: &Path, number: usize) {
    let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let link = |target: &Path, at: &Path| {
        let beside = folder.join("..new");
        symlink(target, &beside).unwrap();
        std::fs::rename(beside, at).unwrap();
    };
    for number in [number - 1, number] {
        let version = format!("..{number}");
        std::fs::create_dir_all(folder.join(&version)).unwrap();
        std::fs::write(folder.join(&version).join(name), config(number)).unwrap();
        link(Path::new(&version), &folder.join("..data"));
        if !path.is_symlink() {
            link(&Path::new("..data").join(name), path);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_changes_twenty_times_is_broken_and_mended_and_nothing_is_lost() {
    let bed = Bed::start().await;
    let (replica, _envoy, file) = with_file(&bed, &config(0)).await;
    expect_header(&bed, "web.example.com", "x-config", "0").await;
    let load = bed.load("web.example.com");
    load.answered(100).await;
    for number in 1..=20 {
        let broken = format!("{}listener: {{socket-options: {{tos: 256}}}}\n", config(99));
        match number % 5 {
            // As a whole: nothing of a file with one error is in effect.
            0 => {
                std::fs::write(&file, broken).unwrap();
                replica.expect_metric("sesame_configuration_valid", "", |valid| valid == 0.0).await;
                std::fs::write(&file, config(number)).unwrap();
            }
            1 | 2 => std::fs::write(&file, config(number)).unwrap(),
            3 => replace(&file, &config(number)),
            _ => swap(&file, number),
        }
        expect_header(&bed, "web.example.com", "x-config", &number.to_string()).await;
        replica.expect_metric("sesame_configuration_valid", "", |valid| valid == 1.0).await;
    }
    load.answered(100).await;
    load.stop().await.assert_nothing_lost();
    assert_eq!(replica.metric("sesame_configuration_changes_total", "applied").await, 20.0);
    assert_eq!(replica.metric("sesame_configuration_changes_total", "rejected").await, 4.0);
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
    let log = replica.process.log().text();
    assert!(log.contains("sesame.yaml:3:34: expected a number from 0 to 255, found the number 256"), "{log}");
    assert!(log.contains("SES1027"), "{log}");
}

/// A search for a code finds every line about it, whichever part of the program has logged it.
#[tokio::test(flavor = "multi_thread")]
async fn every_json_line_about_a_code_has_it_as_a_field() {
    let bed = Bed::start().await;
    let file = bed.file("sesame.yaml", &config(0));
    let address = Net::here().unwrap().address();
    let flags = [("config-path", file.to_str().unwrap()), ("log-format", "json"), ("kubernetes-debug", "1")];
    let replica = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    let tracing = format!("{}tracing: {{extensionService: platform/otel}}\n", config(1));
    let late = format!("{}kubernetesClientQPS: 7\n", config(2));
    for (text, code) in [("nonsense: 1\n", "SES1027"), (&tracing, "SES5190"), (&late, "SES1028")] {
        replace(&file, text);
        replica.process.expect_line(code, TIMEOUT).await.unwrap();
    }
    let log = replica.process.log().text();
    let mut codes = BTreeSet::new();
    for line in log.lines() {
        let fields: Value = serde_json::from_str(line).expect(line);
        if let Some(code) = code_in(fields["message"].as_str().expect(line)) {
            assert_eq!(fields["code"], code, "{line}");
            codes.insert(code.to_owned());
        }
    }
    let expected = ["SES1021", "SES1024", "SES1027", "SES1028", "SES5190"];
    assert!(expected.iter().all(|code| codes.contains(*code)), "{codes:?} in\n{log}");
}

/// The first code in a text.
fn code_in(text: &str) -> Option<&str> {
    let found = text.match_indices("SES").filter_map(|(at, _)| text.get(at..at + 7));
    found.into_iter().find(|code| code[3..].bytes().all(|byte| byte.is_ascii_digit()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_timeout_of_backends_publishes_clusters_and_nothing_else() {
    let bed = Bed::start().await;
    let (replica, envoy, file) = with_file(&bed, "timeouts: {connect-timeout: 2s}\n").await;
    replica.in_step(1).await;
    let sent = async |kind: &str| replica.metric("sesame_xds_responses_total", kind).await;
    let before = (sent("").await, sent("cds").await);
    replace(&file, "# the same\ntimeouts: {connect-timeout: 2s}\n");
    replace(&file, "timeouts: {connect-timeout: 3s}\n");
    let timeout = async || {
        let clusters = envoy.admin().resources("dynamic_active_clusters").await.map_err(|error| error.to_string())?;
        let found = clusters.iter().find(|cluster| cluster.to_string().contains("/web/80"));
        match found.map(|cluster| cluster["cluster"]["connect_timeout"].clone()) {
            Some(Value::String(text)) if text == "3s" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    };
    eventually("the cluster to have its timeout", TIMEOUT, timeout).await.unwrap();
    replica.in_step(1).await;
    let after = (sent("").await, sent("cds").await);
    assert!(after.1 > before.1);
    // A changed cluster asks for its endpoints again.
    assert_eq!(after.0 - before.0, after.1 - before.1 + sent("eds").await - 1.0, "{before:?} {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_and_the_log_level_change_and_what_needs_a_restart_is_said() {
    let bed = Bed::start().await;
    let pages = Net::here().unwrap().address();
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("ports").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let file = bed.file("sesame.yaml", "debug: false\n");
    let flags = [("config-path", file.to_str().unwrap())];
    let replica = bed.replica_at("sesame-0", pages, &flags).await.ready().await;
    let debug = Client::new((pages, 6060).into());
    let level = async || String::from_utf8(debug.get("/debug/log").await.unwrap().body.to_vec()).unwrap();
    assert!(level().await.contains("info"));
    let metrics = |port: u16| Client::new((pages, port).into()).timeout(Duration::from_secs(5));
    replace(&file, "debug: true\nkubernetesClientQPS: 7\nincluster: false\nmetrics: {contour: {port: 8100}}\n");
    let changed = async || match metrics(8100).get("/metrics").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("metrics at another port", TIMEOUT, changed).await.unwrap();
    assert_eq!(metrics(8000).get("/metrics").await.unwrap().status, 404, "only health is left there");
    assert_eq!(metrics(8000).get("/readyz").await.unwrap().status, 200);
    replica.process.expect_line("SES1028: incluster, kubernetesClientQPS:", TIMEOUT).await.unwrap();
    let told = async || match level().await {
        level if level.contains("debug") => Ok(()),
        level => Err(level),
    };
    eventually("the log level", TIMEOUT, told).await.unwrap();
    // A port that somebody has is refused with everything else.
    let taken = tokio::net::TcpListener::bind((pages, 8101)).await.unwrap();
    replace(&file, "debug: false\nmetrics: {contour: {port: 8101}}\n");
    replica.process.expect_line("SES1005: cannot listen on", TIMEOUT).await.unwrap();
    assert!(level().await.contains("debug"));
    assert_eq!(metrics(8100).get("/metrics").await.unwrap().status, 200);
    // It is tried again: nobody has to touch the file once the port is free.
    drop(taken);
    let tried_again = async || match metrics(8101).get("/metrics").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("metrics at the port that is free now", TIMEOUT, tried_again).await.unwrap();
    assert!(level().await.contains("info"), "{}", level().await);
    let page = String::from_utf8(metrics(8101).get("/metrics").await.unwrap().body.to_vec()).unwrap();
    assert!(page.contains("sesame_configuration_valid 1"), "{page}");
    assert!(page.contains("sesame_configuration_changes_total{result=\"rejected\"} 1"), "{page}");
    replace(&file, "");
    let usual = async || match metrics(8000).get("/metrics").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("metrics at the usual port", TIMEOUT, usual).await.unwrap();
    assert!(metrics(8101).get("/metrics").await.is_err());
    assert!(level().await.contains("info"), "{}", level().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn runtime_values_and_limits_reach_envoy_and_leave_it() {
    let bed = Bed::start().await;
    let settings = "runtime-settings: {some.key: '7', re2.max_program_size.error_level: '1'}\n\
                    listener: {max-requests-per-io-cycle: 3, max-connections-per-listener: 2}\n";
    let (_replica, envoy, file) = with_file(&bed, settings).await;
    let value = async |key: &str| {
        let runtime = envoy.admin().json("/runtime").await.unwrap();
        runtime["entries"][key]["final_value"].as_str().unwrap_or_default().to_owned()
    };
    let expect = async |key: &str, wanted: &str| {
        let look = async || match value(key).await {
            found if found == wanted => Ok(()),
            found => Err(found),
        };
        eventually(format!("{key} to be {wanted:?}"), TIMEOUT, look).await.unwrap();
    };
    expect("some.key", "7").await;
    expect("http.max_requests_per_io_cycle", "3").await;
    expect("re2.max_program_size.error_level", "1.04858e+06").await;
    expect("envoy.resource_limits.listener.ingress_http.connection_limit", "2").await;
    // The third connection is closed.
    let (_one, _two) = (open(&bed).await, open(&bed).await);
    envoy
        .admin()
        .expect_stat(
            "listener.IP_8080.downstream_cx_overflow".replace("IP", &bed.http().ip().to_string()).as_str(),
            TIMEOUT,
            |_| true,
        )
        .await
        .unwrap();
    let refused = Client::new(bed.http()).host("web.example.com").timeout(Duration::from_secs(5)).get("/").await;
    assert!(refused.is_err(), "{refused:?}");
    replace(&file, "runtime-settings: {some.key: '8'}\n");
    expect("some.key", "8").await;
    expect("envoy.resource_limits.listener.ingress_http.connection_limit", "").await;
    bed.answers("web.example.com", 200).await;
    replace(&file, "");
    expect("some.key", "").await;
    expect("re2.max_program_size.error_level", "1.04858e+06").await;
    let unlimited = Client::new(bed.http()).host("web.example.com").get("/").await.unwrap();
    assert_eq!(unlimited.status, 200);
}

/// An open connection.
async fn open(bed: &Bed) -> impl Sized {
    Client::new(bed.http()).host("web.example.com").connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_served_over_tls_to_those_with_certificates_and_files_are_read_again() {
    let bed = Bed::start().await;
    let (server, clients) = (Ca::new("server"), Ca::new("clients"));
    let files = |ca: &Ca| {
        let leaf = ca.leaf("metrics.example.com").make();
        let certificate = bed.file("metrics.crt", leaf.chain_pem());
        (certificate, bed.file("metrics.key", leaf.key_pem()))
    };
    let (certificate, key) = files(&server);
    let ca = bed.file("clients.crt", clients.pem());
    let tls = |ca: &str| {
        let (certificate, key) = (certificate.display(), key.display());
        format!("server-certificate-path: {certificate}, server-key-path: {key}{ca}")
    };
    let with_ca = format!(", ca-certificate-path: {}", ca.display());
    let text = |ca: &str| {
        let files = tls(ca);
        format!("metrics: {{contour: {{port: 8100, {files}}}, envoy: {{port: 8103, {files}}}}}\n")
    };
    let (replica, _envoy, file) = with_file(&bed, &text("")).await;
    let at = [((replica.address, 8100).into(), "/metrics"), ((bed.http().ip(), 8103).into(), "/stats/prometheus")];
    let client =
        |at, ca: &Ca| Client::new(at).https().sni("metrics.example.com").trust(ca).timeout(Duration::from_secs(5));
    let expect = async |what: &str,
                        holds: &dyn Fn(Result<u16, String>) -> bool,
                        made: &dyn Fn(std::net::SocketAddr) -> Client| {
        for (address, path) in at {
            let look = async || {
                let answer = made(address).get(path).await.map(|answer| answer.status.as_u16());
                let answer = answer.map_err(|failure| failure.to_string());
                if holds(answer.clone()) { Ok(()) } else { Err(format!("{answer:?}")) }
            };
            eventually(format!("{what} at {address}"), TIMEOUT, look).await.unwrap();
        }
    };
    let (good, refused) =
        (|answer: Result<u16, String>| answer == Ok(200), |answer: Result<u16, String>| answer.is_err());
    let (leaf, foreign) = (clients.leaf("scraper").client_only().make(), server.leaf("stranger").client_only().make());
    expect("metrics without client certificates", &good, &|at| client(at, &server)).await;
    replace(&file, &text(&with_ca));
    expect("no metrics without a certificate", &refused, &|at| client(at, &server)).await;
    expect("metrics with a certificate", &good, &|at| client(at, &server).identity(&leaf)).await;
    expect("no metrics with a foreign one", &refused, &|at| client(at, &server).identity(&foreign)).await;
    // Rotated: in place for Sesame, by a renamed file for Envoy.
    let other = Ca::new("other");
    let leaf_of_other = other.leaf("metrics.example.com").make();
    replace(&key, leaf_of_other.key_pem());
    replace(&certificate, leaf_of_other.chain_pem());
    expect("metrics under another certificate", &good, &|at| client(at, &other).identity(&leaf)).await;
    // So is the CA of clients.
    let other_clients = Ca::new("other-clients");
    let leaf_of_other_clients = other_clients.leaf("scraper").client_only().make();
    replace(&ca, other_clients.pem());
    expect("no metrics with a certificate of the CA before", &refused, &|at| client(at, &other).identity(&leaf)).await;
    expect("metrics with one of the other CA", &good, &|at| client(at, &other).identity(&leaf_of_other_clients)).await;
    // Readiness is where it was, and metrics are not there any more.
    let probe = Client::new((bed.http().ip(), 8002).into());
    assert_eq!(probe.get("/ready").await.unwrap().status, 200);
    assert_eq!(probe.get("/stats").await.unwrap().status, 404);
    replace(&file, "omEnforcedHealthListener: {port: 8104}\n");
    let beside = async || match probe.get("/stats/prometheus").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("metrics beside readiness", TIMEOUT, beside).await.unwrap();
    let overload = Client::new((bed.http().ip(), 8104).into());
    let ready = async || match overload.get("/ready").await {
        Ok(answer) if answer.status == 200 => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("readiness of the overload manager", TIMEOUT, ready).await.unwrap();
    assert_eq!(overload.get("/stats").await.unwrap().status, 404);
}

fn configurations(bed: &Bed, group: &str, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, "v1alpha1", "ContourConfiguration");
    let resource = ApiResource::from_gvk_with_plural(&kind, "contourconfigurations");
    Api::namespaced_with(bed.api.client().unwrap(), namespace, &resource)
}

/// The condition `Valid`, once it is as wished.
async fn expect_valid(objects: &Api<DynamicObject>, wish: impl Fn(&Value) -> bool) -> Value {
    let look = async || {
        let object = objects.get("sesame").await.map_err(|error| error.to_string())?;
        let condition = object.data["status"]["conditions"][0].clone();
        let is_current = condition["observedGeneration"] == json!(object.metadata.generation);
        if is_current && wish(&condition) { Ok(condition) } else { Err(condition.to_string()) }
    };
    eventually("the condition", TIMEOUT, look).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contour_configuration_changes_twenty_times_with_its_status_and_nothing_is_lost() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("object").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let spec = |number: usize| {
        json!({
            "envoy": { "timeouts": { "requestTimeout": format!("{}s", 20 + number) } },
            "policy": {
                "applyToIngress": true, "responseHeaders": { "set": { "x-config": number.to_string() } },
            },
        })
    };
    let object = |number: usize| {
        json!({
            "apiVersion": "projectcontour.io/v1alpha1", "kind": "ContourConfiguration",
            "metadata": { "name": "sesame", "namespace": namespace }, "spec": spec(number),
        })
    };
    bed.api.apply(&object(0).to_string()).await.unwrap();
    let objects = configurations(&bed, "projectcontour.io", &namespace);
    let flags = [("contour-config-name", "sesame"), ("namespace", namespace.as_str())];
    let address = Net::here().unwrap().address();
    let replica = bed.replica_at("sesame-0", address, &flags).await.ready().await;
    let other = bed.replica_at("sesame-1", Net::here().unwrap().address(), &flags).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    expect_header(&bed, "web.example.com", "x-config", "0").await;
    let valid = |condition: &Value| condition["status"] == "True";
    expect_valid(&objects, valid).await;
    let load = bed.load("web.example.com");
    let patch = async |spec: Value| {
        // Each field is written anew.
        let patch = Patch::Merge(json!({ "spec": spec }));
        objects.patch("sesame", &PatchParams::default(), &patch).await.unwrap();
    };
    for number in 1..=20 {
        if number % 5 == 0 {
            let mut broken = spec(99);
            broken["envoy"]["timeouts"]["connectTimeout"] = json!("soon");
            patch(broken).await;
            let condition = expect_valid(&objects, |condition| condition["status"] == "False").await;
            let message = condition["message"].as_str().unwrap();
            assert!(message.starts_with("SES1022: spec.envoy.timeouts.connectTimeout: `soon` is not"), "{message}");
            replica.expect_metric("sesame_configuration_valid", "", |valid| valid == 0.0).await;
        }
        let mut good = spec(number);
        good["envoy"]["timeouts"]["connectTimeout"] = Value::Null;
        patch(good).await;
        expect_header(&bed, "web.example.com", "x-config", &number.to_string()).await;
    }
    expect_valid(&objects, valid).await;
    load.answered(100).await;
    load.stop().await.assert_nothing_lost();
    assert_eq!(replica.metric("sesame_configuration_changes_total", "rejected").await, 4.0);
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
    // Both replicas have the same: what an Envoy has of one is not sent again by the other.
    other.expect_metric("sesame_configuration_changes_total", "applied", |count| count == 20.0).await;
    // What a running process does not change is a warning.
    patch(json!({ "xdsServer": { "port": 8009 } })).await;
    let condition = expect_valid(&objects, |condition| !condition["warnings"].is_null()).await;
    assert!(condition["warnings"][0]["message"].as_str().unwrap().contains("spec.xdsServer.port"), "{condition}");
    // Sesame's own group counts where both are there.
    let mut ours = object(21);
    ours["apiVersion"] = json!("projectsesame.io/v1alpha1");
    bed.api.apply(&ours.to_string()).await.unwrap();
    expect_header(&bed, "web.example.com", "x-config", "21").await;
    // Gone, it stays in effect; the other group's object takes over.
    let ours = configurations(&bed, "projectsesame.io", &namespace);
    ours.delete("sesame", &kube::api::DeleteParams::default()).await.unwrap();
    expect_header(&bed, "web.example.com", "x-config", "20").await;
    objects.delete("sesame", &kube::api::DeleteParams::default()).await.unwrap();
    replica.process.expect_line("was deleted; the configuration stays in effect", TIMEOUT).await.unwrap();
    expect_header(&bed, "web.example.com", "x-config", "20").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_delegations_is_written() {
    let bed = Bed::start().await;
    let namespace = bed.api.namespace("delegations").await.unwrap();
    let _replica = bed.replica("sesame-0").await.ready().await;
    for group in ["projectcontour.io", "projectsesame.io"] {
        let delegation = |names: Value| {
            json!({
                "apiVersion": format!("{group}/v1"), "kind": "TLSCertificateDelegation",
                "metadata": { "name": "sesame", "namespace": namespace },
                "spec": { "delegations": [{ "secretName": "cert", "targetNamespaces": names }] },
            })
        };
        let kind = GroupVersionKind::gvk(group, "v1", "TLSCertificateDelegation");
        let resource = ApiResource::from_gvk_with_plural(&kind, "tlscertificatedelegations");
        let objects = Api::namespaced_with(bed.api.client().unwrap(), &namespace, &resource);
        bed.api.apply(&delegation(json!(["shop"])).to_string()).await.unwrap();
        let valid = expect_valid(&objects, |condition| condition["status"] == "True").await;
        assert_eq!(valid["message"], "Valid TLSCertificateDelegation");
        bed.api.apply(&delegation(json!(["shop", "*"])).to_string()).await.unwrap();
        let warned = expect_valid(&objects, |condition| !condition["warnings"].is_null()).await;
        let message = warned["warnings"][0]["message"].as_str().unwrap();
        assert!(message.starts_with("SES5160: spec.delegations[0].targetNamespaces"), "{message}");
        assert_eq!(warned["status"], "True");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_of_envoy_change_with_a_contour_configuration() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("move").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let object = json!({
        "apiVersion": "projectsesame.io/v1alpha1", "kind": "ContourConfiguration",
        "metadata": { "name": "sesame", "namespace": namespace }, "spec": {},
    });
    bed.api.apply(&object.to_string()).await.unwrap();
    let objects = configurations(&bed, "projectsesame.io", &namespace);
    let flags = [("sesame-config-name", "sesame"), ("namespace", namespace.as_str())];
    let replica = bed.replica_at("sesame-0", Net::here().unwrap().address(), &flags).await.ready().await;
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    let answers = async |port: u16| {
        let client = Client::new((bed.http().ip(), port).into()).host("web.example.com");
        let look = async || match client.get("/").await {
            Ok(answer) if answer.status == 200 => Ok(()),
            other => Err(format!("{other:?}")),
        };
        eventually(format!("an answer at port {port}"), TIMEOUT, look).await.unwrap();
    };
    for port in [8081, 8082, 8080] {
        let patch = Patch::Merge(json!({ "spec": { "envoy": { "http": { "port": port } } } }));
        objects.patch("sesame", &PatchParams::default(), &patch).await.unwrap();
        answers(port).await;
        replica.in_step(1).await;
    }
    let gone = async || match Client::new((bed.http().ip(), 8081).into()).host("web.example.com").get("/").await {
        Ok(answer) => Err(format!("{}", answer.status)),
        Err(_) => Ok(()),
    };
    eventually("the port before to be closed", TIMEOUT, gone).await.unwrap();
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
    // Two listeners cannot have one port: refused, and told.
    let patch = Patch::Merge(json!({ "spec": { "envoy": { "https": { "port": 8080 } } } }));
    objects.patch("sesame", &PatchParams::default(), &patch).await.unwrap();
    let condition = expect_valid(&objects, |condition| condition["status"] == "False").await;
    assert!(condition["message"].as_str().unwrap().contains("both listen on port 8080"), "{condition}");
    answers(8080).await;
    let told = async || {
        let events = Api::<Event>::namespaced(bed.api.client().unwrap(), &namespace).list(&Default::default()).await;
        let reasons: Vec<_> = events.unwrap().items.into_iter().filter_map(|event| event.reason).collect();
        if reasons.contains(&"ConfigValue".to_owned()) { Ok(()) } else { Err(format!("{reasons:?}")) }
    };
    eventually("an event", TIMEOUT, told).await.unwrap();
}

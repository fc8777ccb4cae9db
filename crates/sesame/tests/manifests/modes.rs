//! `sesame rbac`: in each mode, `serve` with the flags that the output names runs under exactly these rights, and asks for
//! nothing that it may not have.

use std::path::PathBuf;
use std::process::Command;

use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use testbed::{ApiServer, Process, StateDir, eventually};

use super::asked::{TIMEOUT, asked};
use super::{GROUPS, NAMESPACE, account, deploy};

fn rbac(words: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_sesame")).arg("rbac").args(words).env_clear().output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// The flags that the first line of the output names.
fn serve_flags(roles: &str) -> Vec<String> {
    let line = roles.lines().next().unwrap().strip_prefix("# Permissions of: sesame serve ").unwrap();
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn every_mode_has_its_roles() {
    let kinds = |words: &[&str]| {
        let roles = rbac(words).unwrap();
        let lines = roles.lines().filter_map(|line| line.strip_prefix("kind: ").map(str::to_owned));
        lines.filter(|kind| !kind.ends_with("Binding")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(kinds(&[]), "ClusterRole Role Role");
    assert_eq!(kinds(&["--mode=namespaces", "--namespaces=a,b"]), "Role Role Role Role");
    assert_eq!(kinds(&["--mode=namespaces", "--namespaces=a", "--cluster-scoped"]), "ClusterRole Role Role Role");
    assert_eq!(kinds(&["--mode=named-secrets", "--secrets=a/x,a/y,b/z"]), "ClusterRole Role Role Role Role");
    let named = rbac(&["--mode=named-secrets", "--namespaces=a,b", "--secrets=a/x,a/y"]).unwrap();
    let documents = serde_saphyr::from_multiple::<serde_json::Value>(&named).unwrap();
    for document in documents {
        for rule in document["rules"].as_array().into_iter().flatten() {
            let is_of_secrets = rule["resources"].as_array().unwrap().iter().any(|it| it == "secrets");
            assert!(!is_of_secrets || rule["resourceNames"] == serde_json::json!(["x", "y"]), "{rule}");
        }
    }
}

/// The rights for the lease are for the one that `serve` is told to use.
#[test]
fn the_lease_may_have_another_name_and_namespace() {
    let lease = |words: &[&str]| {
        let roles = rbac(words).unwrap();
        let is_of_leases = |rule: &serde_json::Value| rule["resources"] == serde_json::json!(["leases"]);
        let documents = serde_saphyr::from_multiple::<serde_json::Value>(&roles).unwrap();
        let role = documents.iter().find(|it| it["rules"].as_array().into_iter().flatten().any(is_of_leases)).unwrap();
        let named = &role["rules"][1]["resourceNames"][0];
        let (namespace, name) = (&role["metadata"]["namespace"], &role["metadata"]["name"]);
        let is_bound = |it: &serde_json::Value| {
            it["roleRef"]["name"] == *name
                && it["metadata"]["namespace"] == *namespace
                && it["subjects"][0]["namespace"] == "projectsesame"
        };
        assert!(documents.iter().any(is_bound), "{roles}");
        (format!("{namespace}/{name}: {named}").replace('"', ""), serve_flags(&roles).join(" "))
    };
    let namespace = "--namespace=projectsesame";
    assert_eq!(lease(&[]), ("projectsesame/sesame-leader-election: leader-elect".to_owned(), namespace.to_owned()));
    let flags = ["--leader-election-resource-name=mine", "--leader-election-resource-namespace=leases"];
    let expected = format!("{namespace} {}", flags.join(" "));
    assert_eq!(lease(&flags), ("leases/sesame-leader-election: mine".to_owned(), expected));
}

#[test]
fn flags_that_do_not_fit_are_refused() {
    for (words, why) in [
        (&["--mode=namespaces"][..], "--mode namespaces needs --namespaces"),
        (&["--namespaces=a"], "--namespaces has no effect with --mode cluster"),
        (&["--mode=named-secrets"], "--mode named-secrets needs --secrets"),
        (&["--secrets=a/x"], "--secrets has no effect without --mode named-secrets"),
        (&["--mode=named-secrets", "--secrets=x"], "`x` is not written NAMESPACE/NAME"),
        (&["--mode=named-secrets", "--namespaces=a", "--secrets=b/x"], "b is not one of --namespaces"),
    ] {
        let error = rbac(words).unwrap_err();
        assert!(error.contains(why), "{words:?}: {error}");
    }
}

/// An HTTPProxy with a Secret.
fn proxy(namespace: &str, name: &str) -> String {
    format!(
        "---\napiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{virtualhost: {{fqdn: {name}.{namespace}.example.com, tls: {{secretName: {name}}}}}, \
         routes: [{{services: [{{name: web, port: 80}}]}}]}}\n"
    )
}

/// What a tenant has: two HTTPProxies with a Secret each, and an Ingress.
fn objects(namespace: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec: {{defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: {namespace}}}\nspec: {{ports: [{{port: 80}}]}}\n{}{}",
        proxy(namespace, "one"),
        proxy(namespace, "two")
    )
}

fn secret(namespace: &str, name: &str) -> String {
    let leaf = testbed::certs::Ca::new("modes").leaf(&format!("{name}.{namespace}.example.com")).make();
    let data = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": name, "namespace": namespace },
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() },
    });
    data.to_string()
}

/// `serve` with these flags, as this account, with ports of its own.
async fn serve(api: &ApiServer, state: &StateDir, account: &str, flags: &[String], port: u16) -> Process {
    let kubeconfig = api.kubeconfig_as(account, &GROUPS).unwrap();
    let command = testbed::Command::new(PathBuf::from(env!("CARGO_BIN_EXE_sesame"))).name("sesame");
    let command = command.env("POD_NAME", account.rsplit(':').next().unwrap()).arg("serve").arg("--insecure");
    let command =
        command.arg("--ingress-status-address=192.0.2.9").arg(format!("--kubeconfig={}", kubeconfig.display()));
    let ports = ["xds-port", "health-port", "debug-http-port"].into_iter().zip(port..);
    let command = ports.fold(command, |command, (flag, port)| command.arg(format!("--{flag}={port}")));
    let command = command.arg(format!("--http-port={}", port + 1));
    flags.iter().fold(command, |command, flag| command.arg(flag)).start_in(state).unwrap()
}

async fn status_of(client: &kube::Client, namespace: &str, name: &str) -> String {
    let kind = GroupVersionKind::gvk("projectcontour.io", "v1", "HTTPProxy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "httpproxies");
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
    api.get(name).await.unwrap().data["status"].to_string()
}

async fn becomes(client: &kube::Client, namespace: &str, name: &str, text: &str, serve: &Process) {
    let look = async || match status_of(client, namespace, name).await {
        status if status.contains(text) => Ok(()),
        status => Err(format!("{status}\n{}", serve.log().text())),
    };
    eventually(format!("{name} to say {text}"), TIMEOUT, look).await.unwrap();
}

#[tokio::test]
async fn serve_asks_for_nothing_that_a_mode_does_not_grant() {
    let api = ApiServer::config().audit().start().await.unwrap();
    let gateway_api = parts::folder("gateway-api-crds").unwrap().join("standard");
    api.install([deploy("crds"), gateway_api]).await.unwrap();
    let client = api.client().unwrap();
    let state = StateDir::new("modes").unwrap();
    for namespace in [NAMESPACE, "shop", "other"] {
        let yaml = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n");
        api.apply(&yaml).await.unwrap();
    }
    let modes: [(&str, &[&str]); 4] = [
        ("namespaces", &["--mode=namespaces", "--namespaces=shop"]),
        ("with-gateways", &["--mode=namespaces", "--namespaces=shop", "--cluster-scoped"]),
        ("named-secrets", &["--mode=named-secrets", "--secrets=shop/one"]),
        ("named-in-namespaces", &["--mode=named-secrets", "--namespaces=shop", "--secrets=shop/one"]),
    ];
    for ((mode, words), port) in modes.into_iter().zip((18000..).step_by(10)) {
        api.apply(&objects("shop")).await.unwrap();
        // The second Secret is there in every mode; the first one comes later.
        api.apply(&secret("shop", "two")).await.unwrap();
        let service_account = format!("--service-account={mode}");
        let roles = rbac(&[words, &[&service_account]].concat()).unwrap();
        api.apply(&roles).await.unwrap();
        let serve = serve(&api, &state, &account(mode), &serve_flags(&roles), port).await;
        serve.expect_http(([127, 0, 0, 1], port + 1).into(), "/readyz", TIMEOUT).await.unwrap();
        becomes(&client, "shop", "one", "does not exist", &serve).await;
        api.apply(&secret("shop", "one")).await.unwrap();
        becomes(&client, "shop", "one", "\"valid\"", &serve).await;
        let of_two = if mode.starts_with("named") { "granted by name" } else { "\"valid\"" };
        becomes(&client, "shop", "two", of_two, &serve).await;
        let ingresses = Api::<Ingress>::namespaced(client.clone(), "shop");
        let is_told = async || match ingresses.get("web").await.unwrap().status.and_then(|status| status.load_balancer)
        {
            Some(balancer) if balancer.ingress.is_some() => Ok(()),
            other => Err(format!("{other:?}")),
        };
        eventually("the address on the Ingress", TIMEOUT, is_told).await.unwrap();
        let (rights, refused) = asked(&api, mode);
        assert!(!rights.is_empty() && refused.is_empty(), "{mode}: {refused:?}");
        serve.stop(TIMEOUT).await.unwrap();
        // What the next mode finds is as it was.
        for kind in ["ingresses", "httpproxies", "secrets"] {
            let kubectl = Command::new(parts::program("kubectl").unwrap())
                .args(["--namespace=shop", "delete", "--all", kind])
                .env("KUBECONFIG", api.kubeconfig().unwrap())
                .output()
                .unwrap();
            assert!(kubectl.status.success(), "{}", String::from_utf8_lossy(&kubectl.stderr));
        }
    }

    // One right less.
    let roles = rbac(&["--mode=namespaces", "--namespaces=other", "--service-account=less"]).unwrap();
    let less = roles.replacen("- ingresses\n", "- nothing\n", 1);
    assert_ne!(roles, less);
    api.apply(&less).await.unwrap();
    let serve = serve(&api, &state, &account("less"), &serve_flags(&roles), 18100).await;
    let rule = "add to Sesame's Role in namespace other: {apiGroups: [networking.k8s.io], resources: [ingresses], \
                verbs: [get, list, watch]}";
    serve.expect_line(rule, TIMEOUT).await.unwrap();
    // Whoever looks at the pod reads the same.
    let health = testbed::Client::new(([127, 0, 0, 1], 18101).into());
    let answer = health.get("/readyz").await.unwrap();
    let text = answer.text();
    assert_eq!(answer.status, 503, "{text}");
    assert!(text.starts_with("waiting for the first build (the API server at "), "{text}");
    assert!(text.contains("cannot list resource \"ingresses\"") && text.contains(rule), "{text}");
}

/// Rights to write are asked for only when they are used, and told like those to read.
#[tokio::test]
async fn a_missing_right_to_write_is_told_with_the_rule_to_add() {
    let api = ApiServer::config().start().await.unwrap();
    api.install([deploy("crds")]).await.unwrap();
    let state = StateDir::new("writes").unwrap();
    for namespace in [NAMESPACE, "shop"] {
        api.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n")).await.unwrap();
    }
    api.apply(&objects("shop")).await.unwrap();
    let cases: [(&str, &[&str], &[&str]); 2] = [
        (
            "no-status",
            &["- httpproxies/status\n", "- events\n"],
            &[
                "Sesame's ClusterRole, or its Role in namespace shop: {apiGroups: [projectcontour.io], resources: [httpproxies/status], verbs: [patch]}",
                "Sesame's ClusterRole, or its Role in namespace shop: {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}",
            ],
        ),
        (
            "no-lease",
            &["- leases\n"],
            &["Sesame's Role in namespace projectsesame: {apiGroups: [coordination.k8s.io], resources: [leases], "],
        ),
    ];
    for ((name, resources, rules), port) in cases.into_iter().zip((18200..).step_by(10)) {
        let roles = rbac(&["--mode=namespaces", "--namespaces=shop", &format!("--service-account={name}")]).unwrap();
        let mut less = roles.clone();
        for resource in resources {
            assert!(less.contains(resource), "{resource} is not in {less}");
            less = less.replace(resource, "- nothing\n");
        }
        api.apply(&less).await.unwrap();
        let serve = serve(&api, &state, &account(name), &serve_flags(&roles), port).await;
        for rule in rules {
            serve.expect_line(&format!("add to {rule}"), TIMEOUT).await.unwrap();
        }
        serve.stop(TIMEOUT).await.unwrap();
    }
}

/// A right that is missing is missing for every object and every retry, and is told once.
#[tokio::test]
async fn a_missing_right_to_write_is_one_line_for_fifty_objects() {
    const OBJECTS: usize = 50;
    let api = ApiServer::config().start().await.unwrap();
    api.install([deploy("crds")]).await.unwrap();
    let state = StateDir::new("flood").unwrap();
    for namespace in [NAMESPACE, "shop"] {
        api.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n")).await.unwrap();
    }
    let proxies = (0..OBJECTS).map(|number| proxy("shop", &format!("p{number}"))).collect::<String>();
    api.apply(proxies.trim_start_matches("---\n")).await.unwrap();
    let roles = rbac(&["--mode=namespaces", "--namespaces=shop", "--service-account=flood"]).unwrap();
    let less = roles.replace("- httpproxies/status\n", "- nothing\n").replace("- events\n", "- nothing\n");
    assert_ne!(roles, less);
    api.apply(&less).await.unwrap();
    let serve = serve(&api, &state, &account("flood"), &serve_flags(&roles), 18300).await;

    let pages = testbed::Client::new(([127, 0, 0, 1], 18301).into());
    let tried = async |name: &str, result: &str, least: usize| {
        let look = async || {
            let page = pages.get("/metrics").await.map_err(|failure| failure.to_string())?.text();
            let rows = page.lines().filter(|line| line.starts_with(name) && line.contains(result));
            let count: f64 = rows.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum();
            if count >= least as f64 { Ok(()) } else { Err(format!("{count} times")) }
        };
        serve.expect_ok(&format!("{name} {result}"), TIMEOUT, look).await.unwrap();
    };
    // Every status is tried several times, every event once.
    tried("sesame_status_writes_total", "failed", 3 * OBJECTS).await;
    tried("sesame_events_total", "refused", OBJECTS).await;
    let log = serve.log().text();
    let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    println!(
        "{} lines, {} about status, {} about events",
        log.lines().count(),
        lines("write status"),
        lines("write event")
    );
    assert_eq!((lines("failed to write status"), lines("failed to write event")), (1, 1), "{log}");

    api.apply(&roles).await.unwrap();
    serve.expect_line("status is written again", TIMEOUT).await.unwrap();
    tried("sesame_status_writes_total", "written", OBJECTS).await;
    let log = serve.log().text();
    assert_eq!(log.lines().filter(|line| line.contains("status is written again")).count(), 1, "{log}");
}

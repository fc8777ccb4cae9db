//! The operators' commands against running replicas, by address, and against a real API server that has none.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testbed::{ApiServer, Backend, certs::Ca};

use crate::bed::{Bed, Replica, TIMEOUT, app};

/// What a command printed, and how it ended.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    #[track_caller]
    fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.err))
    }
}

async fn sesame(words: &[&str]) -> Ended {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sesame"));
    command.args(words).env_clear().env("HOME", "/nonexistent").stdin(Stdio::null());
    let output = tokio::time::timeout(TIMEOUT, command.output()).await.expect("it ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn debug(replica: &Replica) -> String {
    format!("{}:6060", replica.address)
}

/// The text of every file in an archive, one after the other.
fn archive(path: &Path) -> String {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_add_up_what_replicas_say_and_print_no_secret() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("operate").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let hundred_days = Duration::from_secs(100 * 24 * 3600);
    let leaf = Ca::new("operate").leaf("tls.example.com").lifetime(hundred_days).make();
    let metadata = |name: &str| json!({ "name": name, "namespace": namespace });
    let ingress = |name: &str, service: &str, tls: Value| {
        let backend = json!({ "service": { "name": service, "port": { "number": 80 } } });
        let paths = json!([{ "path": "/", "pathType": "Prefix", "backend": backend }]);
        json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata(name),
            "spec": { "tls": tls, "rules": [{ "host": format!("{name}.example.com"), "http": { "paths": paths } }] } })
    };
    let headers = json!({ "set": [{ "name": "Authorization", "value": "planted-credential-of-a-header" }] });
    let route = json!({ "services": [{ "name": "web", "port": 80 }], "requestHeadersPolicy": headers });
    for object in [
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": metadata("cert"),
            "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } }),
        ingress("tls", "web", json!([{ "hosts": ["tls.example.com"], "secretName": "cert" }])),
        ingress("broken", "missing", json!([])),
        json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": metadata("header"),
            "spec": { "virtualhost": { "fqdn": "header.example.com" }, "routes": [route] } }),
    ] {
        bed.api.apply(&object.to_string()).await.unwrap();
    }
    let (first, second) = (bed.replica("sesame-0").await.ready().await, bed.replica("sesame-1").await.ready().await);
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    first.in_step(1).await;
    let (one, other) = (debug(&first), debug(&second));
    let both = ["--address", &*one, "--address", &*other];
    let with = |words: &[&'static str]| [words, &both[..]].concat();
    first.expect_metric("sesame_object_verdicts", "SES3001", |count| count == 1.0).await;
    second.expect_metric("sesame_object_verdicts", "SES3001", |count| count == 1.0).await;

    // Two replicas, one leader, one proxy that has everything.
    let leads = async || {
        let status = sesame(&with(&["status", "-o", "json"])).await;
        if status.code == 0 { Ok(status.json()) } else { Err(status.out + &status.err) }
    };
    let status = testbed::eventually("one leader", TIMEOUT, leads).await.unwrap();
    let leaders = status["replicas"].as_array().unwrap().iter().filter(|replica| replica["leader"] == true).count();
    assert_eq!(
        (leaders, status["replicas"].as_array().unwrap().len(), &status["findings"]),
        (1, 2, &json!([])),
        "{status}"
    );
    let fleet = &status["fleets"][0];
    assert_eq!((&fleet["fleet"], &fleet["proxies"], &fleet["in_step"]), (&json!("shared"), &json!(1), &json!(1)));
    let table = sesame(&with(&["status", "--all"])).await.expect(0).out;
    for text in ["REPLICA", "leader", "follower", "FLEET", "shared", "PROXY", "in step", "1.40"] {
        assert!(table.contains(text), "{text} is not in {table}");
    }
    let yaml = sesame(&with(&["status", "-o", "yaml"])).await.expect(0).out;
    let from_yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(from_yaml["fleets"], status["fleets"]);

    // What is said, with code, object, field and words.
    let verdicts = sesame(&with(&["verdicts", "-o", "json"])).await.expect(1).json();
    let verdict = verdicts["verdicts"].as_array().unwrap().iter().find(|verdict| verdict["name"] == "broken").unwrap();
    assert_eq!((&verdict["code"], &verdict["kind"]), (&json!("SES3001"), &json!("Ingress")));
    assert!(verdict["field"].as_str().unwrap().starts_with("spec.rules[0]"), "{verdict}");
    let object = format!("{namespace}/web");
    let fine = sesame(&["verdicts", "ingress", &object, "--address", &one]).await.expect(0).out;
    assert_eq!(fine, "no verdicts for these objects\n");
    let table = sesame(&["verdicts", "ingresses", "--address", &one]).await.expect(1).out;
    assert!(table.contains(&format!("Ingress {namespace}/broken")) && table.contains("SES3001"), "{table}");
    let unknown = sesame(&["verdicts", "Ingres", "--address", &one]).await.expect(2).err;
    assert!(unknown.contains("error[SES1001]: Sesame reads no objects of kind Ingres"), "{unknown}");

    // What proxies are sent: everything but keys and credentials.
    let secret = leaf.key_pem();
    let planted: Vec<&str> = secret.lines().filter(|line| line.len() > 20 && !line.starts_with('-')).collect();
    assert!(!planted.is_empty());
    let without_secrets = |text: &str, what: &str| {
        for secret in planted.iter().copied().chain(["planted-credential-of-a-header", "PRIVATE KEY"]) {
            assert!(!text.contains(secret), "{secret} is in {what}");
        }
    };
    let dump = sesame(&with(&["dump", "-o", "json"])).await.expect(0);
    without_secrets(&dump.out, "the dump");
    let resources = dump.json()["fleets"][0]["resources"].as_array().unwrap().clone();
    assert!(
        resources.iter().any(|it| it["type"] == "sds" && it["resource"].to_string().contains("[redacted]")),
        "{}",
        dump.out
    );
    let listeners = sesame(&with(&["dump", "--type", "lds"])).await.expect(0).out;
    assert!(listeners.contains("ingress_http") && !listeners.contains("cds"), "{listeners}");
    without_secrets(&sesame(&with(&["dump", "-o", "yaml"])).await.expect(0).out, "the dump as YAML");

    // Certificates: valid for longer than the week that is the default, that of the host for less than a year.
    let certificates = sesame(&with(&["certs", "-o", "json"])).await.expect(0).json();
    let rows = certificates.as_array().unwrap();
    let of = |what: &str| rows.iter().filter(|row| row["of"] == what).count();
    assert_eq!((of("xds ca"), of("xds server"), of("host")), (2, 2, 1), "{certificates}");
    let host = rows.iter().find(|row| row["of"] == "host").unwrap();
    assert_eq!((&host["names"], &host["state"]), (&json!(["tls.example.com"]), &json!("valid")));
    let soon = sesame(&with(&["certs", "--within", "8760h"])).await.expect(1).out;
    assert!(soon.contains("soon"), "{soon}");

    // The level of all replicas, until it is changed again.
    let before = sesame(&with(&["log", "-o", "json"])).await.expect(0).json();
    assert!(before[0]["level"].as_str().unwrap().contains("info"), "{before}");
    sesame(&with(&["log", "info,xds=debug"])).await.expect(0);
    let after = sesame(&with(&["log"])).await.expect(0).out;
    assert_eq!(after.matches("xds=debug").count(), 2, "{after}");
    second.process.expect_line("log level changed", TIMEOUT).await.unwrap();
    let misspelt = sesame(&with(&["log", "inof"])).await.expect(2).err;
    assert!(misspelt.contains("`inof` is no level"), "{misspelt}");

    // A bundle of all of it.
    let file = bed.state().path().join("report.tar.gz");
    let path = file.to_str().unwrap();
    sesame(&[&["bug-report", "-f", path][..], &both[..]].concat()).await.expect(0);
    let bundle = archive(&file);
    for part in [
        "config_dump.json",
        "verdicts.json",
        "certificates.json",
        "sesame_batches_total",
        "sesame-bug-report/version.txt",
    ] {
        assert!(bundle.contains(part), "{part} is not in the bundle");
    }
    assert!(bundle.contains("SES3001") && bundle.contains(&format!("{}_6060", first.address)), "{path}");
    without_secrets(&bundle, "the bundle");
    let again = sesame(&["bug-report", "-f", path, "--address", &one]).await.expect(2).err;
    assert!(again.contains("error[SES1010]"), "{again}");

    // One replica ends: the other tells, and it is a finding. Then nobody is left.
    second.process.kill().await.unwrap();
    let half = sesame(&with(&["status", "-o", "json"])).await.expect(1).json();
    assert_eq!(half["replicas"][1]["state"], "unknown", "{half}");
    assert!(half["findings"].to_string().contains("cannot be queried"), "{half}");
    first.process.kill().await.unwrap();
    for command in ["status", "verdicts", "dump", "certs", "log", "bug-report"] {
        let nobody = sesame(&[command, "--address", &one, "--address", &other]).await.expect(2).err;
        assert!(nobody.contains("error[SES10") && nobody.contains("cannot connect to"), "{command}: {nobody}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_cluster_rights_or_sesame_errors_say_what_is_missing() {
    let nowhere = sesame(&["status"]).await.expect(2).err;
    assert!(nowhere.starts_with("error[SES1011]: there is no way to a cluster: no kubeconfig was found"), "{nowhere}");
    let missing = sesame(&["status", "--kubeconfig", "/nonexistent/config"]).await.expect(2).err;
    assert!(missing.contains("the kubeconfig /nonexistent/config cannot be used"), "{missing}");

    let api = ApiServer::start().await.unwrap();
    let admin = api.kubeconfig().unwrap();
    let admin = admin.to_str().unwrap();
    let namespace = api.namespace("projectsesame").await.unwrap();
    let asked = async |kubeconfig: &str, words: &[&str]| {
        sesame(&[words, &["--kubeconfig", kubeconfig, "--namespace", &namespace]].concat()).await
    };
    for command in ["status", "verdicts", "dump", "certs", "log"] {
        let none = asked(admin, &[command]).await.expect(2).err;
        assert!(none.contains(&format!("error[SES1060]: no pod with app=sesame in namespace {namespace}")), "{none}");
    }
    let stranger = api.kubeconfig_as("stranger", &["system:authenticated"]).unwrap();
    let stranger = stranger.to_str().unwrap();
    let denied = asked(stranger, &["status"]).await.expect(2).err;
    assert!(denied.contains("error[SES1011]") && denied.contains("cannot list resource \"pods\""), "{denied}");
    let context = asked(admin, &["status", "--context", "elsewhere"]).await.expect(2).err;
    assert!(context.contains("elsewhere"), "{context}");

    // A pod that no node runs: the report has what the API server knows, and says what is missing.
    let env = json!([{ "name": "TOKEN", "value": "planted-value-of-a-variable" }]);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "sesame-0", "namespace": namespace, "labels": { "app": "sesame" } },
        "spec": { "containers": [{ "name": "sesame", "image": "sesame", "env": env }] } });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "planted", "namespace": namespace },
        "stringData": { "key": "planted-value-of-a-secret" } });
    for object in [pod, secret] {
        api.apply(&object.to_string()).await.unwrap();
    }
    let pending = asked(admin, &["status"]).await.expect(2).err;
    assert!(pending.contains("error[SES1060]: the pod is Pending"), "{pending}");
    let file = api.state().path().join("report.tar.gz");
    asked(admin, &["bug-report", "-f", file.to_str().unwrap()]).await.expect(1);
    let bundle = archive(&file);
    assert!(bundle.contains("cluster/pods.json") && bundle.contains("errors.txt"), "{bundle}");
    assert!(bundle.contains("\"TOKEN\"") && bundle.contains("the pod is Pending"), "{bundle}");
    // The second is in base64, as Secrets have it.
    for secret in ["planted-value", "cGxhbnRlZC12YWx1ZS1vZi1hLXNlY3JldA"] {
        assert!(!bundle.contains(secret), "{secret} is in the bundle");
    }

    // Before the installation: an API server without nodes, CRDs or rights.
    let checks = asked(admin, &["precheck", "-o", "json"]).await.expect(1).json();
    let result = |checks: &Value, check: &str| {
        let found = checks.as_array().unwrap().iter().find(|row| row["check"] == check).cloned();
        found.unwrap_or_else(|| panic!("no {check} in {checks}"))
    };
    assert_eq!(result(&checks, "kubernetes")["result"], "ok");
    assert_eq!(result(&checks, "permissions")["message"], "the user may do everything");
    assert_eq!(result(&checks, "class")["result"], "ok");
    assert_eq!(result(&checks, "nodes")["result"], "error", "there are none");
    assert_eq!(result(&checks, "ports")["result"], "ok");
    let denied = asked(stranger, &["precheck", "-o", "json"]).await.expect(1).json();
    let rights = result(&denied, "permissions");
    assert!(rights["result"] == "error" && rights["message"].to_string().contains("create namespaces"), "{rights}");
    assert_eq!(result(&denied, "granting")["result"], "error");
    assert!(result(&denied, "crds")["message"].as_str().unwrap().starts_with("not checked: "), "{denied}");
    let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
    api.install([crds]).await.unwrap();
    let class = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": { "name": "sesame" },
        "spec": { "controller": "example.com/other" } });
    api.apply(&class.to_string()).await.unwrap();
    let taken = asked(admin, &["precheck", "-o", "json"]).await.expect(1).json();
    assert!(result(&taken, "class")["message"].as_str().unwrap().contains("belongs to `example.com/other`"), "{taken}");
    let count = std::fs::read_dir(crds).unwrap().count();
    let there = format!("{count} CRDs are there");
    assert!(result(&taken, "crds")["message"].as_str().unwrap().starts_with(&there), "{taken}");

    api.stop().await.unwrap();
    let dead = asked(admin, &["status"]).await.expect(2).err;
    assert!(dead.contains("error[SES1011]: listing pods"), "{dead}");
    let dead = asked(admin, &["precheck"]).await.expect(2).err;
    assert!(dead.contains("error[SES1011]: the version of the API server failed"), "{dead}");
}

#[tokio::test]
async fn the_program_is_a_plugin_of_kubectl_by_its_name_and_completes() {
    let state = testbed::StateDir::new("plugin").unwrap();
    let plugin = state.path().join("kubectl-sesame");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sesame"), &plugin).unwrap();
    let help = tokio::process::Command::new(&plugin).arg("--help").output().await.unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("Usage: kubectl sesame [OPTIONS] <COMMAND>"), "{help}");
    assert!(help.contains("  status ") && !help.contains("  serve "), "{help}");
    let mut kubectl = tokio::process::Command::new(parts::program("kubectl").unwrap());
    kubectl.args(["sesame", "version"]).env("PATH", state.path()).env("HOME", "/nonexistent");
    let version = kubectl.output().await.unwrap();
    assert!(version.status.success(), "{}", String::from_utf8_lossy(&version.stderr));
    assert_eq!(String::from_utf8(version.stdout).unwrap(), sesame(&["version"]).await.expect(0).out);
    let own = sesame(&["--help"]).await.expect(0).out;
    assert!(own.contains("  status ") && own.contains("  serve "), "{own}");
    for (shell, word) in [("bash", "complete -F _sesame"), ("zsh", "#compdef sesame"), ("fish", "complete -c sesame")] {
        let script = sesame(&["completion", shell]).await.expect(0).out;
        assert!(script.contains(word) && script.contains("bug-report"), "{script}");
    }
}

//! `--check`: what is wrong, where, and the exit code.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use testbed::certs::Ca;
use testbed::{Backend, StateDir};

use crate::served::{LIMIT, ingress, service, sesame};

#[tokio::test]
async fn a_check_says_what_is_wrong_and_where() {
    let backend = Backend::start("web").await.unwrap();
    let state = StateDir::new("check").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("web.yaml"), service("web", &backend)).unwrap();
    fs::write(folder.join("a.yaml"), ingress("a", "a.example.com", "web")).unwrap();
    let check = |name: &str| {
        let command = sesame().name(name).arg("run").flag("folder", &folder).args(["--check", "--once"]);
        command.start_in(&state).unwrap()
    };
    let clean = check("clean");
    assert!(clean.exited().await.unwrap().success(), "{}", clean.log().text());

    fs::write(folder.join("b.yaml"), ingress("b", "b.example.com", "nowhere")).unwrap();
    let faulty = check("faulty");
    assert_eq!(faulty.exited().await.unwrap().code(), Some(1));
    let said = faulty.log().text();
    for part in
        ["error[SES3001]", "Ingress default/b", "b.yaml:14:", "spec.rules[0].http.paths[0].backend.service.name"]
    {
        assert!(said.contains(part), "{part} is missing in:\n{said}");
    }
}

#[tokio::test]
async fn a_check_fails_where_nothing_is_served_and_says_what_a_certificate_is() {
    let state = StateDir::new("nothing").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    let check = async |text: &str| {
        fs::write(folder.join("a.yaml"), text).unwrap();
        let command = sesame().arg("run").flag("folder", &folder).args(["--check", "--once"]);
        let process = command.start_in(&state).unwrap();
        (process.exited().await.unwrap().code(), process.log().text())
    };
    let good = ingress("a", "a.example.com", "web");
    for (text, code) in [
        (good.replace("kind: Ingress", "kind: Ingres"), "SES2012"),
        (good.replace("networking.k8s.io/v1", "networking.k8s.io/v1beta1"), "SES2009"),
        (good.replace("spec:\n", "spec:\n  ingressClassName: nginx\n"), "SES2013"),
    ] {
        let (exit, said) = check(&text).await;
        assert!(exit == Some(1) && said.contains(code), "{code} is missing in:\n{said}");
    }
    // Without its Secret a host has TLS on this machine, and nowhere else.
    let web = service("web", &Backend::start("web").await.unwrap());
    let with_secret = good.replace("hosts: [a.example.com]", "hosts: [a.example.com]\n      secretName: cert");
    let (exit, said) = check(&format!("{web}---\n{with_secret}")).await;
    assert!(exit == Some(0) && said.contains("note[SES3125]"), "{said}");

    let command = sesame().arg("run").flag("folder", &folder).args(["--check", "--once", "--log-format", "json"]);
    let process = command.start_in(&state).unwrap();
    assert_eq!(process.exited().await.unwrap().code(), Some(0));
    let said = process.log().text();
    let line: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!((line["code"].as_str(), line["severity"].as_str()), (Some("SES3125"), Some("note")), "{said}");
}

#[tokio::test]
async fn the_example_of_gateway_api_is_right() {
    let state = StateDir::new("example").unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway");
    let command = sesame().name("example").arg("run").flag("folder", &folder).args(["--check", "--once"]);
    let check = command.start_in(&state).unwrap();
    assert!(check.exited().await.unwrap().success(), "{}", check.log().text());
    let said = check.log().text();
    assert!(
        said.contains("attachedListenerSets=1")
            && !said.contains("Accepted=False")
            && !said.contains("ResolvedRefs=False"),
        "{said}"
    );
    for route in ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"] {
        let status = format!("status of {route} shop/");
        let mut lines = said.lines().skip_while(|line| !line.contains(&status));
        assert!(lines.next().is_some(), "there is no {route} in {}\n{said}", folder.display());
        assert!(lines.next().is_some_and(|line| line.contains("Accepted=True ResolvedRefs=True")), "{route}: {said}");
    }
}

#[tokio::test]
async fn a_certificate_that_ends_while_it_is_served_is_told_then() {
    let state = StateDir::new("ends").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    let now = SystemTime::now();
    let leaf = Ca::new("ends").leaf("a.example.com").valid(now - LIMIT, now + Duration::from_secs(5)).make();
    let objects = [
        (
            "secret.json",
            serde_json::json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": { "name": "cert" },
                "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() },
            }),
        ),
        (
            "ingress.json",
            serde_json::json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "a" },
                "spec": { "tls": [{ "hosts": ["a.example.com"], "secretName": "cert" }], "rules": [{ "host": "a.example.com" }] },
            }),
        ),
    ];
    for (name, object) in &objects {
        fs::write(folder.join(name), object.to_string()).unwrap();
    }
    let process = sesame().name("ends").arg("run").flag("folder", &folder).arg("--check").start_in(&state).unwrap();
    // Nothing of the folder changes: it is the time that does.
    process.expect_line("SES3108", LIMIT).await.unwrap();
    process.expect_line("expired at", LIMIT).await.unwrap();
    process.kill().await.unwrap();
}

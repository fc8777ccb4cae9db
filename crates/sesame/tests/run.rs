//! `sesame run` as people use it: a folder, the real binary, a real Envoy.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use testbed::certs::Ca;
use testbed::process::{Command, Process};
use testbed::tokens::{TokenSigner, claims, key_set};
use testbed::{Backend, Client, KeyAnswer, KeyServer, Load, Net, StateDir, eventually};

const LIMIT: Duration = Duration::from_secs(20);

/// A folder that is served.
struct Served {
    folder: PathBuf,
    http: SocketAddr,
    https: SocketAddr,
    process: Process,
    _state: StateDir,
}

impl Served {
    /// Serves a folder with these files, each a name and a text.
    async fn start(files: &[(&str, String)]) -> Self {
        Self::start_with(files, None).await
    }

    /// The same with the text of a configuration file, which stands beside the folder.
    async fn start_with(files: &[(&str, String)], config: Option<&str>) -> Self {
        let state = StateDir::new("run").unwrap();
        let folder = state.path().join("objects");
        fs::create_dir(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        let address = Net::here().unwrap().address();
        let config = config.map(|text| state.write("sesame.yaml", text).unwrap());
        let command = command(&folder, address);
        let command = config.into_iter().fold(command, |command, file| command.flag("config-path", file));
        let process = command.start_in(&state).unwrap();
        process.expect_http((Ipv4Addr::LOCALHOST, stats(address)).into(), "/ready", LIMIT).await.unwrap();
        Self { folder, http: (address, 8080).into(), https: (address, 8443).into(), process, _state: state }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    async fn status(&self, host: &str, path: &str) -> u16 {
        Client::new(self.http).host(host).get(path).await.unwrap().status.as_u16()
    }

    async fn answers(&self, host: &str, path: &str, expected: u16) {
        let what = format!("{host}{path} to answer {expected}");
        let probe = async || match Client::new(self.http).host(host).get(path).await {
            Ok(answer) if answer.status.as_u16() == expected => Ok(()),
            Ok(answer) => Err(format!("it answers {}", answer.status)),
            Err(failure) => Err(failure.to_string()),
        };
        self.process.expect_ok(&what, LIMIT, async || probe().await).await.unwrap();
    }
}

/// The readiness port is on loopback, which tests of one process share; addresses are not.
fn stats(address: Ipv4Addr) -> u16 {
    let [.., high, low] = address.octets();
    20_000 + u16::from_be_bytes([high, low]) % 20_000
}

fn sesame() -> Command {
    Command::new(env!("CARGO_BIN_EXE_sesame")).name("sesame")
}

fn command(folder: &std::path::Path, address: Ipv4Addr) -> Command {
    let envoy = parts::program("envoy").unwrap();
    sesame()
        .arg("run")
        .flag("folder", folder)
        .flag("address", address.to_string())
        .flag("stats", stats(address).to_string())
        .flag("envoy", envoy)
}

fn service(name: &str, backend: &Backend) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  annotations: {{ projectsesame.io/endpoints: \
         \"{}\" }}\nspec:\n  ports: [{{ port: 80 }}]\n",
        backend.http()
    )
}

fn ingress(name: &str, host: &str, service: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\nspec:\n  tls:\n    - hosts: [{host}]\n  \
         rules:\n    - host: {host}\n      http:\n        paths:\n          - path: /\n            pathType: Prefix\n            \
         backend: {{ service: {{ name: {service}, port: {{ number: 80 }} }} }}\n"
    )
}

#[tokio::test]
async fn a_folder_that_is_served_can_be_looked_at_by_the_operators_commands() {
    let backend = Backend::start("web").await.unwrap();
    let state = StateDir::new("run").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("web.yaml"), service("web", &backend)).unwrap();
    fs::write(folder.join("a.yaml"), ingress("a", "a.example.com", "web")).unwrap();
    fs::write(folder.join("broken.yaml"), ingress("broken", "b.example.com", "missing")).unwrap();
    let address = Net::here().unwrap().address();
    let debug = SocketAddr::from((address, 6060));
    let process = command(&folder, address).flag("debug-address", debug.to_string()).start_in(&state).unwrap();
    process.expect_http((Ipv4Addr::LOCALHOST, stats(address)).into(), "/ready", LIMIT).await.unwrap();
    process.expect_http(debug, "/readyz", LIMIT).await.unwrap();
    let ask = async |words: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_sesame"));
        let output = command.args(words).args(["--address", &debug.to_string()]).output().await.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let in_step = async || match ask(&["status", "--all"]).await {
        (0, table) if table.contains("in step") => Ok(table),
        (code, table) => Err(format!("{code}: {table}")),
    };
    let table = process.expect_ok("a proxy in step", LIMIT, in_step).await.unwrap();
    assert!(table.contains("local") && table.contains("leader"), "{table}");
    let (code, verdicts) = ask(&["verdicts", "Ingress", "default/broken"]).await;
    assert!(code == 1 && verdicts.contains("SES3001"), "{verdicts}");
    let (code, scopes) = ask(&["dump", "--type", "srds", "-o", "json"]).await;
    assert!(code == 0 && scopes.contains("a.example.com"), "{scopes}");
    let (code, level) = ask(&["log", "debug"]).await;
    assert!(code == 0 && level.contains("debug"), "{level}");
    let metrics = Client::new(debug).get("/metrics").await.unwrap();
    assert!(String::from_utf8_lossy(&metrics.body).contains("sesame_batches_total"));
}

#[tokio::test]
async fn a_folder_is_served_and_followed() {
    let backend = Backend::start("web").await.unwrap();
    let files = [("web.yaml", service("web", &backend)), ("a.yaml", ingress("a", "a.example.com", "web"))];
    let served = Served::start(&files).await;
    assert_eq!(served.status("a.example.com", "/").await, 200);
    assert_eq!(served.status("b.example.com", "/").await, 404);

    let tls = Client::new(served.https).https().accept_any().host("a.example.com").get("/").await.unwrap();
    assert_eq!((tls.status.as_u16(), tls.backend()), (200, Some("web")));

    served.write("b.yaml", &ingress("b", "b.example.com", "web"));
    served.answers("b.example.com", "/", 200).await;
    served.write("b.yaml", "what: [is this");
    served.process.expect_line("SES2001", LIMIT).await.unwrap();
    assert_eq!(served.status("b.example.com", "/").await, 200, "a broken file keeps its last good objects");
    fs::remove_file(served.folder.join("b.yaml")).unwrap();
    served.answers("b.example.com", "/", 404).await;
    assert_eq!(served.status("a.example.com", "/").await, 200);
    served.process.expect_line("b.yaml is gone", LIMIT).await.unwrap();
    assert!(served.process.stop(LIMIT).await.unwrap().success());
    let said = served.process.log().text();
    assert!(said.contains("stopping Envoy on this machine") && !said.contains("replica"), "{said}");
}

/// Nobody has asked for Envoy's own pages at a port, so that no port is theirs.
#[tokio::test]
async fn a_gateway_in_a_folder_has_the_port_that_pages_of_envoy_have_elsewhere() {
    let backend = Backend::start("web").await.unwrap();
    let state = StateDir::new("run").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    let objects = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: web}\nspec:\n  \
                   gatewayClassName: sesame\n  listeners: [{name: http, protocol: HTTP, port: 8002}]\n---\n\
                   apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web}\nspec:\n  \
                   parentRefs: [{name: web}]\n  rules: [{backendRefs: [{name: web, port: 80}]}]\n---\n";
    fs::write(folder.join("all.yaml"), format!("{objects}{}", service("web", &backend))).unwrap();
    // All of it is on loopback, which other tests share.
    let port = stats(Net::here().unwrap().address());
    let command = sesame().arg("run").flag("folder", &folder).flag("envoy", parts::program("envoy").unwrap());
    let command = command.flag("http", port.to_string()).flag("https", (port + 20_000).to_string());
    let process = command.start_in(&state).unwrap();
    process.expect_http((Ipv4Addr::LOCALHOST, 8002).into(), "/", LIMIT).await.unwrap();
    let said = process.log().text();
    assert!(!said.contains("PortUnavailable") && !said.contains("SES7007"), "{said}");
}

/// The keys are those that docs/operate.md lists.
#[tokio::test]
async fn in_json_every_line_has_its_keys() {
    let state = StateDir::new("json").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), ingress("a", "a.example.com", "gone")).unwrap();
    let address = Net::here().unwrap().address();
    let config = state.write("sesame.yaml", "timeouts: {request-timeout: 1s}\n").unwrap();
    let command = command(&folder, address).flag("log-format", "json").flag("config-path", &config);
    let process = command.start_in(&state).unwrap();
    process.expect_http((Ipv4Addr::LOCALHOST, stats(address)).into(), "/ready", LIMIT).await.unwrap();
    fs::write(&config, "nonsense: 1\n").unwrap();
    process.expect_line("SES1027", LIMIT).await.unwrap();
    assert!(process.stop(LIMIT).await.unwrap().success());
    let said = process.log().text();
    let (mut logged, mut findings) = (0, 0);
    for line in said.lines() {
        let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).expect(line);
        let has = |keys: &[&str]| keys.iter().all(|key| fields.get(*key).is_some_and(serde_json::Value::is_string));
        match fields.contains_key("level") {
            true => logged += usize::from(has(&["timestamp", "level", "target", "message"])),
            false => findings += usize::from(has(&["code", "severity", "message"])),
        }
        // A code in the text is a field, too.
        let message = fields["message"].as_str().unwrap();
        let codes = ["SES1021", "SES1027"].into_iter().filter(|code| message.contains(code));
        for code in codes {
            assert_eq!(fields["code"], code, "{line}");
        }
    }
    assert!(said.contains(r#""code":"SES1021""#) && said.contains(r#""code":"SES1027""#), "{said}");
    // One line for one fact: that the proxy has connected.
    assert_eq!(said.lines().filter(|line| line.contains(" connected\"")).count(), 1, "{said}");
    assert_eq!(logged + findings, said.lines().count(), "{said}");
    assert!(logged > 0 && said.contains(r#""code":"SES3001""#), "{said}");
}

#[tokio::test]
async fn a_configuration_file_beside_a_folder_is_followed() {
    let backend = Backend::start("web").await.unwrap();
    let files = [("web.yaml", service("web", &backend)), ("a.yaml", ingress("a", "a.example.com", "web"))];
    let config =
        |value: &str| format!("policy: {{applyToIngress: true, response-headers: {{set: {{x-config: {value}}}}}}}\n");
    let served = Served::start_with(&files, Some(&config("one"))).await;
    let file = served.folder.with_file_name("sesame.yaml");
    let expect = async |value: &str| {
        let look = async || match Client::new(served.http).host("a.example.com").get("/").await {
            Ok(answer) if answer.headers.get("x-config").is_some_and(|found| found == value) => Ok(()),
            other => Err(format!("{other:?}")),
        };
        served.process.expect_ok(&format!("x-config: {value}"), LIMIT, look).await.unwrap();
    };
    expect("one").await;
    fs::write(&file, config("two")).unwrap();
    expect("two").await;
    fs::write(&file, format!("{}nonsense: 1\n", config("three"))).unwrap();
    served.process.expect_line("SES1027", LIMIT).await.unwrap();
    expect("two").await;
    fs::write(&file, config("four")).unwrap();
    expect("four").await;
}

#[tokio::test]
async fn a_gateway_in_a_folder_is_served_and_its_status_is_shown() {
    let backend = Backend::start("web").await.unwrap();
    let gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: web}\nspec:\n  \
                   gatewayClassName: sesame\n  listeners:\n  - {name: http, protocol: HTTP, port: 80}\n  \
                   - {name: https, protocol: HTTPS, port: 443, hostname: a.example.com, tls: {certificateRefs: [{name: none}]}}\n  \
                   - {name: more, protocol: HTTP, port: 9090, hostname: more.example.com}\n";
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web}\nspec:\n  \
                 parentRefs: [{name: web}]\n  hostnames: [a.example.com]\n  rules: [{backendRefs: [{name: web, port: 80}]}]\n";
    let files = [
        ("web.yaml", service("web", &backend)),
        ("gateway.yaml", gateway.to_owned()),
        ("route.yaml", route.to_owned()),
        ("ingress.yaml", ingress("b", "b.example.com", "web")),
    ];
    let served = Served::start(&files).await;
    served.answers("a.example.com", "/", 200).await;
    assert_eq!(served.status("b.example.com", "/").await, 200, "an Ingress beside it is served as before");
    let tls = Client::new(served.https).https().accept_any().host("a.example.com").get("/").await.unwrap();
    assert_eq!((tls.status.as_u16(), tls.backend()), (200, Some("web")), "by a certificate that was signed for it");
    let more = Client::new((served.http.ip(), 9090).into()).host("more.example.com").get("/").await.unwrap();
    assert_eq!(more.status.as_u16(), 404);
    served.process.expect_line("port 80 is served on port 8080", LIMIT).await.unwrap();
    served.process.expect_line("listeners http", LIMIT).await.unwrap();
    let text = served.process.log().text();
    let line =
        |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("status of Gateway default/web").contains("Accepted=True ResolvedRefs=True"), "{text}");
    assert!(line("listeners http").contains("attachedRoutes=1"), "{text}");
    assert!(served.process.stop(LIMIT).await.unwrap().success());
}

#[tokio::test]
async fn a_file_broken_and_mended_loses_no_request() {
    let backend = Backend::start("web").await.unwrap();
    let good = ingress("a", "a.example.com", "web");
    let served = Served::start(&[("web.yaml", service("web", &backend)), ("a.yaml", good.clone())]).await;
    let load = Load::of(Client::new(served.http).host("a.example.com").get("/")).per_second(200).start();
    load.answered(100).await;
    served.write("a.yaml", "spec: [rules");
    served.process.expect_line("SES2001", LIMIT).await.unwrap();
    load.answered(100).await;
    served.write("a.yaml", &format!("{good}---\n{}", ingress("b", "b.example.com", "web")));
    served.process.expect_line("a.yaml is valid again", LIMIT).await.unwrap();
    served.answers("b.example.com", "/", 200).await;
    load.answered(100).await;
    let report = load.stop().await;
    assert!(report.failed.is_empty(), "{:?}", report.failed);
}

#[tokio::test]
async fn envoy_is_started_again_and_never_outlives_us() {
    let backend = Backend::start("web").await.unwrap();
    let files = [("web.yaml", service("web", &backend)), ("a.yaml", ingress("a", "a.example.com", "web"))];
    let served = Served::start(&files).await;
    let first = child_of(served.process.id()).unwrap();
    kill(first);
    served.process.expect_line("SES1008", LIMIT).await.unwrap();
    served.answers("a.example.com", "/", 200).await;
    let second = child_of(served.process.id()).unwrap();
    assert_ne!(first, second);
    served.process.kill().await.unwrap();
    eventually("Envoy to end", LIMIT, async || if is_running(second) { Err("it runs") } else { Ok(()) }).await.unwrap();
}

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
async fn the_example_of_emissary_is_served() {
    let state = StateDir::new("example").unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/emissary");
    let command = sesame().name("example").arg("run").flag("folder", &folder).args(["--check", "--once"]);
    let check = command.start_in(&state).unwrap();
    assert!(check.exited().await.unwrap().success(), "{}", check.log().text());
    assert!(check.log().text().contains("note[SES3125]"), "the Secret of the Host is not in the folder");

    let mut backends = Vec::new();
    for name in ["front", "front-next", "orders", "auth"] {
        backends.push(Backend::start(name).await.unwrap());
    }
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let services = |count: usize| {
        let places = backends.iter().take(count).zip(18081..);
        places.fold(text("services.yaml"), |text, (backend, port)| {
            text.replace(&format!("127.0.0.1:{port}"), &backend.http().to_string())
        })
    };
    let files = ["listeners.yaml", "host.yaml", "mappings.yaml", "auth.yaml"].map(|name| (name, text(name)));
    let served = Served::start(&[&files[..], &[("services.yaml", services(4))]].concat()).await;
    served.answers("shop.example.com", "/", 301).await;
    let plain = Client::new(served.http).host("shop.example.com").get("/cart?a=1").await.unwrap();
    assert_eq!(plain.headers["location"], "https://shop.example.com:8443/cart?a=1");
    let tls = || Client::new(served.https).https().accept_any().host("shop.example.com");
    let answer = tls().get("/orders/7").await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.backend()), (200, Some("orders")));
    let mut canary = 0;
    for _ in 0..300 {
        let answer = tls().get("/").await.unwrap();
        assert_eq!(answer.status.as_u16(), 200);
        canary += usize::from(answer.backend() == Some("front-next"));
    }
    assert!((20..=110).contains(&canary), "{canary} of 300 requests went to the canary of 20 percent");
    // Nobody is there any more who could be asked.
    served.write("services.yaml", &services(3));
    let refused = async || match tls().get("/").await.unwrap().status.as_u16() {
        403 => Ok(()),
        other => Err(format!("it answers {other}")),
    };
    served.process.expect_ok("requests to be refused", LIMIT, refused).await.unwrap();
    assert_eq!(tls().get("/orders/7").await.unwrap().status.as_u16(), 200, "it bypasses the AuthService");
    assert!(served.process.stop(LIMIT).await.unwrap().success());
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
async fn ports_that_are_equal_are_refused_at_once() {
    let state = StateDir::new("equal").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    let address = Net::here().unwrap().address();
    let command = command(&folder, address).flag("http", "8443").flag("https", "8443");
    let process = command.start_in(&state).unwrap();
    assert_eq!(process.exited().await.unwrap().code(), Some(1));
    let said = process.log().text();
    assert!(said.contains("the HTTP listener and the HTTPS listener both listen on port 8443"), "{said}");
    assert!(!said.contains("starting Envoy"), "{said}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let state = StateDir::new("taken").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    let address = Net::here().unwrap().address();
    let _held = std::net::TcpListener::bind((address, 8443)).unwrap();
    let process = command(&folder, address).start_in(&state).unwrap();
    assert_eq!(process.exited().await.unwrap().code(), Some(1));
    let said = process.log().text();
    assert!(said.contains("SES1005") && said.contains(":8443 (--https)"), "{said}");
}

/// An answer that is the proxy's own names the object of the host, too.
#[tokio::test]
async fn a_404_of_a_host_has_its_object_in_the_access_log() {
    let backend = Backend::start("web").await.unwrap();
    let state = StateDir::new("log").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    let only = ingress("a", "a.example.com", "web").replace("path: /\n", "path: /only\n");
    fs::write(folder.join("a.yaml"), format!("{only}---\n{}", service("web", &backend))).unwrap();
    let (address, log) = (Net::here().unwrap().address(), state.path().join("access.log"));
    let command = command(&folder, address).flag("access-log", &log).flag("access-log-format", "json");
    let process = command.start_in(&state).unwrap();
    process.expect_http((Ipv4Addr::LOCALHOST, stats(address)).into(), "/ready", LIMIT).await.unwrap();
    let client = Client::new((address, 8443).into()).https().accept_any().host("a.example.com");
    assert_eq!(client.get("/nothing").await.unwrap().status.as_u16(), 404);
    let look = async || {
        let text = fs::read_to_string(&log).map_err(|error| error.to_string())?;
        let line = text.lines().find(|line| line.contains("SES8012")).ok_or("no line yet")?;
        serde_json::from_str::<serde_json::Value>(line).map_err(|error| error.to_string())
    };
    let line = process.expect_ok("the line of the access log", LIMIT, look).await.unwrap();
    assert_eq!((&line["origin_kind"], &line["origin_name"]), (&"Ingress".into(), &"a".into()), "{line}");
}

/// `sesame run … --access-log /dev/stdout > FILE`: Envoy opens the file a second time, and both write to it.
#[tokio::test]
async fn an_access_log_in_standard_output_that_is_a_file_loses_no_line() {
    const REQUESTS: usize = 200;
    let backend = Backend::start("web").await.unwrap();
    let state = StateDir::new("redirected").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("web.yaml"), service("web", &backend)).unwrap();
    fs::write(folder.join("a.yaml"), ingress("a", "a.example.com", "web")).unwrap();
    let (address, file) = (Net::here().unwrap().address(), state.path().join("out"));
    let line = format!(
        "exec {} run --folder {} --address {address} --stats {} --envoy {} --access-log /dev/stdout > {}",
        env!("CARGO_BIN_EXE_sesame"),
        folder.display(),
        stats(address),
        parts::program("envoy").unwrap().display(),
        file.display()
    );
    let process = Command::new("/bin/sh").name("sesame").arg("-c").arg(line).start_in(&state).unwrap();
    process.expect_http((Ipv4Addr::LOCALHOST, stats(address)).into(), "/ready", LIMIT).await.unwrap();
    let client = Client::new((address, 8080).into()).host("a.example.com");
    for number in 0..REQUESTS {
        if number % 10 == 0 {
            // Something for us to say, as long as a line of the log.
            let name = format!("b{number}");
            fs::write(folder.join(format!("{name}.yaml")), ingress(&name, &format!("{name}.example.com"), "web"))
                .unwrap();
            let said = || fs::read_to_string(&file).unwrap_or_default();
            let is_said = async || if said().contains(&format!("default/{name}")) { Ok(()) } else { Err(said()) };
            eventually(format!("a line about {name}"), LIMIT, is_said).await.unwrap();
        }
        assert_eq!(client.get(&format!("/request-{number}-")).await.unwrap().status, 200);
    }
    assert!(process.stop(LIMIT).await.unwrap().success());
    let text = fs::read_to_string(&file).unwrap();
    let lost =
        |text: &str| (0..REQUESTS).filter(|at| text.matches(&format!("GET /request-{at}- ")).count() != 1).count();
    assert_eq!(lost(&text), 0, "{text}");
    let about = |number: usize| text.lines().filter(|line| line.contains(&format!("default/b{number}"))).count();
    let missing: Vec<usize> = (0..REQUESTS).step_by(10).filter(|number| about(*number) == 0).collect();
    assert!(missing.is_empty(), "lines about {missing:?} are missing: {text}");
}

/// Anyone can ask for names that nobody has, as fast as connections are opened: the log has the limit, the metrics have all of them.
#[tokio::test]
async fn a_flood_of_unknown_server_names_is_logged_up_to_the_limit_and_counted_in_full() {
    const HANDSHAKES: usize = 60;
    let state = StateDir::new("handshakes").unwrap();
    let folder = state.path().join("objects");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), ingress("a", "a.example.com", "web")).unwrap();
    let config = state.write("sesame.yaml", "accesslog-failed-handshakes-per-second: 1\n").unwrap();
    let (address, log) = (Net::here().unwrap().address(), state.path().join("access.log"));
    let command = command(&folder, address).flag("config-path", config).flag("access-log", &log);
    let process = command.start_in(&state).unwrap();
    process.expect_http((Ipv4Addr::LOCALHOST, stats(address)).into(), "/ready", LIMIT).await.unwrap();
    let client = |name: &str| Client::new((address, 8443).into()).https().accept_any().sni(name).host(name);
    let listens = async || client("a.example.com").get("/").await.map_err(|failure| failure.to_string());
    eventually("a host with TLS", LIMIT, listens).await.unwrap();
    let began = Instant::now();
    for number in 0..HANDSHAKES {
        assert!(client(&format!("n{number}.example.com")).get("/").await.is_err(), "nobody has this name");
    }
    let metrics = async || {
        let answer = Client::new((Ipv4Addr::LOCALHOST, stats(address)).into()).get("/stats/prometheus").await;
        let text = answer.map_err(|failure| failure.to_string())?.text();
        let sum = |name: &str| -> usize {
            let lines = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
        };
        let names = ["envoy_listener_no_filter_chain_match", "envoy_listener_ssl_connection_error"];
        let logged = sum("envoy_access_log_process_ratelimit_allowed");
        let (all, seen) = (names.map(sum).iter().sum(), logged + sum("envoy_access_log_process_ratelimit_denied"));
        if (seen, all) == (HANDSHAKES, HANDSHAKES) { Ok(logged) } else { Err(format!("{all} of which {seen}\n{text}")) }
    };
    let logged = eventually("every handshake to be counted", LIMIT, metrics).await.unwrap();
    let seconds = began.elapsed().as_secs() as usize;
    assert!((1..=seconds + 2).contains(&logged), "{logged} lines in {seconds} s");
    assert!(process.stop(LIMIT).await.unwrap().success());
    let lines = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = lines.lines().filter(|line| line.contains("TLS handshake")).collect();
    assert_eq!(lines.len(), logged, "{lines:?}");
    assert!(lines[0].contains("n0.example.com"), "{lines:?}");
}

/// Children are listed by the thread that started them.
fn child_of(parent: u32) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).next()?.parse().ok()
}

fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn tokens_are_checked_with_the_keys_of_a_server_that_rotates_them() {
    let backend = Backend::start("web").await.unwrap();
    let keys = KeyServer::start(None).await.unwrap();
    let [one, two] = ["one", "two"].map(TokenSigner::new);
    keys.set(KeyAnswer::Document(key_set([&one])));
    let proxy = format!(
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{name: api}}\nspec:\n  virtualhost:\n    \
         fqdn: api.example.com\n    tls: {{secretName: none}}\n    jwtProviders: [{{name: a, default: true, remoteJWKS: \
         {{uri: 'http://{}/', cacheDuration: 1s}}}}]\n  routes: [{{services: [{{name: web, port: 80}}]}}]\n",
        keys.address()
    );
    let served = Served::start(&[("web.yaml", service("web", &backend)), ("api.yaml", proxy)]).await;
    let client = Client::new(served.https).https().accept_any().sni("api.example.com").host("api.example.com");
    let status = async |signer: &TokenSigner| {
        let token = format!("Bearer {}", signer.token(&claims("anybody", "anything")));
        client.get("/").header("authorization", &token).await.unwrap().status.as_u16()
    };
    // What is served first has the keys already.
    assert_eq!((status(&one).await, status(&two).await), (200, 401));
    assert_eq!(client.get("/").await.unwrap().status, 401);
    keys.set(KeyAnswer::Document(key_set([&two])));
    let rotated = async || match (status(&one).await, status(&two).await) {
        (401, 200) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("the new key to be the only one", LIMIT, rotated).await.unwrap();
    keys.set(KeyAnswer::Reset);
    served.process.expect_line("SES5158", LIMIT).await.unwrap();
    assert_eq!((status(&one).await, status(&two).await), (401, 200), "the last keys are kept");
}

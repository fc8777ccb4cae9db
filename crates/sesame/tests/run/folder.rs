//! What is in the folder is served, followed, and shown to operators.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde_json::Value;
use testbed::tokens::{TokenSigner, claims, key_set};
use testbed::{Backend, Client, KeyAnswer, KeyServer, Load, Net, StateDir, eventually};

use crate::served::{LIMIT, Served, command, ingress, service, sesame, stats};

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
async fn a_gateway_in_a_folder_is_served_and_its_status_is_shown() {
    let backend = Backend::start("web").await.unwrap();
    let gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: web}\nspec:\n  \
                   gatewayClassName: sesame\n  listeners:\n  - {name: http, protocol: HTTP, port: 80}\n  \
                   - {name: https, protocol: HTTPS, port: 443, hostname: a.example.com, tls: {certificateRefs: [{name: none}]}}\n  \
                   - {name: more, protocol: HTTP, port: 9090, hostname: more.example.com}\n  \
                   - {name: names, protocol: UDP, port: 53}\n";
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web}\nspec:\n  \
                 parentRefs: [{name: web}]\n  hostnames: [a.example.com]\n  rules: [{backendRefs: [{name: web, port: 80}]}]\n";
    let datagrams = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: UDPRoute\nmetadata: {{name: names}}\nspec:\n  \
         parentRefs: [{{name: web}}]\n  rules: [{{backendRefs: [{{name: names, port: 53}}]}}]\n---\n\
         apiVersion: v1\nkind: Service\nmetadata:\n  name: names\n  annotations: {{projectsesame.io/endpoints: \"{}\"}}\n\
         spec:\n  ports: [{{port: 53, protocol: UDP}}]\n",
        backend.udp()
    );
    let files = [
        ("web.yaml", service("web", &backend)),
        ("names.yaml", datagrams),
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
    let datagrams = Client::new((served.http.ip(), 8053).into());
    let named = async || match datagrams.udp(echo::WHO).await {
        Ok(answer) => Ok(serde_json::from_slice::<echo::Who>(&answer).unwrap().name),
        Err(failure) => Err(failure.to_string()),
    };
    assert_eq!(served.process.expect_ok("a datagram to be answered", LIMIT, named).await.unwrap(), "web");
    for moved in ["port 80 is served on port 8080", "port 53 is served on port 8053"] {
        let line = served.process.expect_line(moved, LIMIT).await.unwrap();
        assert!(line.contains("note[SES6012]"), "{line}");
    }
    served.process.expect_line("listeners http", LIMIT).await.unwrap();
    let text = served.process.log().text();
    let line =
        |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("status of Gateway default/web").contains("Accepted=True ResolvedRefs=True"), "{text}");
    assert!(line("listeners http").contains("attachedRoutes=1"), "{text}");
    assert!(served.process.stop(LIMIT).await.unwrap().success());
}

/// Port 80 is moved to 8080 on this machine, and 8080 is not: one Envoy listener would serve both.
#[tokio::test]
async fn of_two_ports_of_a_gateway_that_are_one_here_the_one_that_is_not_moved_is_served() {
    let backend = Backend::start("web").await.unwrap();
    let gateway = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: web}\nspec:\n  \
                   gatewayClassName: sesame\n  listeners:\n  - {name: moved, protocol: HTTP, port: 80}\n  \
                   - {name: stays, protocol: HTTP, port: 8080}\n";
    let route = |listener: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {listener}}}\nspec:\n  \
             parentRefs: [{{name: web, sectionName: {listener}}}]\n  hostnames: [{listener}.example.com]\n  \
             rules: [{{backendRefs: [{{name: web, port: 80}}]}}]\n"
        )
    };
    let files = [
        ("web.yaml", service("web", &backend)),
        ("gateway.yaml", gateway.to_owned()),
        ("moved.yaml", route("moved")),
        ("stays.yaml", route("stays")),
    ];
    let served = Served::start(&files).await;
    served.answers("stays.example.com", "/", 200).await;
    assert_eq!(served.status("moved.example.com", "/").await, 404);
    let why = "port 80 is port 8080 of the proxies, which listener stays of Gateway default/web has for port 8080";
    let line = served.process.expect_line(why, LIMIT).await.unwrap();
    assert!(line.contains("SES7007"), "{line}");
    assert!(served.process.stop(LIMIT).await.unwrap().success());
}

/// The objects and the requests of a golden case of Gateway API.
struct Case {
    objects: Vec<Value>,
    /// Each a map: method and URL with the answer, and what else the request has.
    requests: Vec<Value>,
}

impl Case {
    fn read(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/gateway").join(name);
        let text = fs::read_to_string(path.with_extension("yaml")).unwrap();
        let (written, _) = text.split_once("--- # What comes of it").unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(written).unwrap();
        let (mut objects, tables): (Vec<_>, Vec<_>) =
            documents.into_iter().filter(Value::is_object).partition(|document| document["requests"].is_null());
        objects.retain(|object| object["kind"] != "Service");
        let requests = tables.iter().filter_map(|table| table["requests"].as_array()).flatten().cloned().collect();
        Self { objects, requests }
    }

    /// The names of the Services that answer requests.
    fn services(&self) -> BTreeSet<String> {
        let answers = self.requests.iter().filter_map(|row| request(row).1.as_str().map(str::to_owned));
        answers.filter_map(|answer| Some(answer.split_once(" default/")?.1.to_owned())).collect()
    }
}

/// The request of a row, and its answer.
fn request(row: &Value) -> (&str, &Value) {
    let mut entries = row.as_object().unwrap().iter();
    let (request, answer) = entries.find(|(key, _)| key.contains("://")).unwrap();
    (request.as_str(), answer)
}

/// Asks what a row asks for, and says what is other than it says.
async fn ask(served: &Served, row: &Value) -> Result<(), String> {
    let (asked, expected) = request(row);
    let (method, url) = asked.split_once(' ').unwrap_or(("GET", asked));
    let url = url.strip_prefix("http://").unwrap();
    let (host, path) = url.split_at(url.find('/').unwrap());
    let headers = row["headers"].as_object().cloned().unwrap_or_default();
    let request = Client::new(served.http).host(host).request(method.parse().unwrap(), path);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value.as_str().unwrap()));
    let answer = request.await.map_err(|failure| format!("{asked}: {failure}"))?;
    let status = answer.status.as_u16().to_string();
    let found = answer.backend().map_or(status.clone(), |backend| format!("{status} {backend}"));
    let expected = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
    if found == expected { Ok(()) } else { Err(format!("{asked}: {found}, not {expected}")) }
}

#[tokio::test]
async fn cases_of_gateway_api_are_answered_alike_from_a_folder() {
    for name in ["http-route", "hostnames", "http-order"] {
        let case = Case::read(name);
        let mut backends = Vec::new();
        let mut services = String::new();
        for service_name in case.services() {
            let backend = Backend::start(&format!("default/{service_name}")).await.unwrap();
            services.push_str(&format!("---\n{}", service(&service_name, &backend)));
            backends.push(backend);
        }
        let objects: Vec<String> = case.objects.iter().map(Value::to_string).collect();
        let served = Served::start(&[("objects.yaml", objects.join("\n---\n")), ("services.yaml", services)]).await;
        for row in &case.requests {
            let what = format!("{name}: {row}");
            served.process.expect_ok(&what, LIMIT, async || ask(&served, row).await).await.unwrap();
        }
        assert!(served.process.stop(LIMIT).await.unwrap().success());
    }
}

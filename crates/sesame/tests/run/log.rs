//! The log of `sesame run` and the access log of its Envoy.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Instant;

use testbed::{Backend, Client, Command, Net, StateDir, eventually};

use crate::served::{LIMIT, command, ingress, service, stats};

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

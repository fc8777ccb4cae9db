//! The Envoy that is started, and the ports that it listens on.

use std::fs;
use std::net::Ipv4Addr;

use testbed::{Backend, Net, StateDir, eventually};

use crate::served::{LIMIT, Served, command, ingress, service, sesame, stats};

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

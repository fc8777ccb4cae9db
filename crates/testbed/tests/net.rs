//! The network of a test process: addresses of one's own, and processes that do not see each other.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};

use testbed::Net;

const SANDBOX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/sandbox");

/// Tells this program, when a test of it starts it again, which part to play.
const ROLE: &str = "TEST_ROLE";

/// Runs the test `name` of this program in another process, in another sandbox or in none.
fn again(program: &[&str], name: &str, role: &str) -> Output {
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    let args = [program, &[own, name, "--exact", "--nocapture"]].concat();
    let mut command = Command::new(args[0]);
    command.args(&args[1..]).env(ROLE, role).env_remove("SESAME_SANDBOX").env_remove("SESAME_SANDBOX_MISSING");
    command.output().unwrap()
}

fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

#[test]
fn no_address_is_given_twice_and_all_can_be_bound() {
    let net = Net::here().unwrap();
    let mut seen = HashSet::new();
    for _ in 0..600 {
        let address = net.address();
        assert!(seen.insert(address), "{address} again");
        assert!(![0, 255].contains(&address.octets()[3]));
        TcpListener::bind((address, 80)).unwrap();
    }
}

#[test]
fn an_address_answers_and_is_seen_as_the_source() {
    let net = Net::here().unwrap();
    let listener = TcpListener::bind(net.socket(443)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (_, from) = listener.accept().unwrap();
    assert_eq!(from, client.local_addr().unwrap());
}

#[test]
fn two_processes_have_the_same_addresses_and_do_not_meet() {
    let at: SocketAddr = "198.18.99.1:80".parse().unwrap();
    let _held = TcpListener::bind(at).unwrap();
    if role().is_none() {
        let other = again(&[SANDBOX, "--"], "two_processes_have_the_same_addresses_and_do_not_meet", "other");
        assert!(other.status.success(), "{other:?}");
    }
}

#[test]
fn there_is_no_way_out() {
    let error = TcpStream::connect("192.0.2.1:80").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NetworkUnreachable);
}

#[test]
fn without_the_sandbox_the_error_says_how_to_get_it() {
    if role().is_some() {
        println!("{:?}", Net::here().unwrap_err());
        return;
    }
    let without = again(&["env"], "without_the_sandbox_the_error_says_how_to_get_it", "without");
    let output = String::from_utf8(without.stdout).unwrap();
    assert!(output.contains("start it with `cargo test`"), "{output}");
    let refused = again(&["env", "SESAME_SANDBOX_MISSING=no"], "without_the_sandbox_the_error_says_how_to_get_it", "x");
    let output = String::from_utf8(refused.stdout).unwrap();
    assert!(output.contains("needs its own network, and there is none: no"), "{output}");
}

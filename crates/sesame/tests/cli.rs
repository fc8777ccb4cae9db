//! `sesame cli` as a process, against the real server: what it prints, what it answers, whom it trusts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use certgen::{Certificates, Request};
use envoy_api::Message;
use envoy_api::envoy::config::cluster::v3::Cluster;
use envoy_api::envoy::config::core::v3::{DataSource, data_source::Specifier};
use envoy_api::envoy::config::route::v3::ScopedRouteConfiguration;
use envoy_api::envoy::extensions::transport_sockets::tls::v3 as tls;
use serde_json::{Value, json};
use testbed::certs::Ca;
use testbed::{Backend, eventually};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use xds::{Batch, Changes, Config, Fleet, Kind, Resource, Security, Server, Tls, TlsFiles};

const LIMIT: Duration = Duration::from_secs(10);

/// A server with one cluster and one secret for the shared fleet, and nothing but another cluster for team-a.
async fn serve(security: Security) -> (Server, SocketAddr) {
    let server = Server::new(Config::default());
    let text =
        |text: &str| DataSource { specifier: Some(Specifier::InlineString(text.to_owned())), ..Default::default() };
    let secret = tls::Secret {
        name: "shop".to_owned(),
        r#type: Some(tls::secret::Type::TlsCertificate(tls::TlsCertificate {
            certificate_chain: Some(text("chain")),
            private_key: Some(text("private")),
            ..Default::default()
        })),
    };
    publish(&server, Fleet::Shared, vec![cluster("shop"), Resource::new(Kind::Secret, "shop", secret.encode_to_vec())]);
    publish(&server, Fleet::named("team-a", "public"), vec![cluster("team-a")]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server.clone();
    tokio::spawn(async move { serving.serve(listener, security, std::future::pending()).await });
    (server, address)
}

fn cluster(name: &str) -> Resource {
    let cluster = Cluster { name: name.to_owned(), ..Default::default() };
    Resource::new(Kind::Cluster, name, cluster.encode_to_vec())
}

fn publish(server: &Server, fleet: Fleet, upserts: Vec<Resource>) {
    server.publish(Batch { fleet, changes: Changes { upserts, removes: vec![] } }).unwrap();
}

/// A running `sesame cli`, killed when dropped.
struct Cli {
    process: Child,
    documents: mpsc::UnboundedReceiver<Value>,
}

impl Cli {
    fn start(address: SocketAddr, args: &[&str]) -> Cli {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sesame"));
        command.args(["cli", "--contour", &address.to_string()]).args(args).env_clear();
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = process.stdout.take().unwrap();
        let (sender, documents) = mpsc::unbounded_channel();
        // Ends with the process.
        std::thread::spawn(move || {
            for document in serde_json::Deserializer::from_reader(output).into_iter::<Value>() {
                let Ok(document) = document else { return };
                let _ = sender.send(document);
            }
        });
        Cli { process, documents }
    }

    /// The next document that it prints.
    async fn next(&mut self) -> Value {
        testbed::within("a document from sesame cli", LIMIT, self.documents.recv()).await.unwrap().unwrap()
    }

    /// What it says when it fails.
    async fn failure(mut self) -> String {
        let end = async || self.process.try_wait().unwrap().ok_or("still running");
        let status = eventually("the end of sesame cli", LIMIT, end).await.unwrap();
        assert!(!status.success());
        std::io::read_to_string(self.process.stderr.take().unwrap()).unwrap()
    }
}

impl Drop for Cli {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_the_world_is_printed_and_printed_again_when_it_changes() {
    let (server, address) = serve(Security::Insecure).await;
    let mut cli = Cli::start(address, &["cds"]);
    let first = cli.next().await;
    assert_eq!(first["resources"].as_array().unwrap().len(), 1);
    assert_eq!(first["resources"][0]["name"], "shop");
    assert_eq!(first["resources"][0]["@type"], "type.googleapis.com/envoy.config.cluster.v3.Cluster");

    publish(&server, Fleet::Shared, vec![cluster("more")]);
    let second = cli.next().await;
    assert_eq!(second["resources"].as_array().unwrap().len(), 2, "all of it again: {second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_delta_only_what_was_asked_for_is_printed() {
    let (_server, address) = serve(Security::Insecure).await;
    let mut cli = Cli::start(address, &["cds", "--delta", "shop", "nowhere"]);
    let response = cli.next().await;
    assert_eq!(response["resources"][0]["name"], "shop");
    assert_eq!(response["removed_resources"], json!(["nowhere"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn scoped_routes_are_printed_and_a_subscription_that_finds_nothing_says_so() {
    let (server, address) = serve(Security::Insecure).await;
    let mut scopes = Cli::start(address, &["srds"]);
    assert_eq!(scopes.next().await.get("resources"), None, "there are none yet");
    let scope = ScopedRouteConfiguration { name: "shop".to_owned(), ..Default::default() };
    publish(&server, Fleet::Shared, vec![Resource::new(Kind::ScopedRoute, "shop", scope.encode_to_vec())]);
    assert_eq!(scopes.next().await["resources"][0]["name"], "shop");

    let mut cli = Cli::start(address, &["rds", "nowhere"]);
    let mut lines = std::io::BufReader::new(cli.process.stderr.take().unwrap());
    let said = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut lines, &mut line).map(|_| line)
    });
    let said = testbed::within("a word about it", LIMIT, said).await.unwrap().unwrap().unwrap();
    assert!(said.contains("has no nowhere for this fleet yet"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn private_keys_are_shown_only_on_demand() {
    let (_server, address) = serve(Security::Insecure).await;
    let key = |response: &Value| response["resources"][0]["tls_certificate"]["private_key"].clone();
    let hidden = Cli::start(address, &["sds", "shop"]).next().await;
    assert_eq!(key(&hidden), "[hidden]");
    let shown = Cli::start(address, &["sds", "shop", "--show-keys"]).next().await;
    assert_eq!(key(&shown), json!({"inline_string": "private"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_recorded() {
    let (server, address) = serve(Security::Insecure).await;
    let _cli = Cli::start(address, &["cds", "--delta", "--nack", "--node-id=critic", "shop"]);
    let acks = server.acks(&Fleet::Shared).unwrap();
    let rejection = async || acks.rejections().pop().ok_or("no rejection");
    let rejection = eventually("a rejection", LIMIT, rejection).await.unwrap();
    assert_eq!((&*rejection.name, &*rejection.client.node), ("shop", "critic"));
    assert_eq!(&*rejection.text, "refused by sesame cli --nack");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_the_certificate_decides_what_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = Some(model::FleetName::new("team-a", "public"));
    let lifetime = Duration::from_secs(3600);
    let request = Request { namespace: "gateways".to_owned(), fleet, lifetime, now: SystemTime::now() };
    certgen::files::write(&Certificates::issue(&request).unwrap(), folder.path(), false).unwrap();
    let file = |name: &str| folder.path().join(name);
    let files = TlsFiles { ca: file("cacert.pem"), certificate: file("sesamecert.pem"), key: file("sesamekey.pem") };
    let (_server, address) = serve(Security::Tls(Arc::new(Tls::load(files).unwrap()))).await;
    let (ca, certificate, key) = (file("cacert.pem"), file("envoycert.pem"), file("envoykey.pem"));
    let tls = [
        "--cafile",
        ca.to_str().unwrap(),
        "--cert-file",
        certificate.to_str().unwrap(),
        "--key-file",
        key.to_str().unwrap(),
    ];

    let own = Cli::start(address, &[&["cds"], &tls[..]].concat()).next().await;
    assert_eq!(own["resources"][0]["name"], "team-a");

    let claim = Cli::start(address, &[&["cds", "--fleet=team-b/public"], &tls[..]].concat()).failure().await;
    assert!(claim.starts_with("error[SES1012]: ") && claim.contains("team-b/public"), "{claim}");

    let plain = Cli::start(address, &["cds"]).failure().await;
    let expected = format!("error[SES1006]: cannot connect to {address}: the server requires TLS; set --cafile");
    assert!(plain.starts_with(&expected), "{plain}");

    let (_server, plaintext) = serve(Security::Insecure).await;
    let encrypted = Cli::start(plaintext, &[&["cds"], &tls[..]].concat()).failure().await;
    let expected = format!("error[SES1006]: cannot connect to {plaintext}: the server does not use TLS; leave out");
    assert!(encrypted.starts_with(&expected), "{encrypted}");

    let missing = Cli::start(address, &["cds", "--cafile=/nowhere", tls[2], tls[3], tls[4], tls[5]]).failure().await;
    assert!(missing.starts_with("error[SES1002]: /nowhere cannot be read: "), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_by_contours_name_is_trusted_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let ca = Ca::new("ca");
    let client = ca.leaf("envoy").make();
    let (trusted, certificate, key) =
        (write("ca.crt", ca.pem()), write("tls.crt", client.chain_pem()), write("tls.key", client.key_pem()));
    let args = ["cds", "--cafile", &trusted, "--cert-file", &certificate, "--key-file", &key];
    let start = async |name: &str| {
        let leaf = ca.leaf(name).make();
        let files = TlsFiles {
            ca: trusted.clone().into(),
            certificate: write(&format!("{name}.crt"), leaf.chain_pem()).into(),
            key: write(&format!("{name}.key"), leaf.key_pem()).into(),
        };
        serve(Security::Tls(Arc::new(Tls::load(files).unwrap()))).await
    };

    let (_contour, address) = start("contour").await;
    assert_eq!(Cli::start(address, &args).next().await["resources"][0]["name"], "shop");

    // A server of another kind with a certificate of the same CA.
    let other = Backend::named("web").tls(&ca.leaf("web.example.com").make()).start().await.unwrap();
    let refused = Cli::start(other.https(), &args).failure().await;
    assert!(refused.starts_with("error[SES1006]: cannot connect to "), "{refused}");
}

/// A pod with a wrong flag in its manifest says so in its last line.
#[test]
fn a_wrong_flag_ends_in_one_line() {
    for (words, expected) in [
        (&["serve", "--xds-adress=0.0.0.0"][..], "error: unexpected argument '--xds-adress' found; "),
        (&["bootstrap", "/nowhere", "--xds-port=x"], "error: invalid value 'x' for '--xds-port <PORT>'"),
        (&["envoy", "shutdown", "--timeout=soon"], "error: invalid value 'soon' for '--timeout <DURATION>'"),
        (&["envoy", "shutdown-manager", "--serve-port=70000"], "error: invalid value '70000' for '--serve-port <"),
        (&["certgen", "--lifetime"], "error: "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sesame")).args(words).env_clear().output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{words:?}: {said}");
        assert!(said.starts_with(expected), "{words:?}: {said}");
    }
}

#[test]
fn the_version_says_what_it_was_made_from_and_for() {
    let output = Command::new(env!("CARGO_BIN_EXE_sesame")).arg("version").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).map(str::to_owned);
    assert!(said.starts_with(concat!("sesame ", env!("CARGO_PKG_VERSION"), "\n")), "{said}");
    assert!(value("commit").is_some() && value("platform").is_some(), "{said}");
    let built = value("built").unwrap();
    assert!(built.starts_with("20") && built.len() == "2026-01-02".len(), "{said}");
    assert_eq!((value("Envoy").as_deref(), value("Gateway API").as_deref()), (Some("1.40.0"), Some("v1.7")), "{said}");
}

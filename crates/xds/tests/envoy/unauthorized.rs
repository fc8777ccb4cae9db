//! Whoever is not of a fleet gets nothing of it: not by a wrong certificate, not by another fleet's, not by any service.

use std::time::Duration;

use model::FleetName;
use prost::encoding;
use testbed::certs::{Ca, Leaf};
use testbed::xds_client::{Builder, Kind as Ask};
use testbed::{Backend, Client, Net, XdsClient, eventually};
use xds::{Fleet, Kind, Resource, TlsFiles};

use crate::bed::{Replica, Secrets, TIMEOUT, address, launch};
use crate::world::{hosts, serving};

const UNAUTHENTICATED: u32 = 16;
const PERMISSION_DENIED: u32 = 7;

/// A message of any type: all have their name in field 1; what differs stands in a field that none of them has.
fn resource(kind: Kind, name: &str, content: &str) -> Resource {
    let mut body = Vec::new();
    encoding::string::encode(1, &name.to_owned(), &mut body);
    encoding::string::encode(10_000, &content.to_owned(), &mut body);
    Resource::new(kind, name, body)
}

/// A server whose certificates come from a CA that can make more.
struct Guarded {
    replica: Replica,
    ca: Ca,
    _folder: tempfile::TempDir,
}

impl Guarded {
    fn start() -> Guarded {
        let ca = Ca::new("ca");
        let server = ca.leaf("sesame").make();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let files = TlsFiles {
            ca: write("ca.crt", ca.pem()),
            certificate: write("tls.crt", server.chain_pem()),
            key: write("tls.key", server.key_pem()),
        };
        let replica = Replica::start(address(), Some(files));
        for fleet in [Fleet::Shared, Fleet::named("team", "a"), Fleet::named("team", "b")] {
            let resource = |kind: Kind| resource(kind, &format!("{kind} of {fleet}"), &format!("content of {fleet}"));
            replica.publish_to(fleet.clone(), Kind::ALL.map(resource).into());
        }
        Guarded { replica, ca, _folder: folder }
    }

    /// A client with this certificate.
    fn client(&self, leaf: &Leaf) -> Client {
        Client::new(self.replica.address).host("sesame").trust(&self.ca).identity(leaf)
    }

    /// An Envoy's certificate for a fleet.
    fn of(&self, fleet: &str) -> Leaf {
        self.ca.leaf("envoy").uri(&format!("spiffe://sesame/fleet/{fleet}")).make()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_good_certificate_there_is_no_connection() {
    let guarded = Guarded::start();
    let good = guarded.of("team/a");
    XdsClient::to(guarded.client(&good)).ask_all(Ask::Cluster).connect().await.unwrap();

    let none = Client::new(guarded.replica.address).host("sesame").trust(&guarded.ca);
    let other = Ca::new("ca").leaf("envoy").make();
    let expired = guarded.ca.leaf("envoy").expired().make();
    let server = guarded.ca.leaf("envoy").server_only().make();
    for (what, client) in [
        ("no certificate", none),
        ("another CA's", guarded.client(&other)),
        ("an expired one", guarded.client(&expired)),
        ("a server's", guarded.client(&server)),
    ] {
        let error = XdsClient::to(client).fetch(Ask::Cluster, [""; 0]).await.unwrap_err();
        assert!(error.partial().is_none(), "{what}: {error}");
    }

    // Good, but of nobody: the handshake succeeds, and then there is nothing to be had.
    let nobody = guarded.ca.leaf("web.example.com").make();
    XdsClient::to(guarded.client(&nobody)).fetch(Ask::Cluster, [""; 0]).await.unwrap_err();
}

/// Whether something of another fleet is in it. Their names alone may be: they are answered as "not there".
fn is_leak(text: &str) -> bool {
    ["content of team/b", "content of shared"].iter().any(|content| text.contains(content))
}

/// In how many ways one can ask.
fn ways(client: Builder) -> [(&'static str, Builder); 4] {
    [
        ("delta ADS", client.clone()),
        ("ADS", client.clone().sotw()),
        ("delta", client.clone().per_kind()),
        ("state of the world", client.per_kind().sotw()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn another_fleets_names_lead_nowhere_in_every_way_of_asking() {
    let guarded = Guarded::start();
    let leaf = guarded.of("team/a");
    let fleets = ["team/a", "team/b", "shared"];
    for kind in Ask::ALL {
        let label = Kind::from_type_url(&kind.type_url()).unwrap().label();
        let names = fleets.map(|fleet| format!("{label} of {fleet}"));
        for (way, client) in ways(XdsClient::to(guarded.client(&leaf))) {
            let client = client.ask(kind, names.clone()).connect().await.unwrap();
            client.until("its own", |state| state.held(kind, &names[0]).is_some()).await.unwrap();
            // What comes next has been asked for after the others' names, and is answered after them.
            client.subscribe(kind, ["a name that nobody has"]);
            let content = format!("<{way}>");
            let own = resource(Kind::from_label(label).unwrap(), &names[0], &content);
            guarded.replica.publish_to(Fleet::named("team", "a"), vec![own]);
            let seen = |state: &testbed::xds_client::State| format!("{:?}", state.responses);
            client.until("its own again", |state| seen(state).contains(&content)).await.unwrap();
            let all = client.look(seen);
            assert!(!is_leak(&all), "{way}: {all}");
        }
        let fetched = XdsClient::to(guarded.client(&leaf)).fetch(kind, names.clone()).await.unwrap();
        let all = format!("{fetched:?}");
        assert!(all.contains(&names[0]) && !is_leak(&all), "fetch: {all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_the_certificate_does_not_prove_ends_the_stream() {
    let guarded = Guarded::start();
    let leaf = guarded.of("team/a");
    for claim in ["team/b", "shared", "../team/a", ""] {
        for (way, client) in ways(XdsClient::to(guarded.client(&leaf)).metadata(xds::FLEET_METADATA, claim)) {
            let client = client.ask_all(Ask::Cluster).connect().await.unwrap();
            let end = client.ended().await.unwrap();
            let refused = matches!(end.status, Some(PERMISSION_DENIED | UNAUTHENTICATED));
            assert!(refused, "{way} with the claim {claim:?}: {end:?}");
            assert_eq!(client.look(|state| state.responses.len()), 0);
        }
        let fetched = XdsClient::to(guarded.client(&leaf)).metadata(xds::FLEET_METADATA, claim);
        let answer = fetched.fetch(Ask::Cluster, [""; 0]).await;
        assert!(!format!("{answer:?}").contains("cds of"), "fetch with the claim {claim:?}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envoy_serves_its_own_fleet_and_no_other() {
    let backend = Backend::start("a").await.unwrap();
    let own = FleetName::new("team", "a");
    let secrets = Secrets::for_fleet(Some(own.clone()));
    let replica = Replica::start(address(), Some(secrets.server_files()));
    let (at, elsewhere) = (Net::here().unwrap().socket(80), Net::here().unwrap().socket(80));
    replica.publish_to(Fleet::named("team", "a"), serving(at, &hosts(1), backend.http()));
    replica.publish_to(Fleet::named("team", "b"), serving(elsewhere, &hosts(1), backend.http()));

    let envoy = launch(replica.address, Some(secrets.envoy_files()), Some(own)).await;
    envoy.ready().await.unwrap();
    assert_eq!(Client::new(at).host("h0.example.com").get("/").await.unwrap().status, 200);
    assert!(Client::new(elsewhere).host("h0.example.com").get("/").await.unwrap_err().is_refused());

    let liar = launch(replica.address, Some(secrets.envoy_files()), Some(FleetName::new("team", "b"))).await;
    let refused = async || match liar.process().log().find("gRPC config stream to sesame closed: 7") {
        Some(line) if line.contains("team/b") => Ok(line),
        other => Err(format!("{other:?}")),
    };
    let line = eventually("the rejection in Envoy's log", TIMEOUT, refused).await.unwrap();
    println!("{line}");
    assert!(liar.admin().get("/ready").await.is_err());
    let few = Duration::from_secs(1);
    assert!(liar.expect_stat("listener_manager.total_listeners_active", few, |count| count > 0).await.is_err());
}

#[test]
fn all_who_name_fleets_use_the_same_words() {
    assert_eq!(envoy::bootstrap::FLEET_KEY, xds::FLEET_METADATA);
    assert_eq!(envoy::bootstrap::CA_EXPIRATIONS_KEY, xds::CA_EXPIRATIONS_METADATA);
    let uri = certgen::issue::fleet_uri(&FleetName::new("team", "a"));
    assert_eq!(Fleet::named("team", "a").uri(), Some(uri));
    assert_eq!(Fleet::named("team", "a").to_string(), FleetName::new("team", "a").to_string());
}

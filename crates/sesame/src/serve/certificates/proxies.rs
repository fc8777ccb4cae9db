//! Asks proxies which certificates they have for their connection to this server.
//!
//! In: the clients of the xDS server. Out: those that have the same certificates, together. An Envoy of the shared fleet says when the
//! certificates of a cluster expire in its statistics, of a bundle of CAs the one that expires first; that tells certificates apart. Who
//! does not answer is among them: an Envoy that is bootstrapped by an older version, or whose listener for statistics cannot be
//! reached.
//!
//! An Envoy with a token has the CAs in its bootstrap, where they cannot change while it runs, and says all of them in its node. It is
//! believed, since its answer decides on its own connection alone: one that claims a CA that it does not have cannot connect once
//! that CA signs. One that denies having a CA delays a rotation that was asked for by a day at most, like one that reports nothing. A
//! rotation that is only due waits for it, until shortly before the old CA expires.
//!
//! Only Envoys of the shared fleet are asked for statistics: they have the certificate of the Secret `envoycert`, and operators own
//! their pods. Those of a Gateway are in the namespace of the Gateway, where a pod with their token may answer with any figures, such as a
//! certificate that no rotation issues, and would be waited for without limit.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use http::Request;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use replicas::CertificateHolders;
use tokio::net::TcpStream;
use tracing::debug;
use xds::{Fleet, Identity, Server};

/// The path of the statistics, only those that matter.
const PATH: &str = "/stats?filter=%5C.ssl%5C.certificate%5C.";
/// What stands in their names between the cluster and the certificate, and at their end.
const NAME: (&str, &str) = (".ssl.certificate.", ".expiration_unix_time_seconds");
/// What the name of a cluster begins with.
const CLUSTER: &str = "cluster.";
/// How long a proxy may take, how many are asked at once, and how large an answer may be.
const TIMEOUT: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 32;
const LARGEST: usize = 64 << 10;
/// How many names are listed of those that have the same.
const LISTED: usize = 3;

/// The CA and the certificate of a proxy, by when they expire.
type Expiries = (Option<i64>, Option<i64>);

/// Where it is found out which certificates a proxy has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// In its node: of all the CAs that it names, those that this replica has.
    Node(Vec<i64>),
    /// In its statistics, at this address.
    Statistics(IpAddr),
    /// Nowhere.
    Nothing,
}

/// What is known of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    /// All CAs, as its node says.
    Node(Vec<i64>),
    /// What its statistics show.
    Statistics(Expiries),
}

/// Asks the proxies that are connected. Of the CAs that one says it has, only those of this replica count.
pub async fn ask(server: &Server, port: u16, cas: &[i64]) -> Vec<CertificateHolders> {
    let mut clients = BTreeSet::new();
    for (_, acks) in server.all_acks() {
        for client in acks.clients() {
            let address = client.identity.address.map(|address| address.ip());
            clients.insert((client.identity.node.to_string(), address, evidence(&client.identity, cas)));
        }
    }
    let asking = clients.into_iter().map(|(node, _, evidence)| async move {
        let answer = match evidence {
            Evidence::Node(cas) => Answer::Node(cas),
            Evidence::Statistics(address) => {
                let expiries = expiries(SocketAddr::new(address, port)).await.unwrap_or_else(|error| {
                    debug!(node, %address, "cannot read which certificates the proxy has: {error:#}");
                    (None, None)
                });
                Answer::Statistics(expiries)
            }
            Evidence::Nothing => Answer::Statistics((None, None)),
        };
        (node, answer)
    });
    let answers: Vec<(String, Answer)> = futures::stream::iter(asking).buffer_unordered(AT_ONCE).collect().await;
    together(answers)
}

/// Where it is found out which certificates a proxy has.
fn evidence(proxy: &Identity, cas: &[i64]) -> Evidence {
    match (known(&proxy.ca_expirations, cas), proxy.address) {
        (Some(cas), _) => Evidence::Node(cas),
        (None, Some(address)) if proxy.fleet == Fleet::Shared => Evidence::Statistics(address.ip()),
        (None, _) => Evidence::Nothing,
    }
}

/// Those of these CAs that a proxy says it has, in a fixed order; none if it says nothing.
fn known(reported: &[i64], cas: &[i64]) -> Option<Vec<i64>> {
    (!reported.is_empty()).then(|| cas.iter().copied().filter(|ca| reported.contains(ca)).collect())
}

/// Those that have the same, in a fixed order.
fn together(answers: Vec<(String, Answer)>) -> Vec<CertificateHolders> {
    let mut holders: BTreeMap<Answer, Vec<String>> = BTreeMap::new();
    for (node, answer) in answers {
        holders.entry(answer).or_default().push(node);
    }
    let holders = holders.into_iter().map(|(answer, mut names)| {
        let count = names.len();
        names.sort();
        names.truncate(LISTED);
        let (cas, is_complete, leaf) = match answer {
            Answer::Node(cas) => (cas, true, None),
            Answer::Statistics((ca, leaf)) => (ca.into_iter().collect(), false, leaf),
        };
        CertificateHolders { names, count, is_proxy: true, cas, is_complete, leaf }
    });
    holders.collect()
}

async fn expiries(address: SocketAddr) -> Result<Expiries> {
    let asking = async {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::builder().uri(PATH).header(http::header::HOST, "envoy").body(Empty::<Bytes>::new())?;
        let response = sender.send_request(request).await?;
        ensure!(response.status().is_success(), "it answers {}", response.status());
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer is cut off: {error}"))?.to_bytes();
        Ok(read(&String::from_utf8_lossy(&body)))
    };
    tokio::time::timeout(TIMEOUT, asking).await.with_context(|| format!("no answer in {TIMEOUT:?}"))?
}

/// The certificate and the CA of the cluster of the xDS server have the names of their secrets.
fn read(stats: &str) -> Expiries {
    let (mut ca, mut leaf) = (None, None);
    for (name, value) in stats.lines().filter_map(|line| line.split_once(": ")) {
        let Some((cluster, name)) = name.strip_suffix(NAME.1).and_then(|name| name.split_once(NAME.0)) else {
            continue;
        };
        let Ok(expires) = value.trim().parse::<i64>() else { continue };
        if !is_xds(cluster) {
            continue;
        }
        match name {
            envoy::name::XDS_CERTIFICATE => leaf = Some(expires),
            envoy::name::XDS_VALIDATION => ca = Some(expires),
            _ => {}
        }
    }
    (ca, leaf)
}

/// Whether this is the cluster of the xDS server in statistics: `sesame`, or `<namespace>_sesame_<port>`.
fn is_xds(cluster: &str) -> bool {
    let Some(name) = cluster.strip_prefix(CLUSTER) else { return false };
    let namespaced = || {
        let (namespace, port) = name.split_once('_')?;
        let port = port.strip_prefix(envoy::name::XDS_CLUSTER)?.strip_prefix('_')?;
        Some(!namespace.is_empty() && port.parse::<u16>().is_ok())
    };
    name == envoy::name::XDS_CLUSTER || namespaced().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envoy_says_its_ca_and_its_certificate() {
        let line = |cluster: &str, name: &str, value: i64| {
            format!("cluster.{cluster}.ssl.certificate.{name}.expiration_unix_time_seconds: {value}\n")
        };
        let own = |cluster: &str| {
            line(cluster, "sesame_xds_tls_certificate", 7) + &line(cluster, "sesame_xds_tls_validation_context", 9)
        };
        let xds = "projectsesame_sesame_8001";
        for cluster in [xds, "sesame"] {
            assert_eq!(read(&own(cluster)), (Some(9), Some(7)));
        }
        for other in
            ["shop_web_80", "shop_sesame-web_80", "shop_sesame_web", "a_b_sesame_80", "_sesame_80", "sesame_80"]
        {
            assert_eq!(read(&own(other)), (None, None), "{other}");
        }
        assert_eq!(read(&own(xds).replace("cluster.", "listener.")), (None, None));
        assert_eq!(read(&line(xds, "unnamed_ca_cert_e3b0c442", 8)), (None, None), "it is in no Secret");
        assert_eq!(read("cluster.projectsesame_sesame_8001.ssl.handshake: 3\n"), (None, None));
        assert_eq!(read(""), (None, None));
    }

    #[test]
    fn statistics_of_the_shared_fleet_alone_are_evidence() {
        let address: SocketAddr = "192.0.2.7:4321".parse().expect("an address");
        let gateway = Fleet::named("shop", "edge");
        for (fleet, ca_expirations, address, expected) in [
            (Fleet::Shared, vec![], Some(address), Evidence::Statistics(address.ip())),
            (Fleet::Shared, vec![], None, Evidence::Nothing),
            (gateway.clone(), vec![9, 5], Some(address), Evidence::Node(vec![9])),
            // Whoever has the token of a Gateway may answer at its address.
            (gateway, vec![], Some(address), Evidence::Nothing),
        ] {
            let proxy = Identity { fleet, node: "e".into(), version: "1.40.0".into(), address, ca_expirations };
            assert_eq!(evidence(&proxy, &[9, 7]), expected, "{proxy:?}");
        }
        let silent = together(vec![("e".to_owned(), Answer::Statistics((None, None)))]);
        assert!(silent[0].cas.is_empty() && !silent[0].is_complete && silent[0].leaf.is_none());
    }

    #[test]
    fn those_that_have_the_same_are_counted_together() {
        let leaf = |at: i32| Some(if at == 4 { 3 } else { 2 });
        let answers = (0..5).map(|at| (format!("e{at}"), Answer::Statistics((Some(1), leaf(at))))).collect();
        let holders = together(answers);
        let found: Vec<_> = holders.iter().map(|it| (it.count, it.names.len(), it.leaf)).collect();
        assert_eq!(found, [(4, 3, Some(2)), (1, 1, Some(3))]);
        assert!(holders.iter().all(|it| it.is_proxy && it.cas == [1] && !it.is_complete));
    }

    #[test]
    fn a_proxy_that_says_its_cas_is_known_by_those_that_the_replica_has() {
        assert_eq!(known(&[], &[9, 7]), None);
        let reported = [&[7][..], &[7, 9], &[9, 8, 7, 7], &[8]];
        let answers =
            reported.iter().map(|reported| ("e".to_owned(), Answer::Node(known(reported, &[9, 7]).expect("it says"))));
        let holders = together(answers.collect());
        let found: Vec<_> = holders.iter().map(|it| (it.count, it.cas.clone())).collect();
        assert_eq!(found, [(1, vec![]), (1, vec![7]), (2, vec![9, 7])]);
        assert!(holders.iter().all(|it| it.is_proxy && it.is_complete && it.leaf.is_none()));
    }
}

//! Asks proxies which certificates they have for their connection to this server.
//!
//! In: the clients of the xDS server. Out: those that have the same certificates, together. An Envoy says when the certificates
//! of a cluster expire in its statistics, of a bundle of CAs the one that expires first; that tells certificates apart. Who
//! does not answer is among them: an Envoy that is bootstrapped by an older version, or whose listener for statistics cannot be
//! reached.
//!
//! An Envoy with a token has the CAs in its bootstrap, where they cannot change while it runs, and says all of them in its node. It is
//! believed, since its answer decides on its own connection alone: one that claims a CA that it does not have cannot connect once
//! that CA signs. One that denies having a CA delays a rotation that was asked for by a day at most, like one that reports nothing. A
//! rotation that is only due waits for it, until shortly before the old CA expires.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
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
use xds::Server;

/// The path of the statistics, only those that matter.
const PATH: &str = "/stats?filter=%5C.ssl%5C.certificate%5C.";
/// What stands in their names between the cluster and the certificate, and at their end.
const NAME: (&str, &str) = (".ssl.certificate.", ".expiration_unix_time_seconds");
/// What the name of a CA begins with that is in the bootstrap itself.
const INLINE_CA: &str = "unnamed_ca_cert_";
/// How long a proxy may take, how many are asked at once, and how large an answer may be.
const TIMEOUT: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 32;
const LARGEST: usize = 64 << 10;
/// How many names are listed of those that have the same.
const LISTED: usize = 3;

/// The CA and the certificate of a proxy, by when they expire.
type Expiries = (Option<i64>, Option<i64>);

/// What is known of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    /// All CAs, as its node says.
    Node(Vec<i64>),
    /// What its statistics show.
    Statistics(Expiries),
}

/// Asks all proxies that are connected. Of the CAs that one says it has, only those of this replica count.
pub async fn ask(server: &Server, port: u16, cas: &[i64]) -> Vec<CertificateHolders> {
    let mut clients = BTreeSet::new();
    for (_, acks) in server.all_acks() {
        for client in acks.clients() {
            let address = client.identity.address.map(|address| address.ip());
            clients.insert((client.identity.node.to_string(), address, known(&client.identity.ca_expirations, cas)));
        }
    }
    let asking = clients.into_iter().map(|(node, address, reported)| async move {
        let answer = match (reported, address) {
            (Some(cas), _) => Answer::Node(cas),
            (None, Some(address)) => {
                let expiries = expiries(SocketAddr::new(address, port)).await.unwrap_or_else(|error| {
                    debug!(node, %address, "cannot read which certificates the proxy has: {error:#}");
                    (None, None)
                });
                Answer::Statistics(expiries)
            }
            (None, None) => Answer::Statistics((None, None)),
        };
        (node, answer)
    });
    let answers: Vec<(String, Answer)> = futures::stream::iter(asking).buffer_unordered(AT_ONCE).collect().await;
    together(answers)
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

/// The certificate and the CA have the names of their secrets; the CA of a proxy with a token has none.
fn read(stats: &str) -> Expiries {
    let (mut ca, mut leaf) = (None, None);
    for (name, value) in stats.lines().filter_map(|line| line.split_once(": ")) {
        let Some((cluster, name)) = name.strip_suffix(NAME.1).and_then(|name| name.split_once(NAME.0)) else {
            continue;
        };
        let Ok(expires) = value.trim().parse::<i64>() else { continue };
        let named = cluster.rsplit_once('_').is_some_and(|(name, _)| name.ends_with("_sesame"));
        let is_xds = named || cluster == "cluster.sesame";
        if name == envoy::name::XDS_CERTIFICATE {
            leaf = Some(expires);
        } else if name == envoy::name::XDS_VALIDATION || is_xds && name.starts_with(INLINE_CA) {
            ca = Some(expires);
        }
    }
    (ca, leaf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envoy_says_its_ca_and_its_certificate() {
        let line = |cluster: &str, name: &str, value: i64| {
            format!("cluster.{cluster}.ssl.certificate.{name}.expiration_unix_time_seconds: {value}\n")
        };
        let xds = "projectsesame_sesame_8001";
        let own = line(xds, "sesame_xds_tls_certificate", 7) + &line(xds, "sesame_xds_tls_validation_context", 9);
        assert_eq!(read(&own), (Some(9), Some(7)));
        assert_eq!(read(&line(xds, "unnamed_ca_cert_e3b0c442", 8)), (Some(8), None));
        assert_eq!(read(&line("shop_web_80", "unnamed_ca_cert_e3b0c442", 8)), (None, None));
        assert_eq!(read("cluster.projectsesame_sesame_8001.ssl.handshake: 3\n"), (None, None));
        assert_eq!(read(""), (None, None));
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

//! One row of a table: the request is made, and everything that the row says about the answer is compared.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::Backends;
use super::file::{Expected, How, Row, Scheme};
use crate::certs::Ca;
use crate::client::{Answer, Failure, Signatures, TlsVersion};
use crate::{Client, Envoy};

/// How long the access log may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a datagram that nobody answers is waited for.
const SILENCE: Duration = Duration::from_secs(1);

/// How many clients ask where several backends share the datagrams, and by how many the share of a backend may differ.
const CLIENTS: u32 = 100;
const DEVIATION: u32 = 20;

/// Envoy's word for an answer to a request of HTTP/1.0.
const LOW_VERSION: &str = "low_version";

/// Where the listeners are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub http: u16,
    pub https: u16,
}

/// Numbers requests, so that each is found in the access log.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Makes a request and compares its answer.
pub(super) async fn check(row: &Row, ports: Ports, envoy: &Envoy, backends: &Backends, ca: &Ca) -> Result<(), String> {
    if row.scheme == Scheme::Udp {
        return datagrams(row).await;
    }
    let client = client(row, ports, ca)?;
    let client = match &row.how.certificate {
        Some(name) => client.identity(backends.clients().named(name)?),
        None => client,
    };
    let before = backends.requests();
    let id = format!("case-request-{}.", COUNT.fetch_add(1, Ordering::Relaxed));
    let answer = match (send(row, &client, &id).await, &row.answer) {
        (Err(failure), Expected::Refused) if is_refusal(&failure, row.scheme == Scheme::Https) => {
            return match &row.how.logs {
                Some(logs) => logged(envoy, &row.host, logs).await,
                None => Ok(()),
            };
        }
        (Err(failure), _) => return Err(format!("there was no answer: {failure:?}")),
        (Ok(answer), _) => answer,
    };
    let mut wrong = Vec::new();
    expect(&mut wrong, "answer", &found(&answer), &row.answer);
    let how = &row.how;
    if let Some(tries) = how.tries {
        expect(&mut wrong, "tries", &(backends.requests() - before), &tries);
    }
    if let Some(name) = &how.shows {
        let sans = answer.certificate().map(|seen| seen.sans.clone()).unwrap_or_default();
        if !sans.contains(&format!("DNS:{name}")) {
            wrong.push(format!("the certificate is for {sans:?}, not for {name}"));
        }
    }
    if let Some(protocol) = &how.agrees {
        let agreed = answer.tls.as_ref().and_then(|tls| tls.alpn.clone());
        expect(&mut wrong, "protocol", &agreed.as_deref(), &Some(protocol.as_str()));
    }
    if let Some(body) = &how.body {
        expect(&mut wrong, "body", &answer.text(), body);
    }
    for (name, value) in &how.has {
        expect(&mut wrong, &format!("answer's {name}"), &answer.header(name), &value.as_deref());
    }
    for (name, part) in &how.has_part {
        let found = answer.header(name).unwrap_or_default();
        if !found.contains(part.as_str()) {
            wrong.push(format!("answer's {name}: {found:?}, without {part:?}"));
        }
    }
    for (name, value) in &how.sees {
        expect(&mut wrong, &format!("backend's {name}"), &seen(&answer, name).as_deref(), &value.as_deref());
    }
    for (name, part) in &how.sees_part {
        let seen = seen(&answer, name).unwrap_or_default();
        if !seen.contains(part.as_str()) {
            wrong.push(format!("backend's {name}: {seen:?}, without {part:?}"));
        }
    }
    for (name, text) in &how.sees_without {
        match answer.try_echo() {
            Some(seen) => wrong.extend(
                seen.header_values(name)
                    .filter(|value| value.contains(text.as_str()))
                    .map(|value| format!("backend's {name}: {value:?}, with {text:?}")),
            ),
            None => wrong.push(format!("no backend has seen {name}")),
        }
    }
    if let Some(logs) = &how.logs {
        // A request whose version of HTTP is refused is not read: the log has none of its headers.
        let unread = answer.status == 426;
        wrong.extend(logged(envoy, if unread { LOW_VERSION } else { &id }, logs).await.err());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Asks who is there by datagrams, each of a client of its own, and compares who answers.
async fn datagrams(row: &Row) -> Result<(), String> {
    let port = row.how.port.ok_or("a datagram needs a port")?;
    let client = Client::new((Ipv4Addr::LOCALHOST, port).into());
    let Expected::Backends(backends) = &row.answer else {
        let answer = client.timeout(SILENCE).udp(echo::WHO).await;
        return answer.map_or(Ok(()), |answer| Err(format!("it was answered: {}", String::from_utf8_lossy(&answer))));
    };
    let clients = if backends.len() > 1 { CLIENTS } else { 1 };
    let mut answers: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..clients {
        let answer = client.udp(echo::WHO).await.map_err(|failure| format!("there was no answer: {failure:?}"))?;
        let who: echo::Who = serde_json::from_slice(&answer).map_err(|error| format!("{error} in an answer"))?;
        *answers.entry(who.name).or_default() += 1;
    }
    let of = |name: &str| answers.get(name).copied().unwrap_or_default();
    let weights: u32 = backends.iter().map(|(_, weight)| weight).sum();
    let is_share = |name: &str, weight: u32| of(name).abs_diff(clients * weight / weights) <= DEVIATION;
    let total: u32 = backends.iter().map(|(name, _)| of(name)).sum();
    let is_shared = backends.iter().all(|(name, weight)| of(name) > 0 && is_share(name, *weight));
    if total == clients && is_shared { Ok(()) } else { Err(format!("answered by {answers:?}, not {backends:?}")) }
}

/// Whether the proxy would have no connection with the client. In TLS 1.3 the client's handshake is done before its certificate is
/// looked at: the connection is closed after that, before or after the request is sent.
fn is_refusal(failure: &Failure, https: bool) -> bool {
    match failure {
        Failure::Connect { .. } | Failure::Tls { .. } => true,
        Failure::Unsent(_) => https,
        // An error of HTTP/2 has the alert in its text only. A client that still writes when the connection is closed sees that, and no alert.
        other => {
            let text = format!("{other:?}");
            other.alert().is_some() || text.contains("received fatal alert") || (https && text.contains("broken pipe"))
        }
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(wrong: &mut Vec<String>, what: &str, found: &T, expected: &T) {
    if found != expected {
        wrong.push(format!("{what}: {found:?}, not {expected:?}"));
    }
}

fn client(row: &Row, ports: Ports, ca: &Ca) -> Result<Client, String> {
    let How { sni, http, tls, offers, .. } = &row.how;
    let is_https = row.scheme == Scheme::Https;
    let port = row.how.port.unwrap_or(if is_https { ports.https } else { ports.http });
    let mut client = Client::new((Ipv4Addr::LOCALHOST, port).into()).host(&row.host);
    if is_https {
        client = client.https();
        client = match sni.as_deref() {
            Some("none") => client.no_sni(),
            Some(name) => client.sni(name),
            // A request for another host than the connection's is made on purpose; anything else must be trusted.
            None if row.how.shows.is_some() => client.trust(ca),
            None => client,
        };
        if let Some(offers) = offers {
            client = client.alpn(offers.iter().map(String::as_str));
        }
        client = match tls.as_deref() {
            None => client,
            Some("1.2") => client.tls_versions(TlsVersion::V1_2, TlsVersion::V1_2),
            Some("1.3") => client.tls_versions(TlsVersion::V1_3, TlsVersion::V1_3),
            Some(other) => return Err(format!("there is no TLS {other}")),
        };
        client = match row.how.verifies.as_deref() {
            None => client,
            Some("rsa") => client.signatures(Signatures::Rsa),
            Some("ecdsa") => client.signatures(Signatures::Ecdsa),
            Some(other) => return Err(format!("there are no signatures of {other} keys")),
        };
    }
    match http.as_deref() {
        None | Some("1.1") => Ok(client),
        Some("1.0") => Ok(client.http10()),
        Some("2") => Ok(client.http2()),
        Some(other) => Err(format!("there is no HTTP {other}")),
    }
}

async fn send(row: &Row, client: &Client, id: &str) -> Result<Answer, Failure> {
    let request = client.request(row.method.clone(), &row.path).header("x-request-id", id);
    let request = row.how.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    let request = if row.how.sends == 0 { request } else { request.body(vec![b'x'; row.how.sends]) };
    if !row.how.websocket {
        return request.await;
    }
    match request.websocket().await {
        Ok(socket) => Ok(socket.answer),
        Err(Failure::NotUpgraded(answer)) => Ok(*answer),
        Err(failure) => Err(failure),
    }
}

/// The answer in the words of a row.
fn found(answer: &Answer) -> Expected {
    let location = answer.header("location").filter(|_| answer.status.is_redirection());
    let who = answer.backend().or(location);
    Expected::Answer(answer.status.as_u16(), who.map(str::to_owned))
}

fn seen(answer: &Answer, name: &str) -> Option<String> {
    let seen = answer.try_echo()?;
    match name {
        "path" => Some(seen.path),
        "host" => seen.host,
        "protocol" => Some(seen.protocol),
        "sni" => seen.tls?.sni,
        "tls" => Some(seen.tls?.version),
        "client" => Some(seen.tls?.peer.first()?.subject.clone()),
        header => seen.header(header).map(str::to_owned),
    }
}

/// Compares what the access log says about a request: fields of JSON, or parts of a line.
async fn logged(envoy: &Envoy, id: &str, expected: &Value) -> Result<(), String> {
    let line = crate::deadline::within(format!("a line with {id} in the log"), TIMEOUT, envoy.process().log().line(id));
    let line = line.await.map_err(|late| late.to_string())?.map_err(|error| error.to_string())?;
    match expected {
        Value::Object(fields) => {
            let found: Value = serde_json::from_str(&line).map_err(|error| format!("{error} in {line}"))?;
            let wrong: Vec<String> = fields
                .iter()
                .filter(|(name, value)| found.get(name).unwrap_or(&Value::Null) != *value)
                .map(|(name, value)| format!("log's {name}: {}, not {value}", found.get(name).unwrap_or(&Value::Null)))
                .collect();
            if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
        }
        Value::Array(parts) => {
            let absent = parts.iter().find(|part| !part.as_str().is_some_and(|part| line.contains(part)));
            absent.map_or(Ok(()), |part| Err(format!("the log has no {part}: {line}")))
        }
        Value::String(part) if line.contains(part.as_str()) => Ok(()),
        other => Err(format!("the log has no {other}: {line}")),
    }
}

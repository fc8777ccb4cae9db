//! What a proxy answers to a request, as far as it is compared.
//!
//! In: a request and the address of a proxy. Out: all different [`Answer`]s that it gave, in order: one, unless chance decides.
//! Compared are the status, where a redirect leads, who answered and what that backend was sent, and the headers that Mappings set. Not
//! compared are the headers that a proxy adds of its own accord, bodies that are not of a backend, and the headers of errors that the
//! proxy makes itself.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;

use testbed::Client;
use testbed::client::{Connection, Failure};

use crate::set::Request;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// There was no connection, or no TLS session, or it was closed before an answer.
    Closed,
    /// There was one.
    Reply(Reply),
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Where a redirect leads.
    pub location: Option<String>,
    /// Headers of the answer that Mappings set or remove.
    pub headers: Vec<(String, String)>,
    /// Who answered, and what it was sent.
    pub backend: Option<Sent>,
}

/// What a backend was sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    /// The backend.
    pub name: String,
    /// The path, and the query.
    pub path: String,
    /// The `Host`.
    pub host: Option<String>,
    /// Headers that Mappings match, set or remove.
    pub headers: Vec<(String, String)>,
}

/// Headers that Mappings set or remove in answers.
const OF_ANSWERS: [&str; 2] = ["x-set-response", "x-echo-name"];
/// The same in requests.
const OF_REQUESTS: [&str; 5] = ["x-v", "x-w", "x-drop", "x-set-request", "x-forwarded-proto"];

/// Asks as often as told, on one connection as long as that lasts.
pub async fn ask(address: Ipv4Addr, request: &Request, repeats: usize) -> BTreeSet<Answer> {
    let port = if request.is_https { 8443 } else { 8080 };
    let client = Client::new((address, port).into()).host(request.host.clone());
    let client = if request.is_https { client.https().sni(request.server_name()) } else { client };
    let (mut answers, mut connection) = (BTreeSet::new(), None);
    for _ in 0..repeats {
        answers.insert(match one(&client, &mut connection, request).await {
            Ok(reply) => Answer::Reply(reply),
            Err(_) => Answer::Closed,
        });
    }
    answers
}

async fn one(client: &Client, connection: &mut Option<Connection>, request: &Request) -> Result<Reply, Failure> {
    let open = match connection.take().filter(Connection::is_open) {
        Some(open) => open,
        None => client.connect().await?,
    };
    let asked = request
        .headers
        .iter()
        .fold(open.request(request.method.clone(), &request.path), |asked, (name, value)| asked.header(name, value));
    let answer = asked.await?;
    *connection = Some(open);
    let of = |name: &&str| answer.header(name).map(|value| ((*name).to_owned(), value.to_owned()));
    let backend = answer.try_echo().map(|seen| Sent {
        name: seen.name.clone(),
        path: seen.query.as_ref().map_or(seen.path.clone(), |query| format!("{}?{query}", seen.path)),
        host: seen.host.clone(),
        headers: seen.headers.iter().filter(|(name, _)| OF_REQUESTS.contains(&name.as_str())).cloned().collect(),
    });
    let is_own_error = backend.is_none() && !answer.status.is_redirection();
    let headers = OF_ANSWERS.iter().filter_map(of).filter(|_| !is_own_error).collect();
    Ok(Reply {
        status: answer.status.as_u16(),
        location: answer.header("location").map(str::to_owned),
        headers,
        backend,
    })
}

impl Answer {
    /// Its status, if it has one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Answer::Closed => None,
            Answer::Reply(reply) => Some(reply.status),
        }
    }

    /// Where it leads, if it is a redirect.
    pub fn location(&self) -> Option<&str> {
        match self {
            Answer::Closed => None,
            Answer::Reply(reply) => reply.location.as_deref(),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answer::Reply(reply) = self else { return f.write_str("closed") };
        write!(f, "{}", reply.status)?;
        if let Some(location) = &reply.location {
            write!(f, " → {location}")?;
        }
        if let Some(sent) = &reply.backend {
            write!(f, " {} got {}{}", sent.name, sent.host.as_deref().unwrap_or("-"), sent.path)?;
            sent.headers.iter().try_for_each(|(name, value)| write!(f, " {name}: {value}"))?;
        }
        let set = reply.headers.iter().filter(|(name, _)| name != "x-echo-name" || reply.backend.is_none());
        set.into_iter().try_for_each(|(name, value)| write!(f, " [{name}: {value}]"))?;
        if reply.backend.is_some() && !reply.headers.iter().any(|(name, _)| name == "x-echo-name") {
            f.write_str(" [no x-echo-name]")?;
        }
        Ok(())
    }
}

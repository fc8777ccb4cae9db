//! A case as a file: what was written by hand, and the golden part after the mark.
//!
//! Part of what is written by hand is the table: requests and the answers that are expected. A row is a map. Its first
//! entry is the request (`[METHOD] URL`) and the answer: a status, then the backend that gave it, or the place that a
//! redirect leads to; `refused` where there is no answer at all. Other entries say how the request is made and what
//! else the answer has. `udp://NAME` is a datagram to a port, and its answer the backend that gave it; several, with their
//! weights, share the datagrams of many clients (`default/a 3, default/b 1`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use source::yaml::documents;

use super::settings::Settings;

/// The line that the golden part begins with.
const MARK: &str = "--- # What comes of it: UPDATE_CASES=1 writes it.\n";

/// One case.
#[derive(Debug)]
pub struct Case {
    /// What the operator sets.
    pub(super) settings: Settings,
    /// The objects, as the text of a file in which everything else is blank, so that lines keep their numbers.
    pub(super) objects: String,
    /// What is asked.
    pub(super) requests: Vec<Row>,
    /// What was written by the last update.
    pub(super) golden: String,
    path: PathBuf,
    by_hand: String,
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// What cannot be read, in words.
    pub fn read(path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let (by_hand, golden) = text.split_once(MARK).unwrap_or((&text, ""));
        if !by_hand.starts_with("# ") {
            return Err("a case begins with a comment that says what it shows".to_owned());
        }
        let mut case = Case {
            settings: Settings::default(),
            objects: String::new(),
            requests: Vec::new(),
            golden: golden.to_owned(),
            path: path.into(),
            by_hand: by_hand.to_owned(),
        };
        for document in documents(by_hand) {
            let begins = |word: &str| document.text.lines().any(|line| line.starts_with(word));
            if begins("settings:") {
                case.settings = Settings::read(document.text)?;
            } else if begins("requests:") {
                case.requests = read_table(document.text)?;
            } else {
                let missing = (document.first_line as usize).saturating_sub(1 + case.objects.lines().count());
                case.objects.extend(std::iter::repeat_n('\n', missing));
                case.objects.push_str(document.text);
            }
        }
        Ok(case)
    }

    /// Whether anything in it could have a certificate: a Secret, or a request by TLS.
    pub(super) fn has_tls(&self) -> bool {
        ["https://", "Secret"].iter().any(|word| self.by_hand.contains(word))
    }

    /// Writes the golden part anew.
    pub(super) fn rewrite(&self, golden: &str) -> Result<(), String> {
        if golden == self.golden {
            return Ok(());
        }
        let text = format!("{}\n{MARK}{golden}", self.by_hand.trim_end());
        std::fs::write(&self.path, text).map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// One row.
#[derive(Debug)]
pub(super) struct Row {
    /// The request and its answer, as they stand in the file.
    pub line: String,
    pub method: http::Method,
    pub scheme: Scheme,
    /// The `Host`, with its port where one is written.
    pub host: String,
    pub path: String,
    pub answer: Expected,
    pub how: How,
}

impl Row {
    /// Whether the answer follows from which hosts share connections: the request comes on another host's connection, its backend sends
    /// it on to another host, or the access log says why there is no connection.
    pub fn depends_on_shared_connections(&self) -> bool {
        let host = self.host.split(':').next().unwrap_or_default().trim_end_matches('.');
        let is_anothers = |sni: &String| sni != "none" && !sni.eq_ignore_ascii_case(host);
        let leads_elsewhere = |value: &String| {
            let target = value.split_once("location: https://").map(|(_, target)| target);
            target.is_some_and(|target| target.split('/').next().is_some_and(|to| !to.eq_ignore_ascii_case(host)))
        };
        self.scheme == Scheme::Https
            && (self.how.sni.as_ref().is_some_and(is_anothers)
                || self.how.headers.values().any(leads_elsewhere)
                || self.answer == Expected::Refused && self.how.logs.is_some())
    }
}

/// How a request is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
    /// A datagram.
    Udp,
}

/// What a row expects first of all.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// No answer: the connection or the handshake ends.
    Refused,
    /// A status, and the backend or the location; nothing means that the proxy itself answers.
    Answer(u16, Option<String>),
    /// The backends that answer datagrams, with their weights.
    Backends(Vec<(String, u32)>),
}

/// How a request is made, and what else the answer has.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct How {
    /// The TLS server name, if it is not the host's; `none` leaves it out.
    pub sni: Option<String>,
    /// The port of the proxy, if it is neither that of HTTP nor that of HTTPS.
    pub port: Option<u16>,
    /// The version of HTTP: `1.0`, `1.1` or `2`.
    #[serde(deserialize_with = "version")]
    pub http: Option<String>,
    /// The only version of TLS that is offered.
    #[serde(deserialize_with = "version")]
    pub tls: Option<String>,
    /// The protocols that are offered in the handshake.
    pub offers: Option<Vec<String>>,
    /// The only type of key whose signatures the client verifies: `rsa` or `ecdsa`.
    pub verifies: Option<String>,
    /// The client certificate that is presented; see [`super::clients`].
    pub certificate: Option<String>,
    /// Headers of the request.
    pub headers: BTreeMap<String, String>,
    /// How many bytes its body has.
    pub sends: usize,
    /// Whether it becomes a WebSocket.
    pub websocket: bool,
    /// The name in the certificate that is shown.
    pub shows: Option<String>,
    /// The protocol that the handshake agreed on.
    pub agrees: Option<String>,
    /// What the backend saw: `path`, `host`, `protocol`, `sni`, `tls`, `client` (the subject of the certificate that it was
    /// presented), or a header; null where it must not be there.
    pub sees: BTreeMap<String, Option<String>>,
    /// Parts of what the backend saw, where the rest differs each time.
    pub sees_part: BTreeMap<String, String>,
    /// Texts that no value of a header that the backend saw has in it.
    pub sees_without: BTreeMap<String, String>,
    /// The body of the answer.
    pub body: Option<String>,
    /// Headers of the answer; null where one must not be there.
    pub has: BTreeMap<String, Option<String>>,
    /// Parts of headers of the answer, where the rest differs each time.
    pub has_part: BTreeMap<String, String>,
    /// How many requests backends got for this one.
    pub tries: Option<u64>,
    /// What the access log has about it: fields of JSON, or parts of a line; of a refused connection the first that names the host, of
    /// a refused HTTP/1.0 the first of its kind.
    pub logs: Option<Value>,
}

/// A version reads as a number unless it is quoted, which nobody remembers.
fn version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// Reads the document.
fn read_table(document: &str) -> Result<Vec<Row>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        requests: Vec<Map<String, Value>>,
    }
    let table: Table = serde_saphyr::from_str(document).map_err(|error| format!("requests: {error}"))?;
    table.requests.into_iter().map(row).collect()
}

fn row(mut entries: Map<String, Value>) -> Result<Row, String> {
    let requests: Vec<String> = entries.keys().filter(|key| key.contains("://")).cloned().collect();
    let [request] = &requests[..] else { return Err(format!("a row has one request: {entries:?}")) };
    let answer = entries.remove(request).unwrap_or_default();
    let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    let wrong = |what: &str| format!("{request}: {what}");
    let how = serde_json::from_value(Value::Object(entries)).map_err(|error| wrong(&error.to_string()))?;
    let (method, url) = request.split_once(' ').unwrap_or(("GET", request));
    let method = method.parse().map_err(|_| wrong("not a method"))?;
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("not a URL"))?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "udp" => Scheme::Udp,
        _ => return Err(wrong("none of http, https and udp")),
    };
    let (host, path) = (host.to_owned(), path.to_owned());
    let line = format!("{request}: {answer}");
    Ok(Row { line, method, scheme, host, path, answer: expected(scheme, &answer)?, how })
}

fn expected(scheme: Scheme, answer: &str) -> Result<Expected, String> {
    if answer == "refused" {
        return Ok(Expected::Refused);
    }
    if scheme == Scheme::Udp {
        let backends = answer.split(", ").map(|backend| match backend.split_once(' ') {
            Some((name, weight)) => {
                Ok((name.to_owned(), weight.parse().map_err(|_| format!("{weight}: not a weight"))?))
            }
            None => Ok((backend.to_owned(), 1)),
        });
        return backends.collect::<Result<_, String>>().map(Expected::Backends);
    }
    let (status, who) = match answer.split_once(' ') {
        Some((status, who)) => (status, Some(who.to_owned())),
        None => (answer, None),
    };
    let status = status.parse().map_err(|_| format!("{answer}: not a status, nor `refused`"))?;
    Ok(Expected::Answer(status, who))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_on_anothers_connection_are_told_from_all_others() {
        let depends = |row: &str| {
            let table = read_table(&format!("requests:\n- {row}\n")).expect(row);
            table[0].depends_on_shared_connections()
        };
        for row in [
            "{'https://a.example.com/': 421, sni: b.example.com}",
            "{'https://a.example.com:444/': 200 a, sni: b.example.com}",
            "{'https://a.example.com/': 302 a, headers: {x-echo-header: 'location: https://b.example.com/x'}}",
            "{'https://a.example.com/': refused, logs: NR}",
        ] {
            assert!(depends(row), "{row}");
        }
        for row in [
            "{'https://a.example.com/': 200 a}",
            "{'https://A.example.com.:8443/': 200 a, sni: a.example.com}",
            "{'https://a.example.com/': refused, sni: none}",
            "{'https://a.example.com/': 200 a, headers: {x-echo-header: 'location: https://A.example.com/x'}}",
            "{'http://a.example.com/': 302 a, headers: {x-echo-header: 'location: https://b.example.com/x'}}",
        ] {
            assert!(!depends(row), "{row}");
        }
    }
}

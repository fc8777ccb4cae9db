//! The requests of a set.
//!
//! In: its Mappings. Out: requests, most of which are near to what a Mapping matches: its path and a little more or less, its headers or
//! others, its host or another.

use std::fmt;

use http::Method;
use serde_json::Value;

use crate::random::Random;

const HOSTS: [&str; 9] = [
    "one.example.com",
    "one.example.com",
    "two.example.com",
    "four.example.com",
    "deep.two.example.com",
    "three.example.org",
    "nobody.test",
    "ONE.example.com",
    "one.example.com:8080",
];
const PATHS: [&str; 18] = [
    "/",
    "/x",
    "/x/",
    "/x/y",
    "/x/y/",
    "/x/y/z",
    "/x/yy",
    "/X/",
    "/X/y",
    "/xx",
    "/w/",
    "/w/1",
    "/x/1",
    "/x/12/z",
    "/nowhere",
    "/.well-known/acme-challenge/token",
    "/v1/items/3",
    "/longer/than/others/x",
];

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Over TLS, to the port for that.
    pub is_https: bool,
    /// The method.
    pub method: Method,
    /// The `Host`.
    pub host: String,
    /// The path, with a query perhaps.
    pub path: String,
    /// More headers.
    pub headers: Vec<(&'static str, &'static str)>,
}

impl Request {
    /// The `Host` without its port.
    pub fn server_name(&self) -> &str {
        self.host.split_once(':').map_or(&self.host, |(name, _)| name)
    }

    /// Whether its `Host` has a port.
    pub fn has_port(&self) -> bool {
        self.host.contains(':')
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{} {scheme}://{}{}", self.method, self.host, self.path)?;
        self.headers.iter().try_for_each(|(name, value)| write!(f, " {name}: {value}"))
    }
}

/// So many requests about these Mappings.
pub fn requests(random: &mut Random, mappings: &[Value], count: usize) -> Vec<Request> {
    let one = |_| {
        let about = random.below(mappings.len());
        request(random, &mappings[about]["spec"])
    };
    (0..count).map(one).collect()
}

/// A request that this Mapping may match.
fn request(random: &mut Random, spec: &Value) -> Request {
    let prefix = spec["prefix"].as_str().filter(|_| spec["prefix_regex"].is_null());
    let mut path = match prefix {
        Some(prefix) if random.percent(60) => {
            format!("{prefix}{}", random.pick(&["", "", "x", "/x", "y/z"]))
        }
        _ => random.pick(&PATHS).to_owned(),
    };
    let asks = !spec["query_parameters"].is_null() || !spec["regex_query_parameters"].is_null();
    if random.percent(if asks { 70 } else { 10 }) {
        path.push_str(random.pick(&["?q=1", "?q=2", "?r=1&q=1", "?q=", "?Q=1"]));
    }
    let exact = spec["hostname"].as_str().filter(|name| !name.contains('*'));
    let host = match exact {
        Some(name) if random.percent(70) => name.to_owned(),
        _ => random.pick(&HOSTS).to_owned(),
    };
    let wanted = spec["method"].as_str().filter(|_| spec["method_regex"].is_null());
    let method = match wanted {
        Some("POST") if random.percent(60) => Method::POST,
        _ => [Method::GET, Method::GET, Method::GET, Method::POST, Method::PUT][random.below(5)].clone(),
    };
    let mut headers = Vec::new();
    let asks = !spec["headers"].is_null() || !spec["regex_headers"].is_null();
    if random.percent(if asks { 80 } else { 15 }) {
        headers.push(("x-v", random.pick(&["1", "1", "2", "a"])));
    }
    if random.percent(if asks { 50 } else { 5 }) {
        headers.push(("x-w", "1"));
    }
    if random.percent(10) {
        headers.push(("x-drop", "client"));
    }
    if random.percent(10) {
        headers.push(("x-set-request", "client"));
    }
    if random.percent(10) {
        headers.push(("x-forwarded-proto", random.pick(&["https", "http"])));
    }
    Request { is_https: random.percent(35), method, host, path, headers }
}

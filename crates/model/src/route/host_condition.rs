//! A condition about the host of a request: which names a route is for, where its virtual host has others besides.
//!
//! A route that is shared by many hosts says here what it is for. In a host that is no wider the condition is
//! [implied](HostCondition::is_implied), and a proxy need not look at it. Requests may name a port behind the host: any, unless the
//! condition names one.

use crate::{Fqdn, Host, Regex};
use std::{fmt, sync::Arc};

/// A condition about the host of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCondition {
    /// The names.
    pub names: HostNames,
    /// The port that a request must name, if it must.
    pub port: Option<u16>,
}

/// Names of hosts; upper and lower case are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostNames {
    /// Every name.
    Any,
    /// This name.
    Exact(Fqdn),
    /// Names below this one, at any depth.
    Below(Fqdn),
    /// Names that end with this text and have something before it; never empty, lower case.
    Suffix(Arc<str>),
    /// Names that begin with this text and have something behind it; never empty, lower case.
    Prefix(Arc<str>),
    /// Names that match this pattern as a whole.
    Regex(Regex),
}

impl HostCondition {
    /// Requests for a host, a wildcard at any depth; nothing where every request is for it.
    pub fn of(host: &Host) -> Option<Self> {
        let names = match host {
            Host::Any => return None,
            Host::Exact(name) => HostNames::Exact(name.clone()),
            Host::Wildcard(name) => HostNames::Below(name.clone()),
        };
        Some(Self { names, port: None })
    }

    /// Whether every request of a virtual host fulfils it.
    pub fn is_implied(&self, host: &Host) -> bool {
        if self.port.is_some() {
            return false;
        }
        match (&self.names, host) {
            (HostNames::Any, _) => true,
            (HostNames::Exact(name), Host::Exact(host)) => name == host,
            (HostNames::Below(name), Host::Exact(host)) => is_below(host.as_str(), name.as_str()),
            (HostNames::Below(name), Host::Wildcard(host)) => name == host || is_below(host.as_str(), name.as_str()),
            _ => false,
        }
    }

    /// A pattern for the whole of what a request names as its host, with or without a port.
    pub fn pattern(&self) -> String {
        let name = match &self.names {
            HostNames::Any => "[^:]*".to_owned(),
            HostNames::Exact(name) => Regex::literal(name.as_str()).to_string(),
            HostNames::Below(name) => format!("[^:]+\\.{}", Regex::literal(name.as_str())),
            HostNames::Suffix(text) => format!("[^:]+{}", Regex::literal(text)),
            HostNames::Prefix(text) => format!("{}[^:]+", Regex::literal(text)),
            HostNames::Regex(regex) => format!("(?:{regex})"),
        };
        match self.port {
            Some(port) => format!("(?i){name}:{port}"),
            None => format!("(?i){name}(?::[0-9]+)?"),
        }
    }

    /// How much text it holds.
    pub fn bytes(&self) -> usize {
        match &self.names {
            HostNames::Any => 0,
            HostNames::Exact(name) | HostNames::Below(name) => name.as_str().len(),
            HostNames::Suffix(text) | HostNames::Prefix(text) => text.len(),
            HostNames::Regex(regex) => regex.as_str().len(),
        }
    }
}

fn is_below(name: &str, other: &str) -> bool {
    name.strip_suffix(other).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
}

impl fmt::Display for HostCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.names {
            HostNames::Any => f.write_str("*")?,
            HostNames::Exact(name) => write!(f, "{name}")?,
            HostNames::Below(name) => write!(f, "*.{name}")?,
            HostNames::Suffix(text) => write!(f, "*{text}")?,
            HostNames::Prefix(text) => write!(f, "{text}*")?,
            HostNames::Regex(regex) => write!(f, "~ {regex}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).expect("a host")
    }

    #[test]
    fn a_condition_is_implied_where_the_host_is_no_wider() {
        let table = [
            ("a.example.com", "a.example.com", true),
            ("a.example.com", "b.example.com", false),
            ("a.example.com", "*.example.com", false),
            ("a.example.com", "*", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "*.example.com", true),
            ("*.example.com", "*.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "xexample.com", false),
            ("*.b.example.com", "*.example.com", false),
            ("*.example.com", "*", false),
        ];
        for (names, of, expected) in table {
            let condition = HostCondition::of(&host(names)).expect("not every name");
            assert_eq!(condition.is_implied(&host(of)), expected, "{names} in {of}");
            assert!(!HostCondition { port: Some(80), ..condition }.is_implied(&host(of)), "a port is never implied");
        }
        assert_eq!(HostCondition::of(&Host::Any), None);
    }

    #[test]
    fn a_pattern_takes_any_port_unless_one_is_named() {
        let condition = HostCondition::of(&host("*.example.com")).expect("a condition");
        assert_eq!(condition.pattern(), "(?i)[^:]+\\.example\\.com(?::[0-9]+)?");
        assert_eq!(HostCondition { port: Some(81), ..condition }.pattern(), "(?i)[^:]+\\.example\\.com:81");
    }
}

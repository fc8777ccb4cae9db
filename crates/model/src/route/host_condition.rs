//! A condition about the host of a request: which names a route is for, where its virtual host has others besides.
//!
//! A route that is shared by many hosts says here what it is for. In a host that is no wider the condition is
//! [implied](HostCondition::is_implied), and a proxy need not look at it. Requests may name a port behind the host: any, unless the
//! condition names one.

use crate::{Fqdn, Host, Regex};
use std::{borrow::Cow, cmp::Reverse, fmt, sync::Arc};

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

    /// What requests fulfil that fulfil both.
    pub fn and(&self, other: &Self) -> Overlap {
        let port = match (self.port, other.port) {
            (Some(one), Some(two)) if one != two => return Overlap::Never,
            (one, two) => one.or(two),
        };
        match self.names.and(&other.names) {
            NameOverlap::Never => Overlap::Never,
            NameOverlap::Names(names) => Overlap::One(Self { names, port }),
            NameOverlap::Both => Overlap::Both,
        }
    }

    /// How specific it is, where several are tried in turn: the smallest comes first. Whole names come before those of which the end
    /// is known, then those of which the beginning is; the longer text before the shorter one, and a port before any port.
    pub fn specificity(&self) -> impl Ord + '_ {
        let class = match &self.names {
            HostNames::Exact(_) => 0,
            HostNames::Below(_) | HostNames::Suffix(_) => 1,
            HostNames::Prefix(_) => 2,
            HostNames::Regex(_) => 3,
            HostNames::Any => 4,
        };
        let length = self.names.suffix().map_or(self.bytes(), |text| text.len());
        (class, Reverse(length), Reverse(self.port.is_some()), self)
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

/// What is left of two conditions that hold at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// No request fulfils both.
    Never,
    /// One that says as much as both.
    One(HostCondition),
    /// Both have to be compared.
    Both,
}

enum NameOverlap {
    Never,
    Names(HostNames),
    Both,
}

impl HostNames {
    /// The text that all names end with, if that is all that is said of them.
    fn suffix(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Below(name) => Some(format!(".{name}").into()),
            Self::Suffix(text) => Some((&**text).into()),
            Self::Any | Self::Exact(_) | Self::Prefix(_) | Self::Regex(_) => None,
        }
    }

    /// Whether a name is among them; `None` where that takes a pattern to say.
    fn has(&self, name: &str) -> Option<bool> {
        Some(match self {
            Self::Any => true,
            Self::Exact(own) => own.as_str() == name,
            Self::Below(above) => is_below(name, above.as_str()),
            Self::Suffix(text) => name.len() > text.len() && name.ends_with(&**text),
            Self::Prefix(text) => name.len() > text.len() && name.starts_with(&**text),
            Self::Regex(_) => return None,
        })
    }

    fn and(&self, other: &Self) -> NameOverlap {
        let narrower = |one: &Self, two: &Self, is_narrower: bool, is_wider: bool| match (is_narrower, is_wider) {
            (true, _) => NameOverlap::Names(one.clone()),
            (false, true) => NameOverlap::Names(two.clone()),
            (false, false) => NameOverlap::Never,
        };
        match (self, other) {
            (Self::Any, names) | (names, Self::Any) => NameOverlap::Names(names.clone()),
            (Self::Exact(name), names) | (names, Self::Exact(name)) => match names.has(name.as_str()) {
                Some(true) => NameOverlap::Names(Self::Exact(name.clone())),
                Some(false) => NameOverlap::Never,
                None => NameOverlap::Both,
            },
            (Self::Prefix(one), Self::Prefix(two)) => {
                narrower(self, other, one.starts_with(&**two), two.starts_with(&**one))
            }
            (one, two) => match (one.suffix(), two.suffix()) {
                (Some(a), Some(b)) => narrower(one, two, a.ends_with(&*b), b.ends_with(&*a)),
                _ => NameOverlap::Both,
            },
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

    fn condition(text: &str) -> HostCondition {
        let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, port.parse().ok()));
        let names = match (name.strip_prefix('*'), name.strip_suffix('*')) {
            (Some(""), _) => HostNames::Any,
            (Some(rest), _) if rest.starts_with('.') => HostNames::Below(Fqdn::parse(&rest[1..]).expect("a name")),
            (Some(rest), _) => HostNames::Suffix(rest.into()),
            (None, Some(rest)) => HostNames::Prefix(rest.into()),
            (None, None) => HostNames::Exact(Fqdn::parse(name).expect("a name")),
        };
        HostCondition { names, port }
    }

    #[test]
    fn two_conditions_are_the_narrower_one_or_none_or_both() {
        for (one, two, expected) in [
            ("a.b.test", "a.b.test", "a.b.test"),
            ("a.b.test", "c.b.test", "never"),
            ("a.b.test", "*.b.test", "a.b.test"),
            ("b.test", "*.b.test", "never"),
            ("bar.test", "*bar.test", "never"),
            ("foobar.test", "*bar.test", "foobar.test"),
            ("foo.test", "foo.*", "foo.test"),
            ("*.b.test", "*.test", "*.b.test"),
            ("*b.test", "*.test", "*b.test"),
            ("*b.test", "*c.test", "never"),
            ("*b.test", "*ab.test", "*ab.test"),
            ("foo.*", "fo*", "foo.*"),
            ("foo.*", "bar.*", "never"),
            ("foo.*", "*.test", "both"),
            ("*", "foo.*", "foo.*"),
            ("*:80", "foo.*", "foo.*:80"),
            ("a.test:80", "a.test:81", "never"),
            ("a.test:80", "*.test", "a.test:80"),
        ] {
            let shown = |overlap: Overlap| match overlap {
                Overlap::Never => "never".to_owned(),
                Overlap::One(condition) => condition.to_string(),
                Overlap::Both => "both".to_owned(),
            };
            let (one, two) = (condition(one), condition(two));
            assert_eq!(shown(one.and(&two)), expected, "{one} and {two}");
            assert_eq!(shown(two.and(&one)), expected, "{two} and {one}");
        }
    }

    #[test]
    fn the_more_specific_is_tried_first() {
        let order = ["a.b.test:80", "*-api.b.test", "*.b.test:80", "*b.test", "*test", "foo.bar*", "foo*", "*:80"];
        let mut sorted: Vec<_> = order.iter().rev().map(|text| condition(text)).collect();
        sorted.sort_by(|one, two| one.specificity().cmp(&two.specificity()));
        assert_eq!(sorted.iter().map(ToString::to_string).collect::<Vec<_>>(), order);
    }

    #[test]
    fn a_pattern_takes_any_port_unless_one_is_named() {
        let condition = HostCondition::of(&host("*.example.com")).expect("a condition");
        assert_eq!(condition.pattern(), "(?i)[^:]+\\.example\\.com(?::[0-9]+)?");
        assert_eq!(HostCondition { port: Some(81), ..condition }.pattern(), "(?i)[^:]+\\.example\\.com:81");
    }
}

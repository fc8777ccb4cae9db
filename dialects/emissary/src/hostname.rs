//! Host names as Emissary writes them: a name, a glob with `*` at one end, `*`, each with a port or without.
//!
//! In: the text. Out: what of it is a [`Host`] that a virtual host may have, and the condition that tells its requests from others
//! where that is wider.

use model::{
    Fqdn, Host,
    route::{HostCondition, HostNames},
};
use std::{fmt, sync::Arc};

/// A host name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hostname {
    /// The narrowest host that has all of its names.
    pub host: Host,
    /// What requests for its names fulfil; nothing for every name.
    pub condition: Option<HostCondition>,
}

impl Hostname {
    /// Whether a virtual host can be for exactly these names.
    pub fn is_host(&self) -> bool {
        HostCondition::of(&self.host) == self.condition
    }

    /// Whether clients ask for exactly these names in a TLS handshake, which knows no ports and no parts of labels.
    pub fn has_server_name(&self) -> bool {
        self.condition.as_ref().is_none_or(|condition| {
            matches!(condition.names, HostNames::Any | HostNames::Exact(_) | HostNames::Below(_))
        })
    }

    /// Whether it is for one port only.
    pub fn has_port(&self) -> bool {
        self.condition.as_ref().is_some_and(|condition| condition.port.is_some())
    }

    /// The names, for any port.
    pub fn without_port(&self) -> String {
        let Some(condition) = &self.condition else { return self.host.to_string() };
        HostCondition { port: None, ..condition.clone() }.to_string()
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.condition {
            Some(condition) => condition.fmt(f),
            None => self.host.fmt(f),
        }
    }
}

/// Reads a host name, in any case.
pub fn parse(text: &str) -> Result<Hostname, String> {
    let lower = text.trim_end_matches('.').to_ascii_lowercase();
    let (name, port) = match lower.rsplit_once(':') {
        Some((name, port)) => {
            let port: Result<u16, _> = port.parse();
            let port = port.ok().filter(|port| *port != 0);
            (name, Some(port.ok_or_else(|| format!("`{}` has no valid port behind `:`", shown(text)))?))
        }
        None => (&*lower, None),
    };
    let (host, names) = glob(name).ok_or_else(|| {
        format!("`{}` must be a DNS name, or one with a single `*` at its beginning or end", shown(text))
    })?;
    let condition = match (&names, port) {
        (HostNames::Any, None) => None,
        _ => Some(HostCondition { names, port }),
    };
    Ok(Hostname { host, condition })
}

/// The narrowest host around a glob, and its names.
fn glob(name: &str) -> Option<(Host, HostNames)> {
    if name == "*" || name.is_empty() {
        return Some((Host::Any, HostNames::Any));
    }
    match (name.strip_prefix('*'), name.strip_suffix('*')) {
        (None, None) => {
            let host = Host::parse_or_ipv4(name).ok()?;
            let Host::Exact(fqdn) = &host else { return None };
            let names = HostNames::Exact(fqdn.clone());
            Some((host, names))
        }
        (Some(rest), None) => {
            if let Some(fqdn) = rest.strip_prefix('.').and_then(|below| Fqdn::parse(below).ok()) {
                return Some((Host::Wildcard(fqdn.clone()), HostNames::Below(fqdn)));
            }
            // `*-api.example.com` lies below `example.com`, `*bar.test` below `test`, and `*test` anywhere.
            let is_plain = is_part(rest);
            let above = rest.split_once('.').and_then(|(_, above)| Fqdn::parse(above).ok());
            let host = above.map_or(Host::Any, Host::Wildcard);
            is_plain.then(|| (host, HostNames::Suffix(Arc::from(rest))))
        }
        (None, Some(rest)) => is_part(rest).then(|| (Host::Any, HostNames::Prefix(Arc::from(rest)))),
        (Some(_), Some(_)) => None,
    }
}

/// A part of a name: letters, digits, hyphens and dots between them.
fn is_part(text: &str) -> bool {
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    !text.is_empty() && text.len() <= 253 && !text.contains("..") && text.bytes().all(known)
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_globs() {
        for (text, host, condition) in [
            ("*", "*", ""),
            ("", "*", ""),
            ("a.example.com", "a.example.com", "a.example.com"),
            ("A.Example.com.", "a.example.com", "a.example.com"),
            ("*.example.com", "*.example.com", "*.example.com"),
            ("*-api.example.com", "*.example.com", "*-api.example.com"),
            ("*bar.test", "*.test", "*bar.test"),
            ("*test", "*", "*test"),
            ("foo.*", "*", "foo.*"),
            ("a.example.com:8080", "a.example.com", "a.example.com:8080"),
            ("*:8080", "*", "*:8080"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.1"),
        ] {
            let found = parse(text);
            let shown = found.as_ref().map(|found| {
                (found.host.to_string(), found.condition.as_ref().map_or_else(String::new, ToString::to_string))
            });
            assert_eq!(shown, Ok((host.to_owned(), condition.to_owned())), "{text}");
        }
        for wrong in ["a.*.test", "*a*", "a b", "a..b", "a:x", "a:0", "a:99999", "[::1]", "_"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_virtual_host_can_be_for_a_name_a_wildcard_and_every_name() {
        for (text, expected) in
            [("*", true), ("a.b", true), ("*.b", true), ("*a.b", false), ("a.*", false), ("a.b:80", false)]
        {
            assert_eq!(parse(text).map(|found| found.is_host()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_handshake_has_whole_names_and_no_ports() {
        for (text, name, expected) in [
            ("*", "*", true),
            ("*:80", "*", true),
            ("a.b:80", "a.b", true),
            ("*.b:80", "*.b", true),
            ("*a.b", "*a.b", false),
            ("a.*:80", "a.*", false),
        ] {
            let found = parse(text).map(|found| (found.without_port(), found.has_server_name()));
            assert_eq!(found, Ok((name.to_owned(), expected)), "{text}");
        }
    }
}

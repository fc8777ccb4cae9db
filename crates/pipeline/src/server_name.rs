//! Certificates by the name that a client asked for in its handshake.
//!
//! With certificates on demand, a proxy asks for a secret by the server name as the client wrote it. Secrets then stand under
//! the hosts that show them, and this leads from one to the other: in lower case, then by the wildcards above, the nearest
//! first, at any depth, as a listener's map of names does it. What leads nowhere is answered as removed, so that the handshake
//! ends at once; how many names clients may make up, below a wildcard or anywhere, is bounded by [`xds::Limits`].

use xds::{Kind, Name, Resolver};

/// Finds certificates by server name.
#[derive(Clone, Copy, Debug)]
pub struct ByServerName;

impl Resolver for ByServerName {
    fn resolves(&self, kind: Kind) -> bool {
        kind == Kind::Secret
    }

    fn resolve(&self, _: Kind, asked: &str, listed: &dyn Fn(&str) -> bool) -> Option<Name> {
        let host = asked.to_ascii_lowercase();
        if listed(&host) {
            return Some(host.into());
        }
        let above = std::iter::successors(host.split_once('.'), |(_, rest)| rest.split_once('.'));
        above.map(|(_, rest)| format!("*.{rest}")).find(|wildcard| listed(wildcard)).map(Into::into)
    }

    /// Names of hosts have no `/`; those of Secrets have one, and stand in listeners and clusters.
    fn is_made_up(&self, _: Kind, asked: &str) -> bool {
        !asked.contains('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_the_nearest_host() {
        let listed = |name: &str| ["a.com", "*.a.com", "*.b.a.com", "ns/secret"].contains(&name);
        let found = |asked| ByServerName.resolve(Kind::Secret, asked, &listed);
        let cases = [
            ("A.com", Some("a.com")),
            ("x.A.com", Some("*.a.com")),
            ("x.b.a.com", Some("*.b.a.com")),
            ("x.y.a.com", Some("*.a.com")),
            ("b.com", None),
            ("com", None),
            ("", None),
            (".", None),
        ];
        for (asked, host) in cases {
            assert_eq!(found(asked).as_deref(), host, "{asked}");
        }
    }
}

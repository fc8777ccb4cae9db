//! Which hosts a route and a listener have in common.

use model::Host;

/// What two hosts have in common: the narrower of them, if it lies in the other. A wildcard reaches any depth, and does not
/// include the name that it lies below.
pub fn intersection<'h>(one: &'h Host, other: &'h Host) -> Option<&'h Host> {
    match (one, other) {
        (Host::Any, narrow) | (narrow, Host::Any) => Some(narrow),
        _ if one == other || lies_in(one, other) => Some(one),
        _ if lies_in(other, one) => Some(other),
        _ => None,
    }
}

/// Whether a host lies below a wildcard. There may be very many pairs, so nothing is allocated.
fn lies_in(narrow: &Host, wide: &Host) -> bool {
    let (Host::Exact(name) | Host::Wildcard(name)) = narrow else { return false };
    let Host::Wildcard(above) = wide else { return false };
    name.as_str().strip_suffix(above.as_str()).is_some_and(|rest| rest.ends_with('.'))
}

/// How much wider a route's own host name is than the virtual host that it is in. Of two routes the one with the narrower name
/// comes first: the name itself, then the wildcard with more characters, then no name at all.
pub fn widening(own: &Host, virtual_host: &Host) -> u16 {
    const LONGEST_NAME: u16 = 253;
    match own {
        _ if own == virtual_host => 0,
        Host::Exact(name) | Host::Wildcard(name) => {
            let length = u16::try_from(name.as_str().len()).unwrap_or(LONGEST_NAME).min(LONGEST_NAME);
            1 + LONGEST_NAME - length
        }
        Host::Any => u16::MAX,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn the_narrower_host_is_common() {
        for (one, other, common) in [
            ("", "", Some("*")),
            ("a.com", "", Some("a.com")),
            ("*.a.com", "", Some("*.a.com")),
            ("a.com", "a.com", Some("a.com")),
            ("a.com", "b.com", None),
            ("b.a.com", "*.a.com", Some("b.a.com")),
            ("c.b.a.com", "*.a.com", Some("c.b.a.com")),
            ("a.com", "*.a.com", None),
            ("xa.com", "*.a.com", None),
            ("*.b.a.com", "*.a.com", Some("*.b.a.com")),
            ("*.b.com", "*.a.com", None),
        ] {
            let (one, other) = (host(one), host(other));
            let found = |one, other| intersection(one, other).map(ToString::to_string);
            assert_eq!(found(&one, &other).as_deref(), common, "{one} {other}");
            assert_eq!(found(&other, &one).as_deref(), common, "{other} {one}");
        }
    }

    #[test]
    fn the_narrower_name_of_a_route_comes_first() {
        let of = |own: &str, virtual_host: &str| widening(&host(own), &host(virtual_host));
        let order = ["abc.example.com", "*.example.com", "*.com", ""].map(|own| of(own, "abc.example.com"));
        assert!(order.is_sorted() && order[0] == 0, "{order:?}");
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
        assert_eq!((of("*.example.com", "*.example.com"), of("", "")), (0, 0));
    }
}

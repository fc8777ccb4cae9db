//! Annotations of other ingress controllers: whoever moves an object from one of them to Sesame must know what is lost.
//!
//! In: the annotations of an object of any dialect. Out: verdicts, and whether the object asks for a protection that is not
//! there. What only changes how requests are served is one warning that lists the names. What keeps somebody out (access
//! lists, authentication, client certificates, rate limits, web application firewalls) is an error each, because without
//! it the host is open; the operator decides whether such an object is served as if nothing was said, as Contour does it,
//! or answers 503.
//!
//! A controller is known by its domain, and a protection by the words in its name, because the names themselves are several
//! hundred and new ones come with every release. Middlewares, plugins and snippets count as protection: they are how some
//! controllers do it, and nobody can tell from here what is in them.

use kinds::Meta;
use model::{Code, FieldPath, ObjectRef, Verdict};

/// What is done with an object that asks another controller for protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignProtection {
    /// It is told, and the object is served.
    #[default]
    Warn,
    /// It is told, and the object answers 503.
    Refuse,
}

/// The domains of other controllers; what lies below `ingress.kubernetes.io` is another's, too.
const DOMAINS: [&str; 34] = [
    "ako.vmware.com",
    "apisix.apache.org",
    "appprotect.f5.com",
    "appprotectdos.f5.com",
    "cilium.io",
    "citrix.com",
    "getambassador.io",
    "gloo.solo.io",
    "haproxy-ingress.github.io",
    "haproxy.com",
    "haproxy.org",
    "haproxy.router.openshift.io",
    "higress.io",
    "ingress.appscode.com",
    "ingress.bluemix.net",
    "ingress.gcp.kubernetes.io",
    "ingress.haproxy.org",
    "ingress.kubernetes.io",
    "ingress.pomerium.io",
    "k8s.ngrok.com",
    "konghq.com",
    "ncp",
    "networking.gke.io",
    "nginx.com",
    "nginx.org",
    "oci-native-ingress.oraclecloud.com",
    "route.openshift.io",
    "router.openshift.io",
    "traefik.containo.us",
    "traefik.io",
    "tyk.io",
    "virtual-server.f5.com",
    "voyager.appscode.com",
    "zalando.org",
];

/// What is read here although its domain is another's.
const OURS: [&str; 3] = [
    kinds::emissary::annotation::ANNOTATION,
    kinds::emissary::ID_ANNOTATION,
    "ingress.kubernetes.io/force-ssl-redirect",
];

/// The words of names that protect.
const PROTECTING: [&str; 34] = [
    "acl",
    "allowed",
    "allowlist",
    "auth",
    "authenticated",
    "authentication",
    "authn",
    "authorization",
    "authz",
    "blacklist",
    "blocklist",
    "cidrs",
    "csrf",
    "denylist",
    "jwt",
    "limit",
    "middlewares",
    "modsecurity",
    "mtls",
    "oauth",
    "oauth2",
    "oidc",
    "owasp",
    "plugins",
    "policies",
    "ratelimit",
    "satisfy",
    "shield",
    "snippet",
    "snippets",
    "verify",
    "waf",
    "wafv2",
    "whitelist",
];

/// The same, where it takes two.
const PROTECTING_PAIRS: [[&str; 2]; 7] = [
    ["allow", "list"],
    ["block", "list"],
    ["client", "ca"],
    ["client", "cert"],
    ["deny", "list"],
    ["security", "groups"],
    ["tls", "options"],
];

/// Values that switch a protection off.
const OFF: [&str; 7] = ["", "0", "disabled", "false", "no", "none", "off"];

/// The ranges of an access list that keeps nobody out.
const EVERY_ADDRESS: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// How many names a list shows.
const LISTED: usize = 20;

/// What another controller would make of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    Protects,
    Other,
}

/// What was found about an object.
#[derive(Debug, Default)]
pub struct Found {
    /// What is to be told.
    pub verdicts: Vec<Verdict>,
    /// Whether it asks for protection.
    pub protects: bool,
}

/// Looks at the annotations of an object.
pub fn look(meta: &Meta, subject: &ObjectRef) -> Found {
    look_beside(meta, subject, None)
}

/// Looks at the annotations of an object of a dialect whose own annotations are those of a domain.
pub fn look_beside(meta: &Meta, subject: &ObjectRef, own: Option<&str>) -> Found {
    let (mut found, mut others) = (Found::default(), Vec::new());
    let is_own = |name: &str| own.is_some() && name.split_once('/').map(|(domain, _)| domain) == own;
    for (name, value) in meta.annotations.iter().filter(|(name, _)| !is_own(name)) {
        match foreign(name, value.ok().map(|value| &**value)) {
            None => {}
            Some(Foreign::Other) => others.push(name),
            Some(Foreign::Protects) => {
                found.protects = true;
                let why = format!("annotation `{name}` of another ingress controller is not enforced");
                let origin = subject.at(FieldPath::annotation(name));
                found.verdicts.push(Verdict::new(Code::ForeignProtection, origin, why));
            }
        }
    }
    if !others.is_empty() {
        let more = others.len().saturating_sub(LISTED);
        let mut why = format!(
            "annotations of other ingress controllers have no effect: {}",
            others[..others.len() - more].join(", ")
        );
        if more > 0 {
            why.push_str(&format!(" and {more} more"));
        }
        found.verdicts.push(Verdict::new(Code::ForeignAnnotation, subject.at("metadata.annotations"), why));
    }
    found
}

/// Whose an annotation is; nothing if no other controller reads it. A value that cannot be read protects, if it is of that
/// kind.
fn foreign(name: &str, value: Option<&str>) -> Option<Foreign> {
    let (domain, rest) = name.split_once('/')?;
    let theirs = domain.ends_with(".ingress.kubernetes.io")
        || DOMAINS
            .iter()
            .any(|known| domain.strip_suffix(known).is_some_and(|front| front.is_empty() || front.ends_with('.')));
    if !theirs || OURS.contains(&name) {
        return None;
    }
    let is_off = value.is_some_and(|value| {
        OFF.contains(&&*value.trim().to_ascii_lowercase()) || (is_allow_list(rest) && has_every_address(value))
    });
    let protects = domain.starts_with("appprotect") || has_protecting_word(rest);
    Some(if protects && !is_off { Foreign::Protects } else { Foreign::Other })
}

fn words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).collect()
}

fn is_allow_list(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = words(&name);
    words.iter().any(|word| ["allowlist", "whitelist"].contains(word))
        || words.windows(2).any(|pair| pair == ["allow", "list"])
}

/// Whether ranges of addresses are all of IPv4 and all of IPv6, and nothing else: cert-manager says so on the Ingresses of its solvers.
fn has_every_address(value: &str) -> bool {
    let mut ranges: Vec<&str> = value.split(',').map(str::trim).collect();
    ranges.sort_unstable();
    ranges == EVERY_ADDRESS
}

fn has_protecting_word(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = words(&name);
    words.iter().any(|word| PROTECTING.contains(word))
        || words.windows(2).any(|pair| PROTECTING_PAIRS.iter().any(|known| *pair == known[..]))
}

#[cfg(test)]
mod tests {
    //! Names as the controllers document them.

    use super::*;

    #[test]
    fn what_protects_is_known_by_its_words() {
        for name in [
            "nginx.ingress.kubernetes.io/whitelist-source-range",
            "nginx.ingress.kubernetes.io/denylist-source-range",
            "nginx.ingress.kubernetes.io/auth-url",
            "nginx.ingress.kubernetes.io/auth-type",
            "nginx.ingress.kubernetes.io/auth-tls-secret",
            "nginx.ingress.kubernetes.io/auth-tls-verify-client",
            "nginx.ingress.kubernetes.io/limit-rps",
            "nginx.ingress.kubernetes.io/satisfy",
            "nginx.ingress.kubernetes.io/enable-modsecurity",
            "nginx.ingress.kubernetes.io/server-snippet",
            "nginx.org/basic-auth-secret",
            "nginx.com/jwt-key",
            "nginx.org/limit-req-rate",
            "appprotect.f5.com/app-protect-enable",
            "traefik.ingress.kubernetes.io/router.middlewares",
            "traefik.ingress.kubernetes.io/router.tls.options",
            "ingress.kubernetes.io/whitelist-source-range",
            "haproxy.org/allow-list",
            "haproxy.org/deny-list",
            "haproxy.org/client-ca",
            "haproxy.org/rate-limit-requests",
            "haproxy-ingress.github.io/waf",
            "haproxy.router.openshift.io/ip_whitelist",
            "konghq.com/plugins",
            "alb.ingress.kubernetes.io/inbound-cidrs",
            "alb.ingress.kubernetes.io/wafv2-acl-arn",
            "alb.ingress.kubernetes.io/security-groups",
            "alb.ingress.kubernetes.io/mutual-authentication",
            "appgw.ingress.kubernetes.io/waf-policy-for-path",
            "ingress.pomerium.io/allowed_users",
            "zalando.org/ratelimit",
        ] {
            assert_eq!(foreign(name, Some("x")), Some(Foreign::Protects), "{name}");
        }
    }

    #[test]
    fn what_is_switched_off_or_only_serves_is_another_matter() {
        for (name, value) in [
            ("nginx.ingress.kubernetes.io/rewrite-target", "/"),
            ("nginx.ingress.kubernetes.io/ssl-redirect", "true"),
            ("nginx.ingress.kubernetes.io/proxy-body-size", "1m"),
            ("nginx.ingress.kubernetes.io/cors-allow-origin", "*"),
            ("nginx.ingress.kubernetes.io/enable-modsecurity", "false"),
            ("nginx.ingress.kubernetes.io/whitelist-source-range", ""),
            ("nginx.ingress.kubernetes.io/whitelist-source-range", "0.0.0.0/0,::/0"),
            ("haproxy.org/allow-list", "::/0, 0.0.0.0/0"),
            ("alb.ingress.kubernetes.io/auth-type", "none"),
            ("alb.ingress.kubernetes.io/ssl-policy", "x"),
            ("konghq.com/strip-path", "true"),
        ] {
            assert_eq!(foreign(name, Some(value)), Some(Foreign::Other), "{name}");
        }
        assert_eq!(foreign("nginx.ingress.kubernetes.io/auth-url", None), Some(Foreign::Protects));
    }

    #[test]
    fn a_list_that_keeps_somebody_out_protects() {
        for (name, value) in [
            ("nginx.ingress.kubernetes.io/whitelist-source-range", "0.0.0.0/0"),
            ("haproxy-ingress.github.io/allowlist-source-range", "0.0.0.0/0,::/0,!192.0.2.0/24"),
            ("nginx.ingress.kubernetes.io/denylist-source-range", "0.0.0.0/0,::/0"),
        ] {
            assert_eq!(foreign(name, Some(value)), Some(Foreign::Protects), "{name}");
        }
    }

    #[test]
    fn what_no_other_controller_reads_is_left_alone() {
        for name in [
            "projectcontour.io/response-timeout",
            "projectsesame.io/anything",
            "kubernetes.io/ingress.class",
            "kubernetes.io/tls-acme",
            "ingress.kubernetes.io/force-ssl-redirect",
            "cert-manager.io/cluster-issuer",
            "external-dns.alpha.kubernetes.io/hostname",
            "notnginx.org/auth-url",
            "plain",
        ] {
            assert_eq!(foreign(name, Some("x")), None, "{name}");
        }
    }

    #[test]
    fn the_tables_are_sorted() {
        assert!(DOMAINS.is_sorted() && PROTECTING.is_sorted() && PROTECTING_PAIRS.is_sorted() && OFF.is_sorted());
    }
}

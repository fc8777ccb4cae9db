//! The service of a Mapping: `[http://|https://]name[.namespace][:port]`, an IP address, or a name in DNS.
//!
//! A name without a dot is a Service of the Mapping's namespace. One with a dot is a Service where there is one, and otherwise a name
//! in DNS; one that ends in `.svc` or `.svc.cluster.local` is always a Service. What only the proxy itself can reach is refused.

use super::Work;
use crate::{
    EmissaryView, Problem, Problems, Resolver, Settings, secret,
    tls_context::{self, Context},
};
use kinds::{emissary::mapping::MappingSpec, kind};
use model::{
    Code, Host, ObjectRef,
    cluster::{Backend, OutsideHost},
};
use resolve::{PortRef, Rejection};
use std::{net::IpAddr, sync::Arc};

/// What follows the name of a Service in the names that a cluster's DNS has for it.
const SUFFIXES: [&str; 2] = [".svc.cluster.local", ".svc"];

/// A service as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Whether `https://` stands before it.
    pub is_https: bool,
    /// Whether a scheme stands before it.
    pub has_scheme: bool,
    /// The name or address, without brackets.
    pub host: Box<str>,
    /// The port, if one is written.
    pub port: Option<u16>,
    /// What stands behind it and has no effect.
    pub junk: bool,
}

impl Written {
    /// The port, or the usual one.
    pub(crate) fn port(&self, is_tls: bool) -> u16 {
        self.port.unwrap_or(if is_tls { 443 } else { 80 })
    }
}

/// Reads the text of a service.
pub(crate) fn parse(text: &str) -> Result<Written, String> {
    let shown = || text.chars().take(80).collect::<String>().escape_debug().to_string();
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
        None => (None, text),
    };
    let is_https = match scheme.as_deref() {
        None | Some("http") => false,
        Some("https") => true,
        Some(other) => return Err(format!("the scheme `{}` is neither http nor https", other.escape_debug())),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let junk = !matches!(&rest[end..], "" | "/");
    let rest = &rest[..end];
    if rest.contains('@') {
        return Err(format!("`{}` contains user information (`user@`)", shown()));
    }
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(|| format!("`{}` has no `]`", shown()))?;
            (host, port.strip_prefix(':').or_else(|| (!port.is_empty()).then_some(port)))
        }
        // More than one colon is an address of IPv6 without a port.
        None if rest.matches(':').count() > 1 => (rest, None),
        None => rest.split_once(':').map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(format!("`{}` has no host", shown()));
    }
    let port = match port {
        None => None,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port != 0 => Some(port),
            _ => return Err(format!("`{}` has no valid port", shown())),
        },
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase().into();
    Ok(Written { is_https, has_scheme: scheme.is_some(), host, port, junk })
}

/// What a Mapping sends requests to.
pub(super) struct Target {
    /// The backend, without what the Mapping says about connections to it.
    pub backend: Backend,
    /// The name that it is known by, for a host that is rewritten to it.
    pub name: Box<str>,
    /// Whether connections to it are TLS.
    pub is_tls: bool,
    /// The settings of TLS, if the Mapping names some.
    pub context: Option<Context>,
}

/// The service as it is written; nothing, and a verdict, where there is none.
pub(super) fn written(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Written> {
    let MappingSpec { service, .. } = &work.object.spec;
    let is_read = service.ok().is_some();
    let text = match work.problems.optional("service", service) {
        Some(text) if !text.is_empty() => text,
        _ => {
            if is_read {
                work.problems.refuse(Problem::new(Code::MappingService, "service", "service is missing"));
            }
            return None;
        }
    };
    let found = parse(text).map_err(|why| Problem::new(Code::MappingService, "service", why));
    let written = work.problems.parsed(found)?;
    if written.junk {
        work.problems.no_effect("service", "what follows the host and the port has no effect");
    }
    Some(written)
}

/// What requests are sent to; nothing, and a verdict, where that cannot be.
pub(super) fn target(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Target> {
    let resolver = resolver(work);
    let written = written(work)?;
    let context = work.problems.optional("tls", &work.object.spec.tls);
    let context = context.filter(|name| !name.is_empty());
    let is_tls = written.is_https || (context.is_some() && !written.has_scheme);
    let context = match context {
        Some(_) if !is_tls => {
            work.problems.no_effect("tls", "the scheme of the service is http, so connections to it are not TLS");
            None
        }
        Some(name) => Some(upstream_context(work, name)?),
        None => None,
    };
    let namespace = namespace(work);
    match locate(&written, is_tls, resolver?, &namespace, work.view) {
        Ok(backend) => Some(Target { backend, name: written.host, is_tls, context }),
        Err(rejection) => {
            rejection.report("service", Code::MappingService, work.problems);
            None
        }
    }
}

/// Why a service cannot be reached.
pub(crate) enum NotLocated {
    /// What is written is no address that proxies connect to.
    Invalid(String),
    /// It is not there.
    Rejected(Rejection),
}

impl NotLocated {
    /// Tells it on a field.
    pub(crate) fn report(self, field: &str, code: Code, problems: &mut Problems<'_>) {
        match self {
            NotLocated::Invalid(why) => problems.refuse(Problem::new(code, field, why)),
            NotLocated::Rejected(rejection) => problems.rejected(field, &rejection),
        }
    }
}

/// What is behind a service that an object of a namespace names.
pub(crate) fn locate(
    written: &Written,
    is_tls: bool,
    resolver: Resolver,
    namespace: &str,
    view: &mut impl EmissaryView,
) -> Result<Backend, NotLocated> {
    let port = written.port(is_tls);
    if written.host.parse::<IpAddr>().is_err() {
        let (service, of) = split(&written.host, namespace);
        let known = view.service(of, service);
        let is_outside = known.is_none() && written.host.contains('.') && !is_cluster_name(&written.host);
        if !is_outside {
            let port = match (written.port, resolver, known.as_ref().map(|service| &service.ports[..])) {
                // Of a Service with one port the endpoints have that one.
                (None, Resolver::Endpoint, Some([only])) => only.number,
                _ => port,
            };
            let is_local = known.is_none() && OutsideHost::parse(&written.host, port).is_err();
            if is_local {
                let why = format!("`{}` is an address of the proxy itself; proxies do not connect to it", written.host);
                return Err(NotLocated::Invalid(why));
            }
            let found = match known {
                Some(known) => known.backend(&PortRef::Number(port)),
                None => Err(Rejection::absent(Code::ServiceNotFound, ObjectRef::new(kind::SERVICE, of, service))),
            };
            return found.map(|cluster| cluster.backend).map_err(NotLocated::Rejected);
        }
    }
    let outside = OutsideHost::parse(&written.host, port);
    outside.map(Backend::Outside).map_err(|error| NotLocated::Invalid(error.to_string()))
}

/// The namespace of services that name none: that of the Mapping, or of Sesame where the Module says so.
pub(super) fn namespace(work: &Work<'_, '_, impl EmissaryView>) -> Arc<str> {
    match work.defaults.services_of_instance {
        true => (&*work.settings.namespace).into(),
        false => work.object.meta.namespace.clone(),
    }
}

/// The settings of TLS to the service; nothing, and a verdict, where they cannot be used: a service that is to be verified is not
/// trusted without.
fn upstream_context(work: &mut Work<'_, '_, impl EmissaryView>, name: &str) -> Option<Context> {
    let namespace = &work.object.meta.namespace;
    let code = Code::MappingUpstreamTls;
    let (context, is_pending) = context(name, namespace, code, work.view, work.settings, work.problems);
    work.is_pending |= is_pending;
    context
}

/// The settings of TLS to a service that an object of a namespace names in `tls`, and whether a Secret has not been read yet.
pub(crate) fn context(
    name: &str,
    namespace: &str,
    code: Code,
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> (Option<Context>, bool) {
    let found = tls_context::named(name, namespace, view, settings);
    let found = found.map_err(|why| Problem::new(code, "tls", why));
    let Some(context) = problems.parsed(found) else { return (None, false) };
    if context.parameters.as_deref().is_some_and(|parameters| !parameters.alpn.is_empty()) {
        problems.no_effect("tls", "alpn_protocols of a TLSContext has no effect on connections to services");
    }
    let certificate =
        context.secret.as_ref().map_or(Ok(()), |id| secret::certificate(view, &context.namespace, id, settings));
    let ca = tls_context::trusted(&context, view, settings).map_err(|(_, rejection)| rejection);
    let mut is_pending = false;
    for rejection in [certificate, ca].into_iter().filter_map(Result::err) {
        is_pending |= rejection.code == Code::SecretPending;
        problems.rejected("tls", &rejection);
    }
    ((!problems.is_refused()).then_some(context), is_pending)
}

/// The Service and the namespace that a name means.
fn split<'n>(name: &'n str, own: &'n str) -> (&'n str, &'n str) {
    let bare = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    match bare.split_once('.') {
        Some((service, namespace)) if !namespace.contains('.') => (service, namespace),
        Some(_) => (bare, own),
        None => (bare, own),
    }
}

fn is_cluster_name(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// How the endpoints are found; nothing, and a verdict, where that is not known.
fn resolver(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Resolver> {
    let spec = &work.object.spec;
    let balances = work.problems.optional("load_balancer", &spec.load_balancer).is_some();
    let name = work.problems.optional("resolver", &spec.resolver).filter(|name| !name.is_empty());
    let defaults = Arc::clone(&work.defaults);
    let usual = defaults.resolver.as_deref().unwrap_or("kubernetes-service");
    let name = name.map_or(usual, |name| name);
    let (own, namespace) = (&work.object.meta.namespace, &*work.settings.namespace);
    let found = work.view.resolver(own, name).or_else(|| work.view.resolver(namespace, name));
    let found = found.or_else(|| work.settings.cross_namespace.then(|| work.view.any_resolver(name)).flatten());
    let found = found.or(match name {
        "kubernetes-service" => Some(Resolver::Service),
        "endpoint" | "kubernetes-endpoint" => Some(Resolver::Endpoint),
        "consul" | "consul-endpoint" => Some(Resolver::Consul),
        _ => None,
    });
    match found {
        None => {
            work.problems.refuse(Problem::new(
                Code::MappingResolver,
                "resolver",
                format!("resolver {name} is unknown!"),
            ));
            None
        }
        Some(Resolver::Consul) => {
            work.problems.unserved("resolver", "services in Consul are not served yet");
            None
        }
        Some(Resolver::Service) if balances => {
            let why = "No load_balancer setting is allowed with the KubernetesServiceResolver";
            work.problems.refuse(Problem::new(Code::MappingResolver, "load_balancer", why));
            None
        }
        found => found,
    }
}

/// The host of a redirect.
pub(super) fn redirect_host(written: &Written) -> Result<Host, String> {
    Host::parse_or_ipv4(&written.host).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_as_they_are_written() {
        for (text, expected) in [
            ("web", "http web"),
            ("web:8080", "http web 8080"),
            ("http://web.shop", "http web.shop"),
            ("HTTPS://Web.Shop.:8443", "https web.shop 8443"),
            ("https://web/path?x", "https web junk"),
            ("web/", "http web"),
            ("[2001:db8::1]:80", "http 2001:db8::1 80"),
            ("2001:db8::1", "http 2001:db8::1"),
            ("10.0.0.1:80", "http 10.0.0.1 80"),
        ] {
            let shown = parse(text).map(|it| {
                let scheme = if it.is_https { "https" } else { "http" };
                let port = it.port.map_or_else(String::new, |port| format!(" {port}"));
                format!("{scheme} {}{port}{}", it.host, if it.junk { " junk" } else { "" })
            });
            assert_eq!(shown, Ok(expected.to_owned()), "{text}");
        }
        for wrong in ["", "ftp://web", "web:x", "web:0", "web:99999", "http://", ":80", "user@web", "[::1", "[::1]x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_means_a_service_and_a_namespace() {
        for (name, expected) in [
            ("web", ("web", "own")),
            ("web.shop", ("web", "shop")),
            ("web.shop.svc", ("web", "shop")),
            ("web.shop.svc.cluster.local", ("web", "shop")),
            ("a.b.example.com", ("a.b.example.com", "own")),
        ] {
            assert_eq!(split(name, "own"), expected, "{name}");
        }
    }
}

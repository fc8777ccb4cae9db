//! How connections of a TCPMapping with a host are decrypted: as those of a Host of that name, or by a TLSContext that lists it.
//!
//! A TCPMapping uses Hosts and TLSContexts of its own namespace and of Sesame's: with those of another it could show that one's
//! certificate, and have its clients.

use crate::{EmissaryView, Problem, Problems, Settings, host, precedence, secret, tls_context};
use kinds::{
    Meta,
    emissary::{self, TcpMapping},
    kind,
};
use model::{
    Code, Host, ObjectRef,
    tls::{CertificateRef, Termination},
};

/// How connections are decrypted.
#[derive(Default)]
pub(super) struct Decryption {
    /// The certificate and what is asked of clients; nothing where they cannot be decrypted, and are ended.
    pub termination: Option<Termination>,
    /// Whether that depends on a Secret that has not been read yet.
    pub is_pending: bool,
}

pub(super) fn of(
    object: &TcpMapping,
    name: &Host,
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Decryption {
    let own = &object.meta.namespace;
    let is_near =
        |meta: &Meta| settings.cross_namespace || meta.namespace == *own || *meta.namespace == *settings.namespace;
    let text = name.to_string();
    for hostname in around(&text) {
        let hosts = view.hosts_named(&hostname).into_iter().filter(|host| is_near(&host.meta)).collect();
        let Some(found) = oldest(hosts) else { continue };
        let subject = ObjectRef::new(kind::HOST, found.meta.namespace.clone(), found.meta.name.clone());
        let shown = host::tls::shown(&found, name, view, settings, &mut Problems::new(&subject));
        if shown.is_asked {
            if shown.termination.is_none() && !shown.is_pending {
                let why = format!("TLS of {subject} is invalid; see its events");
                problems.refuse(Problem::new(Code::TcpMappingTls, "host", why));
            }
            return Decryption { termination: shown.termination, is_pending: shown.is_pending };
        }
    }
    let contexts = view.tls_contexts_of(&text).into_iter().filter(|context| is_near(&context.meta));
    let Some(context) = contexts.min_by_key(|context| precedence(&context.meta, 0)) else {
        let why =
            format!("No matching TLSContext found, disabling! No Host or TLSContext for {text} has a certificate");
        problems.refuse(Problem::new(Code::TcpMappingTls, "host", why));
        return Decryption::default();
    };
    let subject = ObjectRef::new(kind::TLS_CONTEXT, context.meta.namespace.clone(), context.meta.name.clone());
    let defaults = view.client_defaults();
    let (read, _) = tls_context::read(&context, &subject, defaults.secret_namespacing, settings);
    let usable = read.and_then(|read| Some((read.secret.clone()?, read)));
    let Some((id, read)) = usable else {
        let why = format!("{subject} cannot be used, or has no secret");
        problems.refuse(Problem::new(Code::TcpMappingTls, "host", why));
        return Decryption::default();
    };
    let certificate = secret::certificate(view, &read.namespace, &id, settings);
    let trusted = tls_context::trusted(&read, view, settings).map_err(|(_, rejection)| rejection);
    let mut decryption = Decryption::default();
    for rejection in [certificate, trusted].into_iter().filter_map(Result::err) {
        decryption.is_pending |= rejection.code == Code::SecretPending;
        problems.rejected("host", &rejection);
    }
    if !problems.is_refused() || decryption.is_pending {
        let mut termination = Termination::new(CertificateRef::Secret(id), read.versions);
        termination.clients = read.clients(None);
        termination.parameters.clone_from(&read.parameters);
        decryption.termination = Some(termination);
    }
    decryption
}

/// Whether the Host of exactly this name, if there is one, is of a namespace.
pub(super) fn is_hosts_owner(namespace: &str, name: &Host, view: &mut impl EmissaryView) -> bool {
    oldest(view.hosts_named(&name.to_string())).is_some_and(|host| *host.meta.namespace == *namespace)
}

fn oldest(hosts: Vec<std::sync::Arc<emissary::Host>>) -> Option<std::sync::Arc<emissary::Host>> {
    hosts.into_iter().min_by_key(|host| precedence(&host.meta, 0))
}

/// The hostnames that have a name: itself, the wildcards around it, and every name; the narrowest first.
fn around(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    let mut rest = name.strip_prefix("*.").unwrap_or(name);
    while let Some((_, above)) = rest.split_once('.') {
        names.push(format!("*.{above}"));
        rest = above;
    }
    names.push("*".to_owned());
    names.dedup();
    names
}

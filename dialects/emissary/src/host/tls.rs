//! TLS of a Host: the certificate that its clients are shown, and what is asked of them.

use super::{server_name, written_name};
use crate::{
    EmissaryView, Problem, Problems, Settings, secret,
    tls_context::{self, Context},
};
use kinds::{emissary, kind};
use model::{
    Code, Host, ObjectRef,
    tls::{CertificateRef, Termination},
};
use resolve::Rejection;

/// What clients of a Host are shown.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// How their connections are decrypted, if they can be.
    pub termination: Option<Termination>,
    /// Whether the Host asks for TLS at all.
    pub is_asked: bool,
    /// Whether that depends on a Secret that has not been read yet.
    pub is_pending: bool,
}

/// What clients of a Host are shown.
pub(crate) fn shown(
    object: &emissary::Host,
    host: &Host,
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Shown {
    let spec = &object.spec;
    let is_unreadable = spec.tls_secret.get().is_err() || spec.tls_context.get().is_err() || spec.tls.get().is_err();
    let own = named_secret(object, problems);
    let is_named = problems.optional("tlsContext", &spec.tls_context).is_some();
    let is_inline = problems.optional("tls", &spec.tls).is_some();
    let is_asked = is_named || is_inline || own.is_some() || is_unreadable;
    let mut shown = Shown { is_asked, ..Shown::default() };
    if is_unreadable {
        return shown;
    }
    let was_refused = problems.is_refused();
    let Ok(context) = context(object, view, settings, problems) else { return shown };
    if problems.is_refused() && !was_refused {
        return shown;
    }
    let of_context = context.as_ref().and_then(|context| context.secret.clone());
    let id = match (own, of_context) {
        (Some(own), Some(other)) if own != other => {
            let why =
                format!("Secret info mismatch between Host {} ({own}) and its TLSContext ({other})", object.meta.name);
            problems.add(Problem::new(Code::EmissaryHostTls, "tlsSecret", why));
            return shown;
        }
        (Some(id), _) | (None, Some(id)) => id,
        (None, None) => {
            if shown.is_asked {
                let why = "no certificate is named: write its Secret here, or in `secret` of the TLSContext";
                problems.add(Problem::new(Code::EmissaryHostTls, "tlsSecret", why));
            }
            return shown;
        }
    };
    shown.is_asked = true;
    let user = match &context {
        Some(context) if context.secret.as_ref() == Some(&id) => &*context.namespace,
        _ => &*object.meta.namespace,
    };
    let certificate = match secret::certificate(view, user, &id, settings) {
        Ok(()) => {
            let held = view.certificate(&id);
            let rejection = held.as_deref().and_then(|held| held.as_ref().ok()?.not_for(&id, host));
            rejection.into_iter().for_each(|rejection| problems.report("tlsSecret", &rejection));
            CertificateRef::Secret(id)
        }
        Err(rejection) if rejection.code == Code::SecretPending => {
            problems.report("tlsSecret", &rejection);
            shown.is_pending = true;
            CertificateRef::Secret(id)
        }
        Err(rejection) if settings.self_signed && rejection.code == Code::SecretNotFound => {
            problems.report("tlsSecret", &Rejection { code: Code::CertificateSelfSigned, ..rejection });
            CertificateRef::SelfSigned(host.clone())
        }
        Err(rejection) => {
            problems.report("tlsSecret", &rejection);
            return shown;
        }
    };
    let mut termination = Termination::new(certificate, settings.tls);
    if let Some(context) = &context {
        let field = if is_inline { "tls" } else { "tlsContext" };
        match tls_context::trusted(context, view, settings) {
            Ok(()) => {}
            Err((name, rejection)) => {
                shown.is_pending |= rejection.code == Code::SecretPending;
                problems.report(&format!("{field}.{name}"), &rejection);
                if !shown.is_pending {
                    return shown;
                }
            }
        }
        termination = Termination::new(termination.certificate, context.versions);
        termination.clients = context.clients(view.client_defaults().forward);
        termination.parameters.clone_from(&context.parameters);
    }
    shown.termination = Some(termination);
    shown
}

/// The Secret that the Host itself names.
fn named_secret(object: &emissary::Host, problems: &mut Problems<'_>) -> Option<ObjectRef> {
    let secret = problems.optional("tlsSecret", &object.spec.tls_secret)?;
    let name = secret.name.as_deref().filter(|name| !name.is_empty())?;
    let namespace = secret.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    Some(ObjectRef::new(kind::SECRET, namespace.unwrap_or(&object.meta.namespace), name))
}

/// The settings of TLS: in the Host, of the TLSContext that it names, or of one that is named after it. An error where there are some,
/// and they cannot be used.
fn context(
    object: &emissary::Host,
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Result<Option<Context>, ()> {
    let (spec, namespace) = (&object.spec, &object.meta.namespace);
    let named = problems.optional("tlsContext", &spec.tls_context);
    let inline = problems.optional("tls", &spec.tls);
    let found = match (named, inline) {
        (Some(_), Some(_)) => Err("Cannot specify both tlsContext and tls".to_owned()),
        (None, Some(tls)) => {
            let namespacing = view.client_defaults().secret_namespacing;
            return tls_context::of_host(tls, namespace, namespacing, settings, problems).map(Some).ok_or(());
        }
        (Some(context), None) => {
            report_other_hosts(object, ("tlsContext", &context.name), view, settings, problems);
            tls_context::named(&context.name, namespace, view, settings)
        }
        (None, None) => {
            let implied = format!("{}-context", object.meta.name);
            if view.tls_context(namespace, &implied).is_none() {
                return Ok(None);
            }
            report_other_hosts(object, ("hostname", &implied), view, settings, problems);
            tls_context::named(&implied, namespace, view, settings)
        }
    };
    found.map(Some).map_err(|why| {
        let why = format!("Host {}: {why}", object.meta.name);
        problems.add(Problem::new(Code::EmissaryHostTls, "tlsContext", why));
    })
}

/// Tells of a TLSContext whose `hosts` are others than the Host, which uses it nevertheless, as in Emissary.
fn report_other_hosts(
    object: &emissary::Host,
    (field, context): (&str, &str),
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) {
    let (name, hostname, server_name) = (&*object.meta.name, written_name(object), server_name(object));
    let Some(found) = tls_context::find(context, &object.meta.namespace, view, settings) else { return };
    let hosts = found.spec.hosts.ok().and_then(Option::as_deref).unwrap_or_default();
    let is_own =
        |host: &str| host == name || host.eq_ignore_ascii_case(hostname) || host.eq_ignore_ascii_case(&server_name);
    if !hosts.is_empty() && !hosts.iter().any(|host| is_own(host)) {
        let why = format!(
            "Hosts mismatch between Host {name} and TLSContext {context}, which is used nevertheless: add {hostname} to its `hosts`"
        );
        problems.add(Problem::new(Code::EmissaryHostContext, field, why));
    }
}

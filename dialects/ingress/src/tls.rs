//! The TLS hosts of an Ingress.

use crate::{
    Context,
    budget::{HOSTS, Limit},
};
use kinds::{ingress::Tls, kind};
use model::{
    Code, FieldPath, Host, ListenerId, ObjectRef, Verdict,
    tls::{CertificateRef, Termination, TlsMode},
    translation::{Covers, TlsPiece},
};
use resolve::View;

/// The TLS hosts whose certificate can be used. A Secret that cannot takes the TLS of its hosts only.
pub(crate) fn pieces(context: &mut Context<'_>, view: &mut impl View) -> Vec<TlsPiece> {
    let object = context.object;
    let mut pieces = Vec::new();
    let Some(versions) = context.annotations.tls_versions else { return pieces };
    for (index, entry) in object.spec.tls.good() {
        let field = FieldPath::from("spec.tls").index(index);
        if pieces.len() >= HOSTS {
            context.pass(Limit::Hosts, field);
            break;
        }
        let hosts = hosts(context, entry, &field);
        let shared = certificate(context, view, entry, &field);
        let held = match &shared {
            Shown::Secret(id) => view.certificate(id),
            Shown::SelfSigned | Shown::None => None,
        };
        for (at, host) in hosts {
            if pieces.len() >= HOSTS {
                context.pass(Limit::Hosts, at);
                return pieces;
            }
            let certificate = match &shared {
                Shown::Secret(id) => {
                    let held = held.as_deref().and_then(|held| held.as_ref().ok());
                    let rejection = held.and_then(|held| held.not_for(id, &host));
                    context.verdicts.extend(rejection.map(|rejection| rejection.at(&context.subject, at.clone())));
                    CertificateRef::Secret(id.clone())
                }
                Shown::SelfSigned => CertificateRef::SelfSigned(host.clone()),
                Shown::None => continue,
            };
            pieces.push(TlsPiece {
                listener: ListenerId::https(),
                mode: TlsMode::Http(Termination::new(certificate, versions)),
                fallback: None,
                covers: Covers::default(),
                precedence: context.precedence(index, false),
                origin: context.subject.at(at),
                host,
            });
        }
    }
    pieces
}

fn hosts(context: &mut Context<'_>, entry: &Tls, field: &FieldPath) -> Vec<(FieldPath, Host)> {
    let mut hosts = Vec::new();
    for (index, host) in entry.hosts.good() {
        let field = field.field("hosts").index(index);
        match Host::parse(host) {
            Ok(Host::Any) => {
                context.verdicts.push(Verdict::new(
                    Code::TlsWithoutHost,
                    context.subject.at(field),
                    "the host is empty",
                ));
            }
            Ok(host) => hosts.push((field, host)),
            Err(error) => {
                context.verdicts.push(Verdict::new(Code::IngressHost, context.subject.at(field), error.to_string()));
            }
        }
    }
    if entry.hosts.is_empty() {
        let why = "hosts is empty, so the certificate is not used";
        context.verdicts.push(Verdict::new(Code::TlsWithoutHost, context.subject.at(field.clone()), why));
    }
    hosts
}

/// What clients of an entry's hosts are shown.
enum Shown {
    /// The certificate in this Secret.
    Secret(ObjectRef),
    /// On one's own machine, where the Secret is not there: for each host a certificate of its own.
    SelfSigned,
    /// Nothing, and a verdict.
    None,
}

fn certificate(context: &mut Context<'_>, view: &mut impl View, entry: &Tls, field: &FieldPath) -> Shown {
    let field = field.field("secretName");
    let found = match entry.secret_name.as_deref() {
        None | Some("") => Err(Verdict::new(Code::SecretNotFound, context.subject.at(field), "secretName is missing")),
        Some(name) => {
            let namespace = context.annotations.tls_cert_namespace.clone();
            let id = ObjectRef::new(kind::SECRET, namespace.as_deref().unwrap_or(context.namespace()), name);
            match resolve::certificate(view, context.namespace(), &id) {
                Ok(()) => Ok(id),
                // The hosts that it is for are named all the same: nobody is to take them for given up meanwhile.
                Err(rejection) if rejection.code == Code::SecretPending => {
                    context.is_pending = true;
                    context.verdicts.push(rejection.at(&context.subject, field));
                    Ok(id)
                }
                Err(rejection) => Err(rejection.at(&context.subject, field)),
            }
        }
    };
    match found {
        Ok(id) => Shown::Secret(id),
        Err(verdict) if context.settings.self_signed && verdict.code == Code::SecretNotFound => {
            context.verdicts.push(Verdict { code: Code::CertificateSelfSigned, ..verdict });
            Shown::SelfSigned
        }
        Err(verdict) => {
            context.verdicts.push(verdict);
            Shown::None
        }
    }
}

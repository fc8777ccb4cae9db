//! Settings of TLS: a TLSContext, or those that stand in a Host; towards clients or towards services.
//!
//! In: the fields. Out: a [`Context`] in which every Secret may be used by whoever refers to it, or what is in the way. What asks more
//! of a peer than is served is refused, so that nobody is asked less than an author says; what only chooses between good things is told.

use crate::{EmissaryView, Problem, Problems, Settings, secret};
use kinds::{
    Checked,
    emissary::{
        TlsContext,
        host::HostTls,
        tls_context::{TlsContextSpec, TlsVersion as Word},
    },
    kind,
};
use model::{
    Code, ObjectRef, Translation,
    cluster::LONGEST_SERVER_NAME,
    tls::{
        CIPHER_SUITES, CURVES, TlsParameters, TlsVersion, TlsVersions,
        client_validation::{ClientTrust, ClientValidation, ForwardedDetails, RevocationCheck},
    },
};
use resolve::Rejection;
use std::sync::Arc;

/// Settings of TLS that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The namespace with whose rights its Secrets are used.
    pub namespace: Box<str>,
    /// The Secret with the certificate, if one is named.
    pub secret: Option<ObjectRef>,
    /// The Secret with the CA of the peer, if one is named.
    pub ca: Option<ObjectRef>,
    /// The Secret with the CRLs, if one is named.
    pub crl: Option<ObjectRef>,
    /// Whether a client must have a certificate.
    pub is_required: bool,
    /// The versions that clients may speak.
    pub versions: TlsVersions,
    /// The versions that are spoken with services, if they are named.
    pub upstream_versions: Option<TlsVersions>,
    /// Ciphers, curves and protocols, as far as they are named.
    pub parameters: Option<Arc<TlsParameters>>,
    /// The server name of connections to services.
    pub server_name: Option<Arc<str>>,
}

impl Context {
    /// What is done with client certificates, and what services are told about them: nothing where no CA is named.
    pub fn clients(&self, forward: Option<ForwardedDetails>) -> Option<Arc<ClientValidation>> {
        let ca = self.ca.clone()?.into();
        let crl = self.crl.clone().map(|crls| RevocationCheck { crls, leaf_only: false });
        let trust = ClientTrust::Signed { ca, crl };
        Some(Arc::new(ClientValidation { trust, is_required: self.is_required, forward }))
    }

    /// Ciphers and curves of connections to services. Their protocol follows from what is spoken.
    pub fn upstream_parameters(&self) -> Option<Arc<TlsParameters>> {
        let own = self.parameters.as_deref()?;
        TlsParameters { alpn: Vec::new(), ..own.clone() }.shared()
    }
}

/// The fields, wherever they stand.
struct Written<'a> {
    secret: Option<&'a str>,
    ca_secret: Option<&'a str>,
    crl_secret: Option<&'a str>,
    file: Option<&'static str>,
    cert_required: bool,
    lowest: Option<&'a Word>,
    highest: Option<&'a Word>,
    alpn: Option<&'a str>,
    ciphers: &'a [Box<str>],
    curves: &'a [Box<str>],
    redirect: bool,
    sni: Option<&'a str>,
    namespacing: bool,
}

fn text(value: &Option<Box<str>>) -> Option<&str> {
    value.as_deref().filter(|text| !text.is_empty())
}

impl<'a> Written<'a> {
    fn of_context(spec: &'a TlsContextSpec, namespacing: bool, problems: &mut Problems<'_>) -> Self {
        let mut read = |field: &str, value: &'a Checked<Option<Box<str>>>| {
            problems.optional(field, value).map(|text| &**text).filter(|text| !text.is_empty())
        };
        let (secret, ca_secret) = (read("secret", &spec.secret), read("ca_secret", &spec.ca_secret));
        let (crl_secret, sni) = (read("crl_secret", &spec.crl_secret), read("sni", &spec.sni));
        let alpn = read("alpn_protocols", &spec.alpn_protocols);
        let files = [
            ("cert_chain_file", read("cert_chain_file", &spec.cert_chain_file)),
            ("private_key_file", read("private_key_file", &spec.private_key_file)),
            ("cacert_chain_file", read("cacert_chain_file", &spec.cacert_chain_file)),
        ];
        let _told = problems.optional("hosts", &spec.hosts);
        Self {
            secret,
            ca_secret,
            crl_secret,
            file: files.iter().find(|(_, file)| file.is_some()).map(|(field, _)| *field),
            cert_required: problems.optional("cert_required", &spec.cert_required).copied().unwrap_or_default(),
            lowest: problems.optional("min_tls_version", &spec.min_tls_version),
            highest: problems.optional("max_tls_version", &spec.max_tls_version),
            alpn,
            ciphers: problems.optional("cipher_suites", &spec.cipher_suites).map(|list| &**list).unwrap_or_default(),
            curves: problems.optional("ecdh_curves", &spec.ecdh_curves).map(|list| &**list).unwrap_or_default(),
            redirect: problems.optional("redirect_cleartext_from", &spec.redirect_cleartext_from).is_some(),
            sni,
            namespacing: problems
                .optional("secret_namespacing", &spec.secret_namespacing)
                .copied()
                .unwrap_or(namespacing),
        }
    }

    fn of_host(tls: &'a HostTls, namespacing: bool) -> Self {
        let files = [
            ("tls.cert_chain_file", &tls.cert_chain_file),
            ("tls.private_key_file", &tls.private_key_file),
            ("tls.cacert_chain_file", &tls.cacert_chain_file),
        ];
        Self {
            secret: None,
            ca_secret: text(&tls.ca_secret),
            crl_secret: text(&tls.crl_secret),
            file: files.iter().find(|(_, file)| text(file).is_some()).map(|(field, _)| *field),
            cert_required: tls.cert_required.unwrap_or_default(),
            lowest: tls.min_tls_version.as_ref(),
            highest: tls.max_tls_version.as_ref(),
            alpn: text(&tls.alpn_protocols),
            ciphers: tls.cipher_suites.as_deref().unwrap_or_default(),
            curves: tls.ecdh_curves.as_deref().unwrap_or_default(),
            redirect: tls.redirect_cleartext_from.is_some(),
            sni: text(&tls.sni),
            namespacing,
        }
    }
}

/// The settings in a Host of this namespace.
pub(crate) fn of_host(
    tls: &HostTls,
    namespace: &str,
    namespacing: bool,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Option<Context> {
    if text(&tls.sni).is_some() {
        let why = "it is for connections to services: write a TLSContext, and name it in `tls` of a Mapping";
        problems.no_effect("tls.sni", why);
    }
    context(&Written::of_host(tls, namespacing), "tls.", namespace, settings, problems)
}

/// The settings of a TLSContext; nothing, and what is wrong is told on it, where they cannot be used.
pub fn read<'o>(
    object: &TlsContext,
    subject: &'o ObjectRef,
    namespacing: bool,
    settings: &Settings,
) -> (Option<Context>, Problems<'o>) {
    let mut problems = Problems::new(subject);
    let written = Written::of_context(&object.spec, namespacing, &mut problems);
    let context = context(&written, "", &object.meta.namespace, settings, &mut problems);
    let context = context.filter(|_| !problems.is_refused());
    (context, problems)
}

/// What is told about a TLSContext: it asks for nothing by itself.
pub fn translate(object: &TlsContext, view: &mut impl EmissaryView, settings: &Settings) -> Translation {
    let subject = ObjectRef::new(kind::TLS_CONTEXT, object.meta.namespace.clone(), object.meta.name.clone());
    let namespacing = view.client_defaults().secret_namespacing;
    let (context, mut problems) = read(object, &subject, namespacing, settings);
    if let Some(context) = context {
        secrets(&context, object, view, settings, &mut problems);
    }
    let terminates = object.spec.hosts.ok().and_then(Option::as_deref).is_some_and(|hosts| !hosts.is_empty());
    if terminates && !view.has_hosts() && view.tcp_plan().groups.keys().all(|key| key.host.is_none()) {
        let why = "No Hosts defined, but TLSContexts exist that terminate TLS: write a Host for each name";
        problems.no_effect("hosts", why);
    }
    Translation { verdicts: problems.into_verdicts(), ..Translation::empty(subject.clone()) }
}

/// Tells which of its Secrets cannot be used; whatever uses them is told, too.
fn secrets(
    context: &Context,
    object: &TlsContext,
    view: &mut impl EmissaryView,
    settings: &Settings,
    problems: &mut Problems<'_>,
) {
    let certificate = context.secret.as_ref().map_or(Ok(()), |id| {
        secret::certificate(view, &context.namespace, id, settings).map_err(|rejection| {
            let ObjectRef { namespace, name, .. } = id;
            let what = format!(
                "TLSContext {} found no certificate in secret {name} in namespace {namespace}, ignoring...",
                object.meta.name
            );
            let why = format!("{what} {}", rejection.why).into();
            ("secret", Rejection { why, ..rejection })
        })
    });
    let others = trusted(context, view, settings);
    for (field, rejection) in [certificate, others].into_iter().filter_map(Result::err) {
        if rejection.code != Code::SecretPending {
            problems.report(field, &rejection);
        }
    }
}

fn context(
    written: &Written<'_>,
    prefix: &str,
    namespace: &str,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Option<Context> {
    let at = |name: &str| format!("{prefix}{name}");
    let refuse = |problems: &mut Problems<'_>, name: &str, why: &str| {
        problems.refuse(Problem::new(Code::EmissaryTls, &at(name), why));
    };
    if let Some(field) = written.file {
        let why = "files are not read: write a Secret";
        problems.refuse(Problem::new(Code::EmissaryTls, field, why));
    }
    if written.cert_required && written.ca_secret.is_none() {
        refuse(problems, "cert_required", "client certificates cannot be required without ca_secret");
    }
    if written.crl_secret.is_some() && written.ca_secret.is_none() {
        refuse(problems, "crl_secret", "a CRL has no effect without ca_secret");
    }
    if written.redirect {
        problems.no_effect(&at("redirect_cleartext_from"), "the requestPolicy of a Host redirects");
    }
    let parameters = parameters(written, &at, problems);
    let lowest = version(written.lowest, &at("min_tls_version"), problems);
    let highest = version(written.highest, &at("max_tls_version"), problems);
    if let Some(old) = lowest.filter(|lowest| *lowest < TlsVersion::V1_2) {
        let why = format!("TLS {old} is accepted");
        problems.add(Problem::new(Code::EmissaryOldTls, &at("min_tls_version"), why));
    }
    let versions = within(lowest, highest, settings.tls);
    let is_named = lowest.is_some() || highest.is_some();
    let upstream_versions = is_named.then(|| within(lowest, highest, settings.upstream_tls));
    if versions.is_empty() || upstream_versions.is_some_and(TlsVersions::is_empty) {
        refuse(problems, "max_tls_version", "no version is left that may be spoken");
    }
    if written.sni.is_some_and(|name| name.len() > LONGEST_SERVER_NAME) {
        refuse(problems, "sni", "the server name is too long");
    }
    let secret = |name: Option<&str>| {
        let name = name?;
        Some(match name.rsplit_once('.') {
            Some((name, namespace)) if written.namespacing => ObjectRef::new(kind::SECRET, namespace, name),
            _ => ObjectRef::new(kind::SECRET, namespace, name),
        })
    };
    (!problems.is_refused()).then(|| Context {
        namespace: namespace.into(),
        secret: secret(written.secret),
        ca: secret(written.ca_secret),
        crl: secret(written.crl_secret),
        is_required: written.cert_required,
        versions,
        upstream_versions,
        parameters: parameters.shared(),
        server_name: written.sni.map(Into::into),
    })
}

fn version(word: Option<&Word>, field: &str, problems: &mut Problems<'_>) -> Option<TlsVersion> {
    match word? {
        Word::V1_0 => Some(TlsVersion::V1_0),
        Word::V1_1 => Some(TlsVersion::V1_1),
        Word::V1_2 => Some(TlsVersion::V1_2),
        Word::V1_3 => Some(TlsVersion::V1_3),
        Word::Unknown(word) => {
            let why = format!("must be v1.0, v1.1, v1.2 or v1.3, not `{}`", word.escape_debug());
            problems.refuse(Problem::new(Code::EmissaryTls, field, why));
            None
        }
    }
}

/// The versions that are spoken where the settings allow these. What is below 1.2 must be named; an operator who asks for 1.3 is obeyed.
fn within(lowest: Option<TlsVersion>, highest: Option<TlsVersion>, allowed: TlsVersions) -> TlsVersions {
    let asked = TlsVersions { lowest: lowest.unwrap_or(allowed.lowest), highest: highest.unwrap_or(allowed.highest) };
    let floor = if allowed.lowest <= TlsVersion::V1_2 { TlsVersion::V1_0 } else { allowed.lowest };
    asked.within(TlsVersions { lowest: floor, ..allowed })
}

/// The longest name of an application protocol.
const LONGEST_PROTOCOL: usize = 255;

/// The most application protocols.
const MOST_PROTOCOLS: usize = 16;

/// Ciphers, curves and protocols; what Envoy does not know is refused on its field.
fn parameters(written: &Written<'_>, at: &impl Fn(&str) -> String, problems: &mut Problems<'_>) -> TlsParameters {
    let mut known = |field: &str, names: &[Box<str>], words: &[&str]| {
        let mut found: Vec<Arc<str>> = Vec::new();
        for name in names {
            let name = name.trim();
            if !words.contains(&name) {
                let why = format!("`{}` is unknown; must be one of {}", name.escape_debug(), words.join(", "));
                problems.refuse(Problem::new(Code::EmissaryTls, &at(field), why));
                break;
            }
            if !found.iter().any(|own| **own == *name) {
                found.push(name.into());
            }
        }
        found
    };
    let ciphers = known("cipher_suites", written.ciphers, &CIPHER_SUITES);
    let curves = known("ecdh_curves", written.curves, &CURVES);
    let alpn = written.alpn.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let alpn: Vec<Arc<str>> = alpn.map(Into::into).collect();
    let is_protocol =
        |name: &Arc<str>| name.len() <= LONGEST_PROTOCOL && name.bytes().all(|byte| byte.is_ascii_graphic());
    if alpn.len() > MOST_PROTOCOLS || !alpn.iter().all(is_protocol) {
        let why = format!(
            "must be at most {MOST_PROTOCOLS} names of protocols with commas between them, each of at most {LONGEST_PROTOCOL} printable characters"
        );
        problems.refuse(Problem::new(Code::EmissaryTls, &at("alpn_protocols"), why));
    }
    TlsParameters { ciphers, curves, alpn }
}

/// Whether the CA and the CRLs of a context can be had; the field of the one that cannot.
pub(crate) fn trusted(
    context: &Context,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Result<(), (&'static str, Rejection)> {
    let user = &*context.namespace;
    if let Some(ca) = &context.ca {
        secret::trusted(view, user, ca, settings).map_err(|rejection| ("ca_secret", rejection))?;
    }
    if let Some(crl) = &context.crl {
        secret::revocation_lists(view, user, crl, settings).map_err(|rejection| ("crl_secret", rejection))?;
    }
    Ok(())
}

/// The TLSContext of a name for an object of a namespace: one of its own, or of Sesame's, or of any where the operator trusts them all.
pub(crate) fn find(
    name: &str,
    namespace: &str,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Option<Arc<TlsContext>> {
    let found = view.tls_context(namespace, name).or_else(|| view.tls_context(&settings.namespace, name));
    found.or_else(|| settings.cross_namespace.then(|| view.any_tls_context(name)).flatten())
}

/// The settings of the TLSContext that is [found](find) for a name; nothing, and the reason, where there is none that can be used.
pub(crate) fn named(
    name: &str,
    namespace: &str,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Result<Context, String> {
    let found = find(name, namespace, view, settings);
    let object = found.ok_or_else(|| format!("Specified TLSContext does not exist: {name}"))?;
    let subject = ObjectRef::new(kind::TLS_CONTEXT, object.meta.namespace.clone(), object.meta.name.clone());
    let namespacing = view.client_defaults().secret_namespacing;
    let (context, _) = read(&object, &subject, namespacing, settings);
    context.ok_or_else(|| format!("{subject} is invalid; see its events"))
}

//! Settings of TLS: a TLSContext, or those that stand in a Host; towards clients or towards services.
//!
//! In: the fields. Out: a [`Context`] in which every Secret may be used by whoever refers to it, or what is in the way. What asks more
//! of a peer than is served is refused, so that nobody is asked less than an author says; what only chooses between good things is told.

use crate::{EmissaryView, Problem, Problems, Settings};
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
        TlsVersion, TlsVersions,
        client_validation::{ClientTrust, ClientValidation, ForwardedDetails, RevocationCheck},
    },
};
use resolve::Rejection;
use std::sync::Arc;

/// Settings of TLS that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The Secret with the certificate, if one is named.
    pub secret: Option<ObjectRef>,
    /// The Secret with the CA of the peer, if one is named.
    pub ca: Option<ObjectRef>,
    /// The Secret with the CRLs, if one is named.
    pub crl: Option<ObjectRef>,
    /// Whether a client must have a certificate.
    pub is_required: bool,
    /// The versions.
    pub versions: TlsVersions,
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
    alpn: bool,
    ciphers: bool,
    curves: bool,
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
        let alpn = read("alpn_protocols", &spec.alpn_protocols).is_some();
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
            ciphers: problems.optional("cipher_suites", &spec.cipher_suites).is_some(),
            curves: problems.optional("ecdh_curves", &spec.ecdh_curves).is_some(),
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
            alpn: text(&tls.alpn_protocols).is_some(),
            ciphers: tls.cipher_suites.is_some(),
            curves: tls.ecdh_curves.is_some(),
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
    let (_, problems) = read(object, &subject, namespacing, settings);
    Translation { verdicts: problems.into_verdicts(), ..Translation::empty(subject.clone()) }
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
    let ignored = [
        ("alpn_protocols", written.alpn, "HTTP/2 and HTTP/1.1 are offered"),
        ("cipher_suites", written.ciphers, "the settings of Sesame name the cipher suites"),
        ("ecdh_curves", written.curves, "the settings of Sesame name the curves"),
        ("redirect_cleartext_from", written.redirect, "the requestPolicy of a Host redirects"),
    ];
    for (field, _, why) in ignored.into_iter().filter(|(_, is_set, _)| *is_set) {
        problems.no_effect(&at(field), why);
    }
    let mut version = |field: &str, word: Option<&Word>| match word? {
        Word::V1_2 => Some(TlsVersion::V1_2),
        Word::V1_3 => Some(TlsVersion::V1_3),
        Word::V1_0 | Word::V1_1 => {
            problems.no_effect(&at(field), "TLS below 1.2 is not spoken; the lowest version is that of the settings");
            None
        }
        Word::Unknown(word) => {
            let why = format!("must be v1.0, v1.1, v1.2 or v1.3, not `{}`", word.escape_debug());
            problems.refuse(Problem::new(Code::EmissaryTls, &at(field), why));
            None
        }
    };
    let lowest = version("min_tls_version", written.lowest).unwrap_or(settings.tls.lowest);
    let is_below = matches!(written.highest, Some(Word::V1_0 | Word::V1_1));
    let highest = version("max_tls_version", written.highest).unwrap_or(settings.tls.highest);
    let versions = TlsVersions { lowest, highest }.within(settings.tls);
    if versions.is_empty() || is_below {
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
        secret: secret(written.secret),
        ca: secret(written.ca_secret),
        crl: secret(written.crl_secret),
        is_required: written.cert_required,
        versions,
        server_name: written.sni.map(Into::into),
    })
}

/// Whether a Secret may be used for an object of a namespace: one of its own, of Sesame's, or one that is delegated to it.
pub(crate) fn user<'u>(id: &'u ObjectRef, user: &'u str, settings: &Settings) -> &'u str {
    let is_open = settings.cross_namespace || *id.namespace == *settings.namespace;
    if is_open { &id.namespace } else { user }
}

/// Whether the CA and the CRLs of a context can be had; the field of the one that cannot.
pub(crate) fn trusted(
    context: &Context,
    namespace: &str,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Result<(), (&'static str, Rejection)> {
    if let Some(ca) = &context.ca {
        resolve::trusted(view, user(ca, namespace, settings), ca).map_err(|no| ("ca_secret", no))?;
    }
    if let Some(crl) = &context.crl {
        resolve::revocation_lists(view, user(crl, namespace, settings), crl).map_err(|no| ("crl_secret", no))?;
    }
    Ok(())
}

/// The TLSContext of a name for an object of a namespace: one of its own, or of Sesame's, or of any where the operator trusts them all;
/// nothing, and the reason, where there is none that can be used.
pub(crate) fn named(
    name: &str,
    namespace: &str,
    view: &mut impl EmissaryView,
    settings: &Settings,
) -> Result<Context, String> {
    let found = view.tls_context(namespace, name).or_else(|| view.tls_context(&settings.namespace, name));
    let found = found.or_else(|| settings.cross_namespace.then(|| view.any_tls_context(name)).flatten());
    let object = found.ok_or_else(|| format!("Specified TLSContext does not exist: {name}"))?;
    let subject = ObjectRef::new(kind::TLS_CONTEXT, object.meta.namespace.clone(), object.meta.name.clone());
    let namespacing = view.client_defaults().secret_namespacing;
    let (context, _) = read(&object, &subject, namespacing, settings);
    context.ok_or_else(|| format!("{subject} cannot be used; its events say why"))
}

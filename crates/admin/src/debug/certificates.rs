//! `/debug/certificates`: the certificates of the xDS server, those of hosts as proxies are sent them, and the objects whose Secrets
//! cannot be used; no keys.
//!
//! In: the files of the xDS server, the secrets in the snapshots of fleets, and verdicts. Out: names and expiry of each certificate,
//! those that expire first at the top, and what is missing. All secrets are parsed to find them, so it is done on a thread of its own, for few at once.

use super::{
    Views,
    verdicts::{self, View},
};
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use envoy_api::{
    Message,
    envoy::{
        config::core::v3::data_source::Specifier,
        extensions::transport_sockets::tls::v3::{Secret, secret},
    },
};
use model::Code;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, LazyLock},
};
use tokio::sync::Semaphore;
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};
use xds::{Kind, TlsFiles};

/// How many pages may be made at once.
static PAGES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));
/// How many certificates are listed: those that expire first.
const MOST: usize = 5_000;
/// How many names of a certificate, and how many resources that have it.
const MOST_NAMES: usize = 20;
/// A file of certificates that is larger is not read.
const MOST_BYTES: u64 = 4 << 20;

#[derive(Serialize)]
struct Page {
    xds: Vec<FileView>,
    host_count: usize,
    hosts: Vec<HostView>,
    missing_count: usize,
    /// What is said about Secrets that cannot be used: nothing is sent for these.
    missing: Vec<View>,
}

/// A certificate of the xDS server.
#[derive(Serialize)]
struct FileView {
    certificate: &'static str,
    file: String,
    #[serde(flatten)]
    about: Option<About>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A certificate that proxies are sent.
#[derive(Serialize)]
struct HostView {
    /// The Secrets or hosts by which proxies ask for it.
    resources: BTreeSet<Arc<str>>,
    #[serde(flatten)]
    about: About,
}

/// What a certificate says.
#[derive(Clone, Serialize)]
struct About {
    names: Vec<String>,
    issuer: String,
    /// In seconds since the epoch.
    not_before: i64,
    not_after: i64,
}

pub(super) async fn show(State(views): State<Arc<Views>>) -> Response {
    let Ok(permit) = PAGES.clone().try_acquire_owned() else {
        return (StatusCode::TOO_MANY_REQUESTS, "other pages are being made; try again\n").into_response();
    };
    let made = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut hosts = hosts(&views);
        hosts.sort_by(|a, b| (a.about.not_after, &a.resources).cmp(&(b.about.not_after, &b.resources)));
        let host_count = hosts.len();
        hosts.truncate(MOST);
        let mut missing = missing(&views);
        let missing_count = missing.len();
        missing.truncate(MOST);
        let xds = views.replica.xds_files.as_ref().map(files).unwrap_or_default();
        Page { xds, host_count, hosts, missing_count, missing }
    });
    match made.await {
        Ok(page) => Json(page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// The codes of Secrets without which a host has no TLS.
const UNUSABLE: [Code; 11] = [
    Code::SecretNotFound,
    Code::SecretType,
    Code::SecretKeyMissing,
    Code::CertificateNotPem,
    Code::PrivateKeyNotPem,
    Code::KeyMismatch,
    Code::KeyTooWeak,
    Code::CertificateNoName,
    Code::SecretNotReadable,
    Code::SecretPending,
    Code::CertificateNotServed,
];

/// What is said about Secrets that cannot be used.
fn missing(views: &Views) -> Vec<View> {
    let all = views.board.0.verdicts.load_full();
    let of_secrets = all.iter().flat_map(|(_, verdicts)| verdicts.iter());
    of_secrets.filter(|verdict| UNUSABLE.contains(&verdict.code)).map(verdicts::view).collect()
}

/// The files of the xDS server. The key is not read.
fn files(files: &TlsFiles) -> Vec<FileView> {
    [("ca", &files.ca), ("server", &files.certificate)].map(|(certificate, path)| file(certificate, path)).into()
}

fn file(certificate: &'static str, path: &Path) -> FileView {
    let read = || {
        let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
        if size > MOST_BYTES {
            return Err(format!("the file has {size} bytes"));
        }
        let pem = std::fs::read(path).map_err(|error| error.to_string())?;
        // Of several authorities, the one that holds longest counts: during a rotation the old one may end.
        let mut all = certificates(&pem).filter_map(|der| about(&der));
        let found = if certificate == "ca" { all.max_by_key(|about| about.not_after) } else { all.next() };
        found.ok_or_else(|| "there is no certificate in it".to_owned())
    };
    let (about, error) = match read() {
        Ok(about) => (Some(about), None),
        Err(error) => (None, Some(error)),
    };
    FileView { certificate, file: path.display().to_string(), about, error }
}

/// The leaf certificates that fleets are sent; one that is sent under several names is listed once.
fn hosts(views: &Views) -> Vec<HostView> {
    let mut found: BTreeMap<Vec<u8>, HostView> = BTreeMap::new();
    for (_, acks) in views.server.all_acks() {
        let Some(snapshot) = acks.snapshot() else { continue };
        for entry in snapshot.table(Kind::Secret).iter() {
            let Ok(Secret { r#type: Some(secret::Type::TlsCertificate(pair)), .. }) =
                Secret::decode(entry.body.clone())
            else {
                continue;
            };
            let Some(chain) = pair.certificate_chain.and_then(|source| source.specifier) else { continue };
            let pem = match chain {
                Specifier::InlineBytes(bytes) => bytes,
                Specifier::InlineString(text) => text.into_bytes(),
                Specifier::Filename(_) | Specifier::EnvironmentVariable(_) => continue,
            };
            let Some(leaf) = certificates(&pem).next() else { continue };
            let Some(about) = about(&leaf) else { continue };
            let view = found.entry(leaf.to_vec()).or_insert_with(|| HostView { resources: BTreeSet::new(), about });
            if view.resources.len() < MOST_NAMES {
                view.resources.insert(entry.name.clone());
            }
        }
    }
    found.into_values().collect()
}

fn certificates(pem: &[u8]) -> impl Iterator<Item = CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem).filter_map(Result::ok)
}

fn about(der: &CertificateDer<'_>) -> Option<About> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let names = alternatives.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) => Some((*name).to_owned()),
        _ => None,
    });
    let mut names: Vec<String> = names.take(MOST_NAMES).collect();
    if names.is_empty() {
        names.push(certificate.subject().to_string());
    }
    let validity = certificate.validity();
    Some(About {
        names,
        issuer: certificate.issuer().to_string(),
        not_before: validity.not_before.timestamp(),
        not_after: validity.not_after.timestamp(),
    })
}

//! The annotations of an Ingress: what holds for all its paths.
//!
//! An annotation that protects and cannot be read fails closed: a redirect to HTTPS that is not `true` or `false`
//! redirects, a lowest TLS version that is none is the highest one. The rest keeps its default. All are told.

use crate::Settings;
use kinds::{Fault, Meta, suggest};
use model::{
    Code, FieldPath, ObjectRef, Timeout, Verdict, VerdictList,
    route::{RetryPolicy, action::RetryOn},
    timeout::TimeoutError,
    tls::{TlsVersion, TlsVersions},
};
use resolve::annotation::{self, Found};
use std::collections::BTreeSet;

/// Sends clients of HTTP to HTTPS.
pub const FORCE_HTTPS: &str = "ingress.kubernetes.io/force-ssl-redirect";
/// Whether the paths are served over HTTP at all.
pub const ALLOW_HTTP: &str = "kubernetes.io/ingress.allow-http";

/// The annotations under our prefix and Contour's, without it.
const KNOWN: [&str; 10] = [
    "ingress.class",
    "num-retries",
    "per-try-timeout",
    "request-timeout",
    "response-timeout",
    "retry-on",
    "tls-cert-namespace",
    "tls-maximum-protocol-version",
    "tls-minimum-protocol-version",
    "websocket-routes",
];

/// What holds for all paths of an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// Clients of HTTP are sent to HTTPS.
    pub force_https: bool,
    /// The paths are served over HTTP.
    pub allow_http: bool,
    /// How long an answer may take.
    pub response_timeout: Timeout,
    /// Whether requests are tried again.
    pub retry: Option<RetryPolicy>,
    /// The TLS versions; nothing if none is left.
    pub tls_versions: Option<TlsVersions>,
    /// The namespace of the Secrets, if it is another one.
    pub tls_cert_namespace: Option<Box<str>>,
    /// The paths that may become WebSockets.
    pub websocket_paths: BTreeSet<Box<str>>,
}

impl Annotations {
    /// Reads them.
    pub fn read(meta: &Meta, subject: &ObjectRef, settings: &Settings, verdicts: &mut VerdictList) -> Self {
        let mut reader = Reader { meta, subject, verdicts };
        reader.report_unknown();
        Self {
            force_https: reader.flag(FORCE_HTTPS, Flag { absent: false, unreadable: true }),
            allow_http: reader.flag(ALLOW_HTTP, Flag { absent: true, unreadable: false }),
            response_timeout: reader
                .timeout("response-timeout")
                .or_else(|| reader.timeout("request-timeout"))
                .unwrap_or_default(),
            retry: retry_policy(&mut reader),
            tls_versions: reader.tls_versions(settings.tls),
            tls_cert_namespace: reader.get("tls-cert-namespace").map(|found| found.value.into()),
            websocket_paths: reader.get("websocket-routes").map_or_else(BTreeSet::new, |found| {
                found.value.split(',').map(str::trim).filter(|path| !path.is_empty()).map(Into::into).collect()
            }),
        }
    }
}

/// What a flag is that says neither yes nor no.
struct Flag {
    absent: bool,
    unreadable: bool,
}

/// One object's annotations, and where findings about them go.
struct Reader<'a> {
    meta: &'a Meta,
    subject: &'a ObjectRef,
    verdicts: &'a mut VerdictList,
}

impl<'a> Reader<'a> {
    /// An annotation under our prefix or Contour's.
    fn get(&mut self, name: &str) -> Option<Found<'a>> {
        annotation::get(self.meta, name).unwrap_or_else(|fault| {
            self.fault(fault);
            None
        })
    }

    fn fault(&mut self, fault: &Fault) {
        let origin = self.subject.at(&*fault.path);
        self.verdicts.push(Verdict::new(Code::AnnotationValue, origin, fault.why.clone()));
    }

    fn wrong(&mut self, name: &str, why: String) {
        self.report(Code::AnnotationValue, name, why);
    }

    fn report(&mut self, code: Code, name: &str, why: String) {
        self.verdicts.push(Verdict::new(code, self.subject.at(FieldPath::annotation(name)), why));
    }

    /// A flag by its whole name.
    fn flag(&mut self, name: &str, otherwise: Flag) -> bool {
        match self.meta.annotations.get(name) {
            Ok(None) => otherwise.absent,
            Ok(Some(value)) => match &**value {
                "true" | "True" | "TRUE" => true,
                "false" | "False" | "FALSE" => false,
                other => {
                    self.wrong(name, format!("must be `true` or `false`, not `{other}`"));
                    otherwise.unreadable
                }
            },
            Err(fault) => {
                self.fault(fault);
                otherwise.unreadable
            }
        }
    }

    fn timeout(&mut self, name: &str) -> Option<Timeout> {
        let found = self.get(name)?;
        match Timeout::parse(found.value).map_err(TimeoutError::shortened) {
            Ok(timeout) => Some(timeout),
            Err(Ok((longest, why))) => {
                self.report(Code::DurationTooLong, &found.name, why);
                Some(Timeout::After(longest))
            }
            Err(Err(error)) => {
                self.wrong(&found.name, error.to_string());
                None
            }
        }
    }

    fn tls_versions(&mut self, allowed: TlsVersions) -> Option<TlsVersions> {
        let lowest = self.tls_version("tls-minimum-protocol-version").unwrap_or(allowed.lowest);
        let highest = self.tls_version("tls-maximum-protocol-version").unwrap_or(allowed.highest);
        let versions = TlsVersions { lowest, highest }.within(allowed);
        if versions.is_empty() {
            let TlsVersions { lowest, highest } = versions;
            let why = format!("the minimum version {lowest} is above the maximum version {highest}");
            self.verdicts.push(Verdict::new(Code::TlsVersions, self.subject.at("metadata.annotations"), why));
            return None;
        }
        Some(versions)
    }

    /// A version that cannot be read counts as the highest: stricter than was asked for, never laxer.
    fn tls_version(&mut self, name: &str) -> Option<TlsVersion> {
        let found = self.get(name)?;
        Some(TlsVersion::parse(found.value).unwrap_or_else(|| {
            self.wrong(&found.name, format!("must be `1.2` or `1.3`, not `{}`", found.value));
            TlsVersion::V1_3
        }))
    }

    /// Names under our prefixes that nobody knows.
    fn report_unknown(&mut self) {
        for (name, _) in self.meta.annotations.iter() {
            let rest = annotation::PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
            if rest.is_some_and(|rest| !KNOWN.contains(&rest)) {
                let origin = self.subject.at(FieldPath::annotation(name));
                let meant = rest.and_then(|rest| suggest::nearest(rest, KNOWN.into_iter()));
                let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
                let why = format!("`{name}` has no effect on an Ingress{meant}");
                self.verdicts.push(Verdict::new(Code::AnnotationUnknown, origin, why));
            }
        }
    }
}

/// The policy, where `retry-on` asks for one. `num-retries` of -1 means none; 0, as when it is absent, means one.
fn retry_policy(reader: &mut Reader<'_>) -> Option<RetryPolicy> {
    let found = reader.get("retry-on")?;
    let mut on = Vec::new();
    for word in found.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match RetryOn::ALL.iter().find(|on| on.word() == word) {
            Some(&known) => on.push(known),
            None => reader.wrong(&found.name, format!("unknown retry condition `{word}`")),
        }
    }
    let count = retry_count(reader);
    let per_try = reader.timeout("per-try-timeout").unwrap_or_default();
    if on.is_empty() {
        return None;
    }
    on.sort_unstable();
    on.dedup();
    Some(RetryPolicy { on, count, per_try, status_codes: Vec::new(), backoff: None })
}

fn retry_count(reader: &mut Reader<'_>) -> u32 {
    let Some(found) = reader.get("num-retries") else { return 1 };
    match found.value.trim().parse::<i64>() {
        Ok(-1) => 0,
        Ok(0) => 1,
        Ok(count) if (1..=i64::from(u32::MAX)).contains(&count) => u32::try_from(count).unwrap_or(u32::MAX),
        _ => {
            reader.wrong(&found.name, format!("must be -1 or more, not `{}`", found.value));
            1
        }
    }
}

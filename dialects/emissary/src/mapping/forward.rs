//! How requests are forwarded: timeouts, retries, rewrites, upgrades.

use super::{Work, redirect, service, upstream};
use crate::{EmissaryView, Problem, Problems, duration};
use kinds::{
    Checked,
    emissary::mapping::{MappingSpec, RetryPolicy as Written, policy::RetryOn as Word},
};
use model::{
    Code, HeaderValue, Timeout,
    route::{
        Forward, HostRewrite, PathReplacement, PathRewrite, RetryPolicy, Upgrade, WeightedCluster, action::RetryOn,
    },
};
use std::{sync::Arc, time::Duration};

/// The timeout of a response where nothing is said.
const TIMEOUT: Duration = Duration::from_millis(3000);

/// The most retries: what one request may cost a backend.
const MOST_RETRIES: i64 = 100;

/// Reads how requests are forwarded; nothing, and a verdict, where they cannot be.
pub(super) fn read(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<Forward> {
    let MappingSpec { timeout_ms, idle_timeout_ms, retry_policy, priority, .. } = &work.object.spec;
    let defaults = Arc::clone(&work.defaults);
    let usual = defaults.timeout.unwrap_or(Timeout::After(TIMEOUT));
    let timeout = milliseconds(work.problems, "timeout_ms", timeout_ms).map(|found| found.unwrap_or(usual));
    let idle = milliseconds(work.problems, "idle_timeout_ms", idle_timeout_ms).map(Option::unwrap_or_default);
    let written = work.problems.optional("retry_policy", retry_policy);
    let retry = match written {
        Some(written) => retry(work.problems, written),
        None => defaults.retry.clone(),
    };
    let rewrite = rewrite(work);
    let (websocket, upgrades) = upgrades(work);
    let high_priority = match work.problems.optional("priority", priority).map(|word| word.to_ascii_lowercase()) {
        None => false,
        Some(word) => match &*word {
            "default" | "" => false,
            "high" => true,
            other => {
                let why = format!("must be default or high, not `{}`", other.escape_debug());
                work.problems.refuse(Problem::new(Code::MappingPolicy, "priority", why));
                false
            }
        },
    };
    let target = service::target(work);
    let connections = upstream::read(work, target.as_ref());
    let (target, upstream::Upstream { cluster, hash }) = (target?, connections?);
    let host = host(work, &target.name);
    Some(Forward {
        clusters: vec![WeightedCluster::new(cluster, 1)],
        timeout: timeout?,
        idle: idle?,
        retry: retry.map(Box::new),
        rewrite,
        websocket,
        upgrades,
        high_priority,
        host,
        hash,
        ..Forward::default()
    })
}

/// A time in milliseconds; zero is none at all.
#[allow(clippy::option_option, reason = "nothing where the field cannot be read, or nothing said")]
pub(crate) fn milliseconds(
    problems: &mut Problems<'_>,
    field: &str,
    value: &Checked<Option<i64>>,
) -> Option<Option<Timeout>> {
    duration::milliseconds(problems, Code::MappingPolicy, field, value)
}

/// Which requests are tried again; nothing, and a verdict, where that is not valid.
pub(crate) fn retry(problems: &mut Problems<'_>, written: &Written) -> Option<RetryPolicy> {
    let on = match written.retry_on.as_ref() {
        Some(Word::ServerError) => RetryOn::ServerError,
        Some(Word::GatewayError) => RetryOn::GatewayError,
        Some(Word::ConnectFailure) => RetryOn::ConnectFailure,
        Some(Word::Retriable4xx) => RetryOn::Retriable4xx,
        Some(Word::RefusedStream) => RetryOn::RefusedStream,
        Some(Word::RetriableStatusCodes) => RetryOn::RetriableStatusCodes,
        None | Some(Word::Unknown(_)) => {
            let word = written.retry_on.as_ref().map_or("", Word::as_str);
            let why = format!("unknown condition `{word}`");
            problems.refuse(Problem::new(Code::MappingPolicy, "retry_policy.retry_on", why));
            return None;
        }
    };
    let count = written.num_retries.unwrap_or(1);
    let count = u32::try_from(count).ok().filter(|_| count <= MOST_RETRIES);
    let count = problems.parsed(count.ok_or_else(|| {
        let why = format!("must be from 0 to {MOST_RETRIES}");
        Problem::new(Code::MappingPolicy, "retry_policy.num_retries", why)
    }));
    let per_try = match written.per_try_timeout.as_deref().filter(|text| !text.is_empty()) {
        None => Some(Timeout::Default),
        Some(text) => per_try_timeout(problems, text).map(Timeout::After),
    };
    Some(RetryPolicy { on: vec![on], count: count?, per_try: per_try?, status_codes: Vec::new(), backoff: None })
}

/// The time for one try.
fn per_try_timeout(problems: &mut Problems<'_>, text: &str) -> Option<Duration> {
    const FIELD: &str = "retry_policy.per_try_timeout";
    let found = duration::parse(problems, FIELD, text);
    problems.parsed(found.map_err(|error| Problem::new(Code::MappingPolicy, FIELD, error.to_string())))
}

/// How the path is rewritten: the prefix by `/`, unless something else is said, be it a path or not. An empty text leaves it as it is.
fn rewrite(work: &mut Work<'_, '_, impl EmissaryView>) -> Option<PathRewrite> {
    let MappingSpec { rewrite, regex_rewrite, .. } = &work.object.spec;
    let text = work.problems.optional("rewrite", rewrite);
    if let Some(written) = work.problems.optional("regex_rewrite", regex_rewrite) {
        if text.is_some_and(|text| !matches!(&**text, "" | "/")) {
            let why = "Cannot specify both rewrite and regex_rewrite: using regex_rewrite and ignoring rewrite";
            work.problems.no_effect("rewrite", why);
        }
        return redirect::pattern(work, "regex_rewrite", written).map(PathRewrite::Regex);
    }
    match text.map_or("/", |text| text) {
        "" => None,
        text => {
            let found = PathReplacement::parse(text).map_err(|error| error.to_string());
            let found = found.map_err(|why| Problem::new(Code::MappingRewrite, "rewrite", why));
            work.problems.parsed(found).map(PathRewrite::Prefix)
        }
    }
}

/// The host that the service sees, if it is not that of the request.
fn host(work: &mut Work<'_, '_, impl EmissaryView>, name: &str) -> Option<HostRewrite> {
    let MappingSpec { host_rewrite, auto_host_rewrite, .. } = &work.object.spec;
    let is_auto = work.problems.optional("auto_host_rewrite", auto_host_rewrite).copied().unwrap_or_default();
    let text = work.problems.optional("host_rewrite", host_rewrite).filter(|text| !text.is_empty());
    if is_auto && text.is_some() {
        let why = "Cannot specify both host_rewrite and auto_host_rewrite. Using host_rewrite and ignoring auto_host_rewrite.";
        work.problems.no_effect("auto_host_rewrite", why);
    }
    let text = match (text, is_auto) {
        (Some(text), _) => text,
        (None, true) => name,
        (None, false) => return None,
    };
    let found = HeaderValue::parse(text).map_err(|error| error.to_string());
    work.problems
        .parsed(found.map_err(|why| Problem::new(Code::MappingRewrite, "host_rewrite", why)))
        .map(HostRewrite::Literal)
}

/// Whether a connection may become a WebSocket, and what else it may become.
fn upgrades(work: &mut Work<'_, '_, impl EmissaryView>) -> (bool, Vec<Upgrade>) {
    let MappingSpec { allow_upgrade, use_websocket, .. } = &work.object.spec;
    let mut websocket = work.problems.optional("use_websocket", use_websocket).copied().unwrap_or_default();
    let mut upgrades = Vec::new();
    for word in work.problems.optional("allow_upgrade", allow_upgrade).into_iter().flatten() {
        if word.eq_ignore_ascii_case("websocket") {
            websocket = true;
            continue;
        }
        let found =
            Upgrade::parse(word).map_err(|error| Problem::new(Code::MappingPolicy, "allow_upgrade", error.to_string()));
        upgrades.extend(work.problems.parsed(found));
    }
    upgrades.sort();
    upgrades.dedup();
    (websocket, upgrades)
}

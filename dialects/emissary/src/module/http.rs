//! What the Module says about all requests of a listener.
//!
//! It holds on Listeners with ports of their own. On the port of one of the shared fleet's listeners, which other APIs use as well, the
//! settings of Sesame hold; keys that differ from them are told ([`differing`]).

use super::{access_log, clients, grpc_stats};
use crate::{OwnListener, Problem, Problems, Settings};
use kinds::{
    Checked,
    emissary::module::{ModuleSettings, filters},
};
use model::{
    Code, HeaderValue, ObjectRef, Timeout,
    listener::{
        Gzip, HeadersWithUnderscores, HttpOverrides,
        settings::{GzipLevel, GzipStrategy},
    },
    timeout::LONGEST,
};
use std::{sync::Arc, time::Duration};

/// The most bytes that a request is buffered up to.
const MOST_BUFFERED: u32 = 64 * 1024 * 1024;

/// The most bytes that a connection holds in memory.
const MOST_OF_CONNECTION: u32 = 16 * 1024 * 1024;

/// The most content types that are compressed.
const MOST_TYPES: usize = 64;

/// The longest text of a name or a type.
const LONGEST_TEXT: usize = 256;

fn none() -> HttpOverrides {
    HttpOverrides::default()
}

/// Each key, with what it alone overrides; what is not valid is told, and is not there.
///
/// With some keys proxies believe what clients say about their addresses and certificates, and what protects the hosts of others relies on
/// that: they are taken from a Module that is trusted.
pub fn read(
    module: &ObjectRef,
    written: &ModuleSettings,
    settings: &Settings,
    problems: &mut Problems<'_>,
) -> Vec<(&'static str, HttpOverrides)> {
    let mut all: Vec<(&'static str, HttpOverrides)> = Vec::new();
    let mut flag = |key: &'static str, value: &Checked<Option<bool>>, of: fn(bool) -> HttpOverrides| {
        all.extend(problems.optional(key, value).map(|value| (key, of(*value))));
    };
    flag("merge_slashes", &written.merge_slashes, |is| HttpOverrides { merge_slashes: Some(is), ..none() });
    let key = &written.reject_requests_with_escaped_slashes;
    flag("reject_requests_with_escaped_slashes", key, |is| HttpOverrides {
        reject_escaped_slashes: Some(is),
        ..none()
    });
    flag("strip_matching_host_port", &written.strip_matching_host_port, |is| HttpOverrides {
        strip_matching_port: Some(is),
        ..none()
    });
    flag("preserve_external_request_id", &written.preserve_external_request_id, |is| HttpOverrides {
        keep_request_id: Some(is),
        ..none()
    });
    flag("suppress_envoy_headers", &written.suppress_envoy_headers, |is| HttpOverrides {
        suppress_envoy_headers: Some(is),
        ..none()
    });
    let key = &written.allow_chunked_length;
    flag("allow_chunked_length", key, |is| HttpOverrides { chunked_length: Some(is), ..none() });
    flag("enable_http10", &written.enable_http10, |is| HttpOverrides { http10: Some(is), ..none() });
    flag("proper_case", &written.proper_case, |is| HttpOverrides { title_case: Some(is), ..none() });
    flag("enable_grpc_web", &written.enable_grpc_web, |is| HttpOverrides { grpc_web: Some(is), ..none() });
    flag("enable_grpc_http11_bridge", &written.enable_grpc_http11_bridge, |is| HttpOverrides {
        grpc_http1_bridge: Some(is),
        ..none()
    });
    flag("use_remote_address", &written.use_remote_address, |is| HttpOverrides { believes_peers: Some(!is), ..none() });
    let others = [
        server_name(written, problems).map(|name| ("server_name", HttpOverrides { server_name: Some(name), ..none() })),
        underscores(written, problems)
            .map(|it| ("headers_with_underscores_action", HttpOverrides { underscores: Some(it), ..none() })),
        idle(written, problems)
            .map(|it| ("listener_idle_timeout_ms", HttpOverrides { connection_idle: Some(it), ..none() })),
        number(problems, "max_request_headers_kb", &written.max_request_headers_kb, 1..=8192)
            .map(|it| ("max_request_headers_kb", HttpOverrides { header_kilobytes: Some(it), ..none() })),
        number(problems, "buffer_limit_bytes", &written.buffer_limit_bytes, 1..=MOST_OF_CONNECTION)
            .map(|it| ("buffer_limit_bytes", HttpOverrides { connection_buffer: Some(it), ..none() })),
        buffer(written, problems).map(|it| ("buffer", HttpOverrides { request_buffer: Some(it), ..none() })),
        gzip(written, problems).map(|it| ("gzip", HttpOverrides { gzip: Some(it), ..none() })),
        grpc_stats::read(written, problems).map(|it| ("grpc_stats", HttpOverrides { grpc_stats: Some(it), ..none() })),
        access_log::format(written, problems)
            .map(|(key, it)| (key, HttpOverrides { access_log_format: Some(it), ..none() })),
        access_log::path(written, problems)
            .map(|it| ("envoy_log_path", HttpOverrides { access_log_path: Some(it), ..none() })),
        clients::header(written, problems)
            .map(|it| ("forward_client_cert_details", HttpOverrides { client_cert_header: Some(it), ..none() })),
    ];
    all.extend(others.into_iter().flatten());
    if !settings.trusts(module) {
        let believes = |one: &HttpOverrides| one.believes_peers == Some(true) || one.client_cert_header.is_some();
        for (key, _) in all.extract_if(.., |(_, one)| believes(one)) {
            let why =
                format!("what clients say about themselves is believed from namespace {} alone", settings.namespace);
            problems.add(Problem::new(Code::EmissaryNotServed, key, why));
        }
    }
    all
}

/// All keys together.
pub fn combined(keys: Vec<(&'static str, HttpOverrides)>) -> Option<Arc<HttpOverrides>> {
    let combined = keys.into_iter().map(|(_, one)| one).reduce(|all, one| HttpOverrides {
        server_name: all.server_name.or(one.server_name),
        gzip: all.gzip.or(one.gzip),
        connection_idle: all.connection_idle.or(one.connection_idle),
        connection_buffer: all.connection_buffer.or(one.connection_buffer),
        request_buffer: all.request_buffer.or(one.request_buffer),
        header_kilobytes: all.header_kilobytes.or(one.header_kilobytes),
        merge_slashes: all.merge_slashes.or(one.merge_slashes),
        reject_escaped_slashes: all.reject_escaped_slashes.or(one.reject_escaped_slashes),
        strip_matching_port: all.strip_matching_port.or(one.strip_matching_port),
        keep_request_id: all.keep_request_id.or(one.keep_request_id),
        suppress_envoy_headers: all.suppress_envoy_headers.or(one.suppress_envoy_headers),
        chunked_length: all.chunked_length.or(one.chunked_length),
        http10: all.http10.or(one.http10),
        title_case: all.title_case.or(one.title_case),
        grpc_web: all.grpc_web.or(one.grpc_web),
        grpc_http1_bridge: all.grpc_http1_bridge.or(one.grpc_http1_bridge),
        underscores: all.underscores.or(one.underscores),
        access_log_format: all.access_log_format.or(one.access_log_format),
        access_log_path: all.access_log_path.or(one.access_log_path),
        grpc_stats: all.grpc_stats.or(one.grpc_stats),
        believes_peers: all.believes_peers.or(one.believes_peers),
        client_cert_header: all.client_cert_header.or(one.client_cert_header),
    });
    combined.map(Arc::new)
}

/// The keys that differ from the settings of a shared listener. Escaped slashes are refused by the routes there.
pub fn differing(keys: &[(&'static str, HttpOverrides)], own: &OwnListener) -> Vec<&'static str> {
    let differs = keys.iter().filter(|(_, one)| {
        one.reject_escaped_slashes.is_none()
            && (one.applied(own.http.clone()) != own.http
                || one.connection_buffer.is_some_and(|buffer| buffer != own.buffer))
    });
    differs.map(|(key, _)| *key).collect()
}

pub(super) fn invalid(key: &str, why: impl Into<Box<str>>) -> Problem {
    Problem::new(Code::ModuleValue, key, why)
}

fn number(
    problems: &mut Problems<'_>,
    key: &str,
    value: &Checked<Option<i64>>,
    range: std::ops::RangeInclusive<u32>,
) -> Option<u32> {
    let value = *problems.optional(key, value)?;
    let found = u32::try_from(value).ok().filter(|value| range.contains(value));
    problems.parsed(
        found.ok_or_else(|| invalid(key, format!("must be from {} to {}, not {value}", range.start(), range.end()))),
    )
}

fn server_name(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<Arc<str>> {
    let text = problems.optional("server_name", &written.server_name)?;
    let found = match HeaderValue::parse(text) {
        Ok(_) if text.len() > LONGEST_TEXT => Err(invalid("server_name", "is too long")),
        Ok(_) => Ok(Arc::<str>::from(&**text)),
        Err(error) => Err(invalid("server_name", error.to_string())),
    };
    problems.parsed(found).filter(|name| !name.is_empty())
}

fn underscores(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<HeadersWithUnderscores> {
    let key = "headers_with_underscores_action";
    match problems.optional(key, &written.headers_with_underscores_action)? {
        filters::UnderscoresAction::Allow => Some(HeadersWithUnderscores::Allow),
        filters::UnderscoresAction::RejectRequest => Some(HeadersWithUnderscores::Reject),
        filters::UnderscoresAction::DropHeader => Some(HeadersWithUnderscores::Drop),
        filters::UnderscoresAction::Unknown(word) => {
            let why = format!("must be ALLOW, REJECT_REQUEST or DROP_HEADER, not `{}`", word.escape_debug());
            problems.refuse(invalid(key, format!("{why}; such requests are rejected")));
            Some(HeadersWithUnderscores::Reject)
        }
    }
}

fn idle(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<Timeout> {
    let key = "listener_idle_timeout_ms";
    let value = *problems.optional(key, &written.listener_idle_timeout_ms)?;
    let span = u64::try_from(value).ok().map(Duration::from_millis).filter(|span| *span <= LONGEST);
    let span = problems
        .parsed(span.ok_or_else(|| invalid(key, format!("must be from 0 to a year in milliseconds, not {value}"))))?;
    Some(if span.is_zero() { Timeout::Infinite } else { Timeout::After(span) })
}

fn buffer(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<u32> {
    let buffer = problems.optional("buffer", &written.buffer)?;
    if buffer.max_request_time.is_written() {
        problems.no_effect("buffer.max_request_time", "Envoy has no such setting any more");
    }
    let most = buffer.max_request_bytes;
    let found = most.and_then(|most| u32::try_from(most).ok()).filter(|most| (1..=MOST_BUFFERED).contains(most));
    problems
        .parsed(found.ok_or_else(|| invalid("buffer.max_request_bytes", format!("must be from 1 to {MOST_BUFFERED}"))))
}

fn gzip(written: &ModuleSettings, problems: &mut Problems<'_>) -> Option<Arc<Gzip>> {
    let gzip = problems.optional("gzip", &written.gzip)?;
    let mut number = |name: &str, value: Option<i64>, range: std::ops::RangeInclusive<u32>| {
        let value = value?;
        let found = u32::try_from(value).ok().filter(|value| range.contains(value));
        problems.parsed(found.ok_or_else(|| {
            let why = format!("must be from {} to {}, not {value}", range.start(), range.end());
            invalid(&format!("gzip.{name}"), why)
        }))
    };
    let memory_level = number("memory_level", gzip.memory_level, 1..=9);
    let window_bits = number("window_bits", gzip.window_bits, 9..=15);
    let min_length = number("min_content_length", gzip.min_content_length, 30..=1024 * 1024);
    let mut word = |name: &str, value: Option<&str>, words: &[&str]| {
        let value = value?;
        let found = words.iter().position(|word| word.eq_ignore_ascii_case(value));
        problems.parsed(found.ok_or_else(|| {
            let why = format!("must be one of {}, not `{}`", words.join(", "), value.escape_debug());
            invalid(&format!("gzip.{name}"), why)
        }))
    };
    let level = word("compression_level", gzip.compression_level.as_deref(), &["DEFAULT", "BEST", "SPEED"]);
    let words = ["DEFAULT", "FILTERED", "HUFFMAN", "RLE"];
    let strategy = word("compression_strategy", gzip.compression_strategy.as_deref(), &words);
    let types = gzip.content_type.as_deref().unwrap_or_default();
    let is_type =
        |text: &str| text.len() <= LONGEST_TEXT && text.contains('/') && text.bytes().all(|b| b.is_ascii_graphic());
    let content_types = match types.len() <= MOST_TYPES && types.iter().all(|text| is_type(text)) {
        true => types.iter().map(|text| Arc::from(&**text)).collect(),
        false => {
            let why = format!("must be at most {MOST_TYPES} content types such as text/html");
            problems.refuse(invalid("gzip.content_type", why));
            Vec::new()
        }
    };
    Some(Arc::new(Gzip {
        memory_level,
        level: match level {
            Some(1) => GzipLevel::Best,
            Some(2) => GzipLevel::Speed,
            _ => GzipLevel::Usual,
        },
        strategy: match strategy {
            Some(1) => GzipStrategy::Filtered,
            Some(2) => GzipStrategy::Huffman,
            Some(3) => GzipStrategy::Rle,
            _ => GzipStrategy::Usual,
        },
        window_bits,
        min_length,
        content_types,
        skips_etag: gzip.disable_on_etag_header.unwrap_or_default(),
        hides_accept_encoding: gzip.remove_accept_encoding_header.unwrap_or_default(),
    }))
}

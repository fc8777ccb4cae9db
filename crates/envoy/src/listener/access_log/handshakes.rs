//! The access log of connections that come to no request: no chain is for the server name (response flag NR), or the TLS handshake
//! fails.
//!
//! In: the access log of a listener. Out: what Envoy writes about such a connection, and the token bucket that limits how often it
//! does. Anyone who can connect can cause these lines, with a name of their choice, so a flood of them must not fill the log; every
//! connection is counted by the listener. What was chosen for requests does not fit them, so theirs is one form for all.

use super::{json, text};
use crate::{listener::local_replies, name};
use envoy_api::{
    any,
    envoy::{
        config::{
            accesslog::v3::{
                AccessLog, AccessLogFilter, AndFilter, ExtensionFilter, OrFilter, ResponseFlagFilter, access_log,
                access_log_filter::FilterSpecifier, extension_filter,
            },
            core::v3::ConfigSource,
        },
        extensions::access_loggers::{
            file::v3::{FileAccessLog, file_access_log},
            filters::process_ratelimit::v3::{DynamicTokenBucket, ProcessRateLimitFilter},
        },
        r#type::v3::TokenBucket,
    },
};
use model::listener::{AccessLogFormat, AccessLogLevel};
use std::{num::NonZeroU32, time::Duration};

/// The fields of a line in JSON.
pub(super) const FIELDS: [&str; 9] = [
    "@timestamp",
    "bytes_received",
    "downstream_local_address",
    "downstream_remote_address",
    "downstream_transport_failure_reason",
    "fleet",
    "listener",
    "requested_server_name",
    "response_flags",
];

/// The same as text.
const LINE: &str = concat!(
    "[%START_TIME%] \"TLS handshake\" - %RESPONSE_FLAGS% %BYTES_RECEIVED% 0 %DURATION% - ",
    "\"%DOWNSTREAM_REMOTE_ADDRESS%\" \"%REQUESTED_SERVER_NAME%\" %DOWNSTREAM_TRANSPORT_FAILURE_REASON% ",
    "%METADATA(LISTENER:projectsesame.io:listener)% %METADATA(LISTENER:projectsesame.io:fleet)%\n",
);

/// How many lines a second there may be, if there are any and not all of them.
pub fn limit(log: &model::listener::AccessLog) -> Option<NonZeroU32> {
    log.handshakes_per_second.filter(|_| log.level != AccessLogLevel::Disabled)
}

/// The access log of a TLS listener for these connections.
pub(in crate::listener) fn access_log(log: &model::listener::AccessLog) -> Vec<AccessLog> {
    if log.level == AccessLogLevel::Disabled {
        return Vec::new();
    }
    let format = match &log.format {
        AccessLogFormat::Envoy | AccessLogFormat::Text(_) => text(LINE),
        AccessLogFormat::Json(_) => json(&FIELDS.map(Into::into)),
    };
    let no_chain = FilterSpecifier::ResponseFlagFilter(ResponseFlagFilter { flags: vec!["NR".to_owned()] });
    let failed = local_replies::expression("connection.transport_failure_reason != ''");
    let is_about = FilterSpecifier::OrFilter(OrFilter { filters: [no_chain, failed].map(filter).to_vec() });
    // In this order: a connection that is not written down takes nothing from the bucket.
    let written = match limit(log) {
        Some(limit) => {
            FilterSpecifier::AndFilter(AndFilter { filters: [is_about, limited(limit)].map(filter).to_vec() })
        }
        None => is_about,
    };
    let file = FileAccessLog {
        path: log.path.to_string(),
        access_log_format: Some(file_access_log::AccessLogFormat::LogFormat(format)),
    };
    vec![AccessLog {
        name: "envoy.access_loggers.file".to_owned(),
        filter: Some(filter(written)),
        config_type: Some(access_log::ConfigType::TypedConfig(any(&file))),
    }]
}

/// The bucket: a burst of as many lines as there are in a second.
pub fn token_bucket(per_second: NonZeroU32) -> TokenBucket {
    TokenBucket {
        max_tokens: per_second.get(),
        tokens_per_fill: Some(per_second.get().into()),
        fill_interval: Some(Duration::from_secs(1).into()),
    }
}

/// As long as the bucket has a token. A listener waits for its bucket, however long it takes.
fn limited(per_second: NonZeroU32) -> FilterSpecifier {
    let bucket = DynamicTokenBucket {
        resource_name: name::handshake_log(per_second),
        config_source: Some(ConfigSource {
            initial_fetch_timeout: Some(Duration::ZERO.into()),
            ..name::on_this_stream()
        }),
    };
    let filter = ProcessRateLimitFilter { dynamic_config: Some(bucket) };
    FilterSpecifier::ExtensionFilter(ExtensionFilter {
        name: "envoy.access_loggers.extension_filters.process_ratelimit".to_owned(),
        config_type: Some(extension_filter::ConfigType::TypedConfig(any(&filter))),
    })
}

fn filter(specifier: FilterSpecifier) -> AccessLogFilter {
    AccessLogFilter { filter_specifier: Some(specifier) }
}

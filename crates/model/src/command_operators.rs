//! Envoy's command operators (`%PROTOCOL%`, `%REQ(X-A):7%`), as far as anything here lets people write them: Envoy refuses a whole listener or
//! route table because of one that it does not know.
//!
//! In: what stands between two `%`. Out: whether it is an operator that values of headers, or lines of the access log, may have. How text
//! around operators is read is up to them: [`crate::header`], [`crate::listener::access_log_format`].

/// Operators without an argument that values of headers may have.
const IN_HEADERS: [&str; 26] = [
    "DOWNSTREAM_LOCAL_ADDRESS",
    "DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_LOCAL_PORT",
    "DOWNSTREAM_LOCAL_SUBJECT",
    "DOWNSTREAM_LOCAL_URI_SAN",
    "DOWNSTREAM_PEER_CERT",
    "DOWNSTREAM_PEER_CERT_V_END",
    "DOWNSTREAM_PEER_CERT_V_START",
    "DOWNSTREAM_PEER_FINGERPRINT_1",
    "DOWNSTREAM_PEER_FINGERPRINT_256",
    "DOWNSTREAM_PEER_ISSUER",
    "DOWNSTREAM_PEER_SERIAL",
    "DOWNSTREAM_PEER_SUBJECT",
    "DOWNSTREAM_PEER_URI_SAN",
    "DOWNSTREAM_REMOTE_ADDRESS",
    "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_TLS_CIPHER",
    "DOWNSTREAM_TLS_SESSION_ID",
    "DOWNSTREAM_TLS_VERSION",
    "HOSTNAME",
    "PROTOCOL",
    "RESPONSE_CODE_DETAILS",
    "RESPONSE_FLAGS",
    "TLS_JA3_FINGERPRINT",
    "TLS_JA4_FINGERPRINT",
    "UPSTREAM_REMOTE_ADDRESS",
];

/// Those that only lines of the access log may have.
const ONLY_IN_ACCESS_LOGS: [&str; 47] = [
    "BYTES_RECEIVED",
    "BYTES_RETRANSMITTED",
    "BYTES_SENT",
    "CONNECTION_ID",
    "CONNECTION_TERMINATION_DETAILS",
    "DOWNSTREAM_DETECTED_CLOSE_TYPE",
    "DOWNSTREAM_DIRECT_LOCAL_ADDRESS",
    "DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS",
    "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT",
    "DOWNSTREAM_HEADER_BYTES_RECEIVED",
    "DOWNSTREAM_HEADER_BYTES_SENT",
    "DOWNSTREAM_LOCAL_DNS_SAN",
    "DOWNSTREAM_PEER_DNS_SAN",
    "DOWNSTREAM_REMOTE_PORT",
    "DOWNSTREAM_TRANSPORT_FAILURE_REASON",
    "DOWNSTREAM_WIRE_BYTES_RECEIVED",
    "DOWNSTREAM_WIRE_BYTES_SENT",
    "DURATION",
    "FILTER_CHAIN_NAME",
    "GRPC_STATUS",
    "GRPC_STATUS_NUMBER",
    "LOCAL_REPLY_BODY",
    "REQUESTED_SERVER_NAME",
    "REQUEST_DURATION",
    "REQUEST_HEADERS_BYTES",
    "REQUEST_TX_DURATION",
    "RESPONSE_CODE",
    "RESPONSE_DURATION",
    "RESPONSE_FLAGS_LONG",
    "RESPONSE_HEADERS_BYTES",
    "RESPONSE_TRAILERS_BYTES",
    "RESPONSE_TX_DURATION",
    "ROUTE_NAME",
    "ROUNDTRIP_DURATION",
    "START_TIME",
    "STREAM_ID",
    "UPSTREAM_CLUSTER",
    "UPSTREAM_HOST",
    "UPSTREAM_HOST_NAME",
    "UPSTREAM_LOCAL_ADDRESS",
    "UPSTREAM_REQUEST_ATTEMPT_COUNT",
    "UPSTREAM_TLS_CIPHER",
    "UPSTREAM_TLS_VERSION",
    "UPSTREAM_TRANSPORT_FAILURE_REASON",
    "UPSTREAM_WIRE_BYTES_SENT",
    "VIRTUAL_CLUSTER_NAME",
];

/// Whether a value of a header may have an operator without an argument.
pub(crate) fn is_for_headers(word: &str) -> bool {
    IN_HEADERS.contains(&word)
}

/// The operators without an argument that lines of the access log may have.
pub(crate) fn for_logs() -> impl Iterator<Item = &'static str> {
    IN_HEADERS.into_iter().chain(ONLY_IN_ACCESS_LOGS)
}

/// Name, argument and length of an operator with an argument: `NAME(argument)`, `NAME(argument):length`.
pub(crate) fn with_argument(word: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = word.split_once('(')?;
    let (argument, length) = rest.rsplit_once(')')?;
    is_length(length).then_some((name, argument, length))
}

/// Whether an argument names a header, or one and another that stands in for it: `name`, `name?other`.
pub(crate) fn are_headers(argument: &str) -> bool {
    let (first, second) = argument.split_once('?').map_or((argument, None), |(first, second)| (first, Some(second)));
    is_header(first) && second.is_none_or(is_header)
}

fn is_length(text: &str) -> bool {
    let digits = |text: &str| (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.is_empty() || text.strip_prefix(':').is_some_and(digits)
}

fn is_header(name: &str) -> bool {
    let bare = name.strip_prefix(':').unwrap_or(name);
    !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_one_header_or_two() {
        for (word, expected) in [
            ("REQ(a)", Some(("REQ", "a", ""))),
            ("REQ(a?b):12", Some(("REQ", "a?b", ":12"))),
            ("REQ(a):", None),
            ("REQ(a):123456", None),
            ("REQ(a", None),
            ("REQ", None),
        ] {
            assert_eq!(with_argument(word), expected, "{word}");
        }
        for argument in ["a", ":authority", "x_a-b", "a?:path"] {
            assert!(are_headers(argument), "{argument}");
        }
        for argument in ["", ":", "a b", "a?", "?a", "a?b?c", "a)"] {
            assert!(!are_headers(argument), "{argument}");
        }
    }
}

//! Which statistics an Envoy keeps.
//!
//! Every statistic of every cluster costs memory and start-up time, and the default is some hundred per cluster. By
//! default only those that dashboards and alerts for an ingress use are made ([`Stats::Lean`]): at 10,000 clusters that is a
//! quarter of the start-up time. Labels are the built-in ones by name; a regular expression of our own would be run on
//! every name and cost more than all the rest.

use envoy_api::envoy::config::metrics::v3::{StatsConfig, StatsMatcher, TagSpecifier, stats_matcher};
use envoy_api::envoy::r#type::matcher::v3::string_matcher::MatchPattern;
use envoy_api::envoy::r#type::matcher::v3::{ListStringMatcher, StringMatcher};

use super::upstream::{XdsServer, stat_name};

/// Which statistics exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stats {
    /// Those in the lists of this module.
    #[default]
    Lean,
    /// All that Envoy has, with all its labels.
    Full,
}

/// The process as a whole.
const PREFIXES: [&str; 8] = [
    "server.",
    "cluster_manager.",
    "listener_manager.",
    "control_plane.",
    "overload.",
    "runtime.",
    "main_thread.",
    "access_log.",
];

/// When the certificates of the connection to the xDS server expire: by that the server knows which ones an Envoy has. Envoy
/// makes these names in a way that no prefix finds.
fn xds_certificates(server: &XdsServer) -> String {
    format!(".{}.ssl.certificate.", stat_name(server))
}

/// What clients see: of every listener and HTTP or TCP proxy, of the filters that may refuse a request, and of calls of gRPC. Found by what
/// the names contain, because their prefixes also lead to one group of names per route table.
const PARTS: [&str; 7] =
    [".downstream_", ".ext_authz.", ".jwt_authn.", ".ratelimit.", ".http_local_rate_limit.", ".rbac.", ".grpc."];

/// What upstreams do, per cluster that has had a request (such statistics are made when first used; those that every cluster
/// has from the start, such as its number of endpoints, are left out: two for each of 10,000 clusters are 20,000), and the few
/// facts of a listener that tell why a connection failed.
const SUFFIXES: [&str; 23] = [
    ".upstream_rq_total",
    ".upstream_rq_active",
    ".upstream_rq_1xx",
    ".upstream_rq_2xx",
    ".upstream_rq_3xx",
    ".upstream_rq_4xx",
    ".upstream_rq_5xx",
    ".upstream_rq_time",
    ".upstream_rq_timeout",
    ".upstream_rq_retry",
    ".upstream_rq_pending_overflow",
    ".upstream_cx_total",
    ".upstream_cx_active",
    ".upstream_cx_connect_fail",
    ".upstream_cx_connect_timeout",
    ".health_check.failure",
    ".outlier_detection.ejections_active",
    ".no_filter_chain_match",
    ".ssl.handshake",
    ".ssl.connection_error",
    ".ssl.fail_verify_error",
    ".ssl.fail_verify_no_cert",
    ".ssl.fail_verify_san",
];

/// Built-in labels: without them the names of clusters and listeners would stand inside the names of metrics.
const TAGS: [&str; 8] = [
    "envoy.cluster_name",
    "envoy.http_conn_manager_prefix",
    "envoy.response_code_class",
    "envoy.listener_address",
    "envoy.tcp_prefix",
    "envoy.worker_id",
    "envoy.ext_authz_prefix",
    "envoy.local_http_ratelimit_prefix",
];

pub(super) fn config(stats: Stats, server: &XdsServer) -> StatsConfig {
    match stats {
        Stats::Full => StatsConfig::default(),
        Stats::Lean => StatsConfig {
            use_all_default_tags: Some(false.into()),
            stats_tags: TAGS.map(|name| TagSpecifier { tag_name: name.to_owned(), tag_value: None }).into(),
            stats_matcher: Some(StatsMatcher {
                stats_matcher: Some(stats_matcher::StatsMatcher::InclusionList(ListStringMatcher {
                    patterns: patterns(server),
                })),
            }),
            ..Default::default()
        },
    }
}

fn patterns(server: &XdsServer) -> Vec<StringMatcher> {
    let prefixes = PREFIXES.iter().map(|text| MatchPattern::Prefix((*text).to_owned()));
    let parts = PARTS.iter().map(|text| (*text).to_owned()).chain([xds_certificates(server)]);
    let parts = parts.map(MatchPattern::Contains);
    let suffixes = SUFFIXES.iter().map(|text| MatchPattern::Suffix((*text).to_owned()));
    let pattern = |pattern| StringMatcher { match_pattern: Some(pattern), ignore_case: false };
    prefixes.chain(parts).chain(suffixes).map(pattern).collect()
}

//! Fields of a Mapping that have no effect: in any Mapping, in one that redirects, and in one that does not.

use crate::{Problem, Problems};
use kinds::{Checked, emissary::mapping::MappingSpec};
use model::Code;

/// Tells those that have no effect in any Mapping.
pub(super) fn report(spec: &MappingSpec, problems: &mut Problems<'_>) {
    let dead = [("docs", &spec.docs), ("modules", &spec.modules), ("envoy_override", &spec.envoy_override)];
    for (field, value) in dead {
        if problems.optional(field, value).is_some() {
            problems.no_effect(field, "it has no effect in Emissary either");
        }
    }
    if problems.optional("bypass_error_response_overrides", &spec.bypass_error_response_overrides).is_some() {
        problems.no_effect("bypass_error_response_overrides", "responses are not overridden");
    }
    if problems.optional("error_response_overrides", &spec.error_response_overrides).is_some() {
        problems.no_effect("error_response_overrides", "error_response_overrides is not supported, as in Emissary 4");
    }
    if problems.optional("outlier_detection", &spec.outlier_detection).is_some() {
        let why = "outlier_detection is not supported";
        problems.refuse(Problem::new(Code::EmissaryNotServed, "outlier_detection", why));
    }
}

/// Tells those that say how requests are redirected, where they are not.
pub(super) fn report_of_redirects(spec: &MappingSpec, problems: &mut Problems<'_>) {
    let written = [
        ("path_redirect", has_text(&spec.path_redirect)),
        ("prefix_redirect", has_text(&spec.prefix_redirect)),
        ("regex_redirect", is_written(&spec.regex_redirect)),
        ("redirect_response_code", is_written(&spec.redirect_response_code)),
    ];
    report_written(&written, "requests are redirected only with `host_redirect: true` and without `shadow`", problems);
}

/// Tells those that say how requests are forwarded, where they are redirected.
pub(super) fn report_of_forwards(spec: &MappingSpec, problems: &mut Problems<'_>) {
    let has_context = spec.auth_context_extensions.ok().is_none_or(|context| !context.is_empty());
    let written = [
        ("tls", has_text(&spec.tls)),
        ("resolver", has_text(&spec.resolver)),
        ("rewrite", has_text(&spec.rewrite)),
        ("regex_rewrite", is_written(&spec.regex_rewrite)),
        ("host_rewrite", has_text(&spec.host_rewrite)),
        ("auto_host_rewrite", is_written(&spec.auto_host_rewrite)),
        ("timeout_ms", is_written(&spec.timeout_ms)),
        ("idle_timeout_ms", is_written(&spec.idle_timeout_ms)),
        ("connect_timeout_ms", is_written(&spec.connect_timeout_ms)),
        ("cluster_idle_timeout_ms", is_written(&spec.cluster_idle_timeout_ms)),
        ("cluster_max_connection_lifetime_ms", is_written(&spec.cluster_max_connection_lifetime_ms)),
        ("retry_policy", is_written(&spec.retry_policy)),
        ("circuit_breakers", is_written(&spec.circuit_breakers)),
        ("load_balancer", is_written(&spec.load_balancer)),
        ("keepalive", is_written(&spec.keepalive)),
        ("add_request_headers", is_written(&spec.add_request_headers)),
        ("remove_request_headers", is_written(&spec.remove_request_headers)),
        ("add_linkerd_headers", is_written(&spec.add_linkerd_headers)),
        ("grpc", is_written(&spec.grpc)),
        ("allow_upgrade", is_written(&spec.allow_upgrade)),
        ("use_websocket", is_written(&spec.use_websocket)),
        ("bypass_auth", is_written(&spec.bypass_auth)),
        ("auth_context_extensions", has_context),
        ("health_checks", !spec.health_checks.is_empty()),
        ("dns_type", has_text(&spec.dns_type)),
        ("respect_dns_ttl", is_written(&spec.respect_dns_ttl)),
        ("enable_ipv4", is_written(&spec.enable_ipv4)),
        ("enable_ipv6", is_written(&spec.enable_ipv6)),
        ("cluster_tag", has_text(&spec.cluster_tag)),
        ("stats_name", has_text(&spec.stats_name)),
        ("priority", has_text(&spec.priority)),
    ];
    report_written(&written, "requests are redirected: no service and no AuthService sees them", problems);
}

fn report_written(fields: &[(&str, bool)], why: &str, problems: &mut Problems<'_>) {
    fields.iter().filter(|(_, is_written)| *is_written).for_each(|(field, _)| problems.no_effect(field, why));
}

/// Whether a field is written, readable or not.
fn is_written<T>(value: &Checked<Option<T>>) -> bool {
    value.ok().is_none_or(Option::is_some)
}

/// The same, where an empty text is none.
fn has_text(value: &Checked<Option<Box<str>>>) -> bool {
    value.ok().is_none_or(|text| text.as_deref().is_some_and(|text| !text.is_empty()))
}

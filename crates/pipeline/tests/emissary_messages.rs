//! Messages of Emissary that people search their logs and dashboards for: each is told in its words, after a code of Sesame, and a golden
//! case shows it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

/// The words, the code, and the case.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("cannot accept new mapping differs-b with mismatched connect_timeout_ms: 2000 != 1000", "SES9134", "canary"),
    ("resolver mine is unknown!", "SES9132", "services"),
    ("No load_balancer setting is allowed with the KubernetesServiceResolver", "SES9132", "services"),
    ("Total weight of mappings exceeds 100", "SES9134", "canary"),
    ("Total weight of mappings exceeds 100", "SES9221", "tcp-mappings-bad"),
    ("Cannot specify both hostname and host. Using hostname and ignoring host.", "SES9102", "hostnames"),
    (
        "Cannot specify both path_redirect and prefix_redirect. Using path_redirect and ignoring prefix_redirect.",
        "SES9102",
        "rewrites",
    ),
    (
        "Cannot specify both custom_tags and tag_headers. Using custom_tags and ignoring tag_headers.",
        "SES9102",
        "tracing-service",
    ),
    ("Duplicate Host a.example.com; keeping definition from default/a", "SES9120", "bindings"),
    ("Duplicate listener on port 8080; keeping definition from default/http", "SES9110", "unserved"),
    ("Host gone: Specified TLSContext does not exist: nowhere", "SES9122", "tls-contexts"),
    ("Secret info mismatch between Host mismatch", "SES9122", "tls-contexts"),
    ("Hosts mismatch between Host not-listed and TLSContext required", "SES9125", "tls-contexts"),
    ("discarding because it conflicts with", "SES9221", "tcp-mappings-bad"),
    ("No matching TLSContext found, disabling!", "SES9222", "tcp-mappings-bad"),
    ("No active listeners at all; check your Listener and Host configuration", "SES9121", "messages"),
    ("No matching Hosts/TCPMappings found, disabling!", "SES9112", "tcp-mappings-bad"),
    ("No Hosts defined, but TLSContexts exist that terminate TLS", "SES9102", "messages-no-hosts"),
    (
        "TLSContext terminates found no certificate in secret gone in namespace default, ignoring...",
        "SES3101",
        "messages-no-hosts",
    ),
    ("auth canary third can only change service!", "SES9201", "auth-service-grpc"),
];

#[test]
fn messages_of_emissary_stand_after_a_code() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/emissary");
    for (words, code, case) in MESSAGES {
        let text = std::fs::read_to_string(cases.join(format!("{case}.yaml"))).unwrap();
        let is_it = |line: &str| line.contains(code) && line.contains(words);
        assert!(text.lines().any(is_it), "{case} does not show `{words}` after {code}");
    }
}

//! Every golden case: objects in, what Envoy gets, and what a client is answered through a real Envoy.
//!
//! `UPDATE_CASES=1` writes the golden parts anew, `CASES=paths` runs the cases with `paths` in their names.

use pipeline::settings::{Certificates, Packing};
use std::path::Path;

/// The part that is Envoy's minor version before the usual one.
const PREVIOUS: &str = "envoy-previous";
/// What 1.39 warns of: which types of content are compressed it does not know to be told this way, and compresses those that it does by default; and
/// when a listener for UDP is drained it reports a bug of its own, with a stack trace. A field that it does not know and that is not here
/// has to be looked at: it may protect something.
const WARNINGS: [&str; 3] =
    ["Compressor.CommonDirectionConfig", "unexpected call to onListenerDrainStart", "source/common/common/assert.h:"];

fn folder(dialect: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases").join(dialect)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_tables() {
    testbed::cases::run(&folder("ingress"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_scopes() {
    testbed::cases::run(&folder("ingress"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_tables() {
    testbed::cases::run(&folder("httpproxy"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_scopes() {
    testbed::cases::run(&folder("httpproxy"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_in_tables() {
    testbed::cases::run(&folder("gateway"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_in_scopes() {
    testbed::cases::run(&folder("gateway"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissary_in_tables() {
    testbed::cases::run(&folder("emissary"), Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissary_in_scopes() {
    testbed::cases::run(&folder("emissary"), Packing::Scoped).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_tables_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("ingress"), Packing::Plain, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_scopes_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("ingress"), Packing::Scoped, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_tables_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("httpproxy"), Packing::Plain, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_scopes_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("httpproxy"), Packing::Scoped, Certificates::PerChain).await;
}

/// What Gateway API 1.7 has conditions and reasons for, as far as Sesame uses them: "Status" in `docs/gateway-api.md` lists the others,
/// except those that the API deprecates or reserves.
const REASONS: [(&str, &[&str]); 11] = [
    (
        "GatewayClass",
        &[
            "Accepted=True/Accepted",
            "Accepted=False/InvalidParameters",
            "Accepted=Unknown/Pending",
            "SupportedVersion=True/SupportedVersion",
            "SupportedVersion=False/UnsupportedVersion",
        ],
    ),
    (
        "Gateway",
        &[
            "Accepted=True/Accepted",
            "Accepted=True/ListenersNotValid",
            "Accepted=False/Invalid",
            "Accepted=False/InvalidParameters",
            "Accepted=False/ListenersNotValid",
            "Accepted=False/UnsupportedAddress",
            "Accepted=Unknown/Pending",
            "InsecureFrontendValidationMode=True/ConfigurationChanged",
            "Programmed=True/Programmed",
            "Programmed=False/AddressNotAssigned",
            "Programmed=False/AddressNotUsable",
            "Programmed=False/Invalid",
            "Programmed=False/NoResources",
            "Programmed=False/Pending",
            "ResolvedRefs=True/ResolvedRefs",
            "ResolvedRefs=False/InvalidClientCertificateRef",
            "ResolvedRefs=False/ListenersNotResolved",
            "ResolvedRefs=False/RefNotPermitted",
        ],
    ),
    ("Gateway listeners", &REASONS_OF_LISTENERS),
    (
        "ListenerSet",
        &[
            "Accepted=True/Accepted",
            "Accepted=True/ListenersNotValid",
            "Accepted=False/ListenersNotValid",
            "Accepted=False/NotAllowed",
            "Accepted=False/ParentNotAccepted",
            "Accepted=Unknown/Pending",
            "Programmed=True/Programmed",
            "Programmed=False/Invalid",
            "Programmed=False/ListenersNotValid",
            "Programmed=False/NotAllowed",
            "Programmed=Unknown/Pending",
        ],
    ),
    ("ListenerSet listeners", &REASONS_OF_LISTENERS),
    ("HTTPRoute", &REASONS_OF_FILTERED_ROUTES),
    ("GRPCRoute", &REASONS_OF_FILTERED_ROUTES),
    (
        "TLSRoute",
        &[
            "Accepted=True/Accepted",
            "Accepted=False/NoMatchingListenerHostname",
            "Accepted=False/NoMatchingParent",
            "Accepted=False/NotAllowedByListeners",
            "Accepted=False/UnsupportedValue",
            "PartiallyInvalid=True/UnsupportedValue",
            "ResolvedRefs=True/ResolvedRefs",
            "ResolvedRefs=False/BackendNotFound",
            "ResolvedRefs=False/InvalidKind",
            "ResolvedRefs=False/RefNotPermitted",
            "ResolvedRefs=False/UnsupportedProtocol",
        ],
    ),
    ("TCPRoute", &REASONS_OF_PLAIN_ROUTES),
    ("UDPRoute", &REASONS_OF_PLAIN_ROUTES),
    (
        "BackendTLSPolicy",
        &[
            "Accepted=True/Accepted",
            "Accepted=False/Conflicted",
            "Accepted=False/Invalid",
            "Accepted=False/NoValidCACertificate",
            "Accepted=False/TargetNotFound",
            "ResolvedRefs=True/ResolvedRefs",
            "ResolvedRefs=False/InvalidCACertificateRef",
            "ResolvedRefs=False/InvalidKind",
        ],
    ),
];

/// Of routes that have hostnames and filters.
const REASONS_OF_FILTERED_ROUTES: [&str; 12] = [
    "Accepted=True/Accepted",
    "Accepted=False/IncompatibleFilters",
    "Accepted=False/NoMatchingListenerHostname",
    "Accepted=False/NoMatchingParent",
    "Accepted=False/NotAllowedByListeners",
    "Accepted=False/UnsupportedValue",
    "PartiallyInvalid=True/UnsupportedValue",
    "ResolvedRefs=True/ResolvedRefs",
    "ResolvedRefs=False/BackendNotFound",
    "ResolvedRefs=False/InvalidKind",
    "ResolvedRefs=False/RefNotPermitted",
    "ResolvedRefs=False/UnsupportedProtocol",
];

/// Of routes that have neither.
const REASONS_OF_PLAIN_ROUTES: [&str; 10] = [
    "Accepted=True/Accepted",
    "Accepted=False/NoMatchingParent",
    "Accepted=False/NotAllowedByListeners",
    "Accepted=False/UnsupportedValue",
    "PartiallyInvalid=True/UnsupportedValue",
    "ResolvedRefs=True/ResolvedRefs",
    "ResolvedRefs=False/BackendNotFound",
    "ResolvedRefs=False/InvalidKind",
    "ResolvedRefs=False/RefNotPermitted",
    "ResolvedRefs=False/UnsupportedProtocol",
];

/// Of listeners, whether of a Gateway or of a ListenerSet.
const REASONS_OF_LISTENERS: [&str; 24] = [
    "Accepted=True/Accepted",
    "Accepted=False/HostnameConflict",
    "Accepted=False/NoValidCACertificate",
    "Accepted=False/PortUnavailable",
    "Accepted=False/ProtocolConflict",
    "Accepted=False/TooManyListeners",
    "Accepted=False/UnsupportedProtocol",
    "Accepted=False/UnsupportedValue",
    "Conflicted=True/HostnameConflict",
    "Conflicted=True/ProtocolConflict",
    "Conflicted=False/NoConflicts",
    "OverlappingTLSConfig=True/OverlappingCertificates",
    "OverlappingTLSConfig=True/OverlappingHostnames",
    "Programmed=True/Programmed",
    "Programmed=False/HostnameConflict",
    "Programmed=False/Invalid",
    "Programmed=False/Pending",
    "Programmed=False/ProtocolConflict",
    "ResolvedRefs=True/ResolvedRefs",
    "ResolvedRefs=False/InvalidCACertificateKind",
    "ResolvedRefs=False/InvalidCACertificateRef",
    "ResolvedRefs=False/InvalidCertificateRef",
    "ResolvedRefs=False/InvalidRouteKinds",
    "ResolvedRefs=False/RefNotPermitted",
];

/// The cells of the tables in a text, row by row, without their heads.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "))
}

/// The text of a test, which is named by its path, or by its end where there is but one.
fn test_file(dialect: &str, name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let of_dialect = format!("dialects/{dialect}/src/");
    let places = ["", "crates/", "crates/pipeline/tests/", "crates/sesame/tests/", &of_dialect];
    places.iter().find_map(|place| std::fs::read_to_string(root.join(place).join(name)).ok())
}

fn case_file(dialect: &str, name: &str) -> Option<String> {
    std::fs::read_to_string(folder(dialect).join(format!("{name}.yaml"))).ok()
}

fn in_backticks(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// The tables of cases are what readers go by: each row names cases and tests that exist, and each case has a row.
#[test]
fn the_tables_of_cases_name_what_exists() {
    for dialect in ["httpproxy", "gateway", "emissary"] {
        let text = std::fs::read_to_string(folder(dialect).join("ROWS.md")).expect("a table of rows");
        let features = text.split("## Reasons").next().unwrap_or_default();
        let mut named = std::collections::BTreeSet::new();
        for (row, cells) in rows(features).filter(|(row, _)| !row.starts_with("row")) {
            for name in cells.split([',', ';']).map(str::trim) {
                match in_backticks(name) {
                    Some(file) => assert!(test_file(dialect, file).is_some(), "{dialect}: {row}: there is no {file}"),
                    None => {
                        assert!(case_file(dialect, name).is_some(), "{dialect}: {row}: there is no case {name}");
                        named.insert(name.to_owned());
                    }
                }
            }
        }
        for entry in std::fs::read_dir(folder(dialect)).expect("the folder of cases") {
            let file = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            if let Some(name) = file.strip_suffix(".yaml") {
                assert!(named.contains(name), "{dialect}: the case {name} has no row");
            }
        }
    }
}

/// Whether the golden part says this condition (`Type=Status/Reason`) of an object of the kind, or of a listener of one.
fn is_shown(case: &str, subject: &str, condition: &str) -> bool {
    let (kind, of_listener) = match subject.strip_suffix(" listeners") {
        Some(kind) => (kind, true),
        None => (subject, false),
    };
    let status = case.split_once("\nstatus:\n").map_or("", |(_, status)| status);
    let mut is_of_kind = false;
    status.lines().take_while(|line| line.starts_with(' ')).any(|line| match line.strip_prefix("  - ") {
        None => {
            is_of_kind = line.split_whitespace().next() == Some(kind);
            false
        }
        Some(said) => {
            let said = said.trim_matches('"');
            is_of_kind
                && said.starts_with("listeners ") == of_listener
                && said.split_whitespace().any(|one| one == condition)
        }
    })
}

/// A condition is where the table says, with this status and reason, and on an object of this kind; and the table has all of them.
#[test]
fn the_reasons_of_gateway_api_are_shown() {
    let text = std::fs::read_to_string(folder("gateway").join("ROWS.md")).expect("a table of rows");
    let (_, reasons) = text.split_once("## Reasons").expect("a table of reasons");
    let mut shown = std::collections::BTreeSet::new();
    for (what, cell) in rows(reasons).filter(|(what, _)| !what.starts_with("of what")) {
        let (subject, conditions) = what.split_once(": ").expect(what);
        for condition in conditions.split(", ") {
            assert!(condition.contains('=') && condition.contains('/'), "{subject}: {condition} is no condition");
            let found = match in_backticks(cell) {
                Some(file) => test_file("gateway", file).expect(file).contains(condition),
                None => is_shown(&case_file("gateway", cell).expect(cell), subject, condition),
            };
            assert!(found, "{cell} does not show {condition} of {subject}");
            shown.insert((subject, condition));
        }
    }
    let used =
        REASONS.iter().flat_map(|(subject, conditions)| conditions.iter().map(|condition| (*subject, *condition)));
    let absent: Vec<_> = used.filter(|reason| !shown.contains(reason)).collect();
    assert!(absent.is_empty(), "the table has no row for {absent:?}");
}

#[test]
fn a_condition_is_shown_by_its_object_alone() {
    let case = "status:\nverdicts: {}\nstatus:\n  Gateway default/web:\n  - \"Accepted=True/Accepted\"\n  - \"listeners a: Accepted=False/Odd\"\n  \
        HTTPRoute default/a:\n  - \"parents web x: ResolvedRefs=False/InvalidKind\"\nclusters:\n  Gateway a:\n  - \"Accepted=False/None\"\n";
    assert!(is_shown(case, "Gateway", "Accepted=True/Accepted"));
    assert!(is_shown(case, "Gateway listeners", "Accepted=False/Odd"));
    assert!(is_shown(case, "HTTPRoute", "ResolvedRefs=False/InvalidKind"));
    for (subject, condition) in [
        ("Gateway", "Accepted=False/Odd"),
        ("Gateway listeners", "Accepted=True/Accepted"),
        ("HTTPRoute", "Accepted=True/Accepted"),
        ("Gateway", "ResolvedRefs=False/InvalidKind"),
        ("HTTPRoute", "ResolvedRefs=False/Invalid"),
        ("Gateway", "Accepted=False/None"),
    ] {
        assert!(!is_shown(case, subject, condition), "{subject} {condition}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_in_tables_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("gateway"), Packing::Plain, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_in_scopes_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("gateway"), Packing::Scoped, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissary_in_tables_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("emissary"), Packing::Plain, Certificates::PerChain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissary_in_scopes_with_a_chain_for_each_certificate() {
    testbed::cases::run_with(&folder("emissary"), Packing::Scoped, Certificates::PerChain).await;
}

/// Where all certificates come on demand, hosts share no connections. Listeners of Gateways and of Emissary have none on demand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_tables_with_certificates_on_demand() {
    testbed::cases::run_with(&folder("ingress"), Packing::Plain, Certificates::OnDemand).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_in_scopes_with_certificates_on_demand() {
    testbed::cases::run_with(&folder("ingress"), Packing::Scoped, Certificates::OnDemand).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_tables_with_certificates_on_demand() {
    testbed::cases::run_with(&folder("httpproxy"), Packing::Plain, Certificates::OnDemand).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_in_scopes_with_certificates_on_demand() {
    testbed::cases::run_with(&folder("httpproxy"), Packing::Scoped, Certificates::OnDemand).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingress_on_the_previous_envoy() {
    testbed::cases::run_on(PREVIOUS, &WARNINGS, &folder("ingress"), Packing::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn httpproxy_on_the_previous_envoy() {
    testbed::cases::run_on(PREVIOUS, &WARNINGS, &folder("httpproxy"), Packing::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_on_the_previous_envoy() {
    testbed::cases::run_on(PREVIOUS, &WARNINGS, &folder("gateway"), Packing::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissary_on_the_previous_envoy() {
    testbed::cases::run_on(PREVIOUS, &WARNINGS, &folder("emissary"), Packing::default()).await;
}

//! Neutral crates name no dialect's kind, field or reason: what they do holds for any, so that a new dialect changes none of them.
//!
//! In: the [table of kinds](kinds::kind), the reasons in the sources of the dialects, and the sources of the neutral crates. Out: every
//! line that names a kind of a dialect, as manifests, types, constants or files call it, one of its [fields](FIELDS), or a reason
//! of its conditions, in code or in comments. Tests may name any kind as a specimen. Files that have to name some are
//! [listed](EXCEPTIONS) with the reason; an exception that is no longer needed is an error as well.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use kinds::Kind;

/// The crates that name no dialect's kind.
const CRATES: [&str; 8] = ["object-ref", "model", "engine", "assemble", "envoy", "xds", "status", "source"];

/// Fields that only one dialect has, in words that nobody else uses.
const FIELDS: [&str; 41] = [
    // HTTPProxy
    "permitInsecure",
    "tcpproxy",
    "virtualhost",
    "enableFallbackCertificate",
    "ipAllowPolicy",
    "ipDenyPolicy",
    "rateLimitPolicy",
    "pathRewritePolicy",
    "requestHeadersPolicy",
    "responseHeadersPolicy",
    "loadBalancerPolicy",
    "healthCheckPolicy",
    "timeoutPolicy",
    "cookieRewritePolicies",
    "authPolicy",
    "jwtVerificationPolicy",
    // Ingress
    "ingressClassName",
    "pathType",
    "defaultBackend",
    // Gateway API
    "gatewayClassName",
    "parentRefs",
    "backendRefs",
    "certificateRefs",
    "sectionName",
    "allowedRoutes",
    // Emissary; `host_rewrite` and `regex_rewrite` are Envoy's as well
    "ambassador_id",
    "auth_service",
    "add_linkerd_headers",
    "bypass_auth",
    "hostBinding",
    "insecureAction",
    "lua_scripts",
    "mappingSelector",
    "prefix_exact",
    "protocolStack",
    "securityModel",
    "statsPrefix",
    "tlsContext",
    "tlsSecret",
    "acmeProvider",
    "prefix_regex",
];

/// Names that begin as a kind's does and are none: an API as a whole, and a condition of Envoy's retries.
const NO_KINDS: [&str; 2] = ["Gateway API", "GatewayError"];

/// Kinds whose names are words of Envoy, or of everybody: they cannot be told from these.
const COMMON: [&str; 5] = ["Host", "Listener", "Module", "RateLimitService", "TLSContext"];

/// Files that name a dialect's kind, and why.
const EXCEPTIONS: [(&str, &str); 1] =
    [("model/src/code.rs", "the one table of error codes says in words what each is about")];

/// Says which lines name a dialect's kind, field or reason.
pub fn run() -> Result<()> {
    let findings = findings(crate::root())?;
    ensure!(findings.is_empty(), "neutral crates name a dialect's kind, field or reason:\n{}", findings.join("\n"));
    Ok(())
}

fn findings(root: &Path) -> Result<Vec<String>> {
    let crates = &root.join("crates");
    let mut words: Vec<String> = kinds::kind::ALL.iter().copied().filter(is_dialects).flat_map(words).collect();
    words.extend(FIELDS.map(ToOwned::to_owned));
    for file in sources(&root.join("dialects"))? {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        words.extend(reasons(untested(&text)));
    }
    words.sort();
    words.dedup();
    let mut found = Vec::new();
    for name in CRATES {
        for file in sources(&crates.join(name).join("src"))? {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let file = file.strip_prefix(crates).unwrap_or(&file).to_string_lossy().into_owned();
            let lines: Vec<String> =
                lines(&text, &words).map(|(line, word)| format!("  {file}:{line}: {word}")).collect();
            let is_exempt = EXCEPTIONS.iter().any(|(exempt, _)| *exempt == file);
            match (is_exempt, lines.is_empty()) {
                (false, _) => found.extend(lines),
                (true, true) => found.push(format!("  {file}: names none any more: take it off the exceptions")),
                (true, false) => {}
            }
        }
    }
    Ok(found)
}

/// Whether a kind belongs to a dialect and is known by its name, and not to what all of them refer to: Services, endpoints, Secrets,
/// namespaces, CRDs.
fn is_dialects(kind: &Kind) -> bool {
    !["", "discovery.k8s.io", "apiextensions.k8s.io"].contains(&kind.group()) && !COMMON.contains(&kind.name())
}

/// What a kind is called: in manifests (`HTTPProxy`, `httpproxies`), as a type (`HttpProxy`), as a constant (`HTTP_PROXY`), and
/// as a file or variable (`http_proxy`) where that is no word of its own.
fn words(kind: Kind) -> Vec<String> {
    let parts = parts(kind.name());
    let joined = |separator: &str, form: fn(&str) -> String| {
        parts.iter().map(|part| form(part)).collect::<Vec<_>>().join(separator)
    };
    let mut words = vec![
        kind.name().to_owned(),
        kind.plural().to_owned(),
        joined("", |part| part[..1].to_owned() + &part[1..].to_lowercase()),
        joined("_", str::to_uppercase),
    ];
    if parts.len() > 1 {
        words.push(joined("_", str::to_lowercase));
    }
    words.sort();
    words.dedup();
    words
}

/// The parts of a name: `TLSCertificateDelegation` → `TLS`, `Certificate`, `Delegation`.
fn parts(name: &str) -> Vec<&str> {
    let is_upper = |at: usize| name[at..].starts_with(char::is_uppercase);
    let mut starts: Vec<usize> = (1..name.len())
        .filter(|&at| is_upper(at) && (!is_upper(at - 1) || (at + 1 < name.len() && !is_upper(at + 1))))
        .collect();
    starts.insert(0, 0);
    starts.push(name.len());
    starts.windows(2).map(|bounds| &name[bounds[0]..bounds[1]]).collect()
}

/// What a file has before its tests.
fn untested(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// The reasons and types of conditions in a text, with their quotation marks: words of several parts such as `"RefNotPermitted"`.
fn reasons(text: &str) -> impl Iterator<Item = String> {
    let is_reason = |word: &&str| {
        word.chars().all(|c| c.is_ascii_alphabetic()) && word.starts_with(char::is_uppercase) && parts(word).len() > 1
    };
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .filter(is_reason)
        .map(|word| format!("\"{word}\""))
}

/// The lines outside tests that have one of the words, with the word.
fn lines<'t>(text: &'t str, words: &'t [String]) -> impl Iterator<Item = (usize, &'t str)> {
    untested(text).lines().enumerate().filter_map(|(index, line)| {
        let line = NO_KINDS.iter().fold(line.to_owned(), |line, name| line.replace(name, ""));
        Some((index + 1, words.iter().map(String::as_str).find(|word| line.contains(word))?))
    })
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        match path.is_dir() {
            _ if is_test => {}
            true => found.extend(sources(&path)?),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kinds::kind;

    #[test]
    fn neutral_crates_name_no_dialects_kind() {
        let found = findings(crate::root()).expect("the sources can be read");
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    #[test]
    fn a_kind_is_found_by_all_its_names() {
        let names = ["HTTPProxy", "HTTP_PROXY", "HttpProxy", "http_proxy", "httpproxies"];
        assert_eq!(words(kind::CONTOUR_HTTP_PROXY), names);
        assert_eq!(words(kind::INGRESS), ["INGRESS", "Ingress", "ingresses"]);
        assert_eq!(parts("TLSCertificateDelegation"), ["TLS", "Certificate", "Delegation"]);
        assert!(!is_dialects(&kind::SECRET) && is_dialects(&kind::INGRESS_CLASS));
    }

    #[test]
    fn reasons_are_words_of_several_parts() {
        let text =
            "// \"NotThis\"\nconst A: &str = \"RefNotPermitted\";\nf(\"True\", \"two words\", \"NoMatchingParent\");";
        assert_eq!(reasons(text).collect::<Vec<_>>(), ["\"RefNotPermitted\"", "\"NoMatchingParent\""]);
    }

    #[test]
    fn tests_and_the_names_of_listeners_are_passed_over() {
        let text = "let a = ListenerId(\"ingress_http\");\n/// An Ingress.\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n    Ingress\n}\n";
        let words = words(kind::INGRESS);
        assert_eq!(lines(text, &words).collect::<Vec<_>>(), [(2, "Ingress")]);
        let words = super::words(kind::GATEWAY);
        let text = "/// As in Gateway API.\n/// Of a Gateway.\nGatewayError,\n/// A Gateway of Gateway API.\n";
        assert_eq!(lines(text, &words).map(|(line, _)| line).collect::<Vec<_>>(), [2, 4]);
    }
}

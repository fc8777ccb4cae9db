//! Differences that are meant: each is a row of `docs/emissary.md`, "What is different".
//!
//! In: a request of a set, and both sides' answers. Out: the row that explains why they differ, or nothing. A rule that explains too
//! much would hide a bug, so each says as exactly as it can which answers it is about.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::answer::{Answer, Reply};
use crate::set::{ELSEWHERE, Request, Set, are_alike};

/// A request that both sides answered differently.
pub struct Difference<'a> {
    /// Of which set.
    pub set: &'a Set,
    /// Which.
    pub request: &'a Request,
    /// What Emissary's Envoy answered.
    pub emissary: &'a BTreeSet<Answer>,
    /// What Sesame's answered.
    pub sesame: &'a BTreeSet<Answer>,
}

/// A rule.
pub struct Known {
    /// The first column of the row of the page.
    pub row: &'static str,
    explains: fn(&Difference<'_>) -> bool,
}

/// All rules; the first that explains a difference is named.
pub const KNOWN: &[Known] = &[
    Known {
        row: "a Host names a port only if a Mapping's `hostname` does; any other port in the request's Host does not match",
        explains: |it| it.request.has_port(),
    },
    Known {
        row: "host names of requests are compared with case",
        explains: |it| it.request.host.bytes().any(|byte| byte.is_ascii_uppercase()),
    },
    Known {
        row: "`query_parameters` of a Mapping with `host_redirect` are not compared",
        explains: |it| leads_elsewhere(it.emissary) && it.redirects().any(|spec| has(spec, QUERY)),
    },
    Known {
        row: "`add_response_headers` and `remove_response_headers` of a Mapping with `host_redirect` are dropped",
        explains: |it| {
            leads_elsewhere(it.emissary) && it.differs_in_headers() && it.redirects().any(|spec| has(spec, RESPONSE))
        },
    },
    Known {
        row: "a redirect to HTTPS has the `add_response_headers` of the Mapping",
        explains: |it| {
            let is_upgrade = |answer: &Answer| answer.location().is_some_and(|to| to.starts_with("https://"));
            it.differs_in_headers() && it.emissary.iter().all(is_upgrade) && !it.request.is_https
        },
    },
    Known {
        row: "a Host with a `mappingSelector` takes no Mapping with `host_redirect`",
        explains: |it| {
            let is_redirect = |answer: &Answer| answer.location().is_some();
            let is_taken = it.sesame.iter().any(is_redirect) && !leads_elsewhere(it.emissary);
            is_taken && it.has_selectors() && it.redirects().next().is_some()
        },
    },
    Known {
        row: "a Mapping with `host_regex` and `host_redirect` is taken by no Host",
        explains: |it| {
            let is_regex = |spec: &Value| spec["host_regex"] == true;
            leads_elsewhere(it.sesame) && !leads_elsewhere(it.emissary) && it.redirects().any(is_regex)
        },
    },
    Known {
        row: "a Listener that has no Host to serve is not opened",
        explains: |it| {
            let is_closed = it.emissary.iter().all(|answer| *answer == Answer::Closed);
            is_closed && it.sesame.iter().all(|answer| answer.status() == Some(404))
        },
    },
    Known {
        row: "on an INSECURE Listener a wider Host has the requests of a Host that rejects them",
        explains: |it| {
            let is_insecure = |listener: &Value| listener["spec"]["securityModel"] == "INSECURE";
            let rejects = |host: &Value| host["spec"]["requestPolicy"]["insecure"]["action"] == "Reject";
            let is_not_found = it.sesame.iter().all(|answer| answer.status() == Some(404));
            let is_plaintext = !it.request.is_https && it.set.of("Listener").any(is_insecure);
            is_not_found && is_plaintext && it.set.of("Host").any(rejects)
        },
    },
    Known {
        row: "Mappings with a total weight over 100 take precedence in the order of their names",
        explains: |it| {
            let weight = |mapping: &Value| mapping["spec"]["weight"].as_u64().unwrap_or_default();
            it.set
                .of("Mapping")
                .any(|one| it.set.of("Mapping").filter(|other| are_alike(one, other)).map(weight).sum::<u64>() > 100)
        },
    },
    Known {
        row: "Mappings with one `prefix` of which some are exact, patterns or without case are one group",
        explains: |it| it.has_pair(|one, other| FORM.iter().any(|field| one["spec"][field] != other["spec"][field])),
    },
    Known {
        row: "a Host that selects one of the Mappings for the same requests has all of them",
        explains: |it| {
            let labels = |mapping: &Value| mapping["metadata"]["labels"].clone();
            it.has_selectors() && it.has_pair(|one, other| labels(one) != labels(other))
        },
    },
];

const QUERY: &[&str] = &["query_parameters", "regex_query_parameters"];
const RESPONSE: &[&str] = &["add_response_headers", "remove_response_headers"];
/// What says how a path or a value is compared.
const FORM: [&str; 4] = ["prefix_exact", "prefix_regex", "case_sensitive", "method_regex"];

fn has(spec: &Value, fields: &[&str]) -> bool {
    fields.iter().any(|field| !spec[field].is_null())
}

/// Whether an answer is the redirect of a Mapping.
fn leads_elsewhere(answers: &BTreeSet<Answer>) -> bool {
    answers.iter().any(|answer| answer.location().is_some_and(|location| location.contains(ELSEWHERE)))
}

impl Difference<'_> {
    /// The Mappings that redirect.
    fn redirects(&self) -> impl Iterator<Item = &Value> {
        self.set.of("Mapping").map(|mapping| &mapping["spec"]).filter(|spec| spec["host_redirect"] == true)
    }

    /// Whether Hosts select Mappings by their labels.
    fn has_selectors(&self) -> bool {
        self.set.of("Host").any(|host| !host["spec"]["mappingSelector"].is_null())
    }

    /// Whether there are two Mappings for the same requests, in Emissary's eyes, of which this holds.
    fn has_pair(&self, holds: impl Fn(&Value, &Value) -> bool) -> bool {
        let mappings: Vec<&Value> = self.set.of("Mapping").collect();
        mappings.iter().any(|one| mappings.iter().any(|other| are_alike(one, other) && holds(one, other)))
    }

    /// Whether the answers are the same but for the headers that Mappings set in them.
    fn differs_in_headers(&self) -> bool {
        let without = |answers: &BTreeSet<Answer>| -> BTreeSet<Answer> {
            let bare = |answer: &Answer| match answer {
                Answer::Reply(reply) => Answer::Reply(Reply { headers: Vec::new(), ..reply.clone() }),
                Answer::Closed => Answer::Closed,
            };
            answers.iter().map(bare).collect()
        };
        without(self.emissary) == without(self.sesame)
    }
}

/// The rule that explains a difference.
pub fn explanation(difference: &Difference<'_>) -> Option<&'static Known> {
    KNOWN.iter().find(|known| (known.explains)(difference))
}

#[cfg(test)]
mod tests {
    //! A rule without a row of the page explains nothing.

    use super::*;

    #[test]
    fn every_rule_is_a_row_of_the_page() {
        let page = include_str!("../../../docs/emissary.md");
        for known in KNOWN {
            let row = format!("\n| {} |", known.row);
            assert!(page.contains(&row), "no row of docs/emissary.md begins with {:?}", known.row);
        }
    }
}

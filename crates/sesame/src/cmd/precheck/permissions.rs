//! Whether the user may create what the manifests have, and grant what Sesame needs.

use anyhow::Result;
use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};

use super::{Check, CheckResult};
use crate::operate::cluster::refusal;

/// How many questions are asked at once.
const AT_ONCE: usize = 16;

/// What the manifests have: group, resource, whether it is in the namespace of Sesame.
const INSTALLED: [(&str, &str, bool); 16] = [
    ("", "namespaces", false),
    ("apiextensions.k8s.io", "customresourcedefinitions", false),
    ("rbac.authorization.k8s.io", "clusterroles", false),
    ("rbac.authorization.k8s.io", "clusterrolebindings", false),
    ("networking.k8s.io", "ingressclasses", false),
    ("scheduling.k8s.io", "priorityclasses", false),
    ("rbac.authorization.k8s.io", "roles", true),
    ("rbac.authorization.k8s.io", "rolebindings", true),
    ("", "serviceaccounts", true),
    ("", "configmaps", true),
    ("", "services", true),
    ("apps", "deployments", true),
    ("apps", "daemonsets", true),
    ("batch", "jobs", true),
    ("policy", "poddisruptionbudgets", true),
    ("networking.k8s.io", "networkpolicies", true),
];

/// A permission: verb, group, resource with its subresource, namespace.
#[derive(Clone, Debug)]
struct Permission {
    verb: String,
    group: String,
    resource: String,
    namespace: Option<String>,
}

impl Permission {
    fn new(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> Self {
        let text = str::to_owned;
        Self { verb: text(verb), group: text(group), resource: text(resource), namespace: namespace.map(text) }
    }

    fn words(&self) -> String {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        format!("{} {}{group}", self.verb, self.resource)
    }
}

/// Asks about all of them.
pub async fn check(client: &Client, namespace: &str) -> Result<Vec<Check>> {
    let all = Permission::new("*", "*", "*", None);
    if missing(client, vec![all]).await?.is_empty() {
        return Ok(vec![Check::new("permissions", CheckResult::Ok, "the user may do everything")]);
    }
    let installing = INSTALLED.iter().flat_map(|(group, resource, is_namespaced)| {
        let namespace = is_namespaced.then_some(namespace);
        ["create", "patch"].map(|verb| Permission::new(verb, group, resource, namespace))
    });
    let mut checks = Vec::new();
    match words(&missing(client, installing.collect()).await?) {
        None => checks.push(Check::new("permissions", CheckResult::Ok, "the user may create what the manifests have")),
        Some(words) => {
            checks.push(Check::new("permissions", CheckResult::Error, format!("the user may not: {words}")));
        }
    }
    let escalate = Permission::new("escalate", "rbac.authorization.k8s.io", "clusterroles", None);
    if missing(client, vec![escalate]).await?.is_empty() {
        checks.push(Check::new("granting", CheckResult::Ok, "the user may grant any permission (escalate)"));
        return Ok(checks);
    }
    let rules = [rbac::namespaced(), rbac::gateways(), vec![rbac::secrets()], rbac::cluster_scoped()].concat();
    let mut granted = Vec::new();
    for rule in &rules {
        for group in &rule.groups {
            for resource in &rule.resources {
                granted.extend(rule.verbs.iter().map(|verb| Permission::new(verb, group, resource, None)));
            }
        }
    }
    checks.push(match words(&missing(client, granted).await?) {
        None => Check::new("granting", CheckResult::Ok, "the user has every permission that Sesame is granted"),
        Some(words) => {
            let message = format!(
                "the user can grant Sesame only permissions that the user has, and does not have: {words}; or use `sesame rbac --mode namespaces`"
            );
            Check::new("granting", CheckResult::Error, message)
        }
    });
    Ok(checks)
}

/// The first few of them.
fn words(missing: &[Permission]) -> Option<String> {
    const SHOWN: usize = 8;
    let first: Vec<String> = missing.iter().take(SHOWN).map(Permission::words).collect();
    let rest = missing.len().saturating_sub(SHOWN);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    (!missing.is_empty()).then(|| first.join(", ") + &more)
}

/// Those that the user does not have.
async fn missing(client: &Client, permissions: Vec<Permission>) -> Result<Vec<Permission>> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for some in permissions.chunks(AT_ONCE) {
        let asking = some.iter().map(async |permission| {
            let (resource, subresource) = match permission.resource.split_once('/') {
                Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
                None => (permission.resource.as_str(), None),
            };
            let attributes = ResourceAttributes {
                verb: Some(permission.verb.clone()),
                group: Some(permission.group.clone()),
                resource: Some(resource.to_owned()),
                subresource,
                namespace: permission.namespace.clone(),
                ..Default::default()
            };
            let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
            let review = SelfSubjectAccessReview { spec, ..Default::default() };
            reviews.create(&PostParams::default(), &review).await
        });
        for (permission, review) in some.iter().zip(join_all(asking).await) {
            let review = review.map_err(|error| refusal(error, "asking about the permissions of the user"))?;
            if !review.status.is_some_and(|status| status.allowed) {
                missing.push(permission.clone());
            }
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::INSTALLED;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The plural of a kind of the manifests.
    fn plural(kind: &str) -> String {
        let lower = kind.to_ascii_lowercase();
        match lower.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if lower.ends_with("class") => format!("{lower}es"),
            None => format!("{lower}s"),
        }
    }

    #[test]
    fn the_table_has_every_kind_of_the_manifests() {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let known: BTreeSet<&str> = INSTALLED.iter().map(|(_, resource, _)| *resource).collect();
        for form in ["sesame.yaml", "sesame-deployment.yaml", "sesame-gateway.yaml"] {
            let text = std::fs::read_to_string(deploy.join(form)).unwrap();
            for kind in text.lines().filter_map(|line| line.strip_prefix("kind: ")) {
                // GatewayClasses are applied where there are the CRDs of Gateway API.
                let is_known = known.contains(plural(kind).as_str()) || kind == "GatewayClass";
                assert!(is_known, "{form} has a {kind}");
            }
        }
    }
}

//! Whether the CRDs that are there serve the versions that Sesame reads, and who owns the ingress class.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::networking::v1::IngressClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kinds::kind;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::{Check, CheckResult, unread};

/// The release of Gateway API that a CRD of it is of.
const BUNDLE: &str = "gateway.networking.k8s.io/bundle-version";
/// The class of Sesame, and its controller.
const CLASS: &str = "sesame";
const CONTROLLER: &str = "projectsesame.io/ingress-controller";

/// Looks at all of them.
pub async fn check(client: &Client) -> Vec<Check> {
    let mut checks = match Api::<CustomResourceDefinition>::all(client.clone()).list(&ListParams::default()).await {
        Ok(found) => compare(&found.items),
        Err(error) => vec![unread("crds", "listing CRDs", error)],
    };
    checks.push(match Api::<IngressClass>::all(client.clone()).get_opt(CLASS).await {
        Ok(None) => Check::new("class", CheckResult::Ok, format!("there is no IngressClass {CLASS} yet")),
        Ok(Some(class)) => class_of(class),
        Err(error) => unread("class", "reading IngressClasses", error),
    });
    checks
}

fn class_of(class: IngressClass) -> Check {
    match class.spec.and_then(|spec| spec.controller) {
        Some(controller) if controller == CONTROLLER => {
            let message =
                format!("IngressClass {CLASS} is there already, and belongs to Sesame: another installation?");
            Check::new("class", CheckResult::Note, message)
        }
        other => {
            let other = other.unwrap_or_default();
            let message = format!("IngressClass {CLASS} belongs to `{other}`: remove it, or give Sesame another class");
            Check::new("class", CheckResult::Error, message)
        }
    }
}

fn compare(found: &[CustomResourceDefinition]) -> Vec<Check> {
    let by_name: BTreeMap<String, &CustomResourceDefinition> = found.iter().map(|crd| (crd.name_any(), crd)).collect();
    let (mut absent, mut checks) = (BTreeSet::new(), Vec::new());
    let mut releases: BTreeSet<String> = BTreeSet::new();
    let mut present = 0;
    // Kinds that are built in have no CRD.
    let is_built_in =
        |group: &str| !group.contains('.') || group.ends_with(".k8s.io") && group != kind::GATEWAY.group();
    for kind in kind::ALL.iter().filter(|kind| !is_built_in(kind.group())) {
        let name = format!("{}.{}", kind.plural(), kind.group());
        let Some(crd) = by_name.get(&name) else {
            absent.insert(kind.group());
            continue;
        };
        present += 1;
        releases.extend(crd.annotations().get(BUNDLE).cloned());
        let served: Vec<&str> =
            crd.spec.versions.iter().filter(|version| version.served).map(|version| version.name.as_str()).collect();
        if !kind.versions().iter().any(|version| served.contains(version)) {
            let wanted = kind.versions().join(" or ");
            let message = format!("{name} serves {}, and Sesame reads {wanted}: update it", served.join(", "));
            checks.push(Check::new("crds", CheckResult::Error, message));
        }
    }
    if checks.is_empty() {
        checks.push(Check::new(
            "crds",
            CheckResult::Ok,
            format!("{present} CRDs are there, in versions that Sesame reads"),
        ));
    }
    for group in absent.iter().filter(|group| **group != kind::GATEWAY.group()) {
        let message = format!("CRDs of {group} are missing: kubectl apply -f deploy/crds");
        checks.push(Check::new("crds", CheckResult::Note, message));
    }
    checks.push(gateway_api(&releases));
    checks
}

fn gateway_api(releases: &BTreeSet<String>) -> Check {
    let made_for = pipeline::GATEWAY_API_RELEASE;
    let listed = releases.iter().cloned().collect::<Vec<_>>().join(", ");
    let is_ours = |release: &String| release.strip_prefix(made_for).is_some_and(|patch| patch.starts_with('.'));
    if releases.is_empty() {
        return Check::new("gateway api", CheckResult::Note, "no CRDs of Gateway API: Gateways are not served");
    }
    if releases.iter().all(is_ours) {
        return Check::new("gateway api", CheckResult::Ok, format!("release {listed}"));
    }
    let message =
        format!("release {listed}; Sesame supports {made_for}, and sets SupportedVersion of GatewayClasses to False");
    Check::new("gateway api", CheckResult::Warning, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use serde_json::json;

    fn crd(name: &str, version: &str, release: &str) -> CustomResourceDefinition {
        let (plural, group) = name.split_once('.').unwrap();
        serde_json::from_value(json!({
            "metadata": { "name": name, "annotations": { BUNDLE: release } },
            "spec": { "group": group, "scope": "Namespaced", "names": { "kind": "K", "plural": plural },
                "versions": [{ "name": version, "served": true, "storage": true }] },
        }))
        .unwrap()
    }

    #[test]
    fn versions_that_are_not_read_and_releases_that_are_others_are_findings() {
        let results = |crds: &[CustomResourceDefinition]| -> Vec<(CheckResult, String)> {
            compare(crds).into_iter().map(|check| (check.result, check.message)).collect()
        };
        let nothing = results(&[]);
        assert!(
            nothing.iter().all(|(verdict, _)| matches!(verdict, CheckResult::Ok | CheckResult::Note)),
            "{nothing:?}"
        );
        let old = results(&[crd("httpproxies.projectcontour.io", "v1alpha1", "")]);
        assert!(old[0].0 == CheckResult::Error && old[0].1.contains("serves v1alpha1"), "{old:?}");
        let other = results(&[crd("gateways.gateway.networking.k8s.io", "v1", "v1.2.0")]);
        assert!(
            other.iter().any(|(verdict, text)| *verdict == CheckResult::Warning && text.contains("v1.2.0")),
            "{other:?}"
        );
        let same = results(&[crd("gateways.gateway.networking.k8s.io", "v1", "v1.7.3")]);
        assert!(same.iter().any(|(verdict, text)| *verdict == CheckResult::Ok && text.contains("v1.7.3")), "{same:?}");
    }
}

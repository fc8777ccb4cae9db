//! What the API server says when a right is missing, and the rule that gives it.
//!
//! In: the message of a refusal, which names the verb, the resource, its group and the namespace. Out: the same with the RBAC rule to
//! add, so that whoever reads the log need not work it out. Rights to write are known to be missing only when they are used.

use std::borrow::Cow;

/// The words of a failed request, with the rule to add if it was for want of a right.
pub fn refusal(error: &kube::Error) -> Cow<'_, str> {
    match error {
        kube::Error::Api(status) => match missing_right(&status.message) {
            Some(rule) => format!("{}; {rule}", status.message).into(),
            None => status.message.as_str().into(),
        },
        other => other.to_string().into(),
    }
}

/// Resources that Sesame writes in its own namespace alone.
const OF_ONE_NAMESPACE: [&str; 2] = ["leases", "secrets"];

/// The rule whose absence a message complains about.
pub fn missing_right(message: &str) -> Option<String> {
    let (subject, complaint) = message.split_once(" is forbidden: User ")?;
    let (_, complaint) = complaint.split_once(" cannot ")?;
    let (verb, rest) = complaint.split_once(" resource ")?;
    let (resource, rest) = quoted(rest)?;
    let (group, rest) = quoted(rest.strip_prefix(" in API group ")?)?;
    let role = match rest.strip_prefix(" in the namespace ").and_then(quoted) {
        Some((namespace, _)) if OF_ONE_NAMESPACE.contains(&resource) => {
            format!("Sesame's Role in namespace {namespace}")
        }
        Some((namespace, _)) => format!("Sesame's ClusterRole, or its Role in namespace {namespace}"),
        None => "Sesame's ClusterRole".to_owned(),
    };
    // Rights to the lease and to the Secrets of xDS connections hold for one object each.
    let name = subject.split_once(' ').and_then(|(_, name)| quoted(name)).map(|(name, _)| name);
    let name = name.filter(|name| !name.is_empty() && OF_ONE_NAMESPACE.contains(&resource));
    let names = name.map(|name| format!("resourceNames: [{name}], ")).unwrap_or_default();
    let group = if group.is_empty() { "''" } else { group };
    Some(format!("add to {role}: {{apiGroups: [{group}], resources: [{resource}], {names}verbs: [{verb}]}}"))
}

/// What stands between quotes at the beginning, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_write_is_told_with_the_rule_to_add() {
        let user = "is forbidden: User \"system:serviceaccount:projectsesame:sesame\" cannot";
        for (message, rule) in [
            (
                format!(
                    "ingresses.networking.k8s.io \"web\" {user} patch resource \"ingresses/status\" in API group \
                     \"networking.k8s.io\" in the namespace \"shop\""
                ),
                "add to Sesame's ClusterRole, or its Role in namespace shop: {apiGroups: [networking.k8s.io], resources: [ingresses/status], \
                 verbs: [patch]}",
            ),
            (
                format!(
                    "events.events.k8s.io {user} create resource \"events\" in API group \"events.k8s.io\" in the namespace \"shop\""
                ),
                "add to Sesame's ClusterRole, or its Role in namespace shop: {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}",
            ),
            (
                format!(
                    "leases.coordination.k8s.io \"leader-elect\" {user} update resource \"leases\" in API group \
                     \"coordination.k8s.io\" in the namespace \"projectsesame\""
                ),
                "add to Sesame's Role in namespace projectsesame: {apiGroups: [coordination.k8s.io], resources: [leases], \
                 resourceNames: [leader-elect], verbs: [update]}",
            ),
            (
                format!(
                    "secrets \"sesame-ca\" {user} update resource \"secrets\" in API group \"\" in the namespace \"projectsesame\""
                ),
                "add to Sesame's Role in namespace projectsesame: {apiGroups: [''], resources: [secrets], \
                 resourceNames: [sesame-ca], verbs: [update]}",
            ),
            (
                format!(
                    "gatewayclasses.gateway.networking.k8s.io \"a\" {user} patch resource \"gatewayclasses/status\" in API group \
                     \"gateway.networking.k8s.io\" at the cluster scope: RBAC: role not found"
                ),
                "add to Sesame's ClusterRole: {apiGroups: [gateway.networking.k8s.io], resources: [gatewayclasses/status], \
                 verbs: [patch]}",
            ),
        ] {
            assert_eq!(missing_right(&message).as_deref(), Some(rule), "{message}");
        }
        let quota = "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
        assert_eq!(missing_right(quota), None);
        assert_eq!(missing_right("the object has been modified"), None);
    }
}

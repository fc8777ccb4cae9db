//! What Sesame may do in a cluster: one table, from which come the output of `sesame rbac`, the manifests and the chart.
//!
//! In: the table of kinds, which says what is read and whose status is written, and the few writes that are not status. Out:
//! [`documents`], whose settings decide between three modes:
//!
//! | mode | rights |
//! |---|---|
//! | `cluster` | a ClusterRole |
//! | `namespaces` | a Role in each of the namespaces that are watched, and no ClusterRole (unless `rbac.clusterScoped`) |
//! | `named-secrets` | as either of them, but Secrets can only be read by name: a Role in each of their namespaces |
//!
//! A test runs `serve` under each of them on a real API server and compares what is granted with what is asked for.

mod rules;

use manifest::{Document, Each, Field, Item, Node, Piece, Values, When, field, list, map, text};
use serde_json::json;

pub use rules::{Rule, certificates, cluster_scoped, gateways, namespaced, secrets, settings};

/// The mode in which Secrets are read by name.
pub const NAMED_SECRETS: &str = "named-secrets";

/// The usual namespace of Sesame. Whatever is outside of the namespace of an installation has its name, unless it is this one.
const USUAL_NAMESPACE: &str = "projectsesame";

/// The name of what stands outside of the namespace of an installation.
pub fn name() -> Piece {
    Piece::Helper("sesame.name", |values: &Values<'_>| match values.namespace {
        USUAL_NAMESPACE => "sesame".to_owned(),
        other => format!("sesame-{other}"),
    })
}

fn has_namespaces() -> When {
    When::Set("rbac.namespaces")
}

/// Roles and bindings. The settings are `rbac.mode`, `rbac.namespaces` (none for the whole cluster), `rbac.clusterScoped`,
/// `rbac.secrets` (names by namespace), `leaderElection.name`, `leaderElection.namespace` (that of Sesame if empty),
/// `certificates.issuer`, `serviceAccount.name` and `commonLabels`.
pub fn documents() -> Vec<Document> {
    let in_cluster = || When::Not(Box::new(has_namespaces()));
    let mut documents = Vec::new();
    let mut everything = items(namespaced());
    everything.extend(items(gateways()));
    everything.push(secrets().item().when(lists_secrets()));
    everything.extend(items(cluster_scoped()));
    documents.extend(
        bound(
            "ClusterRole",
            "What Sesame reads and writes in all namespaces, and nothing else.",
            None,
            vec![name()],
            everything,
        )
        .map(|document| document.when(in_cluster())),
    );

    let has_cluster_scoped = When::All(vec![has_namespaces(), When::Set("rbac.clusterScoped")]);
    let comment = "Kinds that are in no namespace; without them there is no Gateway API, and no IngressClass is read.";
    documents.extend(
        bound("ClusterRole", comment, None, vec![name()], items(cluster_scoped()))
            .map(|document| document.when(has_cluster_scoped.clone())),
    );

    let mut here = items(namespaced());
    here.extend(items(gateways()).into_iter().map(|item| item.when(When::Set("rbac.clusterScoped"))));
    here.push(secrets().item().when(lists_secrets()));
    let namespace = || Some(Piece::Variable("namespace"));
    let each = || Each::Item { list: "rbac.namespaces", variable: "namespace" };
    documents.extend(
        bound("Role", "What Sesame reads and writes in a namespace that it watches.", namespace(), vec![name()], here)
            .map(|document| document.when(has_namespaces()).each(each())),
    );

    let named = Item::from(map(vec![
        field("apiGroups", json!([""])),
        field("resources", json!(["secrets"])),
        field("resourceNames", Node::Variable("names")),
        field("verbs", json!(["get", "list", "watch"])),
    ]));
    let comment = "The Secrets that Sesame may read. With names, `list` and `watch` hold for one of them at a time.";
    let each = || Each::Entry { map: "rbac.secrets", key: "namespace", value: "names" };
    documents.extend(
        bound("Role", comment, namespace(), vec![name(), "-secrets".into()], vec![named])
            .map(|document| document.when(When::Equals("rbac.mode", NAMED_SECRETS)).each(each())),
    );

    let own =
        |comment, name: &str, rules| bound("Role", comment, Some(Piece::Namespace), vec![name.into()], items(rules));
    documents.extend(lease());
    let comment =
        "The operator's settings, where they are in a ContourConfiguration (--sesame-config-name) and not in a file.";
    documents.extend(own(comment, "sesame-configuration", settings()));
    let comment =
        "The CA and the certificates of the connections between Sesame and its proxies, which Sesame issues itself.";
    let issues = |document: Document| document.when(When::Equals("certificates.issuer", "controller"));
    documents.extend(own(comment, "sesame-certificates", certificates()).map(issues));
    documents
}

/// The role for the lease, in the namespace in which it is. In another namespace than that of Sesame there may be the leases of
/// several installations.
fn lease() -> impl Iterator<Item = Document> {
    let elsewhere = When::Set("leaderElection.namespace");
    let role = |namespace, name, when: When| {
        let comment = "The lease that decides which replica writes. The right to create cannot be bound to a name.";
        bound("Role", comment, Some(namespace), name, rules::leader_election())
            .map(|document| document.when(when.clone()))
    };
    let here = role(Piece::Namespace, vec!["sesame-leader-election".into()], When::Not(Box::new(elsewhere.clone())));
    let there = role(Piece::Setting("leaderElection.namespace"), vec![name(), "-leader-election".into()], elsewhere);
    here.into_iter().chain(there)
}

fn lists_secrets() -> When {
    When::Differs("rbac.mode", NAMED_SECRETS)
}

fn items(rules: Vec<Rule>) -> Vec<Item> {
    rules.into_iter().map(|rule| rule.item()).collect()
}

/// A role and its binding to the account of Sesame.
fn bound(kind: &str, comment: &str, namespace: Option<Piece>, name: Vec<Piece>, rules: Vec<Item>) -> [Document; 2] {
    let metadata = || {
        let mut fields = vec![field("name", text(name.clone()))];
        fields.extend(namespace.clone().map(|namespace| field("namespace", text(vec![namespace]))));
        fields.push(field("labels", Node::Setting("commonLabels")).when(When::Set("commonLabels")));
        map(fields)
    };
    let head = |kind: String| -> Vec<Field> {
        vec![field("apiVersion", "rbac.authorization.k8s.io/v1"), field("kind", kind), field("metadata", metadata())]
    };
    let mut role = head(kind.to_owned());
    role.push(field("rules", list(rules)));
    let mut binding = head(format!("{kind}Binding"));
    binding.push(field(
        "roleRef",
        map(vec![
            field("apiGroup", "rbac.authorization.k8s.io"),
            field("kind", kind),
            field("name", text(name.clone())),
        ]),
    ));
    let account = map(vec![
        field("kind", "ServiceAccount"),
        field("name", Node::Setting("serviceAccount.name")),
        field("namespace", text(vec![Piece::Namespace])),
    ]);
    binding.push(field("subjects", list(vec![account.into()])));
    [Document::new(comment, role), Document::new("", binding)]
}

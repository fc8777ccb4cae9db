//! The rules: reads and status writes from the table of kinds, and the other writes.

use kinds::{Kind, kind};
use manifest::{Item, Node, field, list, map, setting};
use serde_json::json;

/// One rule of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Why it is needed.
    pub comment: &'static str,
    /// API groups.
    pub groups: Vec<&'static str>,
    /// Resources, with their subresources.
    pub resources: Vec<String>,
    /// The only objects it holds for; all if none is named.
    pub names: Vec<&'static str>,
    /// Verbs.
    pub verbs: Vec<&'static str>,
}

impl Rule {
    fn new(groups: &[&'static str], resources: &[&str], verbs: &[&'static str]) -> Self {
        Self {
            comment: "",
            groups: groups.to_vec(),
            resources: resources.iter().map(|&resource| resource.to_owned()).collect(),
            names: Vec::new(),
            verbs: verbs.to_vec(),
        }
    }

    fn about(self, comment: &'static str) -> Self {
        Self { comment, ..self }
    }

    /// The rule as an item of a role.
    pub fn item(self) -> Item {
        let mut fields = vec![field("apiGroups", json!(self.groups)), field("resources", json!(self.resources))];
        if !self.names.is_empty() {
            fields.push(field("resourceNames", json!(self.names)));
        }
        fields.push(field("verbs", json!(self.verbs)));
        let node: Node = map(fields);
        Item::from(node).about(self.comment)
    }
}

const READ: [&str; 3] = ["get", "list", "watch"];

/// The verbs by which a kind is read. `get` is for what is fetched by name; for a status that somebody else has changed
/// meanwhile; and for the uid of an object that an event is about.
fn reading(kind: Kind) -> &'static [&'static str] {
    // Resolvers of Kubernetes are looked up, and nothing is said about them.
    let resolvers = [kind::KUBERNETES_SERVICE_RESOLVER, kind::KUBERNETES_ENDPOINT_RESOLVER];
    let is_told = kind.group() == kinds::emissary::GROUP && !resolvers.contains(&kind);
    let has_events = [kind::SERVICE, kind::ENDPOINT_SLICE].contains(&kind) || is_told;
    if kind.is_fetched() || kind.has_own_status() || has_events { &READ } else { &READ[1..] }
}

/// The settings are read in the namespace of Sesame only, and Secrets have a rule of their own.
fn is_apart(kind: Kind) -> bool {
    kind == kind::SECRET || kind.name() == kind::CONTOUR_CONFIGURATION.name()
}

/// Rules to read these kinds and to write their status; kinds of one group and with the same verbs, and groups with the same
/// kinds, share a rule.
fn of_kinds(kinds: impl Iterator<Item = Kind>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut add = |group: &'static str, resource: String, verbs: &[&'static str]| match rules
        .iter_mut()
        .find(|rule| rule.groups == [group] && rule.verbs == verbs)
    {
        Some(rule) => rule.resources.push(resource),
        None => rules.push(Rule { resources: vec![resource], ..Rule::new(&[group], &[], verbs) }),
    };
    for kind in kinds {
        add(kind.group(), kind.plural().to_owned(), reading(kind));
        if kind.has_own_status() {
            add(kind.group(), format!("{}/status", kind.plural()), &["patch"]);
        }
    }
    let mut merged: Vec<Rule> = Vec::new();
    for rule in rules {
        match merged.iter_mut().find(|it| it.resources == rule.resources && it.verbs == rule.verbs) {
            Some(same) => same.groups.extend(rule.groups),
            None => merged.push(rule),
        }
    }
    merged
}

fn all() -> impl Iterator<Item = Kind> {
    kind::ALL.iter().copied().filter(|kind| !is_apart(*kind))
}

fn is_of_gateway_api(kind: Kind) -> bool {
    kind.group() == kind::GATEWAY.group()
}

/// What is read and written in the namespaces that are watched, without Gateway API and Secrets.
pub fn namespaced() -> Vec<Rule> {
    let mut rules = of_kinds(all().filter(|kind| kind.is_namespaced() && !is_of_gateway_api(*kind)));
    let comment = "What returns is counted on the event that is there: `get` reads the count.";
    rules.push(Rule::new(&["events.k8s.io"], &["events"], &["create", "get", "patch"]).about(comment));
    rules
}

/// Gateway API, and the proxies that are created for each Gateway in its namespace.
pub fn gateways() -> Vec<Rule> {
    let mut rules = of_kinds(all().filter(|kind| kind.is_namespaced() && is_of_gateway_api(*kind)));
    let comment =
        "The proxies of Gateways, in the namespace of each Gateway; without these, Gateways say so in their status.";
    let owned = ["get", "list", "watch", "create", "patch", "delete"];
    rules.push(Rule::new(&[""], &["services", "serviceaccounts"], &owned).about(comment));
    rules.push(Rule::new(&["apps"], &["deployments"], &owned));
    rules
}

/// Only names are listed and watched; the contents of a Secret are fetched when something refers to it.
pub fn secrets() -> Rule {
    Rule::new(&[""], &["secrets"], &READ)
        .about("Only names are listed and watched; the contents of a Secret are fetched when something refers to it.")
}

/// Kinds that are in no namespace, and the tokens by which the proxies of Gateways authenticate.
pub fn cluster_scoped() -> Vec<Rule> {
    let mut rules = of_kinds(all().filter(|kind| !kind.is_namespaced()));
    let comment = "Whose the tokens are that the proxies of Gateways authenticate with.";
    rules.push(Rule::new(&["authentication.k8s.io"], &["tokenreviews"], &["create"]).about(comment));
    rules
}

/// The lease, whose name is a setting. The right to create cannot be bound to a name.
pub fn leader_election() -> Vec<Item> {
    let (groups, resources) = (json!(["coordination.k8s.io"]), json!(["leases"]));
    let named = map(vec![
        field("apiGroups", groups),
        field("resources", resources),
        field("resourceNames", list(vec![Item::from(setting("leaderElection.name"))])),
        field("verbs", json!(["get", "update"])),
    ]);
    vec![Rule::new(&["coordination.k8s.io"], &["leases"], &["create"]).item(), named.into()]
}

/// The operator's settings, in the namespace of Sesame.
pub fn settings() -> Vec<Rule> {
    of_kinds([kind::CONTOUR_CONFIGURATION, kind::SESAME_CONFIGURATION].into_iter())
}

/// The certificates of xDS connections, in the namespace of Sesame, where the controller issues them. The right to create
/// cannot be bound to a name.
pub fn certificates() -> Vec<Rule> {
    let secrets = |verbs: &[&'static str]| Rule::new(&[""], &["secrets"], verbs);
    vec![
        secrets(&["create"]),
        Rule { names: vec!["sesame-ca", "sesamecert", "envoycert"], ..secrets(&["get", "update"]) },
        Rule { names: vec!["sesame-cache-key"], ..secrets(&["get"]) },
        Rule::new(&["events.k8s.io"], &["events"], &["create", "get", "patch"]).about("Certificates that expire."),
    ]
}

//! What one task follows: a kind, in one namespace or in all, whole or by name only; and the URLs for it.

use crate::cluster::Selectors;
use kinds::{Kind, ObjectRef, kind};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

/// How many objects a page of a list holds.
const PAGE: u32 = 500;

/// Types of Secrets that never hold anything for us. Releases of Helm are most of the bytes of many clusters.
const FOREIGN_SECRETS: [&str; 6] = [
    "helm.sh/release.v1",
    "kubernetes.io/service-account-token",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/dockercfg",
    "kubernetes.io/ssh-auth",
    "bootstrap.kubernetes.io/token",
];

/// How much of each object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// All of it.
    Whole,
    /// Its metadata.
    Metadata,
    /// Its names; the rest when something refers to it.
    Names,
}

/// One list and watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    /// None for all namespaces, and for kinds that stand in none.
    pub namespace: Option<Arc<str>>,
    pub content: Content,
    /// The only object that is followed, if not all of them are.
    name: Option<Arc<str>>,
    /// The operator's label selector.
    labels: Option<Arc<str>>,
    /// The operator's field selector.
    fields: Option<Arc<str>>,
    /// The version that is asked for.
    pub version: &'static str,
}

impl Target {
    /// The targets for these kinds in these namespaces; in all if none is named. Of the kinds in `named`, each object by itself.
    /// Of the kinds that selectors hold for, those that they select.
    pub fn all(
        kinds: &[Kind],
        namespaces: &[Arc<str>],
        named: &BTreeMap<Kind, BTreeSet<ObjectRef>>,
        selectors: &Selectors,
    ) -> Vec<Target> {
        let mut targets = Vec::new();
        for &kind in kinds {
            if let Some(objects) = named.get(&kind) {
                targets.extend(objects.iter().map(|object| Target {
                    name: Some(object.name.clone()),
                    ..Target::new(kind, Some(object.namespace.clone()))
                }));
            } else if namespaces.is_empty() || !kind.is_namespaced() {
                targets.push(Target::new(kind, None));
            } else {
                targets.extend(namespaces.iter().map(|namespace| Target::new(kind, Some(namespace.clone()))));
            }
        }
        for target in targets.iter_mut().filter(|target| selectors.kinds.contains(&target.kind)) {
            target.labels.clone_from(&selectors.labels);
            target.fields.clone_from(&selectors.fields);
        }
        targets
    }

    fn new(kind: Kind, namespace: Option<Arc<str>>) -> Target {
        let content = match (kind.is_fetched(), kind.is_metadata_only()) {
            (true, _) => Content::Names,
            (false, true) => Content::Metadata,
            (false, false) => Content::Whole,
        };
        Target { kind, namespace, content, name: None, labels: None, fields: None, version: kind.version() }
    }

    /// Asks for the next version of the kind from now on; says whether there is one that was not asked for yet since the
    /// preferred one was.
    pub fn try_next_version(&mut self) -> bool {
        let versions = self.kind.versions();
        let next = versions.iter().skip_while(|version| **version != self.version).nth(1);
        self.version = next.unwrap_or(&versions[0]);
        next.is_some()
    }

    /// The rule that lets it be listed and watched.
    pub fn missing_rule(&self) -> String {
        let verbs =
            if self.kind.is_fetched() || self.kind.has_own_status() { "get, list, watch" } else { "list, watch" };
        missing_rule(self.kind, self.namespace.as_deref(), self.name.as_deref(), verbs)
    }

    /// Whether the kind is made by a CRD, and so may not be there.
    pub fn is_custom(&self) -> bool {
        !["", "networking.k8s.io", "discovery.k8s.io"].contains(&self.kind.group())
    }

    /// The paths of the lists of kinds in its group, one for each version.
    pub fn discovery(&self) -> impl Iterator<Item = String> {
        self.kind.versions().iter().map(|version| group(self.kind, version))
    }

    /// The path and query of one page of the list; all of it at once if not `paged`.
    pub fn list_url(&self, paged: bool, page: Option<&str>) -> String {
        let mut url = collection(self.kind, self.version, self.namespace.as_deref());
        let mut query = Query::new(&mut url);
        if paged {
            query.add("limit", &PAGE.to_string());
        }
        if let Some(page) = page {
            query.add("continue", page);
        }
        self.select(&mut query);
        url
    }

    /// The path and query of a watch from a version on.
    pub fn watch_url(&self, version: &str, lasting: Duration) -> String {
        let mut url = collection(self.kind, self.version, self.namespace.as_deref());
        let mut query = Query::new(&mut url);
        query.add("watch", "true");
        query.add("allowWatchBookmarks", "true");
        query.add("resourceVersion", version);
        query.add("timeoutSeconds", &lasting.as_secs().to_string());
        self.select(&mut query);
        url
    }

    /// Leaves out, at the server, what can never matter.
    fn select(&self, query: &mut Query<'_>) {
        let (mut labels, mut fields) = (Vec::new(), Vec::new());
        if let Some(name) = &self.name {
            // A right to list that is bound to a name holds for exactly this selector.
            fields.push(format!("metadata.name={name}"));
        } else {
            if self.kind == kind::SECRET {
                fields.extend(FOREIGN_SECRETS.map(|kind| format!("type!={kind}")));
            } else if self.kind == kind::ENDPOINT_SLICE {
                labels.push(kinds::endpoint_slice::SERVICE_NAME.to_owned());
            }
            labels.extend(self.labels.as_deref().map(str::to_owned));
            fields.extend(self.fields.as_deref().map(str::to_owned));
        }
        for (name, selectors) in [("labelSelector", labels), ("fieldSelector", fields)] {
            if !selectors.is_empty() {
                query.add(name, &selectors.join(","));
            }
        }
    }

    /// The form in which the list is asked for.
    pub fn list_form(&self) -> &'static str {
        match self.content {
            Content::Whole => "application/json",
            Content::Metadata | Content::Names => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        }
    }

    /// The form in which the watch is asked for.
    pub fn watch_form(&self) -> &'static str {
        match self.content {
            Content::Whole => "application/json",
            Content::Metadata | Content::Names => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.plural())?;
        match self.kind.group() {
            "" => {}
            group => write!(f, ".{group}")?,
        }
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in namespace {namespace}"),
            (None, _) => Ok(()),
        }
    }
}

/// The RBAC rule whose absence an API server complained about, as it is to be added.
pub fn missing_rule(kind: Kind, namespace: Option<&str>, name: Option<&str>, verbs: &str) -> String {
    let role = match namespace {
        Some(namespace) => format!("Sesame's Role in namespace {namespace}"),
        None => "Sesame's ClusterRole".to_owned(),
    };
    let group = if kind.group().is_empty() { "''" } else { kind.group() };
    let names = name.map(|name| format!("resourceNames: [{name}], ")).unwrap_or_default();
    format!("add to {role}: {{apiGroups: [{group}], resources: [{}], {names}verbs: [{verbs}]}}", kind.plural())
}

/// The path of one object.
pub fn object_url(kind: Kind, namespace: &str, name: &str) -> String {
    let mut url = collection(kind, kind.version(), Some(namespace).filter(|namespace| !namespace.is_empty()));
    url.push('/');
    push_escaped(&mut url, name);
    url
}

fn collection(kind: Kind, version: &str, namespace: Option<&str>) -> String {
    let mut url = group(kind, version);
    if let Some(namespace) = namespace {
        url.push_str("/namespaces/");
        push_escaped(&mut url, namespace);
    }
    url.push('/');
    url.push_str(kind.plural());
    url
}

fn group(kind: Kind, version: &str) -> String {
    match kind.group() {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

struct Query<'u> {
    url: &'u mut String,
    next: char,
}

impl<'u> Query<'u> {
    fn new(url: &'u mut String) -> Self {
        Self { url, next: '?' }
    }

    fn add(&mut self, name: &str, value: &str) {
        self.url.push(self.next);
        self.url.push_str(name);
        self.url.push('=');
        push_escaped(self.url, value);
        self.next = '&';
    }
}

/// Names come from objects that tenants write; none may become a part of the path.
fn push_escaped(url: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_ref::{ApiResource, Scope};

    #[test]
    fn urls_name_group_version_namespace_and_what_is_left_out() {
        let delegations = kind::CONTOUR_TLS_CERTIFICATE_DELEGATION;
        assert_eq!(
            Target::new(delegations, None).list_url(true, Some("a=b")),
            "/apis/projectcontour.io/v1/tlscertificatedelegations?limit=500&continue=a%3Db"
        );
        assert_eq!(
            Target::new(kind::SERVICE, Some("shop".into())).watch_url("17", Duration::from_secs(300)),
            "/api/v1/namespaces/shop/services?watch=true&allowWatchBookmarks=true&resourceVersion=17&timeoutSeconds=300"
        );
        assert_eq!(
            Target::new(kind::ENDPOINT_SLICE, None).list_url(false, None),
            "/apis/discovery.k8s.io/v1/endpointslices?labelSelector=kubernetes.io%2Fservice-name"
        );
        let secrets = Target::new(kind::SECRET, None).list_url(false, None);
        assert!(secrets.starts_with("/api/v1/secrets?fieldSelector=type%21%3Dhelm.sh%2Frelease.v1%2C"), "{secrets}");
        assert_eq!(object_url(kind::SECRET, "shop", "../a?b"), "/api/v1/namespaces/shop/secrets/..%2Fa%3Fb");
    }

    #[test]
    fn versions_are_tried_from_the_preferred_one_on() {
        static ROW: ApiResource = ApiResource::new("a.io", &["v1", "v1beta1"], "Thing", "things", Scope::Cluster);
        let mut target = Target::new(Kind::new(&ROW), None);
        let mut asked = Vec::new();
        for _ in 0..3 {
            asked.push(target.list_url(false, None));
            asked.push(target.try_next_version().to_string());
        }
        let (first, second) = ("/apis/a.io/v1/things", "/apis/a.io/v1beta1/things");
        assert_eq!(asked, [first, "true", second, "false", first, "true"]);
    }

    #[test]
    fn namespaced_kinds_are_followed_in_each_namespace() {
        let targets = Target::all(
            &[kind::INGRESS_CLASS, kind::INGRESS],
            &["a".into(), "b".into()],
            &BTreeMap::new(),
            &Selectors::default(),
        );
        let shown: Vec<_> = targets.iter().map(ToString::to_string).collect();
        let ingresses = ["a", "b"].map(|name| format!("ingresses.networking.k8s.io in namespace {name}"));
        assert_eq!(shown, ["ingressclasses.networking.k8s.io", &ingresses[0], &ingresses[1]]);
    }

    #[test]
    fn selectors_are_the_api_servers_to_apply() {
        let selectors = Selectors {
            kinds: vec![kind::SERVICE],
            labels: Some("app in (a,b),team".into()),
            fields: Some("metadata.namespace!=kube-system".into()),
        };
        let targets = Target::all(&[kind::SERVICE, kind::ENDPOINT_SLICE], &[], &BTreeMap::new(), &selectors);
        let urls: Vec<_> = targets.iter().map(|target| target.list_url(false, None)).collect();
        assert_eq!(
            urls,
            [
                "/api/v1/services?labelSelector=app%20in%20%28a%2Cb%29%2Cteam&fieldSelector=metadata.namespace%21%3Dkube-system",
                "/apis/discovery.k8s.io/v1/endpointslices?labelSelector=kubernetes.io%2Fservice-name"
            ]
        );
        assert!(targets[0].watch_url("7", Duration::from_secs(9)).contains("&labelSelector=app%20in%20"));
    }

    #[test]
    fn named_objects_are_followed_each_by_itself() {
        let named = [ObjectRef::new(kind::SECRET, "a", "x"), ObjectRef::new(kind::SECRET, "b", "y")];
        let named = BTreeMap::from([(kind::SECRET, BTreeSet::from(named))]);
        let targets = Target::all(&[kind::SECRET], &["a".into()], &named, &Selectors::default());
        let urls: Vec<_> = targets.iter().map(|target| target.list_url(false, None)).collect();
        let url =
            |namespace, name| format!("/api/v1/namespaces/{namespace}/secrets?fieldSelector=metadata.name%3D{name}");
        assert_eq!(urls, [url("a", "x"), url("b", "y")]);
        let rule = "add to Sesame's Role in namespace a: {apiGroups: [''], resources: [secrets], resourceNames: [x], \
                    verbs: [get, list, watch]}";
        assert_eq!(targets[0].missing_rule(), rule);
    }
}

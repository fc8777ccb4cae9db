//! Translations: what each object of a dialect asks for.

use crate::{
    large,
    objects::{HttpProxies, IngressClasses, Ingresses, Named, RootsByFqdn},
    pending,
    settings::Settings,
    view::TableView,
};
use engine::{Derived, Index, Reads, Table};
use kinds::{Ingress, Kind, ObjectKey};
use model::{
    ClusterId, Code, FieldPath, Host, ListenerId, ObjectRef, Origin, SecretId, Translation, Verdict, route::Action,
};
use std::{collections::BTreeMap, ops::Deref, sync::Arc};

/// The class of Ingresses that name none: of several defaults the youngest, as Kubernetes chooses.
pub struct DefaultClass;

impl Table for DefaultClass {
    type Key = ();
    type Value = Named;
    const NAME: &'static str = "default ingress class";
}

impl Derived for DefaultClass {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<Named> {
        let names = reads.scan::<IngressClasses>();
        let classes = names.into_iter().filter_map(|name| {
            let class = reads.get::<IngressClasses>(name)?;
            class.is_default().then(|| (std::cmp::Reverse(class.meta.created), name))
        });
        classes.min().map(|(_, name)| name.clone())
    }
}

/// A translation, and what had to be looked for to make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationRow {
    /// The translation.
    pub translation: Translation,
    /// The Secrets that it asked for, whether they were there or not.
    pub secrets: Vec<SecretId>,
    /// While it is pending as a whole, and so asks for nothing: the hosts that it will ask for, sorted.
    pub claimed: Vec<Host>,
    /// The clusters that its objects refer to, each with the first field that does; by object.
    pub backends: Vec<(Origin, ClusterId)>,
}

impl TranslationRow {
    /// A translation, with the clusters that it refers to.
    pub fn new(translation: Translation, secrets: Vec<SecretId>) -> Self {
        let mut backends: BTreeMap<(&ObjectRef, &ClusterId), &FieldPath> = BTreeMap::new();
        for piece in &translation.routes {
            let Action::Forward(forward) = &piece.route.action else { continue };
            let Origin { object, field } = &piece.route.origin;
            for cluster in forward.targets() {
                backends.entry((object, cluster)).or_insert(field);
            }
        }
        for piece in &translation.tls {
            let Origin { object, field } = &piece.origin;
            for (cluster, _) in piece.mode.tcp().into_iter().flat_map(|proxy| &proxy.clusters) {
                backends.entry((object, cluster)).or_insert(field);
            }
        }
        let backends =
            backends.into_iter().map(|((object, cluster), field)| (object.at(field.clone()), cluster.clone()));
        let backends = backends.collect();
        Self { translation, secrets, claimed: Vec::new(), backends }
    }

    /// The clusters that one of its objects refers to.
    pub fn backends_of(&self, object: &ObjectRef) -> &[(Origin, ClusterId)] {
        let start = self.backends.partition_point(|(origin, _)| origin.object < *object);
        let end = start + self.backends[start..].partition_point(|(origin, _)| origin.object == *object);
        &self.backends[start..end]
    }
}

impl Deref for TranslationRow {
    type Target = Translation;

    fn deref(&self) -> &Translation {
        &self.translation
    }
}

/// A translation for each object of a dialect that is ours.
pub struct Translations {
    ingress: dialect_ingress::Settings,
    http_proxy: dialect_httpproxy::Settings,
    fetched_secrets: bool,
}

impl Table for Translations {
    type Key = ObjectKey;
    type Value = TranslationRow;
    const NAME: &'static str = "translations";
}

impl Derived for Translations {
    fn compute(&self, key: &ObjectKey, reads: &mut Reads<'_>) -> Option<TranslationRow> {
        let (translation, secrets) = match key.kind {
            Kind::Ingress => {
                let object = reads.get::<Ingresses>(&Named::from(key))?;
                let mut view = TableView::new(reads, self.fetched_secrets);
                (dialect_ingress::translate(object, &mut view, &self.ingress)?, view.into_secrets())
            }
            Kind::HttpProxy(vendor) => {
                let object = reads.get::<HttpProxies>(key)?;
                let mut view = TableView::new(reads, self.fetched_secrets);
                (dialect_httpproxy::translate(vendor, object, &mut view, &self.http_proxy)?, view.into_secrets())
            }
            _ => return None,
        };
        if translation.pending.is_empty() {
            return Some(TranslationRow::new(translation, secrets));
        }
        reads.set_pending();
        let claimed = pending::claimed(&translation);
        Some(TranslationRow { claimed, ..TranslationRow::new(pending::without(translation), secrets) })
    }

    fn while_pending(&self, good: &Arc<TranslationRow>, computed: Option<TranslationRow>) -> Arc<TranslationRow> {
        match computed {
            Some(computed) => Arc::new(pending::kept(good, computed)),
            None => Arc::clone(good),
        }
    }

    fn is_large(&self, key: &ObjectKey, reads: &mut Reads<'_>) -> bool {
        match key.kind {
            Kind::Ingress => {
                let object = reads.get::<Ingresses>(&Named::from(key));
                object.is_some_and(|object| dialect_ingress::budget::exceeds(object, large::ROUTES))
            }
            Kind::HttpProxy(vendor) => {
                let Some(object) = reads.get::<HttpProxies>(key) else { return false };
                let is_root = !matches!(object.spec.virtual_host.get(), Ok(None));
                let mut view = TableView::new(reads, self.fetched_secrets);
                is_root && dialect_httpproxy::budget::exceeds(vendor, object, &mut view, large::ROUTES)
            }
            _ => false,
        }
    }

    /// Nothing is known about what the object asks for, not even its hosts: all that can be done is to say so.
    fn on_panic(&self, key: &ObjectKey, message: &str) -> Option<TranslationRow> {
        let subject = subject(key);
        let verdict = Verdict::new(Code::TranslationFailed, subject.at(""), message);
        Some(TranslationRow::new(Translation { verdicts: vec![verdict], ..Translation::empty(subject) }, Vec::new()))
    }
}

/// An object as verdicts name it.
pub fn subject(key: &ObjectKey) -> ObjectRef {
    match key.kind {
        Kind::HttpProxy(vendor) => dialect_httpproxy::reference(vendor, &key.namespace, &key.name),
        kind => ObjectRef::new(kind.name(), &key.namespace, &key.name),
    }
}

/// Ingresses by the key of their translation.
pub struct IngressKeys;

impl Index for IngressKeys {
    type Of = Ingresses;
    type Key = ObjectKey;
    const NAME: &'static str = "by key";

    fn keys(name: &Named, _: &Ingress) -> impl IntoIterator<Item = ObjectKey> {
        [ObjectKey::new(Kind::Ingress, name.namespace.clone(), name.name.clone())]
    }
}

/// Translations by the clusters that their routes use.
pub struct ClustersInUse;

impl Index for ClustersInUse {
    type Of = Translations;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster";

    fn keys(_: &ObjectKey, translation: &TranslationRow) -> impl IntoIterator<Item = ClusterId> {
        translation.backends.iter().map(|(_, cluster)| cluster.clone())
    }
}

/// A host of a listener.
pub type HostKey = (ListenerId, Host);

/// Translations by the hosts that they name.
pub struct TranslationsByHost;

impl Index for TranslationsByHost {
    type Of = Translations;
    type Key = HostKey;
    const NAME: &'static str = "by host";

    fn keys(_: &ObjectKey, translation: &TranslationRow) -> impl IntoIterator<Item = HostKey> {
        translation.hosts.iter().cloned()
    }
}

/// Translations by the hosts that they bring TLS for.
pub struct TlsByHost;

impl Index for TlsByHost {
    type Of = Translations;
    type Key = HostKey;
    const NAME: &'static str = "by TLS host";

    fn keys(_: &ObjectKey, translation: &TranslationRow) -> impl IntoIterator<Item = HostKey> {
        translation.tls.iter().map(|piece| (piece.listener.clone(), piece.host.clone())).collect::<Vec<_>>()
    }
}

/// Translations by the Secrets that they ask for.
pub struct SecretsAskedFor;

impl Index for SecretsAskedFor {
    type Of = Translations;
    type Key = SecretId;
    const NAME: &'static str = "by secret";

    fn keys(_: &ObjectKey, translation: &TranslationRow) -> impl IntoIterator<Item = SecretId> {
        translation.secrets.clone()
    }
}

/// Translations by the objects that they are made of.
pub struct TranslationsBySubject;

impl Index for TranslationsBySubject {
    type Of = Translations;
    type Key = ObjectRef;
    const NAME: &'static str = "by object";

    fn keys(_: &ObjectKey, translation: &TranslationRow) -> impl IntoIterator<Item = ObjectRef> {
        std::iter::once(&translation.subject).chain(&translation.includes).cloned().collect::<Vec<_>>()
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(DefaultClass).always(());
    let translations = Translations {
        ingress: settings.ingress.clone(),
        http_proxy: settings.http_proxy.clone(),
        fetched_secrets: settings.fetched_secrets,
    };
    pipeline.index::<RootsByFqdn>();
    pipeline.derived(translations).per::<IngressKeys>().each::<HttpProxies>();
    pipeline
        .index::<ClustersInUse>()
        .index::<TranslationsByHost>()
        .index::<TlsByHost>()
        .index::<TranslationsBySubject>();
}

//! Translations: what each object of a dialect asks for.

#[cfg(test)]
pub(crate) mod given;

use crate::{dialects::Dialects, objects, pending, settings::Settings, view::TableView};
use engine::{Derived, Index, PartIndex, Reads, Table};
use kinds::Kind;
use model::{
    ClusterId, Code, FieldPath, Host, ListenerId, ObjectRef, Origin, Translation, Verdict,
    route::Action,
    shared_routes::RouteSelector,
    translation::{RoutePiece, TlsPiece},
};
use std::{collections::BTreeMap, ops::Deref, sync::Arc};

/// A translation, and what had to be looked for to make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationRow {
    /// The translation.
    pub translation: Translation,
    /// The Secrets that it asked for, whether they were there or not.
    pub secrets: Vec<ObjectRef>,
    /// While it is pending as a whole, and so asks for nothing: the hosts that it will ask for, sorted.
    pub claimed: Vec<Host>,
    /// The clusters that its objects refer to, each with the first field that does; by object.
    pub backends: Vec<(Origin, ClusterId)>,
}

impl TranslationRow {
    /// A translation, with the clusters that it refers to.
    pub fn new(translation: Translation, secrets: Vec<ObjectRef>) -> Self {
        let mut backends: BTreeMap<(&ObjectRef, &ClusterId), &FieldPath> = BTreeMap::new();
        for route in translation.all_routes() {
            let Action::Forward(forward) = &route.action else { continue };
            let Origin { object, field } = &route.origin;
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
    dialects: Dialects,
    fetched_secrets: bool,
}

impl Table for Translations {
    type Key = ObjectRef;
    type Value = TranslationRow;
    const NAME: &'static str = "translations";
}

impl Derived for Translations {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<TranslationRow> {
        #[cfg(test)]
        if let Some(given) = reads.get::<given::GivenTranslations>(key) {
            return Some(TranslationRow::new(Translation::clone(given), Vec::new()));
        }
        let mut view = TableView::new(reads, self.fetched_secrets);
        let translation = self.dialects.of(key.kind)?.translate(key, &mut view)?;
        let secrets = view.into_secrets();
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

    /// Nothing is known about what the object asks for, not even its hosts: all that can be done is to say so.
    fn on_panic(&self, key: &ObjectRef, message: &str) -> Option<TranslationRow> {
        let verdict = Verdict::new(Code::TranslationFailed, key.at(""), message);
        let translation = Translation { verdicts: vec![verdict], ..Translation::empty(key.clone()) };
        Some(TranslationRow::new(translation, Vec::new()))
    }
}

/// Translations by the clusters that their routes use.
pub struct ClustersInUse;

impl Index for ClustersInUse {
    type Of = Translations;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ClusterId> {
        let forwards = translation.all_routes().filter_map(|route| match &route.action {
            Action::Forward(forward) => Some(forward),
            Action::Redirect(_) | Action::DirectResponse(_) => None,
        });
        let streams = translation.tls.iter().filter_map(|piece| piece.mode.tcp());
        let streams = streams.flat_map(|proxy| proxy.clusters.iter().map(|(cluster, _)| cluster.clone()));
        forwards.flat_map(|forward| forward.targets().cloned()).chain(streams).collect::<Vec<_>>()
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

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = HostKey> {
        translation.hosts.iter().cloned()
    }
}

/// What a translation contributes to one virtual host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contribution<'v> {
    /// Its routes for the host.
    pub routes: &'v [RoutePiece],
    /// By what the host takes shared routes.
    pub selectors: &'v [RouteSelector],
}

/// A change of what a translation contributes to other hosts does not reach a virtual host.
impl PartIndex for TranslationsByHost {
    type Part<'v> = Contribution<'v>;

    fn part<'v>((listener, host): &HostKey, translation: &'v TranslationRow) -> Contribution<'v> {
        let (routes, selectors) = (translation.routes_of(listener, host), translation.selectors_of(listener, host));
        Contribution { routes, selectors }
    }
}

/// Translations by the hosts that they bring TLS for.
pub struct TlsByHost;

impl Index for TlsByHost {
    type Of = Translations;
    type Key = HostKey;
    const NAME: &'static str = "by TLS host";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = HostKey> {
        translation.tls.iter().map(|piece| (piece.listener.clone(), piece.host.clone())).collect::<Vec<_>>()
    }
}

/// What a translation contributes to a TLS host.
impl PartIndex for TlsByHost {
    type Part<'v> = &'v [TlsPiece];

    fn part<'v>((listener, host): &HostKey, translation: &'v TranslationRow) -> &'v [TlsPiece] {
        translation.tls_of(listener, host)
    }
}

/// Translations by the Secrets that they ask for.
pub struct SecretsAskedFor;

impl Index for SecretsAskedFor {
    type Of = Translations;
    type Key = ObjectRef;
    const NAME: &'static str = "by secret";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ObjectRef> {
        translation.secrets.clone()
    }
}

/// Translations by the objects that they are made of.
pub struct TranslationsBySubject;

impl Index for TranslationsBySubject {
    type Of = Translations;
    type Key = ObjectRef;
    const NAME: &'static str = "by object";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ObjectRef> {
        std::iter::once(&translation.subject).chain(&translation.includes).cloned().collect::<Vec<_>>()
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    let dialects = Dialects::new(settings);
    dialects.iter().for_each(|dialect| dialect.declare(pipeline));
    let kinds: Vec<Kind> = dialects.iter().flat_map(|dialect| dialect.translates()).copied().collect();
    #[cfg(test)]
    pipeline.input::<given::GivenTranslations>();
    let translations = pipeline.derived(Translations { dialects, fetched_secrets: settings.fetched_secrets });
    #[cfg(test)]
    let translations = translations.each::<given::GivenTranslations>();
    objects::follow(translations, &kinds);
    pipeline.parts::<TranslationsByHost>().parts::<TlsByHost>();
    pipeline.index::<ClustersInUse>().index::<TranslationsBySubject>();
}

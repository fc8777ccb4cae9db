//! Translations: what each object of a dialect asks for.

use crate::{
    authorization,
    content::ContentHashes,
    dialects::Dialects,
    emissary,
    equal_facts::EqualFacts,
    large, objects, partition,
    pending::{self, Claimed},
    settings::Settings,
    view::TableView,
};
use engine::{Derived, Index, Input, PartIndex, Reads, Table};
use kinds::Kind;
use model::{
    ClusterId, Code, FieldPath, FleetId, Host, ListenerId, ObjectRef, Origin, Translation, Verdict,
    listener::{ListenerClaim, StreamPiece},
    shared_routes::{ConditionalHost, RouteSelector, SharedRoutes},
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
    /// While it is pending as a whole, and so asks for nothing: what it will ask for.
    pub claimed: Claimed,
    /// The clusters that its objects refer to, each with the first field that does; by object.
    pub backends: Vec<(Origin, ClusterId)>,
    /// What tells whether an edit of one of its objects has changed it.
    pub content: ContentHashes,
}

impl TranslationRow {
    /// A translation, with the clusters that it refers to.
    pub fn new(translation: Translation, secrets: Vec<ObjectRef>) -> Self {
        let mut backends: BTreeMap<(&ObjectRef, &ClusterId), &FieldPath> = BTreeMap::new();
        for route in translation.all_routes() {
            let Origin { object, field } = &route.origin;
            for cluster in route.targets() {
                backends.entry((object, cluster)).or_insert(field);
            }
        }
        for piece in &translation.tls {
            let Origin { object, field } = &piece.origin;
            for (cluster, _) in piece.mode.tcp().into_iter().flat_map(|proxy| &proxy.clusters) {
                backends.entry((object, cluster)).or_insert(field);
            }
        }
        for piece in &translation.streams {
            let Origin { object, field } = &piece.origin;
            for (cluster, _) in &piece.target.clusters {
                backends.entry((object, cluster)).or_insert(field);
            }
        }
        let backends =
            backends.into_iter().map(|((object, cluster), field)| (object.at(field.clone()), cluster.clone()));
        let backends = backends.collect();
        let content = ContentHashes::new(&translation);
        Self { translation, secrets, claimed: Claimed::default(), backends, content }
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
    equal_facts: EqualFacts,
}

impl Table for Translations {
    type Key = ObjectRef;
    type Value = TranslationRow;
    const NAME: &'static str = "translations";
}

impl Derived for Translations {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<TranslationRow> {
        let Some(dialect) = self.dialects.of(key.kind) else {
            let contributed = reads.get::<Contributed>(key)?;
            let contributed = Translation::clone(contributed);
            return Some(TranslationRow::new(authorization::with_global(contributed, reads), Vec::new()));
        };
        let mut view = TableView::new(reads, self.fetched_secrets);
        let mut translation = dialect.translate(key, &mut view)?;
        translation.facts = translation.facts.map(|facts| self.equal_facts.shared(facts));
        let secrets = view.into_secrets();
        let translation = authorization::with_global(translation, reads);
        if translation.pending.is_empty() {
            return Some(TranslationRow::new(translation, secrets));
        }
        reads.set_pending();
        let claimed = Claimed::by(&translation);
        Some(TranslationRow { claimed, ..TranslationRow::new(pending::without(translation), secrets) })
    }

    fn while_pending(&self, good: &Arc<TranslationRow>, computed: Option<TranslationRow>) -> Arc<TranslationRow> {
        match computed {
            Some(computed) => Arc::new(pending::kept(good, computed)),
            None => Arc::clone(good),
        }
    }

    fn is_large(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> bool {
        let mut view = TableView::new(reads, self.fetched_secrets);
        self.dialects.of(key.kind).is_some_and(|dialect| dialect.exceeds(key, large::ROUTES, &mut view))
    }

    /// Nothing is known about what the object asks for, not even its hosts: all that can be done is to say so.
    fn on_panic(&self, key: &ObjectRef, message: &str) -> Option<TranslationRow> {
        let verdict = Verdict::new(Code::TranslationFailed, key.at(""), message);
        let translation = Translation { verdicts: vec![verdict], ..Translation::empty(key.clone()) };
        Some(TranslationRow::new(translation, Vec::new()))
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_translation(key))
    }
}

/// Translations that are not made of an object here, by keys of kinds that no dialect has. They are put in as they are
/// ([`crate::Pipeline::contribute`]).
pub struct Contributed;

impl Table for Contributed {
    type Key = ObjectRef;
    type Value = Translation;
    const NAME: &'static str = "contributed translations";
}

impl Input for Contributed {}

/// The clusters that a translation uses, and in which fleet.
pub fn clusters_by_fleet(translation: &TranslationRow) -> impl Iterator<Item = (&FleetId, &ClusterId)> {
    let own = translation.routes.iter().map(|piece| (piece.listener.fleet(), &piece.route));
    let shared = translation.shared.iter();
    let shared = shared.flat_map(|shared| shared.routes.iter().map(|route| (&shared.pool.fleet, route)));
    let routes = own.chain(shared).flat_map(|(fleet, route)| route.targets().map(move |cluster| (fleet, cluster)));
    let tls = translation.tls.iter().filter_map(|piece| Some((piece.listener.fleet(), &piece.mode.tcp()?.clusters)));
    let streams = translation.streams.iter().map(|piece| (piece.listener.fleet(), &piece.target.clusters));
    let passed_on = tls.chain(streams);
    routes.chain(passed_on.flat_map(|(fleet, clusters)| clusters.iter().map(move |(cluster, _)| (fleet, cluster))))
}

/// Translations by the clusters that they use in the shared fleet.
pub struct SharedClustersInUse;

impl Index for SharedClustersInUse {
    type Of = Translations;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ClusterId> {
        let shared = clusters_by_fleet(translation).filter(|(fleet, _)| **fleet == FleetId::Shared);
        shared.map(|(_, cluster)| cluster.clone()).collect::<Vec<_>>()
    }
}

/// Translations by the clusters that they use in other fleets.
pub struct NamedClustersInUse;

impl Index for NamedClustersInUse {
    type Of = Translations;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster of named fleets";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ClusterId> {
        let named = clusters_by_fleet(translation).filter(|(fleet, _)| **fleet != FleetId::Shared);
        named.map(|(_, cluster)| cluster.clone()).collect::<Vec<_>>()
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

/// What a translation says about one of the objects that it is made of: what there is to say about its own fields, and where all
/// of them are served. A change of what the others bring does not reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectPart<'v> {
    /// Whether the translation is of this object, and not of one that includes it.
    pub is_subject: bool,
    /// Whether it is only served when another object includes it; for the subject alone.
    pub is_child: bool,
    /// Whether what it brings depends on a Secret that has not been read yet.
    pub is_pending: bool,
    /// Whether the whole translation does.
    pub is_subject_pending: bool,
    /// Whether the translation has routes, of whichever sort.
    pub has_routes: bool,
    /// Those that are for hosts that select them.
    pub shared: &'v [SharedRoutes],
    /// Whether the translation has providers of tokens.
    pub has_jwt_providers: bool,
    /// What is said about the object.
    pub verdicts: &'v [Verdict],
    /// The clusters that it refers to.
    pub backends: &'v [(Origin, ClusterId)],
    /// The hosts of the translation.
    pub hosts: &'v [(ListenerId, Host)],
    /// Its hosts that are parts of others.
    pub conditional: &'v [ConditionalHost],
    /// Its TLS hosts.
    pub tls: &'v [TlsPiece],
    /// The listeners that it asks for.
    pub listeners: &'v [ListenerClaim],
    /// Where it wants listeners to lead.
    pub streams: &'v [StreamPiece],
    /// The objects of which it says how proxies connect to them.
    pub configures: &'v [ObjectRef],
}

impl PartIndex for TranslationsBySubject {
    type Part<'v> = ObjectPart<'v>;

    fn part<'v>(object: &ObjectRef, translation: &'v TranslationRow) -> ObjectPart<'v> {
        let is_subject = translation.subject == *object;
        ObjectPart {
            is_subject,
            is_child: is_subject && translation.is_child,
            is_pending: translation.is_pending(object),
            is_subject_pending: translation.is_pending(&translation.subject),
            has_routes: translation.all_routes().next().is_some(),
            shared: &translation.shared,
            has_jwt_providers: is_subject && !translation.jwt_providers.is_empty(),
            verdicts: Verdict::about(object, &translation.verdicts),
            backends: translation.backends_of(object),
            hosts: &translation.hosts,
            conditional: &translation.conditional,
            tls: &translation.tls,
            listeners: &translation.listeners,
            streams: &translation.streams,
            configures: &translation.configures,
        }
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    let dialects = Dialects::all();
    dialects.iter().for_each(|dialect| dialect.declare(pipeline, settings.fetched_secrets));
    let translated = dialects.iter().flat_map(|dialect| dialect.translates()).copied();
    // Those of Emissary come from a table of their own.
    let kinds: Vec<Kind> = translated.filter(|kind| kind.group() != kinds::emissary::GROUP).collect();
    pipeline.input::<Contributed>();
    let (fetched_secrets, equal_facts) = (settings.fetched_secrets, EqualFacts::default());
    let translations = pipeline.derived(Translations { dialects, fetched_secrets, equal_facts });
    let translations = emissary::each(translations.each::<Contributed>().fans_out());
    objects::follow(translations, &kinds);
    pipeline.parts::<TranslationsByHost>().parts::<TlsByHost>().parts::<TranslationsBySubject>();
    pipeline.index::<SharedClustersInUse>().index::<NamedClustersInUse>();
}

//! Units: what each object of a dialect asks for.

use crate::{
    door::Door,
    objects::{HttpProxies, IngressClasses, Ingresses, Named, RootsByFqdn},
    pending,
    settings::Settings,
};
use engine::{Derived, Index, Reads, Table};
use kinds::{Ingress, Kind, ObjectKey};
use model::{ClusterId, Code, FieldPath, Host, ListenerId, ObjectRef, Origin, SecretId, Unit, Verdict, route::Action};
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

/// A unit, and what had to be looked for to make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The unit.
    pub unit: Unit,
    /// The Secrets that it asked for, whether they were there or not.
    pub secrets: Vec<SecretId>,
    /// While it is pending as a whole, and so asks for nothing: the hosts that it will ask for, sorted.
    pub claimed: Vec<Host>,
    /// The clusters that its objects refer to, each with the first field that does; by object.
    pub backends: Vec<(Origin, ClusterId)>,
}

impl Asked {
    /// A unit, with the clusters that it refers to.
    pub fn new(unit: Unit, secrets: Vec<SecretId>) -> Self {
        let mut backends: BTreeMap<(&ObjectRef, &ClusterId), &FieldPath> = BTreeMap::new();
        for piece in &unit.routes {
            let Action::Forward(forward) = &piece.route.action else { continue };
            let Origin { object, field } = &piece.route.origin;
            for cluster in forward.targets() {
                backends.entry((object, cluster)).or_insert(field);
            }
        }
        for piece in &unit.tls {
            let Origin { object, field } = &piece.origin;
            for (cluster, _) in piece.handling.tcp().into_iter().flat_map(|proxy| &proxy.clusters) {
                backends.entry((object, cluster)).or_insert(field);
            }
        }
        let backends =
            backends.into_iter().map(|((object, cluster), field)| (object.at(field.clone()), cluster.clone()));
        let backends = backends.collect();
        Self { unit, secrets, claimed: Vec::new(), backends }
    }

    /// The clusters that one of its objects refers to.
    pub fn backends_of(&self, object: &ObjectRef) -> &[(Origin, ClusterId)] {
        let start = self.backends.partition_point(|(origin, _)| origin.object < *object);
        let end = start + self.backends[start..].partition_point(|(origin, _)| origin.object == *object);
        &self.backends[start..end]
    }
}

impl Deref for Asked {
    type Target = Unit;

    fn deref(&self) -> &Unit {
        &self.unit
    }
}

/// A unit for each object of a dialect that is ours.
pub struct Units {
    ingress: dialect_ingress::Settings,
    http_proxy: dialect_httpproxy::Settings,
    fetched_secrets: bool,
}

impl Table for Units {
    type Key = ObjectKey;
    type Value = Asked;
    const NAME: &'static str = "units";
}

impl Derived for Units {
    fn compute(&self, key: &ObjectKey, reads: &mut Reads<'_>) -> Option<Asked> {
        let (unit, secrets) = match key.kind {
            Kind::Ingress => {
                let object = reads.get::<Ingresses>(&Named::from(key))?;
                let mut door = Door::new(reads, self.fetched_secrets);
                (dialect_ingress::unit(object, &mut door, &self.ingress)?, door.into_secrets())
            }
            Kind::HttpProxy(vendor) => {
                let object = reads.get::<HttpProxies>(key)?;
                let mut door = Door::new(reads, self.fetched_secrets);
                (dialect_httpproxy::unit(vendor, object, &mut door, &self.http_proxy)?, door.into_secrets())
            }
            _ => return None,
        };
        if unit.pending.is_empty() {
            return Some(Asked::new(unit, secrets));
        }
        reads.set_pending();
        let claimed = pending::claimed(&unit);
        Some(Asked { claimed, ..Asked::new(pending::without(unit), secrets) })
    }

    fn while_pending(&self, good: &Arc<Asked>, computed: Option<Asked>) -> Arc<Asked> {
        match computed {
            Some(computed) => Arc::new(pending::kept(good, computed)),
            None => Arc::clone(good),
        }
    }

    /// Nothing is known about what the object asks for, not even its hosts: all that can be done is to say so.
    fn on_panic(&self, key: &ObjectKey, message: &str) -> Option<Asked> {
        let subject = subject(key);
        let verdict = Verdict::new(Code::TranslationFailed, subject.at(""), message);
        Some(Asked::new(Unit { verdicts: vec![verdict], ..Unit::empty(subject) }, Vec::new()))
    }
}

/// An object as verdicts name it.
pub fn subject(key: &ObjectKey) -> ObjectRef {
    match key.kind {
        Kind::HttpProxy(vendor) => dialect_httpproxy::reference(vendor, &key.namespace, &key.name),
        kind => ObjectRef::new(kind.name(), &key.namespace, &key.name),
    }
}

/// Ingresses by the key of their unit.
pub struct IngressKeys;

impl Index for IngressKeys {
    type Of = Ingresses;
    type Key = ObjectKey;
    const NAME: &'static str = "by key";

    fn keys(name: &Named, _: &Ingress) -> impl IntoIterator<Item = ObjectKey> {
        [ObjectKey::new(Kind::Ingress, name.namespace.clone(), name.name.clone())]
    }
}

/// Units by the clusters that their routes use.
pub struct ClustersInUse;

impl Index for ClustersInUse {
    type Of = Units;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster";

    fn keys(_: &ObjectKey, unit: &Asked) -> impl IntoIterator<Item = ClusterId> {
        let forwards = unit.routes.iter().filter_map(|piece| match &piece.route.action {
            Action::Forward(forward) => Some(forward),
            Action::Redirect(_) | Action::Respond(_) => None,
        });
        let streams = unit.tls.iter().filter_map(|piece| piece.handling.tcp());
        let streams = streams.flat_map(|proxy| proxy.clusters.iter().map(|(cluster, _)| cluster.clone()));
        forwards.flat_map(|forward| forward.targets().cloned()).chain(streams).collect::<Vec<_>>()
    }
}

/// A host of a listener.
pub type HostKey = (ListenerId, Host);

/// Units by the hosts that they name.
pub struct UnitsByHost;

impl Index for UnitsByHost {
    type Of = Units;
    type Key = HostKey;
    const NAME: &'static str = "by host";

    fn keys(_: &ObjectKey, unit: &Asked) -> impl IntoIterator<Item = HostKey> {
        unit.hosts.iter().cloned()
    }
}

/// Units by the hosts that they bring TLS for.
pub struct TlsByHost;

impl Index for TlsByHost {
    type Of = Units;
    type Key = HostKey;
    const NAME: &'static str = "by TLS host";

    fn keys(_: &ObjectKey, unit: &Asked) -> impl IntoIterator<Item = HostKey> {
        unit.tls.iter().map(|piece| (piece.listener.clone(), piece.host.clone())).collect::<Vec<_>>()
    }
}

/// Units by the Secrets that they ask for.
pub struct SecretsAskedFor;

impl Index for SecretsAskedFor {
    type Of = Units;
    type Key = SecretId;
    const NAME: &'static str = "by secret";

    fn keys(_: &ObjectKey, unit: &Asked) -> impl IntoIterator<Item = SecretId> {
        unit.secrets.clone()
    }
}

/// Units by the objects that they are made of.
pub struct UnitsBySubject;

impl Index for UnitsBySubject {
    type Of = Units;
    type Key = ObjectRef;
    const NAME: &'static str = "by object";

    fn keys(_: &ObjectKey, unit: &Asked) -> impl IntoIterator<Item = ObjectRef> {
        std::iter::once(&unit.subject).chain(&unit.members).cloned().collect::<Vec<_>>()
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(DefaultClass).always(());
    let units = Units {
        ingress: settings.ingress.clone(),
        http_proxy: settings.http_proxy.clone(),
        fetched_secrets: settings.fetched_secrets,
    };
    pipeline.index::<RootsByFqdn>();
    pipeline.derived(units).per::<IngressKeys>().each::<HttpProxies>();
    pipeline.index::<ClustersInUse>().index::<UnitsByHost>().index::<TlsByHost>().index::<UnitsBySubject>();
}

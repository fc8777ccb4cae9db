//! Units: what each object of a dialect asks for.

use crate::{
    door::Door,
    objects::{IngressClasses, Ingresses, Named},
    settings::Settings,
};
use engine::{Derived, Index, Reads, Table};
use model::{ClusterId, Code, Host, ListenerId, ObjectRef, SecretId, Unit, Verdict, route::Action};
use std::ops::Deref;

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
}

impl Deref for Asked {
    type Target = Unit;

    fn deref(&self) -> &Unit {
        &self.unit
    }
}

/// A unit for each Ingress that is ours.
pub struct IngressUnits(dialect_ingress::Settings);

impl Table for IngressUnits {
    type Key = Named;
    type Value = Asked;
    const NAME: &'static str = "ingress units";
}

impl Derived for IngressUnits {
    fn compute(&self, name: &Named, reads: &mut Reads<'_>) -> Option<Asked> {
        let object = reads.get::<Ingresses>(name)?;
        let mut door = Door::new(reads);
        let unit = dialect_ingress::unit(object, &mut door, &self.0)?;
        Some(Asked { unit, secrets: door.into_secrets() })
    }

    /// Nothing is known about what the object asks for, not even its hosts: all that can be done is to say so.
    fn on_panic(&self, name: &Named, message: &str) -> Option<Asked> {
        let subject = ObjectRef { kind: "Ingress", namespace: name.namespace.clone(), name: name.name.clone() };
        let verdict = Verdict::new(Code::TranslationFailed, subject.at(""), message);
        let unit = Unit { subject, hosts: Vec::new(), routes: Vec::new(), tls: Vec::new(), verdicts: vec![verdict] };
        Some(Asked { unit, secrets: Vec::new() })
    }
}

/// Units by the clusters that their routes use.
pub struct ClustersInUse;

impl Index for ClustersInUse {
    type Of = IngressUnits;
    type Key = ClusterId;
    const NAME: &'static str = "by cluster";

    fn keys(_: &Named, unit: &Asked) -> impl IntoIterator<Item = ClusterId> {
        let forwards = unit.routes.iter().filter_map(|piece| match &piece.route.action {
            Action::Forward(forward) => Some(forward),
            Action::Redirect(_) | Action::Respond(_) => None,
        });
        forwards.flat_map(|forward| forward.clusters.iter().map(|share| share.cluster.clone())).collect::<Vec<_>>()
    }
}

/// A host of a listener.
pub type HostKey = (ListenerId, Host);

/// Units by the hosts that they name.
pub struct UnitsByHost;

impl Index for UnitsByHost {
    type Of = IngressUnits;
    type Key = HostKey;
    const NAME: &'static str = "by host";

    fn keys(_: &Named, unit: &Asked) -> impl IntoIterator<Item = HostKey> {
        unit.hosts.iter().cloned()
    }
}

/// Units by the hosts that they bring TLS for.
pub struct TlsByHost;

impl Index for TlsByHost {
    type Of = IngressUnits;
    type Key = HostKey;
    const NAME: &'static str = "by TLS host";

    fn keys(_: &Named, unit: &Asked) -> impl IntoIterator<Item = HostKey> {
        unit.tls.iter().map(|piece| (piece.listener.clone(), piece.host.clone())).collect::<Vec<_>>()
    }
}

/// Units by the Secrets that they ask for.
pub struct SecretsAskedFor;

impl Index for SecretsAskedFor {
    type Of = IngressUnits;
    type Key = SecretId;
    const NAME: &'static str = "by secret";

    fn keys(_: &Named, unit: &Asked) -> impl IntoIterator<Item = SecretId> {
        unit.secrets.clone()
    }
}

/// Units by the object that they are of.
pub struct UnitsBySubject;

impl Index for UnitsBySubject {
    type Of = IngressUnits;
    type Key = ObjectRef;
    const NAME: &'static str = "by object";

    fn keys(_: &Named, unit: &Asked) -> impl IntoIterator<Item = ObjectRef> {
        [unit.subject.clone()]
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline, settings: &Settings) {
    pipeline.derived(DefaultClass).always(());
    pipeline.derived(IngressUnits(settings.ingress.clone())).each::<Ingresses>();
    pipeline.index::<ClustersInUse>().index::<UnitsByHost>().index::<TlsByHost>().index::<UnitsBySubject>();
}

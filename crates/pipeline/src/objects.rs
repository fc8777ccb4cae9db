//! The objects, one table for each type of the [table of kinds](kinds::kind): where every change comes in.

use engine::{Declared, Derived, Engine, Index, Input, Table};
use kinds::{
    ConfigMap, EndpointSlice, Kind, Object, ObjectRef, ReferenceGrant, Secret, Service, TlsCertificateDelegation,
    Typed, kind,
    object::{TypeVisitor, visit_type_of, visit_types},
};
use std::{marker::PhantomData, sync::Arc};

/// The objects of a type, of every group it is read from.
pub struct Objects<T>(PhantomData<T>);

impl<T: Typed> Table for Objects<T> {
    type Key = ObjectRef;
    type Value = T;
    const NAME: &'static str = match T::KINDS[0].plural().as_bytes() {
        // There are tables of these names.
        b"hosts" => "hosts.getambassador.io",
        b"listeners" => "listeners.getambassador.io",
        _ => T::KINDS[0].plural(),
    };
}

impl<T: Typed> Input for Objects<T> {}

/// Services.
pub type Services = Objects<Service>;
/// EndpointSlices.
pub type EndpointSlices = Objects<EndpointSlice>;
/// Secrets.
pub type Secrets = Objects<Secret>;
/// ConfigMaps.
pub type ConfigMaps = Objects<ConfigMap>;
/// TLSCertificateDelegations.
pub type Delegations = Objects<TlsCertificateDelegation>;
/// ReferenceGrants.
pub type Grants = Objects<ReferenceGrant>;

/// EndpointSlices by the Service whose endpoints they hold.
pub struct SlicesByService;

impl Index for SlicesByService {
    type Of = EndpointSlices;
    type Key = ObjectRef;
    const NAME: &'static str = "by service";

    fn keys(key: &ObjectRef, slice: &EndpointSlice) -> impl IntoIterator<Item = ObjectRef> {
        let service = slice.service_name().ok().flatten();
        service.map(|service| ObjectRef::new(kind::SERVICE, key.namespace.clone(), service))
    }
}

/// Delegations by the Secrets that they delegate.
pub struct DelegationsBySecret;

impl Index for DelegationsBySecret {
    type Of = Delegations;
    type Key = ObjectRef;
    const NAME: &'static str = "by secret";

    fn keys(_: &ObjectRef, delegation: &TlsCertificateDelegation) -> impl IntoIterator<Item = ObjectRef> {
        resolve::delegation::secrets(delegation).collect::<Vec<_>>()
    }
}

/// Who refers to what: the namespace that is referred to, and the kind and namespace of those who refer.
type Source = (Arc<str>, Kind, Arc<str>);

/// ReferenceGrants by whom they let refer to objects of their namespace.
pub struct GrantsBySource;

impl Index for GrantsBySource {
    type Of = Grants;
    type Key = Source;
    const NAME: &'static str = "by source";

    fn keys(key: &ObjectRef, grant: &ReferenceGrant) -> impl IntoIterator<Item = Source> {
        let mut sources: Vec<Source> = Vec::new();
        for (group, name, namespace) in resolve::grant::sources(grant) {
            let kind = kind::named(name).find(|kind| kind.group() == group);
            sources.extend(kind.map(|kind| (key.namespace.clone(), kind, namespace.into())));
        }
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

/// Declares the tables.
pub fn declare(pipeline: &mut engine::Pipeline) {
    struct Declare<'p>(&'p mut engine::Pipeline);

    impl TypeVisitor for Declare<'_> {
        fn visit<T: Typed>(&mut self) {
            self.0.input::<Objects<T>>().fans_out();
        }
    }

    visit_types(&mut Declare(pipeline));
    pipeline.index::<SlicesByService>().index::<DelegationsBySecret>().index::<GrantsBySource>();
}

/// Gives a table a row for each object of these kinds.
pub fn follow<'p, D: Derived<Key = ObjectRef>>(table: Declared<'p, D>, kinds: &[Kind]) -> Declared<'p, D> {
    struct Follow<'p, 'k, D>(Option<Declared<'p, D>>, &'k [Kind]);

    impl<D: Derived<Key = ObjectRef>> TypeVisitor for Follow<'_, '_, D> {
        fn visit<T: Typed>(&mut self) {
            if T::KINDS.iter().any(|kind| self.1.contains(kind)) {
                self.0 = self.0.take().map(Declared::each::<Objects<T>>);
            }
        }
    }

    let mut follow = Follow(Some(table), kinds);
    visit_types(&mut follow);
    follow.0.expect("the table is only ever taken to be put back")
}

/// Puts an object into the table of its type, without its status: what we write ourselves must not wake those who read it.
pub fn set(engine: &mut Engine, key: &ObjectRef, object: &Object) {
    struct Set<'a>(&'a mut Engine, &'a ObjectRef, &'a Object);

    impl TypeVisitor for Set<'_> {
        fn visit<T: Typed>(&mut self) {
            if let Some(object) = self.2.get::<T>() {
                self.0.set::<Objects<T>>(self.1, T::without_status(object.clone()));
            }
        }
    }

    visit_type_of(key.kind, &mut Set(engine, key, object));
}

/// Takes an object out.
pub fn remove(engine: &mut Engine, key: &ObjectRef) {
    struct Remove<'a>(&'a mut Engine, &'a ObjectRef);

    impl TypeVisitor for Remove<'_> {
        fn visit<T: Typed>(&mut self) {
            self.0.remove::<Objects<T>>(self.1);
        }
    }

    visit_type_of(key.kind, &mut Remove(engine, key));
}

/// How many objects there are, by the name of their kind.
pub fn counts(engine: &Engine) -> Vec<(&'static str, usize)> {
    struct Count<'a>(&'a Engine, Vec<(&'static str, usize)>);

    impl TypeVisitor for Count<'_> {
        fn visit<T: Typed>(&mut self) {
            let kind = T::KINDS.first().map_or(Objects::<T>::NAME, |kind| kind.name());
            self.1.push((kind, self.0.counters_of::<Objects<T>>().rows));
        }
    }

    let mut count = Count(engine, Vec::new());
    visit_types(&mut count);
    count.1
}

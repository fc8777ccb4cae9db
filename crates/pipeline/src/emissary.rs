//! The objects of Emissary that are for this instance, those in annotations included.
//!
//! In: the objects of the API server or of files, and the [annotations](annotation) of Services and Ingresses. Out: a table for each
//! type, [`Emissary`], which dialects read in place of [`Objects`]: only objects whose `ambassador_id` names this instance are in
//! it. An object of its own wins over one of the same kind, namespace and name in an annotation, and is older than any in an
//! annotation where two are in conflict; of several annotations that of the older object wins ([`Owners`]). Verdicts about an object
//! in an annotation are reported on the annotated object, with the line in the annotation ([`AnnotationVerdicts`]).

pub mod annotation;
pub mod annotation_verdicts;
pub mod authorization;
pub mod logs;
pub mod rate_limits;
pub mod runtime_flags;
pub mod script;
pub mod tracing;

use crate::{objects::Objects, settings::ForEmissary};
use annotation::{AnnotatedIngresses, AnnotatedServices, AnnotationObjects, AnnotationObjectsByKey};
use dialect_emissary::{
    Settings,
    module::{self, ModuleInEffect},
};
use engine::{Declared, Derived, Index, Reads, Table};
use kinds::{
    Object, Typed,
    emissary::{self, HasAmbassadorId, Module},
};
use model::ObjectRef;
use std::{marker::PhantomData, sync::Arc};

pub use annotation_verdicts::AnnotationVerdicts;

/// The objects of a type that are for this instance.
pub struct Emissary<T>(PhantomData<T>);

/// An object, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmissaryObject<T> {
    /// The object.
    pub object: Arc<T>,
    /// The Service or Ingress in whose annotation it stands, if it is no object of its own.
    pub annotated: Option<ObjectRef>,
}

impl<T: Typed> Table for Emissary<T> {
    type Key = ObjectRef;
    type Value = EmissaryObject<T>;
    const NAME: &'static str = name(T::KINDS[0].plural());
}

/// The name of a table: that of the objects is taken.
const fn name(plural: &'static str) -> &'static str {
    match plural.as_bytes() {
        b"authservices" => "authservices of this id",
        b"consulresolvers" => "consulresolvers of this id",
        b"devportals" => "devportals of this id",
        b"hosts" => "hosts of this id",
        b"kubernetesendpointresolvers" => "kubernetesendpointresolvers of this id",
        b"kubernetesserviceresolvers" => "kubernetesserviceresolvers of this id",
        b"listeners" => "listeners of this id",
        b"logservices" => "logservices of this id",
        b"mappings" => "mappings of this id",
        b"modules" => "modules of this id",
        b"ratelimitservices" => "ratelimitservices of this id",
        b"tcpmappings" => "tcpmappings of this id",
        b"tlscontexts" => "tlscontexts of this id",
        b"tracingservices" => "tracingservices of this id",
        _ => panic!("every kind of Emissary is listed here"),
    }
}

impl<T: Typed + HasAmbassadorId> Derived for Emissary<T> {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<EmissaryObject<T>> {
        if let Some(object) = own::<T>(key, reads) {
            return Some(EmissaryObject { object, annotated: None });
        }
        let Owner::Annotation(annotated) = &**reads.get::<Owners>(key)? else { return None };
        let content = reads.get::<AnnotationObjects>(annotated)?;
        let object = content.find(key)?.object.get::<T>()?.clone();
        Some(EmissaryObject { object, annotated: Some(annotated.clone()) })
    }
}

/// The object of the API server, if it is for this instance.
fn own<T: Typed + HasAmbassadorId>(key: &ObjectRef, reads: &mut Reads<'_>) -> Option<Arc<T>> {
    let settings = reads.get::<ForEmissary>(&())?;
    let object = reads.get::<Objects<T>>(key)?;
    emissary::is_for(object.ambassador_id(), &settings.ambassador_id).then(|| object.clone())
}

/// Objects in annotations by type: the keys of [`Emissary`] that are no objects of their own.
pub struct AnnotationObjectsByType<T>(PhantomData<T>);

impl<T: Typed> Index for AnnotationObjectsByType<T> {
    type Of = Owners;
    type Key = ObjectRef;
    const NAME: &'static str = T::KINDS[0].plural();

    fn keys(key: &ObjectRef, _: &Owner) -> impl IntoIterator<Item = ObjectRef> {
        T::KINDS.contains(&key.kind).then(|| key.clone())
    }
}

/// All objects of a type.
pub(crate) fn all<T: Typed + HasAmbassadorId>(reads: &mut Reads<'_>) -> Vec<(ObjectRef, Arc<T>)> {
    let names: Vec<_> = reads.scan::<Emissary<T>>().into_iter().cloned().collect();
    let objects = names.into_iter().filter_map(|name| {
        let object = reads.get::<Emissary<T>>(&name)?.object.clone();
        Some((name, object))
    });
    objects.collect()
}

/// Whether an object in an annotation is for this instance.
fn is_ours(object: &Object, settings: &Settings) -> bool {
    ambassador_id(object).is_some_and(|ids| emissary::is_for(ids, &settings.ambassador_id))
}

/// Who holds an object that stands in at least one annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The API server: the annotations lose.
    ApiServer,
    /// This Service or Ingress.
    Annotation(ObjectRef),
    /// Nobody: it is for other instances.
    OtherInstance,
}

/// Who holds each object that stands in an annotation.
pub struct Owners;

impl Table for Owners {
    type Key = ObjectRef;
    type Value = Owner;
    const NAME: &'static str = "owners of objects in annotations";
}

impl Derived for Owners {
    fn compute(&self, key: &ObjectRef, reads: &mut Reads<'_>) -> Option<Owner> {
        if is_own(key, reads) {
            return Some(Owner::ApiServer);
        }
        let settings = reads.get::<ForEmissary>(&())?;
        let annotated: Vec<_> = reads.probe::<AnnotationObjectsByKey>(key).collect();
        let ours = annotated.into_iter().filter_map(|annotated| {
            let content = reads.get::<AnnotationObjects>(annotated)?.find(key)?;
            is_ours(&content.object, settings).then(|| (content.object.meta().created, annotated))
        });
        Some(ours.min().map_or(Owner::OtherInstance, |(_, annotated)| Owner::Annotation(annotated.clone())))
    }
}

/// The Module that is in effect: one for the whole instance.
pub struct Modules;

impl Table for Modules {
    type Key = ();
    type Value = ModuleInEffect;
    const NAME: &'static str = "Module in effect";
}

impl Derived for Modules {
    fn compute(&self, (): &(), reads: &mut Reads<'_>) -> Option<ModuleInEffect> {
        let settings = reads.get::<ForEmissary>(&())?;
        let names = reads.scan::<Emissary<Module>>();
        let modules: Vec<_> = names.into_iter().filter_map(|name| reads.get::<Emissary<Module>>(name)).collect();
        module::in_effect(modules.into_iter().map(|module| &*module.object), settings)
    }
}

macro_rules! types {
    ($($type:ty),* $(,)?) => {
        /// Whether there is an object of the API server that is for this instance.
        fn is_own(key: &ObjectRef, reads: &mut Reads<'_>) -> bool {
            $(
                if <$type as Typed>::KINDS.contains(&key.kind) {
                    return own::<$type>(key, reads).is_some();
                }
            )*
            false
        }

        /// The ids of an object.
        fn ambassador_id(object: &Object) -> Option<&kinds::Checked<emissary::AmbassadorId>> {
            $(
                if let Some(object) = object.get::<$type>() {
                    return Some(object.ambassador_id());
                }
            )*
            None
        }

        /// Gives a table a row for each object of every kind.
        pub fn each<D: Derived<Key = ObjectRef>>(table: Declared<'_, D>) -> Declared<'_, D> {
            table$(.each::<Emissary<$type>>())*
        }

        /// Declares the tables.
        pub fn declare(pipeline: &mut engine::Pipeline) {
            pipeline.index::<AnnotatedServices>().index::<AnnotatedIngresses>();
            pipeline.derived(AnnotationObjects).per::<AnnotatedServices>().per::<AnnotatedIngresses>();
            pipeline.index::<AnnotationObjectsByKey>();
            pipeline.derived(Owners).per::<AnnotationObjectsByKey>().output();
            $(
                pipeline.index::<AnnotationObjectsByType<$type>>();
                pipeline.derived(Emissary::<$type>(PhantomData)).each::<Objects<$type>>().per::<AnnotationObjectsByType<$type>>().fans_out();
            )*
            pipeline.derived(Modules).always(()).fans_out();
        }
    };
}

kinds::emissary_types!(types);

//! What is withheld because proxies refused it, or because it is too large to be sent: the part of the state that depends on
//! history, kept as an input.
//!
//! A [`Hold`] names a resource, or one host of a resource that many share, and the hash of what is withheld. The table that
//! makes the resource asks here ([`why`]) with the hash of what it has just made: if that is held, it makes a substitute from
//! the same input instead. So a hold does nothing to any other content, and an edit of the object ends it by itself. With
//! equal holds a build from nothing gives the same bytes.

use crate::{packing::HostBytes, units::HostKey};
use engine::{Index, Input, Reads, Table};
use model::{Code, ObjectRef};
use std::{marker::PhantomData, sync::Arc};
use xds::Kind;
pub use xds::{Hold, Target};

/// How much of a proxy's text is told to people; some of it shows whole messages.
const TOLD: usize = 600;

/// A host, as a target: of the resource that carries it, whichever that is.
pub fn of_host((listener, host): &HostKey) -> Target {
    Target { kind: Kind::Route, name: listener.0.clone(), host: Some(host.to_string().into()) }
}

/// Why a version is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Proxies refused it, with these words.
    Refused(Arc<str>),
    /// All resources of its type together are too large to be sent, and it is one of the largest; in words.
    TooLarge(Arc<str>),
    /// It waits until another has been tried: what proxies have of it meanwhile, if they have something.
    Waits(Option<Arc<HostBytes>>),
}

impl Why {
    /// What is said about it; nothing where it only waits.
    pub fn told(&self) -> Option<(Code, &str)> {
        match self {
            Why::Refused(text) => Some((Code::EnvoyRefused, text)),
            Why::TooLarge(text) => Some((Code::ResourceTooLarge, text)),
            Why::Waits(_) => None,
        }
    }
}

/// The versions of each target that are not sent.
pub struct Holds;

impl Table for Holds {
    type Key = Target;
    type Value = Vec<(u64, Why)>;
    const NAME: &'static str = "holds";
}

impl Input for Holds {}

/// Why this version is not sent; nothing if it is.
pub fn why<'r>(target: &Target, hash: u64, reads: &mut Reads<'r>) -> Option<&'r Why> {
    let versions = reads.get::<Holds>(target)?;
    versions.iter().find(|(held, _)| *held == hash).map(|(_, why)| why)
}

/// What is said about something that is withheld, and on which objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is withheld.
    pub target: Target,
    /// Why.
    pub code: Code,
    /// What is said.
    pub message: Arc<str>,
    /// The objects it was made from.
    pub objects: Vec<ObjectRef>,
}

impl Refused {
    /// `what` is withheld for this reason, with these words.
    pub fn new(
        target: Target,
        what: impl std::fmt::Display,
        (code, text): (Code, &str),
        objects: Vec<ObjectRef>,
    ) -> Self {
        let mut end = text.len().min(TOLD);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let more = if end < text.len() { " …" } else { "" };
        Self { target, code, message: format!("{what}: {}{more}", &text[..end]).into(), objects }
    }
}

/// A row that may be withheld.
pub trait Holdable {
    /// What is said while it is.
    fn refused(&self) -> Option<&Refused>;
}

/// The rows of a table that are withheld, by what they are held by.
pub struct InForce<T>(PhantomData<T>);

impl<T: Table> Index for InForce<T>
where
    T::Value: Holdable,
{
    type Of = T;
    type Key = Target;
    const NAME: &'static str = "withheld";

    fn keys(_: &T::Key, value: &T::Value) -> impl IntoIterator<Item = Target> {
        value.refused().map(|refused| refused.target.clone())
    }
}

/// The rows of a table that are withheld, by the objects that they were made from.
pub struct Blamed<T>(PhantomData<T>);

impl<T: Table> Index for Blamed<T>
where
    T::Value: Holdable,
{
    type Of = T;
    type Key = ObjectRef;
    const NAME: &'static str = "withheld, by object";

    fn keys(_: &T::Key, value: &T::Value) -> impl IntoIterator<Item = ObjectRef> {
        value.refused().map(|refused| refused.objects.clone()).unwrap_or_default()
    }
}

/// Declares the input.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.input::<Holds>();
}

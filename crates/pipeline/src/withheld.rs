//! What is withheld because proxies refused it, or because it is too large to be sent: the part of the state that depends on
//! history, kept as an input.
//!
//! A [`Quarantined`] names a resource, or one host of a resource that many share, and the hash of what is withheld. The table that
//! makes the resource asks here ([`why`]) with the hash of what it has just made: if that is held, it makes a substitute from
//! the same input instead. So a hold does nothing to any other content, and an edit of the object ends it by itself. With
//! equal rows here a build from nothing gives the same bytes.

use crate::{packing::HostBytes, translations::HostKey};
use engine::{Index, Input, Reads, Table};
use model::{Code, FleetId, ObjectRef};
use std::{marker::PhantomData, sync::Arc};
use xds::Kind;
pub use xds::{QuarantineTarget, Quarantined};

/// How much of a proxy's text is reported; some of it shows whole messages.
const MOST_BYTES: usize = 600;

/// What can be withheld by itself, in a fleet. What one fleet's proxies refuse is not withheld from another's, whether the two
/// have resources of the same name or the same resource: proxies of another version may accept it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetTarget {
    /// The fleet.
    pub fleet: FleetId,
    /// What is withheld in it.
    pub target: QuarantineTarget,
}

impl FleetTarget {
    /// A whole resource.
    pub fn resource(fleet: FleetId, kind: Kind, name: Arc<str>) -> Self {
        Self { fleet, target: QuarantineTarget::resource(kind, name) }
    }

    /// A target that none of the fleet's precedes: those of a fleet are neighbours in the order of targets, and begin here.
    pub fn least_of(fleet: FleetId) -> Self {
        Self::resource(fleet, Kind::ALL[0], "".into())
    }
}

/// A host, as a target: of the resource that carries it, whichever that is.
pub fn of_host((listener, host): &HostKey) -> FleetTarget {
    let host = Some(host.to_string().into());
    let target = QuarantineTarget { kind: Kind::Route, name: listener.name().clone(), host };
    FleetTarget { fleet: listener.fleet().clone(), target }
}

/// Why a version is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithholdReason {
    /// Proxies refused it, with these words.
    Withheld(Arc<str>),
    /// All resources of its type together are too large to be sent, and it is one of those that go first; in words.
    TooLarge(Arc<str>),
    /// It waits until another has been tried: what proxies have of it meanwhile, if they have something.
    Waits(Option<Arc<HostBytes>>),
}

impl WithholdReason {
    /// What is said about it; nothing where it only waits.
    pub fn reported(&self) -> Option<(Code, &str)> {
        match self {
            WithholdReason::Withheld(text) => Some((Code::EnvoyRejected, text)),
            WithholdReason::TooLarge(text) => Some((Code::ResourceTooLarge, text)),
            WithholdReason::Waits(_) => None,
        }
    }
}

/// The versions of each target that are not sent.
pub struct WithheldVersions;

impl Table for WithheldVersions {
    type Key = FleetTarget;
    type Value = Vec<(u64, WithholdReason)>;
    const NAME: &'static str = "withheld";
}

impl Input for WithheldVersions {}

/// These by what is withheld, in whichever fleet: what many fleets have is made once.
pub struct WithheldInFleets;

impl Index for WithheldInFleets {
    type Of = WithheldVersions;
    type Key = QuarantineTarget;
    const NAME: &'static str = "by target";

    fn keys(target: &FleetTarget, _: &Vec<(u64, WithholdReason)>) -> impl IntoIterator<Item = QuarantineTarget> {
        [target.target.clone()]
    }
}

/// Why this version is not sent; nothing if it is.
pub fn why<'r>(target: &FleetTarget, hash: u64, reads: &mut Reads<'r>) -> Option<&'r WithholdReason> {
    let versions = reads.get::<WithheldVersions>(target)?;
    versions.iter().find(|(held, _)| *held == hash).map(|(_, why)| why)
}

/// What is said about something that is withheld, and on which objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// What is withheld.
    pub target: FleetTarget,
    /// Why.
    pub code: Code,
    /// What is said.
    pub message: Arc<str>,
    /// The objects that are told: those that it was made from.
    pub objects: Vec<ObjectRef>,
}

impl Withheld {
    /// `what` is withheld for this reason, with these words.
    pub fn new(
        target: FleetTarget,
        what: impl std::fmt::Display,
        (code, text): (Code, &str),
        objects: Vec<ObjectRef>,
    ) -> Self {
        let mut end = text.len().min(MOST_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let more = if end < text.len() { " …" } else { "" };
        Self { target, code, message: format!("{what}: {}{more}", &text[..end]).into(), objects }
    }
}

/// A row that may be withheld.
pub trait Withholdable {
    /// What is said while it is, for each fleet in which it is.
    fn refused(&self) -> &[Withheld];
}

/// The rows of a table that are withheld, by what they are held by.
pub struct WithheldRows<T>(PhantomData<T>);

impl<T: Table> Index for WithheldRows<T>
where
    T::Value: Withholdable,
{
    type Of = T;
    type Key = FleetTarget;
    const NAME: &'static str = "withheld";

    fn keys(_: &T::Key, value: &T::Value) -> impl IntoIterator<Item = FleetTarget> {
        value.refused().iter().map(|refused| refused.target.clone()).collect::<Vec<_>>()
    }
}

/// Declares the input.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.input::<WithheldVersions>();
    pipeline.index::<WithheldInFleets>();
}

//! What is withheld because proxies refused it, or because it is too large to be sent: the part of the state that depends on
//! history, kept as an input.
//!
//! A [`Quarantined`] names a resource, or one host of a resource that many share, and the hash of what is withheld. The table that
//! makes the resource asks here ([`why`]) with the hash of what it has just made: if that is held, it makes a substitute from
//! the same input instead. So a hold does nothing to any other content, and an edit of the object ends it by itself. With
//! equal rows here a build from nothing gives the same bytes.

use crate::{packing::HostBytes, translations::HostKey};
use engine::{Index, Input, Reads, Table};
use envoy::name;
use model::{Code, FleetId, ObjectRef};
use std::{marker::PhantomData, sync::Arc};
use xds::Kind;
pub use xds::{Quarantined, Target};

/// How much of a proxy's text is told to people; some of it shows whole messages.
const TOLD: usize = 600;

/// What can be withheld by itself, and where: in one fleet, or everywhere if many may have it. Equal names of two fleets are
/// two resources: what one fleet's proxies refuse is none of the other's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FleetTarget {
    /// The fleet; nothing for what many may have.
    pub fleet: Option<FleetId>,
    /// What.
    pub target: Target,
}

impl FleetTarget {
    /// A whole resource.
    pub fn resource(fleet: Option<FleetId>, kind: Kind, name: Arc<str>) -> Self {
        Self { fleet, target: Target::resource(kind, name) }
    }

    /// The one that replicas of a fleet were told of: nothing of one fleet alone has the name of what many may have.
    pub fn told(fleet: &FleetId, target: Target) -> Self {
        let of_many = match target.kind {
            Kind::Cluster | Kind::Endpoints => !name::is_udp_cluster(&target.name) && !name::is_holder(&target.name),
            // Names of hosts have no `/`; those of Secrets have one.
            Kind::Secret => target.name.contains('/'),
            _ => false,
        };
        Self { fleet: (!of_many).then(|| fleet.clone()), target }
    }

    /// The fleet whose replicas are told of it: what many may have is the shared fleet's to tell.
    pub fn told_in(&self) -> &FleetId {
        self.fleet.as_ref().unwrap_or(&FleetId::Shared)
    }
}

/// A host, as a target: of the resource that carries it, whichever that is.
pub fn of_host((listener, host): &HostKey) -> FleetTarget {
    let target = Target { kind: Kind::Route, name: listener.name().clone(), host: Some(host.to_string().into()) };
    FleetTarget { fleet: Some(listener.fleet().clone()), target }
}

/// Why a version is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WithholdReason {
    /// Proxies refused it, with these words.
    Withheld(Arc<str>),
    /// All resources of its type together are too large to be sent, and it is one of the largest; in words.
    TooLarge(Arc<str>),
    /// It waits until another has been tried: what proxies have of it meanwhile, if they have something.
    Waits(Option<Arc<HostBytes>>),
}

impl WithholdReason {
    /// What is said about it; nothing where it only waits.
    pub fn told(&self) -> Option<(Code, &str)> {
        match self {
            WithholdReason::Withheld(text) => Some((Code::EnvoyRefused, text)),
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

/// WithholdReason this version is not sent; nothing if it is.
pub fn why<'r>(target: &FleetTarget, hash: u64, reads: &mut Reads<'r>) -> Option<&'r WithholdReason> {
    let versions = reads.get::<WithheldVersions>(target)?;
    versions.iter().find(|(held, _)| *held == hash).map(|(_, why)| why)
}

/// What is said about something that is withheld, and on which objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// What is withheld.
    pub target: FleetTarget,
    /// WithholdReason.
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
        let mut end = text.len().min(TOLD);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let more = if end < text.len() { " …" } else { "" };
        Self { target, code, message: format!("{what}: {}{more}", &text[..end]).into(), objects }
    }
}

/// A row that may be withheld.
pub trait Withholdable {
    /// What is said while it is.
    fn refused(&self) -> Option<&Withheld>;
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
        value.refused().map(|refused| refused.target.clone())
    }
}

/// Declares the input.
pub fn declare(pipeline: &mut engine::Pipeline) {
    pipeline.input::<WithheldVersions>();
}

//! Where plain TCP and UDP listeners lead.
//!
//! In: the targets that translations have for such listeners, and the listeners that are in effect. Out: [`Streams`], the target of the
//! object that comes first, with a verdict for each that asks for another; and [`UdpTargets`], the keys under which endpoints of UDP
//! listeners are computed.

use super::ActiveListeners;
use crate::translations::{TranslationRow, Translations};
use engine::{Derived, Index, Reads, Table};
use model::{
    ClusterId, Code, ListenerId, ObjectRef, PortId, PortProtocol, Verdict,
    listener::{StreamPiece, StreamTarget},
};
use std::sync::Arc;

/// Translations by the plain TCP and UDP listeners that they have targets for.
pub struct StreamsByListener;

impl Index for StreamsByListener {
    type Of = Translations;
    type Key = ListenerId;
    const NAME: &'static str = "by stream listener";

    fn keys(_: &ObjectRef, translation: &TranslationRow) -> impl IntoIterator<Item = ListenerId> {
        translation.streams.iter().map(|piece| piece.listener.clone()).collect::<Vec<_>>()
    }
}

/// Where a plain TCP or UDP listener leads, and who lost on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The port of the listener.
    pub port: PortId,
    /// What is spoken there.
    pub protocol: PortProtocol,
    /// Where it leads.
    pub target: Arc<StreamTarget>,
    /// The objects that say so, or would.
    pub objects: Vec<ObjectRef>,
    /// A verdict for each object that asked for something else; sorted.
    pub lost: Vec<Verdict>,
}

/// Where plain TCP and UDP listeners lead: a listener for which nobody says so leads nowhere.
pub struct Streams;

impl Table for Streams {
    type Key = ListenerId;
    type Value = Stream;
    const NAME: &'static str = "streams";
}

impl Derived for Streams {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<Stream> {
        let active = reads.get::<ActiveListeners>(id)?;
        if active.protocol.has_hosts() {
            return None;
        }
        let translations: Vec<_> = reads.probe::<StreamsByListener>(id).collect();
        let translations = translations.into_iter().filter_map(|name| reads.get::<Translations>(name));
        let mut pieces: Vec<&StreamPiece> = translations.flat_map(|translation| translation.streams_of(id)).collect();
        pieces.sort_by(|a, b| (&a.precedence, &a.origin).cmp(&(&b.precedence, &b.origin)));
        let mut objects: Vec<_> = pieces.iter().map(|piece| piece.origin.object.clone()).collect();
        objects.sort();
        objects.dedup();
        let (target, mut lost) = match pieces.split_first() {
            None => (Arc::default(), Vec::new()),
            // What protects fails closed.
            Some((winner, _)) if active.protocol == PortProtocol::Udp && winner.target.ip_filter.is_some() => {
                let why =
                    format!("listener {id}: UDP clients cannot be filtered by address, so all datagrams are dropped");
                (Arc::default(), vec![Verdict::new(Code::UdpIpFilter, winner.origin.clone(), why)])
            }
            Some((winner, others)) => {
                let others = others.iter().filter(|piece| piece.target != winner.target);
                let why = format!("listener {id}: {} is served", winner.origin);
                let verdict =
                    |piece: &&StreamPiece| Verdict::new(Code::StreamConflict, piece.origin.clone(), why.clone());
                (winner.target.combined(), others.map(verdict).collect())
            }
        };
        lost.sort();
        Some(Stream { port: active.port.clone(), protocol: active.protocol, target, objects, lost })
    }
}

/// Where a UDP listener leads, and who says so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UdpTarget {
    /// The listener.
    pub listener: ListenerId,
    /// The backends and their shares.
    pub clusters: Arc<[(ClusterId, u32)]>,
    /// The share of backends that cannot be used.
    pub unavailable: u32,
    /// The objects that say so, or would.
    pub objects: Arc<[ObjectRef]>,
}

impl UdpTarget {
    /// That of a listener, if it is one of UDP.
    pub fn of(listener: &ListenerId, stream: &Stream) -> Option<Self> {
        let StreamTarget { clusters, unavailable, .. } = &*stream.target;
        (stream.protocol == PortProtocol::Udp).then(|| Self {
            listener: listener.clone(),
            clusters: clusters.as_slice().into(),
            unavailable: *unavailable,
            objects: stream.objects.as_slice().into(),
        })
    }
}

/// Streams by where they lead, for those of UDP: one that leads elsewhere has another key, so whoever has a row for each needs to
/// read nothing of the stream.
pub struct UdpTargets;

impl Index for UdpTargets {
    type Of = Streams;
    type Key = UdpTarget;
    const NAME: &'static str = "by UDP target";

    fn keys(listener: &ListenerId, stream: &Stream) -> impl IntoIterator<Item = UdpTarget> {
        UdpTarget::of(listener, stream)
    }
}

//! What clients have, for people: the admin page and the command line read it as they would Envoy's own CSDS.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::fleet_acks::AckState;
use crate::identity::Identity;
use crate::kind::Kind;
use crate::resource::Name;
use crate::session::Session;
use crate::session::flow::{Flow, Have, Mark, Rest};

/// How many names of one kind a view lists before it only counts.
const LISTED: usize = 100;

/// One client's stream.
#[derive(Clone, Debug, Serialize)]
pub struct ClientView {
    /// Who it is.
    #[serde(flatten)]
    pub identity: Arc<Identity>,
    /// How it speaks: `delta` or `sotw`, and of which type if it is a stream of one type.
    pub stream: String,
    /// For how long it has been connected, in seconds.
    pub connected: u64,
    /// What it subscribes to.
    pub types: Vec<TypeView>,
}

/// What one client has of one type.
#[derive(Clone, Debug, Serialize)]
pub struct TypeView {
    /// The short name of the type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether it wants every resource.
    pub wildcard: bool,
    /// How many names it asked for.
    pub names: usize,
    /// Whether it has everything that it should.
    pub in_step: bool,
    /// For how long it has been behind, in milliseconds.
    pub behind: Option<u64>,
    /// How many responses it has not answered.
    pub unanswered: usize,
    /// Names it does not have as it should; the first hundred.
    pub pending: Vec<Name>,
    /// How many there are.
    pub pending_count: usize,
    /// Names it refused; the first hundred.
    pub refused: Vec<Name>,
}

impl Session {
    /// How the client stands to one version of one resource.
    pub fn holds(&self, kind: Kind, name: &str, version: u64) -> AckState {
        let Some(flow) = self.flow(kind).filter(|flow| flow.covers(name)) else { return AckState::IdentityError };
        if let Some(mark) = flow.marks.get(name) {
            return match &mark.have {
                _ if mark.refused.is_some_and(|(refused, _)| refused == version) => AckState::Refused,
                Have::Known(entry) if entry.version == version && !mark.leaving => AckState::Yes,
                Have::Listed(listed) if *listed == version && !mark.leaving => AckState::Yes,
                _ => AckState::No(mark.since),
            };
        }
        let has = flow.target(self.table(kind), name).is_some_and(|entry| entry.version == version);
        if has && flow.rest == Rest::InStep { AckState::Yes } else { AckState::No(flow.opened) }
    }

    /// Since when the client has not had everything of that type that it should.
    pub fn behind_since(&self, kind: Kind) -> Option<Instant> {
        let flow = self.flow(kind)?;
        let marks = flow.marks.values().filter(|mark| is_pending(mark)).map(|mark| mark.since);
        let rest = (flow.rest != Rest::InStep).then_some(flow.opened);
        let refused = flow.take_back.iter().filter_map(|name| flow.marks.get(name)).map(|mark| mark.since);
        marks.chain(rest).chain(refused).min()
    }

    /// How many names of that type the client does not have as it should.
    pub fn pending(&self, kind: Kind) -> usize {
        let Some(flow) = self.flow(kind) else { return 0 };
        let marks = flow.marks.values().filter(|mark| is_pending(mark)).count();
        let rest = match flow.rest {
            Rest::InStep => 0,
            _ if flow.wildcard => self.table(kind).len(),
            _ => flow.names.len(),
        };
        marks + rest
    }

    /// What the client subscribes to and has.
    pub fn view(&self, now: Instant) -> Vec<TypeView> {
        let types = Kind::ALL.into_iter().filter_map(|kind| Some((kind, self.flow(kind)?)));
        types.map(|(kind, flow)| self.type_view(kind, flow, now)).collect()
    }

    fn type_view(&self, kind: Kind, flow: &Flow, now: Instant) -> TypeView {
        let behind = self.behind_since(kind).map(|since| now.saturating_duration_since(since));
        let listed = |wanted: fn(&Mark) -> bool| -> Vec<Name> {
            let marks = flow.marks.iter().filter(|(_, mark)| wanted(mark));
            marks.take(LISTED).map(|(name, _)| name.clone()).collect()
        };
        TypeView {
            kind: kind.label(),
            wildcard: flow.wildcard,
            names: flow.names.len(),
            in_step: behind.is_none(),
            behind: behind.as_ref().map(Duration::as_millis).and_then(|millis| u64::try_from(millis).ok()),
            unanswered: flow.flights.len(),
            pending: listed(is_pending),
            pending_count: self.pending(kind),
            refused: listed(|mark| mark.refused.is_some()),
        }
    }
}

fn is_pending(mark: &Mark) -> bool {
    !mark.offers.is_empty() || mark.owed || mark.refused.is_none() && !mark.stranded && !mark.kept
}

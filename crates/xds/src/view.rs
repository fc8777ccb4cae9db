//! What clients have, for people: the admin page and the command line read it as they would Envoy's own CSDS.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::fleet_acks::AckState;
use crate::identity::Identity;
use crate::kind::Kind;
use crate::resource::Name;
use crate::session::Session;
use crate::session::flow::{Acked, DefaultState, Flow, ResourceState};

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
    pub fn ack_state(&self, kind: Kind, name: &str, version: u64) -> AckState {
        let Some(flow) = self.flow(kind).filter(|flow| flow.covers(name)) else { return AckState::NotSubscribed };
        if let Some(state) = flow.states.get(name) {
            return match &state.acked {
                _ if state.rejected.is_some_and(|(rejected, _)| rejected == version) => AckState::Rejected,
                Acked::Known(entry) if entry.version == version && !state.leaving => AckState::Acked,
                Acked::Listed(listed) if *listed == version && !state.leaving => AckState::Acked,
                _ => AckState::Pending(state.since),
            };
        }
        let has = flow.target(self.table(kind), name).is_some_and(|entry| entry.version == version);
        if has && flow.default_state == DefaultState::Acked { AckState::Acked } else { AckState::Pending(flow.opened) }
    }

    /// Since when the client has not had everything of that type that it should.
    pub fn behind_since(&self, kind: Kind) -> Option<Instant> {
        let flow = self.flow(kind)?;
        let states = flow.states.values().filter(|state| is_pending(state)).map(|state| state.since);
        let all = (flow.default_state != DefaultState::Acked).then_some(flow.opened);
        let rejected = flow.to_revert.iter().filter_map(|name| flow.states.get(name)).map(|state| state.since);
        states.chain(all).chain(rejected).min()
    }

    /// How many names of that type the client does not have as it should.
    pub fn pending(&self, kind: Kind) -> usize {
        let Some(flow) = self.flow(kind) else { return 0 };
        let states = flow.states.values().filter(|state| is_pending(state)).count();
        let rest = match flow.default_state {
            DefaultState::Acked => 0,
            _ if flow.wildcard => self.table(kind).len(),
            _ => flow.names.len(),
        };
        states + rest
    }

    /// What the client subscribes to and has.
    pub fn view(&self, now: Instant) -> Vec<TypeView> {
        let types = Kind::ALL.into_iter().filter_map(|kind| Some((kind, self.flow(kind)?)));
        types.map(|(kind, flow)| self.type_view(kind, flow, now)).collect()
    }

    fn type_view(&self, kind: Kind, flow: &Flow, now: Instant) -> TypeView {
        let behind = self.behind_since(kind).map(|since| now.saturating_duration_since(since));
        let listed = |wanted: fn(&ResourceState) -> bool| -> Vec<Name> {
            let states = flow.states.iter().filter(|(_, state)| wanted(state));
            states.take(LISTED).map(|(name, _)| name.clone()).collect()
        };
        TypeView {
            kind: kind.label(),
            wildcard: flow.wildcard,
            names: flow.names.len(),
            in_step: behind.is_none(),
            behind: behind.as_ref().map(Duration::as_millis).and_then(|millis| u64::try_from(millis).ok()),
            unanswered: flow.in_flight.len(),
            pending: listed(is_pending),
            pending_count: self.pending(kind),
            refused: listed(|state| state.rejected.is_some()),
        }
    }
}

fn is_pending(state: &ResourceState) -> bool {
    !state.unacked.is_empty() || state.owed || state.rejected.is_none() && !state.stranded && !state.kept
}

//! One stream's conversation with one client, without sockets and clocks.
//!
//! In: the client's requests ([`Session::on_request`]), new snapshots ([`Session::on_publish`]) and the time. Out:
//! responses, one at a time ([`Session::poll`]), and what the client's answers mean ([`Answer`]). Delta and
//! state-of-the-world are one machine: they differ in how a subscription is worded and in what a response lists.
//!
//! Of each type the client subscribes to, a [`flow::Flow`] knows what the client has. It does so by exception: a name
//! without a [`flow::ResourceState`] is held as the snapshot has it, so a client in step costs the same whatever the size of
//! the tables.
//!
//! The order of things is decided in [`ordering`]: a response carries what may be sent now, the rest waits for an answer or
//! a deadline. All of it is a function of state, re-evaluated at each poll; there is no queue that could be stale.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::acks::TouchedKinds;
use crate::kind::Kind;
use crate::limits::Limits;
use crate::resolve::Resolver;
use crate::resource::{Entry, Name, weight};
use crate::table::{Snapshot, Table};

mod alias;
pub(crate) mod flow;
mod listing;
mod ordering;
mod plan;
mod reject;
mod subscribe;
#[cfg(test)]
mod tests;

use flow::Flow;

pub use crate::wire::initial_versions::InitialVersions;

/// What a name takes besides its text: a pointer to it with its length, and the counters in front of it.
const NAME: usize = 32;

/// The two ways to word the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// Requests and responses say what changes.
    Delta,
    /// Requests list all names wanted; responses of some types list all resources.
    Sotw,
}

/// One request of a client, of a type that is known.
#[derive(Clone, Debug)]
pub struct Request {
    /// The type it is about.
    pub kind: Kind,
    /// The nonce of the response that it answers.
    pub nonce: Option<u64>,
    /// Why that response was rejected.
    pub error: Option<String>,
    /// What it says about the subscription.
    pub subscription: Subscription,
}

/// What a request says about the subscription.
#[derive(Clone, Debug)]
pub enum Subscription {
    /// Names to add and to drop, and on a first request what the client already has.
    Delta {
        /// Names to add; `*` is every name.
        subscribe: Vec<Name>,
        /// Names to drop.
        unsubscribe: Vec<Name>,
        /// What the client has from an earlier stream.
        initial_versions: InitialVersions,
    },
    /// All names wanted; none means every name, until some have been listed.
    Sotw {
        /// The names.
        names: Vec<Name>,
        /// The version of what the client has.
        version: Option<u64>,
    },
}

impl Subscription {
    /// Whether the client has something from an earlier stream. Answers on this one repeat versions, too: ask for first requests only.
    pub fn is_of_returning(&self) -> bool {
        match self {
            Subscription::Delta { initial_versions, .. } => !initial_versions.is_empty(),
            Subscription::Sotw { version, .. } => version.is_some(),
        }
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let of = |names: &[Name]| names.iter().map(|name| name.len() + NAME).sum::<usize>();
        match self {
            Subscription::Delta { subscribe, unsubscribe, initial_versions } => {
                of(subscribe) + of(unsubscribe) + initial_versions.bytes()
            }
            Subscription::Sotw { names, .. } => of(names),
        }
    }
}

/// One response, still as shared pieces.
#[derive(Debug)]
pub struct Response {
    /// The type it is about.
    pub kind: Kind,
    /// How it is worded.
    pub style: Style,
    /// By which the client's answer will name it.
    pub nonce: u64,
    /// The version of what the client will have (state of the world), or of the table (delta, for people's eyes).
    pub version: u64,
    /// Resources to take.
    pub upserts: Vec<Arc<Entry>>,
    /// Names to drop (delta only).
    pub removed: Vec<Name>,
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Send this, then poll again.
    Send(Response),
    /// Nothing to send before something comes in, or that moment.
    Idle(Option<Instant>),
}

/// What a request meant for responses sent earlier.
#[derive(Debug, Default)]
pub struct Answer {
    /// A response was taken, so long after it was sent.
    pub acked: Option<Duration>,
    /// A response was rejected.
    pub nacked: bool,
    /// The resources that were found to be the cause.
    pub rejected: Vec<RejectedResource>,
    /// The request answered a response and said nothing else: it was earned by a response, not asked out of the blue.
    pub earned: bool,
}

/// A resource that the client rejected.
#[derive(Clone, Debug)]
pub struct RejectedResource {
    /// Its type.
    pub kind: Kind,
    /// The resource as it was rejected.
    pub entry: Arc<Entry>,
    /// What the client goes on with, where that is known.
    pub held: Option<Arc<Entry>>,
    /// The client's words.
    pub text: Arc<str>,
}

/// Why a client is cut off.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LimitExceeded {
    /// More names than one stream may have.
    #[error("more than {0} names on one stream")]
    TooManyNames(usize),
    /// A name that is too long.
    #[error("a name of {0} bytes")]
    NameTooLong(usize),
}

/// What a session is created with.
pub struct Options {
    /// How the client words the protocol.
    pub style: Style,
    /// The only type this stream is about (a per-type service), or all of them.
    pub only: Option<Kind>,
    /// The bounds.
    pub limits: Arc<Limits>,
    /// Knows names that tables do not list.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// What this very client has rejected, on an earlier stream or of secrets on this one; not sent to it again if it still
    /// has what it had.
    pub rejected: HashSet<(Kind, Name, u64)>,
    /// How scopes are marked that the client may have from a rejected response.
    pub markers: ResendMarkers,
}

/// Markers for messages that a client may have without using them: see [`Entry::resent`]. One that was in a rejected response
/// must not come again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResendMarkers {
    /// On a new stream of a client that comes back. It is the same for all clients, so that their responses are encoded once,
    /// and changes whenever some client's stream ends with scopes that it may have rejected.
    pub returning: u64,
    /// Unique to the stream.
    pub stream: u64,
}

impl ResendMarkers {
    /// For a response on the stream, after a rejection on it.
    fn of_response(self, nonce: u64) -> u64 {
        weight(&nonce.to_string(), self.stream)
    }
}

impl Options {
    /// Whether the client is known to have rejected this very version.
    fn has_rejected(&self, kind: Kind, entry: &Entry) -> bool {
        self.rejected.contains(&(kind, entry.name.clone(), entry.version))
    }

    /// What knows names of this type that its table does not list.
    fn resolver(&self, kind: Kind) -> Option<&dyn Resolver> {
        self.resolver.as_deref().filter(|resolver| resolver.resolves(kind))
    }
}

/// The state of one stream.
pub struct Session {
    options: Options,
    view: Arc<Snapshot>,
    flows: [Option<Box<Flow>>; Kind::COUNT],
    /// The client had resources before this stream: it may hold more than it has told so far.
    returning: bool,
    /// When the client last subscribed to one more type.
    widened: Instant,
    /// Whether it has had the time to tell all it has.
    inventory_known: bool,
    /// Whether endpoints were sent once more because it seems to wait for some.
    has_resent_endpoints: bool,
    /// The clusters that a filter of the client called before it changed, and when it did.
    called: HashMap<Name, Instant>,
    /// The nonce of the last response that was made, and the highest that was answered.
    nonce: u64,
    answered: u64,
}

impl Session {
    /// A stream that has just begun.
    pub fn new(options: Options, view: Arc<Snapshot>, now: Instant) -> Self {
        Self {
            options,
            view,
            flows: Default::default(),
            returning: false,
            widened: now,
            inventory_known: false,
            has_resent_endpoints: false,
            called: HashMap::new(),
            nonce: 0,
            answered: 0,
        }
    }

    /// Takes a request.
    pub fn on_request(&mut self, request: Request, now: Instant) -> Result<Answer, LimitExceeded> {
        let kind = request.kind;
        let first = self.flow(kind).is_none();
        if first {
            self.widened = now;
            // Who asks for endpoints first has clusters from before.
            self.returning |= kind == Kind::Endpoints && self.flow(Kind::Cluster).is_none();
        }
        let silent = match &request.subscription {
            Subscription::Delta { subscribe, unsubscribe, initial_versions } => {
                subscribe.is_empty() && unsubscribe.is_empty() && initial_versions.is_empty()
            }
            Subscription::Sotw { .. } => true,
        };
        let mut answer = Answer::default();
        // A nonce on a first request is a memory of another stream.
        if let Some(nonce) = request.nonce.filter(|_| !first) {
            match request.error {
                Some(text) => self.nack(kind, nonce, &text, now, &mut answer),
                None => answer.acked = self.ack(kind, nonce, now),
            }
            if answer.nacked || answer.acked.is_some() {
                self.answered = self.answered.max(nonce);
            }
            answer.earned = silent && (answer.nacked || answer.acked.is_some());
        }
        match request.subscription {
            Subscription::Delta { subscribe, unsubscribe, initial_versions } => {
                self.on_delta(kind, subscribe, unsubscribe, initial_versions, now)?;
            }
            Subscription::Sotw { names, version } => self.on_sotw(kind, names, version, now)?,
        }
        Ok(answer)
    }

    /// Takes the next snapshot. Any number of snapshots may have been skipped.
    pub fn on_publish(&mut self, next: Arc<Snapshot>, now: Instant) {
        for kind in Kind::ALL {
            let Some(flow) = self.flows[kind.index()].as_deref_mut() else { continue };
            let mut names_moved = false;
            for change in self.view.table(kind).changes(next.table(kind)) {
                names_moved |= change.old.is_none() || change.new.is_none();
                if flow.covers(change.name) {
                    flow.changed(change.name, change.old, change.new.is_some(), now);
                }
            }
            if let Some(resolver) = self.options.resolver(kind) {
                let limits = &self.options.limits;
                flow.re_resolve(kind, resolver, next.table(kind), names_moved, limits, now);
            }
        }
        self.view = next;
    }

    /// The next response, or when to look again. Additions go in the order of [`Kind::ALL`].
    pub fn poll(&mut self, now: Instant) -> Step {
        self.note_inventory(now);
        let mut wake = self.resend_endpoints_once(now);
        for kind in Kind::ALL {
            if let Some(response) = self.poll_kind(kind, now, &mut wake) {
                return Step::Send(response);
            }
        }
        Step::Idle(wake)
    }

    /// The names of which the client may have another version than before, or stands otherwise to the one it should have,
    /// since this was last asked.
    pub(crate) fn touched(&mut self) -> TouchedKinds {
        let mut touched = TouchedKinds::default();
        for (flow, touched) in self.flows.iter_mut().zip(&mut touched) {
            if let Some(flow) = flow {
                *touched = std::mem::take(&mut flow.touched);
            }
        }
        touched
    }

    /// Whether the client may have scopes that it does not use: some were rejected and are not replaced yet, or it may have
    /// rejected what it has not answered.
    pub fn has_unsure_scopes(&self) -> bool {
        self.flow(Kind::ScopedRoute).is_some_and(|flow| {
            !flow.in_flight.is_empty() || flow.is_unsure || flow.states.values().any(|state| state.unsure.is_some())
        })
    }

    /// The generation that this stream has taken into account.
    pub fn generation(&self) -> u64 {
        self.view.generation
    }

    /// Whether the client had resources before this stream.
    pub fn is_returning(&self) -> bool {
        self.returning
    }

    pub(crate) fn flow(&self, kind: Kind) -> Option<&Flow> {
        self.flows[kind.index()].as_deref()
    }

    pub(crate) fn table(&self, kind: Kind) -> &Table {
        self.view.table(kind)
    }

    fn ack(&mut self, kind: Kind, nonce: u64, now: Instant) -> Option<Duration> {
        self.note_called(kind, nonce, now);
        let table = self.view.table(kind);
        let flow = self.flows[kind.index()].as_deref_mut()?;
        flow.ack(table, nonce, now)
    }

    fn count_names(&self) -> usize {
        self.flows.iter().flatten().map(|flow| flow.names.len()).sum()
    }
}

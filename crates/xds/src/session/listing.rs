//! Certificates of hosts whose server names a listener lists: not before the client has the listener so.
//!
//! Until then the name leads to the chain of all names that are not listed, which would show the certificate to connections that
//! cannot carry the host's requests. So the certificate waits for the listener as it is now, and for what a new chain of it warms
//! with: its filters, and what client certificates are checked with. Meanwhile whoever asks for the certificate is told that there is
//! none, which ends the handshake, and a cluster that prefetches it waits too. Where somebody was told so, a question may still be on
//! its way from a connection that took the other chain: that one is told so, too ([`QUESTION`]). A certificate that the client has, in
//! any version, waits for nothing, and no wait is longer than [`Limits::warming_timeout`](crate::Limits).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Session;
use super::flow::{Acked, DefaultState, Delivery};
use super::ordering::Readiness;
use crate::kind::Kind;
use crate::resource::{Entry, Name, Ref, Role};

/// How long the question for a certificate may take from the connection that needs it, after the last thing that the listener warmed
/// with was taken: a busy proxy takes its time until all of its workers have the listener.
const QUESTION: Duration = Duration::from_millis(200);

impl Session {
    /// Whether a client that asks for a certificate may be sent it, as far as the listener goes.
    pub(super) fn listing_readiness(&self, secret: &Entry, now: Instant) -> Readiness {
        let state = self.flow(Kind::Secret).and_then(|flow| flow.states.get(&secret.name));
        match state {
            Some(state) if state.leaving || matches!(state.acked, Acked::Nothing) => {
                self.listed_readiness(secret, Some(state.since), state.since, now)
            }
            Some(_) | None => Readiness::Ready,
        }
    }

    /// Whether a cluster may be sent, as far as the certificates go that it prefetches and the client has none of.
    pub(super) fn prefetch_readiness(&self, cluster: &Entry, now: Instant) -> Readiness {
        let Some(state) = self.flow(Kind::Cluster).and_then(|flow| flow.states.get(&cluster.name)) else {
            return Readiness::Ready;
        };
        let (table, flow) = (self.view.table(Kind::Secret), self.flow(Kind::Secret));
        let secrets = cluster.refs.iter().filter_map(|to| match to {
            Ref::To(Kind::Secret, name) => table.get(name),
            Ref::To(..) | Ref::Under(..) => None,
        });
        let is_new = |secret: &&Arc<Entry>| {
            flow.is_none_or(|flow| !matches!(flow.delivery(table, &secret.name), Delivery::Acked))
        };
        let readiness = |secret: &Arc<Entry>| {
            let asked = flow.and_then(|flow| flow.states.get(&secret.name)).map(|state| state.since);
            self.listed_readiness(secret, asked, state.since, now)
        };
        let mut early = secrets.filter(is_new).map(readiness);
        early.find(|readiness| *readiness != Readiness::Ready).unwrap_or(Readiness::Ready)
    }

    /// `asked` is since when the client has a question about it, `since` when the wait began.
    fn listed_readiness(&self, secret: &Entry, asked: Option<Instant>, since: Instant, now: Instant) -> Readiness {
        if !secret.refs.iter().any(|to| matches!(to, Ref::To(Kind::Listener, _))) {
            return Readiness::Ready;
        }
        let is_there = |to: &Ref| match to {
            Ref::To(kind @ (Kind::Listener | Kind::Secret), name) => self.is_current(*kind, name),
            Ref::Under(Kind::Extension, prefix) => self.is_warm_with(prefix),
            Ref::To(..) | Ref::Under(..) => true,
        };
        let latest = since + self.options.limits.warming_timeout;
        if !secret.refs.iter().all(is_there) {
            return Readiness::until(latest, now);
        }
        let taken = |kind: Kind| self.flow(kind).and_then(|flow| flow.last_ack);
        match taken(Kind::Listener)
            .max(taken(Kind::Extension))
            .filter(|taken| asked.is_some_and(|asked| asked <= *taken))
        {
            Some(taken) => Readiness::until(latest.min(taken + QUESTION), now),
            None => Readiness::Ready,
        }
    }

    /// Whether the client has a resource as it is now, or never will.
    fn is_current(&self, kind: Kind, name: &Name) -> bool {
        let Some(flow) = self.flow(kind) else { return true };
        let Some(target) = flow.target(self.view.table(kind), name) else { return true };
        if !flow.covers(name) {
            return false;
        }
        match flow.states.get(name) {
            Some(state) => {
                let is_rejected = state.rejected.is_some_and(|(version, _)| version == target.version);
                let is_taken = state.unacked.is_empty() && state.heading() == Some(target.version);
                is_taken || is_rejected || target.role == Role::Withheld
            }
            None => flow.default_state == DefaultState::Acked,
        }
    }

    /// Whether the client has asked for the filters of a chain, and has them.
    fn is_warm_with(&self, prefix: &Name) -> bool {
        let Some(flow) = self.flow(Kind::Extension) else { return true };
        let mut asked = flow.names.range(prefix.clone()..).take_while(|name| name.starts_with(&**prefix)).peekable();
        asked.peek().is_some() && asked.all(|name| self.is_current(Kind::Extension, name))
    }
}

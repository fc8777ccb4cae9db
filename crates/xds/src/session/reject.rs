//! What a NACK means: which resource is the cause, and how the others get through.
//!
//! After a NACK nothing in the response is certain: Envoy may have accepted all of the good resources, or none. The rejected one
//! is withheld until it changes, all others are sent again. If the error names none, the names are sent again in halves, so each
//! is sent at most log2(n)+1 times more; a half that is rejected is halved again, and one name alone is the cause. Errors that
//! name one at a time are followed the same way after a few, so that many bad resources cannot make Envoy read the good ones over
//! and over.
//!
//! Secrets are reverted as well. Envoy keeps a secret that it rejected and aborts when a second user appears, another listener
//! for example. So what was rejected, or may have been, is followed at once by what the client had, or by its removal.
//!
//! Scopes are sent again as other messages. Envoy stores scope by scope and applies them at the end, so one that it rejects
//! leaves those before it stored and unused; the same message would then be skipped as a known one, and the host answered with
//! 404. See [`Entry::resent`]. A client that comes back on a new stream does not list what it rejected, so
//! every scope that it does not list is sent as another message, too, whichever replica it was connected to before.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use super::flow::{Acked, DefaultState, Flow, InFlight, Probe};
use super::{Answer, RejectedResource, Session};
use crate::kind::Kind;
use crate::resource::{Entry, Name};
use crate::table::Table;

/// How many errors that name a resource are believed before names are sent in halves.
const MAX_NAMED_REJECTIONS: u8 = 3;

impl Session {
    pub(super) fn nack(&mut self, kind: Kind, nonce: u64, text: &str, now: Instant, answer: &mut Answer) {
        let table = self.view.table(kind).clone();
        let limit = self.options.limits.rejection_text;
        let Some(flow) = self.flows[kind.index()].as_deref_mut() else { return };
        let Some(at) = flow.in_flight.iter().position(|response| response.nonce == nonce) else { return };
        let Some(mut response) = flow.in_flight.remove(at) else { return };
        answer.nacked = true;
        flow.has_nacked = true;
        if response.reverts {
            flow.not_reverted(&table, response);
            return;
        }
        if response.carries_all {
            expand(flow, &table, nonce, &mut response.items, now);
        }
        let text = clip(text, limit);
        // Names that are no longer wanted count: one of them may be the cause.
        let sent = response.items;
        let upserts: Vec<_> = sent.iter().filter_map(|(name, to)| Some((name, to.as_ref()?))).collect();
        let mut causes: Vec<Name> = match upserts.as_slice() {
            [(only, _)] if response.unconfirmed == 1 => vec![(*only).clone()],
            _ => upserts.iter().filter(|(name, _)| names(&text, name)).map(|(name, _)| (*name).clone()).collect(),
        };
        if causes.is_empty() {
            // Rejected before, and sent again with others before that was known.
            let known = upserts.iter().filter(|(name, entry)| {
                let rejected = flow.states.get(*name).and_then(|state| state.rejected);
                rejected.is_some_and(|(version, _)| version == entry.version)
            });
            causes = known.map(|(name, _)| (*name).clone()).collect();
        }
        causes.sort();
        let words: Arc<str> = text.into();
        let mut others = Vec::new();
        for (name, to) in &sent {
            if !flow.covers(name) {
                continue;
            }
            let before = flow.sent_weight(&table, name);
            let Some(state) = flow.states.get_mut(name) else { continue };
            flow.touched.name(name);
            state.unacked.retain(|sent_version| sent_version.nonce != nonce);
            state.unsure = to.clone();
            let may_be_cause = causes.is_empty() || causes.binary_search(name).is_ok();
            if kind == Kind::Secret && to.is_some() && may_be_cause {
                flow.to_revert.insert(name.clone());
            }
            if let (Some(entry), true) = (to, causes.binary_search(name).is_ok()) {
                state.rejected = Some((entry.version, now));
                let held = match &state.acked {
                    Acked::Known(held) if !state.leaving => Some(held.clone()),
                    _ => None,
                };
                // Envoy lets go of a secret that is taken back and asks for it again, as if it had never heard of it.
                if kind == Kind::Secret && self.options.rejected.len() < self.options.limits.aliases {
                    self.options.rejected.insert((kind, name.clone(), entry.version));
                }
                answer.rejected.push(RejectedResource { kind, entry: entry.clone(), held, text: words.clone() });
                flow.due.insert(name.clone());
            } else {
                state.owed = true;
                flow.due.insert(name.clone());
                others.push(name.clone());
            }
            flow.sum = flow.sum.wrapping_sub(before).wrapping_add(flow.sent_weight(&table, name));
        }
        let rejections = response.rejections.saturating_add(1);
        if causes.is_empty() || rejections > MAX_NAMED_REJECTIONS {
            let (left, right) = others.split_at(others.len() / 2);
            for half in [left, right].into_iter().filter(|half| !half.is_empty()) {
                flow.probes.push_back(Probe { names: half.to_vec(), rejections });
            }
        } else if !others.is_empty() {
            flow.probes.push_back(Probe { names: others, rejections });
        }
    }
}

impl Flow {
    /// The client rejected what it had before, too: then it is to have nothing. That nothing is there cannot be rejected.
    fn not_reverted(&mut self, table: &Table, response: InFlight) {
        for (name, to) in response.items {
            let before = self.sent_weight(table, &name);
            let Some(state) = self.states.get_mut(&name) else { continue };
            self.touched.name(&name);
            state.unacked.retain(|sent_version| sent_version.nonce != response.nonce);
            state.acked = Acked::Nothing;
            self.sum = self.sum.wrapping_sub(before).wrapping_add(self.sent_weight(table, &name));
            if to.is_some() {
                self.to_revert.insert(name);
            }
        }
    }
}

/// Gives a state of its own to each name that a first full response carried: from now on they differ.
fn expand(flow: &mut Flow, table: &Table, nonce: u64, items: &mut Vec<(Name, Option<Arc<Entry>>)>, now: Instant) {
    let mut names: Vec<Name> =
        table.iter().map(|entry| &entry.name).filter(|name| flow.covers(name)).cloned().collect();
    names.extend(flow.names.iter().filter(|name| flow.aliases.get(name).is_some()).cloned());
    for name in names.iter().filter(|name| !flow.states.contains_key(*name)).cloned().collect::<Vec<_>>() {
        let entry = flow.target(table, &name).cloned();
        flow.state_mut(&name, entry.as_ref(), now);
    }
    (flow.default_state, flow.is_unsure) = (DefaultState::Acked, false);
    flow.touched.all();
    let sent = flow.states.iter().filter_map(|(name, state)| Some((name.clone(), state.sent_in(nonce)?.to.clone())));
    *items = sent.collect();
}

/// As much of the text as is kept, cut between characters. What goes is in the middle: Envoy begins with a name, may go on with
/// the whole resource, and ends with the reason.
fn clip(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return text.into();
    }
    let head = text.floor_char_boundary(limit / 4);
    let tail = text.ceil_char_boundary(text.len() - (limit - limit / 4));
    format!("{} … {}", &text[..head], &text[tail..]).into()
}

/// Whether a text names a resource: the name stands there whole. A name that is a plain word must be marked as a name,
/// by quotes or a colon, since it may be part of any sentence.
pub(super) fn names(text: &str, name: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    let plain = name.chars().all(|c| c.is_ascii_alphabetic());
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + name.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '|' | '*');
        let ends_there = match next {
            Some('.') => second.is_none_or(|c| !inside(c)),
            Some(c) => !inside(c),
            None => true,
        };
        let quoted = matches!((before, next), (Some('\'' | '"' | '`'), Some('\'' | '"' | '`'))) || next == Some(':');
        ends_there && before.is_none_or(|c| !inside(c)) && (!plain || quoted)
    })
}

#[cfg(test)]
mod tests {
    use super::{clip, names};

    #[test]
    fn the_reason_outlasts_a_long_text() {
        let text = format!("name: {}: the reason", "é".repeat(10_000));
        let kept = clip(&text, 101);
        assert!(kept.starts_with("name: é") && kept.ends_with("é: the reason"), "{kept}");
        assert!(kept.len() < 110, "{}", kept.len());
        assert_eq!(clip("short", 5), "short");
    }

    #[test]
    fn a_name_is_found_only_whole() {
        assert!(names("Error adding/updating cluster(s) default/kuard/80: bad", "default/kuard/80"));
        assert!(!names("Error adding/updating cluster(s) default/kuard/8080: bad", "default/kuard/80"));
        assert!(!names("Error adding/updating cluster(s) x-default/kuard/80: bad", "default/kuard/80"));
        assert!(names("bad scope g7|a.example.com.", "g7|a.example.com"));
        assert!(!names("Error adding/updating cluster(s) x/y: bad", "cluster"));
        assert!(names("Error adding/updating listener(s) http: bad", "http"));
        assert!(names("error adding listener 'http'", "http"));
    }
}

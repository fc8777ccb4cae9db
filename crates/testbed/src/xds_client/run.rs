//! A client at work: takes commands and responses one at a time, books them, and says what is to be said.
//!
//! In: [`Command`]s from the test, messages from the streams. Out: requests on the streams, and the shared [`State`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::follow::{Ref, refs};
use super::request::{Manner, Said};
use super::state::Held;
use super::stream::{Incoming, Outgoing, frame, frame_of, run};
use super::wire::{self, Malformed};
use super::{End, Kind, Reply, Response, Shared, State};
use crate::client::Connection;

/// What a test tells its client.
#[derive(Debug)]
pub(super) enum Command {
    Subscribe(Kind, Vec<String>),
    SubscribeAll(Kind),
    Unsubscribe(Kind, Vec<String>),
    Answer(Kind, Reply),
    Raw(Kind, Bytes),
    Pause(bool),
}

/// What a client does by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// Keeps resources and responses.
    pub keep: bool,
    /// Asks for what resources point at.
    pub follow: bool,
    /// Takes clusters only when their endpoints are there.
    pub warm: bool,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits { keep: true, follow: false, warm: false }
    }
}

pub(super) struct Run {
    connection: Connection,
    shared: Arc<Shared>,
    manner: Manner,
    habits: Habits,
    said: Said,
    streams: BTreeMap<Option<Kind>, Outgoing>,
    tasks: JoinSet<()>,
    sender: mpsc::Sender<(Option<Kind>, Incoming)>,
    incoming: mpsc::Receiver<(Option<Kind>, Incoming)>,
    /// What each resource points at, and how many point at each.
    points_at: BTreeMap<(Kind, String), Vec<Ref>>,
    pointed_at: BTreeMap<Ref, usize>,
    /// Cluster responses that are taken when their endpoints are there.
    warming: Vec<Response>,
    /// Names to ask for and no longer to ask for, not yet said: one request carries all that one event brings.
    unsaid: BTreeMap<Kind, (Vec<String>, Vec<String>)>,
}

impl Run {
    pub fn new(connection: Connection, shared: Arc<Shared>, manner: Manner, habits: Habits) -> Run {
        // One message at most lies here unread, so that a client that is paused really stops reading.
        let (sender, incoming) = mpsc::channel(1);
        Run {
            connection,
            shared,
            manner,
            habits,
            said: Said::default(),
            streams: BTreeMap::new(),
            tasks: JoinSet::new(),
            sender,
            incoming,
            points_at: BTreeMap::new(),
            pointed_at: BTreeMap::new(),
            warming: Vec::new(),
            unsaid: BTreeMap::new(),
        }
    }

    /// Runs until the client is dropped.
    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        self.begin();
        let mut paused = false;
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    None => return,
                    Some(Command::Pause(pause)) => paused = pause,
                    Some(command) => self.command(command),
                },
                Some((stream, incoming)) = self.incoming.recv(), if !paused => match incoming {
                    Incoming::Message(message) => self.message(&message),
                    Incoming::End(end) => self.end(stream, end),
                },
            }
            self.shared.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Asks for what was decided before there was a stream.
    fn begin(&mut self) {
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        // A client that comes again points at what it pointed at before.
        let held: Vec<(Kind, String, Bytes)> = state
            .kinds
            .iter()
            .flat_map(|(kind, of)| of.held.iter().map(|(name, held)| (*kind, name.clone(), held.message.clone())))
            .filter_map(|(kind, name, message)| Some((kind, name, message?)))
            .collect();
        if self.habits.follow {
            for (kind, name, message) in held {
                self.repoint(&mut state, kind, &name, refs(kind, &message));
            }
        }
        let kinds: Vec<Kind> =
            state.kinds.iter().filter(|(_, of)| of.all || !of.names.is_empty()).map(|(k, _)| *k).collect();
        for kind in kinds {
            self.unsaid.entry(kind).or_default();
        }
        self.say(&mut state);
        for (kind, rest) in self.manner.first.clone().iter() {
            let beginning = self.said.beginning(&self.manner, kind);
            let length = beginning.len() + rest.len();
            let outgoing = self.outgoing(kind);
            // As in `send`.
            let _ = outgoing.send(frame_of(&beginning, length)).and_then(|()| outgoing.send(rest));
        }
    }

    fn command(&mut self, command: Command) {
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        match command {
            Command::Subscribe(kind, names) => self.subscribe(&mut state, kind, names),
            Command::SubscribeAll(kind) => self.subscribe_all(&mut state, kind),
            Command::Unsubscribe(kind, names) => self.unsubscribe(&mut state, kind, names),
            Command::Answer(kind, reply) => {
                if let Some(response) = state.of(kind).pending.pop_front() {
                    self.reply(&mut state, response, reply);
                }
            }
            Command::Raw(kind, message) => self.send(kind, &message),
            Command::Pause(_) => {}
        }
        self.say(&mut state);
    }

    fn subscribe(&mut self, state: &mut State, kind: Kind, names: Vec<String>) {
        let of = state.of(kind);
        let mut added = names.into_iter().filter(|name| of.names.insert(name.clone())).peekable();
        if added.peek().is_some() {
            self.unsaid.entry(kind).or_default().0.extend(added);
        }
    }

    fn subscribe_all(&mut self, state: &mut State, kind: Kind) {
        if !std::mem::replace(&mut state.of(kind).all, true) {
            self.unsaid.entry(kind).or_default().0.push("*".into());
        }
    }

    fn unsubscribe(&mut self, state: &mut State, kind: Kind, names: Vec<String>) {
        let of = state.of(kind);
        let removed: Vec<String> = names.into_iter().filter(|name| of.names.remove(name)).collect();
        if removed.is_empty() {
            return;
        }
        self.unsaid.entry(kind).or_default().1.extend(removed.iter().cloned());
        // What is held because all are asked for stays.
        if !of.all {
            removed.iter().for_each(|name| {
                of.held.remove(name);
                of.gone.remove(name);
            });
            removed.iter().for_each(|name| self.repoint(state, kind, name, Vec::new()));
        }
    }

    /// Says what is unsaid.
    fn say(&mut self, state: &mut State) {
        for (kind, (add, remove)) in std::mem::take(&mut self.unsaid) {
            let request = self.said.subscribe(&self.manner, kind, state.of(kind), &add, &remove);
            self.send(kind, &request);
        }
    }

    fn send(&mut self, kind: Kind, message: &Bytes) {
        // A stream that has ended is reported by itself.
        let _ = self.outgoing(kind).send(frame(message));
    }

    /// The stream of a kind, opened if it is not there.
    fn outgoing(&mut self, kind: Kind) -> &Outgoing {
        let stream = (!self.manner.aggregated).then_some(kind);
        self.streams.entry(stream).or_insert_with(|| {
            let verb = if self.manner.delta { "Delta" } else { "Stream" };
            let aggregated =
                format!("/envoy.service.discovery.v3.AggregatedDiscoveryService/{verb}AggregatedResources");
            let method = stream.map_or(aggregated, |kind| kind.method(verb));
            let (outgoing, receiver) = mpsc::unbounded_channel();
            self.tasks.spawn(run(self.connection.clone(), method, receiver, self.sender.clone(), stream));
            outgoing
        })
    }

    fn end(&mut self, stream: Option<Kind>, end: End) {
        self.streams.remove(&stream);
        self.shared.state.lock().end.get_or_insert(end);
    }

    fn message(&mut self, message: &Bytes) {
        if let Err(malformed) = self.response(message) {
            self.shared.state.lock().end.get_or_insert(End { status: None, message: malformed.to_string() });
        }
    }

    fn response(&mut self, message: &Bytes) -> Result<(), Malformed> {
        let raw = wire::response(message, self.manner.delta)?;
        let kind = Kind::from_type_url(&raw.type_url).ok_or(Malformed)?;
        let count = raw.resources.len();
        let mut resources = Vec::new();
        if self.habits.keep || self.habits.follow {
            resources.reserve(count);
            for bytes in &raw.resources {
                resources.push(match self.manner.delta {
                    true => wire::delta_resource(bytes)?,
                    false => wire::sotw_resource(bytes, &raw.version)?,
                });
            }
        }
        let (bytes, at) = (message.len(), Instant::now());
        let (version, nonce, removed) = (raw.version, raw.nonce, raw.removed);
        let response = Response { kind, nonce, version, at, bytes, count, resources, removed, reply: Reply::Hold };
        let decide = self.shared.decide.lock().clone();
        let reply = decide(&response);
        let shared = self.shared.clone();
        let mut state = shared.state.lock();
        let of = state.of(kind);
        of.nonce = response.nonce.clone();
        of.counts.responses += 1;
        of.counts.resources += count as u64;
        of.counts.removed += response.removed.len() as u64;
        of.counts.bytes += bytes as u64;
        of.counts.last = Some(at);
        self.reply(&mut state, response, reply);
        Ok(())
    }

    fn reply(&mut self, state: &mut State, mut response: Response, reply: Reply) {
        let kind = response.kind;
        response.reply = reply.clone();
        match reply {
            Reply::Hold => return state.of(kind).pending.push_back(response),
            Reply::Nack(text) => {
                state.of(kind).counts.nacked += 1;
                let request = self.said.answer(&self.manner, kind, state.of(kind), &response, Some(&text));
                self.send(kind, &request);
            }
            Reply::Ack => {
                self.take(state, &response);
                // Before the answer, as Envoy does: what a cluster points at is part of taking it.
                self.say(state);
                if self.habits.warm && kind == Kind::Cluster {
                    self.warming.push(response.clone());
                } else {
                    self.ack(state, &response);
                }
                self.warmed(state);
            }
        }
        if self.habits.keep {
            state.responses.push(response);
        }
    }

    fn ack(&mut self, state: &mut State, response: &Response) {
        let of = state.of(response.kind);
        of.counts.acked += 1;
        of.version = response.version.clone();
        let request = self.said.answer(&self.manner, response.kind, of, response, None);
        self.send(response.kind, &request);
    }

    /// Takes the clusters whose endpoints have all come.
    fn warmed(&mut self, state: &mut State) {
        let of = state.of(Kind::Endpoints);
        let missing = |name: &String| !of.held.contains_key(name) && !of.gone.contains(name);
        let clusters = self.warming.iter().flat_map(|response| &response.resources);
        let mut refs = clusters.filter_map(|it| self.points_at.get(&(Kind::Cluster, it.name.clone()))).flatten();
        let is_cold = refs.any(|to| matches!(to, Ref::One(Kind::Endpoints, name) if missing(name)));
        if !is_cold {
            for response in std::mem::take(&mut self.warming) {
                self.ack(state, &response);
            }
        }
    }

    /// Books what a response brings, and asks for what it points at.
    fn take(&mut self, state: &mut State, response: &Response) {
        let kind = response.kind;
        let mut removed = response.removed.clone();
        if !self.manner.delta && kind.is_full_state() {
            let listed: std::collections::BTreeSet<&str> = response.names().into_iter().collect();
            removed = state.of(kind).held.keys().filter(|name| !listed.contains(name.as_str())).cloned().collect();
        }
        for resource in &response.resources {
            // What was asked for no longer may still be on its way. Virtual hosts are asked for by another's name.
            let of = state.of(kind);
            if !of.all && !of.names.contains(&resource.name) && kind != Kind::VirtualHost {
                continue;
            }
            let pointing = match &resource.message {
                Some(message) if self.habits.follow => refs(kind, message),
                _ => Vec::new(),
            };
            let message = resource.message.clone().filter(|_| self.habits.keep);
            let of = state.of(kind);
            of.gone.remove(&resource.name);
            of.held.insert(resource.name.clone(), Held { version: resource.version.clone(), message });
            self.repoint(state, kind, &resource.name, pointing);
        }
        if !self.habits.keep && !self.habits.follow {
            return;
        }
        for name in removed {
            let of = state.of(kind);
            of.held.remove(&name);
            if self.manner.delta && (of.all || of.names.contains(&name)) {
                of.gone.insert(name.clone());
            }
            self.repoint(state, kind, &name, Vec::new());
        }
    }

    /// Lets a resource point at these and no longer at what it pointed at, and asks accordingly.
    fn repoint(&mut self, state: &mut State, kind: Kind, name: &str, refs: Vec<Ref>) {
        let key = (kind, name.to_owned());
        let old = if refs.is_empty() { self.points_at.remove(&key) } else { self.points_at.insert(key, refs.clone()) };
        for new in refs {
            *self.pointed_at.entry(new.clone()).or_default() += 1;
            match new {
                Ref::One(kind, name) => self.subscribe(state, kind, vec![name]),
                Ref::All(kind) => self.subscribe_all(state, kind),
            }
        }
        for old in old.into_iter().flatten() {
            let Some(count) = self.pointed_at.get_mut(&old) else { continue };
            *count -= 1;
            if *count == 0 {
                self.pointed_at.remove(&old);
                if let Ref::One(kind, name) = old {
                    self.unsubscribe(state, kind, vec![name]);
                }
            }
        }
    }
}

//! One stream from its first request to its end: the session, given a socket and a clock.
//!
//! In: requests, snapshots, deadlines. Out: messages, one at a time. A message is made only when there is room for it, so
//! a slow client costs one message, and what changes meanwhile goes with the next. A client that reads nothing, or sends nothing of
//! its [first request](super::first_request), for [`Limits::client_timeout`](crate::Limits) is let go: it comes back with what it has and
//! is sent the rest.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::{self, sleep_until};
use tonic::Status;
use tracing::{debug, warn};

use super::client_fleet::ClientFleet;
use super::end::{End, must_end, not_live, removed};
use super::first_request::{self, Charge, kept_bytes};
use super::grpc::{Item, Messages, ResponseSender};
use super::rate_limiter::RateLimiter;
use super::{Call, Connection};
use crate::fleet::{Client, FleetRuntime};
use crate::fleet_acks::Event;
use crate::identity::{Identity, RequiredEnvoy};
use crate::kind::Kind;
use crate::metrics::{Reason, Stream, Type};
use crate::session::{Options, Request, Session, Step, Subscription};
use crate::table::Snapshot;
use crate::wire::request::{self, Incoming as Discovery};

/// How long a client may take to hear why its stream ends.
const FAREWELL: time::Duration = time::Duration::from_secs(1);

/// Runs a stream to its end.
pub(super) async fn run(connection: Arc<Connection>, call: Call, body: Incoming, out: ResponseSender) {
    let metrics = connection.inner.metrics.clone();
    let labels = Stream { service: call.service(), variant: call.variant() };
    metrics.streams.get_or_create(&labels).inc();
    let end = run_stream(&connection, call, body, &out).await;
    metrics.streams.get_or_create(&labels).dec();
    if let Some(End { reason, status }) = end {
        metrics.ended.get_or_create(&Reason { reason }).inc();
        debug!(peer = %connection.peer, reason, "ended a stream");
        // A client that does not read gets no farewell; dropping the sender resets the stream.
        let _ = time::timeout(FAREWELL, out.send(Item::End(status))).await;
    }
}

/// Everything after the client has said who it is.
struct StreamTask<'a> {
    connection: &'a Connection,
    call: Call,
    runtime: &'a FleetRuntime,
    client: Arc<Client>,
    requests: Messages,
    snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    limiter: RateLimiter,
    /// The budget for names that visitors choose, and until when it is overdrawn.
    resolved: RateLimiter,
    pause: Option<Instant>,
    out: &'a ResponseSender,
}

/// `None` if the client hung up.
async fn run_stream(connection: &Connection, call: Call, body: Incoming, out: &ResponseSender) -> Option<End> {
    let inner = &connection.inner;
    let mut requests = Messages::new(body, inner.limits.request_bytes);
    // Where the credential says the fleet, the request counts as one of that fleet's from its first byte on. When the clients of the fleet
    // must authenticate again, those that are still sending their first request must, too.
    let known = connection.credential.fleet().map(|fleet| ClientFleet::of(inner, fleet));
    let runtime = known.as_ref().map(|fleet| &*fleet.runtime);
    let first = tokio::select! {
        biased;
        end = must_end(connection, known.as_ref()) => Err(end),
        first = first_request::receive(connection, runtime, &mut requests) => first,
        () = out.closed() => Ok(None),
    };
    // The request may list every name there is, and must not be held on to for the life of the stream. What a returning client has is
    // read in place, so it stays in memory until the first snapshot.
    let greeted = first.and_then(|first| match first {
        Some((first, charge)) => Ok(Some((greet(connection, call, &first)?, charge))),
        None => Ok(None),
    });
    let ((identity, first), charge) = match greeted {
        Ok(Some(greeted)) => greeted,
        Ok(None) => return None,
        Err(end) => return Some(end),
    };
    let fleet = known.unwrap_or_else(|| ClientFleet::of(inner, &identity.fleet));
    serve(connection, call, &fleet, (identity, first, charge), requests, out).await
}

/// Who it is that sent the first request, and what it asks. Its error is dropped, for it cannot be about a response on this stream.
pub(super) fn greet(connection: &Connection, call: Call, first: &Bytes) -> Result<(Arc<Identity>, Discovery), End> {
    let refuse = |reason, status: Status| {
        warn!(peer = %connection.peer, service = call.service(), "refused a client: {}", status.message());
        End::new(reason, status)
    };
    let mut first = request::decode(call.style, first, &connection.inner.limits)
        .map_err(|error| refuse("invalid_request", Status::invalid_argument(error.to_string())))?;
    first.error = None;
    let node = first.node.take().unwrap_or_default();
    let identity = Identity::establish(&node, &connection.credential, Some(connection.peer))
        .map_err(|error| refuse("unauthorized", Status::permission_denied(error.to_string())))?;
    if let Some(RequiredEnvoy { version, why }) = connection.inner.config.required_envoy
        && identity.is_older_than(version)
    {
        let ((major, minor), Identity { node, version, .. }) = (version, &identity);
        let text = format!("node {node} is Envoy {version}, which is older than {major}.{minor}: {why}");
        return Err(refuse("too_old", Status::failed_precondition(text)));
    }
    Ok((Arc::new(identity), first))
}

async fn serve(
    connection: &Connection,
    call: Call,
    fleet: &ClientFleet,
    (identity, first, mut charge): (Arc<Identity>, Discovery, Charge),
    requests: Messages,
    out: &ResponseSender,
) -> Option<End> {
    let (inner, runtime) = (&connection.inner, &*fleet.runtime);
    let mut snapshots = runtime.watch();
    let mut restored = runtime.restored();
    let has_nothing = !first.subscription.is_of_returning();
    let is_served = snapshots.borrow().is_some() || has_nothing && restored.borrow().is_some();
    if !is_served && !charge.wait(runtime, kept_bytes(&identity, &first)) {
        let why = format!("fleet {} is not published yet, and too many bytes of first requests wait", runtime.fleet);
        inner.ended_early(connection.peer, "not_live", &why);
        return Some(not_live());
    }
    let wait = inner.limits.first_snapshot_timeout;
    // Nothing before everything: until the fleet is published, the client waits, or starts with what was published before.
    let view = tokio::select! {
        biased;
        end = must_end(connection, Some(fleet)) => return Some(end),
        view = published(&mut snapshots) => view?,
        view = published(&mut restored), if has_nothing => view?,
        () = out.closed() => return None,
        () = time::sleep(wait), if !charge.is_free() => {
            let why = format!("fleet {} was not published within {wait:?}", runtime.fleet);
            inner.ended_early(connection.peer, "not_live", &why);
            return Some(not_live());
        }
    };
    drop(charge);
    let (id, now) = (inner.id(), Instant::now());
    let options = Options {
        style: call.style,
        only: call.only,
        limits: inner.limits.clone(),
        resolver: inner.config.resolver.clone(),
        rejected: runtime.rejections.of_node(&identity.node, &identity.version),
        markers: runtime.resend_markers(id),
    };
    let client = Arc::new(Client {
        id,
        identity: identity.clone(),
        stream: format!("{} {}", call.service(), call.variant()),
        since: now,
        session: parking_lot::Mutex::new(Session::new(options, view, now)),
    });
    runtime.join(&client);
    debug!(node = %identity.node, fleet = %identity.fleet, peer = %connection.peer, version = %identity.version,
        service = call.service(), variant = call.variant(), "client connected");
    let _ = inner.events.send(Event::Joined(identity.clone()));
    let limits = &inner.limits;
    let limiter = RateLimiter::new(limits.request_burst, limits.requests_per_second, now);
    let resolved = RateLimiter::new(limits.resolved_per_second, limits.resolved_per_second, now);
    let mut task =
        StreamTask { connection, call, runtime, client, requests, snapshots, limiter, resolved, pause: None, out };
    // A client that reads too slowly to be sent more is cut off, too.
    let end = tokio::select! {
        biased;
        end = must_end(connection, Some(fleet)) => Some(end),
        end = task.run(first) => end,
    };
    runtime.leave(id);
    let reason = end.as_ref().map_or("left", |end| end.reason);
    debug!(node = %identity.node, fleet = %identity.fleet, peer = %connection.peer, service = call.service(), reason,
        "client disconnected");
    let _ = inner.events.send(Event::Left { client: identity, reason });
    end
}

impl StreamTask<'_> {
    /// Takes the first request, and all that comes after it; `None` if the client hung up.
    async fn run(&mut self, first: Discovery) -> Option<End> {
        if let Err(end) = self.take(first).await {
            return Some(end);
        }
        if !self.client.session.lock().is_returning() {
            self.runtime.rejections.forget(&self.client.identity.node, self.call.only);
        }
        // A client may say all it will ever say and go on listening.
        let mut listening = true;
        loop {
            let wake = match self.flush().await {
                Ok(wake) => wake,
                Err(end) => return end,
            };
            // What is not read yet waits on the wire; what there is to send goes out meanwhile.
            self.pause = self.pause.filter(|until| *until > Instant::now());
            let alarm = async {
                match wake.into_iter().chain(self.pause).min() {
                    Some(at) => sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                request = self.requests.next(), if listening && self.pause.is_none() => match request {
                    Ok(Some(bytes)) => {
                        let limits = &self.connection.inner.limits;
                        let asked = match request::decode(self.call.style, &bytes, limits) {
                            Ok(asked) => asked,
                            Err(error) => {
                                let status = Status::invalid_argument(error.to_string());
                                return Some(self.cut("invalid_request", status));
                            }
                        };
                        drop(bytes);
                        if let Err(end) = self.take(asked).await {
                            return Some(end);
                        }
                    }
                    Ok(None) => listening = false,
                    Err(status) if status.code() == tonic::Code::Cancelled => return None,
                    Err(status) => return Some(self.cut("invalid_request", status)),
                },
                changed = self.snapshots.changed() => {
                    if changed.is_err() {
                        return Some(removed());
                    }
                    let next = self.snapshots.borrow_and_update().clone();
                    if let Some(next) = next {
                        self.client.update(self.runtime, |session| session.on_publish(next, Instant::now()));
                    }
                }
                () = alarm => {}
                () = self.out.closed() => return None,
            }
        }
    }

    /// Sends all that can be sent; says when there may be more.
    async fn flush(&mut self) -> Result<Option<Instant>, Option<End>> {
        let metrics = &self.connection.inner.metrics;
        loop {
            let timeout = self.connection.inner.limits.client_timeout;
            let read = self.out.progress();
            let permit = match time::timeout(timeout, self.out.reserve()).await {
                Ok(Some(permit)) => permit,
                Ok(None) => return Err(None),
                // Slow is not stuck: a large message over a thin line may take its time.
                Err(_) if self.out.progress() != read => continue,
                Err(_) => {
                    return Err(Some(self.cut("stalled", Status::resource_exhausted("the client does not read"))));
                }
            };
            // While there was no room, the world may have moved on.
            if self.snapshots.has_changed().unwrap_or(false) {
                let next = self.snapshots.borrow_and_update().clone();
                if let Some(next) = next {
                    self.client.update(self.runtime, |session| session.on_publish(next, Instant::now()));
                }
            }
            let step = self.client.update(self.runtime, |session| session.poll(Instant::now()));
            let response = match step {
                Step::Send(response) => response,
                Step::Idle(wake) => return Ok(wake),
            };
            let (message, encoded) = self.runtime.cache.message(&response);
            let labels = Type::from(response.kind);
            metrics.responses.get_or_create(&labels).inc();
            metrics.bytes.get_or_create(&labels).inc_by(message.len() as u64);
            if encoded {
                metrics.encodes.get_or_create(&labels).inc();
            }
            debug!(node = %self.client.identity.node, kind = %response.kind, nonce = response.nonce,
                upserts = response.upserts.len(), removed = response.removed.len(), bytes = message.len(), "sent");
            permit.send(Item::Message(message));
        }
    }

    /// Takes one request.
    async fn take(&mut self, asked: Discovery) -> Result<(), End> {
        let inner = &self.connection.inner;
        let now = Instant::now();
        let Some(kind) = self.kind(&asked)? else { return self.answer_unknown_type(asked, now).await };
        // What it has may be newer than what was published before.
        if asked.nonce.is_none() && asked.subscription.is_of_returning() && self.snapshots.borrow().is_none() {
            let why =
                format!("the client has {kind} resources from an earlier stream, and its fleet is not published yet");
            inner.ended_early(self.connection.peer, "not_live", &why);
            return Err(not_live());
        }
        let labels = Type::from(kind);
        inner.metrics.requests.get_or_create(&labels).inc();
        let request = Request { kind, nonce: asked.nonce, error: asked.error, subscription: asked.subscription };
        let answer = self.client.on_request(self.runtime, request, now);
        let (answer, rejections) =
            answer.map_err(|cut| self.cut("greedy", Status::resource_exhausted(cut.to_string())))?;
        let resolved = inner.config.resolver.as_ref().is_some_and(|resolver| resolver.resolves(kind));
        if !answer.earned && resolved {
            self.pause = self.resolved.take(now);
        } else if !answer.earned && !self.limiter.try_take(now) {
            return Err(self.cut("flood", Status::resource_exhausted("too many requests")));
        }
        if let Some(latency) = answer.acked {
            inner.metrics.acks.get_or_create(&labels).observe(latency.as_secs_f64());
            debug!(node = %self.client.identity.node, %kind, ?latency, "acknowledged");
        }
        if answer.nacked {
            inner.metrics.nacks.get_or_create(&labels).inc();
        }
        for rejection in rejections {
            inner.metrics.rejections.get_or_create(&labels).inc();
            let origin = rejection.origin.as_ref().map(ToString::to_string).unwrap_or_default();
            debug!(node = %rejection.client.node, fleet = %rejection.client.fleet, version = %rejection.client.version, %kind,
                name = %rejection.name, hash = format_args!("{:016x}", rejection.version), origin, cause = ?rejection.cause,
                "client rejected a resource: {}", rejection.text);
            let _ = inner.events.send(Event::Rejected(rejection));
        }
        if answer.acked.is_some() || answer.nacked {
            self.runtime.answers.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// The type that a request is about; `None` for one that this server does not know.
    fn kind(&self, asked: &Discovery) -> Result<Option<Kind>, End> {
        match (self.call.only, Kind::from_type_url(&asked.type_url)) {
            (Some(only), _) if asked.type_url.is_empty() => Ok(Some(only)),
            (Some(only), Some(kind)) if only == kind => Ok(Some(kind)),
            (Some(only), _) => {
                let text = format!("this service is for {}, not {}", only.type_url(), asked.type_url);
                Err(self.cut("invalid_request", Status::invalid_argument(text)))
            }
            (None, kind) => Ok(kind),
        }
    }

    /// A type that this server does not know has no resources, and the client is told so instead of left to wait.
    async fn answer_unknown_type(&mut self, asked: Discovery, now: Instant) -> Result<(), End> {
        if !self.limiter.try_take(now) {
            return Err(self.cut("flood", Status::resource_exhausted("too many requests")));
        }
        let Subscription::Delta { subscribe, .. } = asked.subscription else { return Ok(()) };
        if asked.nonce.is_some() && subscribe.is_empty() {
            return Ok(());
        }
        let message = self.runtime.cache.nothing(self.call.style, &asked.type_url, &subscribe, 0);
        let timeout = self.connection.inner.limits.client_timeout;
        match time::timeout(timeout, self.out.send(Item::Message(message))).await {
            Ok(_) => Ok(()),
            Err(_) => Err(self.cut("stalled", Status::resource_exhausted("the client does not read"))),
        }
    }

    fn cut(&self, reason: &'static str, status: Status) -> End {
        warn!(node = %self.client.identity.node, fleet = %self.client.identity.fleet, peer = %self.connection.peer,
            reason, "ended the stream of a client: {}", status.message());
        End::new(reason, status)
    }
}

/// The first snapshot of a fleet, once there is one.
pub(super) async fn published(snapshots: &mut watch::Receiver<Option<Arc<Snapshot>>>) -> Option<Arc<Snapshot>> {
    snapshots.wait_for(Option::is_some).await.ok()?.clone()
}

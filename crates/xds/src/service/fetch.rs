//! One answer instead of a stream: what a state-of-the-world client would be sent first.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Body;
use tokio::time;
use tonic::Status;

use super::client_fleet::ClientFleet;
use super::end::{must_end, not_live};
use super::first_request::{self, Charge, kept_bytes};
use super::grpc::Messages;
use super::stream::{greet, published};
use super::{Call, Connection};
use crate::fleet::FleetRuntime;
use crate::identity::Identity;
use crate::kind::Kind;
use crate::limits::Limits;
use crate::metrics::Type;
use crate::session::{Options, Request, Response, Session, Step, Style, Subscription};
use crate::wire::request::Incoming as Discovery;
use crate::wire::response::Message;

/// Answers a fetch.
pub(super) async fn answer<B: Body<Data = Bytes, Error: Display> + Unpin>(
    connection: Arc<Connection>,
    call: Call,
    body: B,
) -> Result<Message, Status> {
    let inner = &connection.inner;
    let kind = call.only.ok_or_else(|| Status::unimplemented("not a discovery service"))?;
    let known = connection.credential.fleet().map(|fleet| ClientFleet::of(inner, fleet));
    let runtime = known.as_ref().map(|fleet| &*fleet.runtime);
    let (identity, asked, charge) = tokio::select! {
        biased;
        end = must_end(&connection, known.as_ref()) => return Err(end.status),
        received = received(&connection, call, kind, body, runtime) => received?,
    };
    let fleet = known.unwrap_or_else(|| ClientFleet::of(inner, &identity.fleet));
    tokio::select! {
        biased;
        end = must_end(&connection, Some(&fleet)) => Err(end.status),
        answer = resources(&connection, &fleet.runtime, kind, (identity, asked, charge)) => answer,
    }
}

/// Who asks, and what.
async fn received<B: Body<Data = Bytes, Error: Display> + Unpin>(
    connection: &Connection,
    call: Call,
    kind: Kind,
    body: B,
    fleet: Option<&FleetRuntime>,
) -> Result<(Arc<Identity>, Discovery, Charge), Status> {
    let limits = &connection.inner.limits;
    let mut requests = Messages::new(body, limits.request_bytes);
    // One deadline for all of it, however slowly it comes: a fetch lists the few names that its client asks for.
    let (first, charge) =
        time::timeout(limits.client_timeout, first_request::receive(connection, fleet, &mut requests))
            .await
            .map_err(|_| Status::deadline_exceeded("the request did not come in time"))?
            .map_err(|end| end.status)?
            .ok_or_else(|| Status::invalid_argument("no request came"))?;
    let (identity, asked) = greet(connection, call, &first).map_err(|end| end.status)?;
    if !asked.type_url.is_empty() && Kind::from_type_url(&asked.type_url) != Some(kind) {
        return Err(Status::invalid_argument(format!("this service is for {}", kind.type_url())));
    }
    Ok((identity, asked, charge))
}

/// The resources that it asks for, once its fleet is published.
async fn resources(
    connection: &Connection,
    runtime: &FleetRuntime,
    kind: Kind,
    (identity, asked, mut charge): (Arc<Identity>, Discovery, Charge),
) -> Result<Message, Status> {
    let inner = &connection.inner;
    let mut snapshots = runtime.watch();
    let is_published = snapshots.borrow().is_some();
    if !is_published && !charge.wait(runtime, kept_bytes(&identity, &asked)) {
        return Err(not_live().status);
    }
    let view = time::timeout(inner.limits.client_timeout, published(&mut snapshots)).await;
    let view = view.ok().flatten().ok_or_else(|| not_live().status)?;
    let now = Instant::now();
    let options = Options {
        style: Style::Sotw,
        only: Some(kind),
        // There is no second answer, so it has to be whole.
        limits: Arc::new(Limits { response_bytes: usize::MAX, ..Limits::clone(&inner.limits) }),
        resolver: inner.config.resolver.clone(),
        rejected: Default::default(),
        markers: Default::default(),
    };
    let Subscription::Sotw { names, .. } = asked.subscription else {
        return Err(Status::internal("a fetch is state of the world"));
    };
    let mut session = Session::new(options, view, now);
    let request = Request { kind, nonce: None, error: None, subscription: Subscription::Sotw { names, version: None } };
    session.on_request(request, now).map_err(|cut| Status::resource_exhausted(cut.to_string()))?;
    let response = match session.poll(now) {
        Step::Send(response) => response,
        Step::Idle(_) => {
            Response { kind, style: Style::Sotw, nonce: 1, version: 0, upserts: Vec::new(), removed: Vec::new() }
        }
    };
    let (message, _) = runtime.cache.message(&response);
    let labels = Type::from(kind);
    inner.metrics.requests.get_or_create(&labels).inc();
    inner.metrics.responses.get_or_create(&labels).inc();
    inner.metrics.bytes.get_or_create(&labels).inc_by(message.len() as u64);
    Ok(message)
}

#[cfg(test)]
mod tests;

//! From an HTTP request to a conversation: which service, which variant, which types.
//!
//! In: a request on a connection. Out: a response whose body is the stream. gRPC's framing is a length in front of each
//! message, so it is done here ([`grpc`]); what a generated service would add is a copy of each response per client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, Method, Request, Response, header};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::warn;

use crate::identity::{Credential, TokenError};
use crate::kind::Kind;
use crate::peer::{self, Peer};
use crate::server::Inner;
use crate::session::Style;

mod client_fleet;
mod end;
mod fetch;
mod first_request;
pub(crate) mod grpc;
mod rate_limiter;
mod stream;

use grpc::{Body, Messages};

/// What the streams of one connection share.
pub(crate) struct Connection {
    pub inner: Arc<Inner>,
    pub peer: SocketAddr,
    pub credential: Credential,
    /// Cancelled when the server stops.
    pub stop: CancellationToken,
    /// Cancelled when the client is authenticated.
    pub authenticated: CancellationToken,
}

impl Connection {
    /// The connection as one request sees it: without a certificate, the token of the request is the credential.
    async fn authenticated(self: Arc<Self>, headers: &HeaderMap) -> Result<Arc<Self>, Status> {
        if !matches!(self.credential, Credential::Anonymous) {
            return Ok(self);
        }
        let refuse = |status: Status| {
            self.inner.refused(self.peer, "token", status.message());
            status
        };
        let nothing = || refuse(Status::unauthenticated("neither a client certificate nor a bearer token"));
        let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|value| value.strip_prefix("Bearer ")).ok_or_else(nothing)?;
        let authenticator = self.inner.config.authenticator.as_ref().ok_or_else(nothing)?;
        let credential = authenticator.authenticate(token).await.map_err(|error| {
            refuse(match error {
                TokenError::Refused(_) => Status::unauthenticated(error.to_string()),
                TokenError::Unavailable(_) => Status::unavailable(error.to_string()),
            })
        })?;
        self.authenticated.cancel();
        let Self { inner, peer, stop, authenticated, .. } = &*self;
        let credential = Credential::Token(credential);
        Ok(Arc::new(Self {
            inner: inner.clone(),
            peer: *peer,
            credential,
            stop: stop.clone(),
            authenticated: authenticated.clone(),
        }))
    }
}

/// One way to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The only type, or all of them.
    pub only: Option<Kind>,
    pub style: Style,
    /// One answer instead of a stream.
    pub fetch: bool,
}

impl Call {
    pub fn service(self) -> &'static str {
        self.only.map_or("ads", Kind::label)
    }

    pub fn variant(self) -> &'static str {
        match (self.fetch, self.style) {
            (true, _) => "fetch",
            (false, Style::Delta) => "delta",
            (false, Style::Sotw) => "sotw",
        }
    }

    /// The call that a path names.
    pub fn of(path: &str) -> Option<Call> {
        let (service, method) = path.strip_prefix("/envoy.service.")?.split_once('/')?;
        let call = |only, style, fetch| Some(Call { only, style, fetch });
        if service == "discovery.v3.AggregatedDiscoveryService" {
            return match method {
                "DeltaAggregatedResources" => call(None, Style::Delta, false),
                "StreamAggregatedResources" => call(None, Style::Sotw, false),
                _ => None,
            };
        }
        let (kind, _, noun) = SERVICES.into_iter().find(|(_, name, _)| *name == service)?;
        match method.strip_suffix(noun)? {
            "Delta" => call(Some(kind), Style::Delta, false),
            "Stream" => call(Some(kind), Style::Sotw, false),
            "Fetch" => call(Some(kind), Style::Sotw, true),
            _ => None,
        }
    }
}

/// The services of one type each, and what their methods call its resources. Token buckets have none.
const SERVICES: [(Kind, &str, &str); Kind::COUNT - 1] = [
    (Kind::Cluster, "cluster.v3.ClusterDiscoveryService", "Clusters"),
    (Kind::Endpoints, "endpoint.v3.EndpointDiscoveryService", "Endpoints"),
    (Kind::Secret, "secret.v3.SecretDiscoveryService", "Secrets"),
    (Kind::Runtime, "runtime.v3.RuntimeDiscoveryService", "Runtime"),
    (Kind::Extension, "extension.v3.ExtensionConfigDiscoveryService", "ExtensionConfigs"),
    (Kind::VirtualHost, "route.v3.VirtualHostDiscoveryService", "VirtualHosts"),
    (Kind::Route, "route.v3.RouteDiscoveryService", "Routes"),
    (Kind::ScopedRoute, "route.v3.ScopedRoutesDiscoveryService", "ScopedRoutes"),
    (Kind::Listener, "listener.v3.ListenerDiscoveryService", "Listeners"),
];

/// Answers one HTTP request.
pub(crate) async fn respond(connection: Arc<Connection>, request: Request<Incoming>) -> Response<Body> {
    let is_grpc = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.as_bytes().starts_with(b"application/grpc") && !kind.as_bytes().starts_with(b"application/grpc-web")
    });
    if request.method() != Method::POST || !is_grpc {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = http::StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    let connection = match connection.authenticated(request.headers()).await {
        Ok(connection) => connection,
        Err(status) => return Body::rejection(&status),
    };
    if request.uri().path() == peer::PATH {
        return match peer(&connection, request.into_body()).await {
            Ok(response) => response,
            Err(status) => Body::rejection(&status),
        };
    }
    let Some(call) = Call::of(request.uri().path()) else {
        return Body::rejection(&Status::unimplemented("not a discovery service"));
    };
    let Ok(permit) = connection.inner.streams.clone().try_acquire_owned() else {
        return Body::rejection(&Status::resource_exhausted("too many streams"));
    };
    if call.fetch {
        return match fetch::answer(connection, call, request.into_body()).await {
            Ok(message) => Body::single(message),
            Err(status) => Body::rejection(&status),
        };
    }
    let (sender, response) = Body::stream();
    tokio::spawn(async move {
        let _permit = permit;
        stream::run(connection, call, request.into_body(), sender).await;
    });
    response
}

/// Lets another replica in.
async fn peer(connection: &Connection, body: Incoming) -> Result<Response<Body>, Status> {
    if !matches!(connection.credential, Credential::Replica { .. } | Credential::Insecure) {
        warn!(peer = %connection.peer, "refused a client that asked for the stream of replicas");
        return Err(Status::permission_denied("the client certificate is not a server's"));
    }
    let nobody = || Status::unavailable("this server accepts no replicas");
    let peers = connection.inner.peers.lock().clone().ok_or_else(nobody)?;
    let (sender, response) = Body::stream();
    let stop = connection.stop.child_token();
    if let Some(expires) = connection.credential.expires() {
        let (left, stop) = (expires.duration_since(SystemTime::now()).unwrap_or_default(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(left) => stop.cancel(),
                () = stop.cancelled() => {}
            }
        });
    }
    let peer = Peer::served(connection.peer, Messages::new(body, peer::LARGEST), sender, stop);
    peers.send(peer).await.map_err(|_| nobody())?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_has_its_variants() {
        let base = "/envoy.service.";
        for (kind, service, noun) in SERVICES {
            let call = Call::of(&format!("{base}{service}/Delta{noun}"));
            assert_eq!(call, Some(Call { only: Some(kind), style: Style::Delta, fetch: false }));
            let call = Call::of(&format!("{base}{service}/Stream{noun}"));
            assert_eq!(call, Some(Call { only: Some(kind), style: Style::Sotw, fetch: false }));
            let call = Call::of(&format!("{base}{service}/Fetch{noun}"));
            assert_eq!(call, Some(Call { only: Some(kind), style: Style::Sotw, fetch: true }));
            assert_eq!(Call::of(&format!("{base}{service}/{noun}")), None);
        }
        assert_eq!(Call::of("/envoy.service.discovery.v3.AggregatedDiscoveryService/Fetch"), None);
        assert_eq!(Call::of("/grpc.health.v1.Health/Check"), None);
    }
}

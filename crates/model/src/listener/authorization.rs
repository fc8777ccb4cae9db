//! The authorization server of a fleet: one that all routes which ask for it share, with what only the filter can say about it.

use crate::{
    HeaderName, MutableHeader, Timeout,
    header::HeaderFormat,
    route::{AuthServer, authorization::AuthProtocol},
};

/// The authorization server of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthorizationService {
    /// The server.
    pub server: AuthServer,
    /// The headers of a request that it is sent over HTTP; all if not set. Over gRPC it is sent all of them.
    pub request_headers: Option<Vec<HeaderName>>,
    /// What it is sent besides.
    pub added_headers: Vec<(MutableHeader, HeaderFormat)>,
    /// The headers of its answer over HTTP that a client whose request is denied is sent.
    pub client_headers: Vec<HeaderName>,
    /// The status of requests about which it cannot be asked; [known to proxies](crate::route::policy::is_status).
    pub status_on_error: u16,
}

impl AuthorizationService {
    /// One that cannot be asked: requests answer 503.
    pub fn closed() -> Self {
        let server = AuthServer {
            extension: None,
            protocol: AuthProtocol::Grpc,
            timeout: Timeout::Default,
            fail_open: false,
            body: None,
        };
        let (request_headers, added_headers, client_headers) = Default::default();
        Self { server, request_headers, added_headers, client_headers, status_on_error: 503 }
    }
}

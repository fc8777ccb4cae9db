//! A rate limit service that answers what the client says: Envoy's gRPC API, over h2c. It is for answers that the
//! [real one](crate::RateLimitService) never gives.
//!
//! In: calls of `ShouldRateLimit`. Out: what the value of the first entry asks for.
//!
//! | value | answer |
//! |---|---|
//! | `set NAME=VALUE` | within the limit; the backend is sent this header, too |
//! | `answer NAME=VALUE` | within the limit; the client is sent this header, too |
//! | `deny NAME=VALUE` | over the limit; the client is sent this header, too |
//! | anything else | within the limit |

use std::net::Ipv4Addr;

use bytes::Bytes;
use envoy_api::Message;
use envoy_api::envoy::config::core::v3::HeaderValue;
use envoy_api::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use h2::{Reason, RecvStream, server::SendResponse};
use http::Request;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::auth_server::{message, send, wished};
use crate::{Net, backend::Error};

/// Its answers.
const OK: i32 = 1;
const OVER_LIMIT: i32 = 2;

/// What is read of `envoy.service.ratelimit.v3.RateLimitRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct RateLimitRequest {
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<RateLimitDescriptor>,
}

/// What is written of `envoy.service.ratelimit.v3.RateLimitResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    overall_code: i32,
    #[prost(message, repeated, tag = "3")]
    response_headers_to_add: Vec<HeaderValue>,
    #[prost(message, repeated, tag = "4")]
    request_headers_to_add: Vec<HeaderValue>,
}

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct LimitServer {
    ip: Ipv4Addr,
    _tasks: JoinSet<()>,
}

impl LimitServer {
    /// Starts one at an address of its own, on port 80.
    pub async fn start() -> Result<LimitServer, Error> {
        let ip = Net::here()?.address();
        let listener = TcpListener::bind((ip, 80)).await.map_err(Error::Listen)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream));
            }
        });
        Ok(LimitServer { ip, _tasks: tasks })
    }

    /// Its address.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }
}

async fn connection(stream: TcpStream) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(call(request, respond));
    }
}

async fn call(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    match message::<RateLimitRequest>(request.into_body()).await {
        Some(request) => {
            let _gone = send(respond, answer(&request).encode_to_vec().into());
        }
        None => respond.send_reset(Reason::PROTOCOL_ERROR),
    }
}

fn answer(request: &RateLimitRequest) -> RateLimitResponse {
    let first = request.descriptors.first().and_then(|descriptor| descriptor.entries.first());
    let wish = first.map_or("", |entry| &entry.value);
    let headers = |kind: &str| {
        let header = |(name, value): (&str, &str)| HeaderValue {
            key: name.to_owned(),
            value: value.to_owned(),
            ..Default::default()
        };
        wished(wish, kind).map(header)
    };
    let denial = headers("deny");
    RateLimitResponse {
        overall_code: if denial.is_some() { OVER_LIMIT } else { OK },
        response_headers_to_add: headers("answer").into_iter().chain(denial).collect(),
        request_headers_to_add: headers("set").into_iter().collect(),
    }
}

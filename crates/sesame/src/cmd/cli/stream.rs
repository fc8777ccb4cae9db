//! One subscription on one stream, in either form of the protocol.

use std::time::Duration;

use anyhow::Result;
use envoy_api::Message;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_api::google::rpc::Status as RpcStatus;
use http::uri::PathAndQuery;
use model::Code;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;
use tracing::warn;

use super::kind::Kind;
use crate::problem::{Coded, Problem};

/// The status code of a NACK: INVALID_ARGUMENT.
const INVALID_ARGUMENT: i32 = 3;
/// After how long without an answer it is said that there is nothing.
const SILENCE: Duration = Duration::from_secs(2);
/// State of the world may send all resources in one message.
const MAX_MESSAGE: usize = 1 << 30;

/// The subscription, and whether responses are ACKed or NACKed.
pub struct Subscription {
    pub kind: Kind,
    pub names: Vec<String>,
    pub node: Node,
    pub nack: bool,
}

impl Subscription {
    fn verdict(&self) -> Option<RpcStatus> {
        let refusal = || RpcStatus {
            code: INVALID_ARGUMENT,
            message: "refused by sesame cli --nack".to_owned(),
            ..Default::default()
        };
        self.nack.then(refusal)
    }
}

/// Opens the stream and waits for the first response. A server that has nothing of a type does not answer: that is said once, and
/// waited for.
async fn begin<Q, R>(
    channel: Channel,
    method: &'static str,
    of: &Subscription,
    first: Q,
) -> Result<(mpsc::Sender<Q>, Streaming<R>, R)>
where
    Q: Message + 'static,
    R: Message + Default + 'static,
{
    let begun = async {
        let (requests, mut responses) = open(channel, method, first).await?;
        let response = next(&mut responses).await?;
        Ok((requests, responses, response))
    };
    tokio::pin!(begun);
    tokio::select! {
        begun = &mut begun => return begun,
        () = tokio::time::sleep(SILENCE) => {}
    }
    let type_url = of.kind.type_url();
    let what = if of.names.is_empty() { "resources of this type".to_owned() } else { of.names.join(", ") };
    warn!(type_url, "the xDS server has no {what} for this fleet yet; waiting");
    begun.await
}

/// Asks for the state of the world, and hands on every answer.
pub async fn state_of_the_world(
    channel: Channel,
    subscription: Subscription,
    mut each: impl FnMut(DiscoveryResponse) -> Result<()>,
) -> Result<()> {
    let first = DiscoveryRequest {
        node: Some(subscription.node.clone()),
        type_url: subscription.kind.type_url(),
        resource_names: subscription.names.clone(),
        ..Default::default()
    };
    let method = subscription.kind.stream_method();
    let (requests, mut responses, mut response): (_, _, DiscoveryResponse) =
        begin(channel, method, &subscription, first.clone()).await?;
    let mut accepted = String::new();
    loop {
        let response_nonce = response.nonce.clone();
        if !subscription.nack {
            accepted.clone_from(&response.version_info);
        }
        each(response)?;
        let answer = DiscoveryRequest {
            node: None,
            version_info: accepted.clone(),
            response_nonce,
            error_detail: subscription.verdict(),
            ..first.clone()
        };
        send(&requests, answer).await?;
        response = next(&mut responses).await?;
    }
}

/// Asks for changes, and hands on every answer.
pub async fn delta(
    channel: Channel,
    subscription: Subscription,
    mut each: impl FnMut(DeltaDiscoveryResponse) -> Result<()>,
) -> Result<()> {
    let first = DeltaDiscoveryRequest {
        node: Some(subscription.node.clone()),
        type_url: subscription.kind.type_url(),
        resource_names_subscribe: subscription.names.clone(),
        ..Default::default()
    };
    let method = subscription.kind.delta_method();
    let (requests, mut responses, mut response): (_, _, DeltaDiscoveryResponse) =
        begin(channel, method, &subscription, first).await?;
    loop {
        let answer = DeltaDiscoveryRequest {
            type_url: subscription.kind.type_url(),
            response_nonce: response.nonce.clone(),
            error_detail: subscription.verdict(),
            ..Default::default()
        };
        each(response)?;
        send(&requests, answer).await?;
        response = next(&mut responses).await?;
    }
}

/// Opens the stream with its first request.
async fn open<Q, R>(channel: Channel, method: &'static str, first: Q) -> Result<(mpsc::Sender<Q>, Streaming<R>)>
where
    Q: Message + 'static,
    R: Message + Default + 'static,
{
    let (sender, receiver) = mpsc::channel(1);
    send(&sender, first).await?;
    let mut grpc = Grpc::new(channel).max_decoding_message_size(MAX_MESSAGE);
    grpc.ready().await.coded(Code::ConnectionFailed, || "the connection was lost".to_owned())?;
    let request = Request::new(ReceiverStream::new(receiver));
    let path = PathAndQuery::from_static(method);
    let response = grpc.streaming(request, path, ProstCodec::<Q, R>::default()).await;
    let response = response.coded(Code::StreamEnded, || "the xDS server rejected the stream".to_owned())?;
    Ok((sender, response.into_inner()))
}

async fn next<R>(responses: &mut Streaming<R>) -> Result<R> {
    match responses.message().await.coded(Code::StreamEnded, || "the stream was reset".to_owned())? {
        Some(response) => Ok(response),
        None => Err(Problem::of(Code::StreamEnded, "the stream ended")),
    }
}

async fn send<Q>(requests: &mpsc::Sender<Q>, request: Q) -> Result<()> {
    requests.send(request).await.map_err(|_| Problem::of(Code::StreamEnded, "the stream was reset"))
}

//! A server on a loopback port and clients that speak to it through generated code.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use envoy_api::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DeltaDiscoveryResponse};
use envoy_api::google::protobuf::{Struct, Value};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};
use xds::{Batch, Changes, Config, FLEET_METADATA, Fleet, Kind, Resource, Security, Server};

/// Long enough for a busy machine, short enough to notice.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs until it is dropped or stopped.
pub struct Running {
    pub server: Server,
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    pub async fn start(config: Config, security: Security) -> Self {
        let server = Server::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = server.clone();
        let task = tokio::spawn(async move {
            let shutdown = async {
                let _ = stopped.await;
            };
            serving.serve(listener, security, shutdown).await.unwrap();
        });
        Self { server, address, stop: Some(stop), task }
    }

    pub async fn insecure() -> Self {
        Self::start(Config::default(), Security::Insecure).await
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        soon("the server to stop", &mut self.task).await.unwrap();
    }

    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        soon("a connection", endpoint.connect()).await.unwrap()
    }

    pub fn publish(&self, upserts: Vec<Resource>, removes: &[(Kind, &str)]) {
        self.publish_to(&Fleet::Shared, upserts, removes);
    }

    pub fn publish_to(&self, fleet: &Fleet, upserts: Vec<Resource>, removes: &[(Kind, &str)]) {
        let removes = removes.iter().map(|(kind, name)| (*kind, (*name).into())).collect();
        self.server.publish(Batch { fleet: fleet.clone(), changes: Changes { upserts, removes } }).unwrap();
    }
}

/// Waits for something that must come.
pub async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// A node that says its fleet.
pub fn node(id: &str, fleet: &str) -> Node {
    let fields = [(FLEET_METADATA.to_owned(), Value::from(fleet))].into();
    Node { id: id.to_owned(), metadata: Some(Struct { fields }), ..Node::default() }
}

pub fn resource(kind: Kind, name: &str, body: &str) -> Resource {
    Resource::new(kind, name, body.as_bytes().to_vec())
}

/// A delta stream.
pub struct Delta {
    requests: mpsc::Sender<DeltaDiscoveryRequest>,
    pub responses: Streaming<DeltaDiscoveryResponse>,
}

impl Delta {
    pub async fn open(channel: Channel) -> Self {
        let (requests, receiver) = mpsc::channel(64);
        let mut client = AggregatedDiscoveryServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        let stream = client.delta_aggregated_resources(ReceiverStream::new(receiver));
        let responses = soon("response headers", stream).await.unwrap().into_inner();
        Self { requests, responses }
    }

    pub async fn send(&self, request: DeltaDiscoveryRequest) {
        self.requests.send(request).await.unwrap();
    }

    pub async fn subscribe(&self, node: Option<Node>, kind: Kind, names: &[&str]) {
        let names = names.iter().map(ToString::to_string).collect();
        let type_url = kind.type_url().to_owned();
        let request = DeltaDiscoveryRequest { node, type_url, resource_names_subscribe: names, ..Default::default() };
        self.send(request).await;
    }

    pub async fn ack(&self, response: &DeltaDiscoveryResponse) {
        let (type_url, response_nonce) = (response.type_url.clone(), response.nonce.clone());
        self.send(DeltaDiscoveryRequest { type_url, response_nonce, ..Default::default() }).await;
    }

    pub async fn next(&mut self) -> DeltaDiscoveryResponse {
        soon("a response", self.responses.message()).await.unwrap().expect("the stream goes on")
    }

    /// How the stream ended.
    pub async fn end(&mut self) -> Status {
        loop {
            match soon("the end of the stream", self.responses.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok(""),
                Err(status) => return status,
            }
        }
    }
}

pub fn names(response: &DeltaDiscoveryResponse) -> Vec<&str> {
    response.resources.iter().map(|resource| resource.name.as_str()).collect()
}

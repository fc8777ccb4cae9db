//! A server on a loopback port, and clients that speak to any of its services.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_api::Message;
use envoy_api::envoy::config::core::v3::Node;
use envoy_api::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_api::google::protobuf::{Struct, Value};
use envoy_api::google::rpc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;
use xds::{Batch, Changes, Config, FLEET_METADATA, Fleet, Kind, Resource, Security, Server};

/// Long enough for a busy machine, short enough to notice.
pub const TIMEOUT: Duration = Duration::from_secs(20);

pub const DELTA_ADS: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
pub const SOTW_ADS: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";

/// The services of one type each: their path, and what their methods call a resource.
pub const SERVICES: [(Kind, &str, &str); 9] = [
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

tokio::task_local! {
    /// The token of all requests.
    pub static TOKEN: String;
}

/// A request with the token of this task, if it has one.
fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    if let Ok(token) = TOKEN.try_with(|token| format!("Bearer {token}").parse().unwrap()) {
        request.metadata_mut().insert("authorization", token);
    }
    request
}

/// A server that runs until it is stopped, or the test ends.
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

    pub async fn secure_channel(&self, tls: ClientTlsConfig) -> Result<Channel, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(format!("https://{}", self.address)).unwrap().tls_config(tls).unwrap();
        soon("a connection", endpoint.connect()).await
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
    time::timeout(TIMEOUT, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// A node that says its fleet.
pub fn node(id: &str, fleet: &str) -> Node {
    let fields = [(FLEET_METADATA.to_owned(), Value::from(fleet))].into();
    Node { id: id.to_owned(), metadata: Some(Struct { fields }), ..Node::default() }
}

pub fn resource(kind: Kind, name: &str, body: &str) -> Resource {
    Resource::new(kind, name, body.as_bytes().to_vec())
}

/// A stream of any service.
pub struct Stream<Q, R> {
    requests: mpsc::Sender<Q>,
    responses: Streaming<R>,
}

pub type Delta = Stream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>;
pub type Sotw = Stream<DiscoveryRequest, DiscoveryResponse>;

impl<Q: Message + Default + 'static, R: Message + Default + 'static> Stream<Q, R> {
    pub async fn open(channel: Channel, path: &str) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::channel(64);
        let mut grpc = Grpc::new(channel).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec: ProstCodec<Q, R> = ProstCodec::default();
        let opening = grpc.streaming(request(ReceiverStream::new(receiver)), path.parse().unwrap(), codec);
        Ok(Self { requests, responses: soon("response headers", opening).await?.into_inner() })
    }

    /// Where more requests go, from another task.
    pub fn sender(&self) -> mpsc::Sender<Q> {
        self.requests.clone()
    }

    pub async fn send(&self, request: Q) {
        self.requests.send(request).await.unwrap();
    }

    pub async fn next(&mut self) -> R {
        soon("a response", self.responses.message()).await.unwrap().expect("the stream goes on")
    }

    /// The next response, or how the stream ended.
    pub async fn try_next(&mut self) -> Result<R, Status> {
        soon("a response", self.responses.message()).await?.ok_or_else(|| Status::ok("the stream ended"))
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

    /// Whether nothing is sent for a moment. There is no event to wait for: silence is the absence of one.
    pub async fn is_silent(&mut self) -> bool {
        time::timeout(Duration::from_millis(200), self.responses.message()).await.is_err()
    }
}

impl Delta {
    pub async fn subscribe(&self, node: Option<Node>, kind: Kind, names: &[&str]) {
        let resource_names_subscribe = names.iter().map(ToString::to_string).collect();
        let type_url = kind.type_url().to_owned();
        self.send(DeltaDiscoveryRequest { node, type_url, resource_names_subscribe, ..Default::default() }).await;
    }

    pub async fn ack(&self, response: &DeltaDiscoveryResponse) {
        let (type_url, response_nonce) = (response.type_url.clone(), response.nonce.clone());
        self.send(DeltaDiscoveryRequest { type_url, response_nonce, ..Default::default() }).await;
    }

    pub async fn nack(&self, response: &DeltaDiscoveryResponse, words: &str) {
        let (type_url, response_nonce) = (response.type_url.clone(), response.nonce.clone());
        let error_detail = Some(rpc::Status { code: 3, message: words.to_owned(), ..Default::default() });
        self.send(DeltaDiscoveryRequest { type_url, response_nonce, error_detail, ..Default::default() }).await;
    }
}

impl Sotw {
    pub async fn subscribe(&self, node: Option<Node>, kind: Kind, names: &[&str]) {
        let resource_names = names.iter().map(ToString::to_string).collect();
        let type_url = kind.type_url().to_owned();
        self.send(DiscoveryRequest { node, type_url, resource_names, ..Default::default() }).await;
    }

    pub async fn ack(&self, response: &DiscoveryResponse, names: &[&str]) {
        let resource_names = names.iter().map(ToString::to_string).collect();
        let DiscoveryResponse { version_info, type_url, nonce: response_nonce, .. } = response.clone();
        let request = DiscoveryRequest { version_info, type_url, response_nonce, resource_names, ..Default::default() };
        self.send(request).await;
    }
}

/// Asks once.
pub async fn fetch(channel: Channel, path: &str, request: DiscoveryRequest) -> Result<DiscoveryResponse, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec: ProstCodec<DiscoveryRequest, DiscoveryResponse> = ProstCodec::default();
    let answer = grpc.unary(self::request(request), path.parse().unwrap(), codec);
    Ok(soon("an answer", answer).await?.into_inner())
}

pub fn names(response: &DeltaDiscoveryResponse) -> Vec<&str> {
    response.resources.iter().map(|resource| resource.name.as_str()).collect()
}

/// The bodies of a state-of-the-world response.
pub fn bodies(response: &DiscoveryResponse) -> Vec<String> {
    response.resources.iter().map(|any| String::from_utf8_lossy(&any.value).into_owned()).collect()
}

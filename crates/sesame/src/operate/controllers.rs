//! The running controllers: the pods of a namespace, or addresses that were given.
//!
//! In: flags. Out: one [`Controller`] for each replica, also for those that cannot be asked, so that a replica that is down is seen.

use anyhow::Result;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams};
use model::Code;

use super::cluster::{ClusterFlags, refusal};
use super::page::{self, Answer};
use super::port_forward;
use crate::problem::Problem;

/// Which controllers are asked.
#[derive(Clone, Debug, clap::Args)]
pub struct ControllerFlags {
    /// Address of a controller's debug pages, instead of a cluster; can be repeated
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["kubeconfig", "context"])]
    pub address: Vec<String>,
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// Label selector of the controller's pods
    #[arg(long, short = 'l', value_name = "SELECTOR", default_value = "app=sesame")]
    pub selector: String,
    /// Port of the debug pages in the pods
    #[arg(long, value_name = "PORT", default_value_t = 6060)]
    pub debug_port: u16,
}

/// One replica.
#[derive(Clone)]
pub struct Controller {
    /// The name of its pod, or its address.
    pub name: String,
    route: Route,
}

#[derive(Clone)]
enum Route {
    Address(String),
    Pod {
        client: Client,
        namespace: String,
        port: u16,
    },
    /// It cannot be asked, and why.
    Down(String),
}

impl ControllerFlags {
    /// All of them.
    ///
    /// # Errors
    /// That there are none, or that the API server does not say which.
    pub async fn find(&self) -> Result<Vec<Controller>> {
        if !self.address.is_empty() {
            let controllers = self
                .address
                .iter()
                .map(|address| Controller { name: address.clone(), route: Route::Address(address.clone()) });
            return Ok(controllers.collect());
        }
        let client = self.cluster.connect().await?;
        let pods = self.pods(&client).await?;
        Ok(pods.into_iter().map(|pod| self.controller(&client, pod)).collect())
    }

    /// The pods of the controllers.
    pub async fn pods(&self, client: &Client) -> Result<Vec<Pod>> {
        let namespace = &self.cluster.namespace;
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let found = pods.list(&ListParams::default().labels(&self.selector)).await;
        let found = found.map_err(|error| refusal(error, &format!("listing pods in namespace {namespace}")))?;
        if found.items.is_empty() {
            let what = format!("no pod with {} in namespace {namespace}", self.selector);
            return Err(Problem::of(Code::ControllerNotFound, what));
        }
        Ok(found.items)
    }

    fn controller(&self, client: &Client, pod: Pod) -> Controller {
        let name = pod.metadata.name.unwrap_or_default();
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        let route = match phase.as_str() {
            "Running" => {
                Route::Pod { client: client.clone(), namespace: self.cluster.namespace.clone(), port: self.debug_port }
            }
            other => Route::Down(format!("the pod is {other}")),
        };
        Controller { name, route }
    }
}

impl Controller {
    /// Asks for a page.
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.ask(Method::GET, path, String::new()).await
    }

    /// Asks for a page in any way.
    pub async fn ask(&self, method: Method, path: &str, body: String) -> Result<Answer> {
        match &self.route {
            Route::Address(address) => page::of_address(address, method, path, body).await,
            Route::Pod { client, namespace, port } => {
                let forwarded = port_forward::connect(client, namespace, &self.name, *port).await?;
                let problem = forwarded.problem;
                let answer = page::ask(forwarded.stream, "localhost", method, path, body).await;
                answer.map_err(|error| match problem.lock().take() {
                    Some(problem) => {
                        let what = format!("port {port} of pod {namespace}/{} does not answer: {problem}", self.name);
                        Problem::of(Code::ConnectionFailed, what)
                    }
                    None => error,
                })
            }
            Route::Down(why) => Err(Problem::of(Code::ControllerNotFound, why.clone())),
        }
    }
}

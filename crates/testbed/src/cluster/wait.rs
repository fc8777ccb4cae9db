//! Waiting for what becomes of objects, by watching them.
//!
//! In: an object and what is expected of it. Out: the object once it is so, or [`Late`] with what it looked like last.
//! A minute each: pods take half a second on a quiet machine, and tests run on busy ones.

mod states;

use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Pod, Service, ServiceAccount};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

pub(super) use states::State;

use super::{Cluster, Error};
use crate::Late;

pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Waits until `look` finds the object, or its absence, as it should be.
pub(super) async fn until<K, T>(
    api: Api<K>,
    name: &str,
    what: &str,
    limit: Duration,
    mut look: impl FnMut(Option<K>) -> Result<T, String>,
) -> Result<T, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + DeserializeOwned + 'static,
{
    let mut last = None;
    let watching = async {
        let mut states = std::pin::pin!(watch_object(api, name).default_backoff());
        while let Some(state) = states.next().await {
            match state.map_err(|error| error.to_string()).and_then(&mut look) {
                Ok(found) => return found,
                Err(seen) => last = Some(seen),
            }
        }
        // A watch goes on for ever, over outages too.
        std::future::pending().await
    };
    match tokio::time::timeout(limit, watching).await {
        Ok(found) => Ok(found),
        Err(_) => Err(Late { what: format!("{} {name} {what}", K::kind(&())), limit, last }.into()),
    }
}

/// Waits until the object is settled in the way that its kind calls so.
pub(super) async fn settled<K>(api: Api<K>, name: &str, limit: Duration) -> Result<K, Error>
where
    K: State + Resource<DynamicType = ()> + Clone + Debug + Send + DeserializeOwned + 'static,
{
    let look = |object: Option<K>| match object {
        Some(object) => object.unsettled().map_or(Ok(object), Err),
        None => Err(states::ABSENT.to_owned()),
    };
    until(api, name, K::SETTLED, limit, look).await
}

/// Waits for the account that the pods of a namespace run as: a controller makes it, and until then pods are refused.
pub(super) async fn account(client: &Client, namespace: &str, limit: Duration) -> Result<(), Error> {
    let look = |account: Option<ServiceAccount>| account.map(drop).ok_or(states::ABSENT.to_owned());
    until(Api::namespaced(client.clone(), namespace), "default", "to exist", limit, look).await
}

impl Cluster {
    /// Waits until an object is as wanted. `look` gets it (or `None`) at each change, and says what is still missing.
    pub async fn until<K, T>(
        &self,
        namespace: &str,
        name: &str,
        what: &str,
        look: impl FnMut(Option<K>) -> Result<T, String>,
    ) -> Result<T, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + 'static,
    {
        until(Api::namespaced(self.client()?, namespace), name, what, LIMIT, look).await
    }

    /// Waits until an object does not exist.
    pub async fn gone<K>(&self, namespace: &str, name: &str) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Send
            + DeserializeOwned
            + 'static,
    {
        let look = |object: Option<K>| object.map_or(Ok(()), |_| Err("it exists".to_owned()));
        self.until(namespace, name, "to be gone", look).await
    }

    /// Waits until a pod is ready.
    pub async fn pod_ready(&self, namespace: &str, name: &str) -> Result<Pod, Error> {
        settled(self.api_of(namespace)?, name, LIMIT).await
    }

    /// Waits until all pods of a Deployment are of its newest version and available.
    pub async fn deployment_available(&self, namespace: &str, name: &str) -> Result<Deployment, Error> {
        settled(self.api_of(namespace)?, name, LIMIT).await
    }

    /// Waits until every node that should have a pod of a DaemonSet has an available one of its newest version.
    pub async fn daemon_set_available(&self, namespace: &str, name: &str) -> Result<DaemonSet, Error> {
        settled(self.api_of(namespace)?, name, LIMIT).await
    }

    /// Waits until a Service of type LoadBalancer has an address.
    pub async fn load_balancer_address(&self, namespace: &str, name: &str) -> Result<IpAddr, Error> {
        let look = |service: Option<Service>| states::address(&service.ok_or(states::ABSENT)?);
        self.until(namespace, name, "to get a load balancer address", look).await
    }

    fn api_of<K>(&self, namespace: &str) -> Result<Api<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client: Client = self.client()?;
        Ok(Api::namespaced(client, namespace))
    }
}

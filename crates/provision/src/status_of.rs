//! How a fleet is doing, from the objects that the API server has.

use model::status::Address;
use serde_json::Value;

use crate::Problem;

/// How a fleet is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetStatus {
    /// The uid of its Gateway: what is said about another Gateway of that name is not said about this one.
    pub uid: String,
    /// How many proxies are ready.
    pub ready: u32,
    /// Where clients reach it: the addresses of its load balancer.
    pub addresses: Vec<Address>,
    /// Why it is not as it should be, if so. What existed before may still serve.
    pub problem: Option<Problem>,
}

impl FleetStatus {
    /// Whether clients can be served: proxies are ready, and there is an address to reach them by.
    pub fn is_ready(&self) -> bool {
        self.problem.is_none() && self.ready > 0 && !self.addresses.is_empty()
    }
}

/// How many pods of a Deployment are ready.
pub(crate) fn ready(deployment: &Value) -> u32 {
    deployment["status"]["readyReplicas"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
}

/// The addresses of a Service's load balancer.
pub(crate) fn addresses(service: &Value) -> Vec<Address> {
    let all = service["status"]["loadBalancer"]["ingress"].as_array();
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(Box::from);
    let all =
        all.into_iter().flatten().map(|entry| Address { ip: text(&entry["ip"]), hostname: text(&entry["hostname"]) });
    all.filter(|address| address.ip.is_some() || address.hostname.is_some()).collect()
}

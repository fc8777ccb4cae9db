//! HTTPProxy, `projectcontour.io/v1` and `projectsesame.io/v1`.
//!
//! Every field of the API is here, also those that nothing serves yet: what protects must be seen to be refused. Each
//! part that can be lost alone is [`Checked`]; inside a policy a bad value spoils the policy, because half a policy is
//! not what anybody asked for.

pub mod condition;
pub mod rate_limit;
pub mod route;
pub mod security;
pub mod service;
pub mod status;
pub mod tcp_proxy;
pub mod virtual_host;

pub use condition::{Condition, HeaderCondition, QueryParameterCondition};
pub use route::Route;
pub use service::Service;
pub use status::HttpProxyStatus;
pub use tcp_proxy::TcpProxy;
pub use virtual_host::VirtualHost;

use crate::{Checked, List, Meta};
use serde::Deserialize;

/// A host and its routes (a root), or routes for others to include (a child).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpProxy {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is asked for.
    #[serde(default)]
    pub spec: HttpProxySpec,
    /// What was last said about it.
    #[serde(default)]
    pub status: Checked<HttpProxyStatus>,
}

/// What an HTTPProxy asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpProxySpec {
    /// The host; a child has none.
    #[serde(default, rename = "virtualhost")]
    pub virtual_host: Checked<Option<Box<VirtualHost>>>,
    /// The routes.
    #[serde(default)]
    pub routes: List<Route>,
    /// The children.
    #[serde(default)]
    pub includes: List<Include>,
    /// Connections that are passed on without being read.
    #[serde(default, rename = "tcpproxy")]
    pub tcp_proxy: Checked<Option<Box<TcpProxy>>>,
    /// The class that says which controller it is for.
    #[serde(default)]
    pub ingress_class_name: Checked<Option<Box<str>>>,
}

/// A child, and which requests it may take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Include {
    /// The child's name.
    pub name: Box<str>,
    /// Its namespace; that of the including object if absent.
    #[serde(default)]
    pub namespace: Option<Box<str>>,
    /// What all its routes must fulfil besides their own conditions.
    #[serde(default)]
    pub conditions: List<Condition>,
}

/// The fields of the API that nothing reads.
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD, ("LoadBalancerAddress", &["ports", "ipMode"])];

#[cfg(test)]
mod tests;

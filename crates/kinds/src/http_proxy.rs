//! HTTPProxy, `projectcontour.io/v1` and `projectsesame.io/v1`.
//!
//! Every field of the API is here, also those that nothing serves yet: what protects must be seen to be refused. Each
//! part that can be lost alone is [`Checked`]; inside a policy a bad value spoils the policy, because half a policy is
//! not what anybody asked for.

pub mod rate_limit;
pub mod route;
pub mod security;
pub mod service;
pub mod virtual_host;

use crate::{Checked, List, Meta, Status};
use serde::Deserialize;

pub use route::Route;
pub use service::Service;
pub use virtual_host::{TcpProxy, VirtualHost};

/// A host and its routes (a root), or routes for others to include (a child).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HttpProxy {
    /// Its names.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// What is asked for.
    #[serde(default)]
    pub spec: HttpProxySpec,
    /// Its status.
    #[serde(default)]
    pub status: Status,
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
pub(crate) const UNREAD: &[(&str, &[&str])] = &[crate::meta::UNREAD];

/// One condition of several that must all hold; it may say something about each part of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The path begins with this text.
    pub prefix: Option<Box<str>>,
    /// The path is this text.
    pub exact: Option<Box<str>>,
    /// The whole path matches this pattern.
    pub regex: Option<Box<str>>,
    /// About a header.
    pub header: Option<Box<HeaderCondition>>,
    /// About a query parameter.
    pub query_parameter: Option<Box<QueryParameterCondition>>,
}

/// A condition about a header; one of the operators should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderCondition {
    /// The header.
    #[serde(default)]
    pub name: Box<str>,
    /// It is there.
    #[serde(default)]
    pub present: bool,
    /// It is not there.
    #[serde(default, rename = "notpresent")]
    pub not_present: bool,
    /// Its value has this text in it.
    pub contains: Option<Box<str>>,
    /// Its value does not have this text in it.
    #[serde(rename = "notcontains")]
    pub not_contains: Option<Box<str>>,
    /// Its value is this text.
    pub exact: Option<Box<str>>,
    /// Its value is not this text.
    #[serde(rename = "notexact")]
    pub not_exact: Option<Box<str>>,
    /// Its whole value matches this pattern.
    pub regex: Option<Box<str>>,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// A header that is not there is an empty one.
    #[serde(default)]
    pub treat_missing_as_empty: bool,
}

/// A condition about a query parameter; one of the operators should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryParameterCondition {
    /// The parameter.
    #[serde(default)]
    pub name: Box<str>,
    /// Its value is this text.
    pub exact: Option<Box<str>>,
    /// Its value begins with this text.
    pub prefix: Option<Box<str>>,
    /// Its value ends with this text.
    pub suffix: Option<Box<str>>,
    /// Its whole value matches this pattern.
    pub regex: Option<Box<str>>,
    /// Its value has this text in it.
    pub contains: Option<Box<str>>,
    /// It is there.
    #[serde(default)]
    pub present: bool,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
}

#[cfg(test)]
mod tests {
    //! HTTPProxies as people write them, and as they should not.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::{decode_json, kind};
    use serde_json::json;

    fn read(spec: serde_json::Value) -> (HttpProxy, Vec<String>, Vec<String>) {
        let object = json!({ "metadata": { "name": "shop", "namespace": "a" }, "spec": spec });
        let decoded = decode_json(kind::CONTOUR_HTTP_PROXY, object.to_string().as_bytes()).unwrap();
        let proxy = HttpProxy::clone(decoded.object.get::<HttpProxy>().unwrap());
        let faults = decoded.faults.iter().map(|fault| fault.path.to_string()).collect();
        (proxy, faults, decoded.unknown.iter().map(|field| field.path.to_string()).collect())
    }

    #[test]
    fn a_root_and_its_parts() {
        let (proxy, faults, unknown) = read(json!({
            "virtualhost": { "fqdn": "a.example.com", "tls": { "secretName": "cert" } },
            "routes": [{
                "conditions": [{ "prefix": "/a" }, { "header": { "name": "x-team", "notcontains": "b" } }],
                "services": [{ "name": "web", "port": 80, "weight": 3 }],
                "timeoutPolicy": { "response": "5s" },
            }],
            "includes": [{ "name": "child", "namespace": "b", "conditions": [{ "prefix": "/b" }] }],
        }));
        assert_eq!((faults, unknown), (Vec::new(), Vec::new()));
        let host = proxy.spec.virtual_host.get().unwrap().as_ref().unwrap();
        assert_eq!(host.tls.get().unwrap().as_ref().unwrap().secret_name.as_deref(), Some("cert"));
        let (_, route) = proxy.spec.routes.good().next().unwrap();
        assert_eq!(route.services.good().next().unwrap().1.weight, Some(3));
        assert_eq!(proxy.spec.includes.good().next().unwrap().1.namespace.as_deref(), Some("b"));
    }

    #[test]
    fn a_bad_value_spoils_the_smallest_part() {
        let (proxy, faults, unknown) = read(json!({
            "virtualhost": { "fqdn": "a.example.com", "ipAllowPolicy": "everyone" },
            "routes": [
                { "services": [{ "name": "web", "port": "http" }, { "name": "web", "port": 80 }], "permitInsecure": "yes" },
                { "timeoutPolicy": { "response": 5 }, "service": [] },
            ],
        }));
        let host = proxy.spec.virtual_host.get().unwrap().as_ref().unwrap();
        assert!(host.fqdn.get().is_ok() && host.ip_allow.get().is_err());
        let routes: Vec<_> = proxy.spec.routes.good().map(|(_, route)| route).collect();
        assert_eq!((routes.len(), routes[0].services.good().count()), (2, 1));
        assert!(routes[0].permit_insecure.get().is_err() && routes[1].timeout_policy.get().is_err());
        assert_eq!(
            faults,
            [
                "spec.routes[0].permitInsecure",
                "spec.routes[0].services[0].port",
                "spec.routes[1].timeoutPolicy.response",
                "spec.virtualhost.ipAllowPolicy",
            ]
        );
        assert_eq!(unknown, ["spec.routes[1].service"]);
    }
}

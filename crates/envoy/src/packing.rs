//! Which virtual hosts travel together: the only module that knows.
//!
//! In: the virtual hosts of a port. Out: the resources that carry them, and the parts of a connection manager that find them
//! there. There are two packings:
//!
//! - a *table* ([`plain`]): one `RouteConfiguration` for all hosts. Any edit costs Envoy the whole of it, 118 ms of CPU at
//!   10,000 hosts;
//! - *scopes* ([`scoped`]): a resource for each exact host, and one for the wildcards. An edit costs one host.
//!
//! Whichever it is, a request gets the same answer; every behaviour test runs with both. [`plain`] makes a message of
//! parts that are encoded already, for the resources that many hosts share; [`admission`] says on which connections of a TLS
//! port a host is served; [`redirects`] says which hosts a redirect may lead to that Envoy follows by itself.

pub mod admission;
pub mod plain;
pub mod redirects;
pub mod scoped;

use bytes::Bytes;
use model::{Host, ObjectRef, PortId, tls::Admission};
use prost::Message;

use crate::{
    name,
    virtual_host::{self, tree},
};

/// How virtual hosts travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// A table for each port.
    Plain,
    /// A scope for each exact host.
    #[default]
    Scoped,
}

/// A virtual host of a port that shares a resource with others, encoded once for all of its neighbours' edits; on a TLS port
/// with the connections that may carry its requests.
pub fn encode(packing: Packing, port: &PortId, host: &model::VirtualHost, admission: Option<&Admission>) -> Bytes {
    let mut encoded = virtual_host::virtual_host(port, host);
    redirects::prepare(&name::redirects_key(port), &mut encoded);
    if let Some(admission) = admission {
        admission::guard(packing, port, &host.host, host.only_author(), admission, &mut encoded);
    }
    tree::shape(&mut encoded);
    encoded.encode_to_vec().into()
}

/// What stands in for a host that shares a resource with others, while proxies refuse it.
pub fn refused(host: &Host, author: Option<&ObjectRef>) -> Bytes {
    virtual_host::refused(host, author).encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    //! Splicing gives the same bytes as encoding, and each arrangement holds what it must.

    use super::*;
    use envoy_api::envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration};
    use model::{FleetId, VirtualHost, route::RouteList};

    fn http() -> PortId {
        PortId::new(FleetId::Shared, "ingress_http")
    }

    fn host(text: &str) -> VirtualHost {
        VirtualHost {
            host: Host::parse(text).expect("a host"),
            routes: RouteList::default(),
            catch_all: RouteList::default(),
            local_rate_limit: None,
        }
    }

    fn decoded(host: &Bytes) -> envoy_api::envoy::config::route::v3::VirtualHost {
        Message::decode(host.clone()).expect("it decodes")
    }

    #[test]
    fn spliced_bytes_are_the_message() {
        let hosts = [host("a.example.com"), host("*.example.com")];
        let encoded: Vec<Bytes> = hosts.iter().map(|host| encode(Packing::Plain, &http(), host, None)).collect();
        let spliced = plain::route_table(&http(), encoded.iter());
        let whole = RouteConfiguration {
            virtual_hosts: encoded.iter().map(decoded).collect(),
            ..plain::head("ingress_http".to_owned())
        };
        assert_eq!(RouteConfiguration::decode(spliced).expect("it decodes"), whole);
    }

    #[test]
    fn a_scope_is_named_by_a_short_hash_of_its_key() {
        let scope =
            ScopedRouteConfiguration::decode(scoped::host(&http(), &host("a.example.com"), None)).expect("it decodes");
        let catch_all = scoped::catch_all(&http(), [Bytes::new()].iter());
        let catch_all = ScopedRouteConfiguration::decode(catch_all).expect("it decodes");
        for (scope, key) in [(scope, "ingress_http|a.example.com"), (catch_all, "ingress_http|*")] {
            assert_eq!(scope.name.len(), 22);
            assert!(scope.name.starts_with(&crate::name::scope_group(&http())));
            let routes = scope.route_configuration.expect("it has routes");
            assert_eq!(routes.name, key);
            assert!(!routes.virtual_hosts.is_empty());
            let fragments = scope.key.expect("it has a key").fragments;
            let fragments = fragments.into_iter().map(|fragment| format!("{:?}", fragment.r#type)).collect::<String>();
            assert!(fragments.contains(&format!("{key:?}")), "{fragments}");
        }
    }

    #[test]
    fn no_name_can_leave_its_group() {
        let port = PortId::new(FleetId::Shared, "a|b:%REQ(x)%~");
        assert_eq!(crate::name::group(&port), "a~7cb~3a~25REQ(x)~25~7e");
    }

    #[test]
    fn a_connection_that_may_not_carry_a_request_is_the_only_one_that_is_told_so() {
        let chains = |names: &[&str]| Admission {
            chains: names.iter().map(|&name| name.into()).collect(),
            by_server_name: false,
            http3_port: None,
        };
        let guarded = |packing, admission: &Admission| {
            let host = decoded(&encode(packing, &http(), &host("a.example.com"), Some(admission)));
            let mut routes = host.routes.into_iter();
            let route = routes.find(|route| route.name == virtual_host::MISDIRECTED).expect("it has the route");
            route.r#match.expect("it matches something").headers
        };
        let names = |headers: Vec<envoy_api::envoy::config::route::v3::HeaderMatcher>| {
            headers.into_iter().map(|header| (header.name, header.invert_match)).collect::<Vec<_>>()
        };
        let chain = (admission::CHAIN.to_owned(), true);
        let key = (redirects::KEY.to_owned(), true);
        assert_eq!(names(guarded(Packing::Scoped, &chains(&["l/a"]))), vec![chain.clone()]);
        assert_eq!(names(guarded(Packing::Scoped, &chains(&["l/a", "l/b"]))), [chain.clone(), chain.clone()]);
        assert_eq!(names(guarded(Packing::Plain, &chains(&["l/a"]))), [chain, key]);
        assert_eq!(names(guarded(Packing::Scoped, &chains(&[]))), []);
    }
}

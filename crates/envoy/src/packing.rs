//! Which virtual hosts travel together: the only module that knows the arrangement.
//!
//! In: the virtual hosts of a route table (a plaintext port, or a TLS chain). Out: the resources that carry them, and
//! the parts of a connection manager that find them there. There are two arrangements:
//!
//! - a *table* ([`plain`]): one `RouteConfiguration` for all hosts. Any edit costs Envoy the whole of it, 118 ms of CPU at
//!   10,000 hosts;
//! - *scopes* ([`scoped`]): a resource for each exact host, and one for the wildcards. An edit costs one host.
//!
//! Whichever it is, a request gets the same answer; every behaviour test runs with both. [`plain`] makes a message of
//! parts that are encoded already, for the resources that many hosts share; [`bound`] keeps apart hosts of one table that
//! have different certificates; [`redirects`] says which hosts a redirect may lead to that Envoy follows by itself.

pub mod bound;
pub mod plain;
pub mod redirects;
pub mod scoped;

use bytes::Bytes;
use model::{Host, RouteTableId};
use prost::Message;

use crate::{
    name,
    virtual_host::{self, tree},
};

/// Which arrangement the operator wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// A table for each port and each TLS chain.
    Plain,
    /// A scope for each host.
    #[default]
    Scoped,
}

/// How the hosts of one route table travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// All in one route configuration.
    Table,
    /// Each exact host in a scope of its own.
    Scopes,
}

/// Which hosts a route table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// There is at least one exact host.
    pub exact: bool,
    /// There is at least one wildcard.
    pub wildcard: bool,
}

impl Packing {
    /// How the hosts of a table travel. Wildcards are found by a detour when they stand in scopes, so a TLS chain that has
    /// nothing else is better off with a table. A plaintext port never changes its arrangement: that would cut all of
    /// its connections, where for a chain it is those of one certificate.
    pub fn arrangement(self, table: &RouteTableId, contents: Contents) -> Arrangement {
        match self {
            Packing::Plain => Arrangement::Table,
            Packing::Scoped if table.termination.is_some() && contents.wildcard && !contents.exact => {
                Arrangement::Table
            }
            Packing::Scoped => Arrangement::Scopes,
        }
    }
}

/// A virtual host of a table that shares a resource with others, encoded once for all of its neighbours' edits.
pub fn encode(table: &RouteTableId, host: &model::VirtualHost) -> Bytes {
    let mut encoded = virtual_host::virtual_host(host);
    redirects::prepare(&name::redirects_key(table), &mut encoded);
    bound::bind(table, &host.host, &mut encoded);
    tree::shape(&mut encoded);
    encoded.encode_to_vec().into()
}

/// The answer for a host that stands in another table: 421, in the place where the host would stand here.
pub fn misdirected(table: &RouteTableId, host: &Host) -> Bytes {
    redirects::misdirected(table, host).encode_to_vec().into()
}

/// What stands in for a host that shares a resource with others, while proxies refuse it.
pub fn refused(host: &Host) -> Bytes {
    virtual_host::refused(host).encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    //! Splicing gives the same bytes as encoding, and each arrangement holds what it must.

    use super::*;
    use envoy_api::envoy::config::route::v3::{RouteConfiguration, ScopedRouteConfiguration};
    use model::{
        CertificateRef, ListenerId, ObjectRef, VirtualHost,
        tls::{Termination, TlsVersion},
    };
    use std::sync::Arc;

    fn http() -> RouteTableId {
        RouteTableId { listener: ListenerId::http(), termination: None }
    }

    fn tls(secret: &str) -> RouteTableId {
        let certificate = CertificateRef::Secret(ObjectRef::new(kinds::kind::SECRET, "ns", secret));
        let termination = Termination { certificate, lowest: TlsVersion::V1_2, highest: TlsVersion::V1_3 };
        RouteTableId { listener: ListenerId::https(), termination: Some(Arc::new(termination)) }
    }

    fn host(text: &str) -> VirtualHost {
        VirtualHost { host: Host::parse(text).expect("a host"), routes: Vec::new(), catch_all: Vec::new(), limit: None }
    }

    #[test]
    fn spliced_bytes_are_the_message() {
        let hosts = [host("a.example.com"), host("*.example.com")];
        let encoded: Vec<Bytes> = hosts.iter().map(|host| encode(&http(), host)).collect();
        let spliced = plain::route_table(&http(), hosts.iter().map(|h| &h.host).zip(&encoded));
        let whole = RouteConfiguration {
            virtual_hosts: hosts.iter().map(virtual_host::virtual_host).collect(),
            ..plain::head("ingress_http".to_owned())
        };
        assert_eq!(RouteConfiguration::decode(spliced).expect("it decodes"), whole);
    }

    #[test]
    fn a_scope_is_named_by_a_short_hash_of_its_key() {
        let scope =
            ScopedRouteConfiguration::decode(scoped::host(&http(), &host("a.example.com"))).expect("it decodes");
        let catch_all = scoped::catch_all(&tls("c"), std::iter::empty());
        let catch_all = ScopedRouteConfiguration::decode(catch_all).expect("it decodes");
        for (scope, table, key) in
            [(scope, http(), "ingress_http|a.example.com"), (catch_all, tls("c"), "ingress_https/ns/c/tls1.2-1.3|*")]
        {
            assert_eq!(scope.name.len(), 22);
            assert!(scope.name.starts_with(&crate::name::scope_group(&table)));
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
        assert_eq!(crate::name::group(&tls("a|b:%REQ(x)%~")), "ingress_https/ns/a~7cb~3a~25REQ(x)~25~7e/tls1.2-1.3");
    }

    #[test]
    fn only_a_chain_of_wildcards_alone_is_a_table() {
        let packed =
            |table: &RouteTableId, exact, wildcard| Packing::Scoped.arrangement(table, Contents { exact, wildcard });
        assert_eq!(packed(&tls("c"), false, true), Arrangement::Table);
        assert_eq!(packed(&tls("c"), true, true), Arrangement::Scopes);
        assert_eq!(packed(&tls("c"), false, false), Arrangement::Scopes);
        assert_eq!(packed(&http(), false, true), Arrangement::Scopes);
        let plain = Packing::Plain.arrangement(&http(), Contents { exact: true, wildcard: true });
        assert_eq!(plain, Arrangement::Table);
    }
}

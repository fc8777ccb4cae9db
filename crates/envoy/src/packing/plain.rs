//! A table: one `RouteConfiguration` by RDS for all hosts of a port or a chain.

use bytes::Bytes;
use envoy_api::envoy::extensions::filters::network::http_connection_manager::v3::{
    Rds, http_connection_manager::RouteSpecifier,
};
use model::{Host, RouteTableId};

use super::spliced;
use crate::name;

/// The route configuration of a table, from its hosts' bytes in the order of the hosts.
pub fn route_table<'a>(id: &RouteTableId, hosts: impl Iterator<Item = (&'a Host, &'a Bytes)>) -> Bytes {
    spliced::routes(name::route_table(id), id, hosts).freeze()
}

/// The hosts of a route configuration that was made here, by name, as they were put in.
pub fn hosts(table: &Bytes) -> Vec<(String, Bytes)> {
    spliced::hosts(table)
}

/// Where a connection manager finds it.
pub(crate) fn specifier(table: &RouteTableId) -> RouteSpecifier {
    RouteSpecifier::Rds(Rds {
        config_source: Some(name::on_this_stream()),
        route_config_name: name::route_table(table),
    })
}

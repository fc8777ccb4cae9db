//! A table: one `RouteConfiguration` by RDS for all hosts of a port.
//!
//! It is made of virtual hosts that are encoded already: they are encoded once, when they change, and only copied
//! here.

use bytes::{Buf, Bytes, BytesMut};
use envoy_api::envoy::{
    config::{
        core::v3::{HeaderValue, HeaderValueOption, header_value_option::HeaderAppendAction},
        route::v3::RouteConfiguration,
    },
    extensions::filters::network::http_connection_manager::v3::{Rds, http_connection_manager::RouteSpecifier},
};
use model::PortId;
use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};

use crate::{name, splice::append};

/// The route configuration of a table, from its hosts' bytes in the order of the hosts.
pub fn route_table<'a>(port: &PortId, hosts: impl Iterator<Item = &'a Bytes>) -> Bytes {
    routes(head(name::port(port)), hosts).freeze()
}

/// Where a connection manager finds it.
pub(crate) fn specifier(port: &PortId) -> RouteSpecifier {
    RouteSpecifier::Rds(Rds { config_source: Some(name::on_this_stream()), route_config_name: name::port(port) })
}

/// The number of `RouteConfiguration.virtual_hosts`.
const VIRTUAL_HOSTS: u32 = 2;
/// The number of `VirtualHost.name`.
const NAME: u32 = 1;

/// A route configuration, from its hosts' bytes in the order of the hosts.
pub(super) fn routes<'a>(head: RouteConfiguration, hosts: impl Iterator<Item = &'a Bytes>) -> BytesMut {
    let mut bytes = BytesMut::from(&head.encode_to_vec()[..]);
    hosts.for_each(|host| append(&mut bytes, VIRTUAL_HOSTS, host));
    bytes
}

/// The hosts of a route configuration that was made here, by name, as they were put in.
pub fn hosts(routes: &Bytes) -> Vec<(String, Bytes)> {
    let name = |host: &Bytes| {
        let name = parts(host, NAME).into_iter().next().unwrap_or_default();
        String::from_utf8_lossy(&name).into_owned()
    };
    parts(routes, VIRTUAL_HOSTS).into_iter().map(|host| (name(&host), host)).collect()
}

/// The contents of all fields of that number, which have a length. What cannot be read ends the message.
pub(super) fn parts(message: &Bytes, number: u32) -> Vec<Bytes> {
    let (mut rest, mut found) = (message.clone(), Vec::new());
    while rest.has_remaining() {
        let Ok((field, wire_type)) = decode_key(&mut rest) else { break };
        if wire_type == WireType::LengthDelimited {
            let length = decode_varint(&mut rest).ok().and_then(|length| usize::try_from(length).ok());
            let Some(length) = length.filter(|length| *length <= rest.len()) else { break };
            let part = rest.split_to(length);
            if field == number {
                found.push(part);
            }
        } else if skip_field(wire_type, field, &mut rest, DecodeContext::default()).is_err() {
            break;
        }
    }
    found
}

/// All of a route configuration but its hosts: the port in a Host never matters, and backends learn when a request came.
pub(super) fn head(name: String) -> RouteConfiguration {
    RouteConfiguration {
        name,
        ignore_port_in_host_matching: true,
        request_headers_to_add: vec![HeaderValueOption {
            header: Some(HeaderValue {
                key: "x-request-start".to_owned(),
                value: "t=%START_TIME(%s.%3f)%".to_owned(),
                ..Default::default()
            }),
            append_action: HeaderAppendAction::AppendIfExistsOrAdd.into(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

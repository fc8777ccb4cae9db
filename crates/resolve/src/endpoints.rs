//! The endpoints of a Service port that are to be used now, from all its EndpointSlices.
//!
//! Whoever may write a Service may write its EndpointSlices. So an address counts only if the slice is of its family and it is one
//! that objects may lead to ([`crate::address`]): an API server lets a slice of names, `FQDN`, have any text for an address. What
//! does not count is told on the slice ([`refused`]), and the other endpoints are used.

use crate::{
    address,
    service::{self, Port, Service, Target},
};
use kinds::{
    EndpointSlice,
    endpoint_slice::{AddressType, Conditions},
};
use model::{Endpoint, Endpoints, FieldPath, Transport};
use std::{net::IpAddr, sync::Arc};

/// The endpoints of one port, which are probed at another where `health` names one.
///
/// Used are those that are ready; where none is, those that still serve while they end, so that a rollout that goes
/// wrong serves for as long as anything can. A Service with both address families is reached over IPv4.
pub fn endpoints<'a>(
    service: &Service,
    number: u16,
    transport: Transport,
    health: Option<u16>,
    slices: impl Iterator<Item = &'a EndpointSlice>,
) -> Endpoints {
    let Some(port) = service.numbered(number, transport) else { return Endpoints::default() };
    match &service.target {
        Target::Slices => {
            let health = health.and_then(|number| service.numbered(number, transport));
            from_slices(port, health, slices, service.local_endpoints)
        }
        Target::Listed(list) => {
            let endpoint = |target: &model::cluster::DnsTarget| {
                let address = target.host.parse().ok()?;
                Some(Endpoint { address, port: target.port, zone: "".into(), weight: 1, health_port: health })
            };
            sorted(list.iter().filter_map(endpoint).collect())
        }
        Target::External(_) | Target::Refused(_) => Endpoints::default(),
    }
}

fn from_slices<'a>(
    port: &Port,
    health: Option<&Port>,
    slices: impl Iterator<Item = &'a EndpointSlice>,
    local: bool,
) -> Endpoints {
    let mut ready = Vec::new();
    let mut ending = Vec::new();
    for slice in slices {
        let numbers: Vec<u16> = slice.ports.good().filter_map(|(_, own)| slice_port(port, own)).collect();
        let health_port = health.and_then(|port| slice.ports.good().find_map(|(_, own)| slice_port(port, own)));
        for (_, endpoint) in slice.endpoints.good() {
            let into = match state(endpoint.conditions) {
                State::Ready => &mut ready,
                State::Ending => &mut ending,
                State::Away => continue,
            };
            let zone: Arc<str> = endpoint.zone.as_deref().unwrap_or_default().into();
            let Some(Ok(address)) = address_of(slice, endpoint, local) else { continue };
            let endpoint = |&port: &u16| Endpoint { address, port, zone: zone.clone(), weight: 1, health_port };
            into.extend(numbers.iter().map(endpoint));
        }
    }
    sorted(if ready.is_empty() { ending } else { ready })
}

/// The address of an endpoint, if it has one, or why it is not used. All addresses of an endpoint lead to the same place: the first
/// is enough.
fn address_of(
    slice: &EndpointSlice,
    endpoint: &kinds::endpoint_slice::Endpoint,
    local: bool,
) -> Option<Result<IpAddr, String>> {
    let text = endpoint.addresses.first()?;
    // An API server takes no slice without a type, files may have none.
    let family = slice.address_type.get().ok().and_then(Option::as_ref);
    let found = text.parse::<IpAddr>().ok().filter(|address| match family {
        None => true,
        Some(AddressType::Ipv4) => address.is_ipv4(),
        Some(AddressType::Ipv6) => address.is_ipv6(),
        Some(AddressType::Fqdn | AddressType::Unknown(_)) => false,
    });
    Some(match (found, family) {
        (Some(address), _) if local || address::is_reachable(address) => Ok(address),
        (Some(address), _) => Err(address::unreachable(address)),
        (None, Some(family)) if *family != AddressType::Ipv4 && *family != AddressType::Ipv6 => {
            Err(format!("the addressType of the slice is {}; only IPv4 and IPv6 are used", family.as_str()))
        }
        (None, family) => {
            let family = family.map_or("IP", AddressType::as_str);
            Err(format!("`{}` is not an {family} address", text.chars().take(SHOWN).collect::<String>().escape_debug()))
        }
    })
}

/// How much of an address a message has.
const SHOWN: usize = 80;

/// The first endpoint of a slice that is not used because of its address, and why.
pub fn refused(slice: &EndpointSlice, local: bool) -> Option<(FieldPath, String)> {
    let why = |endpoint| address_of(slice, endpoint, local).and_then(Result::err);
    let mut all = slice.endpoints.good().filter_map(|(index, endpoint)| Some((index, why(endpoint)?)));
    let (index, why) = all.next()?;
    let field = FieldPath::from("endpoints").index(index).field("addresses").index(0);
    let why = match all.count() {
        0 => why,
        more => format!("{why}; {more} more of the slice are not used"),
    };
    Some((field, why))
}

/// The number that the Service's port has in a slice: ports are matched by name.
fn slice_port(port: &Port, own: &kinds::endpoint_slice::EndpointPort) -> Option<u16> {
    let same =
        own.name.as_deref().unwrap_or_default() == &*port.name && service::transport(&own.protocol) == port.transport;
    let number = own.port.map_or(Some(port.number), |number| u16::try_from(number).ok().filter(|&n| n != 0));
    if same { number } else { None }
}

enum State {
    Ready,
    Ending,
    Away,
}

/// An absent answer to "ready" counts as yes, and "serving" is as "ready" where it is absent, as the API says.
fn state(conditions: Conditions) -> State {
    let ready = conditions.ready.unwrap_or(true);
    match (ready, conditions.serving.unwrap_or(ready), conditions.terminating.unwrap_or(false)) {
        (true, _, _) => State::Ready,
        (false, true, true) => State::Ending,
        _ => State::Away,
    }
}

fn sorted(mut list: Vec<Endpoint>) -> Endpoints {
    if list.iter().any(|endpoint| endpoint.address.is_ipv4()) {
        list.retain(|endpoint| endpoint.address.is_ipv4());
    }
    list.sort_unstable();
    list.dedup_by(|a, b| a.address == b.address && a.port == b.port);
    list.shrink_to_fit();
    Endpoints { list }
}

#[cfg(test)]
mod tests {
    //! Which endpoints are used, from slices as the cluster writes them.

    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::Settings;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn web() -> Service {
        let object = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "ports": [{ "name": "http", "port": 80 }] },
        });
        let decoded = kinds::decode_json(kinds::kind::SERVICE, object.to_string().as_bytes()).unwrap();
        Service::read(decoded.object.get::<kinds::Service>().unwrap(), &Settings::default())
    }

    fn slice(name: &str, family: &str, endpoints: Value) -> Arc<EndpointSlice> {
        let object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": name, "namespace": "shop", "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": family, "endpoints": endpoints, "ports": [{ "name": "http", "port": 8080 }, { "name": "other", "port": 1 }],
        });
        let decoded = kinds::decode_json(kinds::kind::ENDPOINT_SLICE, object.to_string().as_bytes()).unwrap();
        decoded.object.get::<EndpointSlice>().unwrap().clone()
    }

    fn used(slices: &[Arc<EndpointSlice>]) -> Vec<String> {
        used_of(&web(), slices)
    }

    fn used_of(service: &Service, slices: &[Arc<EndpointSlice>]) -> Vec<String> {
        let endpoints = endpoints(service, 80, Transport::Tcp, None, slices.iter().map(|slice| &**slice));
        endpoints.list.iter().map(|e| format!("{}:{}{}", e.address, e.port, e.zone)).collect()
    }

    fn pod(address: &str, ready: bool, serving: bool, terminating: bool) -> Value {
        json!({ "addresses": [address], "conditions": { "ready": ready, "serving": serving, "terminating": terminating } })
    }

    #[test]
    fn several_slices_are_one_set() {
        let a = slice("a", "IPv4", json!([{ "addresses": ["10.0.0.2"] }, { "addresses": ["10.0.0.1"], "zone": "z" }]));
        let b = slice("b", "IPv4", json!([{ "addresses": ["10.0.0.3"] }, { "addresses": ["10.0.0.2"] }]));
        assert_eq!(used(&[b.clone(), a.clone()]), ["10.0.0.1:8080z", "10.0.0.2:8080", "10.0.0.3:8080"]);
        assert_eq!(used(&[a, b]), ["10.0.0.1:8080z", "10.0.0.2:8080", "10.0.0.3:8080"]);
    }

    #[test]
    fn what_still_serves_is_used_when_nothing_else_is_ready() {
        let ending = pod("10.0.0.1", false, true, true);
        let away = pod("10.0.0.2", false, false, true);
        let starting = pod("10.0.0.3", false, true, false);
        let ready = pod("10.0.0.4", true, true, false);
        assert_eq!(used(&[slice("a", "IPv4", json!([ending, away, starting, ready]))]), ["10.0.0.4:8080"]);
        assert_eq!(used(&[slice("a", "IPv4", json!([ending, away, starting]))]), ["10.0.0.1:8080"]);
        assert!(used(&[slice("a", "IPv4", json!([away, starting]))]).is_empty());
    }

    #[test]
    fn the_endpoints_of_a_number_are_those_of_tcp() {
        let object = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "ports": [{ "name": "quic", "port": 80, "protocol": "UDP" }, { "name": "http", "port": 80 }] },
        });
        let decoded = kinds::decode_json(kinds::kind::SERVICE, object.to_string().as_bytes()).unwrap();
        let service = Service::read(decoded.object.get::<kinds::Service>().unwrap(), &Settings::default());
        let slice = slice("a", "IPv4", json!([{ "addresses": ["10.0.0.1"] }]));
        let found = endpoints(&service, 80, Transport::Tcp, Some(80), [&*slice].into_iter());
        let found: Vec<_> = found.list.iter().map(|e| (e.port, e.health_port)).collect();
        assert_eq!(found, [(8080, Some(8080))]);
    }

    #[test]
    fn one_number_has_a_set_of_endpoints_for_each_protocol() {
        let object = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "dns", "namespace": "shop" },
            "spec": { "ports": [
                { "name": "tcp", "port": 53 }, { "name": "udp", "port": 53, "protocol": "UDP" },
                { "name": "sctp", "port": 53, "protocol": "SCTP" },
            ] },
        });
        let decoded = kinds::decode_json(kinds::kind::SERVICE, object.to_string().as_bytes()).unwrap();
        let service = Service::read(decoded.object.get::<kinds::Service>().unwrap(), &Settings::default());
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "name": "a", "namespace": "shop", "labels": { "kubernetes.io/service-name": "dns" } },
            "endpoints": [{ "addresses": ["10.0.0.1"] }],
            "ports": [
                { "name": "tcp", "port": 5301 }, { "name": "udp", "port": 5302, "protocol": "UDP" },
                { "name": "sctp", "port": 5303, "protocol": "SCTP" },
            ],
        });
        let decoded = kinds::decode_json(kinds::kind::ENDPOINT_SLICE, slice.to_string().as_bytes()).unwrap();
        let slice = decoded.object.get::<EndpointSlice>().unwrap().clone();
        let ports = |transport| -> Vec<u16> {
            let found = endpoints(&service, 53, transport, None, [&*slice].into_iter());
            found.list.iter().map(|endpoint| endpoint.port).collect()
        };
        assert_eq!((ports(Transport::Tcp), ports(Transport::Udp)), (vec![5301], vec![5302]));
    }

    #[test]
    fn two_families_are_one_backend() {
        let four = slice("a", "IPv4", json!([{ "addresses": ["10.0.0.1"] }]));
        let six = slice("b", "IPv6", json!([{ "addresses": ["fd00::1"] }]));
        assert_eq!(used(&[six.clone(), four]), ["10.0.0.1:8080"]);
        assert_eq!(used(&[six]), ["fd00::1:8080"]);
    }

    #[test]
    fn no_slice_leads_to_the_machine_itself_or_a_metadata_service() {
        let local = [
            ("IPv4", "127.0.0.1"),
            ("IPv4", "127.9.9.9"),
            ("IPv4", "169.254.169.254"),
            ("IPv4", "100.100.100.200"),
            ("IPv4", "0.0.0.0"),
            ("IPv4", "224.0.0.1"),
            ("IPv4", "255.255.255.255"),
            ("IPv6", "::1"),
            ("IPv6", "::"),
            ("IPv6", "fe80::1"),
            ("IPv6", "ff02::1"),
            ("IPv6", "::ffff:127.0.0.1"),
            ("IPv6", "::127.0.0.1"),
            ("IPv6", "fd00:ec2::254"),
            ("IPv6", "64:ff9b::169.254.169.254"),
        ];
        let trusting = Service { local_endpoints: true, ..web() };
        for (family, address) in local {
            let slices = [slice("a", family, json!([{ "addresses": [address] }, { "addresses": ["10.0.0.1"] }]))];
            let good = if family == "IPv4" { vec!["10.0.0.1:8080"] } else { vec![] };
            assert_eq!(used(&slices), good, "{address}");
            let (field, why) = refused(&slices[0], false).unwrap();
            assert_eq!(field.to_string(), "endpoints[0].addresses[0]", "{address}");
            assert!(why.contains("loopback"), "{why}");
            let shown = format!("{}:8080", address.parse::<IpAddr>().unwrap());
            assert!(used_of(&trusting, &slices).contains(&shown), "{address}");
        }
    }

    #[test]
    fn an_address_counts_only_in_a_slice_of_its_family() {
        for (family, address, why) in [
            ("FQDN", "127.0.0.1", "the addressType of the slice is FQDN; only IPv4 and IPv6 are used"),
            ("FQDN", "10.0.0.1", "the addressType of the slice is FQDN; only IPv4 and IPv6 are used"),
            ("Carrier", "10.0.0.1", "the addressType of the slice is Carrier; only IPv4 and IPv6 are used"),
            ("IPv4", "fd00::1", "`fd00::1` is not an IPv4 address"),
            ("IPv6", "10.0.0.1", "`10.0.0.1` is not an IPv6 address"),
            ("IPv4", "nonsense\n", "`nonsense\\n` is not an IPv4 address"),
        ] {
            let one = slice("a", family, json!([{ "addresses": [address] }]));
            assert!(
                used_of(&Service { local_endpoints: true, ..web() }, std::slice::from_ref(&one)).is_empty(),
                "{family} {address}"
            );
            assert_eq!(refused(&one, true).unwrap().1, why);
        }
        let several = slice("a", "FQDN", json!([{ "addresses": [] }, { "addresses": ["a"] }, { "addresses": ["b"] }]));
        let (field, why) = refused(&several, false).unwrap();
        assert_eq!(field.to_string(), "endpoints[1].addresses[0]");
        assert!(why.ends_with("; 1 more of the slice are not used"), "{why}");
        assert_eq!(refused(&slice("a", "IPv4", json!([{ "addresses": ["10.0.0.1"] }])), false), None);
    }

    #[test]
    fn one_bad_endpoint_does_not_spoil_the_others() {
        let slices = [slice(
            "a",
            "IPv4",
            json!([{ "addresses": "x" }, { "addresses": ["nonsense"] }, { "addresses": ["10.0.0.1"] }]),
        )];
        assert_eq!(used(&slices), ["10.0.0.1:8080"]);
    }
}

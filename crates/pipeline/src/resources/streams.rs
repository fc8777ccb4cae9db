//! Where connections and datagrams go that proxies pass on: TCP hosts of TLS listeners, plain TCP listeners, UDP listeners.
//!
//! In: their targets. Out: a TCP proxy for each host and TCP listener, which is an extension of its own, so that a new target changes no
//! listener; a cluster for each UDP listener, with the endpoints of all its backends.

use super::{Resource, Resources, authors};
use crate::{
    hosts::TcpHosts,
    large, partition,
    ports::{ActiveListeners, PortSettings, Streams, UdpTarget},
    services,
    translations::HostKey,
};
use engine::{Derived, Engine, Reads, Table};
use envoy::{listener, name};
use model::{ClusterId, FleetId, ListenerId, ObjectRef, PortId, PortProtocol, Timeout, listener::StreamTarget};
use prost::Message;
use std::{collections::BTreeSet, sync::Arc};
use xds::{Kind, Ref};

/// Where the connections of TCP hosts go.
pub struct TcpResources;

impl Table for TcpResources {
    type Key = HostKey;
    type Value = Resource;
    const NAME: &'static str = "TCP proxy resources";
}

impl Derived for TcpResources {
    fn compute(&self, key: &HostKey, reads: &mut Reads<'_>) -> Option<Resource> {
        let proxy = reads.get::<TcpHosts>(key)?;
        let active = reads.get::<ActiveListeners>(&key.0).filter(|active| active.protocol == PortProtocol::Tls)?;
        let port = &active.port;
        let authors = authors(key, reads);
        tcp_proxy(tcp_name(key), (&proxy.clusters, proxy.unavailable, proxy.idle), port, authors, reads)
    }

    fn partition(&self, key: &Self::Key) -> Option<u64> {
        Some(partition::of_host(key))
    }
}

fn tcp_proxy(
    name: String,
    (clusters, unavailable, idle): (&[(ClusterId, u32)], u32, Timeout),
    port: &PortId,
    authors: Vec<ObjectRef>,
    reads: &mut Reads<'_>,
) -> Option<Resource> {
    let settings = &reads.get::<PortSettings>(port)?.http;
    let message = listener::tcp::proxy(name.clone(), clusters, unavailable, idle, settings);
    let names: BTreeSet<String> = clusters.iter().map(|(cluster, _)| name::cluster(cluster)).collect();
    let refs = names.into_iter().map(|cluster| Ref::To(Kind::Cluster, cluster.into())).collect();
    let origin = authors.first().cloned().map(Arc::new);
    let resource = Resource { refs, origin, ..Resource::new(name.clone(), &message) }.in_fleet(port.fleet());
    // A listener waits for every chain, so there must be one, which leads nowhere.
    let nowhere = || listener::tcp::proxy(name.clone(), &[], 0, idle, settings).encode_to_vec().into();
    Some(resource.or_stand_in(Kind::Extension, authors, Some(&nowhere), reads))
}

/// The name of where the connections of a host go.
pub fn tcp_name((listener, host): &HostKey) -> String {
    name::tcp_chain(listener, host)
}

/// Where the connections of plain TCP listeners go.
pub struct StreamResources;

impl Table for StreamResources {
    type Key = ListenerId;
    type Value = Resource;
    const NAME: &'static str = "TCP stream resources";
}

impl Derived for StreamResources {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<Resource> {
        let stream = reads.get::<Streams>(id).filter(|stream| stream.protocol == PortProtocol::Tcp)?;
        let StreamTarget { clusters, unavailable, idle, .. } = &*stream.target;
        tcp_proxy(name::tcp_listener(id), (clusters, *unavailable, *idle), &stream.port, stream.objects.clone(), reads)
    }
}

/// The clusters of UDP listeners.
pub struct UdpClusterResources;

impl Table for UdpClusterResources {
    type Key = ListenerId;
    type Value = Resource;
    const NAME: &'static str = "UDP cluster resources";
}

impl Derived for UdpClusterResources {
    fn compute(&self, id: &ListenerId, reads: &mut Reads<'_>) -> Option<Resource> {
        let stream = reads.get::<Streams>(id).filter(|stream| stream.protocol == PortProtocol::Udp)?;
        let mut resource = Resource::new(name::udp_cluster(id), &listener::udp::cluster(id)).in_fleet(id.fleet());
        resource.refs = vec![Ref::To(Kind::Endpoints, resource.name.clone())];
        resource.origin = stream.objects.first().cloned().map(Arc::new);
        Some(resource.or_stand_in(Kind::Cluster, stream.objects.clone(), None, reads))
    }
}

/// The endpoints of UDP listeners. They are in the lane, so all that their listeners say about them is in the key.
pub struct UdpEndpointResources;

impl Table for UdpEndpointResources {
    type Key = UdpTarget;
    type Value = Resource;
    const NAME: &'static str = "UDP endpoint resources";
}

impl Derived for UdpEndpointResources {
    fn compute(&self, key: &UdpTarget, reads: &mut Reads<'_>) -> Option<Resource> {
        let UdpTarget { listener, clusters, unavailable, objects } = key;
        let mut backends = Vec::new();
        for (cluster, weight) in clusters.iter() {
            let endpoints = services::endpoints(cluster, reads).into_iter().flatten();
            backends.extend(endpoints.map(|(_, endpoints, _)| (name::cluster(cluster), endpoints, *weight)));
        }
        let backends = backends.iter().map(|(name, endpoints, weight)| (name.clone(), endpoints, *weight));
        let message = listener::udp::load_assignment(listener, backends, *unavailable);
        let resource = Resource::new(name::udp_cluster(listener), &message).in_fleet(listener.fleet());
        Some(resource.or_stand_in(Kind::Endpoints, objects.to_vec(), None, reads))
    }

    fn is_large(&self, key: &UdpTarget, reads: &mut Reads<'_>) -> bool {
        large::has_many_endpoints(key.clusters.iter().map(|(cluster, _)| cluster), reads)
    }
}

impl Resources for UdpEndpointResources {
    const KIND: Kind = Kind::Endpoints;

    fn name(key: &UdpTarget) -> String {
        name::udp_cluster(&key.listener)
    }

    fn fleets(key: &UdpTarget, _: &Engine) -> Vec<FleetId> {
        vec![key.listener.fleet().clone()]
    }

    fn successor<'e>(key: &UdpTarget, engine: &'e Engine) -> Option<&'e Arc<Resource>> {
        let stream = engine.get::<Streams>(&key.listener)?;
        engine.get::<Self>(&UdpTarget::of(&key.listener, stream)?)
    }
}

//! Arbitrary values put together: everything that one Envoy can be given at once, through every constructor.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    net::Ipv4Addr,
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use envoy::{
    cluster, endpoints,
    listener::{
        self,
        jwt::{self, HttpChainId},
        slots::Slot,
    },
    name,
    packing::{self, Packing, plain, scoped},
    secret,
};
use envoy_api::Message;
use model::{
    CertificateRef, ChainId, ClusterId, Host, ListenerId, Port, PortId, PortProtocol, VirtualHost,
    cluster::Discovery,
    tls::{Admission, KeyPair, Termination},
};
use testbed::certs::{Ca, KeyType};
use xds::{Kind, Resource};

use super::{clusters, dice::Dice, listeners, routes};

const CLUSTERS: usize = 40;
const PLAIN_LISTENERS: usize = 5;
const TLS_LISTENERS: usize = 3;
const CHAINS: usize = 3;

static AUTHORITY: LazyLock<Ca> = LazyLock::new(|| Ca::new("model"));

static PAIRS: LazyLock<Vec<KeyPair>> = LazyLock::new(|| {
    let kinds = [KeyType::P256, KeyType::P384, KeyType::Rsa2048];
    let leaves = kinds.map(|kind| AUTHORITY.leaf("a.example.com").key(kind).make());
    leaves.iter().map(|leaf| KeyPair { chain: leaf.chain_pem().into(), key: leaf.key_pem().into() }).collect()
});

/// All resources, and what each was made from.
#[derive(Default)]
pub struct World {
    pub resources: Vec<Resource>,
    sources: Vec<(String, Box<dyn Debug + Send>)>,
    hosts: usize,
}

impl World {
    /// A world whose listeners have ports from this one on.
    pub fn arbitrary(dice: &mut Dice, packing: Packing, port: u16) -> World {
        let mut world = World::default();
        let clusters = world.clusters(dice);
        let mut ports = port..;
        let mut next = || ports.next().expect("there is a port");
        for _ in 0..PLAIN_LISTENERS {
            let port = listeners::port(dice, PortProtocol::Http, next());
            let hosts = world.virtual_hosts(dice, &clusters, true);
            world.routes(packing, &port.id, hosts.into_iter().map(|host| (host, None)).collect());
            world.slots(&port);
            world.jwt_slots(dice, &HttpChainId::Plaintext(port.id.clone()));
            world.add(Kind::Listener, &name::port(&port.id), &listener::plain(&port, packing), port.clone());
        }
        for number in 0..TLS_LISTENERS {
            world.encrypted(dice, packing, &clusters, next(), number == 0);
        }
        world.streams(dice, &clusters, next());
        let (stats, admin) = (next(), next());
        world.add(Kind::Listener, "stats-health", &listener::admin::stats(Ipv4Addr::UNSPECIFIED.into(), stats), stats);
        world.add(Kind::Listener, "envoy-admin", &listener::admin::read_only(admin), admin);
        world
    }

    /// The slots of a port, all of which are empty: a listener waits for them.
    fn slots(&mut self, port: &Port) {
        for slot in Slot::of(&port.http) {
            self.add(Kind::Extension, &name::slot(&port.id, slot), &slot.empty(&port.id), port.id.clone());
        }
    }

    /// The slots of a filter chain, with providers of tokens or without: a listener waits for them, too.
    fn jwt_slots(&mut self, dice: &mut Dice, chain: &HttpChainId) {
        for slot in chain.slot_names() {
            let providers = dice.list(0, 3, routes::provider);
            self.add(Kind::Extension, &slot, &jwt::filled(&slot, &providers), providers);
        }
    }

    /// What the resources that are named in this text were made from.
    pub fn blamed(&self, text: &str) -> Vec<&(dyn Debug + Send)> {
        self.sources.iter().filter(|(name, _)| text.contains(&**name)).map(|(_, source)| &**source).collect()
    }

    fn add(&mut self, kind: Kind, name: &str, message: &impl Message, source: impl Debug + Send + 'static) {
        self.put(kind, name, message.encode_to_vec().into(), source);
    }

    fn put(&mut self, kind: Kind, name: &str, body: Bytes, source: impl Debug + Send + 'static) {
        self.resources.push(Resource::new(kind, name, body));
        self.sources.push((name.to_owned(), Box::new(source)));
    }

    fn clusters(&mut self, dice: &mut Dice) -> Vec<ClusterId> {
        let settings = clusters::settings(dice);
        let (mut authorities, mut certificates) = (BTreeMap::new(), BTreeSet::new());
        let mut ids = Vec::new();
        for number in 0..CLUSTERS {
            let model = clusters::cluster(dice, number);
            let resource = name::cluster(&model.id);
            self.add(Kind::Cluster, &resource, &cluster::cluster(&model, &settings), (model.clone(), settings.clone()));
            if model.discovery == Discovery::Endpoints {
                let endpoints = clusters::endpoints(dice);
                let assignment = endpoints::load_assignment(&model.id, &endpoints);
                self.add(Kind::Endpoints, &resource, &assignment, endpoints);
            }
            let validation = model.overrides.validation.as_ref().filter(|_| model.protocol.is_tls());
            if let Some(ca) = validation.and_then(|validation| validation.ca.bundle()) {
                authorities.insert(name::ca(ca), ca.clone());
            }
            if let Some(secret) = &model.overrides.client_certificate {
                certificates.insert(CertificateRef::Secret(secret.clone()));
            }
            ids.push(model.id);
        }
        for (name, ca) in authorities {
            self.add(Kind::Secret, &name, &secret::authority(&ca, AUTHORITY.pem(), None), ca);
        }
        for id in certificates {
            let pair = dice.pick(&PAIRS);
            self.add(Kind::Secret, &name::secret(&id), &secret::certificate(&name::secret(&id), &pair), pair);
        }
        ids
    }

    /// Exact hosts, wildcards, one with a long list of routes, and perhaps one for all others.
    fn virtual_hosts(&mut self, dice: &mut Dice, clusters: &[ClusterId], any: bool) -> Vec<VirtualHost> {
        let mut hosts = Vec::new();
        for _ in 0..dice.below(4) {
            let host = routes::exact(dice, self.number());
            hosts.push(routes::virtual_host(dice, host, clusters, 4));
        }
        for _ in 0..dice.below(3) {
            let host = routes::wildcard(dice, self.number());
            hosts.push(routes::virtual_host(dice, host, clusters, 4));
        }
        let long = match dice.below(3) {
            0 => routes::wildcard(dice, self.number()),
            _ => routes::exact(dice, self.number()),
        };
        hosts.push(routes::long_host(dice, long, clusters));
        if any && dice.one_in(2) {
            hosts.push(routes::virtual_host(dice, Host::Any, clusters, 4));
        }
        hosts.sort_by(|a, b| a.host.cmp(&b.host));
        hosts
    }

    fn number(&mut self) -> usize {
        self.hosts += 1;
        self.hosts
    }

    /// The resources that carry the hosts of a port, each with the connections that may carry its requests.
    fn routes(&mut self, packing: Packing, port: &PortId, hosts: Vec<(VirtualHost, Option<Admission>)>) {
        let encode = |(host, admission): &(VirtualHost, Option<Admission>)| {
            packing::encode(packing, port, host, admission.as_ref())
        };
        match packing {
            Packing::Plain => {
                let encoded: Vec<Bytes> = hosts.iter().map(encode).collect();
                let body = plain::route_table(port, encoded.iter());
                self.put(Kind::Route, &name::port(port), body, (port.clone(), hosts));
            }
            Packing::Scoped => {
                let is_exact = |(host, _): &(VirtualHost, _)| matches!(host.host, Host::Exact(_));
                let groups = hosts.iter().map(|(host, admission)| {
                    (admission.as_ref().map(|admission| &admission.chains[..]), vec![host.host.clone()])
                });
                let mut by_chains: BTreeMap<Option<&[Arc<str>]>, Vec<Host>> = BTreeMap::new();
                groups.for_each(|(chains, hosts)| by_chains.entry(chains).or_default().extend(hosts));
                let redirects = packing::redirects::scope(port, &by_chains.into_iter().collect::<Vec<_>>());
                self.put(Kind::ScopedRoute, &name::redirects_scope(port), redirects, port.clone());
                let (exact, rest): (Vec<_>, Vec<_>) = hosts.into_iter().partition(is_exact);
                let encoded: Vec<Bytes> = rest.iter().map(encode).collect();
                let catch_all = scoped::catch_all(port, encoded.iter());
                self.put(Kind::ScopedRoute, &name::scope(port, &Host::Any), catch_all, rest);
                for (host, admission) in exact {
                    let body = scoped::host(port, &host, admission.as_ref());
                    self.put(Kind::ScopedRoute, &name::scope(port, &host.host), body, (host, admission));
                }
            }
        }
    }

    /// A TLS listener with chains whose requests are looked at, one of them perhaps for every name, one whose connections are
    /// passed on, and perhaps the fallback's.
    fn encrypted(&mut self, dice: &mut Dice, packing: Packing, clusters: &[ClusterId], port: u16, fallback: bool) {
        let port = listeners::port(dice, PortProtocol::Tls, port);
        let listener = ListenerId::new(port.id.fleet().clone(), port.id.name().clone());
        let mut chains = Vec::new();
        let mut hosts = Vec::new();
        let default = fallback.then(|| {
            let termination = listeners::termination(dice, "fallback").into();
            ChainId { listener: listener.clone(), termination, is_fallback: true }
        });
        for number in 0..CHAINS {
            let every = !fallback && number == 0;
            let found = self.virtual_hosts(dice, clusters, every);
            let termination = listeners::termination(dice, &format!("{}-{number}", port.port)).into();
            let chain = ChainId { listener: listener.clone(), termination, is_fallback: false };
            let admitted = [Some(&chain), default.as_ref().filter(|_| dice.one_in(2))];
            let admission = Admission {
                chains: admitted.into_iter().flatten().map(|chain| name::chain(chain).into()).collect(),
                by_server_name: dice.one_in(4),
                http3_port: dice.one_in(4).then_some(443),
            };
            let mut names: Vec<Host> = found.iter().map(|host| host.host.clone()).collect();
            names.sort();
            hosts.extend(found.into_iter().map(|host| (host, Some(admission.clone()))));
            chains.push((chain, names));
        }
        hosts.sort_by(|a, b| a.0.host.cmp(&b.0.host));
        self.routes(packing, &port.id, hosts);
        self.slots(&port);
        for chain in chains.iter().map(|(chain, _)| chain).chain(&default) {
            self.jwt_slots(dice, &HttpChainId::Tls(chain.clone()));
        }
        for (chain, _) in &chains {
            self.certificates(dice, &chain.termination);
        }
        if let Some(chain) = &default {
            self.certificates(dice, &chain.termination);
        }
        let host = routes::wildcard(dice, self.number());
        let (tcp, proxy) = listeners::tcp(dice, host, port.port, clusters);
        if let Some(termination) = &tcp.termination {
            self.certificates(dice, termination);
        }
        if let Some(limit) = listener::access_log::handshakes::limit(&port.http.access_log) {
            let bucket = listener::access_log::handshakes::token_bucket(limit);
            self.add(Kind::TokenBucket, &name::handshake_log(limit), &bucket, limit);
        }
        let extension = name::tcp_chain(&listener, &tcp.host);
        let message =
            listener::tcp::proxy(extension.clone(), &proxy.clusters, proxy.unavailable, proxy.idle, &port.http);
        self.add(Kind::Extension, &extension, &message, proxy);
        let mut encoded: Vec<Bytes> = chains.iter().map(|(chain, _)| listener::chain(&port, chain, packing)).collect();
        encoded.push(listener::tcp::chain(&listener, &tcp, &port.connections).encode_to_vec().into());
        let is_named = |host: &&Host| **host != Host::Any;
        let mut names: Vec<Bytes> = chains
            .iter()
            .map(|(chain, hosts)| {
                let hosts: Vec<Host> = hosts.iter().filter(is_named).cloned().collect();
                listener::sni::names(&name::chain(chain), &hosts)
            })
            .collect();
        names.push(listener::sni::leading(std::slice::from_ref(&tcp.host), listener::tcp::taken(&listener, &tcp)));
        let every = chains.iter().find(|(_, hosts)| hosts.contains(&Host::Any));
        let others = every.map(|(chain, _)| listener::sni::take(&name::chain(chain)));
        let fallback = default.as_ref().map(|chain| listener::chain(&port, chain, packing));
        let matcher = listener::sni::matcher(names.iter(), others);
        let body = listener::encrypted(&port, encoded.iter(), fallback.as_ref(), matcher);
        self.put(Kind::Listener, &name::port(&port.id), body, (port, chains, tcp, default));
    }

    /// A plain TCP listener and a UDP listener.
    fn streams(&mut self, dice: &mut Dice, clusters: &[ClusterId], port: u16) {
        let tcp = listeners::port(dice, PortProtocol::Tcp, port);
        let listener = ListenerId::new(tcp.id.fleet().clone(), tcp.id.name().clone());
        let target = listeners::stream(dice, clusters);
        let extension = name::tcp_listener(&listener);
        let message =
            listener::tcp::proxy(extension.clone(), &target.clusters, target.unavailable, target.idle, &tcp.http);
        self.add(Kind::Extension, &extension, &message, target.clone());
        let message = listener::tcp::listener(&tcp, &listener, target.ip_filter.as_ref());
        self.add(Kind::Listener, &name::port(&tcp.id), &message, (tcp, target));
        let udp = listeners::port(dice, PortProtocol::Udp, port);
        let udp = Port { id: PortId::new(udp.id.fleet().clone(), format!("udp-{}", udp.id)), ..udp };
        let listener = ListenerId::new(udp.id.fleet().clone(), udp.id.name().clone());
        let cluster = name::udp_cluster(&listener);
        self.add(Kind::Cluster, &cluster, &listener::udp::cluster(&listener), udp.clone());
        let backends: Vec<_> =
            (0..dice.below(3)).map(|number| (number.to_string(), clusters::endpoints(dice))).collect();
        let shares =
            backends.iter().map(|(name, endpoints)| (name.clone(), endpoints, 1 + endpoints.list.len() as u32));
        let assignment = listener::udp::load_assignment(&listener, shares, dice.between(0, 2));
        self.add(Kind::Endpoints, &cluster, &assignment, backends);
        let message = listener::udp::listener(&udp, &listener);
        self.add(Kind::Listener, &name::port(&udp.id), &message, udp);
    }

    fn certificates(&mut self, dice: &mut Dice, termination: &Termination) {
        for id in termination.certificates() {
            let pair = dice.pick(&PAIRS);
            self.add(Kind::Secret, &name::secret(id), &secret::certificate(&name::secret(id), &pair), pair);
        }
        if let Some(clients) = &termination.clients {
            let (trust, crl) = (&clients.trust, AUTHORITY.crl([]));
            let cas = trust.ca().map(|_| AUTHORITY.pem());
            let message = match dice.one_in(8) {
                true => secret::no_clients(trust),
                false => secret::clients(trust, cas, trust.crl().map(|_| crl.pem())),
            };
            self.add(Kind::Secret, &name::client_trust(trust), &message, trust.clone());
        }
    }
}

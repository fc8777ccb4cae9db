//! Arbitrary values put together: everything that one Envoy can be given at once, through every constructor.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    net::Ipv4Addr,
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use envoy::{
    cluster, endpoints, listener, name,
    packing::{self, Arrangement, Contents, Packing, plain, scoped},
    secret,
};
use envoy_api::Message;
use model::{
    CertificateRef, ClusterId, Host, Listener, ListenerId, RouteTableId, VirtualHost,
    cluster::Discovery,
    listener::Security,
    tls::{Chain, KeyPair, TcpChain},
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

/// The filter chains of a TLS listener.
#[derive(Clone, Debug, Default)]
struct Chains {
    http: Vec<Chain>,
    tcp: Vec<TcpChain>,
    fallback: Option<Chain>,
}

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
            let listener = listeners::listener(dice, Security::Plain, next());
            let table = RouteTableId { listener: listener.id.clone(), termination: None };
            let hosts = world.virtual_hosts(dice, &clusters, true);
            let arrangement = world.routes(dice, packing, &table, hosts);
            world.listener(listener, Chains::default(), |_| arrangement);
        }
        for number in 0..TLS_LISTENERS {
            world.encrypted(dice, packing, &clusters, next(), number == 0);
        }
        let (stats, admin) = (next(), next());
        world.add(Kind::Listener, "stats-health", &listener::admin::stats(Ipv4Addr::UNSPECIFIED.into(), stats), stats);
        world.add(Kind::Listener, "envoy-admin", &listener::admin::read_only(admin), admin);
        world
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
        let mut authorities = BTreeMap::new();
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
            if let Some(validation) = model.validation.filter(|_| model.protocol.is_tls()) {
                authorities.insert(name::ca(&validation.ca), validation.ca);
            }
            ids.push(model.id);
        }
        for (name, ca) in authorities {
            self.add(Kind::Secret, &name, &secret::authority(&ca, AUTHORITY.pem()), ca);
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

    /// The resources of a route table, as the packing arranges them; a misdirected host is in every one.
    fn routes(
        &mut self,
        dice: &mut Dice,
        packing: Packing,
        table: &RouteTableId,
        hosts: Vec<VirtualHost>,
    ) -> Arrangement {
        let is_exact = |host: &VirtualHost| matches!(host.host, Host::Exact(_));
        let contents = Contents { exact: hosts.iter().any(is_exact), wildcard: !hosts.iter().all(is_exact) };
        let arrangement = packing.arrangement(table, contents);
        let misdirected = routes::exact(dice, self.number());
        let encode = |host: &VirtualHost| (host.host.clone(), packing::encode(table, host));
        match arrangement {
            Arrangement::Table => {
                let mut encoded: Vec<(Host, Bytes)> = hosts.iter().map(encode).collect();
                encoded.push((misdirected.clone(), packing::misdirected(table, &misdirected)));
                let body = plain::route_table(table, encoded.iter().map(|(host, bytes)| (host, bytes)));
                self.put(Kind::Route, &name::route_table(table), body, (table.clone(), hosts));
            }
            Arrangement::Scopes => {
                let (exact, rest): (Vec<_>, Vec<_>) = hosts.into_iter().partition(is_exact);
                let encoded: Vec<(Host, Bytes)> = rest.iter().map(encode).collect();
                let catch_all = scoped::catch_all(table, encoded.iter().map(|(host, bytes)| (host, bytes)));
                self.put(Kind::ScopedRoute, &name::scope(table, &Host::Any), catch_all, rest);
                let body = scoped::misdirected(table, &misdirected);
                self.put(Kind::ScopedRoute, &name::scope(table, &misdirected), body, misdirected);
                for host in exact {
                    let body = scoped::host(table, &host);
                    self.put(Kind::ScopedRoute, &name::scope(table, &host.host), body, host);
                }
            }
        }
        arrangement
    }

    /// A listener with chains whose requests are looked at, one whose connections are passed on, and perhaps the fallback's.
    fn encrypted(&mut self, dice: &mut Dice, packing: Packing, clusters: &[ClusterId], port: u16, fallback: bool) {
        let listener = listeners::listener(dice, Security::Tls, port);
        let tables: Vec<Vec<VirtualHost>> = (0..CHAINS).map(|_| self.virtual_hosts(dice, clusters, false)).collect();
        let names = tables.iter().map(|hosts| hosts.iter().map(|host| host.host.clone()).collect()).collect();
        let mut chains = Chains { http: listeners::chains(dice, port, names), ..Chains::default() };
        let mut arrangements = Vec::new();
        for (chain, hosts) in chains.http.iter().zip(tables) {
            arrangements.push(self.chain(dice, packing, &listener.id, chain, hosts));
        }
        if fallback {
            let hosts = self.virtual_hosts(dice, clusters, false);
            let names = hosts.iter().map(|host| host.host.clone()).collect();
            let chain =
                Chain { termination: listeners::termination(dice, "fallback"), hosts: names, takes_unlisted: false };
            arrangements.push(self.chain(dice, packing, &ListenerId::fallback(), &chain, hosts));
            chains.fallback = Some(chain);
        }
        let host = routes::wildcard(dice, self.number());
        let (chain, proxy) = listeners::tcp(dice, host, port, clusters);
        if let Some(termination) = &chain.termination {
            self.certificate(dice, &termination.certificate);
        }
        let extension = listener::tcp::proxy(&chain.host, &proxy, &listener.http);
        self.add(Kind::Extension, &name::tcp_chain(&chain.host), &extension, proxy);
        chains.tcp.push(chain);
        self.listener(listener, chains, |table| {
            let found = arrangements.iter().find(|(known, _)| known == table);
            found.expect("every table is arranged").1
        });
    }

    fn chain(
        &mut self,
        dice: &mut Dice,
        packing: Packing,
        listener: &ListenerId,
        chain: &Chain,
        hosts: Vec<VirtualHost>,
    ) -> (RouteTableId, Arrangement) {
        self.certificate(dice, &chain.termination.certificate);
        let table = RouteTableId { listener: listener.clone(), termination: Some(Arc::new(chain.termination.clone())) };
        let arrangement = self.routes(dice, packing, &table, hosts);
        (table, arrangement)
    }

    fn certificate(&mut self, dice: &mut Dice, id: &CertificateRef) {
        let pair = dice.pick(&PAIRS);
        self.add(Kind::Secret, &name::secret(id), &secret::certificate(&name::secret(id), &pair), pair);
    }

    fn listener(&mut self, model: Listener, chains: Chains, arrangement: impl Fn(&RouteTableId) -> Arrangement) {
        let table = |listener: &ListenerId, chain: Option<&Chain>| RouteTableId {
            listener: listener.clone(),
            termination: chain.map(|chain| Arc::new(chain.termination.clone())),
        };
        let body = match model.security {
            Security::Plain => listener::plain(&model, arrangement(&table(&model.id, None))).encode_to_vec().into(),
            Security::Tls => {
                let encode = |listener: &ListenerId, chain: &Chain| {
                    let table = table(listener, Some(chain));
                    listener::chain(&model, &table, arrangement(&table)).expect("it is encrypted")
                };
                let mut encoded: Vec<Bytes> = chains.http.iter().map(|chain| encode(&model.id, chain)).collect();
                let http = chains.http.iter();
                let mut names: Vec<Bytes> =
                    http.map(|chain| listener::sni::names(&chain.termination.to_string(), &chain.hosts)).collect();
                for chain in &chains.tcp {
                    encoded.push(listener::tcp::chain(chain, &model.connections).encode_to_vec().into());
                    names.push(listener::tcp::names(chain));
                }
                let fallback = chains.fallback.as_ref().map(|chain| encode(&ListenerId::fallback(), chain));
                let names = listener::sni::matcher(names.iter(), None);
                listener::encrypted(&model, encoded.iter(), fallback.as_ref(), names)
            }
        };
        self.put(Kind::Listener, &model.id.to_string(), body, (model, chains));
    }
}

//! Translations as a dialect would make them that claims listeners of its own.

use kinds::kind;
use model::{
    CertificateRef, ClusterId, EndpointsId, FleetId, Host, ListenerId, ObjectRef, PortProtocol, Timeout, Translation,
    listener::{ListenerClaim, StreamPiece, StreamTarget},
    route::{
        Action, Conditions, Depth, Dialect, Forward, IpFilter, Path, PathMatch, Precedence, Route, TieBreak,
        WeightedCluster,
    },
    tls::{TcpProxy, Termination, TlsMode, TlsVersions},
    translation::{Covers, RoutePiece, TlsPiece},
};
use pipeline::Pipeline;
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

/// A dialect whose routes come before those of the others.
const DIALECT: Dialect = Dialect { rank: 10, tie_break: TieBreak::Age, falls_through: false };

/// What one object asks for.
#[derive(Clone)]
pub struct Claims {
    name: String,
    fleet: FleetId,
    created: i64,
    is_bound: bool,
    address: IpAddr,
    translation: Translation,
}

/// A host; a star or nothing for every name.
pub fn host(text: &str) -> Host {
    Host::parse(text).unwrap()
}

/// Port 80 of a Service.
pub fn cluster(service: &str) -> ClusterId {
    ClusterId::from(EndpointsId::tcp("default", service, 80))
}

impl Claims {
    /// An object that asks for nothing yet, in a fleet.
    pub fn new(name: &str, fleet: FleetId) -> Claims {
        let translation = Translation::empty(ObjectRef::new(kind::CONFIG_MAP, "default", name));
        let address = Ipv4Addr::UNSPECIFIED.into();
        Claims { name: name.to_owned(), fleet, created: 0, is_bound: false, address, translation }
    }

    /// The same, made at another time.
    pub fn created(self, created: i64) -> Claims {
        Claims { created, ..self }
    }

    /// The same, bound to its fleet by the operator: what is added then shares ports with settings and with others.
    pub fn bound(self) -> Claims {
        Claims { is_bound: true, ..self }
    }

    /// The same; listeners that are added then listen on another address.
    pub fn at(self, address: &str) -> Claims {
        Claims { address: address.parse().unwrap(), ..self }
    }

    /// A listener of this name, in its fleet.
    pub fn id(&self, name: &str) -> ListenerId {
        ListenerId::new(self.fleet.clone(), name)
    }

    fn precedence(&self) -> Precedence {
        Precedence::by_age(DIALECT, self.created, "default".into(), self.name.as_str().into(), 0)
    }

    /// With a listener that takes a host.
    pub fn listener(mut self, name: &str, port: u16, protocol: PortProtocol, takes: &str) -> Claims {
        let claim = ListenerClaim {
            listener: self.id(name),
            address: self.address,
            port,
            protocol,
            host: host(takes),
            owner: (!self.is_bound).then(|| self.translation.subject.clone()),
            plaintext_of: None,
            overrides: Default::default(),
            precedence: self.precedence(),
            origin: self.translation.subject.at(format!("spec.listeners.{name}").as_str()),
        };
        self.translation.listeners.push(claim);
        self
    }

    /// With a route for every path of a host; a wildcard reaches any depth.
    pub fn route(self, listener: &str, of: &str, service: &str) -> Claims {
        self.routed(listener, of, service, |_| ())
    }

    /// The same, changed.
    pub fn routed(mut self, listener: &str, of: &str, service: &str, change: impl FnOnce(&mut Route)) -> Claims {
        let clusters = vec![WeightedCluster::new(cluster(service), 1)];
        let mut route = Route {
            path: PathMatch::Prefix(Path::root()),
            conditions: Conditions::default(),
            depth: Depth::AnyLabels,
            action: Action::Forward(Box::new(Forward { clusters, ..Forward::default() })),
            policy: Default::default(),
            precedence: self.precedence(),
            origin: self.translation.subject.at("spec.rules"),
            fraction: None,
            combined: None,
        };
        change(&mut route);
        let listener = self.id(listener);
        self.translation.hosts.push((listener.clone(), host(of)));
        self.translation.routes.push(RoutePiece { listener, host: host(of), route: Arc::new(route) });
        self
    }

    /// With TLS for a host; of several Secrets, the first is shown where none fits better. Hosts below it are served under it at
    /// any depth.
    pub fn tls(self, listener: &str, of: &str, secrets: &[&str]) -> Claims {
        let mut ids = secrets.iter().map(|name| CertificateRef::Secret(ObjectRef::new(kind::SECRET, "default", *name)));
        let termination = Termination::new(ids.next().unwrap(), TlsVersions::default());
        let termination = Termination { additional: ids.collect(), ..termination };
        self.mode(listener, of, TlsMode::Http(termination))
    }

    /// The same, and clients that send no name, or an unknown one, are shown another certificate.
    pub fn tls_with_fallback(self, listener: &str, of: &str, secret: &str, fallback: &str) -> Claims {
        let mut claims = self.tls(listener, of, &[secret]);
        let fallback = CertificateRef::Secret(ObjectRef::new(kind::SECRET, "default", fallback));
        if let Some(piece) = claims.translation.tls.last_mut() {
            piece.fallback = Some(Termination::new(fallback, TlsVersions::default()));
        }
        claims
    }

    /// With connections of a host that go to a backend as they are.
    pub fn passthrough(self, listener: &str, of: &str, service: &str) -> Claims {
        let clusters = vec![(cluster(service), 1)];
        self.mode(
            listener,
            of,
            TlsMode::Tcp(Arc::new(TcpProxy {
                termination: None,
                ip_filter: None,
                clusters,
                unavailable: 0,
                idle: Timeout::Default,
            })),
        )
    }

    fn mode(mut self, listener: &str, of: &str, mode: TlsMode) -> Claims {
        self.translation.tls.push(TlsPiece {
            listener: self.id(listener),
            host: host(of),
            mode,
            fallback: None,
            covers: Covers { depth: Depth::AnyLabels, every_route: true },
            precedence: self.precedence(),
            origin: self.translation.subject.at("spec.tls"),
        });
        self
    }

    /// With the backends of a plain TCP or UDP listener, and their shares.
    pub fn stream(self, listener: &str, services: &[(&str, u32)]) -> Claims {
        self.stream_of(listener, services, None, 0)
    }

    /// The same, beside backends with this share that cannot be used.
    pub fn stream_beside(self, listener: &str, services: &[(&str, u32)], unavailable: u32) -> Claims {
        self.stream_of(listener, services, None, unavailable)
    }

    /// The same, for some clients only.
    pub fn stream_for(self, listener: &str, services: &[(&str, u32)], ip_filter: Option<IpFilter>) -> Claims {
        self.stream_of(listener, services, ip_filter, 0)
    }

    fn stream_of(
        mut self,
        listener: &str,
        services: &[(&str, u32)],
        ip_filter: Option<IpFilter>,
        unavailable: u32,
    ) -> Claims {
        let clusters = services.iter().map(|(service, weight)| (cluster(service), *weight)).collect();
        self.translation.streams.push(StreamPiece {
            listener: self.id(listener),
            target: Arc::new(StreamTarget { ip_filter, clusters, unavailable, idle: Timeout::Default }),
            precedence: self.precedence(),
            origin: self.translation.subject.at("spec.backends"),
        });
        self
    }

    /// Puts it in.
    pub fn put(self, pipeline: &mut Pipeline) {
        pipeline.contribute(&self.translation.subject.clone(), Some(self.translation));
    }

    /// Takes it out.
    pub fn remove(self, pipeline: &mut Pipeline) {
        pipeline.contribute(&self.translation.subject, None);
    }
}

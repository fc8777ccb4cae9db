//! Long lists of routes as trees: the same answer as the list gives, for random routes and random requests.

use super::requests::TURN;
use super::world::slots;
use envoy::packing::Packing;
use envoy::{listener, virtual_host};
use envoy_api::Message;
use envoy_api::envoy::config::route::v3::RouteConfiguration;
use model::route::{
    Action, Conditions, Depth, DirectResponse, HeaderMatch, Path, PathMatch, Precedence, Route, ValueMatch,
};
use model::{FleetId, Host, ObjectRef, Port, PortId, PortProtocol, Regex, VirtualHost};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use testbed::{Client, cases::Proxy};
use xds::{Kind, Resource};

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    /// A path of few letters, so that paths lie below each other.
    fn path(&mut self) -> String {
        let mut path = String::from("/");
        for _ in 0..self.below(6) {
            path.push_str(["a", "b", "/", "ab", "/a"][self.below(5)]);
        }
        path.replace("//", "/")
    }

    fn route(&mut self, number: u32) -> Arc<Route> {
        let path = Path::parse(&self.path()).unwrap();
        let path = match self.below(12) {
            10 => PathMatch::ExactIgnoreCase(path),
            11 => PathMatch::PrefixIgnoreCase(path),
            0..=2 => PathMatch::Exact(path),
            3..=5 => PathMatch::below(&path),
            6..=8 => PathMatch::Prefix(path),
            _ => PathMatch::Regex(Regex::parse(&format!("{path}[ab]+")).unwrap()),
        };
        let header = HeaderMatch {
            name: model::HeaderName::parse("x-test").unwrap(),
            value: ValueMatch::Present,
            invert: self.below(2) == 0,
            missing_is_empty: false,
        };
        let headers = if self.below(3) == 0 { vec![header] } else { Vec::new() };
        Arc::new(Route {
            path,
            conditions: Conditions { headers, ..Conditions::default() },
            depth: Depth::AnyLabels,
            action: Action::DirectResponse(DirectResponse {
                status: 200,
                body: format!("route {number}").into(),
                reason: None,
            }),
            policy: Default::default(),
            precedence: Precedence::by_age(dialect_ingress::DIALECT, 0, "n".into(), "n".into(), number),
            // None of all requests, which is the same for every one of them: which of a share are taken is random.
            fraction: [None, None, None, None, Some(0)][self.below(5)],
            combined: None,
            origin: ObjectRef::new(kinds::kind::INGRESS, "n", "n").at(format!("spec.rules[{number}]").as_str()),
        })
    }
}

fn host(name: &str, routes: &[Arc<Route>]) -> VirtualHost {
    let host = Host::parse(name).unwrap();
    let mut contributions = assemble::virtual_host::Contributions::new(&host);
    contributions.routes(routes.to_vec());
    contributions.assemble().host
}

#[test]
fn a_tree_only_where_it_pays() {
    let shaped = |paths: &mut dyn Iterator<Item = String>| {
        let mut dice = Dice(1);
        let routes = paths.zip(0..).map(|(path, number)| {
            let mut route = Route::clone(&dice.route(number));
            route.path = PathMatch::Prefix(Path::parse(&path).unwrap());
            Arc::new(route)
        });
        let mut host = virtual_host::virtual_host(&http_port().id, &host("a.com", &routes.collect::<Vec<_>>()));
        let size = host.encoded_len();
        virtual_host::tree::shape(&mut host);
        (host.matcher.is_some(), host.encoded_len() / size)
    };
    assert_eq!(shaped(&mut (0..20).map(|n| format!("/{n}"))), (false, 1));
    let (tree, times) = shaped(&mut (0..2000).map(|n| format!("/{n}x")).chain(["/".to_owned()]));
    assert!(tree && times <= 3, "{times} times the size");
    // Each path below all others: the copies would grow with the square.
    assert_eq!(shaped(&mut (1..200).map(|n| format!("/{}", "a".repeat(n)))), (false, 1));
}

fn http_port() -> Port {
    let (connections, http) = Default::default();
    Port {
        id: PortId::new(FleetId::Shared, "ingress_http"),
        address: Ipv4Addr::UNSPECIFIED.into(),
        port: 8080,
        protocol: PortProtocol::Http,
        connections,
        http,
        tracer: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trees_answer_as_lists_do() {
    let _turn = TURN.lock().await;
    let mut proxy = Proxy::start("trees").await.unwrap();
    let listener = listener::plain(&http_port(), Packing::Plain);
    let listener = Resource::new(Kind::Listener, "ingress_http", listener.encode_to_vec());
    let mut upserts = slots(&http_port().id);
    upserts.push(listener.refers_to(Kind::Route, "ingress_http"));
    let mut hits = 0;
    for seed in 1..=8 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let routes: Vec<_> = (0..120).map(|number| dice.route(number)).collect();
        let list = virtual_host::virtual_host(&http_port().id, &host("list.com", &routes));
        let mut tree = virtual_host::virtual_host(&http_port().id, &host("tree.com", &routes));
        // So many patterns and paths below each other are no tree in earnest; here they are what must be right.
        tree.matcher = virtual_host::tree::matcher(&tree.routes, usize::MAX);
        assert!(tree.matcher.is_some() && tree.routes.len() > 32, "seed {seed}");
        tree.routes.clear();
        let table = RouteConfiguration {
            name: "ingress_http".to_owned(),
            virtual_hosts: vec![list, tree],
            ..Default::default()
        };
        upserts.push(Resource::new(Kind::Route, "ingress_http", table.encode_to_vec()));
        proxy.publish(xds::Changes { upserts: std::mem::take(&mut upserts), removes: Vec::new() }).await.unwrap();
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)));
        let connection = client.connect().await.unwrap();
        for _ in 0..400 {
            let query = ["", "?", "?a=b", "?/a"][dice.below(4)];
            let path = format!("{}{query}", dice.path());
            let test = dice.below(2) == 0;
            let ask = async |host: &str| {
                let request = connection.get(&path).host(host);
                let request = if test { request.header("x-test", "1") } else { request };
                let answer = request.await.unwrap();
                (answer.status, answer.text())
            };
            let (list, tree) = (ask("list.com").await, ask("tree.com").await);
            assert_eq!(list, tree, "seed {seed}: {path}, header {test}");
            hits += usize::from(list.0 == 200);
        }
    }
    assert!(hits > 1000, "only {hits} of the requests met a route");
}

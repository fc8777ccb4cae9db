//! What is changed about a request on its way, through a real Envoy: paths, redirects, added headers and mirrored requests.

use super::claims::{Claims, cluster};
use super::requests::TURN;
use super::world::{World, object, service, settings};
use kinds::kind;
use model::{
    FleetId, MutableHeader, PortProtocol, Route,
    header::HeaderFormat,
    route::{Action, Forward, Mirror, Path, PathMatch, PathRewrite, Redirect},
};
use pipeline::settings::Packing;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use testbed::{Backend, Client, envoy::Config};
use tokio::{io::AsyncReadExt, net::TcpListener};

fn path(text: &str) -> Path {
    Path::parse(text).unwrap()
}

fn forward(route: &mut Route) -> &mut Forward {
    match &mut route.action {
        Action::Forward(forward) => forward,
        other => panic!("{other:?}"),
    }
}

/// A route for a path and what lies below it.
fn below(text: &'static str, change: impl FnOnce(&mut Route)) -> impl FnOnce(&mut Route) {
    move |route| {
        route.path = PathMatch::below(&path(text));
        change(route);
    }
}

fn by_element(matched: &str, to: &str) -> PathRewrite {
    PathRewrite::Below { matched: path(matched), path: path(to) }
}

fn redirect(matched: &'static str, to: &'static str) -> impl FnOnce(&mut Route) {
    let path = Some(by_element(matched, to));
    below(matched, |route| {
        route.action = Action::Redirect(Redirect { scheme: None, host: None, port: None, path, status: 302 });
    })
}

const HOST: &str = "a.example.com";

fn client(port: u16) -> Client {
    Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).host(HOST)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_are_replaced_by_element_and_as_a_whole() {
    let _turn = TURN.lock().await;
    let web = Backend::start("web").await.unwrap();
    let objects = [service("web", web.ip())];
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("rewrites"), objects).await;
    let rewrite = |to: PathRewrite| move |route: &mut Route| forward(route).rewrite = Some(to);
    let claims = Claims::new("rewrites", FleetId::Shared)
        .listener("own", 9081, PortProtocol::Http, "*")
        .routed("own", HOST, "web", below("/whole", rewrite(PathRewrite::Whole(path("/one\\1").into()))))
        .routed("own", HOST, "web", below("/prefix", rewrite(by_element("/prefix", "/two"))))
        .routed("own", HOST, "web", below("/root", rewrite(by_element("/root", "/"))))
        .routed("own", HOST, "web", rewrite(by_element("/", "/three")))
        .routed("own", HOST, "web", redirect("/from.a", "/to"))
        .routed("own", HOST, "web", redirect("/from.b", "/"));
    claims.put(&mut world.pipeline);
    world.publish().await;
    for (asked, seen) in
        [("/whole/a?b=c", "/one\\1"), ("/prefix", "/two"), ("/prefix/a", "/two/a"), ("/root", "/"), ("/root/a", "/a")]
    {
        let answer = client(9081).get(asked).await.unwrap();
        assert_eq!(answer.echo().path, seen, "{asked}");
    }
    assert_eq!(client(9081).get("/whole/a?b=c").await.unwrap().echo().query.as_deref(), Some("b=c"));
    for (asked, to) in [
        ("/from.a", "/to"),
        ("/from.a/", "/to/"),
        ("/from.a/b?c=d", "/to/b?c=d"),
        ("/from.b", "/"),
        ("/from.b/", "/"),
        ("/from.b/c", "/c"),
        ("/from.b/c/d?e=f", "/c/d?e=f"),
    ] {
        let answer = client(9081).get(asked).await.unwrap();
        assert_eq!(answer.header("location"), Some(format!("http://{HOST}{to}").as_str()), "{asked}");
    }
    assert_eq!(client(9081).get("/fromxa/b").await.unwrap().status, 200, "a dot is a dot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_added_to_those_that_are_there() {
    let _turn = TURN.lock().await;
    let web = Backend::start("web").await.unwrap();
    let objects = [service("web", web.ip())];
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("headers"), objects).await;
    let header =
        |name: &str, value: &str| (MutableHeader::parse(name).unwrap(), HeaderFormat::read(value, &[]).unwrap().format);
    let claims = Claims::new("headers", FleetId::Shared).listener("own", 9082, PortProtocol::Http, "*").routed(
        "own",
        HOST,
        "web",
        |route| {
            let changes = &mut route.policy.request_headers;
            changes.set = vec![header("x-emptied", ""), header("x-set", "ours")];
            changes.add = vec![header("x-add", "ours"), header("x-new", "ours")];
            changes.remove = vec![MutableHeader::parse("x-remove").unwrap()];
            route.policy.response_headers.add = vec![header("x-echo-name", "ours")];
        },
    );
    claims.put(&mut world.pipeline);
    world.publish().await;
    let request = client(9082).header("x-set", "theirs").header("x-add", "theirs").header("x-remove", "theirs");
    let request = request.header("x-emptied", "theirs");
    let answer = request.get("/").await.unwrap();
    let seen = answer.echo();
    let values = |name: &str| -> Vec<&str> {
        seen.headers.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(values("x-set"), ["ours"]);
    assert_eq!(values("x-emptied"), [""], "nothing of the client's is left");
    assert_eq!(values("x-add").join(","), "theirs,ours");
    assert_eq!(values("x-new"), ["ours"]);
    assert!(values("x-remove").is_empty());
    assert_eq!(answer.header_values("x-echo-name"), ["web", "ours"]);
}

/// The head of the next request that somebody sends, in lower case; it is never answered.
async fn head(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut read = Vec::new();
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "a whole head");
    }
    String::from_utf8(read).unwrap().to_ascii_lowercase()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mirrored_request_may_keep_its_host() {
    let _turn = TURN.lock().await;
    let web = Backend::start("web").await.unwrap();
    let copy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let annotations = json!({"projectsesame.io/endpoints": copy.local_addr().unwrap().to_string()});
    let meta = json!({"namespace": "default", "name": "copy", "annotations": annotations});
    let objects = [
        service("web", web.ip()),
        object(kind::SERVICE, &json!({"metadata": meta, "spec": {"ports": [{"port": 80}]}})),
    ];
    let mut world = World::with(&settings(Packing::Scoped), Config::new().name("mirrors"), objects).await;
    let claims = Claims::new("mirrors", FleetId::Shared).listener("own", 9083, PortProtocol::Http, "*");
    for (keeps_host, host) in [(true, "host: a.example.com\r\n"), (false, "host: a.example.com-shadow\r\n")] {
        let mirrored = claims.clone().routed("own", HOST, "web", |route| {
            let mirror = Mirror { cluster: cluster("copy"), per_million: 1_000_000, keeps_host };
            forward(route).mirrors = vec![mirror];
        });
        mirrored.put(&mut world.pipeline);
        world.publish().await;
        let client = client(9083);
        let (answer, head) = tokio::join!(client.get("/").into_future(), head(&copy));
        assert_eq!(answer.unwrap().backend(), Some("web"));
        assert!(head.contains(host), "{head}");
    }
}

use echo::Seen;
use echo::grpc::{Reply, Request};
use testbed::client::GrpcAnswer;
use testbed::{Backend, Client};

const SAY: &str = "/sesame.echo.v1.Echo/Say";

fn hello(count: u32) -> Request {
    Request { message: "hello".into(), count }
}

#[tokio::test]
async fn a_call_says_who_answered() {
    let backend = Backend::start("a").await.unwrap();
    for client in [backend.client(), Client::new(backend.https()).https()] {
        let client = client.host("grpc.example.com");
        let call: GrpcAnswer<Reply> = client.grpc(SAY, &hello(0)).header("x-echo-trailer", "x-a: b").await.unwrap();
        assert_eq!((call.status, &*call.message), (Some(0), ""));
        assert_eq!(call.answer.trailer("x-a"), Some("b"));
        let [reply] = &call.replies[..] else { panic!("{call:?}") };
        assert_eq!((&*reply.message, &*reply.name), ("hello", "a"));
        let seen: Seen = serde_json::from_str(&reply.seen).unwrap();
        assert_eq!((&*seen.path, seen.host.as_deref()), (SAY, Some("grpc.example.com")));
    }
}

#[tokio::test]
async fn any_method_is_answered_with_as_many_messages_as_asked_for() {
    let backend = Backend::start("a").await.unwrap();
    let call: GrpcAnswer<Reply> = backend.client().grpc("/other.Service/Method", &hello(300)).await.unwrap();
    assert_eq!((call.status, call.replies.len()), (Some(0), 300));
}

#[tokio::test]
async fn a_stream_stays_open_until_its_backend_ends() {
    let backend = Backend::start("a").await.unwrap();
    let mut stream = backend.client().grpc_stream(SAY).await.unwrap();
    for _ in 0..3 {
        let reply: Reply = stream.ask(&hello(1)).await.unwrap();
        assert_eq!((&*reply.message, &*reply.name), ("hello", "a"));
    }
    backend.kill().await.unwrap();
    assert!(stream.ask::<Reply>(&hello(1)).await.is_err());
}

#[tokio::test]
async fn failures_on_request() {
    let backend = Backend::start("a").await.unwrap();
    let client = backend.client();
    let call: GrpcAnswer<Reply> = client.grpc(SAY, &hello(1)).header("x-echo-grpc-status", "14").await.unwrap();
    assert_eq!((call.status, &*call.message, call.replies.len()), (Some(14), "as asked for", 0));
    for at in ["before", "headers", "body"] {
        let call = client.grpc::<Reply>(SAY, &hello(3)).header("x-echo-reset", at);
        let failure = call.await.unwrap_err();
        assert_eq!(failure.partial().is_some(), at != "before", "{failure}");
    }
}

#[tokio::test]
async fn the_health_check_of_proxies_is_answered() {
    let backend = Backend::start("a").await.unwrap();
    let nothing = Request::default();
    let call: GrpcAnswer<Health> = backend.client().grpc("/grpc.health.v1.Health/Check", &nothing).await.unwrap();
    assert_eq!((call.status, &call.replies[..]), (Some(0), &[Health { status: 1 }][..]));
}

#[derive(Clone, PartialEq, prost::Message)]
struct Health {
    #[prost(int32, tag = "1")]
    status: i32,
}

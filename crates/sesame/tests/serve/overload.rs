//! Too many connections and too much memory: Envoy refuses what it cannot bear before the kernel does, and still answers those
//! who look after it.

use testbed::{Backend, Client, eventually};

use crate::bed::{Bed, TIMEOUT, app};

/// The limit of connections.
const LIMIT: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn at_twice_the_limit_of_connections_probes_metrics_and_the_admin_interface_answer() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("overload").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    let limit = LIMIT.to_string();
    let envoy = bed.envoy_with(replica.xds(), &[("overload-downstream-max-conn", &limit)]).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;

    let client = Client::new(bed.http()).host("web.example.com");
    let mut held = Vec::new();
    let (mut served, mut refused) = (0, 0);
    for _ in 0..2 * LIMIT {
        match client.connect().await {
            Ok(connection) => match connection.get("/").await {
                Ok(answer) => {
                    assert_eq!(answer.status, 200);
                    served += 1;
                    held.push(connection);
                }
                Err(_) => refused += 1,
            },
            Err(_) => refused += 1,
        }
    }
    assert!((LIMIT - 5..=LIMIT).contains(&served), "{served} served, {refused} refused");
    for path in ["/ready", "/stats", "/stats/prometheus"] {
        let answer = Client::new((bed.http().ip(), 8002).into()).get(path).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
    }
    assert!(envoy.admin().get("/server_info").await.unwrap().contains("LIVE"));
    // Whoever is there is served on, and when they go others are.
    assert_eq!(held[0].get("/").await.unwrap().status, 200);
    drop(held);
    let again =
        async || client.get("/").await.map(|answer| assert_eq!(answer.status, 200)).map_err(|it| it.to_string());
    eventually("others to be served", TIMEOUT, again).await.unwrap();
}

/// Clients that send large requests without an end fill Envoy's memory up to the limit, and no further: requests are refused, and served
/// again when these clients are gone.
#[tokio::test(flavor = "multi_thread")]
async fn memory_that_clients_take_ends_at_the_limit_and_comes_back() {
    const ROOM: u64 = 32 << 20;
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("buffers").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    // What its allocator has taken from the system and uses, as Envoy counts it: allocated memory and caches.
    let heap = async |envoy: &testbed::Envoy| -> u64 {
        let text = envoy.admin().get("/memory").await.unwrap();
        let memory: serde_json::Value = serde_json::from_str(&text).unwrap();
        let figure = |name: &str| memory[name].as_str().unwrap().parse::<u64>().unwrap();
        figure("heap_size") - figure("pageheap_unmapped") - figure("pageheap_free")
    };
    let envoy = bed.envoy(replica.xds()).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    let limit = heap(&envoy).await + ROOM;
    envoy.stop().await.unwrap();

    let envoy = bed.envoy_with(replica.xds(), &[("overload-max-heap", &limit.to_string())]).await;
    envoy.ready().await.unwrap();
    bed.answers("web.example.com", 200).await;
    let mut held = Vec::new();
    let pressed = async || {
        let stats = envoy.admin().get("/stats?filter=stop_accepting_requests.active").await.unwrap();
        stats.trim().ends_with(": 1")
    };
    let received = async || {
        envoy.admin().stat("http.ingress_http.downstream_cx_rx_bytes_total").await.unwrap().unwrap_or_default()
    };
    // Each request has headers as large as Envoy takes them, and a body that never comes.
    while !pressed().await {
        assert!(held.len() < 900, "{} connections, {} bytes of {limit}", held.len(), heap(&envoy).await);
        for _ in 0..50 {
            let mut wire = Client::new(bed.http()).open().await.unwrap();
            let head = format!(
                "POST / HTTP/1.1\r\nhost: web.example.com\r\ncontent-length: 1000000\r\nx: {}\r\n\r\n",
                "x".repeat(50_000)
            );
            wire.write(head).await.unwrap();
            held.push(wire);
        }
        // Envoy reads them, and looks at its memory from time to time: connections may be opened faster than both.
        let taken = async || {
            let is_read = received().await >= 50_000 * held.len() as u64;
            match pressed().await || is_read && heap(&envoy).await < limit {
                true => Ok(()),
                false => Err(format!("{} bytes of {limit}", heap(&envoy).await)),
            }
        };
        eventually("the requests to be read, and the limit to be noticed", TIMEOUT, taken).await.unwrap();
    }
    assert!(heap(&envoy).await < limit + ROOM, "it goes on to grow");
    for path in ["/ready", "/stats"] {
        let answer = Client::new((bed.http().ip(), 8002).into()).get(path).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
    }
    let count = held.len();
    drop(held);
    let again = async || match pressed().await {
        false => Ok(()),
        true => Err(format!(
            "{} bytes of {limit} after {count} connections: {}",
            heap(&envoy).await,
            envoy.admin().get("/memory").await.unwrap()
        )),
    };
    eventually("the pressure to be over", TIMEOUT, again).await.unwrap();
    bed.answers("web.example.com", 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_limit_of_memory_requests_are_refused_and_probes_metrics_and_the_admin_interface_answer() {
    let bed = Bed::start().await;
    let backend = Backend::start("a").await.unwrap();
    let namespace = bed.api.namespace("memory").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &backend)).await.unwrap();
    let replica = bed.replica("sesame-0").await.ready().await;
    // Less than it has from the start.
    let envoy = bed.envoy_with(replica.xds(), &[("overload-max-heap", "1000000")]).await;
    let pressed = "overload.envoy.overload_actions.stop_accepting_requests.active";
    envoy.expect_stat(pressed, TIMEOUT, |active| active == 1).await.unwrap();
    let refused = async || match Client::new(bed.http()).host("web.example.com").get("/").await {
        Ok(answer) if answer.status == 503 => Ok(()),
        Ok(answer) => Err(answer.status.to_string()),
        Err(failure) => Err(failure.to_string()),
    };
    eventually("requests to be refused", TIMEOUT, refused).await.unwrap();
    for path in ["/ready", "/stats"] {
        let answer = Client::new((bed.http().ip(), 8002).into()).get(path).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
    }
    assert!(envoy.admin().get("/server_info").await.unwrap().contains("LIVE"));
}

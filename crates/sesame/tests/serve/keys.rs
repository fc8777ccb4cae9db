//! Keys of the configuration as clients and backends meet them, each changed while the server runs; what neither can meet is read from
//! the configuration that Envoy has in use. And flags, as clients, the API server and whoever reads a status meet them.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testbed::apiserver::AuditEntry;
use testbed::certs::Ca;
use testbed::client::Failure;
use testbed::{Backend, Client, Envoy, Net, eventually, within};

use crate::bed::{Bed, TIMEOUT, app};
use crate::live::{expect_header, replace, with_file};
use crate::status::addresses;

/// A configuration that shows its number in each answer.
fn config(number: usize, keys: &str) -> String {
    format!("policy: {{applyToIngress: true, response-headers: {{set: {{x-config: '{number}'}}}}}}\n{keys}")
}

/// A listener, as Envoy has it in use.
async fn listener(envoy: &Envoy, name: &str) -> Result<Value, String> {
    let listeners = envoy.admin().resources("dynamic_listeners").await.map_err(|error| error.to_string())?;
    let found = listeners.iter().find(|listener| listener["name"] == name).ok_or("there is no such listener")?;
    Ok(found["active_state"]["listener"].clone())
}

/// The cluster of a Service. One that looks up a name may wait for the answer for ever.
async fn cluster(envoy: &Envoy, service: &str) -> Result<Value, String> {
    let mut clusters = Vec::new();
    for list in ["dynamic_active_clusters", "dynamic_warming_clusters"] {
        clusters.extend(envoy.admin().resources(list).await.map_err(|error| error.to_string())?);
    }
    let path = format!("/{service}/80");
    let is_its = |cluster: &&Value| cluster["cluster"]["name"].as_str().is_some_and(|name| name.contains(&path));
    Ok(clusters.iter().find(is_its).ok_or("there is no such cluster")?["cluster"].clone())
}

/// Waits until a configuration of Envoy has these values, by their paths.
async fn expect(what: &str, look: impl AsyncFn() -> Result<Value, String>, expected: &[(&str, Value)]) {
    let has = async || {
        let found = look().await?;
        match expected.iter().find(|(path, value)| found.pointer(path) != Some(value)) {
            None => Ok(()),
            Some((path, value)) => Err(format!("{path} is not {value} in {found}")),
        }
    };
    eventually(format!("the configuration of {what}"), TIMEOUT, has).await.unwrap();
}

/// The values of the socket options of a listener that mark packets, by what they are.
fn marks(listener: &Value) -> Value {
    let options = listener["socket_options"].as_array().into_iter().flatten();
    let marks =
        options.filter(|option| ["type of service", "traffic class"].iter().any(|it| option["description"] == *it));
    // Numbers of 64 bits are text.
    marks.map(|option| json!([option["description"], option["int_value"]])).collect()
}

/// An Ingress for `outside.example.com` whose Service is a name in DNS, as YAML.
fn outside(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: outside, namespace: {namespace}}}\n\
         spec: {{type: ExternalName, externalName: elsewhere.example.com, ports: [{{port: 80}}]}}\n---\n\
         apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: outside, namespace: {namespace}}}\n\
         spec:\n  rules:\n  - host: outside.example.com\n    http: {{paths: [{{path: /, pathType: Prefix, backend: \
         {{service: {{name: outside, port: {{number: 80}}}}}}}}]}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_and_backends_meet_each_key() {
    let bed = Bed::start().await;
    let (replica, envoy, file) = with_file(&bed, &config(0, "")).await;
    let client = Client::new(bed.http()).host("web.example.com");
    let apply = async |number: usize, keys: &str| {
        replace(&file, &config(number, keys));
        expect_header(&bed, "web.example.com", "x-config", &number.to_string()).await;
        replica.in_step(1).await;
    };

    // As it is without keys.
    let answer = client.get("//a//b").header("x-echo-header", "server: mine").await.unwrap();
    assert_eq!((answer.header("server"), &*answer.echo().path), (Some("envoy"), "/a/b"));
    assert_eq!(client.clone().http2().get("/").await.unwrap().status, 200);
    let forwarded = async || {
        let answer = client.get("/").header("x-forwarded-for", "203.0.113.7").await.unwrap();
        answer.echo().header("x-envoy-external-address").map(str::to_owned)
    };
    assert_ne!(forwarded().await.as_deref(), Some("203.0.113.7"), "what a client says about itself is not believed");

    apply(1, "serverHeaderTransformation: pass_through\ndisableMergeSlashes: true\nnetwork: {num-trusted-hops: 1}\n")
        .await;
    let answer = client.get("//a//b").header("x-echo-header", "server: mine").await.unwrap();
    assert_eq!((answer.header("server"), &*answer.echo().path), (Some("mine"), "//a//b"));
    assert_eq!(forwarded().await.as_deref(), Some("203.0.113.7"), "a proxy in front says who it is");

    apply(2, "listener: {max-requests-per-connection: 2, connection-balancer: exact}\ncluster: {max-requests-per-connection: 1}\n").await;
    let connection = client.connect().await.unwrap();
    let mut upstream = Vec::new();
    for _ in 0..2 {
        upstream.push(connection.get("/").await.unwrap().echo().connection);
    }
    assert_ne!(upstream[0], upstream[1], "each request has a connection to the backend of its own");
    within("the connection to close after two requests", TIMEOUT, connection.closed()).await.unwrap();
    let listeners = envoy.admin().resources("dynamic_listeners").await.unwrap();
    let balanced = listeners.iter().filter(|listener| listener.to_string().contains("exact_balance")).count();
    assert!(balanced > 0, "{listeners:?}");

    apply(3, "default-http-versions: [HTTP/1.1]\n").await;
    assert!(client.clone().http2().get("/").await.is_err(), "HTTP/2 is not spoken");
    assert_eq!(client.get("/").await.unwrap().status, 200);

    apply(4, "cluster: {circuit-breakers: {max-connections: 1, max-pending-requests: 1, max-requests: 1}}\n").await;
    let slow: Vec<_> = (0..8)
        .map(|_| {
            let request = client.get("/").header("x-echo-delay", "1s");
            tokio::spawn(async move { request.await.unwrap().status.as_u16() })
        })
        .collect();
    let mut statuses = Vec::new();
    for request in slow {
        statuses.push(request.await.unwrap());
    }
    assert!(statuses.contains(&200) && statuses.contains(&503), "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");

    apply(5, "timeouts: {stream-idle-timeout: 1s}\n").await;
    let client = client.timeout(Duration::from_secs(20));
    assert_eq!(client.get("/").header("x-echo-delay", "15s").await.unwrap().status, 504);
    assert_eq!(client.get("/").header("x-echo-delay", "100ms").await.unwrap().status, 200);

    // The whole request has to come in time.
    apply(6, "timeouts: {request-timeout: 1s}\n").await;
    let mut wire = client.open().await.unwrap();
    wire.write("POST / HTTP/1.1\r\nhost: web.example.com\r\ncontent-length: 5\r\n\r\n1").await.unwrap();
    let head = within("an answer to half a request", TIMEOUT, wire.read_until(b"\r\n\r\n")).await.unwrap().unwrap();
    assert!(head.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&head));

    // Far less than what holds without these keys, and what a test waits for.
    for (number, keys) in [(7, "connection-idle-timeout: 1s"), (8, "max-connection-duration: 1s")] {
        apply(number, &format!("timeouts: {{{keys}}}\n")).await;
        let connection = client.connect().await.unwrap();
        assert_eq!(connection.get("/").await.unwrap().status, 200);
        within(format!("a connection to close by {keys}"), TIMEOUT / 2, connection.closed()).await.unwrap();
    }

    apply(9, "listener: {http2-max-concurrent-streams: 1}\n").await;
    let connection = client.clone().http2().connect().await.unwrap();
    assert_eq!(connection.get("/").await.unwrap().status, 200);
    let begun = std::time::Instant::now();
    let slow = || connection.get("/").header("x-echo-delay", "1s");
    let (first, second) = tokio::join!(slow(), slow());
    assert_eq!((first.unwrap().status.as_u16(), second.unwrap().status.as_u16()), (200, 200));
    assert!(begun.elapsed() >= Duration::from_secs(2), "one stream after the other: {:?}", begun.elapsed());

    let both = "POST / HTTP/1.1\r\nhost: web.example.com\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\
                connection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (number, keys, status) in [(10, "", "200"), (11, "disableAllowChunkedLength: true\n", "400")] {
        apply(number, keys).await;
        let answer = client.raw(both).await.unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{keys}: {answer}");
    }

    // What requests and answers are given, and what is taken from them.
    let headers = async || {
        let request = client.get("/").header("x-given", "theirs").header("x-taken", "1");
        let answer = request.header("x-echo-header", "x-taken: 2").await.unwrap();
        let seen = answer.echo();
        let headers = [seen.header("x-given"), seen.header("x-taken"), answer.header("x-taken")];
        headers.map(|value| value.unwrap_or("none").to_owned())
    };
    assert_eq!(headers().await, ["theirs", "1", "2"]);
    let policy = "policy:\n  applyToIngress: true\n  request-headers: {set: {x-given: ours}, remove: [x-taken]}\n  \
                  response-headers: {set: {x-config: '12'}, remove: [x-taken]}\n";
    replace(&file, policy);
    expect_header(&bed, "web.example.com", "x-config", "12").await;
    replica.in_step(1).await;
    assert_eq!(headers().await, ["ours", "none", "none"]);

    // What no request tells.
    bed.api.apply(&outside(&bed.api.namespace("keys").await.unwrap())).await.unwrap();
    apply(
        13,
        "enableExternalNameService: true\n\
         timeouts: {delayed-close-timeout: 7s, connection-shutdown-grace-period: 8s}\n\
         listener: {per-connection-buffer-limit-bytes: 65536, max-connections-to-accept-per-socket-event: 3, \
         socket-options: {tos: 64, traffic-class: 96}}\n\
         cluster: {dns-lookup-family: v4, per-connection-buffer-limit-bytes: 131072, \
         circuit-breakers: {max-retries: 5, per-host-max-connections: 6}}\n",
    )
    .await;
    let manager = "/filter_chains/0/filters/0/typed_config";
    expect(
        "the listener",
        async || listener(&envoy, "ingress_http").await,
        &[
            (&*format!("{manager}/delayed_close_timeout"), json!("7s")),
            (&*format!("{manager}/drain_timeout"), json!("8s")),
            ("/per_connection_buffer_limit_bytes", json!(65536)),
            ("/max_connections_to_accept_per_socket_event", json!(3)),
        ],
    )
    .await;
    // A socket of IPv4 has no traffic class.
    assert_eq!(marks(&listener(&envoy, "ingress_http").await.unwrap()), json!([["type of service", "64"]]));
    expect(
        "the cluster",
        async || cluster(&envoy, "web").await,
        &[
            ("/per_connection_buffer_limit_bytes", json!(131_072)),
            ("/circuit_breakers/thresholds/0/max_retries", json!(5)),
            ("/circuit_breakers/per_host_thresholds/0/max_connections", json!(6)),
        ],
    )
    .await;
    let family = [("/dns_lookup_family", json!("V4_ONLY"))];
    expect("the name in DNS", async || cluster(&envoy, "outside").await, &family).await;
    bed.answers("web.example.com", 200).await;
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_tls_hold_for_clients_and_backends() {
    let (bed, ca) = (Bed::start().await, Ca::new("keys"));
    let leaf = ca.leaf("secure.example.com").make();
    let backend = Backend::named("secure").tls(&leaf).start().await.unwrap();
    let namespace = bed.api.namespace("keys").await.unwrap();
    let meta = json!({ "name": "secure", "namespace": namespace });
    let mut service =
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": { "ports": [{ "port": 443 }] } });
    service["metadata"]["annotations"] = json!({ "projectcontour.io/upstream-protocol.tls": "443" });
    let mut slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "metadata": meta,
        "ports": [{ "port": 443, "name": "" }], "endpoints": [{ "addresses": [backend.ip().to_string()] }] });
    slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": "secure" });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": meta,
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } });
    let proxy = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": meta, "spec": {
        "virtualhost": { "fqdn": "secure.example.com", "tls": { "secretName": "secure" } },
        "routes": [{ "services": [{ "name": "secure", "port": 443 }] }],
    } });
    for object in [service, slice, secret, proxy] {
        bed.api.apply(&object.to_string()).await.unwrap();
    }
    let web = Backend::start("a").await.unwrap();
    bed.api.apply(&app(&namespace, "web", &web)).await.unwrap();
    let file = bed.file("sesame.yaml", &config(0, ""));
    // HTTPS over IPv6, whose packets have a traffic class.
    let flags = [("config-path", file.to_str().unwrap()), ("envoy-service-https-address", "::1")];
    let replica = bed.replica_at("sesame-0", Net::here().unwrap().address(), &flags).await.ready().await;
    // Access logs are written at once.
    let flushing = Envoy::config().arg("--file-flush-interval-msec").arg("20");
    let envoy = bed.envoy_as(flushing, replica.xds(), &[]).await;
    envoy.ready().await.unwrap();
    let https = Client::new((Ipv6Addr::LOCALHOST, 8443).into()).https();
    let client = https.host("secure.example.com").sni("secure.example.com").trust(&ca);
    // What client and backend agreed on with the proxy, as version and cipher suite.
    let agreed = async |downstream: [&str; 2], upstream: [&str; 2]| {
        let look = async || {
            let answer = client.get("/").await.map_err(|failure| failure.to_string())?;
            let seen = answer.try_echo().and_then(|seen| seen.tls).ok_or_else(|| answer.status.to_string())?;
            let shown = answer.tls.as_ref().ok_or("no TLS")?;
            let fits = |found: [&str; 2], wanted: [&str; 2]| found[0] == wanted[0] && found[1].contains(wanted[1]);
            let is_agreed =
                fits([&shown.version, &shown.cipher], downstream) && fits([&seen.version, &seen.cipher], upstream);
            if is_agreed { Ok(()) } else { Err(format!("{shown:?} {seen:?}")) }
        };
        eventually(format!("{downstream:?} and {upstream:?}"), TIMEOUT, look).await.unwrap();
    };
    agreed(["TLSv1.3", ""], ["TLSv1.3", ""]).await;
    let apply = async |number: usize, keys: &str| {
        replace(&file, &config(number, keys));
        expect_header(&bed, "web.example.com", "x-config", &number.to_string()).await;
        replica.in_step(1).await;
    };
    apply(
        1,
        "tls: {maximum-protocol-version: '1.2', cipher-suites: [ECDHE-ECDSA-CHACHA20-POLY1305]}\n\
         cluster: {upstream-tls: {maximum-protocol-version: '1.2', cipher-suites: [ECDHE-ECDSA-AES256-GCM-SHA384]}}\n",
    )
    .await;
    agreed(["TLSv1.2", "CHACHA20"], ["TLSv1.2", "AES_256_GCM"]).await;
    apply(
        2,
        "tls: {maximum-protocol-version: '1.2', cipher-suites: [ECDHE-ECDSA-AES256-GCM-SHA384]}\n\
         cluster: {upstream-tls: {minimum-protocol-version: '1.3', ecdh-curves: [P-256]}}\n",
    )
    .await;
    agreed(["TLSv1.2", "AES_256_GCM"], ["TLSv1.3", ""]).await;

    // The client does not know the only curve, then it knows it.
    apply(3, "tls: {ecdh-curves: [P-521]}\n").await;
    let has_no_session = async || match client.get("/").await {
        Err(Failure::Tls { .. }) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    eventually("a handshake without a curve in common", TIMEOUT, has_no_session).await.unwrap();
    let curve = "ecdh-curves: [P-384]";
    let line = "accesslog-format-string: 'keys %TLS_JA3_FINGERPRINT% %TLS_JA4_FINGERPRINT% %REQ(:PATH)%'\n";
    apply(4, &format!("tls: {{{curve}}}\n{line}")).await;
    agreed(["TLSv1.3", ""], ["TLSv1.3", ""]).await;
    assert_eq!(client.get("/before").await.unwrap().status, 200);
    let logged = envoy.process().expect_line("/before", TIMEOUT).await.unwrap();
    assert_eq!(logged, "keys - - /before");

    let keys = "fingerprint: {ja3: true, ja4: true}";
    let options = "listener: {socket-options: {tos: 64, traffic-class: 96}}\n";
    apply(5, &format!("tls: {{{curve}, {keys}}}\n{line}{options}")).await;
    let fingerprints = async || {
        let answer = client.get("/after").await.map_err(|failure| failure.to_string())?;
        let log = envoy.process().log().text();
        let lines = log.lines().filter_map(|line| line.strip_prefix("keys ")?.strip_suffix(" /after"));
        let found = lines.filter_map(|line| line.split_once(' ')).find(|(ja3, _)| *ja3 != "-");
        let missing = || format!("{} without fingerprints", answer.status);
        found.map(|(ja3, ja4)| (ja3.to_owned(), ja4.to_owned())).ok_or_else(missing)
    };
    let (ja3, ja4) = eventually("fingerprints in the access log", TIMEOUT, fingerprints).await.unwrap();
    assert!(ja3.len() == 32 && ja3.bytes().all(|byte| byte.is_ascii_hexdigit()), "{ja3}");
    // TCP, TLS 1.3, with a server name.
    assert!(ja4.starts_with("t13d"), "{ja4}");
    let in_use = listener(&envoy, "ingress_https").await.unwrap();
    assert_eq!(marks(&in_use), json!([["type of service", "64"], ["traffic class", "96"]]));
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
}

/// Requests per second to the API server, in the long run and at once.
const QPS: u32 = 10;
const BURST: u32 = 12;
/// What a load balancer says about a client before its first request.
const PREAMBLE: &str = "PROXY TCP4 10.1.2.3 192.0.2.1 40000 443\r\n";

/// Hosts with TLS: `secure.example.com`, and `guarded.example.com`, which an ExtensionService guards.
fn protected(namespace: &str, ca: &Ca) -> String {
    let leaf = ca.leaf("secure.example.com").dns("guarded.example.com").make();
    let meta = |name: &str| json!({ "name": name, "namespace": namespace });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": meta("cert"),
        "stringData": { "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() } });
    let service = json!([{ "name": "web", "port": 80 }]);
    let extension = json!({ "apiVersion": "projectcontour.io/v1alpha1", "kind": "ExtensionService",
        "metadata": meta("auth"), "spec": { "services": service } });
    let proxy = |name: &str, mut host: Value| {
        host["fqdn"] = format!("{name}.example.com").into();
        host["tls"] = json!({ "secretName": "cert" });
        json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": meta(name),
            "spec": { "virtualhost": host, "routes": [{ "services": service }] } })
    };
    let guarded = json!({ "authorization": { "extensionRef": { "name": "auth" } } });
    let objects = [secret, extension, proxy("secure", json!({})), proxy("guarded", guarded)];
    objects.map(|object| object.to_string()).join("\n---\n")
}

/// A Service of Envoy to which a cloud has given an address.
async fn balanced(bed: &Bed, namespace: &str, name: &str, ip: &str) {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": namespace },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] } });
    bed.api.apply(&service.to_string()).await.unwrap();
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ip }] } } });
    let services = Api::<Service>::namespaced(bed.api.client().unwrap(), namespace);
    services.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// Waits until a request is in an access log, and gives the log.
async fn logged(path: &Path, request: &str) -> String {
    let look = async || match std::fs::read_to_string(path) {
        Ok(text) if text.contains(request) => Ok(text),
        other => Err(format!("{other:?}")),
    };
    eventually(format!("{request} in {}", path.display()), TIMEOUT, look).await.unwrap()
}

/// Each is another than the one that is usual.
#[tokio::test(flavor = "multi_thread")]
async fn flags_take_effect_for_clients_in_statuses_and_in_what_the_api_server_is_asked() {
    let (bed, ca) = (Bed::audited().await, Ca::new("flags"));
    bed.api.install([parts::folder("gateway-api-crds").unwrap().join("standard")]).await.unwrap();
    let backend = Backend::start("web").await.unwrap();
    let namespace = async |name: &str| bed.api.namespace(name).await.unwrap();
    let (watched, edge, ignored) = (namespace("watched").await, namespace("edge").await, namespace("ignored").await);
    bed.api.apply(&app(&watched, "web", &backend)).await.unwrap();
    bed.api.apply(&protected(&watched, &ca)).await.unwrap();
    bed.api.apply(&app(&ignored, "ignored", &backend)).await.unwrap();
    balanced(&bed, &edge, "front", "192.0.2.99").await;

    let logs = ["http.log", "https.log"].map(|name| bed.state().path().join(name));
    let both = format!("{watched},{edge}");
    let flags = [
        ("disable-feature", "extensionservices"),
        ("disable-feature", "grpcroutes"),
        ("envoy-http-access-log", logs[0].to_str().unwrap()),
        ("envoy-https-access-log", logs[1].to_str().unwrap()),
        ("envoy-service-http-port", "8180"),
        ("envoy-service-https-port", "8543"),
        ("stats-port", "8202"),
        ("use-proxy-protocol", ""),
        ("watch-namespaces", &both),
        ("kubernetes-client-qps", &QPS.to_string()),
        ("kubernetes-client-burst", &BURST.to_string()),
        ("envoy-service-name", "front"),
        ("envoy-service-namespace", &edge),
    ];
    let before = bed.api.audit().unwrap().len();
    let begun = Instant::now();
    let replica = bed.replica_at("sesame-0", Net::here().unwrap().address(), &flags).await.ready().await;
    let by_replica = || -> Vec<AuditEntry> {
        let entries = bed.api.audit().unwrap().into_iter().skip(before);
        entries.filter(|entry| entry.user != "system:apiserver").collect()
    };

    // The API server: it was asked no more often than it may be. A watch is counted once: its end is a line of its own.
    let started = by_replica();
    let took = begun.elapsed();
    let names = |entry: &AuditEntry| (entry.group.clone(), entry.resource.clone(), entry.namespace.clone());
    let watches: BTreeSet<_> = started.iter().filter(|entry| entry.verb == "watch").map(names).collect();
    let asked = watches.len() + started.iter().filter(|entry| entry.verb != "watch").count();
    println!("{asked} requests in {took:?}");
    assert!(asked as u32 > 2 * BURST, "{asked} requests are too few to tell");
    let most = f64::from(BURST) + f64::from(QPS) * took.as_secs_f64();
    assert!(asked as f64 <= most, "{asked} requests in {took:?}");
    // Only of these namespaces, and not of the kinds that are disabled.
    let of = |resource: &str| -> BTreeSet<String> {
        let entries =
            started.iter().filter(|entry| entry.resource == resource && ["list", "watch"].contains(&&*entry.verb));
        entries.map(|entry| entry.namespace.clone()).collect()
    };
    let both: BTreeSet<String> = [watched.clone(), edge.clone()].into();
    for (resource, namespaces) in [("ingresses", &both), ("httpproxies", &both), ("httproutes", &both)] {
        assert_eq!(of(resource), *namespaces, "{resource}");
    }
    for resource in ["extensionservices", "grpcroutes"] {
        assert_eq!(of(resource), BTreeSet::new(), "{resource}");
    }

    // Clients: other ports, each of which wants the preamble, but for that of readiness.
    let flushing = Envoy::config().arg("--file-flush-interval-msec").arg("20");
    let envoy = bed.envoy_as(flushing, replica.xds(), &[]).await;
    envoy.ready().await.unwrap();
    replica.in_step(1).await;
    let at = |port: u16| Client::new((bed.http().ip(), port).into());
    let http = at(8180).host("web.example.com");
    let https = at(8543).https().sni("secure.example.com").host("secure.example.com").trust(&ca);
    for (client, path) in [(&http, "/over-http"), (&https, "/over-https")] {
        let served = async || match client.clone().preamble(PREAMBLE).get(path).await {
            Ok(answer) if answer.status == 200 => Ok(answer),
            other => Err(format!("{other:?}")),
        };
        let answer = eventually(format!("{path} to be served"), TIMEOUT, served).await.unwrap();
        assert_eq!(answer.echo().header("x-forwarded-for"), Some("10.1.2.3"), "{}", answer.text());
        client.get(path).await.unwrap_err();
    }
    let elsewhere = at(8180).host("ignored.example.com").preamble(PREAMBLE).get("/").await.unwrap();
    assert_eq!(elsewhere.status, 404, "its namespace is not watched");
    assert_eq!(at(8202).get("/ready").await.unwrap().status, 200);
    for usual in [8080, 8443, 8002] {
        assert!(at(usual).get("/ready").await.unwrap_err().is_refused(), "{usual}");
    }

    // Access logs: a file for each listener, and nothing where they usually are.
    let text = [logged(&logs[0], "/over-http ").await, logged(&logs[1], "/over-https ").await];
    assert!(!text[0].contains("/over-https ") && !text[1].contains("/over-http "), "{text:?}");
    let output = envoy.process().log().text();
    assert!(!output.contains("/over-http"), "{output}");

    // Statuses: the addresses of the Service, and none of an object that is not watched; an ExtensionService is as if it were not there.
    let ingresses = |namespace: &str| Api::<Ingress>::namespaced(bed.api.client().unwrap(), namespace);
    let published = async || match addresses(&ingresses(&watched), "web").await {
        found if found == ["192.0.2.99"] => Ok(()),
        found => Err(format!("{found:?}")),
    };
    eventually("the address of the Service in the status", TIMEOUT, published).await.unwrap();
    assert_eq!(addresses(&ingresses(&ignored), "ignored").await, [""; 0]);
    let refused = async || {
        let status = bed.proxy_status(&watched, "guarded").await.to_string();
        if status.contains("ExtensionServiceNotFound") { Ok(()) } else { Err(status) }
    };
    eventually("the status of the guarded host", TIMEOUT, refused).await.unwrap();
    assert_eq!(replica.metric("sesame_xds_nacks_total", "").await, 0.0);
}

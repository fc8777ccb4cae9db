//! Two replicas with many TLS hosts and a client each, no Envoys: whether every HTTPProxy comes to say that it is programmed.
//!
//! A replica that does not hold the lease answers the holder's questions about its own client, so each object is programmed
//! only when both clients have it and both replicas have talked about it. Status is written 200 times a second, which is most
//! of the time that this takes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use testbed::certs::{Ca, Leaf};
use testbed::xds_client::{Kind, State};
use testbed::{ApiServer, Client, StateDir, XdsClient};
use tokio::time::{sleep, timeout};

use super::Options;
use super::fixture::papers;
use super::outcome::Fleet;
use crate::follower::until;
use crate::implementation::{Instance, Running, Sesame};
use crate::progress::Progress;
use crate::usage::Usage;
use crate::world::{FIRST, Object};
use crate::writer::Writer;

/// How many hosts share a namespace, its Service and its certificate.
const PER_NAMESPACE: usize = 500;
/// Writes under way at once.
const AT_ONCE: usize = 64;
/// How long the clients may take to have everything.
const CLIENTS: Duration = Duration::from_secs(300);
/// For how long nothing may become programmed before it counts as all that will be.
const STUCK: Duration = Duration::from_secs(60);
/// Between two looks at the objects.
const LOOK: Duration = Duration::from_secs(5);

/// Fills an API server, starts both, and waits.
pub async fn measure(options: &Options, hosts: usize) -> Result<Fleet> {
    let api = filled(hosts).await?;
    let writer = Writer::new(api.client()?);
    let state = StateDir::new("replicas")?;
    let (files, identity) = papers(&state)?;
    let sesame = Sesame { program: options.sesame.clone(), arguments: options.serve.clone() };
    let start = Instant::now();
    let mut replicas = Vec::new();
    for number in 0..2 {
        let mut instance = Instance::new(api.kubeconfig()?)?;
        instance.replica = Some(format!("sesame-{number}"));
        instance.tls = Some(files.clone());
        replicas.push((Running::start(&sesame, &instance)?, instance));
    }
    try_join_all(replicas.iter().map(|(replica, _)| replica.listening())).await?;
    let connecting = replicas.iter().map(|(_, instance)| client(instance, &identity, hosts));
    let clients = timeout(CLIENTS, try_join_all(connecting)).await.context("the clients do not get all hosts")??;
    let clients_have = since(start);
    let programmed = all_programmed(&writer, hosts, start).await?;
    let memory = replicas.iter().map(|(replica, _)| Usage::of(replica.pid()).map(|usage| usage.peak));
    let memory = memory.collect::<Result<Vec<_>>>()?;
    drop(clients);
    for (replica, _) in replicas {
        replica.stop().await?;
    }
    Ok(Fleet { hosts, clients: clients_have, programmed, memory })
}

/// A client that has all hosts.
async fn client(instance: &Instance, identity: &Leaf, hosts: usize) -> Result<XdsClient> {
    let server = Client::new(instance.xds).identity(identity).sni("sesame");
    let client = XdsClient::to(server).as_envoy().count_only().connect().await?;
    until(&client, "all hosts", |state: &State| state.count(Kind::ScopedRoute) >= hosts).await?;
    Ok(client)
}

/// How many objects say that they are programmed once all do, or once no more of them do.
async fn all_programmed(writer: &Writer, hosts: usize, start: Instant) -> Result<(usize, f64)> {
    let progress = Progress::new("objects programmed", hosts);
    let mut waiting: Vec<(usize, usize)> = (0..hosts.div_ceil(PER_NAMESPACE)).map(|number| (number, 0)).collect();
    let (mut done, mut last) = (0, Instant::now());
    loop {
        let before = done + waiting.iter().map(|(_, count)| count).sum::<usize>();
        for (number, count) in &mut waiting {
            *count = programmed_in(writer, *number).await?;
        }
        waiting.retain(|(number, count)| {
            let all = PER_NAMESPACE.min(hosts - number * PER_NAMESPACE);
            done += if *count == all { all } else { 0 };
            *count < all
        });
        let now = done + waiting.iter().map(|(_, count)| count).sum::<usize>();
        (before..now).for_each(|_| progress.step());
        if now > before {
            last = Instant::now();
        }
        if waiting.is_empty() || last.elapsed() > STUCK {
            return Ok((now, since(start)));
        }
        sleep(LOOK).await;
    }
}

async fn programmed_in(writer: &Writer, number: usize) -> Result<usize> {
    let list = writer.get(&format!("/apis/projectcontour.io/v1/namespaces/{}/httpproxies", namespace(number))).await?;
    let is_programmed = |object: &&Value| {
        let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "Programmed" && condition["status"] == "True")
    };
    Ok(list["items"].as_array().into_iter().flatten().filter(is_programmed).count())
}

fn namespace(number: usize) -> String {
    format!("fleet-{number:03}")
}

/// An API server with an HTTPProxy for each host, and a Service, its endpoints and a certificate in each namespace.
async fn filled(hosts: usize) -> Result<ApiServer> {
    let api = ApiServer::start().await?;
    api.install([parts::folder("contour-crds")?]).await?;
    let writer = Writer::new(api.client()?);
    let leaf = Ca::new("bench").leaf("*.example.com").make();
    for number in 0..hosts.div_ceil(PER_NAMESPACE) {
        for object in shared(number, &leaf) {
            writer.create(&object).await?;
        }
    }
    let progress = Progress::new(format!("writing {hosts} HTTPProxies"), hosts);
    let write = async |n: usize| {
        writer.create(&proxy(n)).await?;
        progress.step();
        anyhow::Ok(())
    };
    stream::iter(0..hosts).map(write).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    drop(progress);
    Ok(api)
}

/// What the hosts of a namespace share, the namespace first.
fn shared(number: usize, leaf: &Leaf) -> [Object; 4] {
    let folder = |group: &str, plural: &str| format!("{group}/namespaces/{}/{plural}", namespace(number));
    let body = json!({ "metadata": { "name": namespace(number) } });
    let namespace = Object { folder: "/api/v1/namespaces".to_owned(), body };
    let ports = json!([{ "name": "http", "port": 80 }]);
    let service = json!({ "metadata": { "name": "web" }, "spec": { "clusterIP": "None", "ports": ports } });
    let slice = json!({
        "metadata": { "name": "web", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv4",
        "ports": ports,
        "endpoints": [{ "addresses": [FIRST.ip] }],
    });
    let data = json!({ "tls.crt": BASE64.encode(leaf.chain_pem()), "tls.key": BASE64.encode(leaf.key_pem()) });
    let secret = json!({ "metadata": { "name": "tls" }, "type": "kubernetes.io/tls", "data": data });
    [
        namespace,
        Object { folder: folder("/api/v1", "services"), body: service },
        Object { folder: folder("/apis/discovery.k8s.io/v1", "endpointslices"), body: slice },
        Object { folder: folder("/api/v1", "secrets"), body: secret },
    ]
}

fn proxy(n: usize) -> Object {
    let spec = json!({
        "virtualhost": { "fqdn": format!("h{n:05}.example.com"), "tls": { "secretName": "tls" } },
        "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
    });
    let body = json!({ "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy",
        "metadata": { "name": format!("h{n:05}") }, "spec": spec });
    let namespace = namespace(n / PER_NAMESPACE);
    Object { folder: format!("/apis/projectcontour.io/v1/namespaces/{namespace}/httpproxies"), body }
}

/// Milliseconds since then.
fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

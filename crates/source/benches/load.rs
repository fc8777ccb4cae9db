//! How long it takes to take in many objects, and how much memory they hold.
//!
//! `cargo bench -p source --bench load [-- 10000]`: first as the API server sends them, then from a folder with one file
//! for each application (an Ingress, a Service, an EndpointSlice), and how soon one edit in it is heard. Time is taken
//! once over all objects and memory is what the process holds, so criterion, which repeats, has no part in it.

#![allow(clippy::unwrap_used, reason = "a measurement may stop where it stands")]

use kinds::{Kind, Object, kind};
use source::{Folder, feed, feed::CAPACITY, folder::Limits};
use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

fn main() {
    let applications = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10_000);
    decode(applications);
    let folder = tempfile::tempdir().unwrap();
    for number in 0..applications {
        let sub = folder.path().join(format!("{:02}", number % 100));
        fs::create_dir_all(&sub).unwrap();
        fs::write(sub.join(format!("{number}.yaml")), yaml(number)).unwrap();
    }
    read(folder.path(), applications);
    tokio::runtime::Runtime::new().unwrap().block_on(watch(folder.path(), applications));
}

fn decode(applications: usize) {
    let texts: Vec<_> = (0..applications).flat_map(json).collect();
    let size: usize = texts.iter().map(|(_, text)| text.len()).sum();
    let before = resident();
    let start = Instant::now();
    let objects: Vec<Object> =
        texts.iter().map(|(kind, text)| kinds::decode_json(*kind, text.as_bytes()).unwrap().object).collect();
    let held = resident().saturating_sub(before);
    report("decode JSON", start.elapsed(), objects.len(), held);
    println!("  {} bytes of JSON an object", size / objects.len());
    black_box(objects);
}

fn read(folder: &std::path::Path, applications: usize) {
    let before = resident();
    let start = Instant::now();
    let batch = Folder::read(folder, Limits::default()).unwrap();
    let held = resident().saturating_sub(before);
    assert_eq!((batch.changes.len(), batch.problems.len()), (3 * applications, 0));
    report("read folder", start.elapsed(), batch.changes.len(), held);
}

async fn watch(folder: &std::path::Path, applications: usize) {
    let (feeder, mut feed) = feed(CAPACITY);
    let before = resident();
    let start = Instant::now();
    let run = tokio::spawn(Folder::open(folder, Limits::default()).unwrap().run(feeder));
    let mut batches = Vec::new();
    while !batches.last().is_some_and(|batch: &source::Batch| batch.synced) {
        batches.push(feed.next().await.unwrap());
    }
    let held = resident().saturating_sub(before);
    report("watch folder", start.elapsed(), 3 * applications, held);
    let mut times: Vec<Duration> = Vec::new();
    for round in 0..50 {
        let text = yaml(7).replace("\"/\"", &format!("\"/{round}\""));
        let start = Instant::now();
        fs::write(folder.join("07/7.yaml"), text).unwrap();
        let batch = feed.next().await.unwrap();
        times.push(start.elapsed());
        assert_eq!(batch.changes.len(), 3);
    }
    times.sort();
    println!("one edit heard after {:?} (median of 50), {:?} at most", times[25], times[49]);
    run.abort();
}

fn report(what: &str, time: Duration, objects: usize, held: usize) {
    let each = time / u32::try_from(objects).unwrap();
    println!("{what}: {objects} objects in {time:.1?}, {each:.1?} and {} bytes each", held / objects);
}

/// The memory that the process holds.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// An application as the API server sends it.
fn json(number: usize) -> [(Kind, String); 3] {
    let meta = |labels: &str| {
        format!(
            r#"{{"name": "app-{number}", "namespace": "team-{}", "uid": "4b1f9a7e-0c5d-4c7e-9a3b-{number:012}",
            "resourceVersion": "{}", "generation": 1, "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {{{labels}}},
            "annotations": {{"kubectl.kubernetes.io/last-applied-configuration": "{{\"kind\":\"Ingress\",\"spec\":{{}}}}"}},
            "managedFields": [{{"manager": "kubectl", "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
              "fieldsV1": {{"f:metadata": {{"f:labels": {{".": {{}}, "f:app": {{}}}}}}, "f:spec": {{"f:rules": {{}}, "f:tls": {{}}}}}}}}]}}"#,
            number % 100,
            100_000 + number,
        )
    };
    let ingress = format!(
        r#"{{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {}, "spec": {{"ingressClassName": "sesame",
        "tls": [{{"hosts": ["app-{number}.example.com"], "secretName": "app-{number}"}}],
        "rules": [{{"host": "app-{number}.example.com", "http": {{"paths": [
          {{"path": "/", "pathType": "Prefix", "backend": {{"service": {{"name": "app-{number}", "port": {{"name": "http"}}}}}}}},
          {{"path": "/api", "pathType": "Prefix", "backend": {{"service": {{"name": "app-{number}", "port": {{"number": 80}}}}}}}}
        ]}}}}]}}, "status": {{"loadBalancer": {{"ingress": [{{"ip": "198.51.100.7"}}]}}}}}}"#,
        meta(r#""app": "web""#)
    );
    let service = format!(
        r#"{{"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {{"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "type": "ClusterIP", "selector": {{"app": "web"}}, "ports": [{{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}}]}},
        "status": {{"loadBalancer": {{}}}}}}"#,
        meta(r#""app": "web""#)
    );
    let endpoint = |n: usize| {
        format!(
            r#"{{"addresses": ["10.1.{}.{n}"], "conditions": {{"ready": true, "serving": true, "terminating": false}},
            "nodeName": "node-{n}", "zone": "zone-{n}", "targetRef": {{"kind": "Pod", "name": "app-{number}-{n}"}}}}"#,
            number % 250
        )
    };
    let labels = format!(
        r#""kubernetes.io/service-name": "app-{number}", "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io""#
    );
    let slice = format!(
        r#"{{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {}, "addressType": "IPv4",
        "endpoints": [{}, {}], "ports": [{{"name": "http", "port": 8080, "protocol": "TCP"}}]}}"#,
        meta(&labels),
        endpoint(1),
        endpoint(2)
    );
    [(kind::INGRESS, ingress), (kind::SERVICE, service), (kind::ENDPOINT_SLICE, slice)]
}

/// An application as people write it.
fn yaml(number: usize) -> String {
    format!(
        r#"apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: app-{number}
  namespace: team-{team}
spec:
  tls:
  - hosts: [app-{number}.example.com]
    secretName: app-{number}
  rules:
  - host: app-{number}.example.com
    http:
      paths:
      - path: "/"
        pathType: Prefix
        backend: {{service: {{name: app-{number}, port: {{name: http}}}}}}
      - path: /api
        pathType: Prefix
        backend: {{service: {{name: app-{number}, port: {{number: 80}}}}}}
---
apiVersion: v1
kind: Service
metadata:
  name: app-{number}
  namespace: team-{team}
spec:
  ports:
  - name: http
    port: 80
    targetPort: 8080
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: app-{number}
  namespace: team-{team}
  labels:
    kubernetes.io/service-name: app-{number}
addressType: IPv4
endpoints:
- addresses: [10.1.0.1]
  conditions: {{ready: true}}
- addresses: [10.1.0.2]
  conditions: {{ready: true}}
ports:
- name: http
  port: 8080
"#,
        team = number % 100
    )
}

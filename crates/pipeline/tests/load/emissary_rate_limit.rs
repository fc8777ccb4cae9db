//! Labels of Mappings, counted by a real rate limit service.

use crate::bed::{Bed, service, slice_of};
use echo::grpc::{Reply, Request};
use kinds::Object;
use serde_json::{Value, json};
use std::net::IpAddr;
use testbed::{RateLimitService, cases::object, client::GrpcAnswer};

const RESOURCE_EXHAUSTED: u32 = 8;

const LIMITS: &str = "
domain: shop
descriptors:
- {key: generic_key, value: calls, rate_limit: {unit: hour, requests_per_unit: 1}}
- {key: generic_key, value: shared, rate_limit: {unit: hour, requests_per_unit: 3}}
- key: user
  rate_limit: {unit: hour, requests_per_unit: 2}
- key: plan
  value: free
  rate_limit: {unit: hour, requests_per_unit: 1}
  descriptors:
  - {key: tag, rate_limit: {unit: hour, requests_per_unit: 2}}
- {key: remote_address, rate_limit: {unit: hour, requests_per_unit: 1}}
";

fn of(kind: &str, name: &str, spec: &Value) -> Object {
    object(&json!({ "apiVersion": "getambassador.io/v3alpha1", "kind": kind,
        "metadata": { "name": name, "namespace": "team-a" }, "spec": spec }))
}

fn limited(name: &str, parts: &Value) -> Object {
    let labels = json!({ "shop": [{ "group": parts }] });
    let spec = json!({ "hostname": "*", "prefix": format!("/{name}/"), "service": "web", "labels": labels });
    of("Mapping", name, &spec)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn labels_of_mappings_are_counted() {
    let counter = RateLimitService::start(LIMITS).await.unwrap();
    let IpAddr::V4(address) = counter.address().ip() else { unreachable!("test addresses are IPv4") };
    let mut bed = Bed::with("emissary-rate-limit", |settings| settings.emissary.address = settings.http.address).await;
    let mut objects = bed.service("team-a", "web").await;
    let binding = json!({ "namespace": { "from": "ALL" } });
    let tag = json!({ "request_headers": { "key": "tag", "header_name": "x-tag", "omit_if_not_present": true } });
    objects.extend([
        service("limits", "counter"),
        slice_of("limits", "counter", &[address], counter.address().port()),
        of(
            "Listener",
            "http",
            &json!({ "port": 8080, "protocol": "HTTP", "securityModel": "XFP", "hostBinding": binding }),
        ),
        of("Host", "any", &json!({ "hostname": "*", "requestPolicy": { "insecure": { "action": "Route" } } })),
        of(
            "RateLimitService",
            "limits",
            &json!({ "service": "counter.limits", "domain": "shop", "timeout_ms": 5000, "failure_mode_deny": true,
                "grpc": { "use_resource_exhausted_code": true } }),
        ),
        limited("shared", &json!([{ "generic_key": { "value": "shared" } }])),
        limited("user", &json!([{ "request_headers": { "key": "user", "header_name": "x-user" } }])),
        limited("tag", &json!([{ "generic_key": { "key": "plan", "value": "free" } }, tag.clone()])),
        limited("tag-alone", &json!([tag])),
        of(
            "Mapping",
            "calls",
            &json!({ "hostname": "*", "prefix": "/shop.Cart/", "rewrite": "", "service": "web", "grpc": true,
                "labels": { "shop": [{ "group": [{ "generic_key": { "value": "calls" } }] }] } }),
        ),
        limited("address", &json!([{ "remote_address": { "key": "remote_address" } }])),
    ]);
    bed.apply(objects).await;
    let ask = async |path: &str, header: Option<(&str, &str)>| {
        let mut client = bed.http.clone().host("a.example.com");
        if let Some((name, value)) = header {
            client = client.header(name, value);
        }
        client.get(path).await.unwrap().status.as_u16()
    };
    for expected in [200, 200, 200, 429] {
        assert_eq!(ask("/shared/", None).await, expected);
    }
    for (user, expected) in [("a", 200), ("b", 200), ("a", 200), ("a", 429), ("b", 200)] {
        assert_eq!(ask("/user/", Some(("x-user", user))).await, expected, "{user}");
    }
    // A request without the header is not asked about; where the part may be omitted, it is asked about without it.
    assert_eq!(ask("/user/", None).await, 200);
    for (tag, expected) in [(Some("x"), 200), (None, 200), (None, 429), (Some("x"), 200), (Some("x"), 429)] {
        assert_eq!(ask("/tag/", tag.map(|tag| ("x-tag", tag))).await, expected, "{tag:?}");
    }
    // Nothing is left to ask about.
    assert_eq!(ask("/tag-alone/", None).await, 200);
    assert_eq!((ask("/address/", None).await, ask("/address/", None).await), (200, 429));
    for expected in [0, RESOURCE_EXHAUSTED] {
        let client = bed.http.clone().host("a.example.com");
        let call: GrpcAnswer<Reply> = client.grpc("/shop.Cart/Add", &Request::default()).await.unwrap();
        assert_eq!(call.status, Some(expected));
    }
}

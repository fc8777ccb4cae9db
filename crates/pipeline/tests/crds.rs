//! The CRDs that we ship, in a real API server: it takes them, and with them takes and refuses what it should.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use testbed::ApiServer;

/// An HTTPProxy with this `spec`, in the flow style of YAML.
fn proxy(group: &str, namespace: &str, name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: {group}/v1, kind: HTTPProxy, metadata: {{name: {name}, namespace: {namespace}}}, spec: {spec}}}"
    )
}

const TAKEN: [&str; 5] = [
    "{virtualhost: {fqdn: a.example.com}, routes: [{services: [{name: web, port: 80}]}]}",
    "{virtualhost: {fqdn: '*.example.com', tls: {secretName: other/cert, minimumProtocolVersion: '1.3'}}, includes: [{name: child}]}",
    "{routes: [{conditions: [{prefix: /a}, {header: {name: x, notexact: b}}], requestRedirectPolicy: {hostname: b.example.com}}]}",
    "{routes: [{services: [{name: web, port: 80, protocol: tls, validation: {caSecret: ca, subjectName: a, subjectNames: [a, b]}}], \
      timeoutPolicy: {response: infinity}, retryPolicy: {count: -1}}]}",
    "{virtualhost: {fqdn: a.example.com, jwtProviders: [{name: a, localJWKS: {secretName: keys, key: k}}]}}",
];

const REFUSED: [&str; 9] = [
    "{virtualhost: {fqdn: A.example.com}}",
    "{virtualhost: {}}",
    "{routes: [{services: [{name: web, port: 65536}]}]}",
    "{routes: [{services: [{name: web, port: 80, validation: {caSecret: ca, subjectName: a, subjectNames: [b]}}]}]}",
    "{routes: [{directResponsePolicy: {statusCode: 199}}]}",
    "{routes: [{timeoutPolicy: {response: soon}}]}",
    "{routes: [{retryPolicy: {retryOn: [sometimes]}}]}",
    "{routes: [{ipAllowPolicy: [{source: Anybody, cidr: 10.0.0.0/8}]}]}",
    "{virtualhost: {fqdn: a.example.com, jwtProviders: [{name: a}]}}",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_takes_them_and_checks_by_them() {
    let api = ApiServer::start().await.unwrap();
    api.install([Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")]).await.unwrap();
    let namespace = api.namespace("crds").await.unwrap();
    for group in ["projectcontour.io", "projectsesame.io"] {
        for (index, spec) in TAKEN.iter().enumerate() {
            let object = proxy(group, &namespace, &format!("taken-{index}"), spec);
            api.apply(&object).await.unwrap_or_else(|error| panic!("{spec}: {error:?}"));
        }
        for (index, spec) in REFUSED.iter().enumerate() {
            let object = proxy(group, &namespace, &format!("refused-{index}"), spec);
            assert!(api.apply(&object).await.is_err(), "{group}: {spec} was taken");
        }
        let delegation = |entry: &str| {
            format!(
                "{{apiVersion: {group}/v1, kind: TLSCertificateDelegation, metadata: {{name: d, namespace: {namespace}}}, \
                 spec: {{delegations: [{entry}]}}}}"
            )
        };
        let configuration = |spec: &str| {
            format!(
                "{{apiVersion: {group}/v1alpha1, kind: ContourConfiguration, metadata: {{name: c, namespace: {namespace}}}, \
                 spec: {spec}}}"
            )
        };
        for spec in [
            "{}",
            "{metrics: {tls: {certFile: a, keyFile: b}}, envoy: {runtimeSettings: {a.b: '1'}, timeouts: {requestTimeout: 5s}}}",
            "{tracing: {extensionService: {namespace: a, name: b}, customTags: [{tagName: a, literal: b}]}}",
        ] {
            api.apply(&configuration(spec)).await.unwrap_or_else(|error| panic!("{spec}: {error:?}"));
        }
        for spec in [
            "{metrics: {tls: {certFile: a}}}",
            "{envoy: {metrics: {tls: {keyFile: a}}}}",
            "{envoy: {listener: {compression: {algorithm: lzw}}}}",
            "{envoy: {listener: {socketOptions: {tos: 256}}}}",
            "{gateway: {gatewayRef: {name: a}}}",
            "{tracing: {extensionService: {namespace: a, name: b}, customTags: [{tagName: a}]}}",
        ] {
            assert!(api.apply(&configuration(spec)).await.is_err(), "{group}: {spec} was taken");
        }
        api.apply(&delegation("{secretName: cert, targetNamespaces: ['*']}")).await.unwrap();
        assert!(api.apply(&delegation("{secretName: cert}")).await.is_err());
    }
}

/// Objects of Emissary that its API server takes, in every version: kind, version, `spec`.
const EMISSARY_TAKEN: [(&str, &str, &str); 12] = [
    (
        "Mapping",
        "v3alpha1",
        "{prefix: /, service: a, hostname: '*', timeout_ms: 0, labels: {d: [{g: [{generic_key: {value: a}}]}]}}",
    ),
    (
        "Mapping",
        "v2",
        "{prefix: /, service: a, tls: true, headers: {x: true}, labels: {d: [{g: [remote_address]}]}, ambassador_id: a}",
    ),
    ("Mapping", "v1", "{prefix: /, service: a, cors: {origins: 'https://a,https://b'}, add_request_headers: {x: y}}"),
    (
        "Host",
        "v2",
        "{hostname: a.example.com, selector: {matchLabels: {a: b}}, ambassadorId: a, tls: {v3CRLSecret: crl}}",
    ),
    (
        "Host",
        "v3alpha1",
        "{hostname: a.example.com, tlsSecret: {name: cert}, requestPolicy: {insecure: {action: Route}}}",
    ),
    (
        "Listener",
        "v3alpha1",
        "{port: 8443, protocol: HTTPS, securityModel: XFP, hostBinding: {namespace: {from: ALL}}}",
    ),
    ("Module", "v2", "{config: {server_name: a, gzip: {min_content_length: 1}}}"),
    ("AuthService", "v2", "{auth_service: a, tls: context, v3CircuitBreakers: [{max_requests: 1}]}"),
    ("RateLimitService", "v1", "{service: a, v3GRPC: {use_resource_exhausted_code: true}}"),
    (
        "LogService",
        "v3alpha1",
        "{service: a, driver: http, driver_config: {additional_log_headers: [{header_name: x}]}}",
    ),
    ("TracingService", "v2", "{service: a, driver: zipkin, tag_headers: [x], config: {v3PropagationModes: [B3]}}"),
    ("TLSContext", "v3alpha1", "{hosts: [a], secret: cert, min_tls_version: v1.2}"),
];

/// And those that it refuses.
const EMISSARY_REFUSED: [(&str, &str, &str); 7] = [
    ("Mapping", "v3alpha1", "{prefix: /}"),
    ("Mapping", "v3alpha1", "{prefix: /, service: a, tls: true}"),
    ("Mapping", "v2", "{prefix: /, service: a, redirect_response_code: 200}"),
    ("Mapping", "v3alpha1", "{prefix: /, service: a, retry_policy: {retry_on: sometimes}}"),
    ("Host", "v3alpha1", "{requestPolicy: {insecure: {action: Perhaps}}}"),
    ("Listener", "v3alpha1", "{port: 0, securityModel: XFP, hostBinding: {}}"),
    ("TLSContext", "v1", "{min_tls_version: v0.9}"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn emissarys_kinds_are_taken_in_every_version() {
    let api = ApiServer::start().await.unwrap();
    api.install([Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")]).await.unwrap();
    let namespace = api.namespace("emissary").await.unwrap();
    let object = |(kind, version, spec): &(&str, &str, &str), name: &str| {
        format!(
            "{{apiVersion: getambassador.io/{version}, kind: {kind}, metadata: {{name: {name}, namespace: {namespace}}}, \
             spec: {spec}}}"
        )
    };
    for (index, of) in EMISSARY_TAKEN.iter().enumerate() {
        let taken = api.apply(&object(of, &format!("taken-{index}"))).await;
        taken.unwrap_or_else(|error| panic!("{of:?}: {error:?}"));
    }
    for (index, of) in EMISSARY_REFUSED.iter().enumerate() {
        assert!(api.apply(&object(of, &format!("refused-{index}"))).await.is_err(), "{of:?} was taken");
    }
}

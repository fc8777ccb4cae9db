//! Tokens whose keys a server has: fetched over TLS, told in the status while they cannot be, kept through a restart, and rotated.

use serde_json::json;
use testbed::certs::Ca;
use testbed::tokens::{TokenSigner, claims, key_set};
use testbed::{Backend, Client, KeyAnswer, KeyServer, Load, eventually};

use crate::bed::{Bed, TIMEOUT, service};

/// The status of the object has a text.
async fn reported(bed: &Bed, namespace: &str, text: &str) {
    let look = async || {
        let status = bed.proxy_status(namespace, "api").await.to_string();
        if status.contains(text) { Ok(()) } else { Err(status) }
    };
    eventually(format!("the status to have {text}"), TIMEOUT, look).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_told_about_kept_through_a_restart_and_rotated() {
    let (bed, ca) = (Bed::start().await, Ca::new("jwt"));
    let backend = Backend::start("web").await.unwrap();
    let namespace = bed.api.namespace("jwt").await.unwrap();
    let keys = KeyServer::start(Some(ca.leaf("keys.example.com").make().server_config())).await.unwrap();
    keys.set(KeyAnswer::Hang);
    let secret = |name: &str, data: serde_json::Value| {
        let meta = json!({ "name": name, "namespace": namespace });
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data }).to_string()
    };
    let leaf = ca.leaf("api.example.com").make();
    let pair = json!({ "tls.crt": leaf.chain_pem(), "tls.key": leaf.key_pem() });
    let remote = json!({
        "uri": format!("https://{}/jwks", keys.address()), "timeout": "500ms", "cacheDuration": "10s",
        "validation": { "caSecret": "ca", "subjectName": "keys.example.com" },
    });
    let provider =
        json!({ "name": "main", "default": true, "issuer": "us", "audiences": ["shop"], "remoteJWKS": remote });
    let proxy = json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "api", "namespace": namespace },
        "spec": {
            "virtualhost": { "fqdn": "api.example.com", "tls": { "secretName": "cert" }, "jwtProviders": [provider] },
            "routes": [{ "services": [{ "name": "web", "port": 80 }] }],
        },
    });
    let objects = [secret("cert", pair), secret("ca", json!({ "ca.crt": ca.pem() })), proxy.to_string()];
    bed.api.apply(&service(&namespace, "web", &backend)).await.unwrap();
    for object in objects {
        bed.api.apply(&object).await.unwrap();
    }
    // A server that hangs puts off neither the first build nor anything else.
    let first = bed.replica("sesame-0").await.ready().await;
    let envoy = bed.envoy(first.xds()).await;
    envoy.ready().await.unwrap();
    let [signer, next] = ["one", "two"].map(TokenSigner::new);
    let signed = |signer: &TokenSigner, audience: &str| format!("Bearer {}", signer.token(&claims("us", audience)));
    let token = |audience: &str| signed(&signer, audience);
    let client = Client::new(bed.https()).host("api.example.com").https().sni("api.example.com").trust(&ca);
    let status = async |token: &str| client.get("/").header("authorization", token).await.unwrap().status.as_u16();
    reported(&bed, &namespace, "RemoteJWKSNotFetched").await;
    assert_eq!(status(&token("shop")).await, 401, "no token is good without keys");

    keys.set(KeyAnswer::Document(key_set([&signer])));
    let accepted = async || match status(&token("shop")).await {
        200 => Ok(()),
        other => Err(other),
    };
    eventually("the keys to be there", TIMEOUT, accepted).await.unwrap();
    reported(&bed, &namespace, "Valid HTTPProxy").await;
    assert_eq!(status(&token("other")).await, 403);
    assert_eq!(client.get("/").await.unwrap().status, 401);

    // The new process asks first, and sends nothing that Envoy has.
    first.in_step(1).await;
    let load_with = |token: &str| Load::of(client.get("/").header("authorization", token)).per_second(200).start();
    let load = load_with(&token("shop"));
    load.answered(50).await;
    first.process.kill().await.unwrap();
    let second = bed.replica_at("sesame-0", first.address, &[]).await.ready().await;
    second.in_step(1).await;
    load.answered(100).await;
    assert_eq!(second.sent().await, 0.0, "what Envoy had was sent again");

    // Both keys, then the next one alone, while clients that have its tokens take the place of the others.
    let rotated = signed(&next, "shop");
    assert_eq!(status(&rotated).await, 401, "its key is not known yet");
    let becomes = async |what: &str, token: &str, expected: u16| {
        let look = async || match status(token).await {
            found if found == expected => Ok(()),
            other => Err(other),
        };
        eventually(what.to_owned(), TIMEOUT, look).await.unwrap();
    };
    keys.set(KeyAnswer::Document(key_set([&signer, &next])));
    becomes("the next key to be known beside the other", &rotated, 200).await;
    let load_of_next = load_with(&rotated);
    load_of_next.answered(100).await;
    load.stop().await.assert_nothing_lost();
    keys.set(KeyAnswer::Document(key_set([&next])));
    becomes("the first key to be known no more", &token("shop"), 401).await;
    load_of_next.answered(100).await;
    load_of_next.stop().await.assert_nothing_lost();
    assert_eq!(client.get("/").await.unwrap().status, 401);
    reported(&bed, &namespace, "Valid HTTPProxy").await;
}

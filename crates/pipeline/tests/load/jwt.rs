//! Tokens: keys that rotate, providers that come, go and are renamed. Whoever has a good token notices nothing, and whoever has none
//! is never let through.

use kinds::Object;
use model::jwt::JwksState;

use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use testbed::{
    cases::object,
    certs::Ca,
    tokens::{TokenSigner, claims, key_set},
};

use crate::bed::{Bed, secret, undisturbed};

const ROUNDS: usize = 12;

fn proxy(name: &str, providers: &Value) -> Object {
    let host =
        json!({ "fqdn": format!("{name}.example.com"), "tls": { "secretName": "cert" }, "jwtProviders": providers });
    object(&json!({
        "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": name, "namespace": "a" },
        "spec": { "virtualhost": host, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] },
    }))
}

fn local(name: &str) -> Value {
    json!([{ "name": name, "default": true, "localJWKS": { "secretName": "keys", "key": "keys" } }])
}

fn keys(signers: &[&TokenSigner]) -> Object {
    let keys = key_set(signers.iter().copied());
    object(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": "a" }, "stringData": { "keys": keys },
    }))
}

async fn bed(name: &str) -> (Bed, Ca) {
    let mut bed = Bed::start(name).await;
    let ca = Ca::new(name);
    let mut objects = bed.service("a", "web").await;
    objects.push(secret("a", "cert", &ca.leaf("*.example.com").make()));
    bed.apply(objects).await;
    (bed, ca)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_rotate_and_providers_come_and_go_beside_others() {
    let (mut bed, ca) = bed("jwt-rotation").await;
    let mut signer = TokenSigner::new("0");
    let token = |signer: &TokenSigner| format!("Bearer {}", signer.token(&claims("a", "b")));
    let shown = Arc::new(Mutex::new(token(&signer)));
    bed.apply([keys(&[&signer]), proxy("local", &local("a")), proxy("open", &json!([]))]).await;
    let remote = json!([{ "name": "a", "default": true, "remoteJWKS": { "uri": "https://keys.example.com/" } }]);
    bed.apply([proxy("remote", &remote)]).await;
    let (source, _) = bed.pipeline().jwks_refs().remove(0);
    let known = |signers: &[&TokenSigner]| {
        let keys = resolve::jwks::parse(key_set(signers.iter().copied()).as_bytes()).unwrap();
        Some(JwksState { keys: Some(keys), failure: None })
    };
    bed.pipeline().set_jwks(&source, known(&[&signer]));
    bed.publish().await;

    let client = bed.https.clone().trust(&ca);
    let with_token = |host: &str| {
        let shown = shown.clone();
        let load = bed.load(&client.clone().sni(host), host, "/", 5);
        load.vary(move |_, request| request.header("authorization", &shown.lock().unwrap())).start()
    };
    let without = |host: &str| {
        let load = bed.load(&client.clone().sni(host), host, "/", 5).expect(|answer| match answer.status.as_u16() {
            401 => Ok(()),
            other => Err(other.to_string()),
        });
        load.start()
    };
    let loads = [
        with_token("local.example.com"),
        with_token("remote.example.com"),
        with_token("open.example.com"),
        without("local.example.com"),
        without("remote.example.com"),
    ];
    for load in &loads {
        load.answered(20).await;
    }
    for round in 1..=ROUNDS {
        // Both keys are known before the new one is used, and the old one goes after that.
        let next = TokenSigner::new(&round.to_string());
        bed.pipeline().set_jwks(&source, known(&[&signer, &next]));
        bed.apply([keys(&[&signer, &next])]).await;
        *shown.lock().unwrap() = token(&next);
        for load in &loads {
            load.answered(5).await;
        }
        bed.pipeline().set_jwks(&source, known(&[&next]));
        // A neighbour has a provider now, of another name and so of another slot each time, or none again.
        let providers = if round % 3 == 0 { json!([]) } else { local(&format!("provider-{round}")) };
        bed.apply([keys(&[&next]), proxy("neighbour", &providers)]).await;
        let neighbour = client.clone().host("neighbour.example.com").get("/").await.unwrap();
        assert_eq!(neighbour.status, if round % 3 == 0 { 200 } else { 401 });
        for load in &loads {
            load.answered(5).await;
        }
        signer = next;
    }
    undisturbed(loads).await;
}

/// The name of a provider decides its slot: of two slots one is emptied and the other filled, and no order may leave a gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_renamed_opens_nothing() {
    let (mut bed, ca) = bed("jwt-rename").await;
    bed.apply([keys(&[&TokenSigner::new("0")]), proxy("api", &local("a"))]).await;
    let client = bed.https.clone().trust(&ca).sni("api.example.com");
    let load = bed.load(&client, "api.example.com", "/", 1).expect(|answer| match answer.status.as_u16() {
        401 | 403 => Ok(()),
        other => Err(format!("{other} without a token")),
    });
    let load = load.start();
    load.answered(20).await;
    for round in 0..3 * ROUNDS {
        bed.apply([proxy("api", &local(&format!("provider-{round}")))]).await;
        load.answered(3).await;
    }
    undisturbed([load]).await;
}

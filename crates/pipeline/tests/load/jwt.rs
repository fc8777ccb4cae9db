//! Tokens: keys that rotate, providers that come, go and are renamed. Whoever has a good token notices nothing, and whoever has none
//! is never let through.

use kinds::Object;
use model::jwt::JwksState;

use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use testbed::{
    cases::object,
    certs::Ca,
    eventually,
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

/// Client validation gives a host another filter chain, with slots of its own. Connections of the old one are told so (421).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_moves_to_another_filter_chain_opens_nothing() {
    let (mut bed, ca) = bed("jwt-moved").await;
    let signer = TokenSigner::new("0");
    let token = format!("Bearer {}", signer.token(&claims("a", "b")));
    let authority = object(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "ca", "namespace": "a" }, "stringData": { "ca.crt": ca.pem() },
    }));
    let on_chain = |validates: bool| {
        let mut tls = json!({ "secretName": "cert" });
        if validates {
            tls["clientValidation"] = json!({ "caSecret": "ca", "optionalClientCertificate": true });
        }
        let host = json!({ "fqdn": "api.example.com", "tls": tls, "jwtProviders": local("a") });
        object(&json!({
            "apiVersion": "projectcontour.io/v1", "kind": "HTTPProxy", "metadata": { "name": "api", "namespace": "a" },
            "spec": { "virtualhost": host, "routes": [{ "services": [{ "name": "web", "port": 80 }] }] },
        }))
    };
    // The neighbour stays, so both chains and their slots do.
    bed.apply([keys(&[&signer]), authority, proxy("neighbour", &local("a")), on_chain(false)]).await;
    let client = bed.https.clone().trust(&ca).sni("api.example.com").host("api.example.com");
    let load = bed.load(&client, "api.example.com", "/", 2).expect(|answer| match answer.status.as_u16() {
        401 | 403 | 421 => Ok(()),
        other => Err(format!("{other} without a token")),
    });
    let load = load.start();
    load.answered(20).await;
    for round in 1..=ROUNDS {
        bed.apply([on_chain(round % 2 == 1)]).await;
        load.answered(5).await;
        // A listener may still wait for the slots of a chain that is new to it.
        let moved = async || match client.get("/").await.unwrap().status.as_u16() {
            401 => Ok(()),
            421 => Err("the connection took the old chain"),
            other => panic!("{other} without a token in round {round}"),
        };
        eventually("the other chain", Duration::from_secs(20), moved).await.unwrap();
        let allowed = client.clone().header("authorization", &token).get("/").await.unwrap();
        assert_eq!(allowed.status, 200, "round {round}");
    }
    load.stop().await.assert_nothing_lost();
}

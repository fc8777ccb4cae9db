//! Tokens that are wrong in one way are refused, however a request is written and however virtual hosts are packed; and whoever is
//! refused learns nothing about the providers of others.

use super::protection::{Expect, TableView, keys, proxy, try_all};
use super::requests::TURN;
use super::world::{World, http_port, secret, service};
use envoy::listener::jwt::{self, JwtSlots};
use envoy_api::Message;
use kinds::{Object, kind};
use model::{
    ObjectRef,
    jwt::{JwtProvider, JwtProviderId},
};
use pipeline::settings::Packing;
use serde_json::json;
use std::sync::Arc;
use testbed::tokens::{TokenSigner, claims, unsigned};
use testbed::{Backend, certs::Ca};
use xds::{Changes, Kind, Resource};

const ISSUER: &str = "https://issuer.example.com";

/// Tokens, and what comes back for them.
fn tokens(signer: &TokenSigner) -> Vec<(&'static str, String, Expect)> {
    let good = claims(ISSUER, "shop");
    let mut expired = good.clone();
    expired["exp"] = 1_000_000_000.into();
    let mut early = good.clone();
    early["nbf"] = 4_000_000_000_u64.into();
    vec![
        ("good", signer.token(&good), Expect::Open),
        ("alg none", unsigned(&good), Expect::Closed(401)),
        ("audience", signer.token(&claims(ISSUER, "elsewhere")), Expect::Closed(403)),
        ("issuer", signer.token(&claims("https://other.example.com", "shop")), Expect::Closed(401)),
        // A key of somebody else's that has the same name.
        ("key", TokenSigner::new("a").token(&good), Expect::Closed(401)),
        ("expired", signer.token(&expired), Expect::Closed(401)),
        ("not yet valid", signer.token(&early), Expect::Closed(401)),
    ]
}

/// An exact and a wildcard host that require a token, over HTTP as well.
fn objects(backend: &Backend, signer: &TokenSigner) -> [Object; 5] {
    let provider = json!({"name": "a", "default": true, "issuer": ISSUER, "audiences": ["shop"],
        "localJWKS": {"secretName": "keys", "key": "keys"}});
    let host = json!({"tls": {"secretName": "cert"}, "jwtProviders": [provider]});
    let route = json!({"permitInsecure": true});
    [
        service("web", backend.ip()),
        secret(&Ca::new("tokens"), "cert", "cert.example.com"),
        keys(signer),
        proxy("exact", "exact.example.com", host.clone(), route.clone()),
        proxy("wild", "*.wild.org", host, route),
    ]
}

async fn bad_tokens_are_refused(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, signer) = (Backend::start("web").await.unwrap(), TokenSigner::new("a"));
    let _world = World::start(packing, objects(&backend, &signer)).await;
    for (what, token, expect) in tokens(&signer) {
        let bearer = format!("Bearer {token}");
        for host in ["exact.example.com", "x.wild.org"] {
            println!("{packing:?}: {what} on {host}");
            let header = ("authorization", bearer.as_str());
            try_all(TableView::Clear, host, header, expect, packing).await;
            try_all(TableView::Tls(host), host, header, expect, packing).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_tokens_are_refused_in_tables() {
    bad_tokens_are_refused(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_tokens_are_refused_in_scopes() {
    bad_tokens_are_refused(Packing::Scoped).await;
}

/// Everything that comes back for a token on a plaintext connection, and its status.
async fn answer(host: &str, token: &str) -> (u16, String) {
    let client = TableView::Clear.client().host(host).header("authorization", &format!("Bearer {token}"));
    let answer = client.get("/").await.unwrap();
    (answer.status.as_u16(), format!("{:?}\n{}", answer.headers, answer.text()))
}

fn provider_of(object: &str) -> Arc<JwtProviderId> {
    let object = ObjectRef::new(kind::CONTOUR_HTTP_PROXY, "default", object);
    Arc::new(JwtProviderId { object, name: "a".into() })
}

async fn failures_name_no_provider(packing: Packing) {
    let _turn = TURN.lock().await;
    let (backend, signer) = (Backend::start("web").await.unwrap(), TokenSigner::new("a"));
    let mut world = World::start(packing, objects(&backend, &signer)).await;
    let (own, other) = (provider_of("exact"), provider_of("somebody"));
    let [own_name, other_name] = [&own, &other].map(|id| envoy::name::jwt_requirement(id));
    for (what, token, expect) in tokens(&signer) {
        let Expect::Closed(status) = expect else { continue };
        for host in ["exact.example.com", "x.wild.org"] {
            let (found, told) = answer(host, &token).await;
            assert_eq!(found, status, "{packing:?} {what}: {told}");
            assert!(![&own_name, ISSUER, "shop"].iter().any(|word| told.contains(word)), "{packing:?} {what}: {told}");
        }
    }
    // The slot has lost the provider, and has that of somebody else, or none.
    let slot = JwtSlots::of_port(&http_port()).of_mark(jwt::mark_of(&own));
    let origin = other.object.at("");
    let somebody = JwtProvider {
        id: other,
        issuer: None,
        audiences: Vec::new(),
        forward: false,
        keys: None,
        remote: None,
        origin,
    };
    let token = signer.token(&claims(ISSUER, "shop"));
    for providers in [vec![&somebody], Vec::new()] {
        let body = jwt::filled(&slot, providers.clone()).encode_to_vec();
        let upserts = vec![Resource::new(Kind::Extension, slot.clone(), body)];
        world.proxy.publish(Changes { upserts, removes: Vec::new() }).await.unwrap();
        let (status, told) = answer("exact.example.com", &token).await;
        assert_eq!(status, 403, "{packing:?} with {}: {told}", providers.len());
        assert!(!told.contains(&other_name), "{packing:?}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_name_no_provider_in_tables() {
    failures_name_no_provider(Packing::Plain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_name_no_provider_in_scopes() {
    failures_name_no_provider(Packing::Scoped).await;
}

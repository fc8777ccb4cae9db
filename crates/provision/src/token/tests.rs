//! An API server that never answers about some tokens: a real one does so only when it is overloaded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use futures::poll;
use http::{Request, Response};
use kube::client::Body;
use serde_json::json;

use super::*;

const UID: &str = "9f3c5b0e-0000-4000-8000-000000000001";

/// A token of the proxies of a Gateway; `number` tells it from others.
fn token(fleet: &FleetName, number: usize) -> String {
    let subject = format!("system:serviceaccount:{}:{}", fleet.namespace, name::of(fleet, UID));
    let claims = json!({ "sub": subject, "exp": 4_000_000_000_u64 }).to_string();
    format!("e30.{}.{number}", URL_SAFE_NO_PAD.encode(claims))
}

/// An API server that verifies tokens, except those of one namespace, which it counts and keeps.
fn api_server(never: &'static str, kept: Arc<AtomicUsize>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let kept = kept.clone();
        async move {
            let body = request.into_body().collect_bytes().await?;
            let mut review: TokenReview = serde_json::from_slice(&body).unwrap();
            let (namespace, name) = Claims::read(review.spec.token.as_deref().unwrap()).unwrap().account;
            if namespace == never {
                kept.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }
            let user = json!({ "username": format!("system:serviceaccount:{namespace}:{name}") });
            let status = json!({ "authenticated": true, "audiences": [AUDIENCE], "user": user });
            review.status = Some(serde_json::from_value(status).unwrap());
            Ok::<_, kube::Error>(Response::new(Body::from(serde_json::to_vec(&review).unwrap())))
        }
    });
    kube::Client::new(service, "default")
}

/// Tokens can be forged in the name of any ServiceAccount, and each costs a review.
#[tokio::test]
async fn tokens_of_one_namespace_leave_reviews_for_others() {
    let kept = Arc::new(AtomicUsize::new(0));
    let tokens = Tokens::new(api_server("busy", kept.clone()));
    let (busy, other) = (FleetName::new("busy", "edge"), FleetName::new("other", "edge"));
    [&busy, &other].into_iter().for_each(|fleet| _ = tokens.set(fleet, Some(UID)));
    let forged: Vec<String> = (0..100).map(|number| token(&busy, number)).collect();
    let mut reviews = Box::pin(join_all(forged.iter().map(|token| tokens.authenticate(token))));
    assert!(poll!(&mut reviews).is_pending());
    let verified = tokens.authenticate(&token(&other, 0)).await.unwrap();
    assert_eq!(verified.fleet, Fleet::named("other", "edge"));
    assert!(poll!(&mut reviews).is_pending());
    assert_eq!(kept.load(Ordering::Relaxed), REVIEWS_PER_NAMESPACE);
    drop(reviews);
    tokens.reviews.of("other");
    assert_eq!(tokens.reviews.by_namespace.lock().len(), 1, "nothing is kept for namespaces without reviews");
}

#[tokio::test]
async fn a_fleet_has_one_account_at_a_time() {
    let tokens = Tokens::new(api_server("", Arc::default()));
    let edge = FleetName::new("shop", "edge");
    assert!(!tokens.set(&edge, None) && !tokens.set(&edge, Some("1")) && !tokens.set(&edge, Some("1")));
    let first = ("shop".to_owned(), name::of(&edge, "1"));
    let second = ("shop".to_owned(), name::of(&edge, "2"));
    tokens.fleet(&first).unwrap();
    assert!(tokens.set(&edge, Some("2")), "another Gateway of that name");
    tokens.fleet(&first).unwrap_err();
    tokens.fleet(&second).unwrap();
    assert!(tokens.set(&edge, None));
    tokens.fleet(&second).unwrap_err();
    let fleets = tokens.fleets.read();
    assert!(fleets.accounts.is_empty() && fleets.by_account.is_empty());
}

//! An API server that counts reviews, and never answers about some tokens: a real one does so only when it is overloaded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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

/// How many reviews were requested, by the namespace that the token names.
#[derive(Clone, Default)]
struct Requested(Arc<Mutex<HashMap<String, usize>>>);

impl Requested {
    fn of(&self, namespace: &str) -> usize {
        self.0.lock().get(namespace).copied().unwrap_or_default()
    }
}

/// An API server that verifies tokens, and never answers about those of one namespace.
fn api_server(never: &'static str, requested: &Requested) -> kube::Client {
    let requested = requested.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let requested = requested.clone();
        async move {
            let body = request.into_body().collect_bytes().await?;
            let mut review: TokenReview = serde_json::from_slice(&body).unwrap();
            let (namespace, name) = Claims::read(review.spec.token.as_deref().unwrap()).unwrap().account;
            *requested.0.lock().entry(namespace.clone()).or_default() += 1;
            if namespace == never {
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
    let requested = Requested::default();
    let tokens = Tokens::new(api_server("busy", &requested));
    let (busy, other) = (FleetName::new("busy", "edge"), FleetName::new("other", "edge"));
    [&busy, &other].into_iter().for_each(|fleet| _ = tokens.set(fleet, Some(UID)));
    let forged: Vec<String> = (0..100).map(|number| token(&busy, number)).collect();
    let mut reviews = Box::pin(join_all(forged.iter().map(|token| tokens.authenticate(token))));
    assert!(poll!(&mut reviews).is_pending());
    let verified = tokens.authenticate(&token(&other, 0)).await.unwrap();
    assert_eq!(verified.fleet, Fleet::named("other", "edge"));
    assert!(poll!(&mut reviews).is_pending());
    assert_eq!(requested.of("busy"), REVIEWS_PER_NAMESPACE);
    drop(reviews);
    tokens.reviews.of("other");
    assert_eq!(tokens.reviews.by_namespace.lock().len(), 1, "nothing is kept for namespaces without reviews");
}

/// Envoy shows its token with every stream; the API server is asked once, and again when its answer is no longer valid.
#[tokio::test]
async fn a_token_is_reviewed_once_for_as_long_as_the_review_is_valid() {
    let requested = Requested::default();
    let tokens = Tokens::new(api_server("", &requested));
    let edge = FleetName::new("shop", "edge");
    tokens.set(&edge, Some(UID));
    for _ in 0..3 {
        tokens.authenticate(&token(&edge, 0)).await.unwrap();
    }
    assert_eq!(requested.of("shop"), 1);
    tokens.authenticate(&token(&edge, 1)).await.unwrap();
    assert_eq!(requested.of("shop"), 2, "another token of the same ServiceAccount");

    let left = tokens.verified.lock().values().map(|(_, until)| *until - Instant::now()).max().unwrap();
    assert!(left <= VALIDITY, "{left:?}");
    tokens.verified.lock().values_mut().for_each(|(_, until)| *until = Instant::now());
    for _ in 0..3 {
        tokens.authenticate(&token(&edge, 0)).await.unwrap();
    }
    assert_eq!(requested.of("shop"), 3);

    // A Gateway that is gone has no fleet, however lately its token was reviewed.
    tokens.set(&edge, None);
    tokens.authenticate(&token(&edge, 0)).await.unwrap_err();
    assert_eq!(requested.of("shop"), 3);
}

#[tokio::test]
async fn a_fleet_has_one_account_at_a_time() {
    let tokens = Tokens::new(api_server("", &Requested::default()));
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

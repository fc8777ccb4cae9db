//! Tokens of ServiceAccounts, checked by a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use model::FleetName;
use provision::{Tokens, name, objects};
use serde_json::json;
use testbed::ApiServer;
use xds::{Authenticator, Fleet, TokenError};

const UID: &str = "9f3c5b0e-0000-4000-8000-000000000001";

/// A token of a ServiceAccount, which is made if it is not there.
async fn token(api: &ApiServer, namespace: &str, name: &str, audience: &str) -> String {
    let accounts = Api::<ServiceAccount>::namespaced(api.client().unwrap(), namespace);
    if accounts.get_opt(name).await.unwrap().is_none() {
        let account = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
    }
    let spec = TokenRequestSpec { audiences: vec![audience.to_owned()], ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap().status.unwrap().token
}

fn refusal(answer: Result<xds::VerifiedToken, TokenError>) -> String {
    match answer {
        Err(TokenError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_token_belongs_to_the_gateway_that_its_account_was_made_for() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("tokens").await.unwrap();
    let tokens = Tokens::new(api.client().unwrap());
    let (edge, other) = (FleetName::new(&namespace, "edge"), FleetName::new(&namespace, "other"));
    assert!(!tokens.set(&edge, Some(UID)));
    tokens.set(&other, Some(UID));
    let of_edge = token(api, &namespace, &name::of(&edge, UID), objects::AUDIENCE).await;
    for _ in 0..2 {
        let verified = tokens.authenticate(&of_edge).await.unwrap();
        assert_eq!(verified.fleet, Fleet::named(&namespace, "edge"));
        assert!(verified.expires > std::time::SystemTime::now());
    }
    let of_other = token(api, &namespace, &name::of(&other, UID), objects::AUDIENCE).await;
    assert_eq!(tokens.authenticate(&of_other).await.unwrap().fleet, Fleet::named(&namespace, "other"));

    // For the API server, and not for us.
    let stolen = token(api, &namespace, &name::of(&edge, UID), "https://kubernetes.default.svc").await;
    let why = refusal(tokens.authenticate(&stolen).await);
    assert!(why.contains("audience"), "{why}");
    // Of an account that belongs to nobody.
    let unrelated = token(api, &namespace, "default", objects::AUDIENCE).await;
    let why = format!("the ServiceAccount {namespace}/default belongs to no Gateway that is served");
    assert_eq!(refusal(tokens.authenticate(&unrelated).await), why);
    // Forged, with the claims of a good one.
    let mut parts: Vec<&str> = of_edge.split('.').collect();
    let forged = of_other.split('.').next_back().unwrap();
    parts[2] = forged;
    refusal(tokens.authenticate(&parts.join(".")).await);
    for text in ["", "a.b.c", "not a token"] {
        assert_eq!(refusal(tokens.authenticate(text).await), "it is not a token of a ServiceAccount");
    }

    // A Gateway that is created again is another, and one that is gone has nothing.
    assert!(tokens.set(&edge, Some("another")), "its clients must authenticate again");
    refusal(tokens.authenticate(&of_edge).await);
    assert!(tokens.set(&edge, None));
    refusal(tokens.authenticate(&of_edge).await);
}

/// What is remembered is not asked again, and what is gone is noticed once that is over; a token that was never shown is not
/// believed after its account is gone.
#[tokio::test]
async fn a_token_of_an_account_that_is_gone_is_refused() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("gone").await.unwrap();
    let tokens = Tokens::new(api.client().unwrap());
    let edge = FleetName::new(&namespace, "edge");
    tokens.set(&edge, Some(UID));
    let name = name::of(&edge, UID);
    let token = token(api, &namespace, &name, objects::AUDIENCE).await;
    let accounts = Api::<ServiceAccount>::namespaced(api.client().unwrap(), &namespace);
    accounts.delete(&name, &DeleteParams::default()).await.unwrap();
    refusal(tokens.authenticate(&token).await);
}

#[tokio::test]
async fn without_the_right_to_ask_it_is_said_in_words() {
    let api = ApiServer::shared().await.unwrap();
    let namespace = api.namespace("denied").await.unwrap();
    let tokens = Tokens::new(api.client_as("nobody-at-all", &[]).unwrap());
    let edge = FleetName::new(&namespace, "edge");
    tokens.set(&edge, Some(UID));
    let token = token(api, &namespace, &name::of(&edge, UID), objects::AUDIENCE).await;
    match tokens.authenticate(&token).await {
        Err(TokenError::Unavailable(why)) => assert!(why.contains("cannot create resource \"tokenreviews\""), "{why}"),
        other => panic!("{other:?}"),
    }
}

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

use super::*;
use crate::any;
use crate::envoy::config::core::v3 as core;
use crate::envoy::config::listener::v3 as listener;
use crate::envoy::extensions::filters::http::router::v3::Router;
use crate::envoy::extensions::filters::network::http_connection_manager::v3 as hcm;
use crate::google::protobuf::UInt32Value;
use crate::xds::r#type::matcher::v3::ServerNameMatcher;

/// A listener whose HTTP filters stand two [`Any`]s deep.
fn a_listener() -> listener::Listener {
    let router = hcm::HttpFilter {
        name: "envoy.filters.http.router".to_owned(),
        config_type: Some(hcm::http_filter::ConfigType::TypedConfig(any(&Router::default()))),
        ..Default::default()
    };
    let manager =
        hcm::HttpConnectionManager { stat_prefix: "http".to_owned(), http_filters: vec![router], ..Default::default() };
    listener::Listener {
        name: "ingress_http".to_owned(),
        per_connection_buffer_limit_bytes: Some(32768.into()),
        filter_chains: vec![listener::FilterChain {
            filters: vec![listener::Filter {
                name: "envoy.filters.network.http_connection_manager".to_owned(),
                config_type: Some(listener::filter::ConfigType::TypedConfig(any(&manager))),
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[test]
fn an_any_is_expanded_however_deep_it_stands() {
    let value = any_to_json(&any(&a_listener())).unwrap();
    assert_eq!(
        value,
        json!({
            "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
            "name": "ingress_http",
            "per_connection_buffer_limit_bytes": 32768,
            "filter_chains": [{"filters": [{
                "name": "envoy.filters.network.http_connection_manager",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                    "stat_prefix": "http",
                    "http_filters": [{
                        "name": "envoy.filters.http.router",
                        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
                    }],
                },
            }]}],
        })
    );
}

#[test]
fn keys_are_sorted_in_the_text() {
    let text = serde_json::to_string(&any_to_json(&any(&a_listener())).unwrap()).unwrap();
    let at = |key: &str| text.find(key).unwrap();
    assert!(at("\"@type\"") < at("\"filter_chains\""));
    assert!(at("\"filter_chains\"") < at("\"per_connection_buffer_limit_bytes\""));
}

#[test]
fn what_was_written_is_read_back() {
    let before = a_listener();
    let after: listener::Listener = from_json(&to_json(&before).unwrap()).unwrap();
    assert_eq!(after, before);
}

#[test]
fn a_scalar_in_an_any_stands_under_value() {
    let value = any_to_json(&any(&UInt32Value { value: 7 })).unwrap();
    assert_eq!(value, json!({"@type": "type.googleapis.com/google.protobuf.UInt32Value", "value": 7}));
}

#[test]
fn a_misspelt_field_is_an_error_that_names_it() {
    let error = from_json::<core::Node>(&json!({"idd": "a"})).unwrap_err();
    let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(text.contains("envoy.config.core.v3.Node") && text.contains("idd"), "{text}");
}

#[test]
fn an_unknown_type_is_named() {
    let stranger = Any { type_url: "type.googleapis.com/acme.Thing".to_owned(), ..Default::default() };
    assert_eq!(any_to_json(&stranger).unwrap_err().to_string(), "message type acme.Thing is not known");
}

#[test]
fn messages_of_our_own_protos_are_known() {
    let value = any_to_json(&any(&ServerNameMatcher::default())).unwrap();
    assert_eq!(value, json!({"@type": "type.googleapis.com/xds.type.matcher.v3.ServerNameMatcher"}));
}

//! The API server of the bed: ready in seconds, checks rights, takes CRDs, keeps its data over stop and kill.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Instant;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use testbed::ApiServer;

fn config_map(name: &str, value: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let data = BTreeMap::from([("key".to_owned(), value.to_owned())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

#[tokio::test]
async fn a_restart_keeps_data_and_address() {
    let began = Instant::now();
    let api = ApiServer::start().await.unwrap();
    println!("API server ready after {:?}", began.elapsed());
    let address = api.address();
    let namespace = api.namespace("restart").await.unwrap();
    let maps = || Api::<ConfigMap>::namespaced(api.client().unwrap(), &namespace);
    maps().create(&PostParams::default(), &config_map("kept", "one")).await.unwrap();

    let began = Instant::now();
    api.stop().await.unwrap();
    println!("stopped in {:?}", began.elapsed());
    assert!(!api.is_running());
    assert!(maps().get("kept").await.is_err());
    let began = Instant::now();
    api.restart().await.unwrap();
    println!("restarted in {:?}", began.elapsed());
    assert_eq!(api.address(), address);
    assert_eq!(maps().get("kept").await.unwrap().data, config_map("", "one").data);

    api.kill().await.unwrap();
    assert!(maps().get("kept").await.is_err());
    api.restart().await.unwrap();
    assert_eq!(maps().get("kept").await.unwrap().data, config_map("", "one").data);
}

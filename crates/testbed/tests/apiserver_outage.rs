//! Private API servers: outages on the same data and address, and starts that fail.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams, WatchEvent, WatchParams};
use testbed::ApiServer;

const LIMIT: Duration = Duration::from_secs(60);

fn config_map(name: &str, value: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let data = BTreeMap::from([("key".to_owned(), value.to_owned())]);
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

#[tokio::test]
async fn data_and_address_outlast_a_stop_and_a_kill() {
    let began = Instant::now();
    let api = ApiServer::start().await.unwrap();
    println!("API server ready after {:?}", began.elapsed());
    let address = api.address();
    let namespace = api.namespace("restart").await.unwrap();
    // The same client all the time: it finds the server again.
    let maps = Api::<ConfigMap>::namespaced(api.client().unwrap(), &namespace);
    let made = maps.create(&PostParams::default(), &config_map("kept", "one")).await.unwrap();

    let version = made.metadata.resource_version.unwrap();
    let mut watch = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    let began = Instant::now();
    api.stop().await.unwrap();
    println!("stopped in {:?}", began.elapsed());
    let end = async { while let Some(Ok(WatchEvent::Bookmark(_))) = watch.next().await {} };
    testbed::within("the watch to end", LIMIT, end).await.unwrap();
    assert!(!api.is_running());
    assert!(maps.get("kept").await.is_err());

    let began = Instant::now();
    api.restart().await.unwrap();
    println!("restarted in {:?}", began.elapsed());
    assert_eq!(api.address(), address);
    assert_eq!(maps.get("kept").await.unwrap().data, config_map("", "one").data);

    api.kill().await.unwrap();
    assert!(maps.get("kept").await.is_err());
    api.restart().await.unwrap();
    assert_eq!(maps.get("kept").await.unwrap().data, config_map("", "one").data);
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let error = ApiServer::config().flag("no-such-flag", "1").start().await.unwrap_err().to_string();
    assert!(error.starts_with("kube-apiserver exited with 1 while the test waited for"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
    assert!(error.contains("kube-apiserver.log)"), "{error}");
}

#[tokio::test]
async fn declared_users_log_in_with_tokens() {
    let api = ApiServer::config().user("system:node:n1", ["system:nodes"]).start().await.unwrap();
    let kubeconfig = kube::config::Kubeconfig::read_from(api.kubeconfig_of("system:node:n1").unwrap()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let node = k8s_openapi::api::core::v1::Node {
        metadata: ObjectMeta { name: Some("n1".to_owned()), ..ObjectMeta::default() },
        ..Default::default()
    };
    Api::all(client).create(&PostParams::default(), &node).await.unwrap();
    assert!(api.kubeconfig_of("nobody").is_err());
}

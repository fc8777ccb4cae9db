#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use envoy_api::json;
use serde_json::{Value, json};

use super::*;

fn chosen() -> Bootstrap {
    Bootstrap {
        node: Node::default(),
        server: XdsServer {
            host: "sesame.gateways.svc".to_owned(),
            port: 8001,
            dns_family: DnsFamily::Auto,
            namespace: Some("gateways".to_owned()),
        },
        tls: None,
        admin_socket: "/admin/admin.sock".into(),
        overload: Overload::default(),
        stats: Stats::Lean,
    }
}

fn with_tls(resources_dir: Option<&str>) -> Bootstrap {
    let tls = Tls::Certificate(CertificateFiles {
        ca: "/ca/ca.crt".into(),
        certificate: "/certs/tls.crt".into(),
        key: "/certs/tls.key".into(),
        resources_dir: resources_dir.map(PathBuf::from),
    });
    Bootstrap { tls: Some(tls), ..chosen() }
}

fn rendered(bootstrap: &Bootstrap) -> Value {
    json::to_json(&bootstrap.render().bootstrap).unwrap()
}

fn tls_context(bootstrap: &Value) -> &Value {
    &bootstrap["static_resources"]["clusters"][0]["transport_socket"]["typed_config"]["common_tls_context"]
}

#[test]
fn everything_comes_over_one_delta_stream_and_is_waited_for() {
    let value = rendered(&chosen());
    let dynamic = &value["dynamic_resources"];
    let over_ads = json!({"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"});
    assert_eq!(dynamic["lds_config"], over_ads);
    assert_eq!(dynamic["cds_config"], over_ads);
    assert_eq!(
        value["layered_runtime"]["layers"][1]["rtds_layer"],
        json!({"name": "dynamic", "rtds_config": over_ads})
    );
    assert_eq!(
        dynamic["ads_config"],
        json!({
            "api_type": "DELTA_GRPC",
            "transport_api_version": "V3",
            "set_node_on_first_message_only": true,
            "grpc_services": [{"envoy_grpc": {
                "cluster_name": "sesame",
                "retry_policy": {"retry_back_off": {"base_interval": "0.100s", "max_interval": "3s"}},
            }}],
        })
    );
}

#[test]
fn the_server_is_a_dns_name_or_an_address() {
    let cluster = rendered(&chosen())["static_resources"]["clusters"][0].clone();
    assert_eq!(cluster["name"], "sesame");
    assert_eq!(cluster["type"], "STRICT_DNS");
    assert_eq!(cluster["alt_stat_name"], "gateways_sesame_8001");
    assert_eq!(
        cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["socket_address"],
        json!({"address": "sesame.gateways.svc", "port_value": 8001})
    );
    for address in ["127.0.0.1", "::1"] {
        let mut bootstrap = chosen();
        bootstrap.server.host = address.to_owned();
        assert_eq!(rendered(&bootstrap)["static_resources"]["clusters"][0]["type"], "STATIC", "{address}");
    }
}

#[test]
fn the_dns_family_is_passed_on() {
    for (family, name) in [(DnsFamily::V4, "V4_ONLY"), (DnsFamily::V6, "V6_ONLY"), (DnsFamily::All, "ALL")] {
        let mut bootstrap = chosen();
        bootstrap.server.dns_family = family;
        assert_eq!(rendered(&bootstrap)["static_resources"]["clusters"][0]["dns_lookup_family"], name);
    }
}

#[test]
fn the_admin_interface_is_a_socket_and_a_cluster() {
    let value = rendered(&chosen());
    assert_eq!(value["admin"]["address"]["pipe"], json!({"path": "/admin/admin.sock", "mode": 0o660}));
    assert_eq!(value["admin"]["ignore_global_conn_limit"], true);
    let cluster = &value["static_resources"]["clusters"][1];
    assert_eq!(cluster["name"], "envoy-admin");
    assert_eq!(
        cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["pipe"],
        json!({"path": "/admin/admin.sock"})
    );
}

#[test]
fn a_node_says_its_fleet_in_its_metadata() {
    let mut bootstrap = chosen();
    assert_eq!(rendered(&bootstrap)["node"], Value::Null, "what is not given is left to Envoy's own flags");
    bootstrap.node = Node {
        id: Some("envoy-1".to_owned()),
        cluster: Some("gateways".to_owned()),
        fleet: Some(model::FleetName::new("gateways", "public")),
    };
    assert_eq!(
        rendered(&bootstrap)["node"],
        json!({"id": "envoy-1", "cluster": "gateways", "metadata": {"sesame.fleet": "gateways/public"}})
    );
}

#[test]
fn statistics_are_few_and_lazy_unless_all_are_wanted() {
    let value = rendered(&chosen());
    assert_eq!(value["deferred_stat_options"], json!({"enable_deferred_creation_stats": true}));
    let stats = &value["stats_config"];
    assert_eq!(stats["use_all_default_tags"], false);
    let patterns = stats["stats_matcher"]["inclusion_list"]["patterns"].as_array().unwrap();
    assert!(patterns.iter().all(|pattern| pattern["safe_regex"].is_null()), "no regular expressions");
    assert!(patterns.contains(&json!({"prefix": "server."})));
    assert!(patterns.contains(&json!({"contains": ".gateways_sesame_8001.ssl.certificate."})));
    let tags = stats["stats_tags"].as_array().unwrap();
    assert!(tags.iter().all(|tag| tag["regex"].is_null()), "only built-in tags, by name");

    let full = Bootstrap { stats: Stats::Full, ..chosen() };
    assert_eq!(rendered(&full)["stats_config"], json!({}));
}

#[test]
fn limits_exist_only_when_set() {
    assert_eq!(rendered(&chosen())["overload_manager"], Value::Null);
    let overload = Overload { max_heap: Some(2_000_000_000), max_downstream_connections: Some(50_000) };
    let value = rendered(&Bootstrap { overload, ..chosen() });
    let manager = &value["overload_manager"];
    assert_eq!(manager["refresh_interval"], "0.250s");
    assert_eq!(manager["resource_monitors"][0]["typed_config"]["max_heap_size_bytes"], "2000000000");
    assert_eq!(manager["resource_monitors"][1]["typed_config"]["max_active_downstream_connections"], "50000");
    let thresholds: Vec<(&Value, &Value)> = manager["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| (&action["name"], &action["triggers"][0]["threshold"]["value"]))
        .collect();
    assert_eq!(
        thresholds,
        [
            (&json!("envoy.overload_actions.shrink_heap"), &json!(0.95)),
            (&json!("envoy.overload_actions.stop_accepting_requests"), &json!(0.98))
        ]
    );
}

#[test]
fn files_are_read_by_envoy_when_there_is_no_folder_for_resources() {
    let bootstrap = with_tls(None);
    assert!(bootstrap.render().files.is_empty());
    let value = rendered(&bootstrap);
    let tls = tls_context(&value);
    assert_eq!(
        tls["tls_params"],
        json!({"tls_minimum_protocol_version": "TLSv1_3", "tls_maximum_protocol_version": "TLSv1_3"})
    );
    assert_eq!(tls["alpn_protocols"], json!(["h2"]));
    assert_eq!(tls["tls_certificates"][0]["private_key"], json!({"filename": "/certs/tls.key"}));
    assert_eq!(
        tls["validation_context"],
        json!({
            "trusted_ca": {"filename": "/ca/ca.crt"},
            "match_typed_subject_alt_names": [
                {"san_type": "DNS", "matcher": {"exact": "sesame"}},
                {"san_type": "DNS", "matcher": {"exact": "contour"}},
            ],
        })
    );
}

#[test]
fn a_folder_for_resources_holds_secrets_whose_files_are_watched() {
    let bootstrap = with_tls(Some("/resources"));
    let value = rendered(&bootstrap);
    let tls = tls_context(&value);
    assert_eq!(
        tls["tls_certificate_sds_secret_configs"],
        json!([{
            "name": "sesame_xds_tls_certificate",
            "sds_config": {
                "path_config_source": {"path": "/resources/sds/xds-tls-certificate.json"},
                "resource_api_version": "V3",
            },
        }])
    );
    assert_eq!(tls["validation_context_sds_secret_config"]["name"], "sesame_xds_tls_validation_context");
    assert!(!value.to_string().contains("/certs/tls.key"), "the bootstrap points to the secrets only");

    let files = bootstrap.render().files;
    let paths: Vec<_> = files.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["/resources/sds/xds-tls-certificate.json", "/resources/sds/xds-validation-context.json"]);
    assert_eq!(
        files[0].1,
        json!({"resources": [{
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
            "name": "sesame_xds_tls_certificate",
            "tls_certificate": {
                "certificate_chain": {"filename": "/certs/tls.crt"},
                "private_key": {"filename": "/certs/tls.key"},
                "watched_directory": {"path": "/certs"},
            },
        }]})
    );
    assert_eq!(files[1].1["resources"][0]["validation_context"]["watched_directory"], json!({"path": "/ca"}));
}

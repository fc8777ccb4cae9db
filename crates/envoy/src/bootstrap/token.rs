//! The token by which an Envoy without a certificate proves its fleet.
//!
//! Metadata of a gRPC service is fixed when Envoy starts, and a token is renewed every hour. So the cluster of the xDS server has an
//! upstream HTTP filter that adds the header `authorization` to each request, with a credential that comes from an SDS file which
//! points to the token; Envoy watches the folder of the token. While there is no token, requests fail inside Envoy and are tried
//! again.

use std::path::PathBuf;

use envoy_api::any;
use envoy_api::envoy::config::core::v3 as core;
use envoy_api::envoy::extensions::filters::http::credential_injector::v3::CredentialInjector;
use envoy_api::envoy::extensions::filters::http::upstream_codec::v3::UpstreamCodec;
use envoy_api::envoy::extensions::filters::network::http_connection_manager::v3 as hcm;
use envoy_api::envoy::extensions::http::injected_credentials::generic::v3::Generic;
use envoy_api::envoy::extensions::transport_sockets::tls::v3 as tls;
use serde_json::Value;

use super::text;
use super::tls::{Token, from_file, from_path, parent, secret_file};
use crate::name;

/// The upstream filters of the xDS server's cluster: the token, and what every list of them ends with.
pub(super) fn filters(token: &Token) -> Vec<hcm::HttpFilter> {
    let generic = Generic {
        credential: Some(from_file(name::XDS_TOKEN, &path(token))),
        header: "authorization".to_owned(),
        header_value_prefix: "Bearer ".to_owned(),
    };
    let injector = CredentialInjector {
        overwrite: true,
        credential: Some(core::TypedExtensionConfig {
            name: "envoy.http.injected_credentials.generic".to_owned(),
            typed_config: Some(any(&generic)),
        }),
        ..Default::default()
    };
    vec![
        filter("envoy.filters.http.credential_injector", any(&injector)),
        filter("envoy.filters.http.upstream_codec", any(&UpstreamCodec {})),
    ]
}

/// The SDS file that points to the token.
pub(super) fn sds_file(token: &Token) -> (PathBuf, Value) {
    let watched = core::WatchedDirectory { path: text(parent(&token.file)), ..Default::default() };
    let secret = core::DataSource { watched_directory: Some(watched), ..from_path(&token.file) };
    let secret = tls::GenericSecret { secret: Some(secret), ..Default::default() };
    (path(token), secret_file(name::XDS_TOKEN, tls::secret::Type::GenericSecret(secret)))
}

fn path(token: &Token) -> PathBuf {
    token.resources_dir.join("sds/xds-token.json")
}

fn filter(name: &str, config: envoy_api::google::protobuf::Any) -> hcm::HttpFilter {
    hcm::HttpFilter {
        name: name.to_owned(),
        config_type: Some(hcm::http_filter::ConfigType::TypedConfig(config)),
        ..Default::default()
    }
}

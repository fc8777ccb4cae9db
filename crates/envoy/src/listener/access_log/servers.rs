//! Servers of Envoy's access log service: entries are sent to them over gRPC.
//!
//! Envoy looks their clusters up when it sends entries, so one that is not there costs entries and nothing else.

use crate::name;
use envoy_api::{
    Any, any,
    envoy::{
        config::{
            accesslog::v3::{AccessLog, access_log::ConfigType},
            core::v3::{
                ApiVersion, GrpcService,
                grpc_service::{EnvoyGrpc, TargetSpecifier},
            },
        },
        extensions::access_loggers::grpc::v3::{
            CommonGrpcAccessLogConfig, HttpGrpcAccessLogConfig, TcpGrpcAccessLogConfig,
        },
    },
};
use model::{HeaderName, listener::AccessLogServer};

/// Those that get the entries of HTTP requests.
pub fn http(servers: &[AccessLogServer]) -> impl Iterator<Item = AccessLog> {
    servers.iter().map(|server| {
        let names = |names: &[HeaderName]| names.iter().map(ToString::to_string).collect();
        let config = HttpGrpcAccessLogConfig {
            common_config: Some(common(server)),
            additional_request_headers_to_log: names(&server.headers.request),
            additional_response_headers_to_log: names(&server.headers.response),
            additional_response_trailers_to_log: names(&server.headers.trailers),
        };
        logger("envoy.access_loggers.http_grpc", any(&config))
    })
}

/// Those that get the entries of TCP connections.
pub fn tcp(servers: &[AccessLogServer]) -> impl Iterator<Item = AccessLog> {
    servers.iter().map(|server| {
        let config = TcpGrpcAccessLogConfig { common_config: Some(common(server)) };
        logger("envoy.access_loggers.tcp_grpc", any(&config))
    })
}

fn logger(name: &str, config: Any) -> AccessLog {
    AccessLog { name: name.to_owned(), filter: None, config_type: Some(ConfigType::TypedConfig(config)) }
}

fn common(server: &AccessLogServer) -> CommonGrpcAccessLogConfig {
    let grpc = EnvoyGrpc {
        cluster_name: name::cluster(&server.extension.cluster),
        authority: server.extension.authority.to_string(),
        ..Default::default()
    };
    CommonGrpcAccessLogConfig {
        log_name: server.log_name.to_string(),
        grpc_service: Some(GrpcService {
            target_specifier: Some(TargetSpecifier::EnvoyGrpc(grpc)),
            ..Default::default()
        }),
        transport_api_version: ApiVersion::V3.into(),
        buffer_flush_interval: Some(server.flush_after.into()),
        buffer_size_bytes: Some(server.flush_bytes.into()),
        ..Default::default()
    }
}

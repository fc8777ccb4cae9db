//! The HTTP connection manager: what holds for every request of a listener.

use super::{access_log, filters, jwt::HttpChainId, local_replies, quic, tracing};
use crate::{
    name,
    packing::{Packing, admission, plain, redirects, scoped},
    route::action::timeout,
};
use envoy_api::{
    envoy::{
        config::core::v3::{
            Http1ProtocolOptions, Http2ProtocolOptions, HttpProtocolOptions,
            http_protocol_options::HeadersWithUnderscoresAction,
            http1_protocol_options::{HeaderKeyFormat, header_key_format},
        },
        extensions::filters::network::http_connection_manager::v3::{
            HttpConnectionManager,
            http_connection_manager::{
                CodecType, ForwardClientCertDetails, PathWithEscapedSlashesAction, ServerHeaderTransformation,
                SetCurrentClientCertDetails,
            },
        },
    },
    google::protobuf::Duration,
};
use model::{
    ChainId, Port, PortProtocol, Timeout,
    listener::{ClientCertHeader, HeadersWithUnderscores, HttpSettings, HttpVersions, ServerHeader},
    tls::client_validation::ForwardedDetails,
};

/// What one HTTP/2 or HTTP/3 stream may send ahead.
pub(super) const STREAM_WINDOW: u32 = 64 * 1024;
/// What one HTTP/2 or HTTP/3 connection may send ahead.
pub(super) const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// The Host of a request of HTTP/1.0 that says none. No host is called so: it is for whoever takes every host.
const NO_HOST: &str = "_";

/// The manager of a filter chain of a port: its only one where that is plaintext.
pub fn connection_manager(port: &Port, chain: Option<&ChainId>, packing: Packing) -> HttpConnectionManager {
    let http = &port.http;
    let filtered = match chain {
        Some(chain) => HttpChainId::Tls(chain.clone()),
        None => HttpChainId::Plaintext(port.id.clone()),
    };
    let mut http_filters = filters::http(&port.id, &filtered, http);
    let (specifier, key, upgrade_configs) = match packing {
        Packing::Plain => (plain::specifier(&port.id), admission::removed(redirects::KEY), Vec::new()),
        Packing::Scoped => {
            http_filters.insert(0, scoped::fallback());
            (scoped::specifier(), scoped::key_of_requests(&port.id), vec![scoped::connect()])
        }
    };
    let forwarded = chain.and_then(|chain| chain.termination.clients.as_ref()?.forward);
    let (forward_client_cert_details, certificate_details) = client_cert_header(http.client_cert_header, forwarded);
    let [chain, server_name] = admission::of_requests(port.protocol, chain);
    let is_http3 = port.protocol == PortProtocol::Quic;
    HttpConnectionManager {
        stat_prefix: http.stats_prefix.as_deref().map_or_else(|| name::port(&port.id), str::to_owned),
        codec_type: if is_http3 { CodecType::Http3 } else { codec(http.versions) }.into(),
        route_specifier: Some(specifier),
        early_header_mutation_extensions: vec![admission::early(vec![key, chain, server_name])],
        upgrade_configs,
        http_filters,
        forward_client_cert_details: forward_client_cert_details.into(),
        set_current_client_cert_details: certificate_details.map(client_certificate),
        access_log: access_log::of_requests(&http.access_log),
        local_reply_config: local_replies::config(http.local_reply_body),
        tracing: port.tracer.as_ref().map(tracing::tracing),
        server_header_transformation: server_header(http.server_header).into(),
        common_http_protocol_options: Some(connections(http)),
        server_name: http.server_name.as_deref().unwrap_or_default().to_owned(),
        http_protocol_options: Some(Http1ProtocolOptions {
            accept_http_10: http.http10,
            header_key_format: http.title_case.then(title_case),
            default_host_for_http_10: NO_HOST.to_owned(),
            allow_chunked_length: http.chunked_length,
            ..Default::default()
        }),
        http2_protocol_options: Some(Http2ProtocolOptions {
            max_concurrent_streams: Some(http.max_streams.into()),
            initial_stream_window_size: Some(STREAM_WINDOW.into()),
            initial_connection_window_size: Some(CONNECTION_WINDOW.into()),
            ..Default::default()
        }),
        http3_protocol_options: is_http3.then(|| quic::http3(http)),
        use_remote_address: Some((!http.believes_peers).into()),
        xff_num_trusted_hops: http.trusted_hops,
        preserve_external_request_id: http.keep_request_id,
        max_request_headers_kb: http.header_kilobytes.map(Into::into),
        strip_matching_host_port: http.strip_matching_port,
        path_with_escaped_slashes_action: escaped_slashes(http.reject_escaped_slashes).into(),
        normalize_path: Some(true.into()),
        merge_slashes: http.merge_slashes,
        strip_trailing_host_dot: true,
        stream_idle_timeout: timeout(http.stream_idle),
        request_timeout: timeout(http.request),
        request_headers_timeout: timeout(http.request_headers),
        delayed_close_timeout: timeout(http.delayed_close),
        drain_timeout: timeout(http.drain),
        ..Default::default()
    }
}

/// What becomes of the header with the certificate of a client, and what is written there. Unless the port believes whoever connects,
/// whatever a client says there is taken away.
fn client_cert_header(
    header: Option<ClientCertHeader>,
    forwarded: Option<ForwardedDetails>,
) -> (ForwardClientCertDetails, Option<ForwardedDetails>) {
    match (header, forwarded) {
        (Some(ClientCertHeader::ForwardOnly), _) => (ForwardClientCertDetails::ForwardOnly, None),
        (Some(ClientCertHeader::AppendForward(details)), _) => (ForwardClientCertDetails::AppendForward, Some(details)),
        (Some(ClientCertHeader::AlwaysForwardOnly), _) => (ForwardClientCertDetails::AlwaysForwardOnly, None),
        (None, Some(details)) => (ForwardClientCertDetails::SanitizeSet, Some(details)),
        (None, None) => (ForwardClientCertDetails::Sanitize, None),
    }
}

/// What backends are told about the certificate of a client.
fn client_certificate(details: ForwardedDetails) -> SetCurrentClientCertDetails {
    let ForwardedDetails { subject, certificate, chain, dns, uri } = details;
    let (subject, cert) = (Some(subject.into()), certificate);
    SetCurrentClientCertDetails { subject, cert, chain, dns, uri, ..Default::default() }
}

/// Header names of HTTP/1.1 in title case.
fn title_case() -> HeaderKeyFormat {
    let words = header_key_format::HeaderFormat::ProperCaseWords(header_key_format::ProperCaseWords {});
    HeaderKeyFormat { header_format: Some(words) }
}

fn escaped_slashes(are_rejected: bool) -> PathWithEscapedSlashesAction {
    match are_rejected {
        true => PathWithEscapedSlashesAction::RejectRequest,
        false => PathWithEscapedSlashesAction::ImplementationSpecificDefault,
    }
}

fn codec(versions: HttpVersions) -> CodecType {
    match versions {
        HttpVersions::Both => CodecType::Auto,
        HttpVersions::Http1 => CodecType::Http1,
        HttpVersions::Http2 => CodecType::Http2,
    }
}

fn connections(http: &HttpSettings) -> HttpProtocolOptions {
    HttpProtocolOptions {
        idle_timeout: timeout(http.connection_idle),
        max_connection_duration: longest(http.max_connection),
        max_requests_per_connection: http.max_requests.map(Into::into),
        headers_with_underscores_action: underscores(http.underscores).into(),
        ..Default::default()
    }
}

fn underscores(headers: HeadersWithUnderscores) -> HeadersWithUnderscoresAction {
    match headers {
        HeadersWithUnderscores::Allow => HeadersWithUnderscoresAction::Allow,
        HeadersWithUnderscores::Reject => HeadersWithUnderscoresAction::RejectRequest,
        HeadersWithUnderscores::Drop => HeadersWithUnderscoresAction::DropHeader,
    }
}

/// Envoy has no word for "for ever" here: it is what nothing said means.
fn longest(span: Timeout) -> Option<Duration> {
    match span {
        Timeout::After(span) => Some(span.into()),
        Timeout::Default | Timeout::Infinite => None,
    }
}

fn server_header(header: ServerHeader) -> ServerHeaderTransformation {
    match header {
        ServerHeader::Overwrite => ServerHeaderTransformation::Overwrite,
        ServerHeader::AppendIfAbsent => ServerHeaderTransformation::AppendIfAbsent,
        ServerHeader::PassThrough => ServerHeaderTransformation::PassThrough,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{FleetId, PortId, listener::ConnectionSettings};
    use std::{net::Ipv4Addr, sync::Arc};

    /// What no request of a golden case can tell.
    #[test]
    fn settings_of_a_port_are_those_of_its_manager() {
        let http = HttpSettings {
            server_name: Some(Arc::from("edge")),
            keep_request_id: false,
            http10: false,
            header_kilobytes: Some(90),
            ..HttpSettings::default()
        };
        let port = Port {
            id: PortId::new(FleetId::Shared, "a"),
            address: Ipv4Addr::LOCALHOST.into(),
            port: 80,
            protocol: PortProtocol::Http,
            connections: ConnectionSettings::default(),
            http,
            tracer: None,
        };
        let manager = connection_manager(&port, None, Packing::Plain);
        let http1 = manager.http_protocol_options.unwrap_or_default();
        assert_eq!(&*manager.server_name, "edge");
        assert!(!manager.preserve_external_request_id && !http1.accept_http_10);
        assert_eq!(manager.max_request_headers_kb, Some(90.into()));
    }

    #[test]
    fn the_header_with_a_client_certificate_is_that_of_the_port_then_that_of_the_chain() {
        use ForwardClientCertDetails as Envoys;
        let (one, other) = (ForwardedDetails { subject: true, ..Default::default() }, ForwardedDetails::default());
        for (header, forwarded, expected) in [
            (None, None, (Envoys::Sanitize, None)),
            (None, Some(one), (Envoys::SanitizeSet, Some(one))),
            (Some(ClientCertHeader::ForwardOnly), Some(one), (Envoys::ForwardOnly, None)),
            (Some(ClientCertHeader::AppendForward(other)), Some(one), (Envoys::AppendForward, Some(other))),
            (Some(ClientCertHeader::AlwaysForwardOnly), None, (Envoys::AlwaysForwardOnly, None)),
        ] {
            assert_eq!(client_cert_header(header, forwarded), expected);
        }
    }
}

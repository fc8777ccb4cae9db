//! LogService: who is sent the access log.

use super::{AmbassadorId, auth_service::ProtocolVersion};
use crate::{Checked, List, Meta, open_enum::open_enum};
use serde::Deserialize;

/// Who is sent the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct LogService {
    /// Its metadata.
    #[serde(default, rename = "metadata")]
    pub meta: Meta,
    /// Its specification.
    #[serde(default)]
    pub spec: LogServiceSpec,
}

/// The specification of a LogService.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LogServiceSpec {
    /// The instances it is for.
    pub ambassador_id: Checked<AmbassadorId>,
    /// The service; required.
    pub service: Checked<Option<Box<str>>>,
    /// Whose log: of HTTP requests or of TCP connections; required.
    pub driver: Checked<Option<LogDriver>>,
    /// Settings of the log of HTTP requests.
    pub driver_config: Checked<Option<Box<DriverConfig>>>,
    /// Seconds after which entries are sent; 1 if absent.
    pub flush_interval_time: Checked<Option<i64>>,
    /// Bytes after which entries are sent; 16384 if absent.
    pub flush_interval_byte_size: Checked<Option<i64>>,
    /// The service speaks gRPC.
    pub grpc: Checked<Option<bool>>,
    /// The version of its protocol.
    pub protocol_version: Checked<Option<ProtocolVersion>>,
    /// The name of the cluster in statistics.
    pub stats_name: Checked<Option<Box<str>>>,
}

open_enum! {
    /// What is logged.
    LogDriver {
        /// TCP connections.
        Tcp = "tcp",
        /// HTTP requests.
        Http = "http",
    }
}

/// Settings of the log of HTTP requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DriverConfig {
    /// Headers that are logged.
    pub additional_log_headers: List<LogHeader>,
}

/// A header that is logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LogHeader {
    /// The header.
    pub header_name: Option<Box<str>>,
    /// Of the request; true if absent.
    pub during_request: Option<bool>,
    /// Of the response; true if absent.
    pub during_response: Option<bool>,
    /// Of the trailers; true if absent.
    pub during_trailer: Option<bool>,
}

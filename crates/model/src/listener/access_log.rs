//! The access log of a listener: a file, and servers that entries are sent to.

use crate::{HeaderName, cluster::Extension};
use std::{num::NonZeroU32, sync::Arc, time::Duration};

/// Which requests are written to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessLogLevel {
    /// All.
    #[default]
    Info,
    /// Those answered with 300 and above, or with a response flag.
    Error,
    /// Those answered with 500 and above, or with a response flag.
    Critical,
    /// None.
    Disabled,
}

/// How a request is written down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessLogFormat {
    /// Envoy's own line, and after it why it was answered so, and by which route.
    #[default]
    Envoy,
    /// A line of this form.
    Text(Arc<str>),
    /// One JSON object a line, with these fields: a name from the list of known ones, or `name=FORMAT`. None named means
    /// the usual ones.
    Json(Vec<Arc<str>>),
}

/// The access log of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessLog {
    /// The file.
    pub path: Arc<str>,
    /// The form.
    pub format: AccessLogFormat,
    /// Which requests are written to the file.
    pub level: AccessLogLevel,
    /// How many connections without a TLS handshake each proxy writes to the file in a second; all of them if there is no limit.
    pub handshakes_per_second: Option<NonZeroU32>,
    /// Who is sent all entries, whatever the level of the file.
    pub servers: Arc<AccessLogServers>,
}

impl Default for AccessLog {
    fn default() -> Self {
        Self {
            path: "/dev/stdout".into(),
            format: AccessLogFormat::default(),
            level: AccessLogLevel::default(),
            handshakes_per_second: NonZeroU32::new(10),
            servers: Arc::default(),
        }
    }
}

/// Servers that entries are sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessLogServers {
    /// Who gets those of HTTP requests.
    pub http: Vec<AccessLogServer>,
    /// Who gets those of TCP connections.
    pub tcp: Vec<AccessLogServer>,
}

/// A server of Envoy's access log service, which entries are sent to over gRPC. One that does not answer gets none, and requests are
/// served all the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessLogServer {
    /// The name of the log, which it may tell logs apart by; not empty.
    pub log_name: Arc<str>,
    /// What it is reached at.
    pub extension: Extension,
    /// After which time entries are sent; not zero.
    pub flush_after: Duration,
    /// After how many bytes they are sent; zero for at once.
    pub flush_bytes: u32,
    /// Headers that entries of HTTP requests have besides the usual ones.
    pub headers: LoggedHeaders,
}

/// Headers that an entry has besides the usual ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LoggedHeaders {
    /// Of the request.
    pub request: Vec<HeaderName>,
    /// Of the response.
    pub response: Vec<HeaderName>,
    /// Of the trailers of the response.
    pub trailers: Vec<HeaderName>,
}

//! Where requests are written down, and how.

use std::sync::Arc;

/// Which requests are written down.
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
    /// Envoy's own line.
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
    /// Which requests.
    pub level: AccessLogLevel,
}

impl Default for AccessLog {
    fn default() -> Self {
        Self { path: "/dev/stdout".into(), format: AccessLogFormat::default(), level: AccessLogLevel::default() }
    }
}

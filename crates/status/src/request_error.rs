//! Why a request to the API server failed, in words for the log.

use kinds::Kind;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The lease ended before the answer came.
    #[error("no answer before the lease ended")]
    Late,
    /// The API server denied it, or gave no answer.
    #[error("{}", source::cluster::rights::refusal(.0))]
    Api(#[from] kube::Error),
    /// The kind is not served in the version that the request names.
    #[error("the API server does not serve {} in version {}", .0.plural(), .1)]
    NotServed(Kind, &'static str),
    /// The answer is no object of the kind.
    #[error("the API server's answer is not a valid {0}: {1}")]
    Answer(Kind, kinds::DecodeError),
}

impl RequestError {
    /// The HTTP status of the answer. `None` without an answer: that is logged once for all requests, by the connection.
    pub fn status(&self) -> Option<u16> {
        match self {
            RequestError::Api(kube::Error::Api(status)) => Some(status.code),
            RequestError::NotServed(..) => Some(404),
            RequestError::Answer(..) => Some(200),
            RequestError::Late | RequestError::Api(_) => None,
        }
    }

    /// Whether the request itself is at fault: the same request would be denied again. Another version is named once it is found that
    /// the kind is served in it.
    pub fn is_refusal(&self) -> bool {
        const TRANSIENT: [u16; 5] = [401, 404, 408, 409, 429];
        self.status().is_some_and(|status| (400..500).contains(&status) && !TRANSIENT.contains(&status))
    }

    /// One word for it, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            RequestError::Late => "late",
            RequestError::Api(_) | RequestError::NotServed(..) | RequestError::Answer(..) => "failed",
        }
    }
}

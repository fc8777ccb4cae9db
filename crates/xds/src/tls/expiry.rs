//! When the server's certificates expire: a metric all the time, and a warning in time.
//!
//! In: the certificates as they were last read. Out: `sesame_xds_certificate_expiry_timestamp_seconds`, and a line in the log
//! once a day for as long as one of them has less than thirty days left. When one has expired, no Envoy can connect any more.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use tokio::time;
use tracing::warn;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Tls;
use crate::metrics::{Certificate, Metrics};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How long before it expires a certificate is warned of, and how often.
const SOON: Duration = Duration::from_secs(30 * 24 * 3600);
const AGAIN: Duration = Duration::from_secs(24 * 3600);

/// When the certificates expire, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// The last of the CA's certificates.
    pub ca: i64,
    /// The server's own.
    pub server: i64,
}

impl Expiry {
    pub fn of(ca: &[CertificateDer<'_>], server: &[CertificateDer<'_>]) -> Self {
        let end = |der: &CertificateDer<'_>| {
            X509Certificate::from_der(der).map_or(0, |(_, certificate)| certificate.validity().not_after.timestamp())
        };
        Self { ca: ca.iter().map(end).max().unwrap_or_default(), server: server.first().map_or(0, end) }
    }

    fn each(self) -> [(&'static str, i64); 2] {
        [("ca", self.ca), ("server", self.server)]
    }
}

/// Notes when certificates expire, for as long as it is polled.
pub(crate) async fn watch(tls: Arc<Tls>, metrics: Metrics) {
    let mut warned = Warned::default();
    let mut look = time::interval(LOOK);
    loop {
        look.tick().await;
        // Notices files that have changed, too.
        let _ = tls.config();
        metrics.certificates_invalid.set(i64::from(tls.is_refused()));
        let expiry = tls.expiry();
        for (certificate, at) in expiry.each() {
            metrics.certificate_expiry.get_or_create(&Certificate { certificate }).set(at);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if warned.is_due(expiry, now, Instant::now()) {
            let files = tls.files();
            let days = |at: i64| (at - seconds(now)).div_euclid(24 * 3600);
            warn!(ca_days = days(expiry.ca), server_days = days(expiry.server), ca = %files.ca.display(),
                certificate = %files.certificate.display(),
                "the certificates of the xDS server expire soon; renew them with `sesame certgen --overwrite`");
        }
    }
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// When the last warning was.
#[derive(Default)]
struct Warned(Option<Instant>);

impl Warned {
    fn is_due(&mut self, expiry: Expiry, now: Duration, at: Instant) -> bool {
        if expiry.ca.min(expiry.server) - seconds(now) >= seconds(SOON) {
            self.0 = None;
            return false;
        }
        let due = self.0.is_none_or(|last| at.saturating_duration_since(last) >= AGAIN);
        if due {
            self.0 = Some(at);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_thirty_days_before_and_once_a_day() {
        const DAY: i64 = 24 * 3600;
        let (start, mut warned) = (Instant::now(), Warned::default());
        let mut on_day = |day: u32, server: i64| {
            let now = AGAIN * day;
            warned.is_due(Expiry { ca: 1000 * DAY, server: server * DAY }, now, start + now)
        };
        assert!(!on_day(1, 365));
        assert!(!on_day(335, 365));
        assert!(on_day(336, 365));
        assert!(!on_day(336, 365), "not twice on one day");
        assert!(on_day(337, 365));
        assert!(!on_day(338, 700), "renewed");
        assert!(on_day(699, 700));
        assert!(on_day(701, 700), "and when it is too late");
    }
}

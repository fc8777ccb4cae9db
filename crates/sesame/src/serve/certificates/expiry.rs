//! An event about certificates of the xDS server that expire within thirty days: whoever renews them has not done so.

use std::time::Duration;

use certgen::rotation::{Certificate, Role};
use certgen::store;
use kinds::{ObjectRef, kind};
use model::{Code, Verdict};
use status::{Report, Reporter};
use tokio::time;
use xds::TlsFiles;

use crate::control::now;

/// How often the files are looked at, and how long before it expires a certificate is told of.
const LOOK: Duration = Duration::from_secs(60);
const SOON: i64 = 30 * 24 * 3600;

/// Reports certificates that expire soon, about the Secret that they are usually from. Only the leader writes the event.
pub async fn watch(files: TlsFiles, namespace: String, reporter: Reporter) {
    let key = ObjectRef::new(kind::SECRET, &*namespace, store::name(Role::Server));
    let (mut look, mut reported) = (time::interval(LOOK), Vec::new());
    loop {
        look.tick().await;
        let read = |path: &std::path::Path| std::fs::read_to_string(path).ok().and_then(|text| Certificate::all(&text));
        let (Some(cas), Some(chain)) = (read(&files.ca), read(&files.certificate)) else { continue };
        let messages = soon(&cas, &chain, now());
        if messages != reported {
            let verdict = |text: &String| Verdict::new(Code::XdsCertificateExpires, key.at(""), text.clone());
            let verdicts = messages.iter().map(verdict).collect();
            reporter.report(Report { problems: vec![(key.clone(), verdicts)], ..Report::default() });
            reported = messages;
        }
    }
}

/// What is to be told.
fn soon(cas: &[Certificate], chain: &[Certificate], now: i64) -> Vec<String> {
    let ca = cas.iter().map(|ca| ca.expires).max().map(|at| ("the last CA of xDS connections", at));
    let own = chain.first().map(|certificate| ("the certificate of the xDS server", certificate.expires));
    let soon = [ca, own].into_iter().flatten().filter(|(_, at)| at - now < SOON);
    soon.map(|(what, at)| format!("{what} {} at {}", if at < now { "expired" } else { "expires" }, date(at))).collect()
}

/// A time in seconds since 1970, for people.
pub fn date(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use certgen::{Certificates, Request};

    use super::*;

    #[test]
    fn thirty_days_before_it_is_told_with_the_date() {
        const DAY: u64 = 24 * 3600;
        let start = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let made = |days: u64| {
            let (lifetime, now): (Duration, SystemTime) = (Duration::from_secs(days * DAY), start);
            Certificates::issue(&Request { namespace: "n".to_owned(), fleet: None, lifetime, now }).unwrap()
        };
        let (long, short) = (made(100), made(40));
        let cas = Certificate::all(&format!("{}{}", long.ca, short.ca)).unwrap();
        let chain = Certificate::all(&short.server.certificate).unwrap();
        let on_day = |day: i64| soon(&cas, &chain, 1_800_000_000 + day * 24 * 3600);
        assert_eq!(on_day(10), Vec::<String>::new());
        assert_eq!(on_day(11), ["the certificate of the xDS server expires at 2027-02-24T08:00:00Z"]);
        assert_eq!(on_day(71).len(), 2);
        assert_eq!(on_day(41)[0], "the certificate of the xDS server expired at 2027-02-24T08:00:00Z");
    }
}

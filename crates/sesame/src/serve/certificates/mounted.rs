//! Files of the xDS server that somebody else writes: a Job, cert-manager, an operator.
//!
//! In: how the files are loaded. Out: what is made of them, at once or as soon as the certificate is valid. A certificate that has
//! expired keeps a replica from serving xDS and from nothing else: status is written, debug pages answer, readiness says why, and a
//! renewed file is used within a second. A process that ended would be restarted less and less often, up to every five minutes. Any
//! other error in the files is one of the installation, and ends the process at its start.

use std::error::Error;
use std::time::Duration;

use anyhow::Result;
use model::Code;
use tls::TlsError;
use tokio::sync::watch;
use tokio::time;
use tracing::{error, info, warn};

use crate::problem::Coded;

/// How often the files are read while the certificate is not valid. Nothing else happens when it becomes so.
const LOOK: Duration = Duration::from_secs(1);

/// What is made of the files; nothing while the certificate has expired or is not valid yet.
pub fn load<T>(read: impl Fn() -> Result<T, TlsError>) -> Result<Option<T>> {
    match read() {
        Ok(made) => Ok(Some(made)),
        Err(why) if why.is_about_time() => Ok(None),
        Err(why) => {
            Err(why).coded(Code::CertificateFiles, || "the certificates of the xDS server cannot be used".to_owned())
        }
    }
}

/// Reads the files until they can be used. Why they cannot is logged, and said to whoever asks what `waits_for` has.
pub async fn wait<T>(read: impl Fn() -> Result<T, TlsError>, waits_for: &watch::Sender<Option<String>>) -> T {
    let (mut look, mut last) = (time::interval(LOOK), String::new());
    loop {
        look.tick().await;
        let why = match read() {
            Ok(made) => {
                if !last.is_empty() {
                    info!("the certificate of the xDS server is valid; xDS is served");
                }
                waits_for.send_replace(None);
                return made;
            }
            Err(why) => why,
        };
        let text = text(&why);
        if text != last {
            let code = Code::XdsCertificateNotValid;
            match why.is_about_time() {
                true => error!(%code, "{code}: {}: {text} ({})", code.title(), code.help()),
                // Half a renewal, as a rule: the certificate is there, and its key is not.
                false => warn!("the renewed certificate of the xDS server cannot be used: {text}"),
            }
            waits_for.send_replace(Some(text.clone()));
            last = text;
        }
    }
}

/// An error with its causes.
pub fn text(error: &TlsError) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::cell::RefCell;
    use std::path::PathBuf;

    use super::*;

    fn expired() -> TlsError {
        TlsError::Expired(PathBuf::from("tls.crt"), "a day".to_owned())
    }

    #[test]
    fn only_a_certificate_that_is_not_valid_now_is_waited_for() {
        assert_eq!(load(|| Ok(7)).unwrap(), Some(7));
        assert_eq!(load::<()>(|| Err(expired())).unwrap(), None);
        assert_eq!(load::<()>(|| Err(TlsError::NotYetValid(PathBuf::new(), String::new()))).unwrap(), None);
        let error = load::<()>(|| Err(TlsError::Empty(PathBuf::from("tls.crt")))).unwrap_err();
        assert_eq!(crate::problem::code(&error), Some(Code::CertificateFiles));
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_read_until_they_can_be_used_and_what_is_wrong_is_said_meanwhile() {
        let (waits_for, said) = watch::channel(None);
        let empty = || TlsError::Empty(PathBuf::from("tls.key"));
        // The last is read first.
        let answers = RefCell::new(vec![Ok("made"), Err(empty()), Err(expired()), Err(expired())]);
        let seen = RefCell::new(Vec::new());
        let read = || {
            seen.borrow_mut().push(said.borrow().clone());
            answers.borrow_mut().pop().unwrap()
        };
        assert_eq!(wait(read, &waits_for).await, "made");
        let expected = [None, Some("the certificate in tls.crt expired on a day")];
        let seen = seen.into_inner();
        assert_eq!(seen[..2].iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        assert_eq!(seen[3].as_deref(), Some("tls.key contains no certificate"));
        assert_eq!(*said.borrow(), None);
    }
}

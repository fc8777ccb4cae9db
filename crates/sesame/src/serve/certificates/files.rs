//! The files that a replica serves with, as its Secret has them.
//!
//! Only what can be used replaces what is there: a Secret that somebody has damaged leaves the last good files in place, also
//! for the next start of this container.

use std::path::{Path, PathBuf};

use certgen::Pair;
use certgen::files::{PRIVATE, PUBLIC, write_one};
use certgen::rotation::Certificate;
use model::Code;
use tracing::{error, warn};
use xds::{Tls, TlsFiles};

use super::mounted;

pub struct Files {
    files: TlsFiles,
    /// What was last refused, so that it is reported once, and why.
    refused: Option<(Pair, String, String)>,
}

impl Files {
    pub fn new(files: TlsFiles) -> Self {
        Self { files, refused: None }
    }

    /// Whether they can be served with.
    pub fn are_usable(&self) -> bool {
        Tls::load(self.files.clone()).is_ok()
    }

    /// The CAs and the certificate in them.
    pub fn certificates(&self) -> Option<(Vec<Certificate>, Certificate)> {
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        let bundle = Certificate::all(&read(&self.files.ca)?)?;
        Some((bundle, Certificate::first(&read(&self.files.certificate)?)?))
    }

    /// Replaces them; says whether they are others now.
    pub fn take(&mut self, pair: &Pair, bundle: &str) -> bool {
        let is_there = |path: &Path, text: &str| std::fs::read_to_string(path).is_ok_and(|there| there == text);
        let files = &self.files;
        let all = [
            (&files.ca, bundle, PUBLIC),
            (&files.key, &pair.key, PRIVATE),
            (&files.certificate, &pair.certificate, PUBLIC),
        ];
        if all.iter().all(|(path, text, _)| is_there(path, text)) && self.are_usable() {
            return false;
        }
        let refused = (pair.clone(), bundle.to_owned());
        let is_new = self.refused.as_ref().is_none_or(|(pair, bundle, _)| (pair, bundle) != (&refused.0, &refused.1));
        let written = try_out(all).and_then(|()| {
            all.iter().try_for_each(|(path, text, mode)| {
                write_one(path.parent().unwrap_or(Path::new(".")), path, text, *mode).map_err(Rejection::from)
            })
        });
        // What is not valid yet will be, so what was refused is tried again; that is logged once.
        if let Err(Rejection { code, why }) = &written
            && is_new
        {
            match self.are_usable() {
                true => warn!(
                    %code,
                    "keeping the current certificates of the xDS server: those in the Secret cannot be used: {why}"
                ),
                false => error!(
                    %code,
                    "{code}: xDS is not served: the certificates in the Secret cannot be used: {why} ({})",
                    code.help()
                ),
            }
        }
        let is_written = written.is_ok();
        self.refused = written.err().map(|rejection| (refused.0, refused.1, rejection.why));
        is_written
    }

    /// Why those in the Secret were refused, if they were.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.as_ref().map(|(.., why)| why.as_str())
    }
}

/// Why the files in a Secret do not replace those that are there.
struct Rejection {
    code: Code,
    why: String,
}

impl From<std::io::Error> for Rejection {
    fn from(error: std::io::Error) -> Self {
        Self { code: Code::FileNotWritable, why: error.to_string() }
    }
}

/// Writes the files (the CA, the key, the certificate) to a folder of their own and reads them there.
fn try_out(all: [(&PathBuf, &str, u32); 3]) -> Result<(), Rejection> {
    let dir = all[0].0.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let folder = tempfile::tempdir_in(dir)?;
    let inside = |path: &Path| folder.path().join(path.file_name().unwrap_or_default());
    for (path, text, mode) in all {
        write_one(folder.path(), &inside(path), text, mode)?;
    }
    let [ca, key, certificate] = all.map(|(path, ..)| inside(path));
    Tls::load(TlsFiles { ca, certificate, key }).map(drop).map_err(|error| {
        let code = if error.is_about_time() { Code::XdsCertificateNotValid } else { Code::CertificateFiles };
        // The folder is one of many that come and go.
        Rejection { code, why: mounted::text(&error).replace(&format!("{}/", folder.path().display()), "") }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    use certgen::{Certificates, Request};

    use super::*;
    use crate::serve::certificates::Issuing;

    fn made() -> Certificates {
        let (lifetime, now) = (Duration::from_secs(3600), SystemTime::now());
        Certificates::issue(&Request { namespace: "n".to_owned(), fleet: None, lifetime, now }).unwrap()
    }

    #[test]
    fn what_can_be_used_replaces_what_is_there_and_the_key_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let issuing = Issuing { dir: folder.path().join("made/now"), policy: Default::default() };
        let mut files = Files::new(issuing.files());
        assert!(!files.are_usable() && files.certificates().is_none());
        let (one, two) = (made(), made());
        assert!(files.take(&one.server, &one.ca));
        assert!(!files.take(&one.server, &one.ca), "nothing is new");
        assert!(files.are_usable());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&issuing.files().key), 0o600);
        // The key of another certificate.
        let mixed = Pair { certificate: two.server.certificate.clone(), key: one.server.key.clone() };
        assert!(!files.take(&mixed, &two.ca));
        assert!(!files.take(&two.server, "no PEM"));
        // One that has expired.
        let (lifetime, now) = (Duration::from_secs(3600), SystemTime::now() - Duration::from_secs(7200));
        let request = Request { namespace: "n".to_owned(), fleet: None, lifetime, now };
        let old = Certificates::issue(&request).unwrap();
        assert!(!files.take(&old.server, &old.ca));
        assert!(files.refusal().is_some_and(|why| why.contains("expired on")), "{:?}", files.refusal());
        // An Envoy's: it has not the names of a server.
        assert!(!files.take(&two.envoy, &two.ca));
        let key = std::fs::read_to_string(issuing.files().key).unwrap();
        assert_eq!(key, one.server.key);
        assert!(files.take(&two.server, &format!("{}{}", two.ca, one.ca)));
        assert_eq!(files.refusal(), None);
        let (bundle, leaf) = files.certificates().unwrap();
        assert!(leaf.is_signed_by(&bundle[0]) && !leaf.is_signed_by(&bundle[1]));
        let left = std::fs::read_dir(&issuing.dir).unwrap().count();
        assert_eq!(left, 3, "nothing else is left in the folder");
    }
}

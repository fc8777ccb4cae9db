//! The files that a replica serves with, as its Secret has them.
//!
//! Only what can be used replaces what is there: a Secret that somebody has damaged leaves the last good files in place, also
//! for the next start of this container.

use std::path::Path;

use certgen::Pair;
use certgen::files::{PRIVATE, PUBLIC, write_one};
use certgen::rotation::Certificate;
use tracing::warn;
use xds::{Tls, TlsFiles};

pub struct Files {
    files: TlsFiles,
    /// What was last refused, so that it is reported once.
    refused: Option<(Pair, String)>,
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
        if all.iter().all(|(path, text, _)| is_there(path, text)) {
            return false;
        }
        let refused = (pair.clone(), bundle.to_owned());
        let is_new = self.refused.as_ref() != Some(&refused);
        let written = try_out(&all).and_then(|()| {
            all.iter().try_for_each(|(path, text, mode)| {
                write_one(path.parent().unwrap_or(Path::new(".")), path, text, *mode)?;
                Ok(())
            })
        });
        // What is not valid yet will be, so what was refused is tried again; that is logged once.
        if let Err(error) = &written
            && is_new
        {
            warn!("keeping the current certificates of the xDS server: those in the Secret cannot be used: {error:#}");
        }
        self.refused = written.is_err().then_some(refused);
        written.is_ok()
    }
}

/// Writes the files to a folder of their own and reads them there.
fn try_out(all: &[(&std::path::PathBuf, &str, u32)]) -> anyhow::Result<()> {
    let dir = all[0].0.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let folder = tempfile::tempdir_in(dir)?;
    let mut paths = Vec::new();
    for (path, text, mode) in all {
        let path = folder.path().join(path.file_name().unwrap_or_default());
        write_one(folder.path(), &path, text, *mode)?;
        paths.push(path);
    }
    let [ca, key, certificate] = &paths[..] else { anyhow::bail!("three files") };
    Tls::load(TlsFiles { ca: ca.clone(), certificate: certificate.clone(), key: key.clone() })?;
    Ok(())
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
        // An Envoy's: it has not the names of a server.
        assert!(!files.take(&two.envoy, &two.ca));
        let key = std::fs::read_to_string(issuing.files().key).unwrap();
        assert_eq!(key, one.server.key);
        assert!(files.take(&two.server, &format!("{}{}", two.ca, one.ca)));
        let (bundle, leaf) = files.certificates().unwrap();
        assert!(leaf.is_signed_by(&bundle[0]) && !leaf.is_signed_by(&bundle[1]));
        let left = std::fs::read_dir(&issuing.dir).unwrap().count();
        assert_eq!(left, 3, "nothing else is left in the folder");
    }
}

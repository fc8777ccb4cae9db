//! A file as it changes.
//!
//! In: a path. Out: its text, each time that it is another. The file is read at intervals: that sees a rewritten file, a renamed
//! one and the swapped symlink of a mounted ConfigMap alike, on every file system. A text counts once it was read twice in a row,
//! so that a file that is being written is not taken for a short one.

use std::error::Error;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::Code;
use source::{Problem, SourceLocation};
use tokio::time::{self, Instant};

/// How long after it was read a file is read again.
const INTERVAL: Duration = Duration::from_millis(400);
/// The same where it had another text than before.
const CONFIRMATION: Duration = Duration::from_millis(100);
/// The largest file that is read.
const LARGEST: u64 = 1 << 20;

/// What was read: the text, or why there is none.
type Read = Result<String, (Code, String)>;

/// A file that is followed.
pub struct FollowedFile {
    path: Arc<Path>,
    next_look: Instant,
    /// What was read last.
    seen: Option<Read>,
    /// What was reported last.
    reported: Option<Read>,
}

impl FollowedFile {
    /// Nothing is known of it yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path: path.into(), next_look: Instant::now(), seen: None, reported: None }
    }

    /// The text, once it is another than it was. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<String, Vec<Problem>> {
        loop {
            time::sleep_until(self.next_look).await;
            let now = read(self.path.clone()).await;
            let is_settled = self.seen.as_ref() == Some(&now);
            self.next_look = Instant::now() + if is_settled { INTERVAL } else { CONFIRMATION };
            if is_settled && self.reported.as_ref() != Some(&now) {
                self.reported = Some(now.clone());
                let at = SourceLocation::file(self.path.clone());
                return now.map_err(|(code, why)| vec![Problem::new(code, why).at(at)]);
            }
            self.seen = Some(now);
        }
    }
}

/// On another thread: whatever a file system takes for it, nobody else waits.
async fn read(path: Arc<Path>) -> Read {
    let text = tokio::task::spawn_blocking(move || read_now(&path)).await;
    text.unwrap_or_else(|error| Err(unreadable(&error)))
}

fn read_now(path: &Path) -> Read {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let length = file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    if length as u64 > LARGEST {
        return Err((Code::FileTooLarge, format!("the configuration file has more than {LARGEST} bytes")));
    }
    Ok(text)
}

fn unreadable(error: &dyn Error) -> (Code, String) {
    (Code::FileNotReadable, format!("the configuration file cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn a_file_is_told_of_once_however_it_changes_and_not_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // As a ConfigMap is mounted.
        for (version, text) in [("..1", "one"), ("..2", "two")] {
            std::fs::create_dir(at(version)).unwrap();
            std::fs::write(at(version).join("sesame.yaml"), text).unwrap();
        }
        symlink("..1", at("..data")).unwrap();
        symlink("..data/sesame.yaml", at("sesame.yaml")).unwrap();
        let mut file = FollowedFile::new(at("sesame.yaml"));
        assert_eq!(file.next().await.unwrap(), "one");
        symlink("..2", at("..new")).unwrap();
        std::fs::rename(at("..new"), at("..data")).unwrap();
        assert_eq!(file.next().await.unwrap(), "two");
        std::fs::remove_file(at("..data")).unwrap();
        let problems = file.next().await.unwrap_err();
        assert_eq!(problems[0].code, Code::FileNotReadable);
        symlink("..2", at("..data")).unwrap();
        assert_eq!(file.next().await.unwrap(), "two");
        std::fs::write(at("..2/sesame.yaml"), "three").unwrap();
        assert_eq!(file.next().await.unwrap(), "three");
        // Half of it was there for a moment.
        file.seen = Some(Ok("fou".to_owned()));
        std::fs::write(at("..2/sesame.yaml"), "four").unwrap();
        assert_eq!(file.next().await.unwrap(), "four");
        std::fs::write(at("..2/sesame.yaml"), "x".repeat(LARGEST as usize + 1)).unwrap();
        assert_eq!(file.next().await.unwrap_err()[0].code, Code::FileTooLarge);
    }
}

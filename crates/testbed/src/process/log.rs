//! The log of a process: a file that the process writes to directly, and that can be awaited.
//!
//! In: the file's path. Out: its tail, or the first line that contains a text. Waiting is by inotify on the file, so it
//! costs nothing and is over the moment the line is written; the end of a process, a pidfd, is awaited the same way.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::inotify;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How much of a log an error shows.
const TAIL_LINES: usize = 30;
const TAIL_BYTES: u64 = 16 * 1024;

/// The log of one process. A restart on the same log appends to it; only lines written since then are found.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
    start: u64,
}

impl Log {
    pub(super) fn create(path: PathBuf) -> io::Result<(Log, File)> {
        let file = File::options().create(true).append(true).open(&path)?;
        let start = file.metadata()?.len();
        Ok((Log { path, start }, file))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All that the process wrote so far.
    pub fn text(&self) -> String {
        self.read_from(self.start)
    }

    /// The first line that contains `text`, if it was written already.
    pub fn find(&self, text: &str) -> Option<String> {
        self.text().lines().find(|line| line.contains(text)).map(str::to_owned)
    }

    /// Waits for a whole line that contains `text`.
    pub async fn line(&self, text: &str) -> io::Result<String> {
        let notify = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        inotify::add_watch(&notify, &self.path, inotify::WatchFlags::MODIFY)?;
        let notify = Readable::new(notify)?;
        let mut at = self.start;
        let mut look = || {
            let new = self.read_from(at);
            let whole = new.rfind('\n').map_or(0, |end| end + 1);
            at += whole as u64;
            new[..whole].lines().find(|line| line.contains(text)).map(str::to_owned)
        };
        // The watch stands before the first look, so nothing written in between is missed.
        if let Some(line) = look() {
            return Ok(line);
        }
        let drain_and_look = |fd: &OwnedFd| {
            let mut buffer = [MaybeUninit::uninit(); 1024];
            let mut events = inotify::Reader::new(fd, &mut buffer);
            while events.next().is_ok() {}
            Ok(look())
        };
        notify.until(drain_and_look).await
    }

    /// The last lines, for an error.
    pub fn tail(&self) -> String {
        let length = fs::metadata(&self.path).map_or(0, |file| file.len());
        let text = self.read_from(self.start.max(length.saturating_sub(TAIL_BYTES)));
        let lines: Vec<_> = text.lines().collect();
        let shown = lines[lines.len().saturating_sub(TAIL_LINES)..].iter().map(|line| format!("  {line}\n"));
        format!("{}  (all of it: {})", shown.collect::<String>(), self.path.display())
    }

    fn read_from(&self, at: u64) -> String {
        let mut bytes = Vec::new();
        // A log that cannot be read has no lines: the caller reports what it waited for anyway.
        let _ = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(at))?;
            file.read_to_end(&mut bytes)
        });
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A descriptor registered with the runtime that is current when it is made.
pub struct Readable(AsyncFd<OwnedFd>);

impl Readable {
    /// Registers a descriptor.
    #[expect(
        deprecated,
        reason = "its successor is unsafe for types that may swap their descriptor; an OwnedFd cannot"
    )]
    pub fn new(fd: OwnedFd) -> io::Result<Readable> {
        AsyncFd::with_interest(fd, Interest::READABLE).map(Readable)
    }

    /// Waits until it can be read, then runs `look`, again and again until that gives a value.
    pub async fn until<T>(&self, mut look: impl FnMut(&OwnedFd) -> io::Result<Option<T>>) -> io::Result<T> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Some(value) = look(ready.get_inner())? {
                return Ok(value);
            }
            ready.clear_ready();
        }
    }
}

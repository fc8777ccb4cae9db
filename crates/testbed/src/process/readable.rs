//! Waiting until a file descriptor of any kind can be read: a pidfd (the process ended), an inotify queue.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

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

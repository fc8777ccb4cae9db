//! What goes on, for a person who waits: one line that moves on a terminal, one line a step elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// One step of a run.
pub struct Progress {
    what: String,
    of: usize,
    done: AtomicUsize,
    start: Instant,
    moves: bool,
}

impl Progress {
    /// A step of so many parts.
    pub fn new(what: impl Into<String>, of: usize) -> Progress {
        let progress = Progress {
            what: what.into(),
            of,
            done: AtomicUsize::new(0),
            start: Instant::now(),
            moves: std::io::stderr().is_terminal(),
        };
        progress.show(0);
        progress
    }

    /// One more part is done.
    pub fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        // Often enough to be seen moving, seldom enough to cost nothing.
        if done.is_multiple_of((self.of / 100).max(1)) {
            self.show(done);
        }
    }

    fn show(&self, done: usize) {
        if self.moves {
            eprint!("\r\x1b[Kbench: {} {done}/{}", self.what, self.of);
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let done = self.done.load(Ordering::Relaxed);
        let clear = if self.moves { "\r\x1b[K" } else { "" };
        eprintln!("{clear}bench: {} {done}/{} in {:.1?}", self.what, self.of, self.start.elapsed());
    }
}

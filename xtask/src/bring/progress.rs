//! What a person sees while parts are made: which one, which of how many, for how long.
//!
//! In: commands that may take minutes and say hundreds of lines. Out: a line at the start, one every quarter of a minute,
//! one at the end; the commands' own words go to a log, whose end is shown when one fails.

use std::cell::Cell;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use parts::Part;

/// A sign of life this often.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How much of a log is shown when a command fails.
const TAIL: usize = 25;

/// The progress of one part.
pub struct Progress {
    title: String,
    started: Instant,
    /// Time that was spent on work, and not on waiting for another run.
    worked: Cell<Duration>,
}

impl Progress {
    /// For the part that is `number` of `of`.
    pub fn new(number: usize, of: usize, part: &Part) -> Progress {
        let title = format!("[{number}/{of}] {} {}", part.name, part.version);
        Progress { title, started: Instant::now(), worked: Cell::default() }
    }

    /// Says something about this part.
    pub fn say(&self, text: &str) {
        eprintln!("{}: {text}", self.title);
    }

    /// Says that it is there; how big, if it is a program.
    pub fn done(&self, program: &Path) {
        let size = fs::metadata(program).map(|data| format!(", {} MB", data.len() / 1_000_000)).unwrap_or_default();
        self.say(&format!("done in {}{size}", human(self.worked.get())));
    }

    /// Runs a command to its end, with its words in `log`.
    pub fn run(&self, what: &str, command: &mut Command, log: &Path) -> Result<()> {
        self.say(what);
        let begun = Instant::now();
        let file = File::create(log).with_context(|| format!("making {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().with_context(|| format!("starting {program}"))?;

        let (ended, end) = mpsc::channel();
        thread::spawn(move || ended.send(child.wait()));
        let status = loop {
            match end.recv_timeout(HEARTBEAT) {
                Ok(status) => break status.with_context(|| format!("waiting for {program}"))?,
                Err(RecvTimeoutError::Timeout) => self.say(&format!(
                    "{what}, {} so far{}",
                    human(self.started.elapsed()),
                    last_line(log).map(|line| format!(" ({line})")).unwrap_or_default()
                )),
                Err(RecvTimeoutError::Disconnected) => bail!("nobody waits for {program} any more"),
            }
        };
        self.worked.set(self.worked.get() + begun.elapsed());
        if status.success() {
            return Ok(());
        }
        Err(anyhow!("{what}: {program} ended with {status}; the end of {}:\n{}", log.display(), tail(log)))
    }
}

/// A duration as a person says it.
pub fn human(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        s @ 10..120 => format!("{s} s"),
        s => format!("{} min {:02} s", s / 60, s % 60),
    }
}

fn last_line(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(80).collect())
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].iter().map(|line| format!("  {line}\n")).collect()
}

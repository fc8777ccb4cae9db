//! Runs test programs in lanes: those of a lane one after the other, the lanes at the same time.
//!
//! In: the programs of each lane. Out: what they print, and how each ended. While more than one lane has something to run, what a program
//! prints is kept until its end and written as one block, between a line when it starts and one when it ends; a line each minute says
//! that it still runs. With one lane everything is written as it comes.
//!
//! Programs stay in our process group and on our terminal, so Ctrl-C reaches all of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::count::Count;
use super::programs::Program;

/// After how long a program that still runs is mentioned, again and again.
const MENTION: Duration = Duration::from_secs(60);

/// A program that ended.
#[derive(Debug)]
pub struct Ended {
    /// Its name.
    pub name: String,
    /// How long it ran.
    pub took: Duration,
    /// What its tests came to.
    pub count: Count,
}

/// Runs all programs of all lanes.
pub fn run(lanes: &[Vec<Program>]) -> Result<Vec<Ended>> {
    run_to(std::io::stdout(), lanes, MENTION)
}

fn run_to(out: impl Write + Send, lanes: &[Vec<Program>], mention: Duration) -> Result<Vec<Ended>> {
    let at_once = lanes.iter().filter(|lane| !lane.is_empty()).count() <= 1;
    let console = Console { out: Mutex::new(out), at_once, mention };
    let run_lane = |lane: &[Program]| lane.iter().map(|program| console.run(program)).collect::<Result<Vec<_>>>();
    thread::scope(|scope| {
        let lanes: Vec<_> = lanes.iter().map(|lane| scope.spawn(|| run_lane(lane))).collect();
        let ended = lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic"));
        Ok(ended.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Where all lanes write.
struct Console<W> {
    out: Mutex<W>,
    /// Lines are written as they come.
    at_once: bool,
    mention: Duration,
}

impl<W: Write + Send> Console<W> {
    /// All of it, with nothing in between.
    fn write(&self, text: &[u8]) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(text)?;
        Ok(out.flush()?)
    }

    fn say(&self, name: &str, what: &str) -> Result<()> {
        self.write(format!("== {name}{what}\n").as_bytes())
    }

    /// Runs one program to its end.
    fn run(&self, program: &Program) -> Result<Ended> {
        let (name, began) = (&program.name, Instant::now());
        self.say(name, "")?;
        let mut block = if self.at_once { Vec::new() } else { format!("== {name}: what it printed\n").into_bytes() };
        let mut counts = [Count::default(), Count::default()];
        let status = self.attend(program, began, |stream, line| {
            counts[stream].take_line(&String::from_utf8_lossy(line));
            if self.at_once {
                return self.write(line);
            }
            block.extend_from_slice(line);
            Ok(())
        });
        let status = status.with_context(|| format!("running {name}"))?;
        let took = began.elapsed();
        let end = if status.success() { String::new() } else { format!("FAILED ({status}) after ") };
        block.extend_from_slice(format!("== {name}: {end}{} s\n\n", took.as_secs()).as_bytes());
        self.write(&block)?;

        let [mut count, errors] = counts;
        count.add(&errors);
        count.take_program(name, status);
        Ok(Ended { name: name.clone(), took, count })
    }

    /// Starts a program, gives each line of its output (0) and error output (1), and waits for its end.
    fn attend(
        &self,
        program: &Program,
        began: Instant,
        mut take: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<ExitStatus> {
        let mut child = program.command()?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdout: Option<Box<dyn Read + Send>> = child.stdout.take().map(|output| Box::new(output) as _);
        let stderr: Option<Box<dyn Read + Send>> = child.stderr.take().map(|output| Box::new(output) as _);
        let (sender, lines) = mpsc::channel();
        thread::scope(|scope| {
            for (stream, output) in [stdout, stderr].into_iter().flatten().enumerate() {
                let sender = sender.clone();
                scope.spawn(move || read_lines(stream, output, &sender));
            }
            drop(sender);
            let mut mention = began + self.mention;
            loop {
                match lines.recv_timeout(mention.saturating_duration_since(Instant::now())) {
                    Ok((stream, line)) => take(stream, &line)?,
                    Err(RecvTimeoutError::Timeout) => {
                        mention += self.mention;
                        self.say(&program.name, &format!(": still runs after {} s", began.elapsed().as_secs()))?;
                    }
                    Err(RecvTimeoutError::Disconnected) => return anyhow::Ok(()),
                }
            }
        })?;
        Ok(child.wait()?)
    }
}

/// Sends each line, with its end, until there are no more.
fn read_lines(stream: usize, output: impl Read, to: &Sender<(usize, Vec<u8>)>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        // What cannot be read has ended; how the program ended tells the rest.
        if output.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return;
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        if to.send((stream, line)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    //! Lanes of small shells, which wait for each other by named pipes where an order matters.
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::path::Path;
    use std::process::Command;

    use super::*;

    const RESULT: &str = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured'";

    fn shell(name: &str, directory: &Path, script: &str) -> Program {
        let path = std::env::var_os("PATH").unwrap();
        Program {
            name: name.to_owned(),
            words: ["sh", "-euc", script].map(Into::into).into(),
            directory: directory.to_owned(),
            environment: vec![("PATH".into(), path)],
        }
    }

    fn pipes<const N: usize>(names: [&str; N]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").args(names).current_dir(&folder).status().unwrap().success());
        folder
    }

    fn ran(lanes: &[Vec<Program>]) -> (String, Vec<Ended>) {
        let mut out = Vec::new();
        let ended = run_to(&mut out, lanes, MENTION).unwrap();
        (String::from_utf8(out).unwrap(), ended)
    }

    #[test]
    fn lanes_run_at_the_same_time_and_their_programs_one_after_the_other() {
        let folder = pipes(["go", "gone"]);
        // Each half of the first program waits for a program of the other lane.
        let first = shell("first", folder.path(), "echo one; echo x >go; read _ <gone; echo two");
        let second = shell("second", folder.path(), "read _ <go; echo three; echo oh >&2");
        let third = shell("third", folder.path(), "echo x >gone");
        let (text, ended) = ran(&[vec![first], vec![second, third]]);
        assert_eq!(ended.iter().map(|ended| ended.name.as_str()).collect::<Vec<_>>(), ["first", "second", "third"]);
        assert!(text.contains("== first: what it printed\none\ntwo\n== first: 0 s\n"), "{text}");
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}"));
        assert!(place("== second\n") < place("== second: what it printed\n"));
        assert!(place("== second: 0 s\n") < place("== third\n"));
        assert!(place("== third\n") < place("== first: what it printed\n"));
        assert!(text.contains("\nthree\n") && text.contains("\noh\n"), "{text}");
    }

    #[test]
    fn a_lane_that_is_alone_is_written_as_it_comes() {
        let folder = tempfile::tempdir().unwrap();
        let (text, _) = ran(&[vec![shell("only", folder.path(), "echo one; printf end")], vec![]]);
        assert_eq!(text, "== only\none\nend\n== only: 0 s\n\n");
    }

    #[test]
    fn each_program_is_counted_and_those_that_die_have_failed() {
        let folder = tempfile::tempdir().unwrap();
        let failed = "echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured'; exit 101";
        let scripts = [RESULT, failed, "kill -KILL $$", "exit 3", RESULT];
        let lane = scripts.map(|script| shell("-p a --test b", folder.path(), script));
        let missing = shell("-p a --test c", Path::new("/no/such/folder"), RESULT);
        let (text, ended) = ran(&[lane.into()]);
        let mut count = Count::default();
        ended.iter().for_each(|ended| count.add(&ended.count));
        let died = "failed:\n  -p a --test b: it ended without a result (signal: 9 (SIGKILL))\n  \
            -p a --test b: it ended without a result (exit status: 3)\n";
        assert_eq!(count.summary(), format!("{died}4 passed, 3 failed"));
        assert!(!count.is_good(false));
        assert!(text.contains("== -p a --test b: FAILED (exit status: 101) after 0 s\n"), "{text}");
        assert!(run_to(Vec::new(), &[vec![missing]], MENTION).is_err());
    }

    /// Lets the program go on as soon as it was mentioned twice.
    struct Watcher<'a>(&'a Path, String);

    impl Write for Watcher<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1.push_str(&String::from_utf8_lossy(bytes));
            if bytes.starts_with(b"== long: still runs") && self.1.matches("still runs").count() == 2 {
                std::fs::write(self.0.join("go"), "x\n")?;
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_program_that_runs_long_is_mentioned_again_and_again() {
        let folder = pipes(["go"]);
        let mut out = Watcher(folder.path(), String::new());
        let long = shell("long", folder.path(), "echo one; read _ <go; echo two");
        run_to(&mut out, &[vec![long], vec![shell("other", folder.path(), RESULT)]], Duration::from_millis(20))
            .unwrap();
        assert!(out.1.contains("== long: still runs after 0 s\n"), "{}", out.1);
        assert!(out.1.contains("one\ntwo\n== long: 0 s\n"), "{}", out.1);
    }
}

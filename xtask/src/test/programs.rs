//! Which test programs there are, and how cargo starts each of them.
//!
//! In: words for `cargo test`. Out: what cargo would have run, in its order: program, arguments, working directory, environment. Doc tests
//! are run by cargo meanwhile.
//!
//! Cargo is the only one who knows what its words choose, which of them go to the programs, and what a program finds in its
//! environment. So it is not asked for a list: it runs the tests, and their runner (`tools/sandbox`) writes down how it was called instead
//! of starting the program. Cargo's messages in JSON tell which target each program was built from. If cargo has another runner, by
//! `CARGO_TARGET_…_RUNNER`, it runs the tests itself, one after the other, and they are counted all the same.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::count::{Count, without_colour};

/// Where the runner writes.
const RECORDS: &str = "SESAME_TEST_RECORDS";

/// A test program, and how cargo starts it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// What chooses it on cargo's command line: `-p sesame --test cluster`.
    pub name: String,
    /// The runner, the program and its arguments.
    pub words: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl Program {
    /// Starts it as cargo does.
    pub fn command(&self) -> Result<Command> {
        let (first, rest) = self.words.split_first().context("a test program without a name")?;
        let mut command = Command::new(first);
        command.args(rest).current_dir(&self.directory).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }
}

/// What a run of cargo leaves to be run, and what it ran.
pub struct Listing {
    /// The programs that are to be run.
    pub programs: Vec<Program>,
    /// What cargo ran itself.
    pub count: Count,
}

/// Runs `cargo test` with `arguments`, on the whole workspace if there are none, all but the programs.
pub fn list(arguments: &[String]) -> Result<Listing> {
    let records = Records::create()?;
    let mut cargo = crate::cargo();
    cargo.current_dir(crate::root()).args(["test", "--no-fail-fast", "--message-format=json-render-diagnostics"]);
    if arguments.is_empty() {
        cargo.arg("--workspace");
    }
    cargo.args(arguments).env(RECORDS, &records.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    if std::io::stderr().is_terminal() {
        cargo.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = cargo.spawn().context("starting cargo")?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let stderr = child.stderr.take().context("cargo has no error output")?;

    let errors = thread::spawn(move || pass_on(stderr, std::io::stderr(), announces));
    let mut targets = Targets::default();
    let mut count = pass_on(stdout, std::io::stdout(), |line| targets.take_message(line))?;
    count.add(&errors.join().expect("passing on lines does not panic")?);
    let status = child.wait().context("waiting for cargo")?;
    count.take_end(status.success());

    let bytes = fs::read(&records.0).with_context(|| format!("reading {}", records.0.display()))?;
    let mut programs = parse(&bytes)?;
    programs.iter_mut().for_each(|program| targets.name(program));
    Ok(Listing { programs, count })
}

/// The file that the runner appends to; removed in the end.
struct Records(PathBuf);

impl Records {
    fn create() -> Result<Records> {
        let path = std::env::temp_dir().join(format!("sesame-test-records-{}", std::process::id()));
        File::create_new(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Records(path))
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // A file of some kilobytes in a temporary folder is not worth an error.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes on all lines that `is_ours` does not take, byte for byte, and counts what they tell.
fn pass_on(from: impl Read, mut to: impl Write, mut is_ours: impl FnMut(&str) -> bool) -> Result<Count> {
    let mut from = BufReader::new(from);
    let mut count = Count::default();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        if !is_ours(&text) {
            to.write_all(&line)?;
            to.flush()?;
            count.take_line(&text);
        }
        line.clear();
    }
    Ok(count)
}

/// Cargo says that it runs a program: `Running tests/cluster.rs (target/debug/deps/cluster-0a1b)`. It does not, yet.
fn announces(line: &str) -> bool {
    let line = without_colour(line);
    line.trim_start()
        .strip_prefix("Running ")
        .is_some_and(|what| !what.starts_with('`') && what.trim_end().ends_with(')'))
}

/// What each program was built from, as cargo's messages tell.
#[derive(Debug, Default)]
struct Targets(HashMap<PathBuf, String>);

impl Targets {
    /// Whether a line is a message; if it is about a test program, it is noted.
    fn take_message(&mut self, line: &str) -> bool {
        let Some(message) =
            line.starts_with("{\"reason\":").then(|| serde_json::from_str::<Value>(line).ok()).flatten()
        else {
            return false;
        };
        let target = &message["target"];
        if let (Some(program), Some(kind), Some(name), Some(true)) = (
            message["executable"].as_str(),
            target["kind"][0].as_str(),
            target["name"].as_str(),
            message["profile"]["test"].as_bool(),
        ) {
            self.0.insert(program.into(), choice(kind, name));
        }
        true
    }

    /// Names a program by what chooses it.
    fn name(&self, program: &mut Program) {
        let package = program.environment.iter().find(|(name, _)| name == "CARGO_PKG_NAME");
        let package = package.map(|(_, package)| package.to_string_lossy()).unwrap_or_default();
        let file = program.words.get(1).map(Path::new).unwrap_or(Path::new(""));
        let choice = self.0.get(file).cloned().unwrap_or_else(|| file.display().to_string());
        program.name = format!("-p {package} {choice}");
    }
}

/// The word of cargo's command line that chooses a target.
fn choice(kind: &str, name: &str) -> String {
    match kind {
        "bin" | "test" | "bench" | "example" => format!("--{kind} {name}"),
        _ => "--lib".to_owned(),
    }
}

/// Reads what the runner wrote of each program: directory, number of words, words, environment, and an empty item.
fn parse(bytes: &[u8]) -> Result<Vec<Program>> {
    let mut items = bytes.split_inclusive(|&byte| byte == 0).map(|item| OsStr::from_bytes(&item[..item.len() - 1]));
    ensure!(bytes.last().is_none_or(|&last| last == 0), "the runner was cut short");
    let mut programs = Vec::new();
    while let Some(directory) = items.next() {
        let number = items.next().and_then(OsStr::to_str).and_then(|number| number.parse().ok());
        let number: usize = number.context("the runner did not say how many words a program has")?;
        let words: Vec<_> = items.by_ref().take(number).map(OsStr::to_owned).collect();
        ensure!(words.len() == number, "the runner was cut short");
        let environment = items.by_ref().take_while(|item| !item.is_empty()).filter_map(variable);
        let environment = environment.filter(|(name, _)| name != RECORDS).collect();
        programs.push(Program { name: String::new(), words, directory: directory.into(), environment });
    }
    Ok(programs)
}

/// `NAME=VALUE`.
fn variable(item: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = item.as_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=')?;
    let text = |bytes| OsStr::from_bytes(bytes).to_owned();
    Some((text(&bytes[..equals]), text(&bytes[equals + 1..])))
}

#[cfg(test)]
mod tests {
    //! From what cargo and the runner write to programs that can be started.
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const RUNNER: &str = "/tree/tools/sandbox";

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn each_program_has_its_words_its_directory_and_its_environment() {
        let bytes = b"/tree/crates/a\x002\0/tree/tools/sandbox\0/target/debug/deps/a-1\0CARGO_PKG_NAME=a\0\
            SESAME_TEST_RECORDS=/tmp/r\0LINES=one\ntwo=2\0EMPTY=\0\0\
            /tree/crates/b\x004\0/tree/tools/sandbox\0/target/debug/deps/b-2\0--exact\0a name\0CARGO_PKG_NAME=b\0\0";
        let programs = parse(bytes).unwrap();
        let a = Program {
            name: String::new(),
            words: [RUNNER, "/target/debug/deps/a-1"].map(OsString::from).into(),
            directory: "/tree/crates/a".into(),
            environment: pairs(&[("CARGO_PKG_NAME", "a"), ("LINES", "one\ntwo=2"), ("EMPTY", "")]),
        };
        let b = Program {
            name: String::new(),
            words: [RUNNER, "/target/debug/deps/b-2", "--exact", "a name"].map(OsString::from).into(),
            directory: "/tree/crates/b".into(),
            environment: pairs(&[("CARGO_PKG_NAME", "b")]),
        };
        assert_eq!(programs, [a, b]);
        assert_eq!(parse(b"").unwrap(), []);
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        for bytes in
            [&b"/tree\x002\0/tree/tools/sand"[..], b"/tree\x002\0/tree/tools/sandbox\0", b"/tree\0", b"/tree\0x\0"]
        {
            parse(bytes).unwrap_err();
        }
    }

    #[test]
    fn a_program_is_named_by_what_chooses_it() {
        let mut targets = Targets::default();
        let built = |kind: &str, name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///tree/crates/a#0.1.0","target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"opt_level":"0","test":{test}}},"executable":{executable},"fresh":true}}"#
            )
        };
        for line in [
            built("lib", "a", false, "null"),
            built("bin", "a", false, "\"/target/debug/a\""),
            built("lib", "a", true, "\"/target/debug/deps/a-1\""),
            built("bin", "a", true, "\"/target/debug/deps/a-2\""),
            built("test", "long_one", true, "\"/target/debug/deps/long_one-3\""),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ] {
            assert!(targets.take_message(&format!("{line}\n")), "{line}");
        }
        assert!(!targets.take_message("test a ... ok\n") && !targets.take_message("{\"reason\": no\n"));
        assert_eq!(targets.0.len(), 3);
        let name = |file: &str| {
            let words = [RUNNER, file].map(OsString::from).into();
            let mut program = Program { words, environment: pairs(&[("CARGO_PKG_NAME", "a")]), ..Program::default() };
            targets.name(&mut program);
            program.name
        };
        assert_eq!(name("/target/debug/deps/a-1"), "-p a --lib");
        assert_eq!(name("/target/debug/deps/a-2"), "-p a --bin a");
        assert_eq!(name("/target/debug/deps/long_one-3"), "-p a --test long_one");
        assert_eq!(name("/elsewhere/deps/b-4"), "-p a /elsewhere/deps/b-4");
    }

    #[test]
    fn what_cargo_does_not_run_yet_is_not_announced() {
        assert!(announces("     Running tests/a.rs (target/debug/deps/a-0a1b)\n"));
        assert!(announces(
            "\u{1b}[1m\u{1b}[92m     Running\u{1b}[0m unittests src/lib.rs (target/debug/deps/a-0a1b)\n"
        ));
        assert!(!announces("     Running `rustc --crate-name a (b)`\n"));
        assert!(!announces("   Doc-tests a\n"));
        assert!(!announces("   Compiling a v0.1.0 (/tree/crates/a)\n"));
    }

    #[test]
    fn a_program_gets_the_recorded_environment_alone() {
        let words = ["sh", "-c", "pwd; echo \"$A-${CARGO-none}\""].map(OsString::from).into();
        let environment = pairs(&[("A", "1"), ("PATH", "/usr/bin:/bin")]);
        let program = Program { name: String::new(), words, directory: "/".into(), environment };
        let output = program.command().unwrap().output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "/\n1-none\n");
    }
}

//! The archive: files in a folder, compressed, and a list of what is not available.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Error, Result, anyhow};
use flate2::Compression;
use flate2::write::GzEncoder;
use image::tar::Writer;
use model::Code;

use crate::problem::Coded;

/// The folder that everything is in.
const FOLDER: &str = "sesame-bug-report";

/// What goes into the archive.
#[derive(Default)]
pub struct Bundle {
    files: Vec<(String, String)>,
    failures: Vec<(String, String)>,
}

impl Bundle {
    /// Adds a file.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.files.push((name.into(), text.into()));
    }

    /// Records that a file could not be collected, and prints it.
    pub fn failed(&mut self, name: &str, error: &Error) {
        eprintln!("{name} is missing: {error:#}");
        self.failures.push((name.to_owned(), format!("{error:#}")));
    }

    /// Whether anything could not be collected.
    pub fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// The first failure.
    pub fn first_failure(&self) -> Error {
        let words = self.failures.first().map_or("no answer", |(_, words)| words);
        crate::problem::Problem::of(Code::ControllerNotFound, words.to_owned())
    }

    /// Writes the archive, for its owner only; `-` is standard output.
    pub fn write(self, path: &Path) -> Result<()> {
        if path == Path::new("-") {
            let written = self.archive(io::stdout().lock());
            return written.coded(Code::FileNotWritable, || "cannot print".to_owned());
        }
        let failed = || format!("{} cannot be written", path.display());
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(anyhow!(error)).coded(Code::OutputExists, failed);
            }
            file => file.coded(Code::FileNotWritable, failed)?,
        };
        self.archive(file).coded(Code::FileNotWritable, failed)
    }

    fn archive(mut self, out: impl Write) -> io::Result<()> {
        if !self.failures.is_empty() {
            let lines = self.failures.iter().map(|(name, why)| format!("{name}: {why}\n"));
            self.files.push(("errors.txt".to_owned(), lines.collect()));
        }
        let mut tar = Writer::new(GzEncoder::new(out, Compression::default()));
        tar.folder(FOLDER, 0o755)?;
        for (name, text) in &self.files {
            let bytes = text.as_bytes();
            tar.file(&format!("{FOLDER}/{name}"), 0o644, bytes.len() as u64, |out| out.write_all(bytes))?;
        }
        tar.finish()?.finish()?.flush()
    }
}

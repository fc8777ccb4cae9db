//! What a command prints, and files that it leaves behind: whole or not at all, moved into place so that whoever watches them
//! notices.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Result;
use model::Code;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use source::snippet::Style;

use crate::problem::Coded;

/// Whoever read our output has seen enough: the end of the command, and no failure.
#[derive(Debug, thiserror::Error)]
#[error("the output was closed")]
pub struct OutputClosed;

/// How findings are shown: in colours on a terminal, unless `NO_COLOR` is set or the terminal has none.
pub fn style(is_terminal: bool) -> Style {
    style_by(is_terminal, |name| std::env::var_os(name))
}

/// The same, by the values of these variables.
fn style_by(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> Style {
    let is_unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_some_and(|terminal| terminal == "dumb");
    if is_terminal && !is_unwanted && !is_dumb { Style::Colour } else { Style::Plain }
}

/// Makes standard output and standard error append, where they are files: another process that opens the same file, as Envoy does for
/// an access log in `/dev/stdout`, writes at its end, and ours would be written over it.
pub fn append() {
    let append = |output: BorrowedFd<'_>| {
        let is_file = fstat(output).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        if is_file && let Ok(flags) = fcntl_getfl(output) {
            // What cannot be changed stays as it was given to us.
            let _as_given = fcntl_setfl(output, flags | OFlags::APPEND);
        }
    };
    append(io::stdout().as_fd());
    append(io::stderr().as_fd());
}

/// Writes a text that all may read, with the folders above it; `-` is standard output.
pub fn write(path: &Path, text: &str) -> Result<()> {
    if path == Path::new("-") {
        return match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
            result => result.coded(Code::FileNotWritable, || "cannot print".to_owned()),
        };
    }
    replace(path, text).coded(Code::FileNotWritable, || format!("{} cannot be written", path.display()))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_whose_users_want_them() {
        let by = |is_terminal, set: &[(&str, &str)]| {
            style_by(is_terminal, |name| set.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into()))
        };
        assert_eq!(by(true, &[]), Style::Colour);
        assert_eq!(by(true, &[("TERM", "xterm-256color")]), Style::Colour);
        assert_eq!(
            by(true, &[("NO_COLOR", "")]),
            Style::Colour,
            "an empty value says nothing, by the rules of no-color.org"
        );
        assert_eq!(by(true, &[("NO_COLOR", "1")]), Style::Plain);
        assert_eq!(by(true, &[("NO_COLOR", "0")]), Style::Plain, "any value counts");
        assert_eq!(by(true, &[("TERM", "dumb")]), Style::Plain);
        assert_eq!(by(false, &[]), Style::Plain);
        assert_eq!(by(false, &[("TERM", "xterm-256color")]), Style::Plain);
    }
}

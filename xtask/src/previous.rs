//! The previous version, for scenarios that go from it to this tree and back.
//!
//! In: the commit in `deploy/previous-version`. Out: a folder in the cache with its program and its manifests, whose path is printed.
//! It is built once for each commit, from a checkout and in a target folder that are removed again. The target folder is not that of
//! this tree: cargo knows the crates of a workspace by their paths in it, so it would take those of one version for those of the other
//! wherever their sources are older than what was built.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{cargo, root};

const FILE: &str = "deploy/previous-version";

/// Builds it, unless it is there, and prints where it is.
pub fn build() -> Result<()> {
    let text = fs::read_to_string(root().join(FILE)).context(FILE)?;
    let commit = commit(&text).context("deploy/previous-version names no commit")?;
    let folder = parts::cache()?.join("previous").join(commit);
    if !folder.join("sesame").is_file() {
        fs::create_dir_all(&folder)?;
        make(commit, &folder)?;
    }
    println!("{}", folder.display());
    Ok(())
}

/// The first line that is not a comment.
fn commit(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}

fn make(commit: &str, folder: &Path) -> Result<()> {
    let source = folder.join("source");
    if !source.is_dir() {
        run(Command::new("git")
            .current_dir(root())
            .args(["worktree", "add", "--force", "--detach"])
            .arg(&source)
            .arg(commit))
        .with_context(|| format!("checking out {commit}; a shallow clone needs `git fetch --unshallow`"))?;
    }
    let target = folder.join("target");
    run(cargo().current_dir(&source).args(["build", "-q", "-p", "sesame"]).env("CARGO_TARGET_DIR", &target))?;
    copy(&source.join("deploy"), &folder.join("deploy"))?;
    // Last: it says that the rest is there.
    fs::copy(target.join("debug/sesame"), folder.join("sesame"))?;
    fs::remove_dir_all(&target)?;
    run(Command::new("git").current_dir(root()).args(["worktree", "remove", "--force"]).arg(&source))
}

fn run(command: &mut Command) -> Result<()> {
    // Standard output is for the path alone.
    let status = command.stdout(std::io::stderr()).status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_is_the_first_line_that_is_no_comment() {
        assert_eq!(commit("# why\n\n abc \n def"), Some("abc"));
        assert_eq!(commit("# why\n"), None);
    }
}

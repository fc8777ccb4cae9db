//! What a release has besides the image: an archive of the binary, manifests, CRDs, chart, dashboards and alerts, notes, checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use image::tar::Writer;

use crate::{VERSION, root};

/// Writes everything into `dist`, which has the image already.
pub fn write(dist: &Path, binary: &Path, architecture: &str) -> Result<()> {
    let deploy = root().join("deploy");
    for form in ["sesame.yaml", "sesame-deployment.yaml", "sesame-gateway.yaml", "sesame-certgen.yaml"] {
        fs::copy(deploy.join(form), dist.join(form)).with_context(|| form.to_owned())?;
    }
    fs::write(dist.join("sesame-crds.yaml"), crds(&deploy.join("crds"))?)?;
    chart(&deploy.join("chart"), dist)?;
    let monitoring = files_below(&deploy.join("monitoring"), "sesame-monitoring")?;
    archive(&dist.join(format!("sesame-monitoring-{VERSION}.tar.gz")), monitoring, &[])?;
    let name = format!("sesame-{VERSION}-linux-{architecture}");
    let files = vec![
        (format!("{name}/LICENSE"), root().join("LICENSE"), 0o644),
        (format!("{name}/README.md"), root().join("README.md"), 0o644),
        (format!("{name}/sesame"), binary.to_owned(), 0o755),
    ];
    // The names by which it is Contour's program, and a plugin of kubectl.
    let links = ["contour", "kubectl-sesame"].map(|link| (format!("{name}/{link}"), "sesame"));
    archive(&dist.join(format!("{name}.tar.gz")), files, &links)?;
    let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
    fs::write(dist.join("NOTES.md"), notes(&changelog, env!("CARGO_PKG_VERSION"))?)?;
    let sums = checksums(dist)?;
    fs::write(dist.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    Ok(())
}

/// All CRDs, in the order of their files' names.
fn crds(folder: &Path) -> Result<String> {
    let mut text = String::new();
    for (_, file, _) in files_below(folder, "")? {
        text += &format!("---\n{}", fs::read_to_string(&file)?);
    }
    Ok(text)
}

/// The chart as `helm package` names it, without the times that it would put in.
fn chart(folder: &Path, dist: &Path) -> Result<()> {
    let name = format!("sesame-{}.tgz", env!("CARGO_PKG_VERSION"));
    archive(&dist.join(name), files_below(folder, "sesame")?, &[])
}

/// All files below a folder, in order: their path in an archive, where they are, and their mode.
fn files_below(folder: &Path, prefix: &str) -> Result<Vec<(String, PathBuf, u32)>> {
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        entries.push(entry?.path());
    }
    entries.sort();
    let mut files = Vec::new();
    for path in entries {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let inside = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        match path.is_dir() {
            true => files.extend(files_below(&path, &inside)?),
            false => files.push((inside, path, 0o644)),
        }
    }
    Ok(files)
}

/// A compressed archive with these files and links.
fn archive(path: &Path, files: Vec<(String, PathBuf, u32)>, links: &[(String, &str)]) -> Result<()> {
    let out = fs::File::create(path).with_context(|| path.display().to_string())?;
    let mut gzip = Command::new("gzip");
    let mut gzip = gzip.args(["-9", "-n"]).stdin(Stdio::piped()).stdout(out).spawn().context("cannot run gzip")?;
    let input = gzip.stdin.take().context("gzip reads nothing")?;
    let mut tar = Writer::new(input);
    for (name, file, mode) in files {
        let bytes = fs::read(&file).with_context(|| file.display().to_string())?;
        tar.file(&name, mode, bytes.len() as u64, |out| out.write_all(&bytes))?;
    }
    for (name, target) in links {
        tar.link(name, target)?;
    }
    drop(tar.finish()?);
    ensure!(gzip.wait()?.success(), "gzip failed");
    Ok(())
}

/// The section of a version in the changelog, or what is not released yet.
fn notes(changelog: &str, version: &str) -> Result<String> {
    let section = |title: &str| {
        let begin = changelog.find(&format!("\n## {title}"))? + 1;
        let rest = &changelog[begin..];
        let end = rest[3..].find("\n## ").map_or(rest.len(), |end| end + 4);
        Some(rest[..end].trim_end().to_owned() + "\n")
    };
    let found = section(version).or_else(|| section(&format!("[{version}]"))).or_else(|| section("Unreleased"));
    found.with_context(|| format!("CHANGELOG.md has neither {version} nor Unreleased"))
}

/// The digests of all files, as `sha256sum -c` reads them.
fn checksums(dist: &Path) -> Result<String> {
    let mut text = String::new();
    for (name, file, _) in files_below(dist, "")?.into_iter().filter(|(name, ..)| !name.starts_with("image/")) {
        text += &format!("{}  {name}\n", image::sha256(&fs::read(file)?));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::notes;

    #[test]
    fn notes_are_the_section_of_the_version_or_what_is_not_released_yet() {
        let log = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0\n\n- two\n\n## 0.1.0\n\n- one\n";
        assert_eq!(notes(log, "0.2.0").ok().as_deref(), Some("## 0.2.0\n\n- two\n"));
        assert_eq!(notes(log, "0.1.0").ok().as_deref(), Some("## 0.1.0\n\n- one\n"));
        assert_eq!(notes(log, "0.3.0").ok().as_deref(), Some("## Unreleased\n\n- new\n"));
        assert!(notes("# Changelog\n", "0.3.0").is_err());
    }
}

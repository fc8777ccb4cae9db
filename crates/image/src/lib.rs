//! Container images made from files of this machine, without a daemon, a registry or a network.
//!
//! In: programs (their shared libraries are found and come along; those of another architecture by its [`Sysroot`]), files, and
//! how to start. Out: an OCI image layout with one layer, as a folder or as an archive that `ctr images import`, `docker load` and
//! other tools read. The bytes depend on what is in the image alone: no time, no user, no order of a folder. [`sesame`](fn@sesame)
//! is the image that is released, and the one that tests run.

mod archive;
mod digest;
mod product;
mod sysroot;
pub mod tar;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

pub use digest::sha256;
pub use product::{CA_BUNDLE, sesame, sesame_for};
pub use sysroot::Sysroot;

/// Why an image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file of the image or the archive could not be read or written.
    #[error("cannot use {} for an image", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A path inside the image is not absolute, or not text.
    #[error("{} is no absolute path inside an image", .0.display())]
    Path(PathBuf),
    /// A shared library of a program was not found.
    #[error("{} needs {library}, which this machine does not have", program.display())]
    Library {
        /// The program.
        program: PathBuf,
        /// Its missing library.
        library: String,
    },
    /// A program that makes part of the image failed or is not there.
    #[error("cannot run {program}: {reason}")]
    Tool {
        /// Which.
        program: String,
        /// What it said.
        reason: String,
    },
}

/// A shared library of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Where it is on this machine.
    pub host: PathBuf,
    /// Where the program looks for it.
    pub inside: String,
}

/// What stands at a path of the image.
#[derive(Debug, Clone)]
enum Content {
    Folder(u32),
    Bytes(u32, Vec<u8>),
    Host(PathBuf),
    Link(String),
}

/// A container image in the making. It starts with what every program may expect: users, a name service switch, `/tmp`.
#[derive(Debug, Clone)]
pub struct Image {
    names: Vec<String>,
    architecture: String,
    /// By path without the leading slash, which also puts folders before what is in them.
    files: BTreeMap<String, Content>,
    entrypoint: Vec<String>,
    user: String,
    env: Vec<String>,
    labels: BTreeMap<String, String>,
}

impl Image {
    /// An image of this full name (`registry/path:tag`). Avoid the tag `latest`: a kubelet would try to pull it.
    pub fn new(name: impl Into<String>) -> Self {
        let text = |text: &str| Content::Bytes(0o644, text.into());
        let files = [
            ("etc", Content::Folder(0o755)),
            ("etc/passwd", text("root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n")),
            ("etc/group", text("root:x:0:\nnogroup:x:65534:\n")),
            ("etc/nsswitch.conf", text("passwd: files\ngroup: files\nhosts: files dns\n")),
            ("tmp", Content::Folder(0o1777)),
        ];
        Self {
            names: vec![name.into()],
            architecture: architecture().to_owned(),
            files: files.into_iter().map(|(path, content)| (path.to_owned(), content)).collect(),
            entrypoint: Vec::new(),
            user: String::new(),
            labels: BTreeMap::new(),
            env: vec!["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()],
        }
    }

    /// Gives the image one more name.
    pub fn also_named(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// The same under another name alone.
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.names = vec![name.into()];
        self
    }

    /// The names of the image.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Says that the programs in it are for another architecture than that of this machine, as images name it.
    pub fn for_architecture(mut self, architecture: &str) -> Self {
        self.architecture = architecture.to_owned();
        self
    }

    /// Adds a program of this machine at `inside`, with the shared libraries that it is linked to at their own paths.
    pub fn program(self, host: impl AsRef<Path>, inside: &str) -> Result<Self, ImageError> {
        let libraries = libraries_of(host.as_ref())?;
        self.program_with(host, inside, &libraries)
    }

    /// Adds a program at `inside`, with these shared libraries.
    pub fn program_with(
        mut self,
        host: impl AsRef<Path>,
        inside: &str,
        libraries: &[Library],
    ) -> Result<Self, ImageError> {
        for library in libraries {
            self.put(&library.inside, Content::Host(library.host.clone()))?;
        }
        self.put(inside, Content::Host(host.as_ref().to_owned()))?;
        Ok(self)
    }

    /// Adds a file with this content, readable by all.
    pub fn file(mut self, inside: &str, content: impl Into<Vec<u8>>) -> Result<Self, ImageError> {
        self.put(inside, Content::Bytes(0o644, content.into()))?;
        Ok(self)
    }

    /// Adds a symbolic link.
    pub fn link(mut self, inside: &str, target: impl Into<String>) -> Result<Self, ImageError> {
        self.put(inside, Content::Link(target.into()))?;
        Ok(self)
    }

    /// What runs when the pod names no command.
    pub fn entrypoint<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.entrypoint = words.into_iter().map(Into::into).collect();
        self
    }

    /// The user, and the group after a colon, that it runs as; root without this. Numbers, so that `runAsNonRoot`
    /// works.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push(format!("{name}={value}"));
        self
    }

    /// Adds a label, such as `org.opencontainers.image.version`.
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Writes the image as the folder of an OCI layout, which must not exist or be empty; gives the digest of its manifest.
    pub fn write_layout(&self, folder: &Path) -> Result<String, ImageError> {
        archive::write_layout(self, folder)
    }

    /// Writes the archive. Reads every file of the image; call it where blocking is allowed.
    pub fn write(&self, archive: &Path) -> Result<(), ImageError> {
        archive::write(self, archive)
    }

    fn put(&mut self, inside: &str, content: Content) -> Result<(), ImageError> {
        let path = inside.strip_prefix('/').filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| ImageError::Path(inside.into()))?;
        for (at, _) in path.match_indices('/') {
            self.files.entry(path[..at].to_owned()).or_insert(Content::Folder(0o755));
        }
        self.files.insert(path.to_owned(), content);
        Ok(())
    }

    /// The image's configuration, as the runtime reads it.
    fn config(&self, layer_digest: &str) -> serde_json::Value {
        json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": { "Entrypoint": self.entrypoint, "User": self.user, "Env": self.env, "Labels": self.labels },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digest}")] },
        })
    }
}

/// The architecture of this machine, as images name it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// All libraries that `program`, which is for this machine, is linked to, directly or through others.
pub fn libraries_of(program: &Path) -> Result<Vec<Library>, ImageError> {
    if let Err(source) = std::fs::metadata(program) {
        return Err(ImageError::File { path: program.to_owned(), source });
    }
    let failed = |reason: String| ImageError::Tool { program: format!("ldd {}", program.display()), reason };
    let out = Command::new("ldd").arg(program).env("LC_ALL", "C").output().map_err(|e| failed(e.to_string()))?;
    let errors = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() && !errors.contains("not a dynamic executable") {
        return Err(failed(errors.trim().to_owned()));
    }
    let library = |host: PathBuf| match host.to_str().map(str::to_owned) {
        Some(inside) => Ok(Library { host, inside }),
        None => Err(ImageError::Path(host)),
    };
    parse_ldd(program, &String::from_utf8_lossy(&out.stdout))?.into_iter().map(library).collect()
}

/// Reads `name => /path (address)`, `/path (address)` and `name => not found`; other lines name nothing that has a
/// file.
fn parse_ldd(program: &Path, output: &str) -> Result<Vec<PathBuf>, ImageError> {
    let mut found = Vec::new();
    for line in output.lines() {
        let line = line.trim();
        let (name, target) = line.split_once(" => ").unwrap_or((line, line));
        if target.starts_with("not found") {
            return Err(ImageError::Library { program: program.to_owned(), library: name.to_owned() });
        }
        if let Some(path) = target.split_whitespace().next().filter(|path| path.starts_with('/')) {
            found.push(PathBuf::from(path));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;

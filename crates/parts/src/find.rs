//! Where a part stands.
//!
//! In: a name and the environment. Out: a path that exists, or a [`Missing`] that says what to do. The environment is
//! passed in, so that tests can have one of their own. Order: `SESAME_<NAME>` (a person's word is final: if it is wrong, that is an
//! error, never a silent fall-back), the part in the cache, the system.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::pins::{Package, Part, Pins, pins};

/// Folders with programs for administrators, which an ordinary user's PATH may lack.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Why a part could not be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// It is pinned, but not in the cache.
    #[error("{name} {version} is not at {}: run `make parts`, or name another with {variable}", path.display())]
    NotBuilt {
        /// The part.
        name: String,
        /// Its pinned version.
        version: String,
        /// Where it was looked for.
        path: PathBuf,
        /// What would replace it.
        variable: String,
    },
    /// A variable names something that is not there.
    #[error("{variable} says {}, but there is no such {what}", path.display())]
    Override {
        /// The variable.
        variable: String,
        /// What it says.
        path: PathBuf,
        /// `program` or `folder`.
        what: &'static str,
    },
    /// The system should have it.
    #[error("{name} is not installed: as root, `apt-get install {package}`, or name one with {variable}")]
    NotInstalled {
        /// The program or folder.
        name: String,
        /// The Debian package that has it.
        package: String,
        /// What would replace it.
        variable: String,
    },
    /// Nothing of that name is pinned.
    #[error("there is no part {name:?} in parts/pins.toml")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// No place for the cache is known.
    #[error("no place for the cache: set SESAME_CACHE, XDG_CACHE_HOME or HOME")]
    NoCache,
}

/// What a variable is set to.
type Env<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// Looks for parts, in one environment.
pub struct Finder<'a> {
    pins: &'a Pins,
    env: Box<Env<'a>>,
}

impl Finder<'static> {
    /// In the environment of this process.
    pub fn from_env() -> Self {
        Finder::new(pins(), |name| std::env::var_os(name))
    }
}

impl<'a> Finder<'a> {
    /// In an environment of the caller's making.
    pub fn new(pins: &'a Pins, env: impl Fn(&str) -> Option<OsString> + 'a) -> Self {
        Finder { pins, env: Box::new(env) }
    }

    /// See [`crate::cache`].
    pub fn cache(&self) -> Result<PathBuf, Missing> {
        if let Some(cache) = self.path("SESAME_CACHE") {
            return Ok(cache);
        }
        let user = self.path("XDG_CACHE_HOME").or_else(|| self.path("HOME").map(|home| home.join(".cache")));
        user.map(|folder| folder.join("sesame")).ok_or(Missing::NoCache)
    }

    /// The folder that `part` stands in, whether or not it is there yet.
    pub fn place(&self, part: &Part) -> Result<PathBuf, Missing> {
        Ok(self.cache()?.join("parts").join(part.folder()))
    }

    /// See [`crate::program`].
    pub fn program(&self, name: &str) -> Result<PathBuf, Missing> {
        if let Some(path) = self.replaced(name, "program", Path::is_file)? {
            return Ok(path);
        }
        if let Some(part) = self.pins.part(name).filter(|part| part.is_program()) {
            let path = self.place(part)?.join("bin").join(name);
            return if path.is_file() { Ok(path) } else { Err(not_built(part, path)) };
        }
        match self.pins.system.packages.iter().find(|package| package.programs.iter().any(|program| program == name)) {
            Some(package) => self.on_system(name).ok_or_else(|| not_installed(name, package)),
            None => Err(Missing::Unknown { name: name.to_owned() }),
        }
    }

    /// See [`crate::folder`].
    pub fn folder(&self, name: &str) -> Result<PathBuf, Missing> {
        if let Some(path) = self.replaced(name, "folder", Path::is_dir)? {
            return Ok(path);
        }
        if let Some(part) = self.pins.part(name) {
            let path = self.place(part)?;
            return if path.is_dir() { Ok(path) } else { Err(not_built(part, path)) };
        }
        let folders = self.pins.system.packages.iter().filter_map(|package| Some((package, package.folder.as_ref()?)));
        match folders.into_iter().find(|(_, folder)| folder.name == name) {
            Some((package, folder)) => folder
                .any
                .iter()
                .map(PathBuf::from)
                .find(|path| folder.holds.iter().all(|file| path.join(file).is_file()))
                .ok_or_else(|| not_installed(name, package)),
            None => Err(Missing::Unknown { name: name.to_owned() }),
        }
    }

    /// A program on PATH.
    pub fn on_path(&self, name: &str) -> Option<PathBuf> {
        let path = (self.env)("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
    }

    /// A program on PATH, or where administrators' programs are.
    pub fn on_system(&self, name: &str) -> Option<PathBuf> {
        let there =
            || SYSTEM_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|program| program.is_file());
        self.on_path(name).or_else(there)
    }

    /// What the environment puts in the place of `part`.
    pub fn replacement(&self, part: &Part) -> Result<Option<PathBuf>, Missing> {
        if part.is_program() {
            self.replaced(&part.name, "program", Path::is_file)
        } else {
            self.replaced(&part.name, "folder", Path::is_dir)
        }
    }

    fn replaced(&self, name: &str, what: &'static str, there: fn(&Path) -> bool) -> Result<Option<PathBuf>, Missing> {
        let variable = variable(name);
        match self.path(&variable) {
            Some(path) if there(&path) => Ok(Some(path)),
            Some(path) => Err(Missing::Override { variable, path, what }),
            None => Ok(None),
        }
    }

    /// A variable that holds a path. Empty is the same as not set.
    fn path(&self, variable: &str) -> Option<PathBuf> {
        (self.env)(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
    }
}

/// The variable that puts something else in the place of `name`: `SESAME_KUBE_APISERVER` for `kube-apiserver`.
pub fn variable(name: &str) -> String {
    format!("SESAME_{}", name.to_uppercase().replace('-', "_"))
}

fn not_built(part: &Part, path: PathBuf) -> Missing {
    Missing::NotBuilt { name: part.name.clone(), version: part.version.clone(), path, variable: variable(&part.name) }
}

fn not_installed(name: &str, package: &Package) -> Missing {
    Missing::NotInstalled { name: name.to_owned(), package: package.name.clone(), variable: variable(name) }
}

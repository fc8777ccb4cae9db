//! Where a part stands.
//!
//! In: a name and the environment. Out: a path that exists, or a [`Missing`] that says what to do. The environment is
//! passed in, so that tests can have one of their own. Order: `SESAME_<NAME>` (a person's word is final: if it is wrong, that is an
//! error, never a silent fall-back), the part in the cache, the system.

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

#[cfg(test)]
mod tests {
    //! Which of several places wins, and what is said when none has the part.
    #![allow(clippy::unwrap_used, reason = "a test whose own folder cannot be made may panic")]

    use std::collections::HashMap;
    use std::fs;

    use super::*;

    /// A folder of this test's own, gone when it ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("sesame-parts-{}-{test}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Scratch(folder)
        }

        /// Makes an empty file, and the folders above it.
        fn file(&self, path: &str) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn finder<const N: usize>(env: [(&str, &Path); N]) -> Finder<'static> {
        let env: HashMap<String, OsString> =
            env.iter().map(|(k, v)| ((*k).to_owned(), v.as_os_str().to_owned())).collect();
        Finder::new(pins(), move |name| env.get(name).cloned())
    }

    #[test]
    fn the_cache_is_where_it_is_told_to_be() {
        let (a, b, home) = (Path::new("/a"), Path::new("/b"), Path::new("/home/me"));
        let all = [("SESAME_CACHE", a), ("XDG_CACHE_HOME", b), ("HOME", home)];
        assert_eq!(finder(all).cache(), Ok("/a".into()));
        assert_eq!(finder([all[1], all[2]]).cache(), Ok("/b/sesame".into()));
        assert_eq!(finder([all[2]]).cache(), Ok("/home/me/.cache/sesame".into()));
        assert_eq!(finder([("SESAME_CACHE", Path::new("")), all[1]]).cache(), Ok("/b/sesame".into()));
        assert_eq!(finder([]).cache(), Err(Missing::NoCache));
    }

    #[test]
    fn a_part_stands_in_the_cache() {
        let scratch = Scratch::new("cache");
        let finder = finder([("SESAME_CACHE", &scratch.0)]);
        let said = finder.program("envoy").unwrap_err().to_string();
        assert!(said.contains("make parts") && said.contains("SESAME_ENVOY") && said.contains("1.40.0"), "{said}");

        let envoy = scratch.file("parts/envoy-1.40.0/bin/envoy");
        assert_eq!(finder.program("envoy"), Ok(envoy));
        scratch.file("parts/gateway-api-crds-1.7.0/standard/x.yaml");
        assert_eq!(finder.folder("gateway-api-crds"), Ok(scratch.0.join("parts/gateway-api-crds-1.7.0")));
    }

    #[test]
    fn a_variable_wins_and_is_never_passed_over() {
        let scratch = Scratch::new("override");
        scratch.file("parts/kube-apiserver-1.37.1/bin/kube-apiserver");
        let own = scratch.file("own");
        let with = |path: &Path| finder([("SESAME_CACHE", &scratch.0), ("SESAME_KUBE_APISERVER", path)]);
        assert_eq!(with(&own).program("kube-apiserver"), Ok(own));
        let said = with(Path::new("/nowhere/at/all")).program("kube-apiserver").unwrap_err().to_string();
        assert_eq!(said, "SESAME_KUBE_APISERVER says /nowhere/at/all, but there is no such program");
    }

    #[test]
    fn a_system_program_is_found_on_the_path() {
        let scratch = Scratch::new("system");
        let runc = scratch.file("bin/runc");
        assert_eq!(finder([("PATH", runc.parent().unwrap())]).program("runc"), Ok(runc));
        assert_eq!(finder([]).program("vim"), Err(Missing::Unknown { name: "vim".into() }));
    }

    #[test]
    fn files_are_not_a_program() {
        let said = finder([("HOME", Path::new("/nowhere"))]).program("contour-crds");
        assert_eq!(said, Err(Missing::Unknown { name: "contour-crds".into() }));
    }
}

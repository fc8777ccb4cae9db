//! The pins: which parts there are, at which version, and how each is had.
//!
//! In: `parts/pins.toml`. Out: [`Pins`], in the order of the file, every part with a version and exactly one [`Recipe`].
//! What the file may leave out (a Go part's version is that of its module) is settled here, so nobody after the parse
//! has to ask.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

static PINS: LazyLock<Pins> = LazyLock::new(|| {
    Pins::parse(include_str!("../../../parts/pins.toml"))
        .expect("the pins in the tree are parsed by this crate's tests")
});

/// The pins of this tree.
pub fn pins() -> &'static Pins {
    &PINS
}

/// Every part, and what is asked of the system.
#[derive(Debug, Clone, PartialEq)]
pub struct Pins {
    /// In the order in which they are best built.
    pub parts: Vec<Part>,
    /// What the system itself has to bring.
    pub system: System,
}

/// One part: a program, or a folder of files, at one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name, and the program's if it is one.
    pub name: String,
    /// Without a leading `v`.
    pub version: String,
    /// The targets that need it (`demo`, `test`, …).
    pub groups: Vec<String>,
    /// How it is had.
    pub recipe: Recipe,
}

/// How a part is had.
#[derive(Debug, Clone, PartialEq)]
pub enum Recipe {
    /// A program inside a Python wheel.
    Wheel(Wheel),
    /// A program built from a Go module.
    Go(Module, GoProgram),
    /// Files inside a Go module.
    Files(Module, Files),
    /// A program built from a published crate.
    Crate(Crate),
}

/// A program that a wheel on PyPI carries.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    /// The package on PyPI.
    pub package: String,
    /// The program's path in the wheel.
    pub file: String,
    /// The requirements file beside the pins that holds the hash of each architecture's wheel.
    pub hashes: String,
}

/// A Go module that parts are made of. It has a folder of its own, `parts/go/<folder>`.
#[derive(Debug, Clone, PartialEq)]
pub struct Module {
    /// The folder below `parts/go` whose go.mod and go.sum pin the module and all it needs.
    pub folder: String,
    /// The module's path.
    pub path: String,
    /// The version, without the leading `v`.
    pub version: String,
    /// Variables that the linker sets to the version.
    pub stamp: Vec<String>,
}

/// A program built from a Go module.
#[derive(Debug, Clone, PartialEq)]
pub struct GoProgram {
    /// The package to build; `.` is the folder's own.
    pub package: String,
    /// The package's tests are the program (`go test -c`).
    pub test: bool,
    /// Build tags that leave out what is not needed.
    pub tags: Vec<String>,
}

/// Files that a Go module carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// Files and folders in the module; each stands under its last name in the part's folder.
    pub take: Vec<String>,
    /// For a program in Python: the requirements file beside the pins, whose packages stand in the folder `lib` of the part.
    pub requirements: Option<String>,
}

/// A published crate with a program in it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crate {
    /// The crate's name.
    pub package: String,
}

/// What the system has to bring.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// The targets that need it.
    pub groups: Vec<String>,
    /// The packages that have it.
    #[serde(rename = "package", default)]
    pub packages: Vec<Package>,
}

/// A package of the system, as Debian calls it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The programs in it that are used.
    #[serde(default)]
    pub programs: Vec<String>,
    /// The folder in it that is used.
    pub folder: Option<SystemFolder>,
}

/// A folder that systems keep in different places.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemFolder {
    /// What it is asked for by.
    pub name: String,
    /// Where it may be; the first that has all it should counts.
    pub any: Vec<String>,
    /// The files that are used.
    pub holds: Vec<String>,
}

/// What is wrong with a file of pins.
#[derive(Debug, thiserror::Error)]
pub enum Bad {
    /// It is not TOML, or not of the shape expected.
    #[error("the pins cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    /// A part does not say in exactly one way how it is had.
    #[error("part {0:?} needs exactly one of `wheel`, `go`, `files`, `crate`")]
    Recipe(String),
    /// A part names a module that the file does not have.
    #[error("part {part:?} is of module {module:?}, which the pins do not have")]
    NoModule {
        /// The part.
        part: String,
        /// The module it names.
        module: String,
    },
    /// A part has no version, or one beside its module's.
    #[error("part {0:?} needs a version, or a module that has one, not both")]
    Version(String),
    /// Two parts have one name.
    #[error("part {0:?} stands twice in the pins")]
    Twice(String),
}

impl Pins {
    /// Reads a file of pins.
    pub fn parse(text: &str) -> Result<Pins, Bad> {
        let file: File = toml::from_str(text)?;
        let mut parts: Vec<Part> = Vec::with_capacity(file.part.len());
        for entry in file.part {
            if parts.iter().any(|part| part.name == entry.name) {
                return Err(Bad::Twice(entry.name));
            }
            parts.push(entry.settle(&file.module)?);
        }
        Ok(Pins { parts, system: file.system })
    }

    /// The part `name`.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// Every group that a part or the system belongs to, sorted.
    pub fn groups(&self) -> Vec<&str> {
        let all = self.parts.iter().flat_map(|part| &part.groups).chain(&self.system.groups);
        let mut groups: Vec<&str> = all.map(String::as_str).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

impl Part {
    /// The part is a program, not a folder of files.
    pub fn is_program(&self) -> bool {
        !matches!(self.recipe, Recipe::Files(..))
    }

    /// The folder of this part below the cache's `parts`.
    pub fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    module: BTreeMap<String, ModuleEntry>,
    #[serde(default)]
    part: Vec<PartEntry>,
    system: System,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModuleEntry {
    path: String,
    version: String,
    #[serde(default)]
    stamp: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartEntry {
    name: String,
    version: Option<String>,
    groups: Vec<String>,
    wheel: Option<Wheel>,
    go: Option<GoEntry>,
    files: Option<FilesEntry>,
    #[serde(rename = "crate")]
    krate: Option<Crate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoEntry {
    module: String,
    package: String,
    #[serde(default)]
    test: bool,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilesEntry {
    module: String,
    take: Vec<String>,
    requirements: Option<String>,
}

impl PartEntry {
    fn settle(self, modules: &BTreeMap<String, ModuleEntry>) -> Result<Part, Bad> {
        let PartEntry { name, version, groups, wheel, go, files, krate } = self;
        let module = |folder: &str| match modules.get(folder) {
            Some(m) => Ok(Module {
                folder: folder.to_owned(),
                path: m.path.clone(),
                version: m.version.clone(),
                stamp: m.stamp.clone(),
            }),
            None => Err(Bad::NoModule { part: name.clone(), module: folder.to_owned() }),
        };
        let recipe = match (wheel, go, files, krate) {
            (Some(wheel), None, None, None) => Recipe::Wheel(wheel),
            (None, Some(go), None, None) => {
                Recipe::Go(module(&go.module)?, GoProgram { package: go.package, test: go.test, tags: go.tags })
            }
            (None, None, Some(FilesEntry { module: folder, take, requirements }), None) => {
                Recipe::Files(module(&folder)?, Files { take, requirements })
            }
            (None, None, None, Some(krate)) => Recipe::Crate(krate),
            _ => return Err(Bad::Recipe(name)),
        };
        let of_module = match &recipe {
            Recipe::Go(module, _) | Recipe::Files(module, _) => Some(module.version.clone()),
            Recipe::Wheel(_) | Recipe::Crate(_) => None,
        };
        let version = match (version, of_module) {
            (Some(version), None) | (None, Some(version)) => version,
            _ => return Err(Bad::Version(name)),
        };
        Ok(Part { name, version, groups, recipe })
    }
}

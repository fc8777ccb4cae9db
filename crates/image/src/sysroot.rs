//! The shared libraries of a program for another architecture, as a cross toolchain has them.
//!
//! In: the program, and the toolchain's `readelf` and folder of libraries. Out: the dynamic loader and every library that the program
//! needs, directly or through others, each with the path at which the program looks for it. `ldd` cannot tell: it asks the loader of
//! this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{ImageError, Library};

/// A cross toolchain, as far as images need it.
#[derive(Clone, Debug)]
pub struct Sysroot {
    /// Its `readelf`.
    pub readelf: &'static str,
    /// The folder with its libraries.
    pub libraries: PathBuf,
}

/// What a program or a library needs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needed {
    /// The names of libraries.
    libraries: Vec<String>,
    /// The path of the dynamic loader; none of a library or of a program that is linked statically.
    loader: Option<String>,
}

impl Sysroot {
    /// All libraries that `program` is linked to, directly or through others, and its loader. The loader looks for the others in its
    /// own folder.
    pub fn libraries_of(&self, program: &Path) -> Result<Vec<Library>, ImageError> {
        libraries(program, &self.libraries, |file| self.needed(file))
    }

    fn needed(&self, file: &Path) -> Result<Needed, ImageError> {
        let failed =
            |reason: String| ImageError::Tool { program: format!("{} {}", self.readelf, file.display()), reason };
        let mut readelf = Command::new(self.readelf);
        readelf.args(["--dynamic", "--program-headers", "--wide"]).arg(file).env("LC_ALL", "C");
        let output = readelf.output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(parse_readelf(&String::from_utf8_lossy(&output.stdout)))
    }
}

fn libraries(
    program: &Path,
    folder: &Path,
    needed: impl Fn(&Path) -> Result<Needed, ImageError>,
) -> Result<Vec<Library>, ImageError> {
    let of_program = needed(program)?;
    let Some((inside, loader)) = of_program.loader.as_ref().and_then(|path| path.rsplit_once('/')) else {
        return Ok(Vec::new());
    };
    let mut found = BTreeMap::new();
    let names = of_program.libraries.iter().cloned().chain([loader.to_owned()]);
    let mut queue: Vec<(PathBuf, String)> = names.map(|name| (program.to_owned(), name)).collect();
    while let Some((program, name)) = queue.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let host = folder.join(&name);
        if !host.exists() {
            return Err(ImageError::Library { program, library: name });
        }
        queue.extend(needed(&host)?.libraries.into_iter().map(|more| (host.clone(), more)));
        found.insert(name.clone(), Library { host, inside: format!("{inside}/{name}") });
    }
    Ok(found.into_values().collect())
}

/// Reads `(NEEDED) Shared library: [NAME]` and `[Requesting program interpreter: PATH]`.
fn parse_readelf(output: &str) -> Needed {
    let mut needed = Needed::default();
    for line in output.lines() {
        let Some((_, rest)) = line.split_once('[') else { continue };
        let Some((text, _)) = rest.split_once(']') else { continue };
        if line.contains("(NEEDED)") {
            needed.libraries.push(text.to_owned());
        } else if let Some(path) = text.strip_prefix("Requesting program interpreter: ") {
            needed.loader = Some(path.to_owned());
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const PROGRAM: &str = "
Elf file type is DYN (Position-Independent Executable file)
Entry point 0x1c40
There are 9 program headers, starting at offset 64

Program Headers:
  Type           Offset   VirtAddr           PhysAddr           FileSiz  MemSiz   Flg Align
  PHDR           0x000040 0x0000000000000040 0x0000000000000040 0x0001f8 0x0001f8 R   0x8
  INTERP         0x000238 0x0000000000000238 0x0000000000000238 0x00001b 0x00001b R   0x1
      [Requesting program interpreter: /lib/ld-linux-aarch64.so.1]

Dynamic section at offset 0xfd98 contains 28 entries:
  Tag        Type                         Name/Value
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000001d (RUNPATH)            Library runpath: [/nowhere]
 0x000000000000000c (INIT)               0x1a38
";
    const LIBRARY: &str = " 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-aarch64.so.1]
 0x000000000000000e (SONAME)             Library soname: [libgcc_s.so.1]
";

    #[test]
    fn the_output_of_readelf_is_understood() {
        let needed = parse_readelf(PROGRAM);
        assert_eq!(needed.libraries, ["libgcc_s.so.1", "libc.so.6"]);
        assert_eq!(needed.loader.as_deref(), Some("/lib/ld-linux-aarch64.so.1"));
        assert_eq!(parse_readelf(LIBRARY).libraries, ["libc.so.6", "ld-linux-aarch64.so.1"]);
        let text = "There is no dynamic section in this file.\n";
        assert_eq!(parse_readelf(text), Needed::default());
    }

    /// Files that hold what `readelf` would say of them.
    #[test]
    fn libraries_and_the_loader_are_taken_from_the_folder_of_the_toolchain() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let needed = |file: &Path| Ok(parse_readelf(&std::fs::read_to_string(file).unwrap()));
        let program = write("program", PROGRAM);
        write("libgcc_s.so.1", LIBRARY);
        write("ld-linux-aarch64.so.1", "");
        let error = libraries(&program, folder.path(), needed).unwrap_err().to_string();
        assert!(error.ends_with("needs libc.so.6, which this machine does not have"), "{error}");
        write("libc.so.6", "");
        let found = libraries(&program, folder.path(), needed).unwrap();
        let inside: Vec<&str> = found.iter().map(|library| library.inside.as_str()).collect();
        assert_eq!(inside, ["/lib/ld-linux-aarch64.so.1", "/lib/libc.so.6", "/lib/libgcc_s.so.1"]);
        assert_eq!(found[1].host, folder.path().join("libc.so.6"));
        let linked_statically = write("static", "There is no dynamic section in this file.\n");
        assert!(libraries(&linked_statically, folder.path(), needed).unwrap().is_empty());
    }
}

//! The recipe of a part as text: all that decides what comes out.
//!
//! In: a part, and the files in the tree that pin what it is made of. Out: one text. It is kept beside the part in the
//! cache; when the two differ, the part is made anew. Text and not a hash: it is small, it cannot collide, and a person
//! who wonders why something was built again can read it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use parts::Part;
use parts::pins::{Module, Recipe};

use super::make;

/// Its name beside the part.
pub const FILE: &str = "recipe";

/// The text for `part`, or an error if the tree's files pin another version than the pins.
pub fn text(root: &Path, part: &Part) -> Result<String> {
    let folder = root.join("parts");
    match &part.recipe {
        Recipe::Wheel(wheel) => {
            let file = folder.join(&wheel.hashes);
            let hashes = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            let pin = format!("{}=={}", wheel.package, part.version);
            ensure!(
                hashes.split_whitespace().any(|word| word == pin),
                "parts/{} does not pin {pin} as pins.toml does",
                wheel.hashes
            );
            Ok(format!("{} of\n{hashes}", wheel.file))
        }
        Recipe::Go(module, program) => {
            let arguments = make::go_arguments(module, program).join(" ");
            Ok(format!("go {arguments}\n{}", module_text(&folder, module)?))
        }
        Recipe::Files(module, files) => {
            let requirements = match &files.requirements {
                Some(name) => {
                    let file = folder.join(name);
                    fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?
                }
                None => String::new(),
            };
            Ok(format!("{} of\n{}{requirements}", files.take.join(" "), module_text(&folder, module)?))
        }
        Recipe::Crate(krate) => Ok(format!("cargo {}", make::cargo_arguments(krate, &part.version).join(" "))),
    }
}

/// Every file of the module's folder, after a look whether its go.mod agrees with the pins.
fn module_text(parts: &Path, module: &Module) -> Result<String> {
    let folder = parts.join("go").join(&module.folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?));
    }
    files.sort();
    let pin = format!("{} v{}", module.path, module.version);
    let pinned = files.iter().any(|(name, text)| {
        name == "go.mod" && text.lines().any(|line| line.trim().trim_start_matches("require ") == pin)
    });
    ensure!(pinned, "parts/go/{}/go.mod does not require {pin} as pins.toml does", module.folder);
    Ok(files.iter().map(|(name, text)| format!("{name}\n{text}\n")).collect())
}

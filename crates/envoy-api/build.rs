//! Generates Envoy's API as Rust into `OUT_DIR`, from the `.proto` files of a pinned package.
//!
//! In: `roots.txt` (what we need), the protos of the `envoy-types` package (a dependency that is downloaded, never
//! compiled), and a few messages of our own in `proto/`. Out: `_includes.rs` and `descriptors.bin`.
//! We generate instead of using that package's Rust because its maps are hash maps: equal messages would encode to
//! different bytes, and versions made from those bytes would flap.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use prost::Message;
use prost_types::FileDescriptorSet;

const PACKAGE: &str = "envoy-types";

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    for input in ["build.rs", "roots.txt", "proto", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rerun-if-env-changed=SESAME_ENVOY_PROTOS");

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let descriptors = out.join("descriptors.bin");
    let includes = include_folders()?;

    let mut config = prost_build::Config::new();
    config
        .protoc_executable(protoc_bin_vendored::protoc_bin_path()?)
        .btree_map(["."])
        .bytes([".google.protobuf.Any"])
        .enable_type_names()
        .type_name_domain(["."], "type.googleapis.com")
        .compile_well_known_types()
        .file_descriptor_set_path(&descriptors)
        .include_file("_includes.rs");

    tonic_prost_build::configure().emit_rerun_if_changed(false).build_transport(true).compile_with_config(
        config,
        &roots()?,
        &includes,
    )?;
    strip_source_info(&descriptors)
}

/// The files to compile, as paths below one of the include folders.
fn roots() -> Result<Vec<PathBuf>> {
    let text = fs::read_to_string("roots.txt")?;
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(PathBuf::from)
        .collect())
}

/// Our own protos, the well-known types that come with protoc, and every folder of the package's `proto/`.
fn include_folders() -> Result<Vec<PathBuf>> {
    let mut folders = vec![env::current_dir()?.join("proto"), protoc_bin_vendored::include_path()?];
    let packaged = match env::var_os("SESAME_ENVOY_PROTOS") {
        Some(folder) => PathBuf::from(folder),
        None => package_folder()?.join("proto"),
    };
    for entry in fs::read_dir(&packaged).map_err(|error| format!("cannot list {}: {error}", packaged.display()))? {
        folders.push(entry?.path());
    }
    folders.sort();
    Ok(folders)
}

/// Where cargo keeps the pinned package. Asks without the network first, so that an offline build stays offline.
fn package_folder() -> Result<PathBuf> {
    let mut failure = String::new();
    for extra in [&["--offline"][..], &[]] {
        let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["metadata", "--format-version", "1"])
            .args(extra)
            .output()?;
        if !output.status.success() {
            failure = String::from_utf8_lossy(&output.stderr).into_owned();
            continue;
        }
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let manifest = metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| package["name"] == PACKAGE)
            .and_then(|package| package["manifest_path"].as_str())
            .and_then(|manifest| Path::new(manifest).parent());
        match manifest {
            Some(folder) => return Ok(folder.to_owned()),
            None => failure = format!("{PACKAGE} is not among the packages of this workspace"),
        }
    }
    Err(format!("cannot find the folder of {PACKAGE}: {failure}").into())
}

/// Rewrites the descriptor set without comments and positions (and without the validation rules, which nobody reads at
/// run time): what remains is what JSON needs, a fraction of the size.
fn strip_source_info(path: &Path) -> Result<()> {
    let mut set = FileDescriptorSet::decode(fs::read(path)?.as_slice())?;
    for file in &mut set.file {
        file.source_code_info = None;
    }
    fs::write(path, set.encode_to_vec())?;
    Ok(())
}

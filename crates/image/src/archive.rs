//! An image as an OCI layout, in a folder or in a tar archive.
//!
//! A blob is named by its digest, so the layer goes through twice: once to know its digest and length, once to be written. The
//! archive also has the `manifest.json` of `docker save`, because `docker load` of older versions knows no other.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::digest::{Hashed, sha256};
use crate::tar::Writer;
use crate::{Content, Image, ImageError};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A layout: the layer, which is too large to be held, and the small files.
struct Layout<'a> {
    entries: Vec<Entry<'a>>,
    layer: (String, u64),
    files: Vec<(String, Vec<u8>)>,
    manifest_digest: String,
}

impl<'a> Layout<'a> {
    fn new(image: &'a Image) -> Result<Self, ImageError> {
        let entries = entries(image)?;
        let mut hashed = Hashed::new(io::sink());
        write_layer(&entries, &mut hashed)?;
        let layer = hashed.finish();
        let (layer_digest, layer_size) = &layer;
        let config = image.config(layer_digest).to_string();
        let descriptor = |kind: &str, digest: &str, size: usize| json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size });
        let config_digest = sha256(config.as_bytes());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config_digest, config.len()),
            "layers": [descriptor(LAYER, layer_digest, *layer_size as usize)],
        })
        .to_string();
        let manifest_digest = sha256(manifest.as_bytes());
        let named = |name: &String| {
            let tag = name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
            let mut one = descriptor(MANIFEST, &manifest_digest, manifest.len());
            one["platform"] = json!({ "os": "linux", "architecture": image.architecture });
            one["annotations"] = json!({ "io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag });
            one
        };
        let manifests: Vec<Value> = image.names.iter().map(named).collect();
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
        let docker =
            json!([{ "Config": blob(&config_digest), "RepoTags": image.names, "Layers": [blob(layer_digest)] }]);
        let files = vec![
            (blob(&config_digest), config.into_bytes()),
            (blob(&manifest_digest), manifest.into_bytes()),
            ("index.json".to_owned(), index.to_string().into_bytes()),
            ("manifest.json".to_owned(), docker.to_string().into_bytes()),
            ("oci-layout".to_owned(), json!({ "imageLayoutVersion": "1.0.0" }).to_string().into_bytes()),
        ];
        Ok(Self { entries, layer, files, manifest_digest })
    }
}

fn blob(digest: &str) -> String {
    format!("blobs/sha256/{digest}")
}

pub(super) fn write(image: &Image, archive: &Path) -> Result<(), ImageError> {
    let failed = |source| ImageError::File { path: archive.to_owned(), source };
    let layout = Layout::new(image)?;
    let file = File::create(archive).map_err(failed)?;
    let mut outer = Writer::new(BufWriter::with_capacity(1 << 18, file));
    for folder in ["blobs", "blobs/sha256"] {
        outer.folder(folder, 0o755).map_err(failed)?;
    }
    let (digest, size) = &layout.layer;
    let layer = |out: &mut dyn Write| write_layer(&layout.entries, out).map_err(io::Error::other);
    outer.file(&blob(digest), 0o644, *size, layer).map_err(failed)?;
    for (name, bytes) in &layout.files {
        outer.file(name, 0o644, bytes.len() as u64, |out| out.write_all(bytes)).map_err(failed)?;
    }
    outer.finish().and_then(|mut out| out.flush()).map_err(failed)
}

pub(super) fn write_layout(image: &Image, folder: &Path) -> Result<String, ImageError> {
    let layout = Layout::new(image)?;
    let failed = |source| ImageError::File { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder.join("blobs/sha256")).map_err(failed)?;
    let layer = File::create(folder.join(blob(&layout.layer.0))).map_err(failed)?;
    let mut layer = BufWriter::with_capacity(1 << 18, layer);
    write_layer(&layout.entries, &mut layer)?;
    layer.flush().map_err(failed)?;
    // `docker load` reads archives only.
    for (name, bytes) in layout.files.iter().filter(|(name, _)| name != "manifest.json") {
        std::fs::write(folder.join(name), bytes).map_err(failed)?;
    }
    Ok(format!("sha256:{}", layout.manifest_digest))
}

/// One entry of the layer, with what has to be known of a host's file before it is read.
struct Entry<'a> {
    path: &'a str,
    content: &'a Content,
    size: u64,
    mode: u32,
}

fn entries(image: &Image) -> Result<Vec<Entry<'_>>, ImageError> {
    image.files.iter().map(|(path, content)| entry(path, content)).collect()
}

fn entry<'a>(path: &'a str, content: &'a Content) -> Result<Entry<'a>, ImageError> {
    let (size, mode) = match content {
        Content::Folder(mode) => (0, *mode),
        Content::Link(_) => (0, 0o777),
        Content::Bytes(mode, bytes) => (bytes.len() as u64, *mode),
        Content::Host(host) => {
            let found = std::fs::metadata(host).map_err(|source| ImageError::File { path: host.clone(), source })?;
            // Executable or not is kept; who may do it is not, for a container may run as any user.
            (found.len(), if found.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 })
        }
    };
    Ok(Entry { path, content, size, mode })
}

fn write_layer(entries: &[Entry<'_>], out: &mut dyn Write) -> Result<(), ImageError> {
    let mut layer = Writer::new(out);
    for entry in entries {
        let failed = |source| ImageError::File { path: entry.path.into(), source };
        let written = match entry.content {
            Content::Folder(mode) => layer.folder(entry.path, *mode),
            Content::Link(target) => layer.link(entry.path, target),
            Content::Bytes(_, bytes) => layer.file(entry.path, entry.mode, entry.size, |out| out.write_all(bytes)),
            Content::Host(host) => layer.file(entry.path, entry.mode, entry.size, |out| copy(host, out)),
        };
        written.map_err(failed)?;
    }
    layer.finish().map(|_| ()).map_err(|source| ImageError::File { path: "/".into(), source })
}

fn copy(host: &Path, out: &mut dyn Write) -> io::Result<()> {
    let mut file = io::BufReader::with_capacity(1 << 18, File::open(host)?);
    io::copy(&mut file, out).map(|_| ())
}

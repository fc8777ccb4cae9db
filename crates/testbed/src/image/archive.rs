//! The archive of an image: a layer with its files, `config.json`, `manifest.json`.
//!
//! Everything goes through once: the layer's length is known from its entries, so it streams into the outer archive
//! while its digest is taken, and the configuration that names the digest comes after it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use serde_json::json;

use super::tar::{self, Kind, Writer};
use super::{Content, Image, ImageError};

pub(super) fn write(image: &Image, archive: &Path) -> Result<(), ImageError> {
    let failed = |source| ImageError::File { path: archive.to_owned(), source };
    let entries = entries(image)?;
    let file = File::create(archive).map_err(failed)?;
    let mut outer = Writer::new(BufWriter::with_capacity(1 << 18, file));
    let mut digest = String::new();
    let size = tar::length(entries.iter().map(|entry| entry.kind()));
    let layer = |out: &mut dyn Write| {
        digest = write_layer(&entries, out)?;
        Ok(())
    };
    let layer_name = layer_name(image);
    outer.file(&layer_name, 0o644, size, layer).map_err(failed)?;
    let manifest = json!([{ "Config": "config.json", "RepoTags": image.names, "Layers": [layer_name] }]);
    for (name, value) in [("config.json", image.config(&digest)), ("manifest.json", manifest)] {
        let text = value.to_string();
        outer.file(name, 0o644, text.len() as u64, |out| out.write_all(text.as_bytes())).map_err(failed)?;
    }
    outer.finish().and_then(|mut out| out.flush()).map_err(failed)
}

/// Every image has a name of its own for its layer: the runtime locks by it, and imports at the same time would wait
/// for each other.
fn layer_name(image: &Image) -> String {
    let name = image.names.first().map(String::as_str).unwrap_or_default();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(80).collect();
    format!("{name}.tar")
}

/// One entry of the layer, with what has to be known of a host's file before it is read.
struct Entry<'a> {
    path: &'a str,
    content: &'a Content,
    size: u64,
    mode: u32,
}

impl Entry<'_> {
    fn kind(&self) -> Kind<'_> {
        match self.content {
            Content::Folder(_) => Kind::Folder,
            Content::Link(target) => Kind::Link(target),
            Content::Bytes(..) | Content::Host(_) => Kind::File(self.size),
        }
    }
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

/// Writes the layer and gives its digest, in hexadecimal.
fn write_layer(entries: &[Entry<'_>], out: &mut dyn Write) -> io::Result<String> {
    let mut layer = Writer::new(Hashed { out, digest: Context::new(&SHA256) });
    for entry in entries {
        match entry.content {
            Content::Folder(mode) => layer.folder(entry.path, *mode)?,
            Content::Link(target) => layer.link(entry.path, target)?,
            Content::Bytes(_, bytes) => layer.file(entry.path, entry.mode, entry.size, |out| out.write_all(bytes))?,
            Content::Host(host) => layer.file(entry.path, entry.mode, entry.size, |out| copy(host, out))?,
        }
    }
    let digest = layer.finish()?.digest.finish();
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn copy(host: &Path, out: &mut dyn Write) -> io::Result<()> {
    let mut file = io::BufReader::with_capacity(1 << 18, File::open(host)?);
    io::copy(&mut file, out).map(|_| ())
}

struct Hashed<'a> {
    out: &'a mut dyn Write,
    digest: Context,
}

impl Write for Hashed<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.out.write(buf)?;
        self.digest.update(&buf[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

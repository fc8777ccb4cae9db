//! A writer for the few tar features that an image needs: folders, plain files and symbolic links.
//!
//! In: entries, in an order in which parents come first. Out: a `ustar` stream whose bytes depend on the entries alone
//! (owner 0, time 0), so that equal images get equal digests. Ninety lines of our own, because a tar crate would bring
//! a hundred features and still leave the digests to us.

use std::io::{self, Read, Write};

const BLOCK: u64 = 512;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    Folder,
    File(u64),
    Link(&'a str),
}

/// Writes one archive.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// An archive that goes to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// A folder.
    pub fn folder(&mut self, path: &str, mode: u32) -> io::Result<()> {
        self.out.write_all(&header(&format!("{path}/"), mode, Kind::Folder)?)
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.out.write_all(&header(path, 0o777, Kind::Link(target))?)
    }

    /// A file of `size` bytes that `content` writes; fails if it writes more or less.
    pub fn file(
        &mut self,
        path: &str,
        mode: u32,
        size: u64,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.write_all(&header(path, mode, Kind::File(size))?)?;
        let mut counted = Counted { out: &mut self.out, written: 0 };
        content(&mut counted)?;
        if counted.written != size {
            return Err(io::Error::other(format!("{path} has {} bytes instead of {size}", counted.written)));
        }
        io::copy(&mut io::repeat(0).take(size.next_multiple_of(BLOCK) - size), &mut self.out)?;
        Ok(())
    }

    /// Ends the archive and gives the stream back.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK as usize])?;
        Ok(self.out)
    }
}

struct Counted<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.out.write(buf)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn header(path: &str, mode: u32, kind: Kind<'_>) -> io::Result<[u8; BLOCK as usize]> {
    let (prefix, name) = split(path)?;
    let (size, flag, target) = match kind {
        Kind::Folder => (0, b'5', ""),
        Kind::File(size) => (size, b'0', ""),
        Kind::Link(target) => (0, b'2', target),
    };
    if target.len() > 100 || size >= 1 << 33 {
        return Err(io::Error::other(format!("{path} does not fit a tar header")));
    }
    let mut block = [0u8; BLOCK as usize];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[flag]);
    put(157, target.as_bytes());
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// A path as the header holds it: up to 155 bytes of folders and up to 100 of the rest.
fn split(path: &str) -> io::Result<(&str, &str)> {
    if path.len() <= 100 {
        return Ok(("", path));
    }
    path.match_indices('/')
        .map(|(at, _)| (&path[..at], &path[at + 1..]))
        .find(|(prefix, name)| prefix.len() <= 155 && (1..=100).contains(&name.len()))
        .ok_or_else(|| io::Error::other(format!("{path} is too long for a tar header")))
}

//! SHA-256, as images name their parts by it.

use std::io::{self, Write};

use aws_lc_rs::digest::{Context, SHA256};

/// The digest of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hashed = Hashed::new(io::sink());
    let _infallible = hashed.write_all(bytes);
    hashed.finish().0
}

/// A writer that takes the digest and the length of what goes through it.
pub(crate) struct Hashed<W> {
    out: W,
    digest: Context,
    length: u64,
}

impl<W: Write> Hashed<W> {
    pub fn new(out: W) -> Self {
        Self { out, digest: Context::new(&SHA256), length: 0 }
    }

    pub fn finish(self) -> (String, u64) {
        let digest = self.digest.finish();
        (digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect(), self.length)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.out.write(buf)?;
        self.digest.update(&buf[..n]);
        self.length += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

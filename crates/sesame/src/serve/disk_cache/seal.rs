//! Seals the state: it contains the private keys of all hosts.
//!
//! In: bytes and the keys of a mounted file. Out: a header in the clear and the bytes, encrypted and authenticated with AES-256-GCM. The
//! header has a format and the id of the key, so that a file of another version or key is told from a damaged one.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{Context as Digest, SHA256};
use thiserror::Error;

use super::Stored;

/// How a file of ours begins.
const MAGIC: &[u8; 12] = b"SesameState\n";
/// The format of what follows. Another one is not read, newer or older.
const FORMAT: u32 = 1;
const ID: usize = 8;
const HEADER: usize = MAGIC.len() + 4 + ID;
/// The fewest characters of a key.
const SHORTEST: usize = 32;

/// Why a file is not used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// Not one of ours.
    #[error("it is not a disk cache")]
    Foreign,
    /// Of another version.
    #[error("it has format {0}, and this version reads format {FORMAT}")]
    Format(u32),
    /// Of a key that is no longer there.
    #[error("it is sealed with a key that is not in the key file")]
    UnknownKey,
    /// Truncated or changed.
    #[error("it is damaged")]
    Damaged,
    /// Of others.
    #[error("it belongs to the installation {0:?}")]
    Installation(String),
}

/// One key.
struct Key {
    id: [u8; ID],
    secret: [u8; 32],
}

impl Key {
    fn new(text: &str) -> Self {
        let digest = |purpose: &str| {
            let mut digest = Digest::new(&SHA256);
            digest.update(purpose.as_bytes());
            digest.update(text.as_bytes());
            let mut bytes = [0; 32];
            bytes.copy_from_slice(digest.finish().as_ref());
            bytes
        };
        let mut id = [0; ID];
        id.copy_from_slice(&digest("sesame disk cache key id\n")[..ID]);
        Self { id, secret: digest("sesame disk cache key\n") }
    }
}

/// The keys of a file, one in each line. The first seals; the others are previous ones, and open.
pub struct Keys(Vec<Key>);

impl Keys {
    /// Reads them.
    ///
    /// # Errors
    /// That there are none, or that one is so short that it can be guessed.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read the key file {}", path.display()))?;
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        ensure!(!lines.is_empty(), "the key file {} has no key", path.display());
        let is_long = lines.iter().all(|line| line.len() >= SHORTEST);
        ensure!(is_long, "a key of {} has less than {SHORTEST} characters", path.display());
        Ok(Self(lines.into_iter().map(Key::new).collect()))
    }
}

/// A sealed file.
pub struct Sealed {
    /// What stands in the clear.
    pub header: Vec<u8>,
    /// The rest.
    pub body: Vec<u8>,
}

/// Seals the state of an installation.
pub fn seal(keys: &Keys, state: Vec<u8>, installation: &str) -> Result<Sealed> {
    let key = keys.0.first().context("there is no key")?;
    let mut header = Vec::with_capacity(HEADER + NONCE_LEN);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&FORMAT.to_le_bytes());
    header.extend_from_slice(&key.id);
    // Behind the state, so that its bytes are not moved.
    let mut body = state;
    body.extend_from_slice(installation.as_bytes());
    body.extend_from_slice(&u32::try_from(installation.len())?.to_le_bytes());
    let sealing = RandomizedNonceKey::new(&AES_256_GCM, &key.secret)?;
    let nonce = sealing.seal_in_place_append_tag(Aad::from(&header[..]), &mut body)?;
    header.extend_from_slice(nonce.as_ref());
    Ok(Sealed { header, body })
}

/// Opens a file, if it is one of this installation.
pub fn open(keys: &Keys, mut file: Vec<u8>, installation: &str) -> Result<Stored, Refused> {
    let (magic, format) = (file.get(..MAGIC.len()), file.get(MAGIC.len()..MAGIC.len() + 4));
    if magic != Some(MAGIC) {
        return Err(Refused::Foreign);
    }
    let format = format.and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes).ok_or(Refused::Damaged)?;
    if format != FORMAT {
        return Err(Refused::Format(format));
    }
    let begin = HEADER + NONCE_LEN;
    let id = file.get(HEADER - ID..HEADER).ok_or(Refused::Damaged)?;
    let key = keys.0.iter().find(|key| key.id == id).ok_or(Refused::UnknownKey)?;
    let nonce = file.get(HEADER..begin).ok_or(Refused::Damaged)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Refused::Damaged)?;
    let opening = RandomizedNonceKey::new(&AES_256_GCM, &key.secret).map_err(|_| Refused::Damaged)?;
    let (header, body) = file.split_at_mut(begin);
    let aad = Aad::from(&header[..HEADER]);
    let len = opening.open_in_place(nonce, aad, body).map_err(|_| Refused::Damaged)?.len();
    let state = Stored::from(file).slice(begin..begin + len);
    let (rest, size) = state.split_last_chunk::<4>().ok_or(Refused::Damaged)?;
    let at = rest.len().checked_sub(u32::from_le_bytes(*size) as usize).ok_or(Refused::Damaged)?;
    if rest[at..] != *installation.as_bytes() {
        return Err(Refused::Installation(String::from_utf8_lossy(&rest[at..]).into_owned()));
    }
    Ok(state.slice(..at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const ONE: &str = "one 4f1f0c7be0d24c2f8a3d5f6b7c8d9e0f";
    const TWO: &str = "two 4f1f0c7be0d24c2f8a3d5f6b7c8d9e0f";

    fn keys(texts: &[&str]) -> Keys {
        Keys(texts.iter().map(|text| Key::new(text)).collect())
    }

    fn file(keys: &Keys) -> Vec<u8> {
        let Sealed { header, body } = seal(keys, b"the state".to_vec(), "ns/lease").unwrap();
        [header, body].concat()
    }

    #[test]
    fn a_state_is_read_with_the_key_that_sealed_it_also_when_that_is_the_previous_one() {
        let sealed = file(&keys(&[ONE]));
        assert!(!sealed.windows(5).any(|part| part == b"state"), "it is in the clear");
        for keys in [keys(&[ONE]), keys(&[TWO, ONE])] {
            assert_eq!(&*open(&keys, sealed.clone(), "ns/lease").unwrap(), b"the state");
        }
        assert_ne!(file(&keys(&[ONE])), sealed, "nonces are not repeated");
    }

    #[test]
    fn files_of_others_and_damaged_ones_are_refused() {
        let own = keys(&[ONE]);
        let sealed = file(&own);
        assert_eq!(open(&keys(&[TWO]), sealed.clone(), "ns/lease"), Err(Refused::UnknownKey));
        assert_eq!(open(&own, sealed.clone(), "ns/b"), Err(Refused::Installation("ns/lease".to_owned())));
        assert_eq!(open(&own, b"kind: List".to_vec(), "ns/lease"), Err(Refused::Foreign));
        assert_eq!(open(&own, Vec::new(), "ns/lease"), Err(Refused::Foreign));
        for format in [0u32, 2] {
            let mut other = sealed.clone();
            other[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&format.to_le_bytes());
            assert_eq!(open(&own, other, "ns/lease"), Err(Refused::Format(format)));
        }
        for at in HEADER..sealed.len() {
            let mut other = sealed.clone();
            other[at] ^= 1;
            assert_eq!(open(&own, other, "ns/lease"), Err(Refused::Damaged), "byte {at}");
        }
        for end in 0..sealed.len() {
            assert!(open(&own, sealed[..end].to_vec(), "ns/lease").is_err(), "{end} bytes");
        }
    }

    #[test]
    fn a_key_that_can_be_guessed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache.key");
        assert!(Keys::read(&path).is_err());
        for (text, keys) in [("", None), ("secret\n", None), (ONE, Some(1)), (&*format!("{TWO}\n\n{ONE}\n"), Some(2))] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Keys::read(&path).ok().map(|keys| keys.0.len()), keys, "{text:?}");
        }
    }
}

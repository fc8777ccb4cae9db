//! What routes that share the same requests have to agree on.
//!
//! In: the fields that an author set, as text. Out: values that are compared on every host that has the routes, so what is kept of one is
//! bounded: of a long text its beginning, its length and a hash.

use std::sync::Arc;

/// What routes that share the same requests have to agree on: the name of each field that an author set, and its value.
pub type Agreement = Arc<[(&'static str, AgreedValue)]>;

/// The longest text that is kept as it is, in bytes.
const LONGEST: usize = 2048;

/// The value of a field as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgreedValue(Arc<str>);

impl AgreedValue {
    /// The value of this text.
    pub fn new(text: &str) -> Self {
        if text.len() <= LONGEST {
            return Self(text.into());
        }
        let beginning = &text[..text.floor_char_boundary(LONGEST)];
        let hash = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
        Self(format!("{beginning}… ({} bytes, hash {hash:016x})", text.len()).into())
    }

    /// What is kept of its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_as_much_is_kept_as_tells_it_from_others() {
        let text = |length: usize, end: &str| format!("{}{end}", "é".repeat(length));
        for length in [LONGEST, 1 << 20] {
            let value = AgreedValue::new(&text(length, "a"));
            assert!((LONGEST..LONGEST + 100).contains(&value.as_str().len()), "{} bytes", value.as_str().len());
            assert_eq!(value, AgreedValue::new(&text(length, "a")));
            assert_ne!(value, AgreedValue::new(&text(length, "b")));
            assert_ne!(value, AgreedValue::new(&text(length + 1, "a")));
        }
        let short = text(LONGEST / 2, "");
        assert_eq!(AgreedValue::new(&short).as_str(), short);
    }
}

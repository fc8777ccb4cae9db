//! The neutral vocabulary.

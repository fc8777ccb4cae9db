//! The images that tests run, made by the crate that makes the released one.

pub mod ready;

pub use ::image::{Image, ImageError};

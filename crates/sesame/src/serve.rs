//! `sesame serve`: the command line and the configuration file, and what they mean.

pub mod config;
#[cfg(test)]
mod page;
pub mod plan;

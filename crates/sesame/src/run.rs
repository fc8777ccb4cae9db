//! `sesame run` behind the command line: a folder of YAML, a local Envoy, and a terminal.

pub mod pages;
pub mod proxy;
mod status_table;
pub mod terminal;
pub mod workdir;

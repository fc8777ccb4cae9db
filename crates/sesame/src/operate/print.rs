//! The forms of output.

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;

use crate::output;

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people
    #[default]
    Table,
    /// One JSON document
    Json,
    /// The same as YAML
    Yaml,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct OutputFlags {
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: Format,
}

impl OutputFlags {
    /// Prints a document, or its table.
    pub fn print(self, document: &impl Serialize, table: impl FnOnce() -> String) -> Result<()> {
        let text = match self.format {
            Format::Table => table(),
            Format::Json => serde_json::to_string_pretty(document).context("cannot be written as JSON")? + "\n",
            Format::Yaml => yaml(document)?,
        };
        output::write(Path::new("-"), &text)
    }
}

/// A document as YAML.
pub fn yaml(document: &impl Serialize) -> Result<String> {
    let value = serde_json::to_value(document).context("cannot be written as YAML")?;
    let mut text = String::new();
    manifest::value(&value, 0, &mut text);
    Ok(text)
}

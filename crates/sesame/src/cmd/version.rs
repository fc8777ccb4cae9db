//! `sesame version`.

use std::path::Path;

use anyhow::Result;

use crate::output;

/// Prints version, commit and platform. The commit is recorded by builds that set `SESAME_COMMIT`.
pub fn run() -> Result<()> {
    let text = format!(
        "sesame {}\ncommit: {}\nplatform: {}-{}{}\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("SESAME_COMMIT").unwrap_or("not recorded"),
        std::env::consts::ARCH,
        std::env::consts::OS,
        if cfg!(debug_assertions) { ", with debug checks" } else { "" },
    );
    output::write(Path::new("-"), &text)
}

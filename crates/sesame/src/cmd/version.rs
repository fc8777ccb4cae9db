//! `sesame version`.

use std::path::Path;

use anyhow::Result;

use crate::flags::ENVOY_VERSION;
use crate::output;

/// Prints version, commit, build date and platform, and the versions of Envoy and of Gateway API that this one is made for. The
/// commit and the date are recorded by `build.rs`.
pub fn run() -> Result<()> {
    output::write(Path::new("-"), &text())
}

/// The same as text.
pub fn text() -> String {
    format!(
        "sesame {}\ncommit: {}\nbuilt: {}\nplatform: {}-{}{}\nEnvoy: {ENVOY_VERSION}\nGateway API: {}\n",
        env!("CARGO_PKG_VERSION"),
        option_env!("SESAME_COMMIT").unwrap_or("not recorded"),
        option_env!("SESAME_BUILD_DATE").unwrap_or("not recorded"),
        std::env::consts::ARCH,
        std::env::consts::OS,
        if cfg!(debug_assertions) { ", with debug checks" } else { "" },
        pipeline::GATEWAY_API_RELEASE,
    )
}

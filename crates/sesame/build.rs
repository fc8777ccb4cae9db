//! Records the commit and the date that `sesame version` prints.
//!
//! In: `SESAME_COMMIT` and `SOURCE_DATE_EPOCH`, where whoever builds sets them; else the checkout and the clock. Only optimized builds
//! look at the checkout: in others every commit would be a reason to build again.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=SESAME_COMMIT");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rerun-if-changed=build.rs");
    let is_optimized = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let set = env::var("SESAME_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(commit) = set.or_else(|| if is_optimized { checked_out() } else { None }) {
        println!("cargo::rustc-env=SESAME_COMMIT={commit}");
    }
    let fixed = env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs());
    if let Some(seconds) = fixed.or_else(now) {
        println!("cargo::rustc-env=SESAME_BUILD_DATE={}", date(seconds));
    }
}

/// The commit that is checked out.
fn checked_out() -> Option<String> {
    let git = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("../../.git");
    let read = |path: &Path| {
        println!("cargo::rerun-if-changed={}", path.display());
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    };
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return Some(head) };
    read(&git.join(name)).or_else(|| {
        let packed = read(&git.join("packed-refs"))?;
        packed.lines().find_map(|line| Some(line.split_once(' ').filter(|(_, of)| *of == name)?.0.to_owned()))
    })
}

/// The day in UTC, as ISO 8601 writes it: days are counted in years that begin in March, so that a leap day is the last of a year.
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year)
}

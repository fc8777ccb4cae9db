//! The pages that are written from the program itself: the table of error codes, and every flag and key of `serve`.
//!
//! In: `model::Code`. Out: `docs/errors.md`. A test compares the two, so the page cannot fall behind. The other page,
//! `docs/configuration.md`, is written by a test of the crate that has the flags.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use model::Code;

/// The sections of the page, by the thousands of the codes.
const SECTIONS: [(u16, &str); 8] = [
    (1, "The command line, files of settings, the machine"),
    (2, "Reading objects"),
    (3, "What objects refer to: Services, Secrets, grants"),
    (4, "Ingress"),
    (5, "HTTPProxy"),
    (6, "Gateway API"),
    (7, "What objects do to each other"),
    (8, "The proxies"),
];

/// Writes the pages.
pub fn write() -> Result<()> {
    let page = page();
    std::fs::write(&page, errors()).with_context(|| format!("cannot write {}", page.display()))?;
    let test = ["test", "-q", "-p", "sesame", "--bin", "sesame", "the_page_of_settings"];
    let status = crate::cargo().args(test).env("UPDATE_DOCS", "1").current_dir(crate::root()).status();
    let status = status.context("cannot run cargo")?;
    ensure!(status.success(), "docs/configuration.md cannot be written");
    Ok(())
}

fn page() -> PathBuf {
    crate::root().join("docs/errors.md")
}

fn errors() -> String {
    let mut text = "# Error codes\n\nEverything that Sesame tells a person about what they wrote has a code, the object, the field and \
                    a sentence about this very\ncase. This page says what each code means and what to do. It is written by \
                    `cargo xtask docs`.\n"
        .to_owned();
    for (thousand, title) in SECTIONS {
        let rows: Vec<&Code> = Code::ALL.iter().filter(|code| **code as u16 / 1000 == thousand).collect();
        if rows.is_empty() {
            continue;
        }
        let _infallible = write!(text, "\n## {title}\n\n| code | | what it means | what to do |\n|---|---|---|---|\n");
        for code in rows {
            let (word, title, help) = (code.severity().word(), cell(code.title()), cell(code.help()));
            let _infallible = writeln!(text, "| {code} | {word} | {title} | {help} |");
        }
    }
    text
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_codes_is_up_to_date() {
        let page = std::fs::read_to_string(page()).expect("docs/errors.md is there");
        assert!(page == errors(), "docs/errors.md is out of date: run `cargo xtask docs`");
    }

    #[test]
    fn every_code_has_a_section() {
        let text = errors();
        for code in Code::ALL {
            assert!(text.contains(&format!("| {code} |")), "{code}");
        }
    }
}

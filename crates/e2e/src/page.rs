//! Blocks of pages, which scenarios run as people would.
//!
//! In: a page, a heading of it and a language. Out: the blocks of that language in the section, without what belongs to later headings.

use anyhow::{Context, Result, ensure};

/// The blocks of a section, in their order; at least one.
pub fn blocks<'p>(page: &'p str, heading: &str, language: &str) -> Result<Vec<&'p str>> {
    let (_, section) = page.split_once(&format!("\n{heading}\n")).with_context(|| format!("no heading {heading:?}"))?;
    let level = heading.split(' ').next().unwrap_or_default();
    // Headings below it belong to it; comments in blocks begin with a single `#`, and no heading asked for has that level.
    let ends =
        |line: &str| line.starts_with("##") && line.split(' ').next().is_some_and(|other| other.len() <= level.len());
    let end = section.match_indices('\n').find(|(at, _)| section[at + 1..].lines().next().is_some_and(ends));
    let section = end.map_or(section, |(at, _)| &section[..=at]);
    let begin = format!("```{language}\n");
    let blocks = section.split(&begin).skip(1).map(|rest| rest.split_once("```").map(|(block, _)| block));
    let blocks =
        blocks.collect::<Option<Vec<_>>>().with_context(|| format!("a block below {heading:?} does not end"))?;
    ensure!(!blocks.is_empty(), "no block of {language} below {heading:?}");
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const PAGE: &str = "# Page\n\n## One\n\n```sh\na\n```\n\n### Below\n\n```sh\n# b\n```\n\n```yaml\nc: 1\n```\n\n## Two\n\n```sh\nd\n```\n";

    #[test]
    fn a_section_has_the_blocks_up_to_the_next_heading_of_its_level() {
        assert_eq!(blocks(PAGE, "## One", "sh").unwrap(), ["a\n", "# b\n"]);
        assert_eq!(blocks(PAGE, "### Below", "yaml").unwrap(), ["c: 1\n"]);
        assert_eq!(blocks(PAGE, "## Two", "sh").unwrap(), ["d\n"]);
        assert!(blocks(PAGE, "## Two", "yaml").is_err() && blocks(PAGE, "## Three", "sh").is_err());
    }
}

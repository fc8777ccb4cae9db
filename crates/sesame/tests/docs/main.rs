//! The pages for people: their links lead somewhere, their examples are accepted, and the first steps can be taken.
//!
//! A fenced block says in its first line what it is:
//!
//! | after the three backticks | meaning |
//! |---|---|
//! | `yaml objects` | objects that are accepted without an error or warning, together with the `shared` ones of the page |
//! | `yaml objects SES3001` | objects that show this code, or several, and no other |
//! | `yaml manifests SES3101` | the same, alone, as `sesame lint` reads them |
//! | `yaml with SES5018` | the configuration file for the objects that show this code |
//! | `yaml shared` | objects that all `objects` of the page are read together with |
//! | `yaml config` | a configuration file |
//! | `yaml file=web.yaml` | a file that the commands of the page read (only where commands are run) |
//! | `console` | commands and what they print; see [`steps`] |
//! | `console codes SES1002` | commands that fail with this code |
//! | `text flags` | commands of Contour with flags that ours knows as well |
//! | `yaml` alone | something else; it is valid YAML |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blocks;
mod explain;
mod links;
mod page;
mod steps;

use page::Page;

/// The files that people read.
fn pages() -> Vec<Page> {
    let pages = Page::all();
    assert!(pages.len() > 20, "{} pages", pages.len());
    pages
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let broken: Vec<String> = pages().iter().flat_map(links::broken).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_of_the_folder_is_on_the_map() {
    let pages = pages();
    let map = pages.iter().find(|page| page.name == "docs/README.md").unwrap();
    let text = map.lines.join("\n");
    let missing: Vec<&str> = pages
        .iter()
        .map(|page| page.name.as_str())
        .filter(|name| name.starts_with("docs/") && !name.starts_with("docs/adr/") && *name != "docs/README.md")
        .filter(|name| !text.contains(name.trim_start_matches("docs/")))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not name {missing:?}");
}

#[test]
fn every_cell_of_the_comparison_names_its_source() {
    let pages = pages();
    let readme = pages.iter().find(|page| page.name == "README.md").unwrap();
    let rows = readme.lines.iter().skip_while(|line| *line != "## Comparison").skip(1);
    let rows: Vec<&String> =
        rows.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 10, "{} rows", rows.len());
    for row in &rows[2..] {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 6, "{row}");
        for cell in &cells[1..] {
            assert!(cell.contains("](") || *cell == "–", "{}: `{cell}` has no source", cells[0]);
        }
    }
}

#[test]
fn every_decision_has_a_status_and_a_date_and_is_listed() {
    let pages = pages();
    let records = pages.iter().filter(|page| page.name.starts_with("docs/adr/"));
    let (index, records): (Vec<&Page>, Vec<&Page>) = records.partition(|page| page.name.ends_with("README.md"));
    let index = index[0].lines.join("\n");
    assert!(records.len() >= 15, "{} records", records.len());
    for page in records {
        let line = |start: &str| page.lines.iter().take(5).find_map(|line| line.strip_prefix(start));
        let status = line("- Status: ").unwrap_or_else(|| panic!("{}: no status", page.name));
        let words = ["proposed", "accepted", "superseded"];
        assert!(words.iter().any(|word| status.starts_with(word)), "{}: status {status}", page.name);
        let date = line("- Date: ").unwrap_or_else(|| panic!("{}: no date", page.name));
        let is_date = date.len() == 10 && date.split('-').all(|part| part.parse::<u16>().is_ok());
        assert!(is_date, "{}: date {date}", page.name);
        let listed = page.name.trim_start_matches("docs/adr/");
        assert!(index.contains(listed) && index.contains(date), "docs/adr/README.md does not list {listed} of {date}");
    }
}

#[tokio::test]
async fn every_example_is_accepted_or_shows_the_code_that_it_names() {
    let mut wrong = Vec::new();
    let mut examples = 0;
    for page in pages() {
        let (count, found) = blocks::check(&page).await;
        examples += count;
        wrong.extend(found);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(examples > 0, "no page has an example");
}

#[tokio::test]
async fn every_command_fails_with_the_code_that_it_shows() {
    let mut wrong = Vec::new();
    let mut commands = 0;
    for page in pages() {
        let (count, found) = blocks::commands(&page).await;
        commands += count;
        wrong.extend(found);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands >= 10, "{commands} commands");
}

#[tokio::test]
async fn every_flag_that_is_said_to_be_accepted_is_known() {
    let mut unknown = Vec::new();
    let mut flags = 0;
    for page in pages() {
        let (count, found) = blocks::flags(&page).await;
        flags += count;
        unknown.extend(found);
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert!(flags > 80, "{flags} flags");
}

#[tokio::test]
async fn the_first_steps_can_be_taken() {
    let pages = pages();
    let page = pages.iter().find(|page| page.name == "docs/first-steps.md").unwrap();
    let commands = steps::take(page).await;
    assert!(commands > 10, "only {commands} commands are run");
}

#[tokio::test]
async fn kubectl_explain_says_what_the_crds_say() {
    let fields = explain::compare().await;
    assert!(fields > 400, "{fields} fields");
}

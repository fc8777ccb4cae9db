//! Links between pages, and to other files of the repository. Links to other machines are left alone.

use std::path::{Component, Path, PathBuf};

use crate::page::{Page, root};

/// Where a link leads.
struct Target {
    /// The path from the root of the repository.
    file: String,
    /// The heading, if it names one.
    anchor: Option<String>,
    /// The line of the link, from one.
    line: usize,
}

/// Every link of a page to a file of the repository.
fn targets(page: &Page) -> Vec<Target> {
    let folder = Path::new(&page.name).parent().unwrap();
    let mut targets = Vec::new();
    for (index, line) in page.lines.iter().enumerate() {
        for link in links(line) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let file = if file.is_empty() { page.name.clone() } else { joined(folder, file) };
            targets.push(Target { file, anchor: anchor.map(str::to_owned), line: index + 1 });
        }
    }
    targets
}

/// What is wrong with the links of a page.
pub fn broken(page: &Page) -> Vec<String> {
    let pages = Page::all();
    let wrong = |target: &Target| {
        if !root().join(&target.file).exists() {
            return Some(format!("there is no {}", target.file));
        }
        let anchor = target.anchor.as_deref()?;
        let other = pages.iter().find(|other| other.name == target.file);
        let found = other.is_some_and(|other| other.anchors().iter().any(|heading| heading == anchor));
        (!found).then(|| format!("{} has no heading for #{anchor}", target.file))
    };
    let found = targets(page);
    let found = found.iter().filter_map(|target| Some((target.line, wrong(target)?)));
    found.map(|(line, why)| format!("{}:{line}: {why}", page.name)).collect()
}

/// The targets of links in a line: `[…](target)`, and `[name]: target`.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    if line.starts_with('[')
        && let Some((_, target)) = line.split_once("]: ")
    {
        found.push(target.trim());
    }
    let mut rest = line;
    while let Some(start) = rest.find("](") {
        let inside = &rest[start + 2..];
        let Some(end) = inside.find(')') else { break };
        found.push(&inside[..end]);
        rest = &inside[end..];
    }
    found
}

/// A relative path from a folder of the repository, without `..`.
fn joined(folder: &Path, file: &str) -> String {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{file} leaves the repository"),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.to_str().unwrap().to_owned()
}

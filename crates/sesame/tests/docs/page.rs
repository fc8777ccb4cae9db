//! A page of Markdown: its text without code, its headings, its fenced blocks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of Markdown in the repository.
pub struct Page {
    /// Its path from the root of the repository.
    pub name: String,
    /// Its lines outside of fenced blocks; those inside are empty.
    pub lines: Vec<String>,
    /// Its fenced blocks.
    pub blocks: Vec<Block>,
}

/// A fenced block.
pub struct Block {
    /// The number of its first line of content, from one.
    pub line: usize,
    /// The words after the backticks: the language, then what the block is.
    pub marks: Vec<String>,
    /// What is inside.
    pub text: String,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Page {
    /// Every page that is for people: those at the top, and all of `docs`.
    pub fn all() -> Vec<Page> {
        let root = root();
        let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "conformance/README.md"];
        let mut files: Vec<PathBuf> = top.iter().map(|name| root.join(name)).collect();
        let mut folders = vec![root.join("docs")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else if entry.extension().is_some_and(|extension| extension == "md") {
                    files.push(entry);
                }
            }
        }
        files.sort();
        files.iter().map(|file| Page::read(file, &root)).collect()
    }

    fn read(file: &Path, root: &Path) -> Page {
        let name = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(file).unwrap();
        let (mut lines, mut blocks, mut open) = (Vec::new(), Vec::new(), None::<Block>);
        for (index, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (None, None) => {
                    lines.push(line.to_owned());
                    continue;
                }
                (None, Some(marks)) => {
                    let marks = marks.split_whitespace().map(str::to_owned).collect();
                    open = Some(Block { line: index + 2, marks, text: String::new() });
                }
                (Some(block), None) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
            }
            lines.push(String::new());
        }
        assert!(open.is_none(), "{name}: the last block has no end");
        Page { name, lines, blocks }
    }

    /// The anchors of its headings, as GitHub makes them.
    pub fn anchors(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let headings = self.lines.iter().filter(|line| line.starts_with('#'));
        headings
            .map(|line| {
                let slug = slug(line.trim_start_matches('#').trim());
                let count = seen.entry(slug.clone()).or_default();
                *count += 1;
                if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
            })
            .collect()
    }
}

/// Lower case, without punctuation, with hyphens for spaces.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char.to_ascii_lowercase() }).collect()
}

impl Block {
    /// Whether it has the language and, as its second word, this mark.
    pub fn is(&self, language: &str, mark: &str) -> bool {
        self.marks.first().is_some_and(|word| word == language) && self.marks.get(1).is_some_and(|word| word == mark)
    }

    /// The name of the file that it is, if it is one.
    pub fn file(&self) -> Option<&str> {
        self.marks.iter().find_map(|mark| mark.strip_prefix("file="))
    }
}

//! A case as a file: what was written by hand, and the golden part after the mark.

use std::path::{Path, PathBuf};

use source::yaml::documents;

use super::settings::Settings;
use super::table::{self, Row};

/// The line that the golden part begins with.
const MARK: &str = "--- # What comes of it: UPDATE_CASES=1 writes it.\n";

/// One case.
#[derive(Debug)]
pub struct Case {
    /// What the operator sets.
    pub(super) settings: Settings,
    /// The objects, as the text of a file in which everything else is blank, so that lines keep their numbers.
    pub(super) objects: String,
    /// What is asked.
    pub(super) requests: Vec<Row>,
    /// What was written by the last update.
    pub(super) golden: String,
    path: PathBuf,
    by_hand: String,
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// What cannot be read, in words.
    pub fn read(path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let (by_hand, golden) = text.split_once(MARK).unwrap_or((&text, ""));
        if !by_hand.starts_with("# ") {
            return Err("a case begins with a comment that says what it shows".to_owned());
        }
        let mut case = Case {
            settings: Settings::default(),
            objects: String::new(),
            requests: Vec::new(),
            golden: golden.to_owned(),
            path: path.into(),
            by_hand: by_hand.to_owned(),
        };
        for document in documents(by_hand) {
            let begins = |word: &str| document.text.lines().any(|line| line.starts_with(word));
            if begins("settings:") {
                case.settings = Settings::read(document.text)?;
            } else if begins("requests:") {
                case.requests = table::read(document.text)?;
            } else {
                let missing = (document.first_line as usize).saturating_sub(1 + case.objects.lines().count());
                case.objects.extend(std::iter::repeat_n('\n', missing));
                case.objects.push_str(document.text);
            }
        }
        Ok(case)
    }

    /// Writes the golden part anew.
    pub(super) fn rewrite(&self, golden: &str) -> Result<(), String> {
        if golden == self.golden {
            return Ok(());
        }
        let text = format!("{}\n{MARK}{golden}", self.by_hand.trim_end());
        std::fs::write(&self.path, text).map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

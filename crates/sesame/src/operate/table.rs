//! Columns of text, as `kubectl get` prints them.

use std::fmt::Write as _;

/// A table with a row of titles.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// No rows yet.
    pub fn new<const N: usize>(titles: [&str; N]) -> Self {
        Self { rows: vec![titles.map(str::to_owned).into()] }
    }

    /// Adds a row, with as many cells as there are titles. What is empty is shown as `-`.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { printable(&cell) }).into());
    }

    /// Whether there is nothing below the titles.
    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The text, a line for each row; columns are as wide as their widest cell, and the last is not padded.
    pub fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let _infallible = write!(line, "{cell:width$}   ");
            }
            let _infallible = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

/// Names and messages come from tenants: no control character of theirs reaches a terminal.
fn printable(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A time span as people say it: `42s`, `7m`, `3h`, `12d`.
pub fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_needed_and_no_cell_writes_to_the_terminal() {
        let mut table = Table::new(["NAME", "STATE", "WHY"]);
        assert!(table.is_empty());
        table.row(["a".to_owned(), String::new(), "long text".to_owned()]);
        table.row(["much longer".to_owned(), "ok".to_owned(), "red \u{1b}[31m".to_owned()]);
        let text = "NAME          STATE   WHY\na             -       long text\nmuch longer   ok      red  [31m\n";
        assert_eq!(table.text(), text);
    }

    #[test]
    fn ages_have_one_unit() {
        assert_eq!([0, 119, 120, 7_200, 172_800].map(age), ["0s", "119s", "2m", "2h", "2d"]);
    }
}

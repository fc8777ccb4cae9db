//! What differs between two texts, line by line, with the lines around it.

/// How many equal lines are shown before and after a difference.
const AROUND: usize = 3;

/// The difference: `-` stands before what was expected, `+` before what there is.
pub(super) fn lines(expected: &str, found: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let steps = steps(&old, &new);
    let changed: Vec<usize> =
        steps.iter().enumerate().filter(|(_, (mark, _))| *mark != ' ').map(|(at, _)| at).collect();
    let near = |at: usize| changed.iter().any(|change| change.abs_diff(at) <= AROUND);
    let mut out = String::from("the golden part differs (- expected, + found; UPDATE_CASES=1 takes what is found):\n");
    let mut gap = false;
    for (at, (mark, line)) in steps.iter().enumerate() {
        if near(at) {
            if std::mem::take(&mut gap) {
                out.push_str("  …\n");
            }
            out.push_str(&format!("{mark} {line}\n"));
        } else {
            gap = true;
        }
    }
    out
}

/// A shortest way from one text to the other, by the longest common subsequence.
fn steps<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut steps = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            steps.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            steps.push(('-', old[i]));
            i += 1;
        } else {
            steps.push(('+', new[j]));
            j += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown_with_its_neighbours() {
        let text = lines("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\ne\nf\nG\nh\n");
        let shown: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(shown, ["  …", "  d", "  e", "  f", "- g", "+ G", "  h"]);
    }
}

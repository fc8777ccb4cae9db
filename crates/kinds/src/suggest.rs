//! "Did you mean": the name nearest to one that was misspelt.

/// The candidate that is near enough to `word` to be what was meant, if there is one.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // Two slips in a word of six letters are a likely misspelling, in one of three they are another word.
    let length = word.chars().count();
    let most = (length / 3).clamp(1, 3);
    let word = word.to_lowercase();
    candidates
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= most)
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, removed, replaced or swapped with their neighbour to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 3 {
        return usize::MAX;
    }
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let fields = ["path", "pathType", "backend", "host", "http"];
        let nearest = |word| nearest(word, fields.iter().copied());
        assert_eq!(nearest("pathtype"), Some("pathType"));
        assert_eq!(nearest("bakcend"), Some("backend"));
        assert_eq!(nearest("hots"), Some("host"));
        assert_eq!(nearest("paths"), Some("path"));
        assert_eq!(nearest("timeout"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(nearest("x".repeat(5000).as_str()), None);
    }
}

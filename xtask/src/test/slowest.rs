//! Where the time went: the programs that took longest.
//!
//! In: how long each program took, and all of it. Out: a list of a few lines, slowest first. What took no second is not worth one.

use std::fmt::Write;
use std::time::Duration;

/// How many are listed.
const MOST: usize = 12;

/// The list, with its heading; nothing if all was quick.
pub fn list<'a>(times: impl Iterator<Item = (Duration, &'a str)>, all: Duration) -> String {
    let mut times: Vec<_> = times.filter(|(took, _)| took.as_secs() > 0).collect();
    times.sort_by_key(|&(took, name)| (std::cmp::Reverse(took), name));
    let mut text = String::new();
    if !times.is_empty() {
        _ = writeln!(text, "slowest, of {} s in all:", all.as_secs());
    }
    for (took, name) in times.into_iter().take(MOST) {
        _ = writeln!(text, "  {:5} s  {name}", took.as_secs());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first_and_what_took_no_time_is_left_out() {
        let times = [(3_200, "-p a --lib"), (70, "-p b --lib"), (612_000, "-p c --test long")];
        let times = times.map(|(millis, name)| (Duration::from_millis(millis), name));
        let text = list(times.into_iter(), Duration::from_secs(614));
        assert_eq!(text, "slowest, of 614 s in all:\n    612 s  -p c --test long\n      3 s  -p a --lib\n");
        assert_eq!(list(times.into_iter().take(0), Duration::from_secs(1)), "");
    }

    #[test]
    fn the_list_stays_short() {
        let many = (0..40).map(|second| (Duration::from_secs(second + 1), "-p a --lib"));
        assert_eq!(list(many, Duration::from_secs(820)).lines().count(), MOST + 1);
    }
}

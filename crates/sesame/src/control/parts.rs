//! How much of an edit that reached many hosts is worked off at a time.
//!
//! In: how long each part took. Out: how many partitions the next one has. What a host costs depends on its routes, so a fixed number
//! would be too many for some and too few for others; which hosts are published together changes nothing about what is published
//! in the end.

use std::time::Duration;

/// How long everybody else may wait for a part: about as long as an ordinary edit takes.
const LONGEST: Duration = Duration::from_millis(1);
/// For how long a large row that is being computed may read the tables between two parts.
pub(super) const READ_TIME: Duration = Duration::from_millis(1);
/// The most partitions of a part.
const MOST: usize = 256;

/// How many partitions a part has.
pub(super) struct PartSize(usize);

impl Default for PartSize {
    fn default() -> Self {
        Self(pipeline::partition::AT_ONCE)
    }
}

impl PartSize {
    pub fn partitions(&self) -> usize {
        self.0
    }

    /// Takes how long the last part took.
    pub fn adapt(&mut self, took: Duration) {
        if took > LONGEST {
            self.0 = (self.0 / 2).max(1);
        } else if took < LONGEST / 2 {
            self.0 = (self.0 * 2).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_take_long_become_smaller_and_others_larger() {
        let mut size = PartSize::default();
        for _ in 0..20 {
            size.adapt(LONGEST * 2);
        }
        assert_eq!(size.partitions(), 1);
        size.adapt(LONGEST);
        assert_eq!(size.partitions(), 1);
        for _ in 0..20 {
            size.adapt(Duration::ZERO);
        }
        assert_eq!(size.partitions(), MOST);
    }
}
